/* The merge of a listing with the marks, and the closer look at what disagrees. The S3 server is a
 * script; the marks are real. */
#include "../check.h"
#include "../script_aws.h"
#include "audit/verify.h"

static const struct mark_space space = {
	.service = "aws", .bucket = "b", .settings = {.table_id = "t", .shards = 3}};

struct fixture {
	struct script_aws aws;
	struct s3 *s3;
	struct s3_conn *s3_conn;
	struct store *store;
	struct store_conn *conn;
	char seen[4000]; /* a line for each finding */
	/* Is done when the first finding is told, or NULL. */
	void (*meanwhile)(struct fixture *f);
};

static void put_mark(struct fixture *f, const char *key, const char *state, const char *suffix)
{
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	struct problem problem;
	mark_partition(&space, mark_shard(key, space.settings.shards), partition);
	item_set_string(&item, "state", state);
	item_set_string(&item, "session", "s");
	item_set_string(&item, "claim", "c");
	item_set_string(&item, "etag", "e1");
	item_set_string(&item, "sum", "crc32c:AAAAAA==");
	item_set_number(&item, "size", 3);
	item_set_number(&item, "mtime", 7);
	if (*suffix)
		item_set_string(&item, "suffix", suffix);
	CHECK_INT(f->conn->store->ops->write(f->conn, (struct item_key){partition, key},
			  &(struct item_write){.item = &item}, &no_limits, &present, &problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	struct fixture *f = arg;
	const size_t n = strlen(f->seen);
	snprintf(f->seen + n, sizeof f->seen - n, "%c%s ", "=-*+!!"[finding], key);
	const bool has_sentence =
		finding == FINDING_DIFFERS || finding == FINDING_ERROR || finding == FINDING_UNSENT;
	CHECK(has_sentence == (problem != NULL));
	if (f->meanwhile)
		f->meanwhile(f);
	f->meanwhile = NULL;
}

static void on_warned(void *arg, const struct problem *problem)
{
	struct fixture *f = arg;
	CHECK(strstr(problem->text, "does not list objects in byte order"));
	snprintf(f->seen, sizeof f->seen, "warned ");
}

static void on_progress(void *arg, const struct verify_counts *counts)
{
}

static bool begin(struct fixture *f, const struct script_step *steps, size_t n)
{
	*f = (struct fixture){0};
	return script_aws_start(&f->aws, steps, n) &&
	       CHECK_INT(s3_open(&f->aws.settings, f->aws.http, "b", &f->s3, NULL), 0) &&
	       CHECK_INT(store_sqlite_open(STORE_SQLITE_NOWHERE, false, &f->store, NULL), 0) &&
	       CHECK_INT(store_conn_new(f->store, &f->conn), 0) &&
	       CHECK_INT(s3_conn_new(f->s3, &f->s3_conn), 0);
}

static struct verify verify_of(struct fixture *f)
{
	return (struct verify){.place = {.store = f->store,
				       .space = &space,
				       .s3 = f->s3,
				       .own = {f->conn, f->s3_conn}},
		.range = {.prefix = "", .after = NULL},
		.workers = 1,
		.visitor = {on_found, on_warned, on_progress, f}};
}

static void end(struct fixture *f)
{
	store_conn_free(f->conn);
	store_close(f->store);
	s3_conn_free(f->s3_conn);
	s3_close(f->s3);
	script_aws_end(&f->aws);
}

#define OBJECT(key, size, etag)                                                                    \
	"<Contents><Key>" key "</Key><Size>" size "</Size><ETag>&quot;" etag                       \
	"&quot;</ETag></Contents>"
#define LISTING(more, objects)                                                                     \
	{                                                                                          \
		SCRIPT_REPLY("200", "",                                                            \
			"<ListBucketResult><EncodingType>url</EncodingType>"                       \
			"<IsTruncated>" more "</IsTruncated>" objects "</ListBucketResult>"),      \
			.close = true                                                              \
	}
#define HEAD(size, etag, sum)                                                                      \
	{                                                                                          \
		SCRIPT_REPLY("200",                                                                \
			"Content-Length: " size "\r\nETag: \"" etag                                \
			"\"\r\nx-amz-checksum-crc32c: " sum "\r\n",                                \
			""),                                                                       \
			.close = true                                                              \
	}
#define ABSENT                                                                                     \
	{                                                                                          \
		SCRIPT_REPLY("404", "Content-Length: 0\r\n", ""), .close = true                    \
	}

/* Two pages; suffixes change the order; each kind of difference once. */
static void test_merge(void)
{
	const struct script_step steps[] = {
		LISTING("true", OBJECT("a-b", "3", "e1") OBJECT("a.gz", "3", "e1")
					OBJECT("b%2Bc", "3", "e1")),
		LISTING("false", OBJECT("foreign", "3", "e1") OBJECT("size", "4", "e1")
					 OBJECT("under+way", "9", "x")),
		ABSENT,
		HEAD("4", "e1", "AAAAAA=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 4))
		return;
	put_mark(&f, "a", "done", ".gz");
	put_mark(&f, "a-b", "done", "");
	put_mark(&f, "b+c", "done", "");
	put_mark(&f, "claimed", "claimed", "");
	put_mark(&f, "gone", "done", "");
	put_mark(&f, "size", "done", "");
	put_mark(&f, "under way", "claimed", "");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_INT(ended.counts.listed, 6);
	CHECK_INT(ended.counts.of[FINDING_SAME], 3);
	CHECK_INT(ended.counts.of[FINDING_UNSENT], 2); /* their session has no row */
	CHECK(strstr(f.seen, "=a-b ") && strstr(f.seen, "=a.gz ") && strstr(f.seen, "=b+c "));
	CHECK(strstr(f.seen, "+foreign -gone ") && strstr(f.seen, "*size "));
	script_stop(&f.aws.server);
	CHECK(script_is_to(&f.aws.server.requests[0], "GET /b?encoding-type=url&list-type=2"));
	end(&f);
}

static void done_meanwhile(struct fixture *f)
{
	put_mark(f, "late", "done", "");
}

/* The marks were read before the object was uploaded, the listing afterwards. */
static void test_mark_that_comes_late(void)
{
	const struct script_step steps[] = {
		LISTING("false", OBJECT("early", "3", "e1") OBJECT("late", "3", "e1")),
		HEAD("3", "e1", "AAAAAA=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 2))
		return;
	f.meanwhile = done_meanwhile;
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+early =late ");
	script_stop(&f.aws.server);
	end(&f);
}

static void claimed_meanwhile(struct fixture *f)
{
	put_mark(f, "late", "claimed", "");
}

/* Its uploader, whose session has no row, has ended before it was done. */
static void test_claim_that_comes_late(void)
{
	const struct script_step step =
		LISTING("false", OBJECT("early", "3", "e1") OBJECT("late", "3", "e1"));
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, &step, 1))
		return;
	f.meanwhile = claimed_meanwhile;
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+early !late ");
	script_stop(&f.aws.server);
	end(&f);
}

#define MANIFEST                                                                                   \
	"_s3once/runs/dt=2026-11-22/host=h/"                                                       \
	"20261122T135501Z-0123456789abcdef0123456789abcdef.jsonl.gz"

/* An object is foreign unless a mark is of this very object; those that s3once writes without a
 * mark are not. */
static void test_objects_without_a_mark(void)
{
	const struct script_step step = LISTING("false",
		OBJECT(MANIFEST, "3", "e") OBJECT("a", "3", "e1") OBJECT("a.gz", "3", "e1")
			OBJECT("b.gz", "3", "e1") OBJECT("forgotten", "3", "e1")
				OBJECT("id", "3", "e") OBJECT("two", "3", "e1"));
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, &step, 1))
		return;
	put_mark(&f, "a", "done", ".gz");
	put_mark(&f, "b.gz", "forgotten", "");
	put_mark(&f, "forgotten", "forgotten", "");
	put_mark(&f, "two", "done", "");
	struct verify verify = verify_of(&f);
	verify.id_object = "id";
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+a =a.gz +b.gz +forgotten =two ");
	CHECK_INT(ended.counts.of[FINDING_UNKNOWN], 3);
	CHECK(ended.is_complete);
	script_stop(&f.aws.server);
	end(&f);
}

/* Another etag with the checksum of the mark is a copy; without one it is a difference. */
static void test_other_etag(void)
{
	const struct script_step steps[] = {
		LISTING("false", OBJECT("copied", "3", "e2") OBJECT("replaced", "3", "e2")),
		HEAD("3", "e2", "AAAAAA=="),
		HEAD("3", "e2", "AAAAAQ=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 3))
		return;
	put_mark(&f, "copied", "done", "");
	put_mark(&f, "replaced", "done", "");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "=copied *replaced ");
	script_stop(&f.aws.server);
	end(&f);
}

/* A run that fails says where; the next one begins there, also at a mark whose key is below. */
static void test_errors_and_resume(void)
{
	const struct script_step steps[] = {
		LISTING("true", OBJECT("a", "3", "e1")),
		{SCRIPT_REPLY("400", "", "<Error><Code>Odd</Code><Message>no</Message></Error>"),
			.close = true},
		LISTING("false", OBJECT("a.gz", "3", "e1") OBJECT("c", "3", "e1")),
		LISTING("false", OBJECT("c", "3", "e1") OBJECT("b", "3", "e1")),
		{SCRIPT_REPLY("404", "", ""), .close = true},
		{SCRIPT_REPLY("404", "", ""), .close = true},
	};
	struct fixture f;
	struct verify_end ended;
	char after[sizeof ended.after];
	if (!begin(&f, steps, 6))
		return;
	put_mark(&f, "a", "claimed", ".gz");
	put_mark(&f, "c", "done", "");
	struct verify verify = verify_of(&f);
	CHECK(verify_run(&verify, &ended, &f.aws.problem) != OUTCOME_OK);
	CHECK(strstr(f.aws.problem.text, "the bucket cannot be listed"));
	CHECK_STRING(f.aws.problem.code, "Odd");
	CHECK(!ended.is_complete);
	CHECK_STRING(ended.after, "a");
	snprintf(after, sizeof after, "%s", ended.after);
	put_mark(&f, "a", "done", ".gz");
	f.seen[0] = '\0';
	verify.range.after = after;
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_STRING(f.seen, "=a.gz =c ");
	CHECK_INT(verify_run(&verify, &ended, &f.aws.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_STRING(f.seen, "warned -a.gz -c ");
	script_stop(&f.aws.server);
	CHECK(script_is_to(
		&f.aws.server.requests[2], "GET /b?encoding-type=url&list-type=2&start-after=a"));
	end(&f);
}

static bool is_stopped(void *arg)
{
	return true;
}

/* A stop is no error, whether one mark is compared or all. */
static void test_stop(void)
{
	struct fixture f;
	struct verify_end ended = {.is_complete = true};
	if (!begin(&f, NULL, 0))
		return;
	put_mark(&f, "a", "done", "");
	struct verify verify = verify_of(&f);
	verify.by = VERIFY_BY_HEAD;
	verify.place.limits.abandon = is_stopped;
	CHECK_INT(verify_one(&verify, &verify.place.own, "a", &ended, &f.aws.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "");
	end(&f);
}

static void test_subsets(void)
{
	unsigned parts[7] = {0}, percent = 0;
	char key[32];
	for (unsigned i = 0; i < 7000; i++) {
		snprintf(key, sizeof key, "logs/%u", i);
		for (unsigned part = 0; part < 7; part++) {
			const struct verify_subset subset = {.from = part, .to = part + 1, .of = 7};
			parts[part] += verify_subset_has(&subset, key);
		}
		percent += verify_subset_has(&(struct verify_subset){.to = 5, .of = 100}, key);
	}
	unsigned all = 0;
	for (unsigned part = 0; part < 7; part++) {
		CHECK(parts[part] > 850 && parts[part] < 1150);
		all += parts[part];
	}
	CHECK_INT(all, 7000);
	CHECK(percent > 250 && percent < 450);
	CHECK(verify_subset_has(&(struct verify_subset){0}, "any"));
}

int main(void)
{
	test_merge();
	test_mark_that_comes_late();
	test_claim_that_comes_late();
	test_objects_without_a_mark();
	test_other_etag();
	test_errors_and_resume();
	test_stop();
	test_subsets();
	return check_result();
}
