/* A file that is compressed on its way, and sent in parts: the checksums of its content and of its
 * object, and servers that take only parts of one length. */
#include "steps.h"
#include "upload/file/multipart.h"
#include "upload/file/payload.h"

#define MIB   (1U << 20)
#define N     2
#define RANGE (6 * MIB) /* of the file, for each part */
#define BYTES (N * RANGE)

#define LIST      "GET /b/k.zst?uploadId=up\n"
#define PUT(n)    "PUT /b/k.zst?partNumber=" #n "&uploadId=up\n"
#define PUTS      PUT(1) PUT(2)
#define COMPLETE  "POST /b/k.zst?uploadId=up\n"
#define ABORT     "DELETE /b/k.zst?uploadId=up\n"
#define NO_PARTS  STEPS_REPLY("200", "", "<ListPartsResult></ListPartsResult>")
#define ABORTED   STEPS_REPLY("204", "", "")
#define ERROR(of) STEPS_REPLY("400", "", "<Error><Code>" of "</Code></Error>")

static unsigned char content[BYTES];

/* Makes the content from here on such that no compressor makes it shorter. */
static void make_random(size_t from)
{
	uint32_t x = 1;
	for (size_t i = from; i < BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		content[i] = (unsigned char)x;
	}
}

/* Begins a run whose mark records an upload of the content, in ranges of RANGE bytes. `length` is
 * the end of its encoding's name: "=LENGTH" if all parts have one length, else "". */
static bool begin(struct steps *steps, enum checksum checksum, const char *length)
{
	if (!steps_make(steps, content, BYTES))
		return false;
	steps->options.compress = "zstd:3";
	steps->options.checksum = checksum_kinds[checksum].name;
	if (!steps_begin(steps, NULL, 0) || !CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	struct run *run = steps->run;
	struct open_upload upload = {.id = strdup("up"),
		.is_open = true,
		.checksum = checksum,
		.part_bytes = RANGE,
		.size = BYTES,
		.mtime_ns = steps->file->mtime_ns};
	const struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	snprintf(upload.suffix, sizeof upload.suffix, ".zst");
	snprintf(
		upload.encoding, sizeof upload.encoding, "%s%s", run->bodies.encoding.name, length);
	snprintf(upload.table_id, sizeof upload.table_id, "%s", run->space.settings.table_id);
	CHECK_INT(mark_record_upload(&ref, &steps->file->claim, &upload, &steps->problem),
		OUTCOME_OK);
	steps->file->step = STEP_SEND;
	s3_set_support(run->s3, S3_COMPLETE_CONDITION, S3_YES);
	s3_set_support(run->s3, S3_COMPLETE_RETURNS_ETAG, S3_YES);
	s3_set_support(run->s3, S3_ECHOES_CHECKSUM, S3_YES);
	steps_answer(steps, NO_PARTS);
	return true;
}

/* Adds the server's replies to all parts, and sets `ret` to the sums of what is sent. */
static void answer_parts(struct steps *steps, enum checksum checksum, struct sums ret[static N])
{
	static char replies[N][300];
	const struct file *file = steps->file;
	const unsigned kinds = DIGEST_OF(checksum) | DIGEST_OF(checksum_default());
	const struct plan plan = {.part_bytes = RANGE, .n_parts = N};
	for (unsigned i = 0; i < N; i++) {
		char sum[CHECKSUM_BASE64_MAX + 1];
		const struct range range = file_part_range(file, file->encoding, &plan, i);
		CHECK_INT(range_digest(steps->worker, NULL, kinds, &range, &ret[i]), 0);
		checksum_to_base64(checksum, sums_bytes(&ret[i], checksum), sum);
		snprintf(replies[i], sizeof replies[i],
			"HTTP/1.1 200 X\r\nConnection: close\r\nETag: \"p%u\"\r\n"
			"x-amz-checksum-%s: %s\r\n\r\n",
			i, checksum_kinds[checksum].name, sum);
		steps_answer(steps, replies[i]);
	}
}

/* Adds the reply to Complete, with the checksum of the object that has these parts. */
static void answer_complete(
	struct steps *steps, enum checksum checksum, const struct sums parts[static N])
{
	static char reply[500];
	const bool combines = checksum_kinds[checksum].combines;
	const char *element = combines ? "ChecksumCRC32C" : "ChecksumSHA256";
	const struct sums whole = sums_combine(parts, N);
	unsigned char of_parts[CHECKSUM_BYTES_MAX];
	char sum[CHECKSUM_BASE64_MAX + 1];
	if (!combines)
		CHECK_INT(sums_compose(parts, N, checksum, of_parts), 0);
	checksum_to_base64(checksum, combines ? sums_bytes(&whole, checksum) : of_parts, sum);
	snprintf(reply, sizeof reply,
		STEPS_REPLY("200", "",
			"<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag><%s>%s%s</%s>"
			"</CompleteMultipartUploadResult>"),
		element, sum, combines ? "" : "-2", element);
	steps_answer(steps, reply);
}

/* Sends all parts, one after the other, and returns the step after the last one. */
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
	}
	return step;
}

/* The mark has the checksum of the content and that of the object, which differ. Where size and
 * times may not show a change, the content is read again before Complete. */
static void test_sums_in_the_mark(enum checksum checksum)
{
	const enum checksum combining =
		checksum_kinds[checksum].combines ? checksum : checksum_default();
	struct steps steps;
	struct sums parts[N], all;
	char content_sum[200], object_sum[200];
	if (!begin(&steps, checksum, ""))
		return;
	answer_parts(&steps, checksum, parts);
	answer_complete(&steps, checksum, parts);
	steps.file->must_reread = true;
	CHECK_INT(send_all(&steps), STEP_PROVEN);
	const struct sums whole = sums_combine(parts, N);
	CHECK_INT(digest_bytes(DIGEST_OF(combining), content, BYTES, &all), 0);
	mark_sum_of(&all, checksum, content_sum);
	mark_sum_of(&whole, checksum, object_sum);
	struct mark mark = steps_mark(&steps);
	CHECK_INT(mark.state, MARK_DONE);
	CHECK_STRING(mark.done.sum, content_sum);
	CHECK_STRING(mark.done.object_sum, object_sum);
	CHECK(*object_sum && strcmp(content_sum, object_sum) != 0);
	CHECK_INT(mark.done.object_bytes, whole.bytes);
	CHECK_INT(mark.done.size, BYTES);
	CHECK_INT(mark.done.part_bytes, RANGE);
	mark_clear(&mark);
	steps_asked(&steps, LIST PUTS COMPLETE);
	steps_end(&steps);
}

/* Changes the first byte, and leaves the size and the modification time as they are. */
static void change_hidden(void *arg)
{
	const int fd = open(arg, O_WRONLY | O_CLOEXEC);
	CHECK_INT(pwrite(fd, "x", 1, 0), 1);
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
}

static void test_hidden_change(void)
{
	struct steps steps;
	struct sums parts[N];
	if (!begin(&steps, CHECKSUM_CRC32C, ""))
		return;
	answer_parts(&steps, CHECKSUM_CRC32C, parts);
	steps.file->must_reread = true;
	steps.file->state.ctime_ns = 0; /* its ctime does not count */
	steps_meanwhile(&steps, change_hidden, steps.path);
	CHECK_INT(send_all(&steps), STEP_SEND);
	steps_asked(&steps, LIST PUTS);
	steps_end(&steps);
}

/* The same, but after the whole content was read for its SHA-256, which the upload names, and
 * before its first part is read. So the parts are alike each time, and are not the content that is
 * named. */
static void test_hidden_change_before_the_parts(void)
{
	struct steps steps;
	struct sums parts[N], all;
	if (!begin(&steps, CHECKSUM_CRC32C, ""))
		return;
	steps_meanwhile(&steps, change_hidden, steps.path); /* when the parts are listed */
	CHECK_INT(digest_bytes(DIGEST_SHA256, content, BYTES, &all), 0);
	hex_encode(all.sha256, sizeof all.sha256, steps.file->claim.upload.content_id);
	change_hidden(steps.path);
	answer_parts(&steps, CHECKSUM_CRC32C, parts); /* to the changed content */
	const int fd = open(steps.path, O_WRONLY | O_CLOEXEC);
	CHECK_INT(pwrite(fd, content, 1, 0), 1);
	close(fd);
	CHECK_INT(futimens(steps.file->fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}),
		0);
	steps.file->must_reread = true;
	steps.file->state.ctime_ns = 0; /* its ctime does not count */
	CHECK_INT(send_all(&steps), STEP_SEND);
	CHECK_INT(steps.file->restarts, 1);
	steps_asked(&steps, LIST PUTS);
	steps_end(&steps);
}

/* A refused Complete may mean that the server wants parts of one length, unless they have it: the
 * last one alone may be shorter. S3's least length of the others is 5 MiB. */
static void test_unequal_parts(void)
{
	static const struct {
		const char *reply;
		unsigned restarts; /* before */
		bool has_long_end; /* the last part is longer than 5 MiB */
		bool learns;       /* that parts need one length */
		enum step step;
	} rows[] = {
		{ERROR("InvalidRequest"), 0, false, false, STEP_SETTLED},
		{ERROR("InvalidRequest"), 0, true, true, STEP_NEXT},
		{ERROR("EntityTooSmall"), 1, false, false, STEP_SEND},
		{ERROR("EntityTooSmall"), 1, true, true, STEP_NEXT},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		struct sums parts[N];
		if (rows[i].has_long_end)
			make_random(RANGE);
		else
			memset(content, 0, BYTES);
		if (!begin(&steps, CHECKSUM_CRC32C, ""))
			return;
		steps.file->restarts = rows[i].restarts;
		answer_parts(&steps, CHECKSUM_CRC32C, parts);
		steps_answer(&steps, rows[i].reply);
		steps_answer(&steps, ABORTED);
		const bool learns = rows[i].learns;
		bool good = CHECK_INT(send_all(&steps), rows[i].step);
		good &= CHECK_INT(s3_supports(steps.run->s3, S3_UNEQUAL_PARTS) == S3_NO, learns);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_NOTE], learns);
		good &= CHECK_INT(steps.file->claim.upload.is_open, !learns);
		steps_end_row(
			&steps, good, learns ? LIST PUTS COMPLETE ABORT : LIST PUTS COMPLETE, i);
	}
}

/* A range that does not fit into a part of the one length is not sent: smaller ranges are cut. */
static void test_range_that_does_not_fit(void)
{
	struct steps steps;
	make_random(0);
	if (!begin(&steps, CHECKSUM_CRC32C, "=5242880"))
		return;
	steps_answer(&steps, ABORTED);
	CHECK_INT(send_all(&steps), STEP_NEXT);
	CHECK_INT(steps.file->max_range_bytes, RANGE / 2);
	steps_asked(&steps, LIST ABORT);
	steps_end(&steps);
}

int main(void)
{
	test_sums_in_the_mark(CHECKSUM_CRC32C);
	test_sums_in_the_mark(CHECKSUM_SHA256);
	test_hidden_change();
	test_hidden_change_before_the_parts();
	test_unequal_parts();
	test_range_that_does_not_fit();
	return check_result();
}
