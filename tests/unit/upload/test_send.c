/* A file that is sent whole: what precedes its PutObject, and what follows from each answer. */
#include "steps.h"
#include "upload/file/steps.h"

#define CONTENT     "123456789" /* whose CRC-32C is SAME */
#define SAME        "x-amz-checksum-crc32c: 4waSgw==\r\n"
#define OTHER       "x-amz-checksum-crc32c: AAAAAA==\r\n"
#define NOT_FOUND   STEPS_REPLY("404", "", "")
#define FAILS       STEPS_REPLY("500", "", "")
#define STORED(sum) STEPS_REPLY("200", "ETag: \"e\"\r\n" sum, "")
#define SHOWN(sum)  STEPS_REPLY("200", "Content-Length: 9\r\nETag: \"e\"\r\n" sum, "")
#define PUT         "PUT /b/k\n"
#define HEAD        "HEAD /b/k\n"

enum trouble { NONE, MAY_IGNORE, EXPIRED, CHANGED, UPLOAD, RESTARTED, SENT_BEFORE, HIDDEN };

static bool always(void *arg)
{
	return true;
}

/* reader.abandon: a store into the file right after it was read, which leaves its times. */
static bool store_hidden(void *arg)
{
	const int fd = open(arg, O_WRONLY | O_CLOEXEC);
	CHECK_INT(pwrite(fd, "x", 1, 0), 1);
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
	return false;
}

static const struct {
	const char *name;
	enum trouble trouble;
	const char *replies[3];
	enum step step;
	const char *asked;
	bool was_sent; /* S3 may have it */
	enum mark_state state;
} rows[] = {
	{"stored", NONE, {STORED(SAME)}, STEP_PROVEN, PUT, true, MARK_DONE},
	{"other bytes were stored", NONE, {STORED(OTHER)}, STEP_LOOK, PUT, true, MARK_CLAIMED},
	{"and again and again", RESTARTED, {STORED(OTHER)}, STEP_SETTLED, PUT, true, MARK_FAILED},
	{"a HEAD proves it", NONE, {STORED(""), SHOWN(SAME)}, STEP_PROVEN, PUT HEAD, true,
		MARK_DONE},
	{"a HEAD does not", NONE, {STORED(""), SHOWN("")}, STEP_SETTLED, PUT HEAD, true,
		MARK_FAILED},
	{"a HEAD shows other bytes", NONE, {STORED(""), SHOWN(OTHER)}, STEP_SETTLED, PUT HEAD, true,
		MARK_FAILED},
	{"a HEAD shows nothing", NONE, {STORED(""), NOT_FOUND}, STEP_SETTLED, PUT HEAD, true,
		MARK_FAILED},
	{"an error", NONE, {FAILS}, STEP_LATER, PUT, true, MARK_CLAIMED},
	{"no answer", NONE, {NULL}, STEP_LATER, PUT, true, MARK_CLAIMED},
	{"refused, and nothing is there", NONE, {STEPS_REPLY("412", "", ""), NOT_FOUND}, STEP_SEND,
		PUT HEAD, false, MARK_CLAIMED},
	{"refused, after a request without a reply", SENT_BEFORE,
		{STEPS_REPLY("412", "", ""), NOT_FOUND}, STEP_SEND, PUT HEAD, true, MARK_CLAIMED},
	{"refused, and it is there", NONE, {STEPS_REPLY("412", "", ""), SHOWN(SAME)}, STEP_PROVEN,
		PUT HEAD, false, MARK_DONE},
	{"conditions may be ignored, and nothing is there", MAY_IGNORE, {NOT_FOUND, STORED(SAME)},
		STEP_PROVEN, HEAD PUT, true, MARK_DONE},
	{"and something is there", MAY_IGNORE, {SHOWN(OTHER)}, STEP_SETTLED, HEAD, false,
		MARK_FAILED},
	{"and nobody knows", MAY_IGNORE, {FAILS}, STEP_LATER, HEAD, false, MARK_CLAIMED},
	{"the lease has run out", EXPIRED, {STORED(SAME)}, STEP_LATER, "", true, MARK_CLAIMED},
	{"it has changed", CHANGED, {STORED(SAME)}, STEP_SEND, "", false, MARK_CLAIMED},
	{"it has changed, which its times do not show", HIDDEN, {STORED(SAME)}, STEP_SEND, "",
		false, MARK_CLAIMED},
	{"an upload of it was begun", UPLOAD, {STEPS_REPLY("204", "", ""), STORED(SAME)},
		STEP_PROVEN, "DELETE /b/k?uploadId=up\n" PUT, true, MARK_DONE},
	{"which is not aborted", UPLOAD, {FAILS}, STEP_LATER, "DELETE /b/k?uploadId=up\n", false,
		MARK_CLAIMED},
};

static void test_row(size_t i)
{
	const enum trouble trouble = rows[i].trouble;
	struct script_step script[3] = {{0}};
	struct steps steps;
	struct mark mark;
	for (size_t k = 0; k < 3; k++)
		script[k] = (struct script_step){rows[i].replies[k], .close = true};
	if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, script, 3) ||
		!CHECK_INT(steps_claim(&steps), STEP_NEXT))
		return;
	struct file *file = steps.file;
	struct candidate *c = file->candidate;
	struct mark_ref ref = file_mark_ref(steps.worker, file);
	ref.limits = (struct call_limits){0};
	file->step = STEP_SEND;
	s3_set_support(steps.run->s3, S3_ECHOES_CHECKSUM, S3_YES);
	s3_set_support(steps.run->s3, S3_PUT_CONDITION, trouble != MAY_IGNORE ? S3_YES : S3_NO);
	if (trouble == EXPIRED)
		steps.worker->visible_limits.abandon = always;
	if (trouble == CHANGED)
		steps_append(steps.path);
	if (trouble == RESTARTED)
		file->restarts = FILE_RESTARTS_MAX;
	c->was_sent = trouble == SENT_BEFORE;
	if (trouble == HIDDEN) {
		file->must_reread = true;
		file->state.ctime_ns = 0; /* its ctime does not count */
		steps.worker->reader.abandon = store_hidden;
		steps.worker->reader.arg = steps.path;
	}
	/* An earlier version of the file was sent in parts. */
	file->sent_part_bytes = 7;
	snprintf(file->parts_sum, sizeof file->parts_sum, "sha256:x-2");
	struct open_upload upload = {.id = strdup("up"), .is_open = true, .part_bytes = 5};
	if (trouble == UPLOAD)
		CHECK_INT(mark_record_upload(&ref, &file->claim, &upload, &steps.problem),
			OUTCOME_OK);
	open_upload_clear(&upload);
	/* The object that is to be replaced is no longer there once a body has taken its place. */
	s3_set_support(steps.run->s3, S3_IF_MATCH, S3_YES);
	if (rows[i].step == STEP_LOOK)
		snprintf(file->replaced_etag, sizeof file->replaced_etag, "before");
	bool good = CHECK_INT(send_file(steps.worker, file), rows[i].step);
	good &= CHECK_INT(c->was_sent, rows[i].was_sent);
	CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
	good &= CHECK_INT(mark.state, rows[i].state);
	if (rows[i].step == STEP_LOOK)
		good &= CHECK_STRING(file->replaced_etag, "");
	/* Whether S3 stores what this run sends: a refusal of the condition says so, too. */
	const char *first = rows[i].replies[0];
	if (trouble == NONE)
		good &= CHECK_INT(atomic_load(&steps.run->refusals.has_stored),
			first && (strstr(first, " 200 ") || strstr(first, " 412 ")));
	/* A body that was not taken does not count as sent. */
	if (trouble == NONE && (rows[i].step == STEP_LATER || rows[i].step == STEP_LOOK))
		good &= CHECK_INT(atomic_load(&steps.run->report.moved), 0);
	if (mark.state == MARK_DONE) {
		good &= CHECK_STRING(mark.done.sum, "crc32c:4waSgw==");
		good &= CHECK_STRING(mark.done.etag, "e");
		good &= CHECK(!mark.upload.id);
		good &= CHECK_INT(mark.done.part_bytes, 0);
		good &= CHECK_STRING(mark.done.parts_sum, "");
	}
	mark_clear(&mark);
	steps_asked(&steps, rows[i].asked);
	if (!good)
		fprintf(stderr, "\t%s\n", rows[i].name);
	steps_end(&steps);
}

/* Right before the body is sent, the object that it replaces is compared with the file, part by
 * part. That leaves the body as it is. */
static void test_body_after_a_look(void)
{
	static const char etag[] = "00000000000000000000000000000000-2";
	const struct script_step script[] = {
		{STEPS_REPLY("200",
			 "Content-Length: 9\r\nETag: \"00000000000000000000000000000000-2\"\r\n",
			 ""),
			.close = true},
		{STEPS_REPLY("206", "Content-Length: 5\r\n", ""), .close = true},
		{STORED(SAME), .close = true}};
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.if_changed = S3ONCE_CHANGED_REPLACE_ANY;
	if (!steps_begin(&steps, script, 3) || !CHECK_INT(steps_claim(&steps), STEP_NEXT))
		return;
	steps.file->step = STEP_SEND;
	snprintf(steps.file->replaced_etag, sizeof steps.file->replaced_etag, "%s", etag);
	s3_set_support(steps.run->s3, S3_ECHOES_CHECKSUM, S3_YES);
	s3_set_support(steps.run->s3, S3_IF_MATCH, S3_NO);
	CHECK_INT(send_file(steps.worker, steps.file), STEP_PROVEN);
	steps_asked(&steps, HEAD "HEAD /b/k?partNumber=1\n" PUT);
	CHECK_STRING(steps.server.requests[2].body, CONTENT);
	steps_end(&steps);
}

int main(void)
{
	test_body_after_a_look();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(i);
	return check_result();
}
