/* The reaction to the mark of an open file: it is done, touched, changed, held or free, and one
 * uploader claims it first. */
#include "base/clock.h"
#include "looker.h"
#include "store_spy.h"
#include "upload/file/steps.h"

#define CONTENT   "123456789" /* whose CRC-32C is SAME */
#define SAME      "crc32c:4waSgw=="
#define OTHER     "crc32c:AAAAAA=="
#define MD5       "25f9e794323b453885f5181f1b624d0b"
#define MD5_PARTS "324730582f20c3f18cbb66d63a6137d2-2" /* in parts of five bytes */
#define PARTS_SUM "sha256:/wiQ+jHXUUcr18tTEaeru5H1cBgrYDQGvfxkGFLzgl4=-2"
#define NOT_MD5   "0123456789abcdef0123456789abcdef"
#define MTIME_NS  1000000000000
#define THEIRS    "22222222222222222222222222222222"

#define HEAD      "HEAD /b/k\n"
#define GET       "GET /b/k\n"
#define NOT_FOUND STEPS_REPLY("404", "", "")
#define NO_KEY    STEPS_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>")
#define FAILS     STEPS_REPLY("500", "", "")
#define SHOWN(bytes, etag)                                                                         \
	STEPS_REPLY("200", "Content-Length: " bytes "\r\nETag: \"" etag "\"\r\n", "")
#define OURS "ours" /* an object of these marks with the etag "e" */

static const char *reply_of(const struct steps *steps, const char *reply)
{
	static char text[600];
	if (!reply || strcmp(reply, OURS) != 0)
		return reply;
	snprintf(text, sizeof text,
		"HTTP/1.1 200 X\r\nx-amz-request-id: 1\r\nConnection: close\r\n"
		"Content-Length: 8\r\nETag: \"e\"\r\nx-amz-meta-s3once-table: %s\r\n%s\r\n",
		steps->run->space.settings.table_id, steps_written_for("k"));
	return text;
}

/* The mark as another uploader sees and writes it. */
static struct mark_ref their_ref(struct steps *steps, const char *session)
{
	struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	ref.session = session;
	ref.suffix = "";
	return ref;
}

/* The other uploader claims the file, regardless of the mark. */
static void claim_as(const struct mark_ref *ref, struct claim *ret)
{
	struct problem problem;
	struct mark seen, present = {0};
	CHECK_INT(mark_get(ref, &seen, &problem), OUTCOME_OK);
	CHECK_INT(mark_claim(ref, &seen, ret, &present, &problem), OUTCOME_OK);
	mark_clear(&seen);
}

/* The other uploader marks a version done. */
static void mark_done_as(const struct mark_ref *ref, const struct version *version)
{
	struct problem problem;
	struct mark present = {0};
	struct claim claim = {0};
	claim_as(ref, &claim);
	CHECK_INT(mark_done(ref, &claim, version, ref->source, &present, &problem), OUTCOME_OK);
	claim_clear(&claim);
}

/* As at the beginning of a turn. */
static void see_mark(struct steps *steps)
{
	mark_clear(&steps->file->seen_mark);
	steps->file->seen_mark = steps_mark(steps);
}

enum trouble {
	NONE,
	CHANGES_FIRST,  /* the file changes after it was opened */
	CANNOT_BE_READ, /* its descriptor */
	UNBELIEVED,     /* the run has not seen yet that this is the bucket of the marks */
	OVER,           /* the run is over */
	DONE_HERE,      /* by an earlier turn of this run */
	OPAQUE,         /* the etags of the server are no MD5s */
	MARK_MOVES,     /* another run writes the mark right before this one does */
};

/* Files with a mark that says done. */
static const struct row {
	const char *name;
	struct {
		enum s3once_if_changed if_changed;
		bool reupload, compares, dry;
	} with;
	struct version done;
	enum trouble trouble;
	const char *source; /* that the mark names; NULL: the one of this run */
	struct {
		uint64_t size;
		int64_t mtime_ns;
	} newer; /* version that was noted in the mark; size 0: none */
	const char *replies[2];
	enum step step;
	enum s3once_event_type event; /* that was reported; START: none */
	const char *asked, *writes;
	const char *replaces; /* NULL: the turn has ended */
	const char *said;
} rows[] = {
#define THIS                                                                                       \
	{                                                                                          \
		.size = 9, .mtime_ns = MTIME_NS, .sum = SAME, .etag = "e"                          \
	}
#define TOUCHED                                                                                    \
	{                                                                                          \
		.size = 9, .mtime_ns = 5, .sum = SAME, .etag = "e"                                 \
	}
#define EARLIER                                                                                    \
	{                                                                                          \
		.size = 8, .mtime_ns = 5, .sum = OTHER, .etag = "e"                                \
	}
#define FAIL    S3ONCE_CHANGED_FAIL
#define SKIP    S3ONCE_CHANGED_SKIP
#define REPLACE S3ONCE_CHANGED_REPLACE
#define ANY     S3ONCE_CHANGED_REPLACE_ANY
	/* This very version. */
	{"done", .done = THIS, .step = STEP_IN_S3, .event = S3ONCE_EVENT_SKIPPED, .writes = ""},
	{"done, and the run is over", .done = THIS, .trouble = OVER, .step = STEP_IN_S3,
		.event = S3ONCE_EVENT_SKIPPED, .writes = ""},
	{"done again, after a newer version", .done = THIS, .newer = {9, 7}, .step = STEP_IN_S3,
		.event = S3ONCE_EVENT_SKIPPED, .writes = "M"},
	{"done again, in a dry run", {.dry = true}, THIS, .newer = {9, 7}, .step = STEP_IN_S3,
		.event = S3ONCE_EVENT_SKIPPED, .writes = ""},
	{"done by this run", {.reupload = true}, THIS, DONE_HERE, .step = STEP_IN_S3,
		.event = S3ONCE_EVENT_ADOPTED, .writes = ""},
	{"sent again", {.reupload = true}, THIS, .step = STEP_NEXT, .writes = "M", .replaces = ""},
	{"sent again, after a newer version", {.reupload = true}, THIS, .newer = {9, 7},
		.step = STEP_NEXT, .writes = "M", .replaces = ""},
	{"sent again in a dry run", {.reupload = true, .dry = true}, THIS, .step = STEP_NEXT,
		.writes = "", .replaces = ""},
	/* The content is compared. */
	{"compared", {.compares = true}, THIS, .step = STEP_IN_S3, .event = S3ONCE_EVENT_SKIPPED,
		.writes = ""},
	{"compared by a run that is over", {.compares = true}, THIS, OVER, .step = STEP_OVER,
		.writes = ""},
	{"compared and sent again", {.compares = true, .reupload = true}, THIS, .step = STEP_NEXT,
		.writes = "M", .replaces = ""},
	{"other content with the same time", {.compares = true},
		{.size = 9, .mtime_ns = MTIME_NS, .sum = OTHER, .etag = "e"}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"other content, to be replaced", {.if_changed = REPLACE, .compares = true},
		{.size = 9, .mtime_ns = MTIME_NS, .sum = OTHER, .etag = "e"}, .replies = {OURS},
		.step = STEP_NEXT, .asked = HEAD, .writes = "M", .replaces = "e"},
	{"nothing to compare with", {.compares = true}, {.size = 9, .mtime_ns = MTIME_NS},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"it cannot be read", {.compares = true}, THIS, CANNOT_BE_READ, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_FAILED, .writes = ""},
	{"it changes before it is read", {.compares = true}, THIS, CHANGES_FIRST,
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	/* The same size with another time. */
	{"touched", .done = TOUCHED, .step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED,
		.writes = "M"},
	{"touched, after a newer version", .done = TOUCHED, .newer = {9, 7}, .step = STEP_PROVEN,
		.event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, in a dry run", {.dry = true}, TOUCHED, .step = STEP_IN_S3,
		.event = S3ONCE_EVENT_SKIPPED, .writes = ""},
	{"touched and sent again", {.reupload = true}, TOUCHED, .step = STEP_NEXT, .writes = "M",
		.replaces = ""},
	{"other content with another time",
		.done = {.size = 9, .mtime_ns = 5, .sum = OTHER, .etag = "e"}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"a time that two contents have had",
		.done = {.size = 9, .mtime_ns = MTIME_NS, .mtime_is_shared = true, .sum = SAME},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"and it is the other one",
		.done = {.size = 9, .mtime_ns = MTIME_NS, .mtime_is_shared = true, .sum = OTHER},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"touched, and the etag is its MD5",
		.done = {.size = 9, .mtime_ns = 5, .sum = SAME, .etag = MD5, .etag_is_md5 = true},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, and the etag is another MD5",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.etag = NOT_MD5,
			.etag_is_md5 = true},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"touched, and the etag only looks like an MD5",
		.done = {.size = 9, .mtime_ns = 5, .sum = SAME, .etag = NOT_MD5},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, and only the etag is known", .done = {.size = 9, .mtime_ns = 5, .etag = MD5},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"other content, and only the etag is known",
		.done = {.size = 9, .mtime_ns = 5, .etag = NOT_MD5}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"touched, and the etag is no MD5 any more",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.etag = NOT_MD5,
			.etag_is_md5 = true},
		.trouble = OPAQUE, .step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED,
		.writes = "M"},
	{"touched, and only the etag of its parts is known",
		.done = {.size = 9, .mtime_ns = 5, .etag = MD5_PARTS, .part_bytes = 5},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, and its parts have checksums",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.part_bytes = 5,
			.parts_sum = PARTS_SUM},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"other content by the checksums of its parts",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.part_bytes = 5,
			.parts_sum = "sha256:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=-2"},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"other content, although its parts have these checksums",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = OTHER,
			.part_bytes = 5,
			.parts_sum = PARTS_SUM},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"touched, and cannot be read", .done = TOUCHED, .trouble = CANNOT_BE_READ,
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_FAILED, .writes = ""},
	{"touched, and changes before it is read", .done = TOUCHED, .trouble = CHANGES_FIRST,
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	/* The values of a compressed object are not those of the file. */
	{"touched, and was compressed",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.etag = NOT_MD5,
			.etag_is_md5 = true,
			.object_bytes = 5},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, and was compressed in parts",
		.done = {.size = 9,
			.mtime_ns = 5,
			.sum = SAME,
			.part_bytes = 5,
			.parts_sum = "sha256:FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=-2",
			.object_bytes = 5},
		.step = STEP_PROVEN, .event = S3ONCE_EVENT_REFRESHED, .writes = "M"},
	{"touched, and nothing of its content is known",
		.done = {.size = 9, .mtime_ns = 5, .etag = MD5, .object_bytes = 5},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"touched by two runs at once", .done = TOUCHED, .trouble = MARK_MOVES, .step = STEP_PROVEN,
		.event = S3ONCE_EVENT_REFRESHED, .writes = "MM"},
	/* It has changed, and its object stays. */
	{"changed", .done = EARLIER, .step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED,
		.writes = "M", .said = "--if-changed=skip keeps it"},
	{"changed, as was noted", .done = EARLIER, .newer = {9, MTIME_NS}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = ""},
	{"changed in size once more", .done = EARLIER, .newer = {7, MTIME_NS}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"changed once more", .done = EARLIER, .newer = {9, 7}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M"},
	{"changed, in a dry run", {.dry = true}, EARLIER, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = ""},
	{"another source's", .done = EARLIER, .source = "elsewhere:/y", .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "M",
		.said = "two sources have this key, and the object stays: it was uploaded from "
			"elsewhere:/y, and this is "},
	{"uploaded from the root, when this host had another name", .done = EARLIER,
		.source = "elsewhere:/", .step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED,
		.writes = "M", .said = "changed since it was uploaded; --if-changed=replace "},
	{"skipped", {.if_changed = SKIP}, EARLIER, .step = STEP_LEFT_OUT,
		.event = S3ONCE_EVENT_OUTDATED, .writes = "M"},
	{"skipped, and its object is there", {.if_changed = SKIP, .reupload = true}, EARLIER,
		.replies = {SHOWN("8", "e")}, .step = STEP_LEFT_OUT, .event = S3ONCE_EVENT_OUTDATED,
		.asked = HEAD, .writes = "M"},
	{"skipped, and its object is gone", {.if_changed = SKIP, .reupload = true}, EARLIER,
		.replies = {NOT_FOUND}, .step = STEP_NEXT, .asked = HEAD, .writes = "M",
		.replaces = ""},
	{"skipped, and its object is another", {.if_changed = SKIP, .reupload = true}, EARLIER,
		.replies = {SHOWN("8", "x")}, .step = STEP_NEXT, .asked = HEAD, .writes = "M",
		.replaces = ""},
	{"skipped, and nobody knows", {.if_changed = SKIP, .reupload = true}, EARLIER,
		.replies = {FAILS}, .step = STEP_LATER, .asked = HEAD, .writes = ""},
	/* It has changed, and is to take the object's place. */
	{"replaced", {.if_changed = REPLACE}, EARLIER, .replies = {OURS}, .step = STEP_NEXT,
		.asked = HEAD, .writes = "M", .replaces = "e"},
	{"replaced in a dry run", {.if_changed = REPLACE, .dry = true}, EARLIER, .replies = {OURS},
		.step = STEP_NEXT, .asked = HEAD, .writes = "", .replaces = "e"},
	{"another program's", {.if_changed = REPLACE}, EARLIER, .replies = {SHOWN("8", "e")},
		.step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED, .asked = HEAD, .writes = ""},
	{"whose it is is not shown", {.if_changed = REPLACE}, EARLIER, .replies = {FAILS},
		.step = STEP_LATER, .asked = HEAD, .writes = ""},
	{"replaced, whose it may be", {.if_changed = ANY}, EARLIER, .step = STEP_NEXT,
		.writes = "M", .replaces = "e"},
	{"another source's is not replaced", {.if_changed = REPLACE}, EARLIER,
		.source = "elsewhere:/y", .step = STEP_SETTLED, .event = S3ONCE_EVENT_CHANGED,
		.writes = "M", .said = "--if-changed=replace-any replaces the object"},
	{"another source's is replaced", {.if_changed = ANY}, EARLIER, .source = "elsewhere:/y",
		.step = STEP_NEXT, .event = S3ONCE_EVENT_WARNING, .writes = "M", .replaces = "e",
		.said = "it was uploaded from elsewhere:/y, and this is "},
	{"the earlier one has another key", {.if_changed = REPLACE},
		{.size = 8, .mtime_ns = 5, .etag = "e", .suffix = ".gz"}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "", .said = "as k.gz; it cannot take"},
	{"another key, whose it may be", {.if_changed = ANY},
		{.size = 8, .mtime_ns = 5, .etag = "e", .suffix = ".gz"}, .step = STEP_SETTLED,
		.event = S3ONCE_EVENT_CHANGED, .writes = "", .said = "as k.gz; it cannot take"},
	/* No mark that says done is believed before S3 has shown an object of one. */
	{"the bucket is shown", .done = THIS, .trouble = UNBELIEVED, .replies = {SHOWN("9", "e")},
		.step = STEP_IN_S3, .event = S3ONCE_EVENT_SKIPPED, .asked = HEAD, .writes = ""},
	{"it is another bucket", .done = THIS, .trouble = UNBELIEVED,
		.replies = {NOT_FOUND, NO_KEY}, .step = STEP_OVER, .event = S3ONCE_EVENT_FATAL,
		.asked = HEAD GET, .writes = ""},
};

static void append(struct steps *steps)
{
	steps_append(steps->path);
}

/* Another run refreshes the mark, for a file with yet another time. */
static void refresh_as_another(struct steps *steps)
{
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	struct mark seen = steps_mark(steps);
	store_spy()->before = NULL;
	CHECK_INT(mark_refresh(&ref, &seen, 6, &steps->problem), OUTCOME_OK);
	mark_clear(&seen);
}

/* The mark, as another run has left it. */
static void prepare(struct steps *steps, const struct row *row)
{
	struct run *run = steps->run;
	struct file *file = steps->file;
	struct mark_ref ref =
		their_ref(steps, row->trouble == DONE_HERE ? session_id(run->session) : THEIRS);
	if (row->source)
		ref.source = row->source;
	mark_done_as(&ref, &row->done);
	see_mark(steps);
	if (row->newer.size) {
		CHECK_INT(mark_note_newer(&ref, &file->seen_mark, row->newer.size,
				  row->newer.mtime_ns, &steps->problem),
			OUTCOME_OK);
		see_mark(steps);
	}
	run->dry = row->with.dry;
	file->candidate->was_marked_done = row->trouble == DONE_HERE;
	if (row->trouble == CHANGES_FIRST)
		append(steps);
	if (row->trouble == CANNOT_BE_READ) {
		close(file->fd);
		file->fd = open(steps->path, O_WRONLY | O_CLOEXEC);
	}
	if (row->trouble == UNBELIEVED)
		atomic_store(&run->has_witness, false);
	if (row->trouble == OVER)
		run_fence(run, "as the test wants");
	if (row->trouble == OPAQUE)
		s3_set_support(run->s3, S3_ETAG_IS_MD5, S3_NO);
	snprintf(file->replaced_etag, sizeof file->replaced_etag, "before");
}

static bool check_mark(struct steps *steps, const struct row *row)
{
	const bool is_claimed = row->step == STEP_NEXT && !row->with.dry;
	const bool is_noted =
		row->event == S3ONCE_EVENT_CHANGED || row->event == S3ONCE_EVENT_OUTDATED;
	struct mark mark = steps_mark(steps);
	bool good = CHECK_INT(mark.state, is_claimed ? MARK_CLAIMED : MARK_DONE);
	if (is_claimed) {
		good &= CHECK_STRING(mark.session, session_id(steps->run->session));
		good &= CHECK_STRING(mark.claim, steps->file->claim.id);
	}
	if (row->event == S3ONCE_EVENT_REFRESHED) {
		good &= CHECK_INT(mark.done.mtime_ns, MTIME_NS);
		good &= CHECK(!mark.done.mtime_is_shared);
		good &= CHECK(!mark.has_newer);
	} else {
		good &= CHECK_INT(mark.done.mtime_ns, row->done.mtime_ns);
	}
	if (row->event == S3ONCE_EVENT_SKIPPED)
		good &= CHECK_INT(mark.has_newer, row->newer.size && row->with.dry);
	/* The newer version is noted as it is at last. */
	if (is_noted && *row->writes) {
		good &= CHECK_INT(mark.newer_size, row->trouble == CHANGES_FIRST ? 10 : 9);
		good &= CHECK_INT(mark.newer_mtime_ns, steps->file->mtime_ns);
	} else if (is_noted) {
		good &= CHECK_INT(mark.has_newer, row->newer.size != 0);
	}
	mark_clear(&mark);
	return good;
}

static void test_done(const struct row *row)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.report_skipped = 1;
	steps.options.if_changed = row->with.if_changed;
	steps.options.reupload = row->with.reupload;
	steps.options.compare_content = row->with.compares;
	if (!steps_begin(&steps, NULL, 0))
		return;
	prepare(&steps, row);
	for (size_t k = 0; k < 2; k++)
		steps.server.steps[k] =
			(struct script_step){reply_of(&steps, row->replies[k]), .close = true};
	struct store_spy *spy = store_spy_begin(&steps);
	if (row->trouble == MARK_MOVES)
		spy->before = refresh_as_another;
	const enum step step = steps_claim(&steps);
	store_spy_end(spy);
	bool good = CHECK_INT(step, row->step);
	good &= CHECK_STRING(spy->writes, row->writes);
	if (row->event != S3ONCE_EVENT_START)
		good &= CHECK_INT(steps.events[row->event], 1);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], row->event == S3ONCE_EVENT_WARNING);
	if (row->replaces)
		good &= CHECK_STRING(steps.file->replaced_etag, row->replaces);
	if (row->said)
		good &= steps_say(&steps, row->said);
	if (!row->source)
		good &= CHECK(!strstr(steps.said, "it was uploaded from"));
	if (step != STEP_LATER)
		good &= check_mark(&steps, row);
	steps_asked(&steps, row->asked ? row->asked : "");
	if (!good)
		fprintf(stderr, "\t%s\n", row->name);
	steps_end(&steps);
}

/* Files with a mark that does not say done. */
enum mark_of {
	NOBODY,
	FAILED,       /* an uploader failed to send the file */
	FORGOTTEN,    /* a mark was removed */
	THIS_RUN,     /* an earlier turn has claimed it */
	GONE_SESSION, /* whose row was swept */
	ENDED_SESSION,
	LIVE_SESSION,
	LATER_VERSION, /* of s3once, or the row is damaged */
};

static const struct held {
	const char *name;
	enum mark_of mark;
	bool no_wait, dry;
	uint64_t held_since_ns; /* 0: never seen before */
	bool held_was_reported;
	enum step step;
	unsigned held, failed; /* events */
	const char *writes, *said;
	enum outcome outcome; /* of reading the row of the session; OK: as it is */
} helds[] = {
	{"new", NOBODY, .step = STEP_NEXT, .writes = "m"},
	{"new, in a dry run", NOBODY, .dry = true, .step = STEP_NEXT, .writes = ""},
	{"it has failed", FAILED, .step = STEP_NEXT, .writes = "m"},
	{"it has failed, in a dry run", FAILED, .dry = true, .step = STEP_NEXT, .writes = ""},
	{"forgotten", FORGOTTEN, .step = STEP_NEXT, .writes = "m"},
	{"claimed by this run", THIS_RUN, .step = STEP_NEXT, .writes = "m"},
	{"the session is gone", GONE_SESSION, .step = STEP_NEXT, .writes = "m"},
	{"the session has ended", ENDED_SESSION, .step = STEP_NEXT, .writes = "m"},
	{"it has ended, in a dry run", ENDED_SESSION, .dry = true, .step = STEP_NEXT, .writes = ""},
	{"nobody knows whether it has ended", ENDED_SESSION, .outcome = OUTCOME_TRANSIENT,
		.step = STEP_LATER, .writes = ""},
	{"nobody may know that", ENDED_SESSION, .outcome = OUTCOME_DENIED, .step = STEP_OVER,
		.writes = ""},
	{"held for a moment", LIVE_SESSION, .step = STEP_LATER, .writes = ""},
	{"held for long", LIVE_SESSION, .held_since_ns = 1, .step = STEP_LATER, .held = 1,
		.writes = "", .said = "; once it sends no more heartbeats"},
	{"held, as was reported", LIVE_SESSION, .held_since_ns = 1, .held_was_reported = true,
		.step = STEP_LATER, .writes = ""},
	{"held, and not waited for", LIVE_SESSION, .no_wait = true, .step = STEP_SETTLED, .held = 1,
		.writes = "", .said = "; run again, or without --no-wait"},
	{"held, in a dry run", LIVE_SESSION, .dry = true, .step = STEP_SETTLED, .held = 1,
		.writes = ""},
	{"of a later version", LATER_VERSION, .step = STEP_SETTLED, .failed = 1, .writes = "",
		.said = "written by a later version of s3once"},
	{"of a later version, in a dry run", LATER_VERSION, .dry = true, .step = STEP_SETTLED,
		.failed = 1, .writes = "", .said = "written by a later version of s3once"},
};

/* Another uploader that runs. */
static struct session *begin_session(struct steps *steps)
{
	struct session *session = NULL;
	const struct session_options options = {.store = steps->run->store,
		.lease_ns = 60 * NS_PER_S,
		.heartbeat_ns = 20 * NS_PER_S};
	CHECK_INT(session_new(&options, &session), 0);
	CHECK_INT(session_begin(session, steps->push->conn, &steps->problem), OUTCOME_OK);
	return session;
}

static void write_unreadable(const struct mark_ref *ref)
{
	char partition[PARTITION_MAX];
	struct problem problem;
	struct item item = {0};
	CHECK_INT(item_set_string(&item, "state", "doubled"), 0);
	CHECK_INT(ref->conn->store->ops->write(ref->conn, mark_key(ref->space, ref->key, partition),
			  &(struct item_write){.item = &item}, &ref->limits, NULL, &problem),
		OUTCOME_OK);
	item_clear(&item);
}

/* Makes the mark, with a version that was done before and an upload of the next one, where a claim
 * may have both. */
static void make_mark(struct steps *steps, enum mark_of kind, const struct session *live)
{
	const char *session = kind == THIS_RUN       ? session_id(steps->run->session)
			      : kind == LIVE_SESSION ? session_id(live)
						     : THEIRS;
	const struct mark_ref ref = their_ref(steps, session);
	struct claim claim = {0};
	if (kind == NOBODY)
		return;
	if (kind == LATER_VERSION) {
		write_unreadable(&ref);
		see_mark(steps);
		return;
	}
	if (kind == ENDED_SESSION) {
		struct session *ended = begin_session(steps);
		struct mark_ref theirs = ref;
		theirs.session = session_id(ended);
		claim_as(&theirs, &claim);
		session_close(ended, steps->push->conn);
	} else {
		claim_as(&ref, &claim);
	}
	if (kind == FAILED)
		CHECK_INT(mark_fail(&ref, &claim, "some reason", KEEP_UPLOAD, &steps->problem),
			OUTCOME_OK);
	claim_clear(&claim);
	see_mark(steps);
	if (kind == FORGOTTEN) {
		CHECK_INT(mark_forget(&ref, &steps->file->seen_mark, &steps->problem), OUTCOME_OK);
		see_mark(steps);
	}
}

/* Puts the file into the queue, as the first one of a block, and takes it from there as a worker
 * does. Returns the other file of the block, which waits until the first one is claimed. */
static struct candidate *open_block(struct steps *steps)
{
	static char none[] = "";
	struct task task;
	struct candidate *other = calloc(1, sizeof *other);
	struct candidate *files[] = {steps->file->candidate, other};
	other->key = other->path = other->object_key = other->suffix = other->content_id = none;
	CHECK(queue_add(steps->run->queue, files, 2));
	queue_take(steps->run->queue, &task);
	CHECK(task.kind == TASK_FILE && task.file == files[0] && task.file->opens_block);
	return other;
}

static void test_held(const struct held *row)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.no_wait = row->no_wait;
	if (!steps_begin(&steps, NULL, 0))
		return;
	struct session *live = row->mark == LIVE_SESSION ? begin_session(&steps) : NULL;
	make_mark(&steps, row->mark, live);
	const struct candidate *other = open_block(&steps);
	struct candidate *c = steps.file->candidate; /* the queue may have it afterwards */
	steps.run->dry = row->dry;
	/* Only a mark that says done has to be about this bucket. */
	atomic_store(&steps.run->has_witness, false);
	c->held_since_ns = row->held_since_ns;
	c->held_was_reported = row->held_was_reported;
	struct store_spy *spy = store_spy_begin(&steps);
	spy->fails = row->outcome == OUTCOME_OK ? '\0' : 'S';
	spy->outcome = row->outcome;
	const enum step step = steps_claim(&steps);
	store_spy_end(spy);
	bool good = CHECK_INT(step, row->step);
	good &= CHECK_STRING(spy->writes, row->writes);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_HELD], row->held);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], row->failed);
	good &= CHECK_INT(c->held_was_reported, row->held || row->held_was_reported);
	/* A file that is waited for is not counted as held. */
	good &= CHECK_INT(
		report_get_counts(&steps.run->report).held, row->held && step == STEP_SETTLED);
	if (row->said)
		good &= steps_say(&steps, row->said);
	if (row->held)
		good &= CHECK(!strstr(steps.said, "running since an unknown time"));
	/* The rest of the block is left to the other uploader. */
	good &= CHECK_INT(other->contested_ns != 0, row->mark == LIVE_SESSION);
	if (step == STEP_NEXT)
		good &= CHECK_INT(steps.file->claim.taken_over,
			row->mark != NOBODY && row->mark != FORGOTTEN);
	if (step == STEP_NEXT && !row->dry) {
		struct mark mark = steps_mark(&steps);
		struct task task;
		good &= CHECK_INT(mark.state, MARK_CLAIMED);
		good &= CHECK_STRING(mark.claim, steps.file->claim.id);
		mark_clear(&mark);
		/* This would wait for ever if the rest of the block still did. */
		queue_take(steps.run->queue, &task);
		good &= CHECK(task.file == other);
		free(task.file);
	}
	steps_asked(&steps, "");
	if (!good)
		fprintf(stderr, "\t%s\n", row->name);
	if (live)
		session_close(live, steps.push->conn);
	steps_end(&steps);
}

/* Another uploader writes the mark right before this one claims it. */
static struct session *racing; /* that runs */

static void is_held_first(struct steps *steps)
{
	const struct mark_ref ref = their_ref(steps, session_id(racing));
	struct claim claim = {0};
	store_spy()->before = NULL;
	claim_as(&ref, &claim);
	claim_clear(&claim);
}

/* A session that is over by now has claimed it. */
static void is_claimed_first(struct steps *steps)
{
	const struct mark_ref ref = their_ref(steps, THEIRS);
	struct claim claim = {0};
	claim_as(&ref, &claim);
	claim_clear(&claim);
}

static void is_claimed_first_once(struct steps *steps)
{
	store_spy()->before = NULL;
	is_claimed_first(steps);
}

/* The file has changed, and its new version is done. */
static void is_done_first(struct steps *steps)
{
	const struct mark_ref ref = their_ref(steps, THEIRS);
	const struct version version = {
		.size = 10, .mtime_ns = 2 * (int64_t)MTIME_NS, .sum = "crc32c:OHmRjQ=="};
	store_spy()->before = NULL;
	steps_append(steps->path);
	CHECK_INT(utimensat(AT_FDCWD, steps->path,
			  (struct timespec[]){{.tv_sec = 2000}, {.tv_sec = 2000}}, 0),
		0);
	mark_done_as(&ref, &version);
}

static void is_removed(struct steps *steps)
{
	is_claimed_first_once(steps);
	CHECK_INT(unlink(steps->path), 0);
}

static const struct race {
	const char *name;
	void (*before)(struct steps *steps);
	enum outcome outcome; /* of every claim; OK: as the store says */
	enum step step;
	unsigned refused, skipped, failed;
	const char *writes;
	bool is_fatal;
} races[] = {
	{"held", is_held_first, .step = STEP_LATER, .refused = 1, .writes = "m"},
	{"claimed, and over", is_claimed_first_once, .step = STEP_NEXT, .refused = 1,
		.writes = "mm"},
	{"claimed again and again", is_claimed_first, .step = STEP_LATER, .refused = 20,
		.writes = "mmmmmmmmmmmmmmmmmmmm"},
	{"done with a later version", is_done_first, .step = STEP_IN_S3, .refused = 1, .skipped = 1,
		.writes = "m"},
	{"removed", is_removed, .step = STEP_SETTLED, .refused = 1, .failed = 1, .writes = "m"},
	{"no answer", .outcome = OUTCOME_TRANSIENT, .step = STEP_LATER, .writes = "m"},
	{"no permission", .outcome = OUTCOME_DENIED, .step = STEP_OVER, .writes = "m",
		.is_fatal = true},
	{"no table", .outcome = OUTCOME_ABSENT, .step = STEP_OVER, .writes = "m", .is_fatal = true},
};

static void test_race(const struct race *row)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.report_skipped = 1;
	if (!steps_begin(&steps, NULL, 0))
		return;
	racing = begin_session(&steps);
	const struct candidate *other = open_block(&steps);
	struct store_spy *spy = store_spy_begin(&steps);
	spy->before = row->before;
	spy->fails = row->outcome == OUTCOME_OK ? '\0' : 'm';
	spy->outcome = row->outcome;
	bool good = CHECK_INT(steps_claim(&steps), row->step);
	store_spy_end(spy);
	good &= CHECK_STRING(spy->writes, row->writes);
	good &= CHECK_INT(atomic_load(&steps.run->report.claims_refused), row->refused);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_SKIPPED], row->skipped);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], row->failed);
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], row->is_fatal);
	good &= CHECK_INT(other->contested_ns != 0, row->refused != 0);
	steps_asked(&steps, "");
	if (!good)
		fprintf(stderr, "\t%s\n", row->name);
	session_close(racing, steps.push->conn);
	steps_end(&steps);
}

/* A file that is held, or that others claim again and again, comes back after a pause. */
static void test_pause(enum mark_of mark, void (*before)(struct steps *steps), uint64_t least_ns)
{
	struct steps steps;
	struct task task;
	struct looker looker;
	if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0))
		return;
	struct session *live = begin_session(&steps);
	make_mark(&steps, mark, live);
	struct store_spy *spy = store_spy_begin(&steps);
	spy->before = before;
	const uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(steps_claim(&steps), STEP_LATER);
	store_spy_end(spy);
	looker_begin(&looker, steps.run->queue);
	queue_take(steps.run->queue, &task);
	CHECK(clock_boot_ns() - begun_ns >= least_ns);
	CHECK_INT(task.kind, TASK_CHECK);
	free(task.blocks->files[0]);
	free(task.blocks);
	looker_end(&looker);
	session_close(live, steps.push->conn);
	steps_asked(&steps, "");
	steps_end(&steps);
}

static bool always(void *arg)
{
	return true;
}

/* A claim makes something visible: it is not sent once the lease has run out. */
static void test_lease_has_run_out(void)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0))
		return;
	steps.worker->visible_limits.abandon = always;
	CHECK_INT(steps_claim(&steps), STEP_LATER);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* A run whose lease does not last begins nothing new. Here it is over before the lease is renewed.
 */
static void test_no_lease_is_left(void)
{
	struct steps steps;
	struct session *session, *expired;
	const struct session_options options = {.lease_ns = 60 * NS_PER_S};
	if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0) ||
		!CHECK_INT(session_new(&options, &expired), 0))
		return;
	session = steps.run->session;
	steps.run->session = expired;
	run_fence(steps.run, "as the test wants");
	struct store_spy *spy = store_spy_begin(&steps);
	CHECK_INT(steps_claim(&steps), STEP_OVER);
	store_spy_end(spy);
	CHECK_STRING(spy->writes, "");
	steps.run->session = session;
	session_close(expired, NULL);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* A mark with an upload that was begun to replace the done version. */
static void test_upload_that_replaces(void)
{
	static const struct {
		enum s3once_if_changed if_changed;
		bool has_upload;
		const char *suffix; /* of the done version */
		const char *replaces;
		const char *claim_suffix; /* of the claim after it; NULL: the same */
	} tests[] = {
		{REPLACE, true, "", "e"},
		{ANY, true, "", "e"},
		{FAIL, true, "", ""},
		{SKIP, true, "", ""},
		{REPLACE, false, "", ""},
		{REPLACE, true, ".gz", ""},
		{REPLACE, true, "", "e", .claim_suffix = ".gz"},
	};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct steps steps;
		struct claim claim = {0};
		struct version version = EARLIER;
		struct open_upload upload = {.id = strdup("up"), .is_open = true, .part_bytes = 5};
		snprintf(version.suffix, sizeof version.suffix, "%s", tests[i].suffix);
		if (!steps_make(&steps, CONTENT, 9))
			return;
		steps.options.if_changed = tests[i].if_changed;
		if (!steps_begin(&steps, NULL, 0))
			return;
		struct mark_ref ref = their_ref(&steps, THEIRS);
		mark_done_as(&ref, &version);
		ref.suffix = tests[i].claim_suffix ? tests[i].claim_suffix : tests[i].suffix;
		claim_as(&ref, &claim);
		if (tests[i].has_upload)
			CHECK_INT(mark_record_upload(&ref, &claim, &upload, &steps.problem),
				OUTCOME_OK);
		CHECK_INT(mark_fail(&ref, &claim, "some reason", KEEP_UPLOAD, &steps.problem),
			OUTCOME_OK);
		claim_clear(&claim);
		open_upload_clear(&upload);
		see_mark(&steps);
		snprintf(steps.file->replaced_etag, sizeof steps.file->replaced_etag, "before");
		bool good = CHECK_INT(steps_claim(&steps), STEP_NEXT);
		good &= CHECK_STRING(steps.file->replaced_etag, tests[i].replaces);
		good &= CHECK_INT(steps.file->claim.upload.is_open, tests[i].has_upload);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		steps_asked(&steps, "");
		steps_end(&steps);
	}
}

/* Sources that replace each other's objects are reported once in a run. */
static void test_sources_are_said_once(void)
{
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.if_changed = ANY;
	if (!steps_begin(&steps, NULL, 0))
		return;
	for (unsigned i = 0; i < 2; i++) {
		struct mark_ref ref = their_ref(&steps, THEIRS);
		ref.source = "elsewhere:/y";
		mark_done_as(&ref, &(struct version)EARLIER);
		see_mark(&steps);
		CHECK_INT(steps_claim(&steps), STEP_NEXT);
		CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], 1);
		claim_clear(&steps.file->claim);
	}
	steps_asked(&steps, "");
	steps_end(&steps);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_done(&rows[i]);
	for (size_t i = 0; i < sizeof helds / sizeof *helds; i++)
		test_held(&helds[i]);
	for (size_t i = 0; i < sizeof races / sizeof *races; i++)
		test_race(&races[i]);
	test_pause(LIVE_SESSION, NULL, NS_PER_S / 2);
	test_pause(NOBODY, is_claimed_first, NS_PER_S);
	test_lease_has_run_out();
	test_no_lease_is_left();
	test_upload_that_replaces();
	test_sources_are_said_once();
	return check_result();
}
