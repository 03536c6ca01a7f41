#include "../check.h"
#include "store/item.h"
#include "store/item_json.h"
#include "store/item_pack.h"
#include <errno.h>

static void check_sets_and_finds(void)
{
	struct item item = {0};
	CHECK(item_is_empty(&item));
	CHECK(item_string(&item, "state") == NULL);
	char name[8];
	for (int i = 0; i < 37; i++) {
		snprintf(name, sizeof name, "n%d", i);
		CHECK_INT(item_set_number(&item, name, i - 5), 0);
	}
	CHECK_INT(item_set_string(&item, "state", "claimed"), 0);
	CHECK_INT(item_set_string(&item, "state", "done"), 0);
	CHECK_INT(item.count, 38);
	CHECK_STRING(item_string(&item, "state"), "done");
	int64_t number;
	CHECK_INT(item_number(&item, "n0", &number), 0);
	CHECK_INT(number, -5);
	CHECK_INT(item_number(&item, "state", &number), -EINVAL);
	CHECK_INT(item_number(&item, "none", &number), -ENOENT);
	CHECK(item_string(&item, "n0") == NULL);
	item_unset(&item, "n0");
	item_unset(&item, "n0");
	CHECK_INT(item.count, 37);
	CHECK(item_find(&item, "n0") == NULL);
	CHECK(item_find(&item, "n1") != NULL);
	item_clear(&item);
	item_clear(&item);
	CHECK(item_is_empty(&item));
}

static void check_numbers(void)
{
	static const struct {
		const char *text;
		int error;
		int64_t value;
	} rows[] = {
		{"0", 0, 0},
		{"-1", 0, -1},
		{"9223372036854775807", 0, INT64_MAX},
		{"-9223372036854775808", 0, INT64_MIN},
		{"9223372036854775808", -EINVAL, 0},
		{"1.5", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"", -EINVAL, 0},
		{"-", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct item item = {0};
		int64_t got = 0;
		item_set(&item, "n", VALUE_NUMBER, rows[i].text, strlen(rows[i].text));
		if (!CHECK_INT(item_number(&item, "n", &got), rows[i].error) ||
			!CHECK_INT(got, rows[i].value))
			fprintf(stderr, "\tof %s\n", rows[i].text);
		item_clear(&item);
	}
}

static void check_conditions(void)
{
	struct item item = {0}, none = {0};
	item_set_string(&item, "state", "claimed");
	item_set_number(&item, "size", 7);
	const struct {
		struct condition condition;
		bool holds, holds_of_none;
	} rows[] = {
		{{"state", CONDITION_PRESENT}, true, false},
		{{"state", CONDITION_ABSENT}, false, true},
		{{"other", CONDITION_PRESENT}, false, false},
		{{"other", CONDITION_ABSENT}, true, true},
		{{"state", CONDITION_EQUALS, VALUE_STRING, "claimed"}, true, false},
		{{"state", CONDITION_EQUALS, VALUE_STRING, "claime"}, false, false},
		{{"state", CONDITION_EQUALS, VALUE_NUMBER, "claimed"}, false, false},
		{{"size", CONDITION_EQUALS, VALUE_NUMBER, "7"}, true, false},
		{{"size", CONDITION_EQUALS, VALUE_NUMBER, "07"}, true, false},
		{{"size", CONDITION_EQUALS, VALUE_NUMBER, "8"}, false, false},
		{{"size", CONDITION_EQUALS, VALUE_STRING, "7"}, false, false},
		{{"size", CONDITION_AT_MOST, VALUE_NUMBER, "7"}, true, false},
		{{"size", CONDITION_AT_MOST, VALUE_NUMBER, "10"}, true, false},
		{{"size", CONDITION_AT_MOST, VALUE_NUMBER, "6"}, false, false},
		{{"state", CONDITION_AT_MOST, VALUE_NUMBER, "7"}, false, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		CHECK_INT(item_satisfies(&item, &rows[i].condition, 1), rows[i].holds);
		CHECK_INT(item_satisfies(&none, &rows[i].condition, 1), rows[i].holds_of_none);
	}
	const struct condition both[] = {rows[0].condition, rows[1].condition};
	CHECK(!item_satisfies(&item, both, 2));
	CHECK(item_satisfies(&none, NULL, 0));
	item_clear(&item);
}

static const struct condition v_is_1 = {"v", CONDITION_EQUALS, VALUE_STRING, "1"},
			      no_pk = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL},
			      no_w = {"w", CONDITION_ABSENT, VALUE_STRING, NULL};
static const struct change set_v = {"v", VALUE_STRING, "2", 0};
static const struct item fresh;

/* Whether a write may be made over an item whose v is 1, over one whose v is 9, and where there is
 * none; and whether it is a put of an item that must not be there. */
static const struct {
	struct item_write write;
	bool over_1, over_9, over_none, puts_if_absent;
} writes[] = {
	/* puts */
	{{.item = &fresh}, true, true, true, false},
	{{.item = &fresh, .conditions = &v_is_1, .n_conditions = 1}, true, false, false, false},
	{{.item = &fresh, .conditions = &no_pk, .n_conditions = 1}, false, false, true, true},
	{{.item = &fresh, .conditions = &no_w, .n_conditions = 1}, true, true, true, false},
	/* removals */
	{{.removes = true}, true, true, true, false},
	{{.removes = true, .conditions = &v_is_1, .n_conditions = 1}, true, false, false, false},
	/* An update is one of an item that is there, unless it may make it. */
	{{.changes = &set_v, .n_changes = 1}, true, true, false, false},
	{{.changes = &set_v, .n_changes = 1, .conditions = &v_is_1, .n_conditions = 1}, true, false,
		false, false},
	{{.changes = &set_v, .n_changes = 1, .conditions = &no_w, .n_conditions = 1}, true, true,
		false, false},
	{{.changes = &set_v, .n_changes = 1, .or_absent = true}, false, false, true, false},
	{{.changes = &set_v,
		 .n_changes = 1,
		 .conditions = &v_is_1,
		 .n_conditions = 1,
		 .or_absent = true},
		true, false, true, false},
	{{.increments = "n", .or_absent = true}, true, true, true, false},
	{{.increments = "n"}, true, true, false, false},
	{{.changes = &set_v, .n_changes = 1, .increments = "n", .or_absent = true}, false, false,
		true, false},
};

static void check_writes(void)
{
	struct item one = {0}, nine = {0};
	item_set_string(&one, "pk", "p");
	item_set_string(&one, "v", "1");
	item_set_string(&nine, "pk", "p");
	item_set_string(&nine, "v", "9");
	for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
		const struct item_write *write = &writes[i].write;
		if (!CHECK(write_conditions_met(write, &one, true) == writes[i].over_1) ||
			!CHECK(write_conditions_met(write, &nine, true) == writes[i].over_9) ||
			!CHECK(write_conditions_met(write, &fresh, false) == writes[i].over_none) ||
			!CHECK(write_puts_if_absent(write, "pk") == writes[i].puts_if_absent))
			fprintf(stderr, "\twrite %zu\n", i);
	}
	item_clear(&one);
	item_clear(&nine);
}

/* Values of other lengths, and of other signs, than those above. */
static void check_odd_values(void)
{
	static const struct {
		enum value_type type;
		const char *value;
		enum condition_test test;
		enum value_type asked;
		const char *than;
		bool is_met;
	} cases[] = {
		{VALUE_STRING, "abc", CONDITION_EQUALS, VALUE_STRING, "abcd", false},
		{VALUE_STRING, "", CONDITION_EQUALS, VALUE_STRING, "a", false},
		{VALUE_NUMBER, "-8", CONDITION_AT_MOST, VALUE_NUMBER, "7", true},
		{VALUE_NUMBER, "10", CONDITION_AT_MOST, VALUE_NUMBER, "9", false},
		{VALUE_NUMBER, "99999999999999999999", CONDITION_EQUALS, VALUE_NUMBER,
			"99999999999999999999", true},
		{VALUE_NUMBER, "99999999999999999999", CONDITION_AT_MOST, VALUE_NUMBER,
			"99999999999999999999", false},
		{VALUE_STRING, "", CONDITION_PRESENT, VALUE_STRING, NULL, true},
		{VALUE_STRING, "", CONDITION_ABSENT, VALUE_STRING, NULL, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct item item = {0};
		const struct condition condition = {
			"a", cases[i].test, cases[i].asked, cases[i].than};
		item_set(&item, "a", cases[i].type, cases[i].value, strlen(cases[i].value));
		if (!CHECK(item_satisfies(&item, &condition, 1) == cases[i].is_met))
			fprintf(stderr, "\tcase %zu\n", i);
		item_clear(&item);
		CHECK(item_satisfies(&fresh, &condition, 1) == (cases[i].test == CONDITION_ABSENT));
	}
}

static void check_changes(void)
{
	struct item item = {0};
	item_set_string(&item, "upload", "u");
	item_set_string(&item, "state", "claimed");
	const struct change changes[] = {
		{"upload"}, {"state", VALUE_STRING, "done"}, {"size", VALUE_NUMBER, "5"}, {"none"}};
	CHECK_INT(item_apply(&item, changes, 4), 0);
	CHECK_INT(item.count, 2);
	CHECK_STRING(item_string(&item, "state"), "done");
	int64_t size;
	CHECK_INT(item_number(&item, "size", &size), 0);
	item_clear(&item);
}

/* Every type comes back as it went, those we do not know word for word. */
static void check_json_round_trip(void)
{
	static const char json[] =
		"{\"s\":{\"S\":\"a\\\"\\\\\\u0000\\u001f/\xc3\xa4\"},\"n\":{\"N\":\"12\"},"
		"\"b\":{\"B\":\"AAEC\"},\"l\":{\"L\":[{\"S\":\"x\"},{\"BOOL\":true}]},\"e\":{\"S\":\"\"}}";
	json_t *tree = json_loads(json, JSON_ALLOW_NUL, NULL);
	struct item item = {0}, again = {0};
	CHECK_INT(item_from_json(tree, &item), 0);
	CHECK_INT(item.count, 5);
	CHECK_INT(item_find(&item, "s")->n, 8);
	CHECK_INT(item_find(&item, "b")->n, 3);
	CHECK_INT(memcmp(item_find(&item, "b")->value, "\0\1\2", 4), 0);
	CHECK_INT(item_find(&item, "l")->type, VALUE_OTHER);
	CHECK_STRING(item_string(&item, "e"), "");
	struct text text = TEXT(1024);
	text_add(&text, "{");
	for (size_t i = 0; i < item.count; i++)
		item_add_attribute(&text, &item.attributes[i]);
	text_add(&text, "}");
	json_t *reread = json_loads(text_string(&text), JSON_ALLOW_NUL, NULL);
	CHECK(json_equal(tree, reread));
	CHECK_INT(item_from_json(reread, &again), 0);
	json_decref(tree);
	json_decref(reread);
	text_clear(&text);
	item_clear(&item);
	item_clear(&again);
}

static void check_json_refused(void)
{
	static const char *const rows[] = {"[]", "{\"a\":1}", "{\"a\":{}}", "{\"a\":{\"S\":1}}",
		"{\"a\":{\"N\":1}}", "{\"a\":{\"B\":\"!\"}}", "{\"a\":{\"S\":\"x\",\"N\":\"1\"}}",
		"{\"ok\":{\"S\":\"x\"},\"a\":null}"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *tree = json_loads(rows[i], 0, NULL);
		struct item item = {0};
		CHECK(tree != NULL);
		if (!CHECK_INT(item_from_json(tree, &item), -EBADMSG) ||
			!CHECK(item_is_empty(&item)))
			fprintf(stderr, "\tof %s\n", rows[i]);
		json_decref(tree);
	}
}

/* The item that stands before the rest: the same as that of the tree, and its length. */
static void check_read(const char *json, const char *rest, size_t want_attributes)
{
	struct item item = {0}, of_tree = {0};
	struct text text = TEXT(4096);
	size_t bytes = 0;
	json_t *tree = json_loads(json, 0, NULL);
	text_addf(&text, "%s%s", json, rest);
	bool good =
		CHECK_INT(item_read(text.data, text.len, NULL, &item, &bytes), 0) &&
		CHECK_INT(bytes, strlen(json)) && CHECK_INT(item_from_json(tree, &of_tree), 0) &&
		CHECK_INT(item.count, want_attributes) && CHECK_INT(of_tree.count, want_attributes);
	for (size_t i = 0; good && i < item.count; i++) {
		const struct attribute *a = &item.attributes[i], *b = item_find(&of_tree, a->name);
		good = CHECK(b && a->type == b->type && a->n == b->n) &&
		       CHECK_INT(memcmp(a->value, b->value, a->n + 1), 0);
	}
	if (!good)
		fprintf(stderr, "\tof %s\n", json);
	json_decref(tree);
	text_clear(&text);
	item_clear(&item);
	item_clear(&of_tree);
}

static void check_reads_first(void)
{
	struct text many = TEXT(4096);
	check_read("{\"a\":{\"S\":\"x\"},\"b\":{\"N\":\"1\"}}", ",{\"c\"", 2);
	check_read("{\"\":{\"S\":\"\"}}", "]", 1);
	check_read("{}", "]", 0);
	check_read("{\"\xc3\xa4\":{\"S\":\"\xe2\x82\xac\"}}", "", 1);
	check_read("{\"a\":{\"S\":\"\\\"\\u00e4}\"}}", ",", 1);
	check_read("{ \"a\" : {\"S\": \"x\"} }", "\n]", 1);
	check_read("{\"a\":{\"B\":\"AAEC\"},\"l\":{\"L\":[{\"S\":\"x\"}]}}", "]", 2);
	check_read("{\"a\":{\"S\":\"x\"},\"a\":{\"S\":\"y\"}}", ",", 1); /* the last one counts */
	for (int n = 30; n < 40; n++) {
		text_reset(&many);
		for (int i = 0; i < n; i++)
			text_addf(&many, "%s\"a%d\":{\"N\":\"%d\"}", i ? "," : "{", i, i);
		text_add(&many, "}");
		check_read(text_string(&many), ",{", (size_t)n);
	}
	text_clear(&many);
}

static void check_first_refused(void)
{
	static const char *const rows[] = {"", "]", "{", "{\"a\"", "{\"a\":{\"S\":\"x",
		"{\"a\":{\"S\":\"x\"}", "{\"a\":{\"S\":\"x\"},}", "{\"a\":{\"S\":\"\xc3\"}}",
		"{\"a\":{\"S\":\"\n\"}}", "{\"a\":{\"S\":1}}", "{\"a\":{\"S\":\"x\"};", "[]"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct item item = {0};
		size_t bytes = 77;
		if (!CHECK_INT(
			    item_read(rows[i], strlen(rows[i]), NULL, &item, &bytes), -EBADMSG) ||
			!CHECK(item_is_empty(&item)) || !CHECK_INT(bytes, 77))
			fprintf(stderr, "\tof %s\n", rows[i]);
	}
}

/* For every type and shape: a packed item is unpacked unchanged, and the number of bytes of its
 * value. */
static void check_pack_round_trip(void)
{
	static const struct {
		const char *name;
		enum value_type type;
		const char *value;
		size_t n, packed; /* bytes of the value, and of the packed attribute */
	} rows[] = {
		{"state", VALUE_STRING, "done", 4, 6},
		{"session", VALUE_STRING, "0123456789abcdef0123456789abcdef", 32, 19},
		{"etag", VALUE_STRING, "0123456789ABCDEF", 16, 19},
		{"sum", VALUE_STRING, "", 0, 2},
		{"error", VALUE_STRING, "\xc3\xa4\0b", 4, 6},
		{"odd", VALUE_STRING, "012345678", 9, 15},
		{"size", VALUE_NUMBER, "0", 1, 2},
		{"at", VALUE_NUMBER, "1795975651", 10, 6},
		{"mtime", VALUE_NUMBER, "9223372036854775807", 19, 10},
		{"newer_mtime", VALUE_NUMBER, "-9223372036854775808", 20, 10},
		{"tries", VALUE_NUMBER, "-1", 2, 3},
		{"n1", VALUE_NUMBER, "07", 2, 7},
		{"n2", VALUE_NUMBER, "9223372036854775808", 19, 25},
		{"n3", VALUE_NUMBER, "1.5", 3, 8},
		{"n4", VALUE_NUMBER, "-0", 2, 7},
		{"b", VALUE_BYTES, "\0\xff", 2, 6},
		{"", VALUE_OTHER, "{\"L\":[]}", 8, 11},
	};
	struct item item = {0}, again = {0};
	struct text packed = TEXT(4096);
	size_t bytes = 2;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		item_set(&item, rows[i].name, rows[i].type, rows[i].value, rows[i].n);
		bytes += rows[i].packed;
	}
	item_set_string(&item, "pk", "a stale key");
	CHECK_INT(item_pack(&item, &packed), 0);
	CHECK_INT(packed.len, bytes);
	CHECK_INT(item_unpack((struct item_key){"p", "s"}, packed.data, packed.len, &again), 0);
	CHECK_INT(again.count, sizeof rows / sizeof *rows + 2);
	CHECK_STRING(item_string(&again, "pk"), "p");
	CHECK_STRING(item_string(&again, "sk"), "s");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct attribute *a = item_find(&again, rows[i].name);
		if (!CHECK(a && a->type == rows[i].type) || !CHECK_INT(a->n, rows[i].n) ||
			!CHECK_INT(memcmp(a->value, rows[i].value, a->n), 0) ||
			!CHECK_INT(a->value[a->n], 0))
			fprintf(stderr, "\tof %s\n", rows[i].name);
	}
	item_clear(&item);
	item_clear(&again);
	text_clear(&packed);
}

/* A row that was written before: no name has changed its place, and no shape its meaning. */
static void check_pack_is_stable(void)
{
	static const char *const names[] = {"state", "session", "claim", "source", "suffix",
		"tries", "at", "expires", "size", "mtime", "sum", "etag", "mtime_shared", "md5",
		"parts", "parts_sum", "content", "object_size", "object_sum", "version_id",
		"newer_size", "newer_mtime", "error", "claim_suffix"};
	const size_t n = sizeof names / sizeof *names;
	char row[256] = {1, (char)(n + 6)}, *at = row + 2, wanted[8];
	struct item item = {0};
	for (size_t i = 0; i < n; i++) /* its number, two bytes of a string, and these */
		at += sprintf(at, "%c\020%02zu", (int)i + 1, i);
	static const char others[] = "\0s\0\010S\0n\0\0111\0b\0\022\0\1\0o\0\023{}"
				     "\0h\0\044\xab\xcd\xef\x01\0i\0\025\x2b\2";
	memcpy(at, others, sizeof others - 1);
	const size_t bytes = (size_t)(at - row) + sizeof others - 1;
	CHECK_INT(item_unpack((struct item_key){"p", "s"}, row, bytes, &item), 0);
	for (size_t i = 0; i < n; i++) {
		snprintf(wanted, sizeof wanted, "%02zu", i);
		CHECK_STRING(item_string(&item, names[i]), wanted);
	}
	CHECK_STRING(item_string(&item, "s"), "S");
	CHECK_STRING(item_string(&item, "h"), "abcdef01");
	int64_t number = 0;
	CHECK_INT(item_number(&item, "n", &number), 0);
	CHECK_INT(number, 1);
	CHECK_INT(item_number(&item, "i", &number), 0);
	CHECK_INT(number, -278);
	CHECK_INT(item_find(&item, "b")->type, VALUE_BYTES);
	CHECK_INT(item_find(&item, "b")->n, 2);
	CHECK_INT(item_find(&item, "o")->type, VALUE_OTHER);
	CHECK_STRING(item_find(&item, "o")->value, "{}");
	item_clear(&item);
}

/* A name was spelled before it got a number. */
static void check_unpacks_a_name_that_got_a_number(void)
{
	static const char row[] = "\1\2\0state\0\040done\2\010x";
	struct item item = {0};
	CHECK_INT(item_unpack((struct item_key){"p", "s"}, row, sizeof row - 1, &item), 0);
	CHECK_STRING(item_string(&item, "state"), "done");
	CHECK_STRING(item_string(&item, "session"), "x");
	item_clear(&item);
}

static void check_damaged_pack_is_refused(void)
{
	static const struct {
		const char *bytes;
		size_t n;
	} rows[] = {
		{"", 0}, {"\1", 1},                /* no number of attributes */
		{"\2\0", 2},                       /* an unknown form */
		{"\1\0\1", 3},                     /* more than it says */
		{"\1\2\1\010x", 5},                /* less */
		{"\1\1\1\020x", 5},                /* a value that is cut */
		{"\1\1\377\010x", 5},              /* a name with no place */
		{"\1\1\0ab", 5},                   /* a name without an end */
		{"\1\1\1\016x", 5},                /* an unknown shape */
		{"\1\1\1\010\xff", 5},             /* not UTF-8 */
		{"\1\2\1\010x\1\010y", 8},         /* a name twice */
		{"\1\2\0a\0\010x\0a\0\010y", 12},  /* likewise, spelled */
		{"\1\2\1\010x\0state\0\010y", 14}, /* likewise, once spelled */
		{"\1\2\0state\0\010y\1\010x", 14}, /* likewise, and spelled first */
		{"\1\1\0pk\0\010x", 8},            /* the key */
		{"\1\1\1\115123456789", 13},       /* an integer of nine bytes */
		{"\1\1\1\200\200\200\200\200\200\200\200\200\1x", 14}, /* a huge length */
		{"\1\200\200\200\200\200\200\200\200\200\1", 11},      /* a huge number */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct item item = {0};
		char *exact =
			malloc(rows[i].n + !rows[i].n); /* so that reading further is noticed */
		memcpy(exact, rows[i].bytes, rows[i].n);
		if (!CHECK_INT(item_unpack((struct item_key){"p", "s"}, exact, rows[i].n, &item),
			    -EBADMSG) ||
			!CHECK(item_is_empty(&item)))
			fprintf(stderr, "\tof row %zu\n", i);
		free(exact);
	}
}

/* Attributes that were read at once are replaced and removed like others. */
static void check_changes_what_was_read(void)
{
	static const char text[] = "{\"a\":{\"S\":\"x\"},\"b\":{\"N\":\"1\"}}";
	struct item item = {0};
	size_t bytes;
	CHECK_INT(item_read(text, strlen(text), NULL, &item, &bytes), 0);
	for (int i = 0; i < 40; i++) {
		char name[8];
		snprintf(name, sizeof name, "n%d", i);
		CHECK_INT(item_set_number(&item, name, i), 0);
	}
	CHECK_INT(item_set_string(&item, "a", "longer than it was"), 0);
	item_unset(&item, "b");
	CHECK_STRING(item_string(&item, "a"), "longer than it was");
	CHECK(item_find(&item, "b") == NULL);
	CHECK_INT(item.count, 41);
	item_clear(&item);
}

static bool yes(void *arg)
{
	return true;
}

/* Items that would take long to read, or much memory: at the limit, and one beyond. */
static void check_limits(void)
{
	for (int more = 0; more < 2; more++) {
		struct text wide = TEXT(4 << 20), many = TEXT(4 << 20);
		struct item item = {0};
		text_add_char(&wide, '{');
		for (int i = 0; i < ITEM_ATTRIBUTES_MAX + more; i++)
			text_addf(&wide, "%s\"a%d\":{\"S\":\"\"}", i ? "," : "", i);
		text_add_char(&wide, '}');
		json_t *json = json_read(&wide, NULL);
		CHECK(json != NULL);
		CHECK_INT(item_from_json(json, &item), more ? -EBADMSG : 0);
		json_decref(json);
		CHECK(json_read(&wide, &(struct call_limits){.abandon = yes}) == NULL);
		size_t bytes;
		item_clear(&item);
		CHECK_INT(item_read(wide.data, wide.len, NULL, &item, &bytes), more ? -EBADMSG : 0);
		item_clear(&item);
		text_add(&many, "[0");
		for (int i = 1; i < JSON_VALUES_MAX + more; i++)
			text_add(&many, ",0");
		text_add_char(&many, ']');
		json = json_read(&many, NULL);
		CHECK((json == NULL) == more);
		json_decref(json);
		text_clear(&wide);
		text_clear(&many);
	}
}

int main(void)
{
	check_sets_and_finds();
	check_numbers();
	check_conditions();
	check_writes();
	check_odd_values();
	check_changes();
	check_json_round_trip();
	check_json_refused();
	check_reads_first();
	check_first_refused();
	check_pack_round_trip();
	check_pack_is_stable();
	check_unpacks_a_name_that_got_a_number();
	check_damaged_pack_is_refused();
	check_changes_what_was_read();
	check_limits();
	return check_result();
}
