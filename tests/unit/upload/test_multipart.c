/* A file that is sent in parts: which recorded upload is resumed, which parts are sent again, and
 * what follows from each answer. */
#include "base/clock.h"
#include "steps.h"
#include "upload/file/multipart.h"
#include "upload/file/steps.h"

#define CONTENT    "123456789abc" /* in parts of five bytes */
#define N          3
#define PART_BYTES 5
#define MTIME_NS   1000000000000

#define NOT_FOUND STEPS_REPLY("404", "", "")
#define FAILS     STEPS_REPLY("500", "", "")
#define GONE      STEPS_REPLY("404", "", "<Error><Code>NoSuchUpload</Code></Error>")
#define ABORTED   STEPS_REPLY("204", "", "")
#define LISTS_ERROR(code)                                                                          \
	STEPS_REPLY("200", "", "<Error><Code>" code "</Code><Message>m</Message></Error>")
#define CREATED                                                                                    \
	STEPS_REPLY("200", "",                                                                     \
		"<InitiateMultipartUploadResult><UploadId>up</UploadId>"                           \
		"</InitiateMultipartUploadResult>")

#define LIST     "GET /b/k?uploadId=up\n"
#define PUT(n)   "PUT /b/k?partNumber=" #n "&uploadId=up\n"
#define PUTS     PUT(1) PUT(2) PUT(3)
#define COMPLETE "POST /b/k?uploadId=up\n"
#define ABORT    "DELETE /b/k?uploadId=up\n"
#define HEAD     "HEAD /b/k\n"
#define CREATE   "POST /b/k?uploads=\n"

/* The CRC-32C of a part of the content, or of the whole (part 0). */
static const char *sum_of(unsigned part)
{
	static char texts[N + 1][CHECKSUM_BASE64_MAX + 1];
	char *text = texts[part];
	struct sums sums;
	const size_t at = part ? (part - 1) * (size_t)PART_BYTES : 0;
	const size_t n = !part ? strlen(CONTENT) : part < N ? PART_BYTES : strlen(CONTENT) - at;
	CHECK_INT(digest_bytes(DIGEST_OF(CHECKSUM_CRC32C), &CONTENT[at], n, &sums), 0);
	checksum_to_base64(CHECKSUM_CRC32C, sums_bytes(&sums, CHECKSUM_CRC32C), text);
	return text;
}

/* The reply to UploadPart, with the checksum of this part. */
static const char *took(unsigned part)
{
	static char texts[N + 1][300];
	char *text = texts[part];
	snprintf(text, 300,
		"HTTP/1.1 200 X\r\nConnection: close\r\nETag: \"p%u\"\r\n"
		"x-amz-checksum-crc32c: %s\r\n\r\n",
		part, sum_of(part));
	return text;
}

static const char *completed(const char *sum)
{
	static char text[500];
	snprintf(text, sizeof text,
		STEPS_REPLY("200", "",
			"<CompleteMultipartUploadResult><ETag>\"e-3\"</ETag>"
			"<ChecksumCRC32C>%s</ChecksumCRC32C></CompleteMultipartUploadResult>"),
		sum);
	return text;
}

/* Begins a run whose file is claimed, and with which nothing is in the way. */
static bool begin(struct steps *steps)
{
	if (!steps_make(steps, CONTENT, strlen(CONTENT)) || !steps_begin(steps, NULL, 0) ||
		!CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	steps->file->step = STEP_SEND;
	steps->run->options.part_bytes = PART_BYTES;
	s3_set_support(steps->run->s3, S3_COMPLETE_CONDITION, S3_YES);
	s3_set_support(steps->run->s3, S3_COMPLETE_RETURNS_ETAG, S3_YES);
	s3_set_support(steps->run->s3, S3_ECHOES_CHECKSUM, S3_YES);
	return true;
}

/* The upload that fits the file, as it is in the mark. */
static struct open_upload fitting(const struct steps *steps)
{
	struct open_upload upload = {.id = strdup("up"),
		.is_open = true,
		.checksum = CHECKSUM_CRC32C,
		.part_bytes = PART_BYTES,
		.size = strlen(CONTENT),
		.mtime_ns = MTIME_NS};
	snprintf(
		upload.table_id, sizeof upload.table_id, "%s", steps->run->space.settings.table_id);
	return upload;
}

static void record(struct steps *steps, struct open_upload upload)
{
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	CHECK_INT(mark_record_upload(&ref, &steps->file->claim, &upload, &steps->problem),
		OUTCOME_OK);
}

/* Begins the upload, sends its parts one after the other, and returns the answer of the last. */
static enum step send_all(struct steps *steps)
{
	struct queue *queue = steps->run->queue;
	struct task task;
	enum step step = multipart_begin(steps->worker, steps->file);
	for (struct file *file = NULL; step == STEP_PARTS && !file;) {
		queue_take(queue, &task);
		if (!CHECK_INT(task.kind, TASK_PART))
			return STEP_OVER;
		step = multipart_send(steps->worker, task.parts, task.index, &file);
		queue_done(queue, &task);
		if (file)
			break;
	}
	return step;
}

/* The mark names this upload, or none (""). */
static void check_recorded(struct steps *steps, enum mark_state state, const char *id)
{
	struct mark mark = steps_mark(steps);
	CHECK_INT(mark.state, state);
	CHECK_STRING(mark.upload.id ? mark.upload.id : "", id);
	mark_clear(&mark);
}

/* Which recorded upload is resumed. */
enum field {
	ALL_FIT,
	SIZE,
	MTIME,
	ENCRYPTION,
	SUFFIX,
	ENCODING,
	CONTENT_OF_NONE, /* the upload names a content, and the file is not known by it */
	CONTENT_UNNAMED, /* the file is known by its content, and the upload names none */
	CONTENT_OTHER,   /* both have one */
	CONTENT_SAME,
	TABLE,
	CHECKSUM,
	PARTS_UNKNOWN,
	PARTS_OTHER, /* than those of this run: the plan is that of the upload */
	PARTS_WHOLE, /* the file is no larger than a part */
	CLOSED,
	FIELDS
};

static void test_which_upload_fits(enum field field)
{
	static char c0ffee[] = "c0ffee";
	struct steps steps;
	bool resumes = false;
	if (!begin(&steps))
		return;
	struct open_upload *upload = &steps.file->claim.upload;
	*upload = fitting(&steps);
	upload->size += field == SIZE;
	upload->mtime_ns += field == MTIME;
	upload->table_id[0] ^= field == TABLE;
	upload->is_open = field != CLOSED;
	if (field == ENCRYPTION)
		snprintf(upload->encryption, sizeof upload->encryption, "AES256");
	if (field == SUFFIX)
		snprintf(upload->suffix, sizeof upload->suffix, ".gz");
	if (field == ENCODING)
		snprintf(upload->encoding, sizeof upload->encoding, "zstd-1.5.7:3");
	if (field == CONTENT_OF_NONE || field == CONTENT_SAME)
		snprintf(upload->content_id, sizeof upload->content_id, "c0ffee");
	if (field == CONTENT_OTHER)
		snprintf(upload->content_id, sizeof upload->content_id, "beef");
	if (field == CONTENT_UNNAMED || field == CONTENT_OTHER || field == CONTENT_SAME)
		steps.file->candidate->content_id = c0ffee;
	if (field == CHECKSUM)
		upload->checksum = CHECKSUMS;
	upload->part_bytes = field == PARTS_UNKNOWN ? 0
			     : field == PARTS_OTHER ? 4
			     : field == PARTS_WHOLE ? strlen(CONTENT)
						    : PART_BYTES;
	CHECK_INT(multipart_choose_plan(steps.worker, steps.file, &resumes), STEP_NEXT);
	bool good = CHECK_INT(
		resumes, field == ALL_FIT || field == PARTS_OTHER || field == CONTENT_SAME);
	good &= CHECK_INT(steps.file->plan.part_bytes, field == PARTS_OTHER ? 4 : PART_BYTES);
	good &= CHECK_INT(steps.file->plan.n_parts, 3);
	if (!good)
		fprintf(stderr, "\tfield %d\n", field);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* A file that is compressed on its way: in parts that are padded to one length, if the upload was
 * begun so, and else only under the very same encoding. */
static void test_encodings(const char *more, bool is_resumed, uint64_t part_bytes)
{
	static char content[2 << 20];
	struct steps steps;
	bool resumes = false;
	if (!steps_make(&steps, content, sizeof content))
		return;
	steps.options.compress = "zstd:3";
	if (!steps_begin(&steps, NULL, 0))
		return;
	struct file *file = steps.file;
	struct open_upload *upload = &file->claim.upload;
	const char *name = steps.run->bodies.encoding.name;
	file->step = STEP_SEND;
	*upload = fitting(&steps);
	upload->size = sizeof content;
	upload->part_bytes = 1 << 20;
	snprintf(upload->suffix, sizeof upload->suffix, ".zst");
	snprintf(upload->encoding, sizeof upload->encoding, "%.*s%s", (int)strcspn(name, ":"), name,
		more);
	CHECK_INT(multipart_choose_plan(steps.worker, file, &resumes), STEP_NEXT);
	CHECK_INT(resumes, is_resumed);
	CHECK(file->encoding != NULL);
	if (file->encoding)
		CHECK_INT(file->encoding->part_bytes, part_bytes);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* A part in ListParts. */
struct listed {
	unsigned number, bytes; /* 0: not there */
	const char *sum;        /* its CRC-32C; NULL: none */
	const char *etag;
};

static const char *list_of(const struct listed *parts, size_t n)
{
	static char text[2000];
	struct text t = TEXT(2000);
	text_addf(&t, "HTTP/1.1 200 X\r\nConnection: close\r\n\r\n<ListPartsResult>"
		      "<IsTruncated>false</IsTruncated>");
	for (size_t i = 0; i < n && parts[i].number; i++) {
		text_addf(&t, "<Part><PartNumber>%u</PartNumber><Size>%u</Size><ETag>\"%s\"</ETag>",
			parts[i].number, parts[i].bytes, parts[i].etag);
		if (parts[i].sum)
			text_addf(&t, "<ChecksumCRC32C>%s</ChecksumCRC32C>", parts[i].sum);
		text_add(&t, "</Part>");
	}
	text_add(&t, "</ListPartsResult>");
	snprintf(text, sizeof text, "%s", text_string(&t));
	text_clear(&t);
	return text;
}

/* Which parts of a resumed upload are sent again. */
static void test_parts_that_are_there(void)
{
	/* printf 12345 | md5sum */
	static const char md5[] = "827ccb0eea8a706c4c34a16891f84e7b", other[] = "AAAAAA==";
	const struct {
		struct listed parts[4];
		const char *puts;
	} rows[] = {
		{{{0}}, PUTS}, {{{1, 5, sum_of(1), "x"}}, PUT(2) PUT(3)},
		{{{1, 5, sum_of(1), "x"}, {2, 5, sum_of(2), "x"}, {3, 2, sum_of(3), "x"}}, ""},
		{{{3, 2, sum_of(3), "x"}}, PUT(1) PUT(2)},
		{{{2, 5, sum_of(2), "x"}, {4, 5, sum_of(1), "x"}}, PUT(1) PUT(3)},
		{{{1, 5, other, "x"}}, PUTS}, {{{1, 5, other, md5}}, PUTS},
		{{{1, 4, sum_of(1), "x"}}, PUTS}, {{{1, 5, NULL, md5}}, PUT(2) PUT(3)},
		{{{1, 5, NULL, "827ccb0eea8a706c4c34a16891f84e7c"}}, PUTS},
		{{{1, 5, NULL, "x"}}, PUTS}, /* nothing shows what it is */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		char asked[400];
		if (!begin(&steps))
			return;
		record(&steps, fitting(&steps));
		steps_answer(&steps, list_of(rows[i].parts, 4));
		for (unsigned part = 1; part <= N; part++) {
			char put[40];
			snprintf(put, sizeof put, "partNumber=%u&", part);
			if (strstr(rows[i].puts, put))
				steps_answer(&steps, took(part));
		}
		steps_answer(&steps, completed(sum_of(0)));
		bool good = CHECK_INT(send_all(&steps), STEP_PROVEN);
		struct mark mark = steps_mark(&steps);
		good &= CHECK_INT(mark.state, MARK_DONE);
		good &= CHECK_STRING(mark.done.etag, "e-3");
		good &= CHECK_INT(mark.done.part_bytes, PART_BYTES);
		good &= CHECK(!mark.upload.id);
		good &= CHECK_INT(mark.done.size, strlen(CONTENT));
		mark_clear(&mark);
		/* Nothing of it is kept for a later run any more. */
		good &= CHECK_INT(atomic_load(&steps.run->report.kept), 0);
		snprintf(asked, sizeof asked, LIST "%s" COMPLETE, rows[i].puts);
		steps_end_row(&steps, good, asked, i);
	}
}

/* An upload that cannot be listed. */
static void test_upload_that_is_not_listed(void)
{
	static const struct {
		const char *replies[2];
		bool is_completing;
		enum step step;
		const char *asked, *recorded;
		bool warns;
	} rows[] = {
		{{GONE}, false, STEP_LOOK, LIST, ""},
		{{GONE}, true, STEP_LATER, LIST, "up"},
		{{FAILS}, false, STEP_LATER, LIST, "up"},
		{{STEPS_REPLY("501", "", ""), ABORTED}, false, STEP_LOOK, LIST ABORT, "", true},
		{{STEPS_REPLY("400", "", "<Error><Code>InvalidRequest</Code></Error>"), GONE},
			false, STEP_LOOK, LIST ABORT, "", true},
		{{STEPS_REPLY("200", "", "<html/>"), ABORTED}, false, STEP_LOOK, LIST ABORT, "",
			true},
		{{STEPS_REPLY("501", "", ""), STEPS_REPLY("501", "", "")}, false, STEP_LOOK,
			LIST ABORT, "", true},
		{{STEPS_REPLY("501", "", ""), FAILS}, false, STEP_LATER, LIST ABORT, "up", true},
		{{LISTS_ERROR("InternalError"), ABORTED}, false, STEP_LOOK, LIST ABORT, "", true},
		{{STEPS_REPLY("501", "", ""),
			 STEPS_REPLY("400", "", "<Error><Code>InvalidRequest</Code></Error>")},
			false, STEP_LOOK, LIST ABORT, "", true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		record(&steps, fitting(&steps));
		steps.file->candidate->is_completing = rows[i].is_completing;
		steps_answer(&steps, rows[i].replies[0]);
		steps_answer(&steps, rows[i].replies[1]);
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		good &= CHECK_INT(steps.file->claim.upload.is_open, *rows[i].recorded != 0);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], rows[i].warns);
		if (rows[i].warns && rows[i].step == STEP_LOOK)
			good &= steps_say(&steps, "the server cannot list the parts");
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

/* The steps before a new upload, which is in the mark before its first part. */
static void test_new_upload(void)
{
	static const struct {
		bool had_another; /* that does not fit */
		const char *replies[4];
		enum step step;
		const char *asked, *recorded;
		unsigned restarts; /* before */
	} rows[] = {
		{false, {NOT_FOUND, CREATED, FAILS}, STEP_LATER, HEAD CREATE PUT(1), "up"},
		{false, {FAILS}, STEP_LATER, HEAD, ""},
		{false, {NOT_FOUND, FAILS}, STEP_LATER, HEAD CREATE, ""},
		{false, {NOT_FOUND, NULL}, STEP_SEND, HEAD CREATE, ""},
		{false, {NOT_FOUND, NULL}, STEP_LATER, HEAD CREATE, "", 1},
		/* A reply that cannot be read would be the same later. */
		{false, {NOT_FOUND, STEPS_REPLY("200", "", "no XML")}, STEP_SEND, HEAD CREATE, ""},
		{false, {NOT_FOUND, STEPS_REPLY("200", "", "no XML")}, STEP_SETTLED, HEAD CREATE,
			"", 1},
		{true, {ABORTED, NOT_FOUND, CREATED, FAILS}, STEP_LATER,
			"DELETE /b/k.gz?uploadId=old\n" HEAD CREATE PUT(1), "up"},
		{true, {GONE, NOT_FOUND, CREATED, FAILS}, STEP_LATER,
			"DELETE /b/k.gz?uploadId=old\n" HEAD CREATE PUT(1), "up"},
		{true, {FAILS}, STEP_LATER, "DELETE /b/k.gz?uploadId=old\n", "old"},
		{true, {NULL}, STEP_LATER, "DELETE /b/k.gz?uploadId=old\n", "old"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		const struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
		struct open_upload other = fitting(&steps);
		steps.file->restarts = rows[i].restarts;
		atomic_store(&steps.run->refusals.has_stored, true);
		snprintf(other.suffix, sizeof other.suffix, ".gz");
		free(other.id);
		other.id = strdup("old");
		if (rows[i].had_another)
			record(&steps, other);
		else
			open_upload_clear(&other);
		for (size_t k = 0; k < 4; k++)
			steps_answer(&steps, rows[i].replies[k]);
		struct mark mark;
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		if (rows[i].step == STEP_SEND)
			good &= CHECK_INT(steps.file->restarts, rows[i].restarts + 1);
		CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
		good &= CHECK_INT(
			mark.state, rows[i].step == STEP_SETTLED ? MARK_FAILED : MARK_CLAIMED);
		good &= CHECK_STRING(mark.upload.id ? mark.upload.id : "", rows[i].recorded);
		if (*rows[i].recorded && strcmp(rows[i].recorded, "old") != 0) {
			good &= CHECK_STRING(
				mark.upload.table_id, steps.run->space.settings.table_id);
			good &= CHECK_STRING(mark.upload.suffix, "");
			good &= CHECK_INT(mark.upload.size, strlen(CONTENT));
			good &= CHECK_INT(mark.upload.mtime_ns, MTIME_NS);
			good &= CHECK_INT(mark.upload.part_bytes, PART_BYTES);
		}
		mark_clear(&mark);
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

/* The mark names what the upload is of, so that only the same is resumed. */
static void test_upload_is_recorded(void)
{
	static char id[] = "c0ffee", gz[] = ".gz";
	struct steps steps;
	if (!begin(&steps))
		return;
	struct candidate *c = steps.file->candidate;
	const struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
	struct mark mark;
	c->content_id = id;
	c->suffix = gz;
	c->is_completing = true; /* an upload before this one */
	steps_answer(&steps, NOT_FOUND);
	steps_answer(&steps, CREATED);
	steps_answer(&steps, GONE);
	CHECK_INT(send_all(&steps), STEP_LOOK);
	CHECK(!c->is_completing);
	CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
	CHECK_STRING(mark.upload.content_id, id);
	CHECK_STRING(mark.upload.suffix, gz);
	CHECK_INT(mark.upload.checksum, CHECKSUM_CRC32C);
	mark_clear(&mark);
	steps_asked(&steps, HEAD CREATE PUT(1));
	steps_end(&steps);
}

/* An upload that would store its parts unencrypted is aborted, and not left open. */
static void test_unencrypted(void)
{
	static const struct s3once_setting sse = {.name = "sse", .value = "AES256"};
	struct steps steps;
	if (!steps_make(&steps, CONTENT, strlen(CONTENT)))
		return;
	steps.options.settings = &sse;
	steps.options.n_settings = 1;
	if (!steps_begin(&steps, NULL, 0) || !CHECK_INT(steps_claim(&steps), STEP_NEXT))
		return;
	steps.file->step = STEP_SEND;
	steps.run->options.part_bytes = PART_BYTES;
	steps_answer(&steps, NOT_FOUND);
	steps_answer(&steps, CREATED);
	steps_answer(&steps, ABORTED);
	CHECK_INT(send_all(&steps), STEP_SETTLED);
	steps_say(&steps, "does not confirm the encryption");
	steps_asked(&steps, HEAD CREATE ABORT);
	steps_end(&steps);
}

/* No file is waited for whose key no later run uses. */
static void test_stranded(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	record(&steps, fitting(&steps));
	steps.file->step = STEP_STRANDED;
	steps_answer(&steps, FAILS);
	CHECK_INT(multipart_abort(steps.worker, steps.file), STEP_SETTLED);
	steps_asked(&steps, ABORT);
	steps_end(&steps);
}

/* If another uploader has taken the file over meanwhile, what was created is aborted. */
static void test_fenced_while_it_is_created(void)
{
	struct steps steps;
	if (!begin(&steps))
		return;
	struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
	struct mark mark = steps_mark(&steps), seen = {0};
	struct claim theirs = {0};
	ref.session = "22222222222222222222222222222222";
	CHECK_INT(mark_claim(&ref, &mark, &theirs, &seen, &steps.problem), OUTCOME_OK);
	steps_answer(&steps, NOT_FOUND);
	steps_answer(&steps, CREATED);
	steps_answer(&steps, ABORTED);
	CHECK_INT(send_all(&steps), STEP_OVER);
	CHECK(atomic_load(&steps.run->end.fenced));
	check_recorded(&steps, MARK_CLAIMED, "");
	mark_clear(&mark);
	claim_clear(&theirs);
	steps_asked(&steps, HEAD CREATE ABORT);
	steps_end(&steps);
}

/* The reaction to a part that the server has not accepted. */
static void test_parts_that_fail(void)
{
	static const struct {
		const char *reply; /* to the first part */
		enum step step;
		const char *recorded;
		enum mark_state state;
	} rows[] = {
		{FAILS, STEP_LATER, "up", MARK_CLAIMED},
		{NULL, STEP_LATER, "up", MARK_CLAIMED},
		{GONE, STEP_LOOK, "", MARK_CLAIMED},
		{STEPS_REPLY("400", "", "<Error><Code>InvalidArgument</Code></Error>"),
			STEP_SETTLED, "up", MARK_FAILED},
		/* It has stored other bytes. */
		{STEPS_REPLY("200", "ETag: \"x\"\r\nx-amz-checksum-crc32c: AAAAAA==\r\n", ""),
			STEP_SETTLED, "up", MARK_FAILED},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!begin(&steps))
			return;
		const struct mark_ref ref = file_mark_ref(steps.worker, steps.file);
		record(&steps, fitting(&steps));
		steps_answer(&steps, list_of(NULL, 0));
		steps_answer(&steps, rows[i].reply);
		const enum step step = send_all(&steps);
		bool good = CHECK_INT(step, rows[i].step);
		good &= CHECK_INT(steps.file->claim.upload.is_open, *rows[i].recorded != 0);
		struct mark mark;
		CHECK_INT(mark_get(&ref, &mark, &steps.problem), OUTCOME_OK);
		good &= CHECK_INT(mark.state, rows[i].state);
		good &= CHECK_STRING(mark.upload.id, "up");
		good &= CHECK_INT(atomic_load(&steps.run->report.moved), 0);
		mark_clear(&mark);
		steps_end_row(&steps, good, LIST PUT(1), i);
	}
}

/* Likewise, of a file whose upload is resumed, and has every part from this run. */
static bool begin_with_parts(struct steps *steps)
{
	if (!begin(steps))
		return false;
	record(steps, fitting(steps));
	steps_answer(steps, list_of(NULL, 0));
	for (unsigned part = 1; part <= N; part++)
		steps_answer(steps, took(part));
	return true;
}

/* The reaction to the reply to Complete. */
static void test_complete(void)
{
#define ERROR(status, code) STEPS_REPLY(status, "", "<Error><Code>" code "</Code></Error>")
	static const char refused[] = ERROR("412", "PreconditionFailed"),
			  conflict[] = ERROR("409", "ConditionalRequestConflict"),
			  bad_part[] = ERROR("400", "InvalidPart");
	static const struct {
		const char *replies[2];
		bool is_completing;
		enum step step;
		const char *asked; /* after the parts */
		bool is_open;      /* its upload */
		bool may_complete; /* is_completing afterwards */
		unsigned restarts; /* before */
	} rows[] = {
		{{FAILS}, false, STEP_LOOK, COMPLETE, true, false, 0},
		{{FAILS}, false, STEP_LATER, COMPLETE, true, false, 2},
		{{NULL}, false, STEP_LOOK, COMPLETE, true, true, 0},
		{{STEPS_REPLY("502", "", "")}, false, STEP_LOOK, COMPLETE, true, true, 0},
		{{STEPS_REPLY("504", "", "")}, false, STEP_LOOK, COMPLETE, true, true, 0},
		{{GONE}, false, STEP_LOOK, COMPLETE, false, false, 0},
		{{GONE}, true, STEP_LATER, COMPLETE, true, true, 0},
		{{conflict, ABORTED}, false, STEP_LOOK, COMPLETE ABORT, false, false, 0},
		{{conflict, FAILS}, false, STEP_LATER, COMPLETE ABORT, true, false, 0},
		{{conflict}, true, STEP_LATER, COMPLETE, true, true, 0},
		{{refused, NOT_FOUND}, false, STEP_SEND, COMPLETE HEAD, true, false, 0},
		{{bad_part}, false, STEP_SEND, COMPLETE, true, false, 0},
		{{bad_part}, false, STEP_SETTLED, COMPLETE, true, false, FILE_RESTARTS_MAX},
		{{ERROR("400", "InvalidRequest")}, false, STEP_SETTLED, COMPLETE, true, false, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		char asked[400];
		if (!begin_with_parts(&steps))
			return;
		struct candidate *c = steps.file->candidate;
		c->is_completing = rows[i].is_completing;
		steps.file->restarts = rows[i].restarts;
		for (size_t k = 0; k < 2; k++)
			steps_answer(&steps, rows[i].replies[k]);
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		good &= CHECK_INT(steps.file->claim.upload.is_open, rows[i].is_open);
		good &= CHECK_INT(c->is_completing, rows[i].may_complete);
		good &= CHECK(c->was_sent);
		snprintf(asked, sizeof asked, LIST PUTS "%s", rows[i].asked);
		steps_end_row(&steps, good, asked, i);
	}
}

/* The object of a Complete is proven by its reply, or by a HEAD. */
static void test_proof(void)
{
	char good_head[300], bad_head[300];
	static const char head[] = "HTTP/1.1 200 X\r\nx-amz-request-id: 1\r\nConnection: close\r\n"
				   "Content-Length: 12\r\nETag: \"later\"\r\n"
				   "x-amz-checksum-crc32c: %s\r\n\r\n";
	snprintf(good_head, sizeof good_head, head, sum_of(0));
	snprintf(bad_head, sizeof bad_head, head, "AAAAAA==");
	const struct {
		const char *sum;  /* in the reply to Complete */
		const char *head; /* the reply to HEAD; NULL: there is none */
		bool tells_etag;  /* it is known that Complete tells the etag that stays */
		enum step step;
		const char *etag, *asked;
	} rows[] = {
		{sum_of(0), NULL, true, STEP_PROVEN, "e-3", ""},
		{sum_of(0), good_head, false, STEP_PROVEN, "later", HEAD},
		{sum_of(0), FAILS, false, STEP_PROVEN, "e-3", HEAD},
		{"", good_head, true, STEP_PROVEN, "later", HEAD},
		{"AAAAAA==", good_head, true, STEP_PROVEN, "later", HEAD},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		char asked[400];
		if (!begin_with_parts(&steps))
			return;
		s3_set_support(steps.run->s3, S3_COMPLETE_RETURNS_ETAG,
			rows[i].tells_etag ? S3_YES : S3_NO);
		steps_answer(&steps, completed(rows[i].sum));
		steps_answer(&steps, rows[i].head);
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		struct mark mark = steps_mark(&steps);
		good &= CHECK_STRING(mark.done.etag, rows[i].etag);
		good &= CHECK(!steps.file->claim.upload.is_open);
		good &= CHECK_INT(s3_supports(steps.run->s3, S3_COMPLETE_RETURNS_ETAG),
			rows[i].tells_etag && !*rows[i].asked ? S3_YES : S3_NO);
		mark_clear(&mark);
		snprintf(asked, sizeof asked, LIST PUTS COMPLETE "%s", rows[i].asked);
		steps_end_row(&steps, good, asked, i);
	}
	/* An object of other bytes is no proof, whatever Complete has said of it. */
	struct steps steps;
	if (!begin_with_parts(&steps))
		return;
	steps_answer(&steps, completed(""));
	for (unsigned k = 0; k < 4; k++)
		steps_answer(&steps, bad_head);
	const enum step step = send_all(&steps);
	CHECK(step != STEP_PROVEN && step != STEP_IN_S3 && step != STEP_PARTS);
	struct mark mark = steps_mark(&steps);
	CHECK(mark.state != MARK_DONE);
	mark_clear(&mark);
	script_stop(&steps.server);
	steps_end(&steps);
}

static bool always(void *arg)
{
	return true;
}

/* The checks before Complete: the file is unchanged, the lease lasts, and no other object is there.
 */
static void test_before_complete(void)
{
	static const struct {
		bool changes, has_expired, honours;
		const char *head;
		enum step step;
		const char *asked; /* after the parts */
	} rows[] = {
		{.changes = true, .honours = true, .step = STEP_SEND, .asked = ""},
		{.has_expired = true, .honours = true, .step = STEP_LATER, .asked = ""},
		{.head = NOT_FOUND, .step = STEP_PROVEN, .asked = HEAD COMPLETE},
		{.head = STEPS_REPLY("200", "Content-Length: 3\r\nETag: \"x\"\r\n", ""),
			.step = STEP_SETTLED,
			.asked = HEAD},
		{.head = FAILS, .step = STEP_LATER, .asked = HEAD},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		char asked[400];
		if (!begin_with_parts(&steps))
			return;
		s3_set_support(
			steps.run->s3, S3_COMPLETE_CONDITION, rows[i].honours ? S3_YES : S3_NO);
		if (rows[i].changes)
			steps_meanwhile(&steps, steps_append, steps.path);
		if (rows[i].has_expired)
			steps.worker->visible_limits.abandon = always;
		if (rows[i].head)
			steps_answer(&steps, rows[i].head);
		steps_answer(&steps, completed(sum_of(0)));
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		snprintf(asked, sizeof asked, LIST PUTS "%s", rows[i].asked);
		steps_asked(&steps, asked);
		const struct script_request *last =
			&steps.server.requests[steps.server.n_requests - 1];
		if (rows[i].step == STEP_PROVEN) /* a condition that is not honoured is not sent */
			good &= CHECK(!strcasestr(last->head, "if-none-match"));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		steps_end(&steps);
	}
}

/* A store into a part of the file that leaves its size and modification time as they are. */
struct hidden_store {
	const char *path;
	unsigned part; /* from 1; 0: nothing is stored */
};

static void store_hidden(void *arg)
{
	const struct hidden_store *hidden = arg;
	const int fd = open(hidden->path, O_WRONLY | O_CLOEXEC);
	if (hidden->part)
		CHECK_INT(pwrite(fd, "x", 1, (off_t)(hidden->part - 1) * PART_BYTES), 1);
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
}

/* If size and times may not show a change, every part is read again before Complete. */
static void test_hidden_stores(void)
{
	for (unsigned part = 0; part <= N; part++) {
		struct steps steps;
		if (!begin_with_parts(&steps))
			return;
		struct hidden_store hidden = {steps.path, part};
		steps.file->must_reread = true;
		steps.file->state.ctime_ns = 0; /* its ctime does not count */
		steps_meanwhile(&steps, store_hidden, &hidden);
		steps_answer(&steps, completed(sum_of(0)));
		bool good = CHECK_INT(send_all(&steps), part ? STEP_SEND : STEP_PROVEN);
		steps_asked(&steps, part ? LIST PUTS : LIST PUTS COMPLETE);
		if (!good)
			fprintf(stderr, "\tpart %u\n", part);
		steps_end(&steps);
	}
}

/* A turn in which S3 has got more parts than ever before begins a new count of failures. */
static void test_progress(unsigned parts_before)
{
	const bool is_progress = parts_before < 2;
	struct steps steps;
	if (!begin(&steps))
		return;
	struct candidate *c = steps.file->candidate;
	c->failures = 3;
	c->failing_ns = 7;
	c->parts_done = parts_before;
	record(&steps, fitting(&steps));
	steps_answer(&steps,
		list_of((struct listed[]){{1, 5, sum_of(1), "x"}, {2, 5, sum_of(2), "x"}, {0}}, 3));
	steps_answer(&steps, GONE);
	CHECK_INT(send_all(&steps), STEP_LOOK);
	CHECK_INT(c->parts_done, 2);
	CHECK_INT(c->failures, is_progress ? 0 : 3);
	CHECK_INT(c->failing_ns, is_progress ? 0 : 7);
	steps_asked(&steps, LIST PUT(3));
	steps_end(&steps);
}

/* Of two parts under way that fail, the first one decides. None of their bytes count as sent. */
static void test_first_failure(void)
{
	struct steps steps;
	struct task tasks[2];
	struct file *file;
	if (!begin(&steps))
		return;
	struct queue *queue = steps.run->queue;
	record(&steps, fitting(&steps));
	steps_answer(&steps, list_of(NULL, 0));
	steps_answer(&steps, FAILS);
	steps_answer(&steps, GONE);
	steps.file->candidate->failing_ns = 7 * NS_PER_MS;
	CHECK_INT(multipart_begin(steps.worker, steps.file), STEP_PARTS);
	queue_take(queue, &tasks[0]);
	queue_take(queue, &tasks[1]);
	if (!CHECK_INT(tasks[0].kind, TASK_PART) || !CHECK_INT(tasks[1].kind, TASK_PART))
		return;
	CHECK_INT(multipart_send(steps.worker, tasks[0].parts, 0, &file), STEP_PARTS);
	CHECK(!file);
	/* The time for which the file has failed counts for each part. */
	CHECK_INT(steps.worker->limits.failed_ms, 7);
	CHECK_INT(multipart_send(steps.worker, tasks[1].parts, 1, &file), STEP_LATER);
	CHECK(file == steps.file);
	queue_done(queue, &tasks[0]);
	queue_done(queue, &tasks[1]);
	CHECK_INT(atomic_load(&steps.run->report.moved), 0);
	CHECK_INT(atomic_load(&steps.run->report.under_way), 0);
	steps_asked(&steps, LIST PUT(1) PUT(2));
	steps_end(&steps);
}

int main(void)
{
	for (enum field field = ALL_FIT; field < FIELDS; field++)
		test_which_upload_fits(field);
	test_encodings(":3", true, 0);
	test_encodings(":4", false, 0);
	test_encodings(":3=6291456", true, 6 << 20);
	test_encodings(":4=6291456", false, 0);
	test_parts_that_are_there();
	test_upload_that_is_not_listed();
	test_new_upload();
	test_upload_is_recorded();
	test_unencrypted();
	test_stranded();
	test_fenced_while_it_is_created();
	test_parts_that_fail();
	test_complete();
	test_proof();
	test_before_complete();
	test_hidden_stores();
	for (unsigned parts = 0; parts < N; parts++)
		test_progress(parts);
	test_first_failure();
	return check_result();
}
