/* Which marks forget removes, and what it says of the others. The S3 server is a script; the marks
 * are real. */
#include "audit.h"
#include "audit/forget.h"
#include <time.h>

struct forgetting {
	struct audit audit;
	char said[1000];
};

static void note_report(void *arg, const struct mark_report *report)
{
	static const char *const fates[] = {
		"forgotten", "forgettable", "aborted", "abortable", "kept", "damaged", "failed"};
	struct forgetting *f = arg;
	const size_t n = strlen(f->said);
	snprintf(f->said + n, sizeof f->said - n, "%s%s %s%s%s", report->key, report->suffix,
		fates[report->fate], *report->why ? ": " : "", report->why);
	CHECK(!report->problem == (report->fate != FATE_FAILED));
	CHECK(!report->problem || *report->problem->text);
}

#define CLAIMED    "it is claimed: its uploader may live, or the next run takes it over"
#define UNREADABLE "it is damaged, or was written by a later version of s3once"
#define UPLOAD     "it records an open multipart upload, which nothing else names: s3once gc aborts it"
#define NO_OBJECT  "it does not say that an object is there"
#define CHANGED    "another uploader has changed it meanwhile"
#define SINCE      "it was changed since"

static void change_mark(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "claimed", .session = "other");
}

static void make_young(struct audit *audit)
{
	AUDIT_PUT(audit, "k", .state = "done", .at = (int64_t)time(NULL));
}

/* The mark under "k", once named by its key and once by a prefix. NULL: the same is said, and
 * nothing is said of a mark that is not selected. */
static const struct {
	const char *what;
	struct audit_row mark;
	bool only_show, only_missing;
	uint64_t older_than_s;
	struct script_step step;
	const char *asked, *said, *said_of_all, *state;
	void (*before_get)(struct audit *audit), (*before_write)(struct audit *audit);
	enum outcome write_fails;
} rows[] = {
	{"done", {.state = "done"}, .said = "k forgotten", .state = "absent"},
	{"failed", {.state = "failed"}, .said = "k forgotten", .state = "absent"},
	{"only shown", {.state = "done"}, .only_show = true, .said = "k forgettable",
		.state = "done"},
	{"claimed", {.state = "claimed"}, .said = "k kept: " CLAIMED, .state = "claimed"},
	{"claimed for an object of another name",
		{.state = "claimed", .size = 3, .suffix = ".gz", .claim_suffix = ".zst"},
		.said = "k.gz kept: " CLAIMED, .state = "claimed"},
	{"damaged", {.state = "odd"}, .said = "k kept: " UNREADABLE, .state = "unreadable"},
	{"an open upload", {.state = "failed", .upload = "u1"}, .said = "k kept: " UPLOAD,
		.state = "failed"},
	{"forgotten", {.state = "forgotten"}, .said = "", .state = "forgotten"},
	{"old", {.state = "done", .at = 100}, .older_than_s = 50, .said = "k forgotten",
		.state = "absent"},
	{"young", {.state = "done", .at = 20}, .older_than_s = 50, .said = "k kept: " SINCE,
		.said_of_all = "", .state = "done"},
	{"young and claimed", {.state = "claimed", .at = 20}, .older_than_s = 50,
		.said = "k kept: " SINCE, .said_of_all = "", .state = "claimed"},
	{"the object is gone", {.state = "done", .suffix = ".gz"}, .only_missing = true,
		.step = AUDIT_ABSENT, .asked = "HEAD ", .said = "k.gz forgotten",
		.state = "absent"},
	{"the object is there", {.state = "done"}, .only_missing = true,
		.step = AUDIT_HEAD("3", "e1", "AAAAAA=="), .asked = "HEAD ",
		.said = "k kept: its object is there", .said_of_all = "", .state = "done"},
	{"the object is not shown", {.state = "done"}, .only_missing = true,
		.step = AUDIT_STEP("403", "", ""), .asked = "HEAD ", .said = "k failed",
		.state = "done"},
	{"no object is meant", {.state = "failed"}, .only_missing = true,
		.said = "k kept: " NO_OBJECT, .said_of_all = "", .state = "failed"},
	{"changed after it was read", {.state = "done"}, .before_write = change_mark,
		.said = "k kept: " CHANGED, .state = "claimed"},
	{"changed after it was listed", {.state = "done"}, .before_get = change_mark,
		.said = "k kept: " CLAIMED, .state = "claimed"},
	{"younger after it was listed", {.state = "done", .at = 100}, .older_than_s = 50,
		.before_get = make_young, .said = "k kept: " SINCE, .said_of_all = "",
		.state = "done"},
	{"the marks refuse", {.state = "done"}, .write_fails = OUTCOME_DENIED, .said = "k failed",
		.state = "done"},
};

static void test_marks(bool by_key)
{
	const int64_t now_s = (int64_t)time(NULL);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct forgetting f = {.said = ""};
		struct audit_row mark = rows[i].mark;
		const bool has_all = !by_key && rows[i].said_of_all;
		const char *said = has_all ? rows[i].said_of_all : rows[i].said;
		mark.at = mark.at ? now_s - mark.at : 1000; /* it is given as an age */
		if (!audit_begin(&f.audit, &rows[i].step, 1))
			return;
		audit_put(&f.audit, "k", &mark);
		f.audit.before_get = rows[i].before_get;
		f.audit.before_write = rows[i].before_write;
		f.audit.write_fails = rows[i].write_fails;
		const struct forget_options options = {.clearing = {.place = audit_place(&f.audit),
							       .only_show = rows[i].only_show,
							       .reporter = {note_report, &f}},
			.only_missing = rows[i].only_missing,
			.older_than_s = rows[i].older_than_s};
		const enum outcome o = by_key ? forget_key(&options, &options.clearing.place.own,
							"k", &f.audit.problem)
					      : forget_prefix(&options, "", &f.audit.problem);
		const bool is_absent = by_key && !*said;
		struct mark after = audit_mark(&f.audit, "k");
		bool good = CHECK_INT(o, is_absent ? OUTCOME_ABSENT : OUTCOME_OK) &&
			    CHECK_STRING(f.said, said) &&
			    CHECK_STRING(mark_state_name(after.state), rows[i].state);
		mark_clear(&after);
		good &= audit_asked(&f.audit, rows[i].asked ? rows[i].asked : "");
		if (mark.suffix && rows[i].asked)
			CHECK(script_is_to(&f.audit.aws.server.requests[0], "HEAD /b/k.gz"));
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].what);
		audit_end(&f.audit);
	}
}

/* A mark is named by its own key, or by that of its object. */
static void test_keys(void)
{
	static const struct {
		const char *key, *suffix, *given, *said;
	} keys[] = {{"a", ".gz", "a.gz", "a.gz forgettable"}, {"a", ".gz", "a", "a.gz forgettable"},
		{"a", "", "a.gz", ""}, {"a.gz", "", "a.gz", "a.gz forgettable"},
		{"a", ".gz", "a.xz", ""}, {"a", "", ".gz", ""}};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct forgetting f = {.said = ""};
		if (!audit_begin(&f.audit, NULL, 0))
			return;
		AUDIT_PUT(&f.audit, keys[i].key, .state = "done",
			.suffix = *keys[i].suffix ? keys[i].suffix : NULL);
		const struct forget_options options = {.clearing = {.place = audit_place(&f.audit),
							       .only_show = true,
							       .reporter = {note_report, &f}}};
		CHECK_INT(forget_key(&options, &options.clearing.place.own, keys[i].given,
				  &f.audit.problem),
			*keys[i].said ? OUTCOME_OK : OUTCOME_ABSENT);
		if (!CHECK_STRING(f.said, keys[i].said))
			fprintf(stderr, "\t%s of %s\n", keys[i].given, keys[i].key);
		audit_asked(&f.audit, "");
		audit_end(&f.audit);
	}
}

static bool is_stopped(void *arg)
{
	return true;
}

/* A stop ends it before the mark is forgotten. Nothing is said of the mark, since nothing is wrong
 * with it. */
static void test_stop(bool in_write, bool only_missing)
{
	struct forgetting f = {.said = ""};
	if (!audit_begin(&f.audit, NULL, 0))
		return;
	AUDIT_PUT(&f.audit, "k", .state = "done");
	struct forget_options options = {
		.clearing = {.place = audit_place(&f.audit), .reporter = {note_report, &f}},
		.only_missing = only_missing};
	if (in_write)
		f.audit.write_fails = OUTCOME_ABANDONED;
	else
		options.clearing.place.limits.abandon = is_stopped;
	CHECK_INT(forget_prefix(&options, "", &f.audit.problem), OUTCOME_ABANDONED);
	CHECK_STRING(f.said, "");
	struct mark after = audit_mark(&f.audit, "k");
	CHECK_STRING(mark_state_name(after.state), "done");
	mark_clear(&after);
	audit_asked(&f.audit, "");
	audit_end(&f.audit);
}

int main(void)
{
	test_marks(true);
	test_marks(false);
	test_keys();
	test_stop(false, false);
	test_stop(false, true);
	test_stop(true, false);
	return check_result();
}
