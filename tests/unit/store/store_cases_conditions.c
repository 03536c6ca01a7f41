#include "base/clock.h"
#include "base/random.h"
#include "store_cases.h"

static struct item everything(void)
{
	static const char bytes[] = "\0\1\2\377 bytes \0";
	static const char *const strings[][2] = {
		{"empty", ""},
		{"state", "claimed"},
		{"quotes", "\"double\" 'single' \\back/slash"},
		{"control", "\x01\x02\t\r\n\x1f\x7f"},
		{"composed", "caf\xc3\xa9"},
		{"decomposed", "cafe\xcc\x81"},
		{"astral", "\xf0\x9f\x97\x84 \xe2\x80\xae"},
		{"json", "{\"S\":\"not an attribute\"}"},
	};
	struct item item = {0};

	for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
		CHECK(item_set_string(&item, strings[i][0], strings[i][1]) == 0);
	CHECK(item_set(&item, "bytes", VALUE_BYTES, bytes, sizeof bytes) == 0);
	CHECK(item_set_number(&item, "most", INT64_MAX) == 0);
	CHECK(item_set_number(&item, "least", INT64_MIN) == 0);
	CHECK(item_set_number(&item, "mtime", 1795000000123456789) == 0);
	CHECK(item_set(&item, "list", VALUE_OTHER, "{\"L\":[{\"S\":\"a\"},{\"BOOL\":true}]}", 31) ==
		0);
	return item;
}

static void put_absent_once(struct scene *scene)
{
	struct item item = everything(), other = item_of("state", "other"), present = {0};

	CHECK_OUTCOME(put_absent(scene, "k", &item, &present), OUTCOME_OK);
	CHECK(item_is_empty(&present));
	CHECK_OUTCOME(put_absent(scene, "k", &other, &present), OUTCOME_REFUSED);
	CHECK(same_item(&present, &item));
	CHECK_STRING(item_string(&present, "pk"), scene->pk);
	CHECK_STRING(item_string(&present, "sk"), "k");
	item_clear(&present);
	CHECK_OUTCOME(get_item(scene, "k", &present), OUTCOME_OK);
	CHECK(same_item(&present, &item));
	item_clear(&present);
	item_clear(&item);
	item_clear(&other);
}

static void resend_recognised(struct scene *scene)
{
	char id[ID_CHARS + 1];

	random_id(id);
	struct item item = item_of("claim", id), present = {0};
	CHECK_OUTCOME(put_absent(scene, "k", &item, &present), OUTCOME_OK);
	CHECK_OUTCOME(put_absent(scene, "k", &item, &present), OUTCOME_REFUSED);
	CHECK_STRING(item_string(&present, "claim"), id);
	item_clear(&present);
	item_clear(&item);
}

static void put_replaces_all(struct scene *scene)
{
	struct item first = item_of("first", "1"), second = item_of("second", "2"), present = {0};

	/* Such a put never goes into a batch, whose names are the program's own. */
	CHECK_INT(item_set_string(&second, "a name with spaces, \"quotes\" and \xc3\xa9", "x"), 0);
	CHECK_OUTCOME(put_if(scene, "k", &first, NULL, 0, &present), OUTCOME_OK);
	CHECK_OUTCOME(put_if(scene, "k", &second, NULL, 0, &present), OUTCOME_OK);
	CHECK(item_is_empty(&present));
	CHECK_OUTCOME(get_item(scene, "k", &present), OUTCOME_OK);
	CHECK(same_item(&present, &second));
	item_clear(&present);
	item_clear(&first);
	item_clear(&second);
}

/* Against the item {state: "claimed", tries: 7, empty: ""}. */
static const struct {
	struct condition conditions[2];
	size_t n;
	bool holds;
} tests[] = {
	{{{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"}}, 1, true},
	{{{"state", CONDITION_EQUALS, VALUE_STRING, "claime"}}, 1, false},
	{{{"state", CONDITION_EQUALS, VALUE_STRING, "Claimed"}}, 1, false},
	{{{"state", CONDITION_EQUALS, VALUE_NUMBER, "7"}}, 1, false},
	{{{"tries", CONDITION_EQUALS, VALUE_NUMBER, "7"}}, 1, true},
	{{{"tries", CONDITION_EQUALS, VALUE_NUMBER, "8"}}, 1, false},
	{{{"tries", CONDITION_EQUALS, VALUE_STRING, "7"}}, 1, false},
	{{{"tries", CONDITION_AT_MOST, VALUE_NUMBER, "10"}}, 1, true},
	{{{"tries", CONDITION_AT_MOST, VALUE_NUMBER, "6"}}, 1, false},
	{{{"state", CONDITION_AT_MOST, VALUE_NUMBER, "7"}}, 1, false},
	{{{"nothing", CONDITION_AT_MOST, VALUE_NUMBER, "7"}}, 1, false},
	{{{"empty", CONDITION_EQUALS, VALUE_STRING, ""}}, 1, true},
	{{{"nothing", CONDITION_EQUALS, VALUE_STRING, ""}}, 1, false},
	{{{"state", CONDITION_PRESENT}}, 1, true},
	{{{"nothing", CONDITION_PRESENT}}, 1, false},
	{{{"state", CONDITION_ABSENT}}, 1, false},
	{{{"nothing", CONDITION_ABSENT}}, 1, true},
	{{{"pk", CONDITION_ABSENT}}, 1, false},
	{{{"pk", CONDITION_PRESENT}}, 1, true},
	{{{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"}, {"nothing", CONDITION_ABSENT}}, 2,
		true},
	{{{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"},
		 {"tries", CONDITION_EQUALS, VALUE_NUMBER, "8"}},
		2, false},
};

static struct item tested_item(void)
{
	struct item item = item_of("state", "claimed");

	CHECK(item_set_number(&item, "tries", 7) == 0);
	CHECK(item_set_string(&item, "empty", "") == 0);
	return item;
}

enum operation { PUT, UPDATE, REMOVE };

static enum outcome operate(
	struct scene *scene, enum operation operation, size_t test, struct item *ret_present)
{
	const struct store_ops *ops = scene->store->ops;
	const struct change change = {"state", VALUE_STRING, "done"};
	const struct condition *conditions = tests[test].conditions;
	size_t n = tests[test].n;
	struct item item = item_of("state", "put");
	struct problem problem = {0};
	enum outcome o;

	if (operation == PUT)
		o = ops->write(scene->conn, key_of(scene, "k"),
			&(struct item_write){
				.item = &item, .conditions = conditions, .n_conditions = n},
			&no_limits, ret_present, &problem);
	else if (operation == UPDATE)
		o = ops->write(scene->conn, key_of(scene, "k"),
			&(struct item_write){.changes = &change,
				.n_changes = 1,
				.conditions = conditions,
				.n_conditions = n},
			&no_limits, ret_present, &problem);
	else
		o = ops->write(scene->conn, key_of(scene, "k"),
			&(struct item_write){
				.removes = true, .conditions = conditions, .n_conditions = n},
			&no_limits, ret_present, &problem);
	item_clear(&item);
	return o;
}

static void every_test(struct scene *scene)
{
	struct item item = tested_item();

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		for (enum operation o = PUT; o <= REMOVE; o++) {
			bool holds = tests[i].holds;
			struct item present = {0}, after = {0};

			CHECK_OUTCOME(put_if(scene, "k", &item, NULL, 0, &present), OUTCOME_OK);
			bool ok = CHECK_OUTCOME(operate(scene, o, i, &present),
				holds ? OUTCOME_OK : OUTCOME_REFUSED);
			ok &= CHECK(holds ? item_is_empty(&present) : same_item(&present, &item));
			enum outcome found = get_item(scene, "k", &after);
			ok &= CHECK(holds ? !same_item(&after, &item) : same_item(&after, &item));
			ok &= CHECK_OUTCOME(
				found, holds && o == REMOVE ? OUTCOME_ABSENT : OUTCOME_OK);
			if (!ok)
				fprintf(stderr, "\tin test %zu, operation %u\n", i, o);
			item_clear(&present);
			item_clear(&after);
		}
	}
	item_clear(&item);
}

static void missing_item(struct scene *scene)
{
	const struct store_ops *ops = scene->store->ops;
	const struct change change = {"state", VALUE_STRING, "done"};
	const struct condition absent = {"state", CONDITION_ABSENT};
	const struct condition present_test = {"state", CONDITION_PRESENT};
	struct item present = {0};
	struct problem problem = {0};
	struct item_key key = key_of(scene, "k");

	CHECK_OUTCOME(ops->write(scene->conn, key,
			      &(struct item_write){.changes = &change, .n_changes = 1}, &no_limits,
			      &present, &problem),
		OUTCOME_REFUSED);
	CHECK_OUTCOME(ops->write(scene->conn, key,
			      &(struct item_write){.changes = &change,
				      .n_changes = 1,
				      .conditions = &absent,
				      .n_conditions = 1},
			      &no_limits, &present, &problem),
		OUTCOME_REFUSED);
	CHECK_OUTCOME(
		ops->write(scene->conn, key,
			&(struct item_write){
				.removes = true, .conditions = &present_test, .n_conditions = 1},
			&no_limits, &present, &problem),
		OUTCOME_REFUSED);
	CHECK_OUTCOME(ops->write(scene->conn, key, &(struct item_write){.removes = true},
			      &no_limits, &present, &problem),
		OUTCOME_OK);
	CHECK_OUTCOME(get_item(scene, "k", &present), OUTCOME_ABSENT);
	CHECK(item_is_empty(&present));
}

static void changes_apply(struct scene *scene)
{
	const struct change changes[] = {
		{"state", VALUE_STRING, "done"},
		{"tries", VALUE_NUMBER, "9223372036854775807"},
		{"size", VALUE_NUMBER, "0"},
		{"empty", VALUE_STRING, NULL},
		{"nothing", VALUE_STRING, NULL},
	};
	struct item item = tested_item(), want = item_of("state", "done"), got = {0};
	struct problem problem = {0};

	CHECK(item_set_number(&item, "kept", -1) == 0 && item_set_number(&want, "kept", -1) == 0);
	CHECK(item_set_number(&want, "tries", INT64_MAX) == 0);
	CHECK(item_set_number(&want, "size", 0) == 0);
	CHECK_OUTCOME(put_absent(scene, "k", &item, &got), OUTCOME_OK);
	CHECK_OUTCOME(scene->store->ops->write(scene->conn, key_of(scene, "k"),
			      &(struct item_write){.changes = changes, .n_changes = 5}, &no_limits,
			      &got, &problem),
		OUTCOME_OK);
	CHECK(item_is_empty(&got));
	CHECK_OUTCOME(get_item(scene, "k", &got), OUTCOME_OK);
	CHECK(same_item(&got, &want));
	item_clear(&got);
	item_clear(&item);
	item_clear(&want);
}

static bool always(void *arg)
{
	(*(unsigned *)arg)++;
	return true;
}

static void limits_hold(struct scene *scene)
{
	const struct store_ops *ops = scene->store->ops;
	unsigned asked = 0;
	const struct call_limits over = {.deadline_ns = clock_boot_ns()},
				 stopped = {.abandon = always, .abandon_arg = &asked};
	struct item item = item_of("state", "late"), got = {0};
	struct problem problem = {0};

	CHECK_OUTCOME(ops->write(scene->conn, key_of(scene, "a"),
			      &(struct item_write){.item = &item}, &over, &got, &problem),
		OUTCOME_ABANDONED);
	CHECK(problem.text[0]);
	CHECK_OUTCOME(get_item(scene, "a", &got), OUTCOME_ABSENT);
	CHECK_OUTCOME(ops->write(scene->conn, key_of(scene, "b"),
			      &(struct item_write){.item = &item}, &stopped, &got, &problem),
		OUTCOME_ABANDONED);
	CHECK(asked > 0);
	CHECK_OUTCOME(get_item(scene, "b", &got), OUTCOME_ABSENT);
	item_clear(&item);
}

static enum outcome take(
	struct scene *scene, const char *sk, const struct item_write *taking, struct item *ret)
{
	struct item_write write = *taking;
	struct problem problem = {0};
	write.returns_item = true;
	item_clear(ret);
	return scene->conn->store->ops->write(
		scene->conn, key_of(scene, sk), &write, &no_limits, ret, &problem);
}

/* One step that creates, or changes what meets the conditions; and counts. */
static void take_creates_or_changes(struct scene *scene)
{
	const struct condition free = {"released", CONDITION_EQUALS, VALUE_STRING, "1"};
	const struct change held[] = {{"version", VALUE_STRING, "a"},
		{"data", VALUE_BYTES, "x\0y", 3}, {"released", VALUE_STRING, NULL}};
	const struct change release = {"released", VALUE_STRING, "1"};
	const struct item_write taking = {.changes = held,
		.n_changes = 3,
		.conditions = &free,
		.n_conditions = 1,
		.or_absent = true,
		.increments = "token"};
	struct item item = {0};
	int64_t token = 0;
	struct problem problem = {0};

	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_OK);
	CHECK(item_number(&item, "token", &token) == 0 && token == 1);
	CHECK_STRING(item_string(&item, "version"), "a");
	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_REFUSED);
	CHECK_STRING(item_string(&item, "version"), "a");
	CHECK_OUTCOME(scene->conn->store->ops->write(scene->conn, key_of(scene, "k"),
			      &(struct item_write){.changes = &release, .n_changes = 1}, &no_limits,
			      NULL, &problem),
		OUTCOME_OK);
	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_OK);
	CHECK(item_number(&item, "token", &token) == 0 && token == 2);
	CHECK(!item_find(&item, "released"));
	CHECK(item_find(&item, "data") && item_find(&item, "data")->n == 3);
	item_clear(&item);
}

static void take_never_creates_unless_asked(struct scene *scene)
{
	const struct change change = {"version", VALUE_STRING, "a"};
	const struct condition as_seen = {"version", CONDITION_EQUALS, VALUE_STRING, "a"};
	const struct item_write taking = {
		.changes = &change, .n_changes = 1, .conditions = &as_seen, .n_conditions = 1};
	struct item item = {0};

	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_REFUSED);
	CHECK(item_is_empty(&item));
	CHECK_OUTCOME(get_item(scene, "k", &item), OUTCOME_ABSENT);
	item_clear(&item);
}

static void take_creates_only_once(struct scene *scene)
{
	const struct change first = {"version", VALUE_STRING, "a"},
			    second = {"version", VALUE_STRING, "b"};
	struct item_write taking = {
		.changes = &first, .n_changes = 1, .or_absent = true, .increments = "token"};
	struct item item = {0};
	int64_t token = 0;

	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_OK);
	taking.changes = &second;
	CHECK_OUTCOME(take(scene, "k", &taking, &item), OUTCOME_REFUSED);
	CHECK_STRING(item_string(&item, "version"), "a");
	CHECK(item_number(&item, "token", &token) == 0 && token == 1);
	item_clear(&item);
}

static void take_counts_alone(struct scene *scene)
{
	const struct item_write counting = {.or_absent = true, .increments = "token"};
	struct item item = {0};
	int64_t token = 0;

	for (int64_t i = 1; i <= 3; i++) {
		CHECK_OUTCOME(take(scene, "k", &counting, &item), OUTCOME_OK);
		CHECK(item_number(&item, "token", &token) == 0 && token == i);
	}
	item_clear(&item);
}

const struct store_case condition_cases[] = {
	{"put_absent_once", put_absent_once},
	{"resend_recognised", resend_recognised},
	{"put_replaces_all", put_replaces_all},
	{"every_test", every_test},
	{"missing_item", missing_item},
	{"changes_apply", changes_apply},
	{"limits_hold", limits_hold},
	{"take_creates_or_changes", take_creates_or_changes},
	{"take_never_creates_unless_asked", take_never_creates_unless_asked},
	{"take_creates_only_once", take_creates_only_once},
	{"take_counts_alone", take_counts_alone},
	{0},
};
