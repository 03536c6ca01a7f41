#include "base/log.h"
#include "base/random.h"
#include "marks/setup.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct store_settings *)0)->table_id == ID_CHARS + 1, "an id fits");

static const struct item_key settings_key = {"settings", "-"};

static enum outcome settings_damaged(struct problem *ret_problem)
{
	problem_set(ret_problem,
		"the settings item of the mark store (pk \"settings\", sk \"-\") is "
		"damaged: it needs "
		"a string id of %d characters, and the numbers layout and shards (1 to %d)",
		ID_CHARS, SHARDS_MAX);
	return OUTCOME_SETUP;
}

static enum outcome read_settings(
	const struct item *item, struct store_settings *ret, struct problem *ret_problem)
{
	const char *id = item_string(item, "id");
	int64_t layout, shards;

	if (item_number(item, "layout", &layout) < 0)
		return settings_damaged(ret_problem);
	if (layout != LAYOUT_VERSION) {
		problem_set(ret_problem,
			"the mark store has layout %" PRId64
			" and this s3once supports layout %d: use the version that created it, "
			"or another store",
			layout, LAYOUT_VERSION);
		return OUTCOME_SETUP;
	}
	if (!id || strlen(id) != ID_CHARS || item_number(item, "shards", &shards) < 0 ||
		shards < 1 || shards > SHARDS_MAX)
		return settings_damaged(ret_problem);
	snprintf(ret->table_id, sizeof ret->table_id, "%s", id);
	ret->shards = (unsigned)shards;
	const char *batches = item_string(item, "batches");
	/* A longer word is of a later version. */
	snprintf(ret->batches, sizeof ret->batches, "%s",
		batches && strlen(batches) < sizeof ret->batches ? batches : "");
	return OUTCOME_OK;
}

static int fresh_item(unsigned shards, struct item *ret)
{
	char id[ID_CHARS + 1];

	random_id(id);
	int r = item_set_string(ret, "id", id);
	if (!r)
		r = item_set_number(ret, "layout", LAYOUT_VERSION);
	if (!r)
		r = item_set_number(ret, "shards", shards);
	return r;
}

/* Whoever comes second is shown what the first one wrote, and uses that. */
static enum outcome write_unless_there(struct store_conn *conn, const struct item *fresh,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	struct item present = {0};
	enum outcome outcome = conn->store->ops->write(conn, settings_key,
		&(struct item_write){.item = fresh, .conditions = &absent, .n_conditions = 1},
		limits, &present, ret_problem);

	if (outcome == OUTCOME_OK)
		outcome = read_settings(fresh, ret, ret_problem);
	else if (outcome == OUTCOME_REFUSED)
		outcome = read_settings(&present, ret, ret_problem);
	item_clear(&present);
	return outcome;
}

static enum outcome make(struct store_conn *conn, unsigned shards, const struct call_limits *limits,
	struct store_settings *ret, struct problem *ret_problem)
{
	struct item fresh = {0};
	enum outcome outcome = OUTCOME_INVALID;

	if (shards < 1 || shards > SHARDS_MAX)
		problem_set(ret_problem, "%u shards: give 1 to %d", shards, SHARDS_MAX);
	else if (fresh_item(shards, &fresh) == 0)
		outcome = write_unless_there(conn, &fresh, limits, ret, ret_problem);
	else
		outcome = OUTCOME_LOCAL;
	if (outcome == OUTCOME_LOCAL)
		problem_set(ret_problem, "out of memory");
	item_clear(&fresh);
	return outcome;
}

static bool is_table_missing(enum outcome outcome, const struct problem *problem)
{
	return outcome == OUTCOME_SETUP && strcmp(problem->code, "ResourceNotFoundException") == 0;
}

/* DynamoDB answers so when the key is not made of the attributes that the table has for it. */
static bool is_other_shape(enum outcome outcome, const struct problem *problem)
{
	return outcome != OUTCOME_OK && strcmp(problem->code, "ValidationException") == 0;
}

static void explain_shape(struct problem *ret_problem)
{
	snprintf(ret_problem->text, sizeof ret_problem->text,
		"its keys are not the strings pk and sk, so it is not a table of s3once: "
		"give another name");
}

static enum outcome never_set_up(struct problem *ret_problem)
{
	problem_set(ret_problem, "the mark store is not set up: run s3once init");
	return OUTCOME_ABSENT;
}

enum outcome settings_load(struct store_conn *conn, bool create, unsigned shards,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome outcome =
		conn->store->ops->get(conn, settings_key, true, limits, &item, ret_problem);

	if (outcome == OUTCOME_OK)
		outcome = read_settings(&item, ret, ret_problem);
	else if (outcome == OUTCOME_ABSENT && create)
		outcome = make(conn, shards, limits, ret, ret_problem);
	else if (outcome == OUTCOME_ABSENT || is_table_missing(outcome, ret_problem))
		outcome = never_set_up(ret_problem);
	else if (is_other_shape(outcome, ret_problem))
		explain_shape(ret_problem);
	item_clear(&item);
	return outcome;
}

enum outcome settings_learn_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, struct store_settings *settings,
	struct problem *ret_problem)
{
	const struct store_ops *ops = conn->store->ops;
	struct item present = {0};
	struct change learnt = {"batches", VALUE_STRING, settings->batches};

	if (!ops->try_batches)
		return OUTCOME_OK;
	enum outcome outcome = ops->try_batches(conn, pk, limits, settings->batches, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	outcome = ops->write(conn, settings_key,
		&(struct item_write){.changes = &learnt, .n_changes = 1}, limits, &present,
		ret_problem);
	item_clear(&present);
	return outcome;
}

void settings_use_batches(
	struct store_conn *conn, const struct call_limits *limits, struct store_settings *settings)
{
	const struct store_ops *ops = conn->store->ops;
	struct problem problem = {0};

	if (!ops->use_batches)
		return;
	if (!*settings->batches) {
		char id[ID_CHARS + 1], pk[64];
		random_id(id);
		snprintf(pk, sizeof pk, "probe#%s", id);
		enum outcome outcome = settings_learn_batches(conn, pk, limits, settings, &problem);
		if (outcome == OUTCOME_DENIED)
			log_note(
				"each mark is a request of its own, since BatchExecuteStatement is "
				"denied; allow dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate");
		else if (outcome != OUTCOME_OK)
			log_info("cannot find out whether marks can be written in batches: %s",
				problem.text);
	}
	ops->use_batches(conn->store, settings->batches);
}
