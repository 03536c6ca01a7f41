/* The reaction to the object in S3 under the key of a file: it is adopted, replaced, marked as an
 * earlier version, or stays; and the requests for that. */
#include "store_spy.h"
#include "upload/file/look.h"
#include "upload/file/steps.h"

#define CONTENT   "123456789" /* whose CRC-32C is SAME */
#define SAME      "4waSgw=="
#define OTHER     "AAAAAA=="
#define HEAD_K    "HEAD /b/k\n"
#define NOT_FOUND STEPS_REPLY("404", "", "")
#define REFUSED   STEPS_REPLY("403", "", "")
#define FAILS     STEPS_REPLY("500", "", "")

/* The owner of an object, by its metadata. */
enum whose {
	NOBODYS,
	OF_THIS_CLAIM, /* of these marks, sent under the claim of the file */
	OF_THESE_MARKS,
	OF_A_COPY, /* of these marks, but written for another key */
	OF_THE_GZ, /* of these marks, written for the key with this suffix */
	OF_OTHER_MARKS,
};

/* The reply of HEAD for an object of nine bytes with the etag "e". */
struct shown {
	enum whose whose;
	const char *sum;  /* its checksum; NULL: none, so that nothing proves its content */
	const char *sent; /* the checksum that its metadata name; NULL: they name none */
	bool is_of_another_time;
	const char *more;  /* headers */
	const char *reply; /* in place of all that */
};

static const char *reply_of(const struct steps *steps, const struct shown *shown)
{
	static char texts[SCRIPT_STEPS_MAX][1200];
	static unsigned next;
	char *text = texts[next++ % SCRIPT_STEPS_MAX];
	const char *table = steps->run->space.settings.table_id;
	const char *claim = steps->file->claim.id;
	if (shown->reply)
		return shown->reply;
	struct text t = TEXT(1200);
	text_addf(&t, "HTTP/1.1 200 X\r\nx-amz-request-id: 1\r\nConnection: close\r\n"
		      "Content-Length: 9\r\nETag: \"e\"\r\n");
	if (shown->sum)
		text_addf(&t, "x-amz-checksum-crc32c: %s\r\n", shown->sum);
	if (shown->whose != NOBODYS)
		text_addf(&t,
			"x-amz-meta-s3once-table: %s\r\nx-amz-meta-s3once-claim: %s\r\n"
			"%sx-amz-meta-mtime: %d\r\n",
			shown->whose == OF_OTHER_MARKS ? "another" : table,
			shown->whose == OF_THIS_CLAIM ? claim : "another",
			steps_written_for(shown->whose == OF_A_COPY   ? "other"
					  : shown->whose == OF_THE_GZ ? "k.gz"
								      : "k"),
			shown->is_of_another_time ? 7 : 1000);
	if (shown->sent)
		text_addf(&t, "x-amz-meta-s3once-sums: crc32c:%s\r\n", shown->sent);
	text_addf(&t, "%s\r\n", shown->more ? shown->more : "");
	snprintf(text, 1200, "%s", text_string(&t));
	text_clear(&t);
	return text;
}

/* Begins a run whose file is claimed. S3 honours conditions, as far as the run knows. */
static bool begin(struct steps *steps)
{
	if (!steps_make(steps, CONTENT, 9))
		return false;
	steps->options.if_changed = S3ONCE_CHANGED_REPLACE;
	if (!steps_begin(steps, NULL, 0) || !CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	steps->file->step = STEP_LOOK;
	s3_set_support(steps->run->s3, S3_PUT_CONDITION, S3_YES);
	s3_set_support(steps->run->s3, S3_COMPLETE_CONDITION, S3_YES);
	s3_set_support(steps->run->s3, S3_IF_MATCH, S3_YES);
	return true;
}

static void set_replaces(struct steps *steps, const char *etag)
{
	snprintf(steps->file->replaced_etag, sizeof steps->file->replaced_etag, "%s", etag);
}

/* An upload that the mark records. */
static void record_upload(struct steps *steps)
{
	struct file *file = steps->file;
	struct open_upload upload = {.id = strdup("up"),
		.is_open = true,
		.checksum = CHECKSUM_CRC32C,
		.suffix = ".zst",
		.part_bytes = 5,
		.size = 9};
	const struct mark_ref ref = file_mark_ref(steps->worker, file);
	CHECK_INT(mark_record_upload(&ref, &file->claim, &upload, &steps->problem), OUTCOME_OK);
}

static const struct {
	const char *name;
	struct shown shown;
	const char *replaces; /* the etag that is to be replaced */
	enum step step;
	enum mark_state state;        /* of its mark afterwards */
	enum s3once_event_type event; /* that was reported; START: none */
	const char *replaces_next;
	bool was_sent; /* a request of this run may have stored it */
} looks[] = {
	{"the same content, of another program", {NOBODYS, SAME}, "", STEP_PROVEN, MARK_DONE,
		S3ONCE_EVENT_ADOPTED, ""},
	{"the same content, of another program, after a request of this run", {NOBODYS, SAME}, "",
		STEP_PROVEN, MARK_DONE, S3ONCE_EVENT_ADOPTED, "", .was_sent = true},
	{"sent by this run in an earlier turn", {OF_THESE_MARKS, SAME, SAME}, "", STEP_PROVEN,
		MARK_DONE, S3ONCE_EVENT_UPLOADED, "", .was_sent = true},
	{"sent by this very claim", {OF_THIS_CLAIM, SAME, SAME}, "", STEP_PROVEN, MARK_DONE,
		S3ONCE_EVENT_UPLOADED, ""},
	{"sent by an earlier run", {OF_THESE_MARKS, SAME, SAME}, "", STEP_PROVEN, MARK_DONE,
		S3ONCE_EVENT_ADOPTED, ""},
	{"sent by others, under a claim of the same id", {OF_OTHER_MARKS, SAME, SAME}, "",
		STEP_PROVEN, MARK_DONE, S3ONCE_EVENT_ADOPTED, ""},
	{"the same content, in place of what was to be replaced", {OF_THESE_MARKS, SAME, SAME}, "e",
		STEP_PROVEN, MARK_DONE, S3ONCE_EVENT_ADOPTED, "e"},
	{"other content, of another program", {NOBODYS, OTHER}, "", STEP_SETTLED, MARK_FAILED,
		S3ONCE_EVENT_FAILED, ""},
	{"other content, of other marks", {OF_OTHER_MARKS, OTHER, OTHER}, "", STEP_SETTLED,
		MARK_FAILED, S3ONCE_EVENT_FAILED, ""},
	{"a copy that was made in S3", {OF_A_COPY, OTHER, OTHER}, "", STEP_SETTLED, MARK_FAILED,
		S3ONCE_EVENT_FAILED, ""},
	{"nothing shows its content", {NOBODYS}, "", STEP_SETTLED, MARK_FAILED, S3ONCE_EVENT_FAILED,
		""},
	{"what is to be replaced", {OF_THESE_MARKS, OTHER, OTHER}, "e", STEP_NEXT, MARK_CLAIMED,
		S3ONCE_EVENT_START, "e"},
	{"what is to be replaced, of another program", {NOBODYS, OTHER}, "e", STEP_SETTLED,
		MARK_FAILED, S3ONCE_EVENT_FAILED, "e"},
	{"what is to be replaced, of other marks", {OF_OTHER_MARKS, OTHER, OTHER}, "e",
		STEP_SETTLED, MARK_FAILED, S3ONCE_EVENT_FAILED, "e"},
	{"another version than is to be replaced", {OF_THESE_MARKS, OTHER, OTHER, true}, "e2",
		STEP_OPEN, MARK_DONE, S3ONCE_EVENT_START, "e2"},
	{"an earlier version", {OF_THESE_MARKS, OTHER, OTHER, true}, "", STEP_OPEN, MARK_DONE,
		S3ONCE_EVENT_START, ""},
	{"an earlier version with the same time", {OF_THESE_MARKS, OTHER, OTHER}, "", STEP_OPEN,
		MARK_DONE, S3ONCE_EVENT_START, ""},
	{"other bytes than were sent", {OF_THESE_MARKS, OTHER, SAME}, "", STEP_SEND, MARK_CLAIMED,
		S3ONCE_EVENT_WARNING, "e"},
	{"other bytes than others have sent", {OF_OTHER_MARKS, OTHER, SAME}, "", STEP_SETTLED,
		MARK_FAILED, S3ONCE_EVENT_FAILED, ""},
};

static void test_look(size_t i)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	steps_answer(&steps, reply_of(&steps, &looks[i].shown));
	set_replaces(&steps, looks[i].replaces);
	steps.file->candidate->was_sent = looks[i].was_sent;
	bool good =
		CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), looks[i].step);
	struct mark mark = steps_mark(&steps);
	good &= CHECK_INT(mark.state, looks[i].state);
	good &= CHECK_STRING(steps.file->replaced_etag, looks[i].replaces_next);
	if (looks[i].event != S3ONCE_EVENT_START)
		good &= CHECK_INT(steps.events[looks[i].event], 1);
	/* The mark of an earlier version is about that, and not about the file. */
	if (looks[i].step == STEP_OPEN) {
		good &= CHECK_INT(mark.done.mtime_ns,
			(looks[i].shown.is_of_another_time ? 7 : 1000) * 1000000000LL);
		good &= CHECK_INT(mark.done.mtime_is_shared, !looks[i].shown.is_of_another_time);
		good &= CHECK_STRING(mark.done.sum, "crc32c:" OTHER);
		good &= CHECK_STRING(mark.done.etag, "e");
		good &= CHECK_STRING(steps.file->claim.id, "");
	}
	if (looks[i].step == STEP_PROVEN) {
		good &= CHECK_STRING(mark.done.sum, "crc32c:" SAME);
		good &= CHECK_INT(mark.done.size, 9);
		/* The mark of an adopted object is synced at once. */
		good &= CHECK_INT(
			steps.file->candidate->was_sent, looks[i].event == S3ONCE_EVENT_UPLOADED);
	}
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K);
	if (!good)
		fprintf(stderr, "\t%s\n", looks[i].name);
	steps_end(&steps);
}

/* The reply to the write that marks an earlier version done is lost. The next turn finds that mark,
 * and judges the file by it, as a file that has changed: nothing of it counts as done by this
 * run. */
static void test_earlier_and_no_reply(size_t i)
{
	static const struct {
		enum s3once_if_changed if_changed;
		bool is_applied; /* the write, whose reply is lost */
		enum step step;  /* of the next turn, up to the claim */
		enum s3once_event_type event;
		const char *replaces, *asked;
	} rows[] = {
		{S3ONCE_CHANGED_FAIL, true, STEP_SETTLED, S3ONCE_EVENT_CHANGED, "", HEAD_K},
		{S3ONCE_CHANGED_SKIP, true, STEP_LEFT_OUT, S3ONCE_EVENT_OUTDATED, "", HEAD_K},
		{S3ONCE_CHANGED_REPLACE, true, STEP_NEXT, S3ONCE_EVENT_START, "e", HEAD_K HEAD_K},
		{S3ONCE_CHANGED_REPLACE_ANY, true, STEP_NEXT, S3ONCE_EVENT_START, "e", HEAD_K},
		/* If it was not written either, the object is found once more. */
		{S3ONCE_CHANGED_FAIL, false, STEP_NEXT, S3ONCE_EVENT_START, "", HEAD_K},
	};
	struct steps steps;
	if (i == sizeof rows / sizeof *rows || !begin(&steps))
		return;
	const struct shown earlier = {OF_THESE_MARKS, OTHER, OTHER, true};
	struct file *file = steps.file;
	steps.run->options.if_changed = rows[i].if_changed;
	steps_answer(&steps, reply_of(&steps, &earlier));
	steps_answer(&steps, reply_of(&steps, &earlier));
	struct store_spy *spy = store_spy_begin(&steps);
	spy->fails = 'M';
	spy->outcome = OUTCOME_TRANSIENT;
	spy->loses_reply = rows[i].is_applied;
	bool good = CHECK_INT(look_at_object(steps.worker, file, LOOK_REQUIRED), STEP_LATER);
	store_spy_end(spy);
	good &= CHECK_STRING(spy->writes, "M");
	good &= CHECK_INT(steps.events[S3ONCE_EVENT_RETRY], 1);
	steps_next_turn(&steps);
	file = steps.file;
	good &= CHECK(!file->candidate->was_marked_done);
	good &= CHECK_INT(file->seen_mark.state, rows[i].is_applied ? MARK_DONE : MARK_CLAIMED);
	good &= CHECK_STRING(file->seen_mark.done.sum, rows[i].is_applied ? "crc32c:" OTHER : "");
	good &= CHECK_INT(steps_claim(&steps), rows[i].step);
	good &= CHECK_STRING(file->replaced_etag, rows[i].replaces);
	for (unsigned event = 0; event < sizeof steps.events / sizeof *steps.events; event++)
		if (event != S3ONCE_EVENT_START && event != S3ONCE_EVENT_RETRY)
			good &= CHECK_INT(steps.events[event], event == rows[i].event);
	steps_end_row(&steps, good, rows[i].asked, i);
	test_earlier_and_no_reply(i + 1);
}

/* With --if-changed=replace-any the file takes the place of another uploader's object, exactly of
 * the one that was seen. A client that writes it again and again ends the turn. */
static void test_object_of_another_uploader(enum s3once_if_changed if_changed, unsigned restarts)
{
	const bool replaces = if_changed == S3ONCE_CHANGED_REPLACE_ANY && !restarts;
	struct steps steps;
	if (!begin(&steps))
		return;
	steps.run->options.if_changed = if_changed;
	steps.file->restarts = restarts;
	steps_answer(&steps, STEPS_REPLY("200", "Content-Length: 8\r\nETag: \"e\"\r\n", ""));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED),
		replaces ? STEP_SEND : STEP_SETTLED);
	CHECK_STRING(steps.file->replaced_etag, replaces ? "e" : "");
	CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], replaces);
	CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], !replaces);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* But not of one whose content may be that of the file. */
static void test_object_of_unknown_content(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	steps.run->options.if_changed = S3ONCE_CHANGED_REPLACE_ANY;
	steps_answer(&steps, reply_of(&steps, &(struct shown){NOBODYS}));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), STEP_SETTLED);
	CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], 1);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* An object that counts as an earlier version in each round of a turn ends it. */
static void test_earlier_again_and_again(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	steps_answer(&steps, reply_of(&steps, &(struct shown){OF_THESE_MARKS, OTHER, OTHER, true}));
	steps.file->restarts = FILE_RESTARTS_MAX;
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), STEP_SETTLED);
	CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], 1);
	CHECK(strstr(steps.said, "again and again") != NULL);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* An upload that the mark records is aborted, by the key that it was begun for, before the mark
 * says done of what is there. */
static void test_upload_of_what_is_there(const struct shown *shown, enum step step)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	record_upload(&steps);
	steps_answer(&steps, reply_of(&steps, shown));
	steps_answer(&steps, STEPS_REPLY("204", "", ""));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), step);
	struct mark mark = steps_mark(&steps);
	CHECK_INT(mark.state, MARK_DONE);
	CHECK(!mark.upload.id);
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K "DELETE /b/k.zst?uploadId=up\n");
	steps_end(&steps);
	if (!begin(&steps))
		return;
	record_upload(&steps);
	steps_answer(&steps, reply_of(&steps, shown));
	steps_answer(&steps, FAILS);
	const struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), STEP_LATER);
	CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
	CHECK_INT(mark.state, MARK_CLAIMED);
	CHECK_STRING(mark.upload.id, "up");
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K "DELETE /b/k.zst?uploadId=up\n");
	steps_end(&steps);
}

/* A dry run does not abort the recorded upload, so the next run can resume it. */
static void test_upload_in_a_dry_run(const struct shown *shown, enum step step)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	record_upload(&steps);
	steps.run->dry = true;
	steps_answer(&steps, reply_of(&steps, shown));
	steps_answer(&steps, STEPS_REPLY("204", "", ""));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), step);
	struct mark mark = steps_mark(&steps);
	CHECK_INT(mark.state, MARK_CLAIMED);
	CHECK_STRING(mark.upload.id, "up");
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* The version that was done before the claim stays as its mark had it, but for the suffix, which is
 * that of the key under which it was found. */
static void test_version_that_was_done(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	struct mark *before = &steps.file->claim.before;
	before->state = MARK_DONE;
	before->has_done = true;
	before->source = strdup("elsewhere:/y");
	steps.file->claim.taken_over = true;
	before->done = (struct version){.size = 9,
		.mtime_ns = 5,
		.sum = "crc32c:" OTHER,
		.etag = "e",
		.part_bytes = 4,
		.suffix = ".zst"};
	steps_answer(&steps, reply_of(&steps, &(struct shown){NOBODYS, OTHER}));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), STEP_OPEN);
	struct mark mark = steps_mark(&steps);
	CHECK_INT(mark.done.mtime_ns, 5);
	CHECK_INT(mark.done.part_bytes, 4);
	CHECK_STRING(mark.done.suffix, ""); /* of the key under which it was found */
	CHECK(!mark.done.mtime_is_shared);
	CHECK_STRING(mark.source, "elsewhere:/y");
	CHECK_STRING(steps.file->seen_mark.source, "elsewhere:/y");
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* An object that another client has overwritten: with --reupload the mark says done again, but not
 * if the run was to replace the version that was done. */
static void test_overwritten(const char *replaces, enum mark_state state)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	struct file *file = steps.file;
	const struct mark_ref ref = file_mark_ref(steps.worker, file);
	const struct version done = {
		.size = 9, .mtime_ns = file->mtime_ns, .sum = "crc32c:" SAME, .etag = "e2"};
	struct mark mark = {0};
	CHECK_INT(mark_done(&ref, &file->claim, &done, "x:/y", &mark, &steps.problem), OUTCOME_OK);
	claim_clear(&file->claim);
	struct mark seen = steps_mark(&steps);
	CHECK_INT(mark_claim(&ref, &seen, &file->claim, &mark, &steps.problem), OUTCOME_OK);
	set_replaces(&steps, replaces);
	steps_answer(&steps, reply_of(&steps, &(struct shown){NOBODYS, OTHER}));
	CHECK_INT(look_at_object(steps.worker, file, LOOK_REQUIRED), STEP_SETTLED);
	CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], 1);
	mark = steps_mark(&steps);
	CHECK_INT(mark.state, state);
	mark_clear(&mark);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
}

/* The output of an earlier run is known by its key and its suffix alone, before the pipe is read.
 */
static void test_output_of_an_earlier_run(void)
{
	static char gz[] = ".gz";
	struct shown output = {
		OF_THESE_MARKS, SAME, SAME, .more = "x-amz-meta-s3once-suffix: .gz\r\n"};
	struct steps steps;
	if (!begin(&steps))
		return;
	close(steps.file->fd);
	steps.file->fd = -1;
	steps.file->candidate->is_piped = true;
	steps.file->candidate->suffix = gz;
	steps_answer(&steps, reply_of(&steps, &output));
	CHECK_INT(look_at_object(steps.worker, steps.file, LOOK_REQUIRED), STEP_IN_S3);
	CHECK_INT(steps.events[S3ONCE_EVENT_ADOPTED], 1);
	steps_asked(&steps, HEAD_K);
	steps_end(&steps);
	/* Under the key of a suffix that this run does not use. */
	if (!begin(&steps))
		return;
	close(steps.file->fd);
	steps.file->fd = -1;
	steps.file->step = STEP_ELSEWHERE;
	steps.file->candidate->is_piped = true;
	steps.file->claim.taken_over = true;
	steps.file->claim.before.state = MARK_FAILED;
	output.whose = OF_THE_GZ;
	steps_answer(&steps, reply_of(&steps, &output));
	CHECK_INT(look_elsewhere(steps.worker, steps.file), STEP_IN_S3);
	steps_asked(&steps, "HEAD /b/k.gz\n");
	steps_end(&steps);
}

/* A file whose object is damaged each time is not sent for ever. */
static void test_damage_has_an_end(void)
{
	struct steps steps;
	enum step step = STEP_SEND;
	unsigned n = 0;
	if (!begin(&steps))
		return;
	const char *damaged = reply_of(&steps, &(struct shown){OF_THIS_CLAIM, OTHER, SAME});
	for (size_t i = 0; i < 10; i++)
		steps_answer(&steps, damaged);
	for (; n < 10 && step == STEP_SEND; n++) {
		steps.file->replaced_etag[0] = '\0';
		step = look_at_object(steps.worker, steps.file, LOOK_REQUIRED);
	}
	CHECK_INT(step, STEP_SETTLED);
	CHECK_INT(n, FILE_DAMAGES_MAX + 1);
	steps_asked(&steps, HEAD_K HEAD_K HEAD_K HEAD_K);
	steps_end(&steps);
}

/* The requests made if no object was shown, and whether the file may be sent then. */
static void test_nothing_is_shown(void)
{
	static const struct {
		const char *replies[2];
		enum look why;
		bool honours; /* the server is known to honour conditions */
		enum step step;
		const char *replaces, *asked;
		bool is_new; /* nothing is to be replaced */
		unsigned n_parts;
	} rows[] = {
		{{NOT_FOUND}, LOOK_REQUIRED, true, STEP_NEXT, "", HEAD_K},
		{{NOT_FOUND}, LOOK_OPTIONAL, false, STEP_NEXT, "", HEAD_K},
		{{REFUSED}, LOOK_OPTIONAL, true, STEP_NEXT, "e", HEAD_K},
		{{REFUSED, REFUSED}, LOOK_OPTIONAL, false, STEP_ASIDE, "e", HEAD_K "GET /b/k\n"},
		{{REFUSED, REFUSED}, LOOK_REQUIRED, true, STEP_ASIDE, "e", HEAD_K "GET /b/k\n"},
		{{FAILS}, LOOK_OPTIONAL, true, STEP_LATER, NULL, HEAD_K},
		{{FAILS}, LOOK_REQUIRED, true, STEP_LATER, NULL, HEAD_K},
		/* A new object: what counts is the condition of the request that makes it. */
		{{REFUSED}, LOOK_OPTIONAL, true, STEP_NEXT, "", HEAD_K, .is_new = true,
			.n_parts = 2},
		{{REFUSED, REFUSED}, LOOK_OPTIONAL, false, STEP_ASIDE, "", HEAD_K "GET /b/k\n",
			.is_new = true, .n_parts = 2},
		{{REFUSED}, LOOK_OPTIONAL, true, STEP_NEXT, "", HEAD_K, .is_new = true},
		{{REFUSED, REFUSED}, LOOK_OPTIONAL, false, STEP_ASIDE, "", HEAD_K "GET /b/k\n",
			.is_new = true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		set_replaces(&steps, rows[i].is_new ? "" : "e");
		steps.file->plan.n_parts = rows[i].n_parts;
		const enum s3_feature put = S3_PUT_CONDITION, complete = S3_COMPLETE_CONDITION;
		const enum s3_feature of_new = rows[i].n_parts ? complete : put;
		s3_set_support(steps.run->s3, of_new == put ? complete : put,
			rows[i].honours ? S3_NO : S3_YES);
		s3_set_support(steps.run->s3, rows[i].is_new ? of_new : S3_IF_MATCH,
			rows[i].honours ? S3_YES : S3_NO);
		steps_answer(&steps, rows[i].replies[0]);
		steps_answer(&steps, rows[i].replies[1]);
		const enum step step = look_at_object(steps.worker, steps.file, rows[i].why);
		bool good = CHECK_INT(step, rows[i].step);
		if (rows[i].replaces)
			good &= CHECK_STRING(steps.file->replaced_etag, rows[i].replaces);
		if (step == STEP_ASIDE) /* the list of refused files has it */
			steps.file = NULL;
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

/* Right before a write whose condition may be ignored. */
static void test_once_more(void)
{
	static const struct {
		struct shown shown;
		const char *replaces;
		enum step step;
	} rows[] = {
		{.shown.reply = NOT_FOUND, .replaces = "", .step = STEP_NEXT},
		{{OF_THESE_MARKS, OTHER, OTHER}, "e", STEP_NEXT},
		{{OF_THESE_MARKS, OTHER, OTHER}, "e2", STEP_LOOK},
		{{OF_THESE_MARKS, SAME, SAME}, "", STEP_LOOK},
		{{OF_THESE_MARKS, OTHER, SAME}, "", STEP_LOOK},
		{{NOBODYS, SAME}, "", STEP_LOOK},
		{{NOBODYS, OTHER}, "e", STEP_LOOK},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		set_replaces(&steps, rows[i].replaces);
		steps_answer(&steps, reply_of(&steps, &rows[i].shown));
		const bool good =
			CHECK_INT(look_before_write(steps.worker, steps.file), rows[i].step);
		steps_end_row(&steps, good, HEAD_K, i);
	}
	struct steps steps;
	if (!begin(&steps))
		return;
	/* The check after each of them has found nothing. */
	steps.file->restarts = FILE_RESTARTS_MAX;
	steps_answer(&steps, reply_of(&steps, &(struct shown){NOBODYS, OTHER}));
	const bool good = CHECK_INT(look_before_write(steps.worker, steps.file), STEP_SETTLED);
	steps_end_row(&steps, good, HEAD_K, sizeof rows / sizeof *rows);
	if (!begin(&steps))
		return;
	steps_answer(&steps, REFUSED);
	steps_answer(&steps, REFUSED);
	CHECK_INT(look_before_write(steps.worker, steps.file), STEP_ASIDE);
	steps_asked(&steps, HEAD_K "GET /b/k\n");
	steps.file = NULL;
	steps_end(&steps);
}

/* Before the claim of a file that has changed. */
static void test_whether_ours(void)
{
	static const struct {
		struct shown shown;
		const char *replaces;
		enum step step;
	} rows[] = {
		{.shown.reply = NOT_FOUND, .replaces = "e", .step = STEP_NEXT},
		{{OF_THESE_MARKS, OTHER, OTHER}, "e", STEP_NEXT},
		{{NOBODYS, OTHER}, "e2", STEP_NEXT},
		{{NOBODYS, OTHER}, "e", STEP_SETTLED},
		{{OF_OTHER_MARKS, OTHER, OTHER}, "e", STEP_SETTLED},
		{{OF_A_COPY, OTHER, OTHER}, "e", STEP_SETTLED},
		{.shown.reply = REFUSED, .replaces = "e", .step = STEP_ASIDE},
		{.shown.reply = FAILS, .replaces = "e", .step = STEP_LATER},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		set_replaces(&steps, rows[i].replaces);
		steps_answer(&steps, reply_of(&steps, &rows[i].shown));
		const enum step step = look_whether_ours(steps.worker, steps.file);
		bool good = CHECK_INT(step, rows[i].step);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_CHANGED], step == STEP_SETTLED);
		if (step == STEP_ASIDE)
			steps.file = NULL;
		steps_end_row(&steps, good, HEAD_K, i);
	}
}

/* After a write that was not successful. */
static void test_after_write(void)
{
	static const struct s3_condition absent = {.if_none_match = true}, same = {.if_match = "e"},
					 none = {0};
	static const struct {
		const struct s3_condition *condition;
		enum outcome outcome;
		const char *reply;
		enum step step;
		bool learns, is_unconditional;
		const char *asked;
	} rows[] = {
		{&absent, OUTCOME_REFUSED, NOT_FOUND, STEP_SEND, false, false, HEAD_K},
		{&same, OUTCOME_REFUSED, NOT_FOUND, STEP_SEND, false, false, HEAD_K},
		{&same, OUTCOME_ABSENT, NOT_FOUND, STEP_SEND, false, false, HEAD_K},
		{&same, OUTCOME_REFUSED, NULL, STEP_SEND, true, false, HEAD_K},
		{&absent, OUTCOME_UNSUPPORTED, NULL, STEP_SEND, false, true, ""},
		{&same, OUTCOME_UNSUPPORTED, NULL, STEP_SEND, false, true, ""},
		{&none, OUTCOME_UNSUPPORTED, NULL, STEP_SETTLED, false, false, ""},
		{&absent, OUTCOME_TRANSIENT, NULL, STEP_LATER, false, false, ""},
		{&absent, OUTCOME_INVALID, NULL, STEP_SETTLED, false, false, ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		if (rows[i].condition == &same)
			set_replaces(&steps, "e");
		steps_answer(&steps,
			rows[i].reply
				? rows[i].reply
				: reply_of(&steps, &(struct shown){OF_THESE_MARKS, OTHER, OTHER}));
		const enum step step = look_after_failed_write(steps.worker, steps.file,
			rows[i].condition, rows[i].outcome, PROBLEM("it failed"));
		bool good = CHECK_INT(step, rows[i].step);
		good &= CHECK_INT(
			s3_supports(steps.run->s3, S3_IF_MATCH), rows[i].learns ? S3_NO : S3_YES);
		if (step != STEP_LATER)
			good &= CHECK_INT(steps.file->is_unconditional, rows[i].is_unconditional);
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

/* A server that refuses each time, and shows nothing, is not asked for ever. */
static void test_refusals_have_an_end(void)
{
	const struct s3_condition absent = {.if_none_match = true};
	struct steps steps;
	enum step step = STEP_SEND;
	unsigned n = 0;
	if (!begin(&steps))
		return;
	for (size_t i = 0; i < SCRIPT_STEPS_MAX; i++)
		steps_answer(&steps, NOT_FOUND);
	for (; n < SCRIPT_STEPS_MAX && step == STEP_SEND; n++)
		step = look_after_failed_write(
			steps.worker, steps.file, &absent, OUTCOME_REFUSED, PROBLEM("refused"));
	CHECK_INT(step, STEP_SETTLED);
	CHECK_INT(n, FILE_RESTARTS_MAX + 1);
	/* A condition that the server does not know is left out once, and after that it is no
	 * reason any more. */
	steps.file->is_unconditional = true;
	CHECK_INT(look_after_failed_write(steps.worker, steps.file, &absent, OUTCOME_UNSUPPORTED,
			  PROBLEM("not known")),
		STEP_SETTLED);
	script_stop(&steps.server);
	steps_end(&steps);
}

/* The sent object has taken the place of the one to be replaced, even if it has the same etag. */
static void test_prove_by_head(void)
{
	static const struct {
		struct shown shown;
		enum step step;
	} rows[] = {
		{{OF_THIS_CLAIM, SAME, SAME}, STEP_PROVEN},
		{{OF_THIS_CLAIM, OTHER, SAME}, STEP_SEND},
		{{OF_THIS_CLAIM, NULL, SAME}, STEP_SETTLED},
		{.shown.reply = NOT_FOUND, .step = STEP_SETTLED},
		{.shown.reply = FAILS, .step = STEP_LATER},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		set_replaces(&steps, "e");
		steps_answer(&steps, reply_of(&steps, &rows[i].shown));
		bool good = CHECK_INT(prove_by_head(steps.worker, steps.file), rows[i].step);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_UPLOADED], rows[i].step == STEP_PROVEN);
		steps_end_row(&steps, good, HEAD_K, i);
	}
}

#define ID     "c0ffee"
#define SAYS   "x-amz-meta-s3once-content: " ID "\r\n"
#define GZ     "HEAD /b/k.gz\n"
#define OTHERS "HEAD /b/k.bz2\nHEAD /b/k.xz\nHEAD /b/k.zst\nHEAD /b/k.lz4\n"

/* A log that is known by its content may be there under another suffix. */
static void test_elsewhere(void)
{
	static char id[] = ID;
	static const struct {
		const char *name;
		struct shown shown; /* under the first other suffix, which is .gz */
		bool taken_over;
		enum mark_state before;
		bool is_new;
		const char *replaces;
		enum step step;
		bool goes_on;  /* the other suffixes are looked at as well */
		bool is_known; /* none is looked at */
	} rows[] = {
		{"its content", {OF_THESE_MARKS, SAME, SAME, .more = SAYS}, .replaces = "",
			.step = STEP_IN_S3},
		{"its content, of other marks", {OF_OTHER_MARKS, SAME, SAME, .more = SAYS},
			.replaces = "", .step = STEP_IN_S3},
		{"other content", {OF_THESE_MARKS, SAME, SAME, .more = ""}, .replaces = "",
			.step = STEP_NEXT, .goes_on = true},
		{"nothing shows its bytes", {OF_THESE_MARKS, NULL, SAME, .more = SAYS},
			.replaces = "", .step = STEP_SETTLED},
		{"other bytes than were sent", {OF_THESE_MARKS, OTHER, SAME, .more = SAYS},
			.replaces = "", .step = STEP_NEXT, .goes_on = true},
		{"nothing", .shown.reply = NOT_FOUND, .replaces = "", .step = STEP_NEXT,
			.goes_on = true},
		{"refused", .shown.reply = REFUSED, .replaces = "", .step = STEP_NEXT,
			.goes_on = true},
		{"a HEAD that is not taken", .shown.reply = STEPS_REPLY("400", "", ""),
			.replaces = "", .step = STEP_NEXT, .goes_on = true},
		{"no answer", .shown.reply = FAILS, .replaces = "", .step = STEP_LATER},
		{"taken over", .shown.reply = NOT_FOUND, .taken_over = true, .before = MARK_FAILED,
			.replaces = "", .step = STEP_LOOK, .goes_on = true},
		{"a new piece that was taken over", .shown.reply = NOT_FOUND, .taken_over = true,
			.before = MARK_CLAIMED, .is_new = true, .replaces = "", .step = STEP_LOOK,
			.goes_on = true},
		{"a done version is to be replaced", .shown.reply = NOT_FOUND, .taken_over = true,
			.before = MARK_DONE, .replaces = "e", .step = STEP_NEXT, .is_known = true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		struct file *file = steps.file;
		file->step = STEP_ELSEWHERE;
		file->candidate->content_id = id;
		file->candidate->is_new = rows[i].is_new;
		file->claim.taken_over = rows[i].taken_over;
		file->claim.before.state = rows[i].before;
		set_replaces(&steps, rows[i].replaces);
		steps_answer(&steps, reply_of(&steps, &rows[i].shown));
		for (size_t k = 1; k < SCRIPT_STEPS_MAX; k++)
			steps_answer(&steps, NOT_FOUND);
		const enum step step = look_elsewhere(steps.worker, file);
		bool good = CHECK_INT(step, rows[i].step);
		if (step == STEP_IN_S3) {
			struct mark mark = steps_mark(&steps);
			good &= CHECK_STRING(mark.done.suffix, ".gz");
			good &= CHECK_STRING(mark.done.content_id, ID);
			mark_clear(&mark);
		}
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].name);
		steps_asked(&steps, rows[i].is_known ? "" : rows[i].goes_on ? GZ OTHERS : GZ);
		steps_end(&steps);
	}
}

/* When S3 is asked for a file, of which nothing was sent, before it is read. */
static void test_looks_ahead(void)
{
	static char gz[] = ".gz";
	static const struct {
		enum in_bucket in_bucket;
		unsigned char listed;
		bool taken_over, honours;
		enum mark_state before;
		bool reupload, is_new;
		const char *replaces;
		enum step step;
		const char *asked;
		bool is_gz; /* its object has the suffix .gz */
	} rows[] = {
		{BUCKET_UNASKED, .honours = true, .replaces = "", .step = STEP_NEXT, .asked = ""},
		{BUCKET_UNLISTED, .honours = true, .replaces = "", .step = STEP_NEXT,
			.asked = HEAD_K},
		{BUCKET_LISTED, 1, .honours = true, .replaces = "", .step = STEP_NEXT,
			.asked = HEAD_K},
		{BUCKET_LISTED, 2, .honours = true, .replaces = "", .step = STEP_NEXT, .asked = ""},
		{BUCKET_LISTED, 2, .honours = true, .replaces = "", .step = STEP_NEXT,
			.asked = HEAD_K, .is_gz = true},
		{BUCKET_LISTED, 1, .honours = true, .replaces = "", .step = STEP_NEXT, .asked = "",
			.is_gz = true},
		{BUCKET_UNLISTED, .honours = false, .replaces = "", .step = STEP_NEXT, .asked = ""},
		{BUCKET_UNLISTED, .honours = true, .replaces = "e", .step = STEP_NEXT, .asked = ""},
		{BUCKET_UNASKED, .taken_over = true, .honours = true, .before = MARK_CLAIMED,
			.replaces = "", .step = STEP_LOOK, .asked = ""},
		{BUCKET_UNASKED, .taken_over = true, .honours = true, .before = MARK_FORGOTTEN,
			.replaces = "", .step = STEP_LOOK, .asked = ""},
		{BUCKET_UNASKED, .taken_over = true, .honours = true, .before = MARK_DONE,
			.replaces = "e", .step = STEP_NEXT, .asked = ""},
		{BUCKET_UNASKED, .taken_over = true, .honours = true, .before = MARK_DONE,
			.reupload = true, .replaces = "", .step = STEP_LOOK, .asked = ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		struct file *file = steps.file;
		file->step = STEP_ELSEWHERE;
		file->candidate->in_bucket = rows[i].in_bucket;
		file->candidate->listed_suffixes = rows[i].listed;
		if (rows[i].is_gz)
			file->candidate->suffix = gz;
		file->claim.taken_over = rows[i].taken_over;
		file->claim.before.state = rows[i].before;
		steps.run->options.reupload = rows[i].reupload;
		s3_set_support(steps.run->s3, S3_PUT_CONDITION, rows[i].honours ? S3_YES : S3_NO);
		set_replaces(&steps, rows[i].replaces);
		steps_answer(&steps, NOT_FOUND);
		const bool good = CHECK_INT(look_elsewhere(steps.worker, file), rows[i].step);
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		test_look(i);
	test_upload_of_what_is_there(&(struct shown){NOBODYS, SAME}, STEP_PROVEN);
	test_upload_of_what_is_there(
		&(struct shown){OF_THESE_MARKS, OTHER, OTHER, true}, STEP_OPEN);
	test_upload_in_a_dry_run(&(struct shown){NOBODYS, SAME}, STEP_LEFT_OUT);
	test_upload_in_a_dry_run(&(struct shown){OF_THESE_MARKS, OTHER, OTHER, true}, STEP_OPEN);
	test_version_that_was_done();
	test_overwritten("", MARK_DONE);
	test_overwritten("e2", MARK_FAILED);
	test_output_of_an_earlier_run();
	test_damage_has_an_end();
	test_nothing_is_shown();
	test_once_more();
	test_whether_ours();
	test_after_write();
	test_refusals_have_an_end();
	test_prove_by_head();
	test_elsewhere();
	test_looks_ahead();
	test_earlier_again_and_again();
	test_object_of_another_uploader(S3ONCE_CHANGED_REPLACE, 0);
	test_object_of_another_uploader(S3ONCE_CHANGED_REPLACE_ANY, 0);
	test_object_of_another_uploader(S3ONCE_CHANGED_REPLACE_ANY, FILE_RESTARTS_MAX);
	test_object_of_unknown_content();
	test_earlier_and_no_reply(0);
	return check_result();
}
