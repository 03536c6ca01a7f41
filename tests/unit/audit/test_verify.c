/* The merge of a listing with the marks, and the closer look at what disagrees. The S3 server is a
 * script; the marks are real. */
#include "audit.h"
#include "audit/verify.h"
#include "base/clock.h"
#include "lease/process.h"
#include "manifest/manifest_file.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <time.h>

struct fixture {
	struct audit audit;
	char seen[4000];     /* a line for each finding */
	char sentence[1000]; /* of the last finding that has one */
	/* Is done when the first finding is told, or NULL. */
	void (*meanwhile)(struct fixture *f);
};

static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	struct fixture *f = arg;
	const size_t n = strlen(f->seen);
	if (CHECK(finding < FINDING_AGED)) /* the others are only counted */
		snprintf(f->seen + n, sizeof f->seen - n, "%c%s ", "=-*+!?"[finding], key);
	const bool has_sentence =
		finding == FINDING_DIFFERS || finding == FINDING_ERROR || finding == FINDING_UNSENT;
	if (CHECK(has_sentence == (problem != NULL)) && problem)
		snprintf(f->sentence, sizeof f->sentence, "%s", problem->text);
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
	*f = (struct fixture){.seen = ""};
	return audit_begin(&f->audit, steps, n);
}

static struct verify verify_of(struct fixture *f)
{
	return (struct verify){.place = audit_place(&f->audit),
		.range = {.prefix = "", .after = NULL},
		.workers = 1,
		.visitor = {on_found, on_warned, on_progress, f}};
}

static void end(struct fixture *f)
{
	audit_end(&f->audit);
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
/* Two pages; suffixes change the order; each kind of difference once. */
static void test_merge(void)
{
	const struct script_step steps[] = {
		LISTING("true", OBJECT("a-b", "3", "e1") OBJECT("a.gz", "3", "e1")
					OBJECT("b%2Bc", "3", "e1")),
		LISTING("false", OBJECT("foreign", "3", "e1") OBJECT("size", "4", "e1")
					 OBJECT("under+way", "9", "x")),
		AUDIT_ABSENT,
		AUDIT_HEAD("4", "e1", "AAAAAA=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 4))
		return;
	AUDIT_PUT(&f.audit, "a", .state = "done", .suffix = ".gz");
	AUDIT_PUT(&f.audit, "a-b", .state = "done");
	AUDIT_PUT(&f.audit, "b+c", .state = "done");
	AUDIT_PUT(&f.audit, "claimed", .state = "claimed");
	AUDIT_PUT(&f.audit, "gone", .state = "done");
	AUDIT_PUT(&f.audit, "size", .state = "done");
	AUDIT_PUT(&f.audit, "under way", .state = "claimed");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_INT(ended.counts.listed, 6);
	CHECK_INT(ended.counts.of[FINDING_SAME], 3);
	CHECK_INT(ended.counts.of[FINDING_UNSENT], 2); /* their session has no row */
	CHECK(strstr(f.seen, "=a-b ") && strstr(f.seen, "=a.gz ") && strstr(f.seen, "=b+c "));
	CHECK(strstr(f.seen, "+foreign -gone ") && strstr(f.seen, "*size "));
	script_stop(&f.audit.aws.server);
	CHECK(script_is_to(
		&f.audit.aws.server.requests[0], "GET /b?encoding-type=url&list-type=2"));
	end(&f);
}

static void done_meanwhile(struct fixture *f)
{
	AUDIT_PUT(&f->audit, "late", .state = "done");
}

/* The marks were read before the object was uploaded, the listing afterwards. */
static void test_mark_that_comes_late(void)
{
	const struct script_step steps[] = {
		LISTING("false", OBJECT("early", "3", "e1") OBJECT("late", "3", "e1")),
		AUDIT_HEAD("3", "e1", "AAAAAA=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 2))
		return;
	f.meanwhile = done_meanwhile;
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+early =late ");
	script_stop(&f.audit.aws.server);
	end(&f);
}

static void claimed_meanwhile(struct fixture *f)
{
	AUDIT_PUT(&f->audit, "late", .state = "claimed");
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
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+early ?late ");
	script_stop(&f.audit.aws.server);
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
	AUDIT_PUT(&f.audit, "a", .state = "done", .suffix = ".gz");
	AUDIT_PUT(&f.audit, "b.gz", .state = "forgotten");
	AUDIT_PUT(&f.audit, "forgotten", .state = "forgotten");
	AUDIT_PUT(&f.audit, "two", .state = "done");
	struct verify verify = verify_of(&f);
	verify.id_object = "id";
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "+a =a.gz +b.gz +forgotten =two ");
	CHECK_INT(ended.counts.of[FINDING_UNKNOWN], 3);
	CHECK(ended.is_complete);
	script_stop(&f.audit.aws.server);
	end(&f);
}

/* Another etag with the checksum of the mark is a copy; without one it is a difference. */
static void test_other_etag(void)
{
	const struct script_step steps[] = {
		LISTING("false", OBJECT("copied", "3", "e2") OBJECT("replaced", "3", "e2")),
		AUDIT_HEAD("3", "e2", "AAAAAA=="),
		AUDIT_HEAD("3", "e2", "AAAAAQ=="),
	};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 3))
		return;
	AUDIT_PUT(&f.audit, "copied", .state = "done");
	AUDIT_PUT(&f.audit, "replaced", .state = "done");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "=copied *replaced ");
	script_stop(&f.audit.aws.server);
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
	AUDIT_PUT(&f.audit, "a", .state = "claimed", .claim_suffix = ".gz");
	AUDIT_PUT(&f.audit, "c", .state = "done");
	struct verify verify = verify_of(&f);
	CHECK(verify_run(&verify, &ended, &f.audit.problem) != OUTCOME_OK);
	CHECK(strstr(f.audit.problem.text, "the bucket cannot be listed"));
	CHECK_STRING(f.audit.problem.code, "Odd");
	CHECK(!ended.is_complete);
	CHECK_STRING(ended.after, "a");
	snprintf(after, sizeof after, "%s", ended.after);
	AUDIT_PUT(&f.audit, "a", .state = "done", .suffix = ".gz");
	f.seen[0] = '\0';
	verify.range.after = after;
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_STRING(f.seen, "=a.gz =c ");
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(ended.is_complete);
	CHECK_STRING(f.seen, "warned -a.gz -c ");
	script_stop(&f.audit.aws.server);
	CHECK(script_is_to(&f.audit.aws.server.requests[2],
		"GET /b?encoding-type=url&list-type=2&start-after=a"));
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
	AUDIT_PUT(&f.audit, "a", .state = "done");
	struct verify verify = verify_of(&f);
	verify.by = VERIFY_BY_HEAD;
	verify.place.limits.abandon = is_stopped;
	CHECK_INT(
		verify_one(&verify, &verify.place.own, "a", &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "");
	end(&f);
}

/* The findings of marks that do not say done, whatever is in the bucket. */
static void test_states(void)
{
	static const struct {
		struct audit_row mark;
		const char *session_state; /* NULL: it has no row */
		enum finding finding;
		const char *seen, *sentence;
		bool is_unread; /* its session cannot be read */
	} rows[] = {
		{{.state = "failed"}, NULL, FINDING_UNSENT, "?k ",
			"its upload has failed: the next push retries it; if the file is gone, "
			"s3once forget removes its mark"},
		{{.state = "claimed"}, NULL, FINDING_UNSENT, "?k ",
			"its uploader has ended, or sends no more heartbeats: the next push "
			"continues it"},
		{{.state = "claimed"}, "ended", FINDING_UNSENT, "?k ",
			"its uploader has ended, or sends no more heartbeats: the next push "
			"continues it"},
		{{.state = "claimed"}, "open", FINDING_UNFINISHED, "", ""},
		{{.state = "claimed"}, "ended", FINDING_UNFINISHED, "", "", true},
		{{.state = "odd"}, NULL, FINDING_ERROR, "!k ",
			"its mark is damaged, or was written by a later version of s3once, so that "
			"its object cannot be compared: s3once status shows the mark"},
		{{.state = "forgotten"}, NULL, FINDINGS, "", ""},
	};
	for (unsigned by_key = 0; by_key < 2; by_key++)
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			const struct script_step step = LISTING("false", "");
			struct fixture f;
			struct verify_end ended;
			if (!begin(&f, &step, 1))
				return;
			audit_put(&f.audit, "k", &rows[i].mark);
			if (rows[i].session_state)
				audit_put_session(&f.audit, "s", rows[i].session_state);
			if (rows[i].is_unread)
				f.audit.session_fails = OUTCOME_TRANSIENT;
			const struct verify verify = verify_of(&f);
			const enum outcome o =
				by_key ? verify_one(&verify, &verify.place.own, "k", &ended,
						 &f.audit.problem)
				       : verify_run(&verify, &ended, &f.audit.problem);
			const bool is_absent = by_key && rows[i].finding == FINDINGS;
			bool good = CHECK_INT(o, is_absent ? OUTCOME_ABSENT : OUTCOME_OK) &&
				    CHECK_INT(ended.is_complete, !is_absent) &&
				    CHECK_STRING(f.seen, rows[i].seen) &&
				    CHECK_STRING(f.sentence, rows[i].sentence);
			for (unsigned k = 0; k < FINDINGS; k++)
				good &= CHECK_INT(ended.counts.of[k], k == rows[i].finding);
			if (!good)
				fprintf(stderr, "\t%s, %s\n", rows[i].mark.state,
					by_key ? "alone" : "by the listing");
			audit_asked(&f.audit, by_key ? "" : "GET ");
			end(&f);
		}
}

/* An uploader of this host whose process has ended, as after a kill, is at work no more, whatever
 * is left of its lease. */
static void test_uploader_that_was_killed(void)
{
	for (unsigned is_gone = 0; is_gone < 2; is_gone++) {
		struct fixture f;
		struct verify_end ended;
		struct process self;
		struct item item = {0}, present = {0};
		if (!begin(&f, NULL, 0))
			return;
		process_self(&self);
		const struct {
			const char *name, *text;
		} texts[] = {{"state", "open"}, {"version", "v"}, {"host", self.host},
			{"boot", self.boot}, {"machine", self.machine}, {"board", self.board},
			{"pid_space", self.pid_space}, {"time_space", self.time_space}};
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
			if (*texts[i].text)
				item_set_string(&item, texts[i].name, texts[i].text);
		item_set_number(&item, "lease", 100000);
		item_set_number(&item, "expires", (int64_t)time(NULL) + SESSION_KEEP_S);
		item_set_number(&item, "pid", self.pid);
		item_set_number(&item, "start", (int64_t)self.start + is_gone);
		CHECK_INT(f.audit.real->write(f.audit.conn, (struct item_key){"session#s", "-"},
				  &(struct item_write){.item = &item}, &no_limits, &present,
				  &f.audit.problem),
			OUTCOME_OK);
		item_clear(&item);
		item_clear(&present);
		AUDIT_PUT(&f.audit, "k", .state = "claimed", .session = "s");
		const struct verify verify = verify_of(&f);
		CHECK_INT(verify_one(&verify, &verify.place.own, "k", &ended, &f.audit.problem),
			OUTCOME_OK);
		CHECK_STRING(f.seen, is_gone ? "?k " : "");
		CHECK_INT(ended.counts.of[is_gone ? FINDING_UNSENT : FINDING_UNFINISHED], 1);
		audit_asked(&f.audit, "");
		end(&f);
	}
}

#define CONTENT(etag, content)                                                                     \
	AUDIT_STEP("206", "Content-Length: 3\r\nETag: \"" etag "\"\r\n", content)
#define NO_SUM(size, etag)                                                                         \
	AUDIT_STEP("200", "Content-Length: " size "\r\nETag: \"" etag "\"\r\n", "")
#define CRC_OF_ABC "Nks/tw=="
#define MD5_OF_ABC "900150983cd24fb0d6963f7d28e17f72"
#define MD5_OF_ABD "4911e516e5aa21d327512e0c8b197616"

/* One mark that says done, which is compared with what S3 shows by HEAD or download. A difference
 * is confirmed by the mark, which is read again. */
static void test_comparisons(void)
{
	static const struct {
		struct audit_row mark;
		enum verify_by by;
		struct script_step steps[2];
		const char *asked, *seen, *sentence;
		unsigned bytes_read;
	} rows[] = {
		{{.state = "done"}, VERIFY_BY_HEAD, {AUDIT_HEAD("3", "e1", "AAAAAA==")}, "HEAD ",
			"=k ", ""},
		{{.state = "done"}, VERIFY_BY_HEAD, {AUDIT_ABSENT}, "HEAD ", "-k ", ""},
		{{.state = "done"}, VERIFY_BY_HEAD, {AUDIT_HEAD("4", "e1", "AAAAAA==")}, "HEAD ",
			"*k ", "its size differs: 4 bytes in S3, and 3 bytes when it was uploaded"},
		{{.state = "done"}, VERIFY_BY_HEAD, {AUDIT_HEAD("3", "e1", "AAAAAQ==")}, "HEAD ",
			"*k ",
			"its content differs: S3 has the crc32c AAAAAQ==, and its mark AAAAAA=="},
		{{.state = "done"}, VERIFY_BY_HEAD, {NO_SUM("3", "e2")}, "HEAD ", "*k ",
			"its etag differs: e2 in S3, and e1 when it was uploaded; --download shows "
			"whether its content differs, too"},
		{{.state = "done", .etag = ""}, VERIFY_BY_HEAD, {NO_SUM("3", "e2")}, "HEAD ", "!k ",
			"its size is right, but S3 returns no checksum, and its mark has no etag: "
			"--download compares the content"},
		/* The content is read unless HEAD shows a difference already. */
		{{.state = "done"}, VERIFY_BY_DOWNLOAD, {AUDIT_HEAD("3", "e1", "AAAAAQ==")},
			"HEAD ", "*k ",
			"its content differs: S3 has the crc32c AAAAAQ==, and its mark AAAAAA=="},
		{{.state = "done", .sum = "crc32c:" CRC_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{NO_SUM("3", "e1"), CONTENT("e1", "abc")}, "HEAD GET ", "=k ", "", 3},
		{{.state = "done", .sum = "crc32c:" CRC_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{NO_SUM("3", "e2"), CONTENT("e2", "abc")}, "HEAD GET ", "=k ", NULL, 3},
		{{.state = "done", .sum = "crc32c:" CRC_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{AUDIT_HEAD("3", "e1", CRC_OF_ABC), CONTENT("e1", "abd")}, "HEAD GET ",
			"*k ",
			"its content differs: S3 has the crc32c 4oFbXA==, and its mark " CRC_OF_ABC,
			3},
		{{.state = "done", .sum = "crc32c:" CRC_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{NO_SUM("3", "e1"), CONTENT("e2", "abc")}, "HEAD GET ", "*k ",
			"it was replaced while it was read"},
		{{.state = "done"}, VERIFY_BY_DOWNLOAD, {NO_SUM("3", "e1"), AUDIT_ABSENT},
			"HEAD GET ", "-k ", NULL},
		{{.state = "done", .sum = "", .md5 = 1, .etag = MD5_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{NO_SUM("3", MD5_OF_ABC), CONTENT(MD5_OF_ABC, "abc")}, "HEAD GET ", "=k ",
			"", 3},
		{{.state = "done", .sum = "", .md5 = 1, .etag = MD5_OF_ABC}, VERIFY_BY_DOWNLOAD,
			{NO_SUM("3", MD5_OF_ABC), CONTENT(MD5_OF_ABC, "abd")}, "HEAD GET ", "*k ",
			"its content differs: its MD5 is " MD5_OF_ABD ", and was " MD5_OF_ABC
			" when it was uploaded",
			3},
		{{.state = "done", .sum = ""}, VERIFY_BY_DOWNLOAD, {NO_SUM("3", "e1")}, "HEAD ",
			"!k ", "its mark has no checksum that its content can be compared with"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, rows[i].steps, 2))
			return;
		struct audit_row mark = rows[i].mark;
		mark.version_id = "v1"; /* another version than the current one counts as well */
		audit_put(&f.audit, "k", &mark);
		struct verify verify = verify_of(&f);
		verify.by = rows[i].by;
		bool good = CHECK_INT(verify_one(&verify, &verify.place.own, "k", &ended,
					      &f.audit.problem),
				    OUTCOME_OK) &&
			    CHECK_STRING(f.seen, rows[i].seen) &&
			    CHECK_INT(ended.counts.bytes_read, rows[i].bytes_read) &&
			    CHECK_INT(ended.counts.looked_at, 1) && CHECK(ended.is_complete);
		if (rows[i].sentence)
			good &= CHECK_STRING(f.sentence, rows[i].sentence);
		good &= audit_asked(&f.audit, rows[i].asked);
		good &= CHECK(script_is_to(&f.audit.aws.server.requests[0], "HEAD /b/k"));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		end(&f);
	}
}

/* A failure of S3 is that of one object, and names the permission that may be missing. */
static void test_refused(void)
{
	const struct script_step steps[] = {
		LISTING("false", ""), AUDIT_STEP("403", "", ""), AUDIT_HEAD("3", "e1", "AAAAAA==")};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 3))
		return;
	AUDIT_PUT(&f.audit, "a", .state = "done");
	AUDIT_PUT(&f.audit, "b", .state = "done");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "!a =b ");
	CHECK(strstr(f.sentence, "S3 does not show it; allow s3:GetObject and s3:ListBucket"));
	CHECK(ended.is_complete);
	CHECK_INT(ended.counts.looked_at, 2);
	audit_asked(&f.audit, "GET HEAD HEAD ");
	end(&f);
}

/* The changes of another uploader, each before the mark is read again. */
static void now_it_is_right(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "done", .size = 4, .etag = "e2");
}

static void now_it_is_claimed(struct audit *audit)
{
	audit_put_session(audit, "s", "open");
	AUDIT_PUT(audit, "k", .state = "claimed");
}

static void now_it_is_gone(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "forgotten");
}

static void now_it_is_another(struct audit *audit)
{
	static int size = 100;
	AUDIT_PUT(audit, "k", .state = "done", .size = size++);
	audit->before_get = now_it_is_another;
}

/* A difference counts only if the mark is still the same; otherwise the new mark is compared. */
static void test_marks_that_change(void)
{
	static const struct {
		void (*before_get)(struct audit *audit);
		const char *asked, *seen;
		enum finding finding;
	} rows[] = {
		{NULL, "GET HEAD ", "*k ", FINDING_DIFFERS},
		{now_it_is_right, "GET HEAD HEAD ", "=k ", FINDING_SAME},
		{now_it_is_claimed, "GET HEAD ", "", FINDING_UNFINISHED},
		{now_it_is_gone, "GET HEAD ", "", FINDING_NOTHING},
		{now_it_is_another, "GET HEAD HEAD HEAD HEAD HEAD ", "", FINDING_UNFINISHED},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step steps[] = {LISTING("false", OBJECT("k", "4", "e2")),
			AUDIT_HEAD("4", "e2", "AAAAAA=="), AUDIT_HEAD("4", "e2", "AAAAAA=="),
			AUDIT_HEAD("4", "e2", "AAAAAA=="), AUDIT_HEAD("4", "e2", "AAAAAA=="),
			AUDIT_HEAD("4", "e2", "AAAAAA==")};
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, steps, 6))
			return;
		AUDIT_PUT(&f.audit, "k", .state = "done");
		f.audit.before_get = rows[i].before_get;
		const struct verify verify = verify_of(&f);
		CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
		CHECK_STRING(f.seen, rows[i].seen);
		CHECK_INT(ended.counts.of[rows[i].finding], 1);
		audit_asked(&f.audit, rows[i].asked);
		end(&f);
	}
}

static void now_it_is_abd(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "done", .sum = "crc32c:4oFbXA==");
}

static void then_it_is_abd(struct audit *audit)
{
	audit->before_get = now_it_is_abd;
}

/* An object that is checked again for a changed mark counts again. */
static void test_bytes_of_two_downloads(void)
{
	const struct script_step steps[] = {
		NO_SUM("3", "e1"), CONTENT("e1", "abd"), NO_SUM("3", "e1"), CONTENT("e1", "abd")};
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, steps, 4))
		return;
	AUDIT_PUT(&f.audit, "k", .state = "done", .sum = "crc32c:" CRC_OF_ABC);
	f.audit.before_get = then_it_is_abd;
	struct verify verify = verify_of(&f);
	verify.by = VERIFY_BY_DOWNLOAD;
	CHECK_INT(
		verify_one(&verify, &verify.place.own, "k", &ended, &f.audit.problem), OUTCOME_OK);
	CHECK_STRING(f.seen, "=k ");
	CHECK_INT(ended.counts.bytes_read, 6);
	audit_asked(&f.audit, "HEAD GET HEAD GET ");
	end(&f);
}

/* A mark that agrees is not read again. One that cannot be read again proves no difference. */
static void test_reading_again(void)
{
	for (unsigned is_same = 0; is_same < 2; is_same++) {
		const struct script_step same = AUDIT_HEAD("3", "e1", "AAAAAA=="),
					 other = AUDIT_HEAD("3", "e1", "AAAAAQ==");
		const struct script_step steps[] = {
			LISTING("false", OBJECT("k", "3", "e1")), is_same ? same : other};
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, steps, 2))
			return;
		AUDIT_PUT(&f.audit, "k", .state = "done");
		f.audit.before_get = now_it_is_gone;
		f.audit.get_fails = OUTCOME_DENIED;
		struct verify verify = verify_of(&f);
		verify.by = VERIFY_BY_HEAD;
		CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
		CHECK_STRING(f.seen, is_same ? "=k " : "!k ");
		CHECK_STRING(
			f.sentence, is_same ? "" : "its mark cannot be read: as the test wants");
		CHECK_INT(f.audit.before_get != NULL, is_same);
		audit_asked(&f.audit, "GET HEAD ");
		end(&f);
	}
}

/* A mark is found by its own key, and by that of its object. */
static void test_one_key(void)
{
	static const struct {
		const char *key, *suffix, *given;
		bool is_found;
		const char *state; /* NULL: done */
	} rows[] = {{"a", ".gz", "a", true}, {"a", ".gz", "a.gz", true}, {"a", NULL, "a", true},
		{"a", NULL, "a.gz", false}, {"a", ".gz", "a.xz", false},
		{"b", NULL, "a", false}, /* "a.gz" may be another file's */
		{"a", NULL, "a.gz", false, "failed"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = AUDIT_HEAD("3", "e1", "AAAAAA==");
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, &step, 1))
			return;
		AUDIT_PUT(&f.audit, rows[i].key, .state = rows[i].state ? rows[i].state : "done",
			.suffix = rows[i].suffix);
		const struct verify verify = verify_of(&f);
		CHECK_INT(verify_one(&verify, &verify.place.own, rows[i].given, &ended,
				  &f.audit.problem),
			rows[i].is_found ? OUTCOME_OK : OUTCOME_ABSENT);
		CHECK_INT(ended.counts.of[FINDING_SAME], rows[i].is_found);
		CHECK_INT(ended.is_complete, rows[i].is_found);
		if (!audit_asked(&f.audit, rows[i].is_found ? "HEAD " : ""))
			fprintf(stderr, "\t%s for %s\n", rows[i].given, rows[i].key);
		end(&f);
	}
}

/* A run ends after so many tasks in a row without an answer. The next one begins behind the last
 * object that has a finding. */
static void test_no_answer(void)
{
	static const struct {
		struct script_step none;
		bool has_answer; /* the fourth one has */
		const char *seen, *after;
	} runs[] = {{AUDIT_STEP("500", "", ""), false, "!a !b !c !d !e !f !g ", "g"},
		{AUDIT_STEP("503", "", ""), false, "!a !b !c !d !e !f !g ", "g"},
		{{.close = true}, false, "!a !b !c !d !e !f !g ", "g"},
		{AUDIT_STEP("403", "", ""), true, "!a !b !c =d !e !f !g !h !i ", "i"},
		{AUDIT_STEP("500", "", ""), true, "!a !b !c =d !e !f !g !h !i ", "i"}};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct script_step steps[10] = {LISTING("false", "")};
		const struct script_step answer = AUDIT_HEAD("3", "e1", "AAAAAA==");
		struct fixture f;
		struct verify_end ended;
		for (unsigned k = 1; k < 10; k++)
			steps[k] = runs[i].has_answer && k == 4 ? answer : runs[i].none;
		if (!begin(&f, steps, 10))
			return;
		for (char key[] = "a"; *key <= 'i'; ++*key)
			AUDIT_PUT(&f.audit, key, .state = "done");
		const struct verify verify = verify_of(&f);
		const enum outcome o = verify_run(&verify, &ended, &f.audit.problem);
		CHECK_INT(o == OUTCOME_OK, runs[i].has_answer);
		CHECK_INT(ended.is_complete, runs[i].has_answer);
		CHECK_STRING(f.seen, runs[i].seen);
		if (!CHECK_STRING(ended.after, runs[i].after))
			fprintf(stderr, "\trow %zu\n", i);
		script_stop(&f.audit.aws.server);
		end(&f);
	}
}

/* A server out of reach has no answer for any object. So the first task without one ends the run.
 */
static void test_out_of_reach(void)
{
	struct script_step step = LISTING("false", "");
	struct fixture f;
	struct verify_end ended;
	step.gone = true;
	if (!begin(&f, &step, 1))
		return;
	AUDIT_PUT(&f.audit, "a", .state = "done");
	AUDIT_PUT(&f.audit, "b", .state = "done");
	const struct verify verify = verify_of(&f);
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_SETUP);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "");
	CHECK_STRING(ended.after, "");
	audit_asked(&f.audit, "GET ");
	end(&f);
}

/* Of the unfinished tasks, the one with the least key counts, in any order, and of all keys the one
 * that the run has reached. */
static void test_tasks_that_are_left(const char *merged, const char *after)
{
	struct fixture f;
	struct verify_tasks tasks;
	struct verify_end ended = {0};
	snprintf(ended.after, sizeof ended.after, "%s", merged);
	if (!begin(&f, NULL, 0))
		return;
	struct verify verify = verify_of(&f);
	verify.place.limits.abandon = is_stopped;
	CHECK(verify_tasks_init(&tasks, &verify, &f.audit.problem));
	verify_tasks_add(&tasks, NULL, "c", "b");
	verify_tasks_add(&tasks, NULL, "b", "a");
	verify_tasks_add(&tasks, NULL, "d", "c");
	CHECK_INT(verify_tasks_end(&tasks, OUTCOME_OK, true, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(ended.after, after);
	CHECK_STRING(f.seen, "");
	audit_asked(&f.audit, "");
	end(&f);
}

/* The first of several reasons to end is reported. */
static void test_first_reason(void)
{
	struct fixture f;
	struct verify_tasks tasks;
	struct verify_end ended = {0};
	if (!begin(&f, NULL, 0))
		return;
	const struct verify verify = verify_of(&f);
	CHECK(verify_tasks_init(&tasks, &verify, &f.audit.problem));
	audit_pool_stop(&tasks.pool, OUTCOME_SETUP, PROBLEM("the first"));
	audit_pool_stop(&tasks.pool, OUTCOME_LOCAL, PROBLEM("the second"));
	CHECK_INT(verify_tasks_end(&tasks, OUTCOME_OK, true, &ended, &f.audit.problem),
		OUTCOME_SETUP);
	CHECK_STRING(f.audit.problem.text, "the first");
	CHECK(!ended.is_complete);
	audit_asked(&f.audit, "");
	end(&f);
}

static bool is_stopped_later(void *arg)
{
	const struct fixture *f = arg;
	return *f->seen != '\0'; /* after the first finding */
}

/* A run that is stopped is not complete, and says behind which key the next one begins. */
static void test_stop_in_between(void)
{
	const struct script_step step = LISTING(
		"false", OBJECT("a", "3", "e1") OBJECT("b", "3", "e1") OBJECT("c", "3", "e1"));
	struct fixture f;
	struct verify_end ended;
	if (!begin(&f, &step, 1))
		return;
	for (char key[] = "a"; *key <= 'c'; ++*key)
		AUDIT_PUT(&f.audit, key, .state = "done");
	struct verify verify = verify_of(&f);
	verify.place.limits.abandon = is_stopped_later;
	verify.place.limits.abandon_arg = &f;
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "=a ");
	CHECK_STRING(ended.after, "a");
	audit_asked(&f.audit, "GET ");
	end(&f);
}

static atomic_bool has_begun;

static void begin_answer(void *arg)
{
	atomic_store(&has_begun, true);
}

static bool is_stopped_now(void *arg)
{
	return atomic_load(&has_begun);
}

/* A request that is under way at a stop is left to the next run. */
static void test_stop_of_a_request(void)
{
	struct script_step steps[] = {LISTING("false", OBJECT("a", "3", "e1")), {.reply = NULL}};
	struct fixture f;
	struct verify_end ended;
	steps[1].meanwhile = begin_answer;
	atomic_store(&has_begun, false);
	if (!begin(&f, steps, 2))
		return;
	f.audit.aws.server.steps[1].close = false;
	AUDIT_PUT(&f.audit, "a", .state = "done");
	AUDIT_PUT(&f.audit, "b", .state = "done");
	struct verify verify = verify_of(&f);
	verify.place.limits.abandon = is_stopped_now;
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "=a ");
	CHECK_STRING(ended.after, "a");
	script_stop(&f.audit.aws.server);
	end(&f);
}

/* Before the listing has answered, a stop leaves everything to the next run. */
static void test_stop_of_the_listing(void)
{
	const struct script_step step = {.meanwhile = begin_answer};
	struct fixture f;
	struct verify_end ended;
	atomic_store(&has_begun, false);
	if (!begin(&f, &step, 1))
		return;
	f.audit.aws.server.steps[0].close = false;
	AUDIT_PUT(&f.audit, "k", .state = "done");
	struct verify verify = verify_of(&f);
	verify.range.after = "j";
	verify.place.limits.abandon = is_stopped_now;
	CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
	CHECK(!ended.is_complete);
	CHECK_STRING(f.seen, "");
	CHECK_STRING(ended.after, "j");
	script_stop(&f.audit.aws.server);
	end(&f);
}

static enum outcome refuse_query(struct store_conn *conn, const struct store_range *range,
	const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
	struct problem *ret_problem)
{
	return outcome_error(ret_problem, OUTCOME_DENIED, "as the test wants");
}

/* Without the listing, or without the marks, nothing is said of any object. */
static void test_nothing_to_compare(void)
{
	for (unsigned has_listing = 0; has_listing < 2; has_listing++) {
		const struct script_step refused = AUDIT_ERROR("403", "AccessDenied"),
					 listing = LISTING("false", OBJECT("k", "3", "e1"));
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, has_listing ? &listing : &refused, 1))
			return;
		AUDIT_PUT(&f.audit, "k", .state = "done");
		if (has_listing)
			f.audit.ops.query = refuse_query;
		const struct verify verify = verify_of(&f);
		CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_DENIED);
		CHECK(strstr(f.audit.problem.text,
			has_listing ? "the marks cannot be read"
				    : "the bucket's listing is refused; allow s3:ListBucket of "
				      "the bucket"));
		CHECK(!ended.is_complete);
		CHECK_STRING(f.seen, "");
		audit_asked(&f.audit, "GET ");
		end(&f);
	}
}

/* An object without a mark is unknown only while marks are kept: an older one may have had one. */
static void test_aged(void)
{
	static const struct {
		uint64_t keep_marks_s;
		const char *seen;
		unsigned aged;
	} rows[] = {{0, "+a +b +c +d ", 0}, {1000, "+b +c +d ", 1}};
	char objects[1200], young[30], future[30];
	clock_format_iso((int64_t)time(NULL) - 500, young);
	clock_format_iso((int64_t)time(NULL) + 5000, future); /* by a clock that is ahead */
	snprintf(objects, sizeof objects,
		"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n<ListBucketResult>"
		"<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
		"<Contents><Key>a</Key><Size>1</Size><LastModified>2001-01-01T00:00:00.000Z"
		"</LastModified></Contents><Contents><Key>b</Key><Size>1</Size><LastModified>%s"
		"</LastModified></Contents>" OBJECT("c", "1",
			"e") "<Contents><Key>d</Key><Size>1</Size><LastModified>%s</LastModified></Contents>"
			     "</ListBucketResult>",
		young, future);
	for (unsigned i = 0; i < 2; i++) {
		const struct script_step step = {objects, .close = true};
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, &step, 1))
			return;
		struct verify verify = verify_of(&f);
		verify.keep_marks_s = rows[i].keep_marks_s;
		CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
		CHECK_STRING(f.seen, rows[i].seen);
		CHECK_INT(ended.counts.of[FINDING_AGED], rows[i].aged);
		audit_asked(&f.audit, "GET ");
		end(&f);
	}
}

/* Only the objects of the subset are compared more closely; a number of bytes makes it as large. A
 * failed mark is looked at in any case. */
static void test_subset_of_a_run(void)
{
	static const struct {
		struct verify_subset subset;
		uint64_t looked_at;
	} rows[] = {{{.of = 0}, 3}, {{.from = 1, .to = 1, .of = 2}, 1}, {{.bytes = 6}, 3},
		{{.bytes = 1000}, 3}, {{.bytes = 1, .to = 1}, 1}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step steps[] = {
			LISTING("false", OBJECT("a", "3", "e1") OBJECT("b", "3", "e1")),
			AUDIT_HEAD("3", "e1", "AAAAAA=="), AUDIT_HEAD("3", "e1", "AAAAAA==")};
		struct fixture f;
		struct verify_end ended;
		if (!begin(&f, steps, 3))
			return;
		/* The size of its object counts, and not that of its file. */
		AUDIT_PUT(&f.audit, "a", .state = "done", .size = 1000000, .object_size = 3,
			.object_sum = "crc32c:AAAAAA==");
		AUDIT_PUT(&f.audit, "b", .state = "done");
		/* It says nothing of its object, and so does not count. */
		AUDIT_PUT(&f.audit, "c", .state = "failed", .size = 1000000);
		struct verify verify = verify_of(&f);
		verify.by = VERIFY_BY_HEAD;
		verify.subset = rows[i].subset;
		CHECK_INT(verify_run(&verify, &ended, &f.audit.problem), OUTCOME_OK);
		if (!CHECK_INT(ended.counts.looked_at, rows[i].looked_at))
			fprintf(stderr, "\trow %zu\n", i);
		CHECK_STRING(f.seen, "=a =b ?c ");
		script_stop(&f.audit.aws.server);
		end(&f);
	}
}

/* An entry of a manifest that is stored in a temporary file. */
static int make_manifest(const struct manifest_entry *entries, size_t n)
{
	struct manifest_spool *spool = NULL;
	struct problem problem;
	char bytes[20000];
	CHECK_INT(manifest_spool_new(0, &spool, &problem), 0);
	for (size_t i = 0; i < n; i++) {
		char *line = manifest_entry_line(&entries[i]);
		manifest_spool_add(spool, line);
		free(line);
	}
	CHECK(manifest_spool_finish(spool, &problem));
	const struct http_body body = manifest_spool_body(spool);
	const long size = body.read(body.arg, bytes, sizeof bytes);
	const int fd = manifest_temporary_file(&problem);
	CHECK(fd >= 0 && write(fd, bytes, (size_t)size) == size);
	manifest_spool_free(spool);
	return fd;
}

static const struct manifest_entry entry_of_abc = {.event = "uploaded",
	.bucket = "b",
	.key = "k",
	.path = "/k",
	.content = "",
	.version_id = "",
	.etag = "e1",
	.size = 3,
	.sums[CHECKSUM_CRC32C] = CRC_OF_ABC};

/* The objects of a manifest are compared as those of marks are, but without a mark to read again,
 * and each in the version that the run has uploaded. */
static void test_manifest(void)
{
	const struct script_step steps[] = {AUDIT_HEAD("3", "e1", CRC_OF_ABC),
		AUDIT_HEAD("3", "e1", "AAAAAQ=="), NO_SUM("3", "e2"), AUDIT_ABSENT,
		AUDIT_STEP("403", "", "")};
	struct manifest_entry entries[6];
	struct fixture f;
	struct verify_end ended;
	bool is_damaged = true;
	for (size_t i = 0; i < 6; i++)
		entries[i] = entry_of_abc;
	entries[0].version_id = "v1";
	entries[2].etag = "";
	entries[4].version_id = "v2";
	entries[5].bucket = "other";
	if (!begin(&f, steps, 5))
		return;
	struct verify verify = verify_of(&f);
	verify.by = VERIFY_BY_HEAD;
	verify.place.store = NULL;
	verify.place.own.marks = NULL;
	const int fd = make_manifest(entries, 6);
	CHECK_INT(verify_manifest(&verify, "b", fd, &ended, &is_damaged, &f.audit.problem),
		OUTCOME_OK);
	CHECK(ended.is_complete && !is_damaged);
	CHECK_STRING(f.seen, "=k *k !k -k !k !k ");
	CHECK_STRING(f.sentence, "it is an object of bucket other");
	CHECK_INT(ended.counts.listed, 6);
	CHECK_INT(ended.counts.looked_at, 5);
	audit_asked(&f.audit, "HEAD HEAD HEAD HEAD HEAD ");
	CHECK(script_is_to(&f.audit.aws.server.requests[0], "HEAD /b/k?versionId=v1"));
	CHECK(script_is_to(&f.audit.aws.server.requests[1], "HEAD /b/k"));
	close(fd);
	end(&f);
}

/* Of several checksums, --download takes the strongest, and HEAD the one that the run has sent. */
static void test_sums_of_a_manifest(void)
{
	static const struct {
		const char *crc, *sha256, *etag;
		enum verify_by by;
		const char *seen;
		bool is_in_parts; /* HEAD shows the checksum of two parts */
	} rows[] = {
		{"AAAAAQ==", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "e1",
			VERIFY_BY_DOWNLOAD, "=k "},
		{CRC_OF_ABC, "AAAAv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "e1",
			VERIFY_BY_DOWNLOAD, "*k "},
		{CRC_OF_ABC, "AAAAv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "e2", VERIFY_BY_HEAD,
			"=k "},
		{"AAAAAQ==-2", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "e2",
			VERIFY_BY_DOWNLOAD, "=k "},
		{"AAAAAQ==-2", "", "e2", VERIFY_BY_HEAD, "=k ", true},
		{"AAAAAA==-2", "", "e2", VERIFY_BY_HEAD, "*k ", true},
		{"AAAAAQ==-2", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=-2", "e2",
			VERIFY_BY_HEAD, "=k ", true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const bool by_head = rows[i].by == VERIFY_BY_HEAD;
		const struct script_step with_sum = AUDIT_HEAD("3", "e1", CRC_OF_ABC),
					 of_parts = AUDIT_HEAD("3", "e1", "AAAAAQ==-2"),
					 without = NO_SUM("3", "e1");
		const struct script_step steps[] = {!by_head              ? without
						    : rows[i].is_in_parts ? of_parts
									  : with_sum,
			CONTENT("e1", "abc")};
		struct manifest_entry entry = entry_of_abc;
		struct fixture f;
		struct verify_end ended;
		bool is_damaged;
		entry.etag = rows[i].etag;
		snprintf(entry.sums[CHECKSUM_CRC32C], S3_SUM_MAX, "%s", rows[i].crc);
		snprintf(entry.sums[CHECKSUM_SHA256], S3_SUM_MAX, "%s", rows[i].sha256);
		if (!begin(&f, steps, 2))
			return;
		struct verify verify = verify_of(&f);
		verify.by = rows[i].by;
		verify.place.store = NULL;
		verify.place.own.marks = NULL;
		const int fd = make_manifest(&entry, 1);
		CHECK_INT(verify_manifest(&verify, "b", fd, &ended, &is_damaged, &f.audit.problem),
			OUTCOME_OK);
		if (!CHECK_STRING(f.seen, rows[i].seen) ||
			!CHECK_INT(ended.counts.bytes_read, by_head ? 0 : 3))
			fprintf(stderr, "\trow %zu: %s\n", i, f.sentence);
		audit_asked(&f.audit, by_head ? "HEAD " : "HEAD GET ");
		close(fd);
		end(&f);
	}
}

/* A subset, a stop, and a manifest that is damaged, or cannot be read. */
static void test_end_of_a_manifest(void)
{
	static const struct {
		struct verify_subset subset;
		bool is_stopped, is_damaged;
		enum outcome outcome;
		bool is_complete;
		unsigned looked_at;
		bool is_unreadable;
	} rows[] = {{{.of = 0}, false, false, OUTCOME_OK, true, 1},
		{{.from = 1, .to = 1, .of = 2}, false, false, OUTCOME_OK, true, 0},
		{{.from = 1, .to = 1, .of = 2, .bytes = 3}, false, false, OUTCOME_OK, true, 1},
		{{.of = 0}, true, false, OUTCOME_OK, false, 0},
		{{.of = 0}, false, true, OUTCOME_LOCAL, false, 0},
		{{.of = 0}, false, false, OUTCOME_LOCAL, false, 0, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step step = AUDIT_HEAD("3", "e1", CRC_OF_ABC);
		struct fixture f;
		struct verify_end ended;
		bool is_damaged;
		if (!begin(&f, &step, 1))
			return;
		struct verify verify = verify_of(&f);
		verify.by = VERIFY_BY_HEAD;
		verify.place.store = NULL;
		verify.place.own.marks = NULL;
		verify.subset = rows[i].subset;
		if (rows[i].is_stopped)
			verify.place.limits.abandon = is_stopped;
		const int fd = rows[i].is_unreadable ? open(".", O_RDONLY | O_CLOEXEC)
						     : make_manifest(&entry_of_abc, 1);
		if (rows[i].is_damaged)
			CHECK_INT(ftruncate(fd, 30), 0);
		bool good = CHECK_INT(verify_manifest(&verify, "b", fd, &ended, &is_damaged,
					      &f.audit.problem),
				    rows[i].outcome) &&
			    CHECK_INT(is_damaged, rows[i].is_damaged) &&
			    CHECK_INT(ended.is_complete, rows[i].is_complete) &&
			    CHECK_INT(ended.counts.looked_at, rows[i].looked_at);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		script_stop(&f.audit.aws.server);
		close(fd);
		end(&f);
	}
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
	test_states();
	test_uploader_that_was_killed();
	test_comparisons();
	test_refused();
	test_marks_that_change();
	test_bytes_of_two_downloads();
	test_reading_again();
	test_one_key();
	test_no_answer();
	test_out_of_reach();
	test_tasks_that_are_left("z", "a");
	test_tasks_that_are_left("A", "A");
	test_first_reason();
	test_stop_in_between();
	test_stop_of_a_request();
	test_stop_of_the_listing();
	test_nothing_to_compare();
	test_aged();
	test_subset_of_a_run();
	test_manifest();
	test_sums_of_a_manifest();
	test_end_of_a_manifest();
	test_subsets();
	return check_result();
}
