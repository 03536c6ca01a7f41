/* gc on a mark and the upload that it records. The S3 server is a script; the marks are real. */
#include "audit.h"
#include "audit/forget.h"
#include "base/clock.h"
#include <poll.h>
#include <stdatomic.h>
#include <time.h>

#define LEASE_MS 600
#define OLD_S    1000 /* seconds that a mark has to be old */

/* The mark under the key "k", and the reports about it. */
struct collecting {
	struct audit audit;
	struct session *session;
	struct call_limits limits;
	char said[1000];
	bool has_mark;
};

static void note_report(void *arg, const struct mark_report *report)
{
	static const char *const fates[] = {
		"forgotten", "forgettable", "aborted", "abortable", "kept", "damaged", "failed"};
	struct collecting *c = arg;
	const size_t n = strlen(c->said);
	snprintf(c->said + n, sizeof c->said - n, "%s %s%s %s (%s%s%s)", report->key,
		fates[report->fate], report->suffix, mark_state_name(report->state),
		report->upload_id, *report->why ? ", " : "", report->why);
	CHECK(!report->problem == (report->fate != FATE_FAILED));
	CHECK(!report->problem || *report->problem->text);
}

static bool begin(
	struct collecting *c, const struct script_step *script, size_t n, uint64_t lease_ms)
{
	*c = (struct collecting){.has_mark = false};
	if (!audit_begin(&c->audit, script, n))
		return false;
	const struct session_options options = {.store = c->audit.store,
		.lease_ns = lease_ms * NS_PER_MS,
		.heartbeat_ns = 100 * LEASE_MS * NS_PER_MS};
	return CHECK_INT(session_new(&options, &c->session), 0);
}

static enum outcome run_gc(struct collecting *c, bool only_show, uint64_t keep_marks_s)
{
	atomic_bool has_mark = false;
	struct collect_options options = {.clearing = {.place = audit_place(&c->audit),
						  .only_show = only_show,
						  .reporter = {note_report, c}},
		.session = c->session,
		.source = "h:gc",
		.keep_uploads_s = OLD_S,
		.keep_marks_s = keep_marks_s,
		.has_mark = &has_mark};
	options.clearing.place.limits = c->limits;
	const enum outcome o = collect(&options, "", &c->audit.problem);
	c->has_mark = has_mark;
	return o;
}

static void end(struct collecting *c)
{
	session_close(c->session, c->audit.conn);
	audit_end(&c->audit);
}

#define PARTS(some)                                                                                \
	AUDIT_STEP("200", "",                                                                      \
		"<ListPartsResult><IsTruncated>false</IsTruncated>" some "</ListPartsResult>")
#define NO_PARTS PARTS("")
#define A_PART                                                                                     \
	PARTS("<Part><PartNumber>1</PartNumber><ETag>&quot;e&quot;</ETag><Size>5</Size></Part>")
#define ABORTED AUDIT_STEP("204", "", "")
#define GONE    AUDIT_ERROR("404", "NoSuchUpload")

#define FAILED_MARK .state = "failed", .error = "it was cut", .upload = "u1", .upload_size = 9
#define MAY_BE_IT   "an object is there that its upload may have become: the next run looks"

/* One mark, what is asked of S3, and what is said of it. `state` is that of the mark afterwards,
 * and `upload` whether it still records the upload. */
static const struct {
	const char *what;
	struct audit_row mark;
	struct script_step steps[8];
	const char *asked, *said, *state;
	bool upload, keeps_time, only_show;
	uint64_t keep_marks_s; /* 0: for ever */
} rows[] = {
	{"aborted", {FAILED_MARK}, {AUDIT_ABSENT, NO_PARTS, ABORTED, GONE}, "HEAD GET DELETE GET ",
		"k aborted failed (u1)", "failed"},
	{"no part is left", {FAILED_MARK}, {AUDIT_ABSENT, A_PART, ABORTED, NO_PARTS},
		"HEAD GET DELETE GET ", "k aborted failed (u1)", "failed"},
	{"a part came after the abort", {FAILED_MARK},
		{AUDIT_ABSENT, A_PART, ABORTED, A_PART, ABORTED, NO_PARTS},
		"HEAD GET DELETE GET DELETE GET ", "k aborted failed (u1)", "failed"},
	{"S3 has it no more, and no mark says done", {FAILED_MARK}, {AUDIT_ABSENT, GONE},
		"HEAD GET ", "k aborted failed (u1)", "failed"},
	{"the abort fails", {FAILED_MARK}, {AUDIT_ABSENT, NO_PARTS, AUDIT_ERROR("403", "Denied")},
		"HEAD GET DELETE ", "k failed failed (u1)", "failed", true, true},
	{"the list fails", {FAILED_MARK}, {AUDIT_ABSENT, AUDIT_ERROR("403", "Denied")}, "HEAD GET ",
		"k failed failed (u1)", "failed", true, true},
	{"the object is not shown", {FAILED_MARK}, {AUDIT_STEP("403", "", "")}, "HEAD ",
		"k failed failed (u1)", "failed", true, true},
	{"it cannot be asked for", {FAILED_MARK}, {AUDIT_STEP("405", "", "")}, "HEAD ",
		"k failed failed (u1)", "failed", true, true},
	{"an object of its size", {FAILED_MARK}, {AUDIT_HEAD("9", "e2", "AAAAAQ==")}, "HEAD ",
		"k kept failed (u1, " MAY_BE_IT ")", "failed", true, true},
	{"an object of another size", {FAILED_MARK},
		{AUDIT_HEAD("8", "e2", "AAAAAQ=="), NO_PARTS, ABORTED, GONE},
		"HEAD GET DELETE GET ", "k aborted failed (u1)", "failed"},
	{"any object, which it may have become compressed",
		{FAILED_MARK, .upload_encoding = "zstd", .upload_suffix = ".zst"},
		{AUDIT_HEAD("8", "e2", "AAAAAQ==")}, "HEAD ",
		"k kept.zst failed (u1, " MAY_BE_IT ")", "failed", true, true},
	{"the object that was done before", {FAILED_MARK, .size = 9},
		{AUDIT_HEAD("9", "e1", "AAAAAA=="), NO_PARTS, ABORTED, GONE},
		"HEAD GET DELETE GET ", "k aborted failed (u1)", "failed"},
	{"claimed, and its session is swept",
		{.state = "claimed", .upload = "u1", .upload_size = 9},
		{AUDIT_ABSENT, NO_PARTS, ABORTED, GONE}, "HEAD GET DELETE GET ",
		"k aborted claimed (u1)", "failed"},
	{"done, whatever upload there was", {.state = "done", .upload = "u1", .upload_size = 9}, {},
		"", "", "done", true, true},
	{"failed without an upload", {.state = "failed", .error = "e"}, {}, "", "", "failed", false,
		true},
	{"only shown", {FAILED_MARK}, {}, "", "k abortable failed (u1)", "failed", true, true,
		true},
	{"damaged", {.state = "odd"}, {}, "", "k damaged unreadable ()", "unreadable", false, true},
	{"too young", {FAILED_MARK, .at = OLD_S / 2}, {}, "", "", "failed", true, true, false, 1},
	{"old enough", {FAILED_MARK, .at = 2 * OLD_S}, {AUDIT_ABSENT, NO_PARTS, ABORTED, GONE},
		"HEAD GET DELETE GET ", "k aborted failed (u1)", "failed"},
	{"an old mark", {.state = "done", .at = 60}, {}, "", "k forgotten done ()", "absent", false,
		false, false, 50},
	{"an old mark, only shown", {.state = "done", .at = 60}, {}, "", "k forgettable done ()",
		"done", false, true, true, 50},
	{"a younger mark", {.state = "done", .at = 40}, {}, "", "", "done", false, true, false, 50},
	{"an old mark that was claimed", {.state = "claimed"}, {}, "", "k forgotten claimed ()",
		"absent", false, false, false, 50},
	{"forgotten long ago", {.state = "forgotten"}, {}, "", "", "absent"},
	{"forgotten long ago, only shown", {.state = "forgotten"}, {}, "", "", "forgotten", false,
		true, true},
	{"forgotten a while ago", {.state = "forgotten", .at = MARK_FORGOTTEN_KEEP_S - 60}, {}, "",
		"", "forgotten", false, true, false, 50},
};

static void test_marks(void)
{
	const int64_t now_s = (int64_t)time(NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct collecting c;
		struct audit_row mark = rows[i].mark;
		mark.at = mark.at ? now_s - mark.at : OLD_S; /* it is given as an age */
		if (!begin(&c, rows[i].steps, 8, 100 * LEASE_MS))
			return;
		audit_put(&c.audit, "k", &mark);
		CHECK_INT(run_gc(&c, rows[i].only_show,
				  rows[i].keep_marks_s ? rows[i].keep_marks_s : UINT64_MAX),
			OUTCOME_OK);
		struct mark after = audit_mark(&c.audit, "k");
		bool good = CHECK_STRING(c.said, rows[i].said) && CHECK(c.has_mark) &&
			    CHECK_STRING(mark_state_name(after.state), rows[i].state) &&
			    CHECK_INT(after.upload.id != NULL, rows[i].upload);
		if (after.state != MARK_ABSENT && after.state != MARK_UNREADABLE)
			good &= CHECK_INT(after.at_s == mark.at, rows[i].keeps_time);
		mark_clear(&after);
		good &= audit_asked(&c.audit, rows[i].asked);
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].what);
		end(&c);
	}
}

/* Longer than the lease, which nothing renews. */
static void outlast_the_lease(void *arg)
{
	poll(NULL, 0, 2 * LEASE_MS);
}

/* After its lease another uploader may go on with the upload, so gc asks no more of S3. */
static void test_lease_that_ends(void)
{
	static const struct script_step late_object
		[] = {{SCRIPT_REPLY("404", "Content-Length: 0\r\n", ""), .close = true,
			.meanwhile = outlast_the_lease}},
     late_list[] = {AUDIT_ABSENT,
	     {SCRIPT_REPLY("200", "",
		      "<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>"),
		     .close = true, .meanwhile = outlast_the_lease}};
	for (unsigned i = 0; i < 2; i++) {
		struct collecting c;
		if (!begin(&c, i ? late_list : late_object, i ? 2 : 1, LEASE_MS))
			return;
		AUDIT_PUT(&c.audit, "k", FAILED_MARK, .at = OLD_S);
		CHECK(run_gc(&c, false, UINT64_MAX) != OUTCOME_OK || strstr(c.said, "k failed "));
		audit_asked(&c.audit, i ? "HEAD GET " : "HEAD ");
		end(&c);
	}
}

static bool is_never_stopped(void *arg)
{
	return false;
}

static struct collecting *claimed_by_gc;

/* While gc is at work, the mark is its own, and has the time that it had. */
static void look_at_claim(void *arg)
{
	struct mark mark = audit_mark(&claimed_by_gc->audit, "k");
	CHECK_STRING(mark_state_name(mark.state), "claimed");
	CHECK_STRING(mark.session, session_id(claimed_by_gc->session));
	CHECK_STRING(mark_source(&mark), "h:gc");
	CHECK_STRING(mark.claim_suffix, ".gz"); /* of the claim before, not of the upload */
	CHECK_INT(mark.at_s, OLD_S);
	mark_clear(&mark);
}

static void test_claim(void)
{
	struct collecting c;
	const struct script_step steps[] = {AUDIT_ABSENT, NO_PARTS, ABORTED, GONE};
	if (!begin(&c, steps, 4, 100 * LEASE_MS))
		return;
	c.audit.aws.server.steps[2].meanwhile = look_at_claim;
	claimed_by_gc = &c;
	c.limits.abandon = is_never_stopped;
	/* A failed upload is free, whether or not the session that has failed goes on. */
	AUDIT_PUT(&c.audit, "k", FAILED_MARK, .claim_suffix = ".gz", .upload_suffix = ".zst",
		.at = OLD_S);
	audit_put_session(&c.audit, "s", "open");
	CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_OK);
	struct mark after = audit_mark(&c.audit, "k");
	CHECK_STRING(after.error, "it was cut");
	mark_clear(&after);
	audit_asked(&c.audit, "HEAD GET DELETE GET ");
	CHECK(script_is_to(&c.audit.aws.server.requests[0], "HEAD /b/k.zst"));
	CHECK(script_is_to(&c.audit.aws.server.requests[2], "DELETE /b/k.zst?uploadId=u1"));
	end(&c);
}

static atomic_bool is_stopped;

static void stop(struct audit *audit)
{
	atomic_store(&is_stopped, true);
}

static bool ask_is_stopped(void *arg)
{
	return atomic_load(&is_stopped);
}

/* After a stop nothing new is claimed, so that no upload is left in the hands of gc. */
static void test_stop(void)
{
	struct collecting c;
	if (!begin(&c, NULL, 0, 100 * LEASE_MS))
		return;
	AUDIT_PUT(&c.audit, "k", FAILED_MARK, .at = OLD_S);
	atomic_store(&is_stopped, false);
	c.limits.abandon = ask_is_stopped;
	c.audit.before_get = stop;
	CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_ABANDONED);
	CHECK_STRING(c.said, "");
	struct mark after = audit_mark(&c.audit, "k");
	CHECK_STRING(mark_state_name(after.state), "failed");
	CHECK(after.upload.id != NULL && after.at_s == OLD_S);
	mark_clear(&after);
	audit_asked(&c.audit, "");
	end(&c);
}

static void stop_now(void *arg)
{
	atomic_store(&is_stopped, true);
}

/* After a stop in between, no further request is sent for the upload. */
static void test_stop_before_the_abort(void)
{
	const struct script_step steps[] = {AUDIT_ABSENT, NO_PARTS, ABORTED, GONE};
	struct collecting c;
	if (!begin(&c, steps, 4, 100 * LEASE_MS))
		return;
	c.audit.aws.server.steps[0].meanwhile = stop_now;
	AUDIT_PUT(&c.audit, "k", FAILED_MARK, .at = OLD_S);
	atomic_store(&is_stopped, false);
	c.limits.abandon = ask_is_stopped;
	CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_ABANDONED);
	audit_asked(&c.audit, "HEAD ");
	end(&c);
}

static void change_mark(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "failed", .error = "later", .upload = "u2", .at = OLD_S);
}

static void make_young(struct audit *audit)
{
	AUDIT_PUT(audit, "k", FAILED_MARK, .at = (int64_t)time(NULL));
}

static void remove_mark(struct audit *audit)
{
	const struct audit_place place = audit_place(audit);
	const struct mark_ref ref = audit_mark_ref(&place, &place.own, "k");
	struct mark mark = audit_mark(audit, "k");
	CHECK_INT(mark_forget(&ref, &mark, &audit->problem), OUTCOME_OK);
	mark_clear(&mark);
}

#define KEPT_CHANGED "k kept failed (u1, another uploader has changed it meanwhile)"

/* A mark that another uploader has changed is judged as it is now, and never taken from it. */
static void test_changed_meanwhile(void)
{
	static const struct {
		bool has_upload;
		void (*before_get)(struct audit *), (*before_write)(struct audit *);
		const char *said;
	} changes[] = {{true, NULL, change_mark, KEPT_CHANGED}, {true, make_young, NULL, ""},
		{false, remove_mark, NULL, ""},
		{false, NULL, change_mark,
			"k kept done (, another uploader has changed it meanwhile)"}};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct collecting c;
		if (!begin(&c, NULL, 0, 100 * LEASE_MS))
			return;
		if (changes[i].has_upload)
			AUDIT_PUT(&c.audit, "k", FAILED_MARK, .at = OLD_S);
		else
			AUDIT_PUT(&c.audit, "k", .state = "done", .at = OLD_S);
		c.audit.before_get = changes[i].before_get;
		c.audit.before_write = changes[i].before_write;
		CHECK_INT(run_gc(&c, false, changes[i].has_upload ? UINT64_MAX : 50), OUTCOME_OK);
		CHECK_STRING(c.said, changes[i].said);
		audit_asked(&c.audit, "");
		end(&c);
	}
}

/* In another bucket of the same name S3 knows no upload either. So an upload that is gone counts
 * only if S3 shows the witness. */
static void test_bucket_of_a_lost_upload(void)
{
	static const struct {
		struct script_step steps[6];
		const char *asked, *said;
		bool upload;
	} buckets[] = {
		{{AUDIT_ABSENT, GONE, AUDIT_ABSENT, AUDIT_ERROR("404", "NoSuchKey"), AUDIT_ABSENT,
			 AUDIT_ERROR("404", "NoSuchKey")},
			"HEAD GET HEAD GET HEAD GET ", "k failed failed (u1)", true},
		{{AUDIT_ABSENT, GONE, AUDIT_HEAD("3", "e", "AAAAAA==")}, "HEAD GET HEAD ",
			"k aborted failed (u1)", false},
	};
	for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++) {
		struct collecting c;
		if (!begin(&c, buckets[i].steps, 6, 100 * LEASE_MS))
			return;
		AUDIT_PUT(&c.audit, "k", FAILED_MARK, .at = OLD_S);
		AUDIT_PUT(&c.audit, "other", .state = "done");
		audit_write(&c.audit, "bucket#aws/b", "-",
			&(struct audit_row){.version = "v", .last_key = "w", .last_etag = "e"});
		CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_OK);
		CHECK_STRING(c.said, buckets[i].said);
		struct mark after = audit_mark(&c.audit, "k");
		CHECK_INT(after.upload.id != NULL, buckets[i].upload);
		CHECK_INT(after.at_s == OLD_S, buckets[i].upload);
		mark_clear(&after);
		audit_asked(&c.audit, buckets[i].asked);
		end(&c);
	}
}

/* No answer about the witness is no proof, and no stop either, unless the run is stopped then. */
static void test_witness_without_an_answer(void)
{
	struct script_step steps[] = {AUDIT_STEP("500", "", ""), AUDIT_STEP("500", "", "")};
	struct collecting c;
	steps[1].meanwhile = stop_now;
	if (!begin(&c, steps, 2, 100 * LEASE_MS))
		return;
	AUDIT_PUT(&c.audit, "other", .state = "done");
	audit_write(&c.audit, "bucket#aws/b", "-",
		&(struct audit_row){.version = "v", .last_key = "w", .last_etag = "e"});
	struct audit_place place = audit_place(&c.audit);
	CHECK_INT(audit_check_bucket(&place, &place.own, &c.audit.problem), OUTCOME_SETUP);
	CHECK(*c.audit.problem.text);
	atomic_store(&is_stopped, false);
	place.limits.abandon = ask_is_stopped;
	CHECK_INT(audit_check_bucket(&place, &place.own, &c.audit.problem), OUTCOME_ABANDONED);
	audit_asked(&c.audit, "HEAD HEAD ");
	end(&c);
}

/* A session that may live is waited for: until a lease without a heartbeat shows that it is over,
 * or a lease and two seconds have passed. Then its mark stays. */
static void test_sessions_that_may_live(void)
{
	const struct script_step steps[] = {AUDIT_ABSENT, NO_PARTS, ABORTED, GONE};
	struct collecting c;
	if (!begin(&c, steps, 4, 100 * LEASE_MS))
		return;
	AUDIT_PUT(&c.audit, "k", .state = "claimed", .session = "silent", .upload = "u1",
		.upload_size = 9, .at = OLD_S);
	audit_write(&c.audit, "session#silent", "-",
		&(struct audit_row){.state = "open", .version = "v", .lease = 1});
	CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_OK);
	CHECK_STRING(c.said, "k aborted claimed (u1)");
	audit_asked(&c.audit, "HEAD GET DELETE GET ");
	end(&c);
	if (!begin(&c, NULL, 0, 100 * LEASE_MS))
		return;
	AUDIT_PUT(&c.audit, "k", .state = "claimed", .session = session_id(c.session),
		.upload = "u1", .at = OLD_S);
	CHECK_INT(run_gc(&c, false, UINT64_MAX), OUTCOME_OK);
	CHECK_STRING(c.said, "k kept claimed (, its uploader lives)");
	audit_asked(&c.audit, "");
	end(&c);
}

/* A row that says forgotten does no harm, so gc goes on if it may not remove it. A mark that it has
 * to forget and may not is an error. */
static void test_marks_that_deny(void)
{
	static const struct {
		const char *state;
		enum outcome write_fails, ends;
	} denials[] = {{"forgotten", OUTCOME_DENIED, OUTCOME_OK},
		{"forgotten", OUTCOME_LOST, OUTCOME_LOST},
		{"done", OUTCOME_DENIED, OUTCOME_DENIED}};
	for (size_t i = 0; i < sizeof denials / sizeof *denials; i++) {
		struct collecting c;
		if (!begin(&c, NULL, 0, 100 * LEASE_MS))
			return;
		AUDIT_PUT(&c.audit, "k", .state = denials[i].state, .at = OLD_S);
		c.audit.write_fails = denials[i].write_fails;
		CHECK_INT(run_gc(&c, false, 50), denials[i].ends);
		CHECK_STRING(c.said, "");
		audit_asked(&c.audit, "");
		c.audit.write_fails = OUTCOME_OK;
		end(&c);
	}
}

int main(void)
{
	test_marks();
	test_lease_that_ends();
	test_claim();
	test_stop();
	test_stop_before_the_abort();
	test_changed_meanwhile();
	test_bucket_of_a_lost_upload();
	test_witness_without_an_answer();
	test_sessions_that_may_live();
	test_marks_that_deny();
	return check_result();
}
