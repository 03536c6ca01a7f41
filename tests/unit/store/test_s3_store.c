/* Locks as objects, by replies that no server gives on demand: another writer between the read and
 * the put, a lost reply, an object that is none of ours, a server that honours no condition. How
 * real servers answer is shown by tests/system/test_stores.py. */
#include "../script_aws.h"
#include "aws/retry.h"
#include "base/clock.h"
#include "store/s3_store.h"

#define XML(code) "<Error><Code>" code "</Code></Error>"
#define ROW(version, etag)                                                                         \
	SCRIPT_REPLY("200", "ETag: \"" etag "\"\r\n", "{\"v\":{\"S\":\"" version "\"}}")
#define EMPTY(etag) SCRIPT_REPLY("200", "ETag: \"" etag "\"\r\nContent-Length: 0\r\n", "")
#define PUT         SCRIPT_REPLY("200", "ETag: \"new\"\r\n", "")
#define ABSENT      SCRIPT_REPLY("404", "", XML("NoSuchKey"))
#define CHANGED     SCRIPT_REPLY("412", "", XML("PreconditionFailed"))
#define AT_ONCE     SCRIPT_REPLY("409", "", XML("ConditionalRequestConflict"))
#define THROTTLED   SCRIPT_REPLY("503", "", XML("SlowDown"))
#define FAILED      SCRIPT_REPLY("500", "", XML("InternalError"))
#define UNKNOWN     SCRIPT_REPLY("501", "", XML("NotImplemented"))
#define DENIED      SCRIPT_REPLY("403", "", XML("AccessDenied"))
#define DELETED     SCRIPT_REPLY("204", "", "")
#define LOST        "" /* the connection ends without a reply */

struct fixture {
	struct script_aws aws;
	struct store *store;
	struct store_conn *conn;
};

/* Begins with the replies of a list that NULL ends. */
static bool begin_in(
	struct fixture *f, const char *place, const char *const *replies, bool is_proven)
{
	struct script_step steps[SCRIPT_STEPS_MAX];
	size_t n = 0;
	for (; replies[n]; n++)
		steps[n] = (struct script_step){.reply = replies[n], .close = true};
	*f = (struct fixture){0};
	if (!script_aws_start(&f->aws, steps, n) ||
		!CHECK_INT(store_s3_open(&f->aws.settings, f->aws.http, place, &f->store,
				   &f->aws.problem),
			0) ||
		!CHECK_INT(store_conn_new(f->store, &f->conn), 0))
		return false;
	((struct s3_store *)f->store)->is_proven = is_proven;
	return true;
}

static bool begin(struct fixture *f, const char *const *replies, bool is_proven)
{
	return begin_in(f, "s3://b/of/locks", replies, is_proven);
}

static void end(struct fixture *f)
{
	store_conn_free(f->conn);
	store_close(f->store);
	script_aws_end(&f->aws);
}

/* The requests, in short: G is a read, P a put and D a removal of an object. The condition of a put
 * follows: * is If-None-Match, and =ETAG If-Match. "-" is a put of an empty object. */
static void sent(struct script_aws *aws, struct text *ret)
{
	for (size_t i = 0; i < aws->server.n_requests; i++) {
		const struct script_request *request = &aws->server.requests[i];
		text_addf(ret, "%s%c", i ? " " : "", *request->head);
		if (*request->head == 'P' && !request->body_bytes)
			text_add_char(ret, '-');
		if (script_sent(request, "if-none-match"))
			text_add_char(ret, '*');
		if (script_sent(request, "if-match"))
			text_addf(ret, "=%s", script_sent(request, "if-match"));
	}
	for (char *c = ret->data; c && *c; c++)
		*c = *c == '"' ? '\'' : *c;
}

static bool check_sent(struct fixture *f, const char *want)
{
	struct text text = TEXT(2000);
	script_stop(&f->aws.server);
	sent(&f->aws, &text);
	const bool ok = CHECK_STRING(text_string(&text), want);
	text_clear(&text);
	return ok;
}

static const struct item_key key = {"lock", "a/b"};
static const struct condition is_1 = {"v", CONDITION_EQUALS, VALUE_STRING, "1"};
static const struct condition is_absent = {"pk", CONDITION_ABSENT, VALUE_STRING, NULL};
static const struct change to_2 = {"v", VALUE_STRING, "2", 0};

static const struct item_write take_over = {.changes = &to_2,
				       .n_changes = 1,
				       .conditions = &is_1,
				       .n_conditions = 1},
			       create = {.changes = &to_2, .n_changes = 1, .or_absent = true},
			       create_or_take = {.changes = &to_2,
				       .n_changes = 1,
				       .conditions = &is_1,
				       .n_conditions = 1,
				       .or_absent = true},
			       remove_1 = {.removes = true, .conditions = &is_1, .n_conditions = 1},
			       remove_any = {.removes = true};

static const struct row {
	const struct item_write *write;
	const char *replies[6];
	enum outcome outcome;
	const char *sent;
	const char *present; /* the version of the item that is handed back; NULL: none */
} rows[] = {
	/* A condition is judged by the row that was read, and holds until the put. */
	{&take_over, {ROW("1", "e1"), PUT}, OUTCOME_OK, "G P='e1'"},
	{&take_over, {ROW("9", "e1")}, OUTCOME_REFUSED, "G", "9"},
	{&take_over, {ABSENT}, OUTCOME_REFUSED, "G"},
	{&create, {ABSENT, PUT}, OUTCOME_OK, "G P*"},
	{&create, {ROW("1", "e1")}, OUTCOME_REFUSED, "G", "1"},
	{&create_or_take, {ABSENT, PUT}, OUTCOME_OK, "G P*"},
	{&create_or_take, {ROW("1", "e1"), PUT}, OUTCOME_OK, "G P='e1'"},
	{&create_or_take, {ROW("9", "e1")}, OUTCOME_REFUSED, "G", "9"},
	/* An empty object is an item that was removed: nobody may write it meanwhile, either. */
	{&create, {EMPTY("e0"), PUT}, OUTCOME_OK, "G P='e0'"},
	{&take_over, {EMPTY("e0")}, OUTCOME_REFUSED, "G"},
	{&remove_1, {ROW("1", "e1"), PUT}, OUTCOME_OK, "G P-='e1'"},
	{&remove_1, {ROW("9", "e1")}, OUTCOME_REFUSED, "G", "9"},
	{&remove_1, {EMPTY("e0")}, OUTCOME_REFUSED, "G"},
	{&remove_any, {ROW("9", "e1"), PUT}, OUTCOME_OK, "G P-"},
	{&remove_any, {ABSENT}, OUTCOME_OK, "G"},
	/* Another writer was faster: only what is there now decides. */
	{&take_over, {ROW("1", "e1"), CHANGED, ROW("1", "e2"), PUT}, OUTCOME_OK,
		"G P='e1' G P='e2'"},
	{&take_over, {ROW("1", "e1"), CHANGED, ROW("9", "e2")}, OUTCOME_REFUSED, "G P='e1' G", "9"},
	{&take_over, {ROW("1", "e1"), ABSENT, ABSENT}, OUTCOME_REFUSED, "G P='e1' G"},
	{&take_over, {ROW("1", "e1"), AT_ONCE, ROW("1", "e1"), PUT}, OUTCOME_OK,
		"G P='e1' G P='e1'"},
	{&create, {ABSENT, CHANGED, ROW("9", "e1")}, OUTCOME_REFUSED, "G P* G", "9"},
	{&create, {ABSENT, AT_ONCE, ABSENT, PUT}, OUTCOME_OK, "G P* G P*"},
	/* It is not known whether the put was applied. */
	{&take_over, {ROW("1", "e1"), LOST}, OUTCOME_LOST, "G P='e1'"},
	{&take_over, {ROW("1", "e1"), FAILED}, OUTCOME_TRANSIENT, "G P='e1'"},
	{&take_over, {ROW("1", "e1"), SCRIPT_REPLY("200", "", "<html>")}, OUTCOME_LOST, "G P='e1'"},
	/* A read that is throttled has written nothing, unless an earlier put was refused: that may
	 * be the second arrival of one that was applied. */
	{&take_over, {THROTTLED}, OUTCOME_THROTTLED, "G"},
	{&take_over, {ROW("1", "e1"), CHANGED, THROTTLED}, OUTCOME_TRANSIENT, "G P='e1' G"},
	{&take_over, {ROW("1", "e1"), UNKNOWN}, OUTCOME_SETUP, "G P='e1'"},
	{&take_over, {DENIED}, OUTCOME_DENIED, "G"},
	/* Objects that are no rows of locks are left as they are. */
	{&remove_any, {SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "hello")}, OUTCOME_SETUP, "G"},
	{&create, {SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "{\"v\":1}")}, OUTCOME_SETUP, "G"},
	{&create, {SCRIPT_REPLY("200", "", "")}, OUTCOME_LOST, "G"},
	/* It may be the beginning of an item that another client holds. */
	{&take_over, {SCRIPT_REPLY("200", "ETag: \"e\"\r\n", "")}, OUTCOME_LOST, "G"},
};

static void test_writes(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct fixture f;
		struct item present = {0};
		if (!begin(&f, row->replies, true))
			return;
		bool ok = CHECK_STRING(outcome_name(f.store->ops->write(f.conn, key, row->write,
					       &no_limits, &present, &f.aws.problem)),
			outcome_name(row->outcome));
		ok = check_sent(&f, row->sent) && ok;
		ok = CHECK_STRING(item_string(&present, "v"), row->present) && ok;
		if (!ok)
			fprintf(stderr, "\trow %zu: %s\n", i, f.aws.problem.text);
		item_clear(&present);
		end(&f);
	}
}

/* A put without conditions, as of a whole item, replaces whatever is there. */
static void test_puts(void)
{
	static const char *const replies[] = {ROW("9", "e1"), PUT, ABSENT, PUT, NULL};
	struct fixture f;
	struct item item = {0};
	if (!begin(&f, replies, true))
		return;
	item_set_string(&item, "pk", "another");
	item_set_string(&item, "v", "7");
	const struct item_write any = {.item = &item},
				first = {
					.item = &item, .conditions = &is_absent, .n_conditions = 1};
	CHECK_INT(f.store->ops->write(f.conn, key, &any, NULL, NULL, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(f.store->ops->write(f.conn, key, &first, NULL, NULL, &f.aws.problem), OUTCOME_OK);
	check_sent(&f, "G P G P*");
	CHECK(script_is_to(&f.aws.server.requests[0], "GET /b/of/locks/lock/a%252Fb"));
	CHECK(script_is_to(&f.aws.server.requests[1], "PUT /b/of/locks/lock/a%252Fb"));
	CHECK_STRING(f.aws.server.requests[1].body, "{\"v\":{\"S\":\"7\"}}");
	CHECK_STRING(script_sent(&f.aws.server.requests[1], "content-type"), "application/json");
	item_clear(&item);
	end(&f);
}

/* The writer gets the new row, with its keys and the number that was counted. */
static void test_counts_and_shows(void)
{
	static const char *const replies[] = {
		SCRIPT_REPLY("200", "ETag: \"e1\"\r\n",
			"{\"v\":{\"S\":\"1\"},\"n\":{\"N\":\"41\"},\"kept\":{\"S\":\"k\"}}"),
		PUT, ABSENT, PUT, ROW("1", "e1"), NULL};
	struct fixture f;
	struct item item = {0};
	int64_t n = 0;
	struct item_write write = take_over;
	if (!begin(&f, replies, true))
		return;
	write.increments = "n";
	write.returns_item = true;
	CHECK_INT(
		f.store->ops->write(f.conn, key, &write, NULL, &item, &f.aws.problem), OUTCOME_OK);
	CHECK(!item_number(&item, "n", &n) && n == 42);
	CHECK_STRING(item_string(&item, "v"), "2");
	CHECK_STRING(item_string(&item, "kept"), "k");
	CHECK_STRING(item_string(&item, "sk"), "a/b");
	item_clear(&item);
	const struct item_write counter = {
		.or_absent = true, .increments = "n", .returns_item = true};
	CHECK_INT(f.store->ops->write(f.conn, key, &counter, NULL, &item, &f.aws.problem),
		OUTCOME_OK);
	CHECK(!item_number(&item, "n", &n) && n == 1);
	item_clear(&item);
	write.increments = "v";
	CHECK_INT(f.store->ops->write(f.conn, key, &write, NULL, &item, &f.aws.problem),
		OUTCOME_INVALID);
	check_sent(&f, "G P='e1' G P* G");
	item_clear(&item);
	end(&f);
}

/* The caller may not want the row that has refused its write. */
static void test_refused_without_an_item(void)
{
	static const char *const replies[] = {ROW("9", "e1"), DENIED, NULL};
	struct fixture f;
	if (!begin(&f, replies, true))
		return;
	CHECK_INT(f.store->ops->write(f.conn, key, &take_over, NULL, NULL, &f.aws.problem),
		OUTCOME_REFUSED);
	CHECK_INT(f.store->ops->write(f.conn, key, &take_over, NULL, NULL, &f.aws.problem),
		OUTCOME_DENIED);
	CHECK(strstr(f.aws.problem.text, "allow s3:GetObject and s3:ListBucket") != NULL);
	check_sent(&f, "G G");
	end(&f);
}

static const struct {
	const char *place, *target;
} places[] = {
	{"s3://b", "GET /b/lock/%252E."},
	{"s3://b/", "GET /b/lock/%252E."},
	{"s3://b//of/", "GET /b/of/lock/%252E."},
	{"s3://b/of/locks", "GET /b/of/locks/lock/%252E."},
};

/* A key of dots is never the path of another folder. */
static void test_names(void)
{
	static const struct item_key dots = {"lock", ".."};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		static const char *const replies[] = {ABSENT, NULL};
		struct fixture f;
		struct item item = {0};
		if (!begin_in(&f, places[i].place, replies, true))
			return;
		CHECK(f.store->service != NULL);
		CHECK_INT(f.store->ops->get(
				  f.conn, dots, READ_CONSISTENT, NULL, &item, &f.aws.problem),
			OUTCOME_ABSENT);
		script_stop(&f.aws.server);
		CHECK(script_is_to(&f.aws.server.requests[0], places[i].target));
		end(&f);
	}
}

static bool is_asked_twice(void *arg)
{
	return ((struct fixture *)arg)->aws.server.n_requests >= 2;
}

/* The caller's limits end the rounds of a row that others write all the time, or the put before
 * them. In both cases it may have been applied. */
static void test_given_up(void)
{
	static const char *const replies[] = {ROW("1", "e1"), CHANGED, NULL};
	struct fixture f;
	if (!begin(&f, replies, true))
		return;
	const struct call_limits limits = {.abandon = is_asked_twice, .abandon_arg = &f};
	CHECK(outcome_is_ambiguous(
		f.store->ops->write(f.conn, key, &take_over, &limits, NULL, &f.aws.problem)));
	check_sent(&f, "G P='e1'");
	end(&f);
}

static void test_too_long(void)
{
	static const char *const replies[] = {NULL};
	char long_key[KEY_BYTES_MAX];
	struct fixture f;
	struct item item = {0};
	if (!begin(&f, replies, true))
		return;
	memset(long_key, '#', sizeof long_key);
	long_key[sizeof long_key / 3] = 0;
	const struct item_key too_long = {"lock", long_key};
	CHECK_INT(f.store->ops->write(f.conn, too_long, &create, NULL, NULL, &f.aws.problem),
		OUTCOME_INVALID);
	CHECK_INT(f.store->ops->get(f.conn, too_long, READ_CONSISTENT, NULL, &item, &f.aws.problem),
		OUTCOME_INVALID);
	check_sent(&f, "");
	end(&f);
}

/* The data and the attributes that a lock may have fit into an object, though their JSON takes more
 * bytes than they do. */
static void test_a_row_with_the_most_data(void)
{
	enum { DATA = 256 << 10, TEXT_BYTES = 64 << 10 };
	static const char *const replies[] = {ABSENT, PUT, NULL};
	static char bytes[DATA], escaped[TEXT_BYTES];
	memset(escaped, 1, sizeof escaped - 1);
	const struct change most[] = {{"data", VALUE_BYTES, bytes, DATA},
		{"note", VALUE_STRING, escaped, TEXT_BYTES - 1}};
	const struct item_write write = {.changes = most, .n_changes = 2, .or_absent = true};
	struct text reply = TEXT(4 << 20);
	struct item item = {0};
	struct fixture f;
	if (!begin(&f, replies, true))
		return;
	CHECK_INT(f.store->ops->write(f.conn, key, &write, NULL, NULL, &f.aws.problem), OUTCOME_OK);
	check_sent(&f, "G P*");
	text_add(&reply, SCRIPT_REPLY("200", "ETag: \"e1\"\r\n", ""));
	if (f.aws.server.n_requests == 2)
		text_add(&reply, f.aws.server.requests[1].body);
	end(&f);
	if (!begin(&f, (const char *const[]){text_string(&reply), NULL}, true))
		return;
	CHECK_INT(f.store->ops->get(f.conn, key, READ_CONSISTENT, NULL, &item, &f.aws.problem),
		OUTCOME_OK);
	const struct attribute *data = item_find(&item, "data"), *note = item_find(&item, "note");
	CHECK(data && data->n == DATA && note && note->n == TEXT_BYTES - 1);
	item_clear(&item);
	end(&f);
	text_clear(&reply);
}

static void test_reads(void)
{
	static const char *const replies[] = {
		ROW("1", "e1"), EMPTY("e0"), ABSENT, FAILED, THROTTLED, NULL};
	static const enum outcome outcomes[] = {
		OUTCOME_OK, OUTCOME_ABSENT, OUTCOME_ABSENT, OUTCOME_TRANSIENT, OUTCOME_THROTTLED};
	struct fixture f;
	if (!begin(&f, replies, false)) /* reading needs no conditions */
		return;
	for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
		struct item item = {0};
		CHECK_INT(f.store->ops->get(
				  f.conn, key, READ_CONSISTENT, NULL, &item, &f.aws.problem),
			outcomes[i]);
		CHECK_STRING(item_string(&item, "v"), outcomes[i] == OUTCOME_OK ? "1" : NULL);
		item_clear(&item);
	}
	check_sent(&f, "G G G G G");
	end(&f);
}

struct seen {
	char keys[200];
	unsigned n, max_items;
};

static int note_key(void *arg, const struct found_item *found)
{
	struct seen *seen = arg;
	const size_t n = strlen(seen->keys);
	const char *sk = found->key.sk;
	CHECK_STRING(found->key.pk, "lock");
	CHECK_STRING(item_string(found->item, "sk"), sk);
	snprintf(seen->keys + n, sizeof seen->keys - n, "%s ", sk);
	return ++seen->n == seen->max_items;
}

#define LISTED(name, size)                                                                         \
	"<Contents><Key>of/locks/lock/" name "</Key><Size>" size                                   \
	"</Size><ETag>\"e\"</ETag></Contents>"
/* The order of the names is not that of the keys. The names are encoded once more in a listing. */
#define LISTING                                                                                    \
	SCRIPT_REPLY("200", "",                                                                    \
		"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</"           \
		"IsTruncated>" LISTED("%252Ex", "9") LISTED("a%25", "9") LISTED("a%252Fb", "9")    \
			LISTED("a%252fc", "9") LISTED("a-b", "9") LISTED("a.b", "0")               \
				LISTED("b", "9") LISTED("c", "9") "</ListBucketResult>")

static const struct {
	struct store_range range;
	const char *keys;
	unsigned stops_at;
	const char *prefix; /* of the listing, behind that of the store */
	bool has_more;
	enum outcome outcome;
} queries[] = {
	{{.pk = "lock"}, ".x a-b a/b b c ", 0, "", false, OUTCOME_OK},
	{{.pk = "lock", .from = "a-b"}, "a-b a/b b c ", 0, "", false, OUTCOME_OK},
	{{.pk = "lock", .from = "a-b", .after = true}, "a/b b c ", 0, "", false, OUTCOME_OK},
	{{.pk = "lock", .from = "a", .to = "a/b"}, "a-b a/b ", 0, "a", false, OUTCOME_OK},
	{{.pk = "lock", .from = "a-b", .to = "a/b"}, "a-b a/b ", 0, "a", false, OUTCOME_OK},
	{{.pk = "lock", .from = "a/b", .to = "a/b"}, "a/b ", 0, "a%252Fb", false, OUTCOME_OK},
	{{.pk = "lock", .to = "b"}, ".x a-b a/b b ", 0, "", false, OUTCOME_OK},
	{{.pk = "lock", .max_items = 2}, ".x a-b ", 0, "", true, OUTCOME_OK},
	{{.pk = "lock", .from = "b", .max_items = 2}, "b c ", 0, "", false, OUTCOME_OK},
	{{.pk = "lock"}, ".x a-b ", 2, "", true, OUTCOME_LOCAL},
};

static void test_queries(void)
{
	for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
		const char *replies[] = {LISTING, ROW("1", "e"), ROW("1", "e"), ROW("1", "e"),
			ROW("1", "e"), ROW("1", "e"), NULL};
		struct seen seen = {.max_items = queries[i].stops_at};
		struct fixture f;
		bool more = false;
		char prefix[100];
		if (!begin(&f, replies, true))
			return;
		bool ok = CHECK_STRING(outcome_name(f.store->ops->query(f.conn, &queries[i].range,
					       &no_limits, note_key, &seen, &more, &f.aws.problem)),
			outcome_name(queries[i].outcome));
		ok = CHECK_STRING(seen.keys, queries[i].keys) && ok;
		ok = CHECK(more == queries[i].has_more) && ok;
		script_stop(&f.aws.server);
		snprintf(prefix, sizeof prefix, "prefix=of%%2Flocks%%2Flock%%2F%s&",
			queries[i].prefix);
		ok = CHECK(strstr(f.aws.server.requests[0].head, prefix) != NULL) && ok;
		if (!ok)
			fprintf(stderr, "\tquery %zu: %s\n%s\n", i, f.aws.problem.text,
				f.aws.server.requests[0].head);
		end(&f);
	}
}

/* An item that was removed since it was listed is skipped, and one that is not ours ends it. */
static void test_items_that_are_gone(void)
{
	const char *replies[] = {ABSENT, ROW("1", "e"), EMPTY("e"), ROW("1", "e"), FAILED, NULL};
	const struct item_key keys[] = {
		{"lock", "a"}, {"lock", "b"}, {"lock", "c"}, {"lock", "d"}, {"lock", "e"}};
	struct seen seen = {0};
	struct fixture f;
	if (!begin(&f, replies, true))
		return;
	CHECK_INT(f.store->ops->get_many(
			  f.conn, keys, 4, &no_limits, note_key, &seen, &f.aws.problem),
		OUTCOME_OK);
	CHECK_STRING(seen.keys, "b d ");
	CHECK_INT(f.store->ops->get_many(
			  f.conn, keys + 4, 1, &no_limits, note_key, &seen, &f.aws.problem),
		OUTCOME_TRANSIENT);
	check_sent(&f, "G G G G G");
	end(&f);
}

/* --- whether the server honours conditions */

static const struct {
	const char *record; /* the attributes beside "at" */
	int64_t age_s;
	bool is_believed;
	const char *sent; /* for one that is believed */
} records[] = {
	{"\"server\":{\"S\":\"old\"},\"etags\":{\"S\":\"quoted\"}", 0, true, "G G P='e1'"},
	{"\"server\":{\"S\":\"old\"},\"etags\":{\"S\":\"bare\"}", 0, true, "G G P=e1"},
	{"\"server\":{\"S\":\"old\"},\"etags\":{\"S\":\"quoted\"}", 30 * 24 * 3600 - 60, true,
		"G G P='e1'"},
	/* Another server, one that may have been replaced since, and a record that is damaged. */
	{"\"server\":{\"S\":\"new\"},\"etags\":{\"S\":\"quoted\"}", 0, false},
	{"\"server\":{\"S\":\"old\"},\"etags\":{\"S\":\"quoted\"}", 30 * 24 * 3600 + 1, false},
	{"\"server\":{\"S\":\"old\"},\"etags\":{\"S\":\"quoted\"}", -60, false},
	{"\"server\":{\"S\":\"old\"}", 0, false},
	{"\"etags\":{\"S\":\"quoted\"}", 0, false},
};

static void test_records(void)
{
	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		char record[400];
		struct fixture f;
		snprintf(record, sizeof record,
			SCRIPT_REPLY("200", "ETag: \"r\"\r\nServer: old\r\n",
				"{%s,\"at\":{\"N\":\"%" PRId64 "\"}}"),
			records[i].record, clock_wall_s() - records[i].age_s);
		const bool is_believed = records[i].is_believed;
		const char *replies[] = {record, is_believed ? ROW("1", "e1") : UNKNOWN,
			is_believed ? PUT : DELETED, NULL};
		if (!begin(&f, replies, false))
			return;
		bool ok = CHECK_INT(f.store->ops->write(f.conn, key, &take_over, &no_limits, NULL,
					    &f.aws.problem),
			is_believed ? OUTCOME_OK : OUTCOME_SETUP);
		ok = check_sent(&f, is_believed ? records[i].sent : "G P* D") && ok;
		CHECK(script_is_to(&f.aws.server.requests[0], "GET /b/of/locks/store/conditions"));
		if (!ok)
			fprintf(stderr, "\trecord %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

/* One writer alone, on a server that is not AWS and has no record. */
static const struct {
	const char *replies[10];
	enum outcome outcome;
	const char *sent, *problem;
} trials[] = {
	{{ABSENT, UNKNOWN, DELETED}, OUTCOME_SETUP, "G P* D", "refuses If-None-Match"},
	{{ABSENT, PUT, PUT, DELETED}, OUTCOME_SETUP, "G P* P* D", "ignores If-None-Match"},
	{{ABSENT, PUT, CHANGED, CHANGED, CHANGED, DELETED}, OUTCOME_SETUP,
		"G P* P* P='new' P=new D", "refuses If-Match"},
	{{ABSENT, PUT, CHANGED, UNKNOWN, DELETED}, OUTCOME_SETUP, "G P* P* P='new' D",
		"refuses If-Match"},
	{{ABSENT, PUT, CHANGED, PUT, PUT, DELETED}, OUTCOME_SETUP, "G P* P* P='new' P='new' D",
		"ignores If-Match"},
	{{ABSENT, PUT, CHANGED, CHANGED, PUT, PUT, DELETED}, OUTCOME_SETUP,
		"G P* P* P='new' P=new P=new D", "ignores If-Match"},
	/* An etag of an object that is gone is refused with 404. */
	{{ABSENT, PUT, CHANGED, ABSENT, ABSENT, DELETED}, OUTCOME_SETUP, "G P* P* P='new' P=new D",
		"refuses If-Match"},
	/* These say nothing about the server. */
	{{ABSENT, CHANGED, DELETED}, OUTCOME_TRANSIENT, "G P* D", ""},
	{{ABSENT, DENIED, DELETED}, OUTCOME_DENIED, "G P* D", ""},
	{{ABSENT, PUT, DENIED, DELETED}, OUTCOME_DENIED, "G P* P* D", ""},
	{{ABSENT, PUT, LOST, CHANGED, DELETED}, OUTCOME_TRANSIENT, "G P* P* P* D", ""},
	{{ABSENT, PUT, CHANGED, DENIED, DELETED}, OUTCOME_DENIED, "G P* P* P='new' D", ""},
	{{FAILED}, OUTCOME_TRANSIENT, "G", ""},
};

static void test_trials(void)
{
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		struct fixture f;
		if (!begin(&f, trials[i].replies, false))
			return;
		bool ok = CHECK_STRING(
			outcome_name(f.store->ops->prepare(f.conn, &no_limits, &f.aws.problem)),
			outcome_name(trials[i].outcome));
		ok = check_sent(&f, trials[i].sent) && ok;
		ok = CHECK(strstr(f.aws.problem.text, trials[i].problem) != NULL) && ok;
		ok = CHECK(!((struct s3_store *)f.store)->is_proven) && ok;
		if (!ok)
			fprintf(stderr, "\ttrial %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

static bool always(void *arg)
{
	return arg != NULL;
}

/* AWS promises it, and what was found out holds for as long as the store is open. */
static void test_servers_that_are_not_tried(void)
{
	static const char *const replies[] = {ROW("1", "e1"), PUT, ABSENT, NULL};
	struct fixture f;
	if (!begin(&f, replies, false))
		return;
	f.aws.settings.s3_is_aws = true;
	CHECK_INT(f.store->ops->prepare(f.conn, &no_limits, &f.aws.problem), OUTCOME_OK);
	CHECK_INT(f.store->ops->write(f.conn, key, &take_over, NULL, NULL, &f.aws.problem),
		OUTCOME_OK);
	f.aws.settings.s3_is_aws = false;
	const struct call_limits over = {.abandon = always, .abandon_arg = &f};
	CHECK_INT(f.store->ops->prepare(f.conn, &over, &f.aws.problem), OUTCOME_ABANDONED);
	CHECK_INT(f.store->ops->write(f.conn, key, &take_over, &over, NULL, &f.aws.problem),
		OUTCOME_ABANDONED);
	check_sent(&f, "G P='e1'");
	end(&f);
}

int main(void)
{
	test_writes();
	test_puts();
	test_counts_and_shows();
	test_refused_without_an_item();
	test_names();
	test_given_up();
	test_too_long();
	test_a_row_with_the_most_data();
	test_reads();
	test_queries();
	test_items_that_are_gone();
	test_records();
	test_trials();
	test_servers_that_are_not_tried();
	return check_result();
}
