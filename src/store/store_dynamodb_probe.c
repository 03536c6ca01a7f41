#include "store/store_dynamodb_probe.h"
#include "base/clock.h"
#include <stdio.h>
#include <string.h>

#define PROBE_LIVES_S  (24 * 3600)
#define PROBE_ATTEMPTS 3 /* there are servers that answer 500 to what they do not know */

static const char *const dialects[] = {
	[DIALECT_CLAUSES] = "clauses",
	[DIALECT_LISTS] = "lists",
};

bool dynamodb_batches_dialect(const char *how, enum dynamodb_dialect *ret)
{
	for (unsigned i = 0; i < sizeof dialects / sizeof *dialects; i++)
		if (strcmp(how, dialects[i]) == 0) {
			*ret = (enum dynamodb_dialect)i;
			return true;
		}
	return false;
}

struct probe {
	struct dynamodb_conn *conn;
	const struct table *table;
	struct call_limits limits;
	struct item_key keys[2];
	struct text statement;
	struct problem *problem;
	enum dynamodb_dialect dialect;
	enum outcome answers[STATEMENTS_MAX]; /* of the last request */
};

static int fill_item(struct item *ret)
{
	static const char *const texts[][2] = {
		{"state", "first"}, {"gone", "1"}, {"also-gone", "1"}, {"kept", "1"}};
	int error = item_set_number(
		ret, "expires", clock_wall_ns() / (int64_t)NS_PER_S + PROBE_LIVES_S);

	for (size_t i = 0; !error && i < sizeof texts / sizeof *texts; i++)
		error = item_set_string(ret, texts[i][0], texts[i][1]);
	return error;
}

/* Sends one request that inserts the first n of the items. */
static enum outcome insert(struct probe *probe, size_t n)
{
	struct item item = {0};
	bool is_one = fill_item(&item) == 0;

	dynamodb_batch_begin(probe->conn, probe->table->name);
	for (size_t i = 0; i < n && is_one; i++) {
		text_reset(&probe->statement);
		is_one = statement_insert(&probe->statement, probe->table, probe->keys[i], &item);
		dynamodb_batch_add(probe->conn, &probe->statement);
	}
	item_clear(&item);
	if (!is_one)
		return OUTCOME_INVALID;
	return dynamodb_batch_execute(
		probe->conn, n, &probe->limits, probe->answers, probe->problem);
}

/* Sends one request that changes the first item if these conditions hold. */
static enum outcome update(struct probe *probe, const struct condition *conditions, size_t n)
{
	static const struct change changes[] = {{"gone"}, {"state", VALUE_STRING, "second"},
		{"also-gone"}, {"at", VALUE_NUMBER, "1"}};
	const struct item_write update = {
		.changes = changes, .n_changes = 4, .conditions = conditions, .n_conditions = n};

	text_reset(&probe->statement);
	if (!statement_update(
		    &probe->statement, probe->dialect, probe->table, probe->keys[0], &update))
		return OUTCOME_INVALID;
	dynamodb_batch_begin(probe->conn, probe->table->name);
	dynamodb_batch_add(probe->conn, &probe->statement);
	return dynamodb_batch_execute(
		probe->conn, 1, &probe->limits, probe->answers, probe->problem);
}

/* What an answer says about the server: OK if it is the wanted one, INVALID if it is another that
 * counts, else that nothing was learnt. */
static enum outcome judge_answer(enum outcome answer, enum outcome wanted)
{
	if (answer == wanted)
		return OUTCOME_OK;
	return answer == OUTCOME_OK || answer == OUTCOME_REFUSED ? OUTCOME_INVALID : answer;
}

/* An item that is there is refused, and the other of the same request is not. Our own insert may be
 * refused as well: it was sent twice. */
static enum outcome try_insert(struct probe *probe)
{
	enum outcome outcome = insert(probe, 1);

	if (outcome == OUTCOME_OK && probe->answers[0] != OUTCOME_REFUSED)
		outcome = judge_answer(probe->answers[0], OUTCOME_OK);
	if (outcome == OUTCOME_OK)
		outcome = insert(probe, 2);
	if (outcome == OUTCOME_OK)
		outcome = judge_answer(probe->answers[0], OUTCOME_REFUSED);
	if (outcome == OUTCOME_OK && probe->answers[1] != OUTCOME_REFUSED)
		outcome = judge_answer(probe->answers[1], OUTCOME_OK);
	return outcome;
}

/* OK if the update was refused. */
static enum outcome try_refused(struct probe *probe, const struct condition *conditions, size_t n)
{
	enum outcome outcome = update(probe, conditions, n);

	return outcome == OUTCOME_OK ? judge_answer(probe->answers[0], OUTCOME_REFUSED) : outcome;
}

/* Whether the item is what a true condition makes of it. */
static bool is_changed(const struct item *item)
{
	const char *state = item_string(item, "state"), *kept = item_string(item, "kept");
	int64_t at;

	return state && strcmp(state, "second") == 0 && kept && !item_find(item, "gone") &&
	       !item_find(item, "also-gone") && !item_number(item, "at", &at) && at == 1;
}

static enum outcome try_applied(struct probe *probe)
{
	static const struct condition true_ones[] = {
		{"state", CONDITION_EQUALS, VALUE_STRING, "first"}, {"never", CONDITION_ABSENT}};
	struct item item = {0};
	enum outcome outcome = update(probe, true_ones, 2);

	if (outcome == OUTCOME_OK && probe->answers[0] != OUTCOME_REFUSED)
		outcome = judge_answer(probe->answers[0], OUTCOME_OK);
	if (outcome == OUTCOME_OK)
		outcome = dynamodb_get(probe->conn, probe->table, probe->keys[0], true,
			&probe->limits, &item, probe->problem);
	if (outcome == OUTCOME_ABSENT || (outcome == OUTCOME_OK && !is_changed(&item)))
		outcome = OUTCOME_INVALID;
	item_clear(&item);
	return outcome;
}

static enum outcome try_update(struct probe *probe)
{
	static const struct condition other[] = {
		{"state", CONDITION_EQUALS, VALUE_STRING, "other"}};
	static const struct condition present[] = {
		{"state", CONDITION_EQUALS, VALUE_STRING, "first"}, {"gone", CONDITION_ABSENT}};
	enum outcome outcome = try_refused(probe, other, 1);

	if (outcome == OUTCOME_OK)
		outcome = try_refused(probe, present, 2);
	return outcome == OUTCOME_OK ? try_applied(probe) : outcome;
}

static enum outcome try_all(struct probe *probe)
{
	enum outcome outcome = try_insert(probe);

	if (outcome != OUTCOME_OK)
		return outcome;
	probe->dialect = DIALECT_CLAUSES;
	outcome = try_update(probe);
	if (outcome != OUTCOME_INVALID)
		return outcome;
	probe->dialect = DIALECT_LISTS;
	return try_update(probe);
}

enum outcome dynamodb_batches_probe(struct dynamodb_conn *conn, const struct table *table,
	const char *pk, const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem)
{
	struct problem problem = {0};
	struct probe probe = {.conn = conn,
		.table = table,
		.limits = limits ? *limits : (struct call_limits){0},
		.keys = {{pk, STORE_PROBE_FIRST}, {pk, STORE_PROBE_SECOND}},
		.statement = TEXT(1 << 16),
		.problem = &problem};

	probe.limits.attempts = PROBE_ATTEMPTS;
	enum outcome outcome = try_all(&probe);
	text_clear(&probe.statement);
	const bool is_none = outcome == OUTCOME_INVALID || outcome == OUTCOME_UNSUPPORTED;
	if (outcome == OUTCOME_OK || is_none) {
		snprintf(ret_how, STORE_BATCHES_MAX, "%s",
			is_none ? STORE_BATCHES_NONE : dialects[probe.dialect]);
		return OUTCOME_OK;
	}
	if (ret_problem)
		*ret_problem = problem;
	return outcome;
}
