/* Whether S3 still has an object of the marks, by what comes back: only S3's own words count, and a
 * proxy, a portal or another bucket is never taken for the bucket of the marks. The table in
 * docs/protocol.md ("The bucket is the one that the marks know") has the same rows in words. */
#include "../script_aws.h"
#include "marks/witness.h"
#include <stdlib.h>

#define OUR_ID     "0123456789abcdef0123456789abcdef"
#define EARLIER_ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID         "x-amz-request-id: r\r\n"
/* printf b/w | sha256sum */
#define FOR_W     "x-amz-meta-s3once-key: 0f12be8a7a5271a1b676\r\n"
#define FOR_OTHER "x-amz-meta-s3once-key: 00000000000000000000\r\n"
#define OURS      "x-amz-meta-s3once-table: " OUR_ID "\r\n"
#define EARLIER   "x-amz-meta-s3once-table: " EARLIER_ID "\r\n"
#define THEIRS    "x-amz-meta-s3once-table: theirs\r\n"
#define CLAIM(id) "x-amz-meta-s3once-claim: " id "\r\n"

#define SHOWN(etag, headers)                                                                       \
	SCRIPT_REPLY("200", "ETag: \"" etag "\"\r\nContent-Length: 5\r\n" headers, "")
#define BARE(status)       SCRIPT_REPLY(status, "", "")
#define SAYS(status, code) SCRIPT_REPLY(status, ID, "<Error><Code>" code "</Code></Error>")
#define BYTE               SCRIPT_REPLY("206", "ETag: \"e\"\r\n" ID, "x")
#define HTML               SCRIPT_REPLY("403", "", "<html>no</html>")

struct fixture {
	struct script_aws aws;
	struct s3 *s3;
	struct s3_conn *conn;
	struct store *store;
	struct mark_space space;
	struct witness_asking asking;
};

/* The replies end with NULL. */
static bool begin(struct fixture *f, const char *const *replies)
{
	struct script_step steps[SCRIPT_STEPS_MAX];
	size_t n = 0;
	for (; replies[n]; n++)
		steps[n] = (struct script_step){.reply = replies[n], .close = true};
	*f = (struct fixture){.space = {.service = "aws",
				      .bucket = "b",
				      .settings = {.table_id = OUR_ID, .shards = 2}}};
	snprintf(f->space.settings.earlier, sizeof f->space.settings.earlier, EARLIER_ID " ");
	f->asking.space = &f->space;
	if (!script_aws_start(&f->aws, steps, n) ||
		!CHECK_INT(s3_open(&f->aws.settings, f->aws.http, "b", &f->s3, NULL), 0) ||
		!CHECK_INT(s3_conn_new(f->s3, &f->conn), 0) ||
		!CHECK_INT(store_sqlite_open(
				   STORE_SQLITE_NOWHERE, STORE_WRITTEN, &f->store, &f->aws.problem),
			0) ||
		!CHECK_INT(store_conn_new(f->store, &f->asking.marks), 0))
		return false;
	f->asking.s3 = f->conn;
	return true;
}

static void end(struct fixture *f)
{
	store_conn_free(f->asking.marks);
	store_close(f->store);
	s3_conn_free(f->conn);
	s3_close(f->s3);
	script_aws_end(&f->aws);
}

static const struct witness_wanted by_etag = {.key = "w", .etag = "e"},
				   by_id = {.key = "w", .etag = "e", .id = "id"},
				   by_nothing = {.key = "w", .etag = ""}, any = {.key = "w"};

static const struct {
	const struct witness_wanted *wanted;
	const char *head, *get;
	enum witness_look look;
	const char *problem;
} looks[] = {
	{&by_etag, SHOWN("e", ""), NULL, LOOK_THERE, ""},
	{&by_etag, SHOWN("f", OURS FOR_W), NULL, LOOK_THERE, ""},
	{&by_etag, SHOWN("f", EARLIER FOR_W ID), NULL, LOOK_THERE, ""},
	{&by_nothing, SHOWN("f", OURS FOR_W), NULL, LOOK_THERE, ""},
	{&any, SHOWN("f", ""), NULL, LOOK_THERE, ""},
	{&by_id, SHOWN("f", CLAIM("id")), NULL, LOOK_THERE, ""},
	/* Another object, as S3 itself says; of its words the request id is one. */
	{&by_etag, SHOWN("f", OURS FOR_OTHER ID), NULL, LOOK_ANOTHER, ""},
	{&by_etag, SHOWN("f", THEIRS FOR_W ID), NULL, LOOK_ANOTHER, ""},
	{&by_etag, SHOWN("f", ID), NULL, LOOK_ANOTHER, ""},
	{&by_nothing, SHOWN("f", ID), NULL, LOOK_ANOTHER, ""},
	{&by_id, SHOWN("e", OURS FOR_W CLAIM("di") ID), NULL, LOOK_ANOTHER, ""},
	{&by_id, SHOWN("e", OURS FOR_W ID), NULL, LOOK_ANOTHER, ""},
	{&by_etag, SHOWN("f", OURS FOR_OTHER), NULL, LOOK_NO_ANSWER, "check the endpoint"},
	{&by_etag, SHOWN("f", ""), NULL, LOOK_NO_ANSWER, "check the endpoint"},
	/* None: a HEAD has no words of S3, and a GET has. */
	{&by_etag, BARE("404"), SAYS("404", "NoSuchKey"), LOOK_GONE, ""},
	{&by_etag, BARE("403"), SAYS("404", "NoSuchKey"), LOOK_GONE, ""},
	{&by_etag, BARE("404"), BARE("404"), LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("404"), SCRIPT_REPLY("404", ID, "<html>"), LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("404"), SAYS("404", "NoSuchBucket"), LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("404"), BYTE, LOOK_NO_ANSWER, "GET shows it"},
	/* Refused: by S3 itself, and both. */
	{&by_etag, BARE("403"), SAYS("403", "AccessDenied"), LOOK_REFUSED, ""},
	{&by_etag, BARE("404"), SAYS("403", "AccessDenied"), LOOK_NO_ANSWER, "GET is refused"},
	{&by_etag, BARE("403"), HTML, LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("403"), BARE("403"), LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("403"), BYTE, LOOK_NO_ANSWER, "is refused and GET is not"},
	/* Encrypted with a key that is not given. */
	{&by_etag, BARE("400"), SAYS("400", "InvalidRequest"), LOOK_ENCRYPTED, ""},
	{&by_etag, BARE("400"), BARE("400"), LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("500"), NULL, LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("401"), NULL, LOOK_NO_ANSWER, ""},
	{&by_etag, BARE("404"), SAYS("500", "InternalError"), LOOK_NO_ANSWER, ""},
};

static void test_looks(void)
{
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		const char *const replies[] = {looks[i].head, looks[i].get, NULL};
		struct fixture f;
		struct s3_object object = {0};
		if (!begin(&f, replies))
			return;
		bool ok =
			CHECK_INT(witness_look(&f.asking, looks[i].wanted, &object, &f.aws.problem),
				looks[i].look);
		script_stop(&f.aws.server);
		ok = CHECK(strstr(f.aws.problem.text, looks[i].problem) != NULL) && ok;
		ok = CHECK_INT(f.aws.server.n_requests, looks[i].get ? 2 : 1) && ok;
		ok = CHECK(script_is_to(&f.aws.server.requests[0], "HEAD /b/w")) && ok;
		if (!ok)
			fprintf(stderr, "\tlook %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

/* Temporary failures are asked about again for a while, and wrong settings are not. */
static const struct {
	const char *replies[3];
	enum witness_look look;
	size_t requests;
} patient[] = {
	{{BARE("500"), SHOWN("e", ""), NULL}, LOOK_THERE, 2},
	{{SHOWN("f", ""), SHOWN("e", ""), NULL}, LOOK_THERE, 2},
	{{BARE("401"), SHOWN("e", ""), NULL}, LOOK_NO_ANSWER, 1},
	{{SHOWN("f", ID), SHOWN("e", ""), NULL}, LOOK_ANOTHER, 1},
};

static void test_patience(void)
{
	for (size_t i = 0; i < sizeof patient / sizeof *patient; i++) {
		struct fixture f;
		struct s3_object object = {0};
		if (!begin(&f, patient[i].replies))
			return;
		f.asking.limits.patience_ms = 20000;
		f.asking.limits.attempts = 1;
		CHECK_INT(witness_look(&f.asking, &by_etag, &object, &f.aws.problem),
			patient[i].look);
		script_stop(&f.aws.server);
		CHECK_INT(f.aws.server.n_requests, patient[i].requests);
		end(&f);
	}
}

static void put_mark_at(struct fixture *f, int64_t at_s, const char *key, const char *state,
	const char *etag, const char *suffix)
{
	char partition[PARTITION_MAX];
	struct item item = {0};
	struct problem problem;
	item_set_string(&item, "state", state);
	item_set_string(&item, "etag", etag);
	item_set_string(&item, "suffix", suffix);
	item_set_number(&item, "size", 5);
	item_set_number(&item, "mtime", 7);
	item_set_number(&item, "at", at_s);
	CHECK_INT(f->store->ops->write(f->asking.marks, mark_key(&f->space, key, partition),
			  &(struct item_write){.item = &item}, &no_limits, NULL, &problem),
		OUTCOME_OK);
	item_clear(&item);
}

static void put_mark(
	struct fixture *f, const char *key, const char *state, const char *etag, const char *suffix)
{
	put_mark_at(f, 1, key, state, etag, suffix);
}

#define GONE BARE("404"), SAYS("404", "NoSuchKey")

static const struct asked_row {
	struct bucket_row row;
	const char *marks; /* d: the mark "v" is done; g: likewise, with a suffix; w: the witness'
			    * own mark; c: claimed only */
	const char *replies[6];
	int generation; /* of the row by the time that S3 has shown an object */
	enum witness_answer answer;
	size_t requests;
	const char *key, *problem;
} asks[] = {
	{{.last_key = "w", .last_etag = "e"}, "d", {SHOWN("e", "")}, 0, WITNESS_SHOWN, 1, "w", ""},
	/* No mark says done, so there is nothing to believe. */
	{{.generation = 0}, "", {NULL}, 0, WITNESS_NOTHING, 0, "", ""},
	{{.generation = 0}, "c", {NULL}, 0, WITNESS_NOTHING, 0, "", ""},
	/* The witness is gone: another object of the marks will do. */
	{{.last_key = "w", .last_etag = "e"}, "d", {GONE, SHOWN("v", "")}, 0, WITNESS_SHOWN, 3, "v",
		""},
	{{.last_key = "w", .last_etag = "e"}, "g", {GONE, SHOWN("v", "")}, 0, WITNESS_SHOWN, 3,
		"v.gz", ""},
	{{.generation = 0}, "d", {SHOWN("v", "")}, 0, WITNESS_SHOWN, 1, "v", ""},
	{{.last_key = "w", .last_etag = "e"}, "d", {GONE, GONE}, 0, WITNESS_GONE, 4, "", "w, v"},
	{{.last_key = "w", .last_etag = "e"}, "d", {SHOWN("f", ID), GONE}, 0, WITNESS_GONE, 3, "",
		"w, v"},
	{{.last_key = "w", .last_etag = "e"}, "", {GONE}, 0, WITNESS_GONE, 2, "", "w"},
	{{.last_key = "w", .last_etag = "e"}, "w", {GONE}, 0, WITNESS_GONE, 2, "", "w"},
	/* A mark has its object of a later version. */
	{{.last_key = "w", .last_etag = "f"}, "w", {SHOWN("e", ID), SHOWN("e", ID)}, 0,
		WITNESS_SHOWN, 2, "w", ""},
	/* The object that names the bucket decides alone. */
	{{.last_key = "x", .last_etag = "y", .id_key = "w", .id = "id"}, "d",
		{SHOWN("f", CLAIM("id"))}, 0, WITNESS_SHOWN, 1, "w", ""},
	{{.last_key = "x", .last_etag = "y", .id_key = "w", .id = "id"}, "d", {GONE}, 0,
		WITNESS_GONE, 2, "", "w"},
	{{.last_key = "w", .last_etag = "e", .id_key = "x"}, "d", {SHOWN("e", "")}, 0,
		WITNESS_SHOWN, 1, "w", ""},
	/* Neither shown nor gone. */
	{{.last_key = "w", .last_etag = "e"}, "d", {BARE("403"), SAYS("403", "AccessDenied")}, 0,
		WITNESS_REFUSED, 2, "", ""},
	{{.last_key = "w", .last_etag = "e"}, "d", {BARE("404"), HTML}, 0, WITNESS_NO_ANSWER, 2, "",
		""},
	{{.last_key = "w", .last_etag = "e"}, "d", {GONE, BARE("500")}, 0, WITNESS_NO_ANSWER, 3, "",
		""},
	{{.last_key = "w", .last_etag = "e"}, "d",
		{BARE("400"), SAYS("400", "InvalidRequest"), SHOWN("v", "")}, 0, WITNESS_SHOWN, 3,
		"v", ""},
	{{.last_key = "w", .last_etag = "e"}, "d",
		{BARE("400"), SAYS("400", "InvalidRequest"), GONE}, 0, WITNESS_NO_ANSWER, 4, "",
		"cannot be read with the keys that are given"},
	/* Another has begun anew since, and S3 may have shown what it has sent. */
	{{.last_key = "w", .last_etag = "e"}, "d", {SHOWN("e", "")}, 1, WITNESS_BEGUN_ANEW, 1, "w",
		"meanwhile"},
};

static void test_asks(void)
{
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		const struct asked_row *asked = &asks[i];
		struct fixture f;
		struct bucket_row now = {.generation = asked->generation}, unused;
		struct witness_shown shown = {.id_age_s = -2};
		if (!begin(&f, asked->replies))
			return;
		if (*asked->marks == 'd' || *asked->marks == 'g')
			put_mark(&f, "v", "done", "v", *asked->marks == 'g' ? ".gz" : "");
		if (*asked->marks == 'w')
			put_mark(&f, "w", "done", "e", "");
		if (*asked->marks == 'c')
			put_mark(&f, "v", "claimed", "", "");
		if (asked->generation)
			CHECK_INT(bucket_row_write(f.asking.marks, &f.space, &now, NULL, &unused,
					  &f.aws.problem),
				OUTCOME_OK);
		f.aws.problem = (struct problem){0};
		bool ok = CHECK_INT(
			witness_ask(&f.asking, &asked->row, &shown, &f.aws.problem), asked->answer);
		script_stop(&f.aws.server);
		ok = CHECK_INT(f.aws.server.n_requests, asked->requests) && ok;
		ok = CHECK_STRING(shown.key, asked->key) && ok;
		ok = CHECK(strstr(f.aws.problem.text, asked->problem) != NULL) && ok;
		if (asked->answer == WITNESS_SHOWN && !*asked->row.id)
			ok = CHECK_INT(shown.id_age_s, -1) && ok;
		if (!ok)
			fprintf(stderr, "\task %zu: %s\n", i, f.aws.problem.text);
		end(&f);
	}
}

/* Among many marks, the four that were changed last are checked, wherever their keys are, since a
 * lifecycle rule deletes the oldest objects first. The sentence names three. */
static void test_newest_samples(void)
{
	static const unsigned newest[] = {3, 6, 20, 59};
	static const char *const replies[] = {GONE, GONE, GONE, GONE, GONE, GONE, GONE, GONE, NULL};
	struct fixture f;
	const struct bucket_row row = {.generation = 0};
	struct witness_shown shown;
	if (!begin(&f, replies))
		return;
	f.space.settings.shards = 1; /* they are read in the order of their keys */
	for (unsigned i = 0; i < 60; i++) {
		char key[8];
		int64_t at_s = 1000 - i;
		for (size_t k = 0; k < sizeof newest / sizeof *newest; k++)
			if (newest[k] == i)
				at_s = 2000 + i;
		snprintf(key, sizeof key, "k%02u", i);
		put_mark_at(&f, at_s, key, "done", "e", "");
	}
	CHECK_INT(witness_ask(&f.asking, &row, &shown, &f.aws.problem), WITNESS_GONE);
	script_stop(&f.aws.server);
	CHECK_INT(f.aws.server.n_requests, 16);
	for (size_t k = 0; k < sizeof newest / sizeof *newest; k++) {
		char head[32];
		bool is_asked = false;
		const int n = snprintf(head, sizeof head, "HEAD /b/k%02u?", newest[k]);
		for (size_t i = 0; i < f.aws.server.n_requests; i++)
			is_asked |= strncmp(f.aws.server.requests[i].head, head, (size_t)n) == 0;
		CHECK(is_asked);
	}
	const char *named = strstr(f.aws.problem.text, "that are gone: ");
	unsigned n_named = 0;
	for (; named; named = strchr(named + 1, 'k'))
		n_named++;
	CHECK_INT(n_named, 1 + 3);
	end(&f);
}

/* Marks are read until one says done, also beyond the usual number: if none did, no object would be
 * asked for. */
static void test_first_done_comes_late(void)
{
	enum { SHARDS = 2000, CLAIMED = 12 }; /* 20,000 marks are the usual number */
	static const char *const replies[] = {SHOWN("e", ""), NULL};
	const struct bucket_row row = {.generation = 0};
	struct witness_shown shown = {.key = ""};
	struct fixture f;
	if (!begin(&f, replies))
		return;
	f.space.settings.shards = SHARDS;
	char key[10];
	unsigned n = 0;
	for (unsigned i = 0; n <= CLAIMED; i++) {
		snprintf(key, sizeof key, "k%07u", i);
		if (mark_shard(key, SHARDS) != SHARDS - 1)
			continue;
		const bool is_done = n++ == CLAIMED;
		put_mark(&f, key, is_done ? "done" : "claimed", is_done ? "e" : "", "");
	}
	CHECK_INT(witness_ask(&f.asking, &row, &shown, &f.aws.problem), WITNESS_SHOWN);
	CHECK_STRING(shown.key, key);
	end(&f);
}

int main(void)
{
	test_looks();
	test_patience();
	test_asks();
	test_newest_samples();
	test_first_done_comes_late();
	return check_result();
}
