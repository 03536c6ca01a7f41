/* The settings of a store of marks: made once, whoever comes first; refused if they are of another
 * layout or damaged; and told of another machine only where one is known. */
#include "../check.h"
#include "base/random.h"
#include "marks/store_settings.h"
#include "store/store.h"
#include <stdlib.h>

static const struct item_key key = {"settings", "-"};

/* A store in memory. `meanwhile` happens before its next write. */
static struct store *store;
static struct store_conn *conn;
static const struct store_ops *real;
static struct store_ops hooked;
static void (*meanwhile)(void);
static unsigned writes;
static struct problem problem;

static enum outcome write_after(struct store_conn *of, struct item_key at,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	void (*const happens)(void) = meanwhile;
	meanwhile = NULL;
	writes++;
	if (happens)
		happens();
	return real->write(of, at, write, limits, ret, ret_problem);
}

static void begin(void)
{
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) ||
		store_conn_new(store, &conn))
		abort();
	real = store->ops;
	hooked = *real;
	hooked.write = write_after;
	store->ops = &hooked;
	meanwhile = NULL;
	writes = 0;
	problem = (struct problem){0};
}

static void end(void)
{
	store->ops = real;
	store_conn_free(conn);
	store_close(store);
}

static void set(const char *name, enum value_type type, const char *value)
{
	const struct change change = {name, type, value, 0};
	const struct item_write write = {.changes = &change, .n_changes = 1};
	CHECK_INT(real->write(conn, key, &write, NULL, NULL, &problem), OUTCOME_OK);
}

static enum outcome load(struct store_settings *ret)
{
	*ret = (struct store_settings){0};
	return settings_load(conn, NULL, ret, &problem);
}

static char first_id[ID_CHARS + 1];

static void another_makes_them(void)
{
	struct store_settings settings;
	CHECK_INT(settings_load_or_make(conn, 7, NULL, &settings, &problem), OUTCOME_OK);
	memcpy(first_id, settings.table_id, sizeof first_id);
}

static void test_made_once(void)
{
	struct store_settings made = {0}, read;
	begin();
	CHECK_INT(load(&read), OUTCOME_ABSENT);
	CHECK(strstr(problem.text, "run s3once init") != NULL);
	CHECK_INT(settings_load_or_make(conn, 0, NULL, &made, &problem), OUTCOME_INVALID);
	CHECK_INT(settings_load_or_make(conn, SHARDS_MAX + 1, NULL, &made, &problem),
		OUTCOME_INVALID);
	CHECK_INT(writes, 0);
	CHECK_INT(settings_load_or_make(conn, 4, NULL, &made, &problem), OUTCOME_OK);
	CHECK_INT(strlen(made.table_id), ID_CHARS);
	CHECK_INT(made.layout, LAYOUT_VERSION);
	CHECK_INT(settings_load_or_make(conn, 9, NULL, &read, &problem), OUTCOME_OK);
	CHECK_INT(read.shards, 4);
	CHECK_STRING(read.table_id, made.table_id);
	end();
	begin();
	meanwhile = another_makes_them;
	CHECK_INT(settings_load_or_make(conn, 4, NULL, &made, &problem), OUTCOME_OK);
	CHECK_INT(made.shards, 7);
	CHECK_STRING(made.table_id, first_id);
	end();
}

static const struct {
	const char *name;
	enum value_type type;
	const char *value, *problem;
} damages[] = {
	{"layout", VALUE_NUMBER, "2", "has layout 2"},
	{"layout", VALUE_NUMBER, NULL, "damaged"},
	{"shards", VALUE_NUMBER, "0", "damaged"},
	{"shards", VALUE_NUMBER, "1025", "damaged"},
	{"shards", VALUE_NUMBER, NULL, "damaged"},
	{"id", VALUE_STRING, "short", "damaged"},
	{"id", VALUE_STRING, NULL, "damaged"},
};

static void test_damaged(void)
{
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		struct store_settings settings;
		begin();
		CHECK_INT(settings_load_or_make(conn, 4, NULL, &settings, &problem), OUTCOME_OK);
		set(damages[i].name, damages[i].type, damages[i].value);
		if (!CHECK_INT(load(&settings), OUTCOME_SETUP) ||
			!CHECK(strstr(problem.text, damages[i].problem) != NULL) ||
			!CHECK_STRING(settings.table_id, ""))
			fprintf(stderr, "\tdamage %zu: %s\n", i, problem.text);
		end();
	}
}

/* The settings of this machine are noted once. Those of a machine that differs get a new id, and
 * keep the old one, whose objects are still known. */
static void test_machines(void)
{
	struct store_settings settings, read;
	struct known_machine here;
	bool is_copied = true;
	machine_self(&here);
	begin();
	CHECK_INT(settings_load_or_make(conn, 4, NULL, &settings, &problem), OUTCOME_OK);
	char id[ID_CHARS + 1];
	memcpy(id, settings.table_id, sizeof id);
	writes = 0;
	CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
		OUTCOME_OK);
	CHECK(!is_copied);
	CHECK_INT(writes, *here.id ? 1 : 0);
	CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
		OUTCOME_OK);
	CHECK_INT(writes, *here.id ? 1 : 0);
	/* The board and the cards that only root or an earlier run has seen stay noted. */
	if (*here.id && (!*here.board || !*here.cards)) {
		if (!*here.board)
			set("board", VALUE_STRING, "1111111111111111");
		if (!*here.cards)
			set("cards", VALUE_STRING, "2222222222222222");
		CHECK_INT(load(&read), OUTCOME_OK);
		settings = read;
		writes = 0;
		CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
			OUTCOME_OK);
		CHECK(!is_copied);
		CHECK_INT(writes, 0);
		CHECK_INT(load(&settings), OUTCOME_OK);
		CHECK_STRING(settings.machine.board, read.machine.board);
		CHECK_STRING(settings.machine.cards, read.machine.cards);
	}
	if (*here.id) {
		set("host", VALUE_STRING, "elsewhere");
		set("machine", VALUE_STRING, "0000000000000000");
		CHECK_INT(load(&settings), OUTCOME_OK);
		struct store_settings dry = settings;
		CHECK_INT(settings_note_machine(conn, true, NULL, &dry, &is_copied, &problem),
			OUTCOME_OK);
		CHECK(is_copied && strcmp(dry.table_id, id) != 0);
		CHECK_INT(load(&read), OUTCOME_OK);
		CHECK_STRING(read.table_id, id); /* a dry run writes nothing */
		CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
			OUTCOME_OK);
		CHECK(is_copied);
		CHECK_INT(load(&read), OUTCOME_OK);
		CHECK_STRING(read.table_id, settings.table_id);
		CHECK(strcmp(read.table_id, id) != 0);
		CHECK_STRING(read.copied_from, "elsewhere");
		CHECK(read.copied_s > 0);
		CHECK(settings_had_id(&read, id) && settings_had_id(&read, read.table_id));
		CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
			OUTCOME_OK);
		CHECK(!is_copied);
	}
	end();
}

static void another_notes_it(void)
{
	struct store_settings settings;
	bool is_copied;
	CHECK_INT(load(&settings), OUTCOME_OK);
	CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
		OUTCOME_OK);
	memcpy(first_id, settings.table_id, sizeof first_id);
}

/* Two runs of one machine give its file one id. */
static void test_two_runs_on_another_machine(void)
{
	struct store_settings settings;
	struct known_machine here;
	bool is_copied;
	machine_self(&here);
	if (!*here.id) {
		fprintf(stderr, "nothing is known of this machine: left out\n");
		return;
	}
	begin();
	CHECK_INT(settings_load_or_make(conn, 4, NULL, &settings, &problem), OUTCOME_OK);
	set("host", VALUE_STRING, "elsewhere");
	set("machine", VALUE_STRING, "0000000000000000");
	CHECK_INT(load(&settings), OUTCOME_OK);
	meanwhile = another_notes_it;
	CHECK_INT(settings_note_machine(conn, false, NULL, &settings, &is_copied, &problem),
		OUTCOME_OK);
	CHECK_STRING(settings.table_id, first_id);
	end();
}

/* The oldest ids are dropped, and never a part of one. */
static void test_ids(void)
{
	struct store_settings settings = {.table_id = "0123456789abcdef0123456789abcdef",
		.earlier = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "};
	CHECK(settings_had_id(&settings, "0123456789abcdef0123456789abcdef"));
	CHECK(settings_had_id(&settings, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"));
	CHECK(!settings_had_id(&settings, "cccccccccccccccccccccccccccccccc"));
	CHECK(!settings_had_id(&settings, ""));
	CHECK(!settings_had_id(&settings, "aaaa"));
	CHECK(!settings_had_id(&settings, "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbb "));
}

/* --- batches: what a trial has found out is kept, and what it has not is tried again */

static enum outcome trial;
static unsigned trials;
static char used[STORE_BATCHES_MAX];

static enum outcome try_them(struct store_conn *of, const char *pk,
	const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem)
{
	trials++;
	CHECK(strncmp(pk, "probe#", 6) == 0);
	if (trial == OUTCOME_OK)
		snprintf(ret_how, STORE_BATCHES_MAX, "lists");
	return trial;
}

static void use_them(struct store *of, const char *how)
{
	snprintf(used, sizeof used, "%s", how);
}

static void test_batches(void)
{
	static const enum outcome outcomes[] = {OUTCOME_DENIED, OUTCOME_TRANSIENT, OUTCOME_OK};
	struct store_settings settings;
	begin();
	CHECK_INT(settings_load_or_make(conn, 4, NULL, &settings, &problem), OUTCOME_OK);
	settings_use_batches(conn, NULL, &settings); /* this store has none */
	CHECK_STRING(settings.batches, "");
	hooked.try_batches = try_them;
	hooked.use_batches = use_them;
	for (unsigned i = 0; i < 3; i++) {
		trial = outcomes[i];
		CHECK_INT(load(&settings), OUTCOME_OK);
		settings_use_batches(conn, NULL, &settings);
		CHECK_INT(trials, i + 1);
		CHECK_STRING(used, trial == OUTCOME_OK ? "lists" : "");
	}
	CHECK_INT(load(&settings), OUTCOME_OK);
	CHECK_STRING(settings.batches, "lists");
	*used = 0;
	settings_use_batches(conn, NULL, &settings);
	CHECK_INT(trials, 3);
	CHECK_STRING(used, "lists");
	end();
}

int main(void)
{
	test_made_once();
	test_damaged();
	test_machines();
	test_two_runs_on_another_machine();
	test_ids();
	test_batches();
	return check_result();
}
