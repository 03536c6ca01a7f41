/* The settings of a mark store. Every run reads them before it reads any mark. table_create() makes
 * a table with settings, for init. The number of shards is written once, and never changed. The id
 * changes only when a file of marks is found on another machine: settings_note_machine(). */
#include "marks/store_settings.h"
#include "base/log.h"
#include "base/random.h"
#include "marks/row.h"
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct store_settings *)0)->table_id == ID_CHARS + 1, "an id fits");

static const struct item_key settings_key = {"settings", "-"};

/* The groups of fields that are written together. */
enum {
	GROUP_FIXED = 1 << 0,   /* when the settings are made; the id also for a copy */
	GROUP_BATCHES = 1 << 1, /* when batches were tried */
	GROUP_MACHINE = 1 << 2, /* when a machine is noted */
	GROUP_COPY = 1 << 3,    /* when it is another machine than before */
};
#define FIELD(member, attribute, how, group)                                                       \
	ROW_FIELD(struct store_settings, member, attribute, how, .groups = (group),                \
		.is_always = true)
static const struct row_field fields[] = {
	FIELD(table_id, "id", FIELD_TEXT, GROUP_FIXED),
	FIELD(layout, "layout", FIELD_INT, GROUP_FIXED),
	FIELD(shards, "shards", FIELD_INT, GROUP_FIXED),
	FIELD(batches, "batches", FIELD_TEXT, GROUP_BATCHES),
	FIELD(machine.host, "host", FIELD_TEXT, GROUP_MACHINE),
	FIELD(machine.id, "machine", FIELD_TEXT, GROUP_MACHINE),
	FIELD(machine.board, "board", FIELD_TEXT, GROUP_MACHINE),
	FIELD(machine.cards, "cards", FIELD_TEXT, GROUP_MACHINE),
	FIELD(earlier, "earlier", FIELD_TEXT, GROUP_COPY),
	FIELD(copied_from, "copied_from", FIELD_TEXT, GROUP_COPY),
	FIELD(copied_s, "copied_at", FIELD_NUMBER, GROUP_COPY),
};
static const struct row_table settings_table = ROW_TABLE(fields);

/* Reads the settings from their item, and checks them. A longer word for batches comes from a later
 * version, and counts as none. Returns OK, or SETUP with a sentence. */
static enum outcome read_settings(
	const struct item *item, struct store_settings *ret, struct problem *ret_problem)
{
	struct store_settings stored = {0};

	/* A field that cannot be read stays 0 or "", which is refused below if it is needed. */
	row_read(&settings_table, item, &stored);
	if (stored.layout && stored.layout != LAYOUT_VERSION)
		return outcome_error(ret_problem, OUTCOME_SETUP,
			"the mark store has layout %d and this s3once supports layout %d: use the "
			"version that created it, or another store",
			stored.layout, LAYOUT_VERSION);
	const bool has_id = strlen(stored.table_id) == ID_CHARS;
	const bool has_shards = stored.shards >= 1 && stored.shards <= SHARDS_MAX;
	if (!stored.layout || !has_id || !has_shards)
		return outcome_error(ret_problem, OUTCOME_SETUP,
			"the settings item of the mark store (pk \"settings\", sk \"-\") is "
			"damaged: it needs a string id of %d characters, and the numbers layout and "
			"shards (1 to %d)",
			ID_CHARS, SHARDS_MAX);
	*ret = stored;
	return OUTCOME_OK;
}

void settings_generate(unsigned shards, struct store_settings *ret)
{
	*ret = (struct store_settings){.layout = LAYOUT_VERSION, .shards = shards};
	random_id(ret->table_id);
}

/* Writes the settings of a new store. If another process has written them first, its settings are
 * used. */
static enum outcome write_new_settings(struct store_conn *conn, unsigned shards,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem)
{
	struct store_settings fresh;
	struct row_write write = {.kind = ROW_PUTS};
	struct item present = {0};

	if (shards < 1 || shards > SHARDS_MAX)
		return outcome_error(ret_problem, OUTCOME_INVALID, "%u shards: give 1 to %d",
			shards, SHARDS_MAX);
	settings_generate(shards, &fresh);
	row_set(&write, &settings_table, GROUP_FIXED, &fresh);
	row_expect_test(&write, "pk", CONDITION_ABSENT);
	enum outcome o = row_perform(conn, settings_key, &write, limits, &present, ret_problem);
	if (o == OUTCOME_OK)
		*ret = fresh;
	else if (o == OUTCOME_REFUSED) /* `present` has those of the other process */
		o = read_settings(&present, ret, ret_problem);
	item_clear(&present);
	return o;
}

/* Reads the settings. If there are none, makes them with this number of shards, or returns ABSENT
 * if `shards` is NULL. */
static enum outcome load_or_make(struct store_conn *conn, const unsigned *shards,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem)
{
	struct item item = {0};
	enum outcome o = conn->store->ops->get(
		conn, settings_key, READ_CONSISTENT, limits, &item, ret_problem);
	const bool lacks_table =
		o == OUTCOME_SETUP && strcmp(ret_problem->code, "ResourceNotFoundException") == 0;

	if (o == OUTCOME_OK) {
		o = read_settings(&item, ret, ret_problem);
	} else if (o == OUTCOME_ABSENT && shards) {
		o = write_new_settings(conn, *shards, limits, ret, ret_problem);
	} else if (o == OUTCOME_ABSENT || lacks_table) {
		o = outcome_error(ret_problem, OUTCOME_ABSENT,
			"the mark store is not set up: run s3once init");
	} else if (strcmp(ret_problem->code, "ValidationException") == 0) {
		/* The code for a key whose attributes are not those of the table. Only the sentence
		 * is replaced. */
		snprintf(ret_problem->text, sizeof ret_problem->text,
			"its keys are not the strings pk and sk, so it is no table of s3once");
	}
	item_clear(&item);
	return o;
}

enum outcome settings_load(struct store_conn *conn, const struct call_limits *limits,
	struct store_settings *ret, struct problem *ret_problem)
{
	return load_or_make(conn, NULL, limits, ret, ret_problem);
}

enum outcome settings_load_or_make(struct store_conn *conn, unsigned shards,
	const struct call_limits *limits, struct store_settings *ret, struct problem *ret_problem)
{
	return load_or_make(conn, &shards, limits, ret, ret_problem);
}

/* Gives the file of marks a new table id, since the machine `here` has not used it before. The old
 * id is put in front of the earlier ones, and the machine that has used it is noted. */
static void give_new_table_id(
	struct store_settings *settings, const struct known_machine *here, int64_t now_s)
{
	char earlier[EARLIER_BYTES];
	snprintf(earlier, sizeof earlier, "%s ", settings->table_id);
	const size_t used = strlen(earlier);
	/* The oldest ids are dropped, and never a part of one. */
	snprintf(earlier + used, sizeof earlier - used, "%s", settings->earlier);
	strcpy(settings->earlier, earlier);
	strcpy(settings->copied_from, settings->machine.host);
	settings->copied_s = now_s;
	settings->machine = *here;
	random_id(settings->table_id);
}

/* Keeps what an earlier run has noted of this machine and this run cannot see: only root sees the
 * board, and a card may be missing for a while. */
static void keep_unseen(struct known_machine *here, const struct known_machine *noted)
{
	if (!*here->board)
		strcpy(here->board, noted->board);
	if (!*here->cards)
		strcpy(here->cards, noted->cards);
}

static bool is_noted(const struct known_machine *here, const struct known_machine *noted)
{
	return strcmp(here->id, noted->id) == 0 && strcmp(here->board, noted->board) == 0 &&
	       strcmp(here->cards, noted->cards) == 0;
}

enum outcome settings_note_machine(struct store_conn *conn, bool dry,
	const struct call_limits *limits, struct store_settings *settings, bool *ret_is_copied,
	struct problem *ret_problem)
{
	struct store_settings now = *settings;
	struct row_write write = {0};
	struct known_machine here;
	machine_self(&here);
	*ret_is_copied = machine_differs(&settings->machine, &here);
	if (!*here.id) /* as in most containers: nothing is known of the machine */
		return OUTCOME_OK;
	if (*ret_is_copied) {
		give_new_table_id(&now, &here, store_time_s(conn->store));
	} else {
		keep_unseen(&here, &settings->machine);
		if (is_noted(&here, &settings->machine))
			return OUTCOME_OK;
		now.machine = here;
	}
	row_set(&write, &settings_table,
		GROUP_FIXED | GROUP_MACHINE | (*ret_is_copied ? GROUP_COPY : 0U), &now);
	row_expect(&write, &settings_table, GROUP_FIXED, settings);
	const enum outcome o =
		dry ? OUTCOME_OK
		    : row_perform(conn, settings_key, &write, limits, NULL, ret_problem);
	/* Another run on this machine was first. */
	if (o == OUTCOME_REFUSED)
		return settings_load(conn, limits, settings, ret_problem);
	if (o == OUTCOME_OK)
		*settings = now;
	return o;
}

bool settings_had_id(const struct store_settings *settings, const char *id)
{
	return strlen(id) == ID_CHARS &&
	       (strcmp(id, settings->table_id) == 0 || strstr(settings->earlier, id));
}

enum outcome settings_learn_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, struct store_settings *settings,
	struct problem *ret_problem)
{
	const struct store_ops *ops = conn->store->ops;
	struct row_write write = {0};

	if (!ops->try_batches) /* such a store always groups its writes */
		return OUTCOME_OK;
	enum outcome o = ops->try_batches(conn, pk, limits, settings->batches, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	row_set(&write, &settings_table, GROUP_BATCHES, settings);
	return row_perform(conn, settings_key, &write, limits, NULL, ret_problem);
}

void settings_use_batches(
	struct store_conn *conn, const struct call_limits *limits, struct store_settings *settings)
{
	const struct store_ops *ops = conn->store->ops;
	struct problem problem = {0};

	if (!ops->use_batches) /* such a store always groups its writes */
		return;
	if (!*settings->batches) {
		char id[ID_CHARS + 1], pk[64];
		random_id(id);
		snprintf(pk, sizeof pk, "probe#%s", id);
		enum outcome o = settings_learn_batches(conn, pk, limits, settings, &problem);
		if (o == OUTCOME_DENIED)
			log_note(
				"each mark is a request of its own, since BatchExecuteStatement is "
				"denied; allow dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate");
		else if (o != OUTCOME_OK)
			log_info("cannot find out whether marks can be written in batches: %s",
				problem.text);
	}
	/* If the trial was inconclusive, the word is still "", which the store does not know: each
	 * mark stays a request of its own. If only saving the word has failed, it counts for this
	 * run. */
	ops->use_batches(conn->store, settings->batches);
}

enum outcome table_create(const struct aws_settings *aws, struct http_shared *http,
	const struct table_setup *setup, struct store_settings *ret, struct table_made *ret_made,
	struct problem *ret_problem)
{
	const struct table_making making = {.table = store_dynamodb_table(setup->table),
		.what = "marks",
		.ttl_name = "expires",
		.timeout_ms = setup->timeout_ms};
	struct store *store = NULL;
	struct store_conn *conn = NULL;
	enum outcome o = table_make(aws, http, &making, ret_made, ret_problem);

	if (o != OUTCOME_OK)
		return o;
	if (store_dynamodb_open(aws, http, setup->table, &store, ret_problem))
		return OUTCOME_LOCAL;
	const int r = store_conn_new(store, &conn);
	o = r ? outcome_error(
			ret_problem, OUTCOME_LOCAL, "table %s: %s", setup->table, strerror(-r))
	      : settings_load_or_make(conn, setup->shards, NULL, ret, ret_problem);
	store_conn_free(conn);
	store_close(store);
	return o;
}
