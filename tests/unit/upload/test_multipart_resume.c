/* The steps before the parts of a file: the recorded upload that is aborted or gone, the content of
 * an upload, and the division of a file that is compressed on its way. */
#include "base/checksum.h"
#include "steps.h"
#include "upload/file/multipart.h"
#include "upload/file/steps.h"

#define MIB         (1ULL << 20)
#define SAMPLE      (512ULL << 10)
#define BIG_BYTES   (64 * MIB)
#define CONTENT     "123456789abc"
#define FAILS       STEPS_REPLY("500", "", "")
#define GONE        STEPS_REPLY("404", "", "<Error><Code>NoSuchUpload</Code></Error>")
#define ABORTED     STEPS_REPLY("204", "", "")
#define ABORT_OF_GZ "DELETE /b/p/k.gz?uploadId=up\n"

static bool always(void *arg)
{
	return true;
}

/* Begins a run with these options, whose file is claimed. The key of the file is not its path. */
static bool begin(struct steps *steps)
{
	steps->options.prefix = "p";
	if (!steps_begin(steps, NULL, 0) || !CHECK_INT(steps_claim(steps), STEP_NEXT))
		return false;
	steps->file->step = STEP_SEND;
	return true;
}

/* The upload that fits the file, as it is in the mark. */
static void record(struct steps *steps, uint64_t part_bytes)
{
	struct open_upload *upload = &steps->file->claim.upload;
	*upload = open_upload_of_file(steps->worker, steps->file);
	upload->id = strdup("up");
	upload->part_bytes = part_bytes;
}

/* Aborting an upload that nobody goes on with. It has the key that the object had when it was
 * begun, and may outlive the lease. */
static void test_abort(void)
{
	static const struct {
		bool is_open, is_dry, is_stranded;
		const char *reply;
		enum step step;
		const char *asked;
		bool stays;
	} rows[] = {
		{false, false, false, NULL, STEP_NEXT, "", false},
		{true, true, false, NULL, STEP_NEXT, "", true},
		{true, false, false, ABORTED, STEP_NEXT, ABORT_OF_GZ, false},
		{true, false, false, GONE, STEP_NEXT, ABORT_OF_GZ, false},
		{true, false, false, FAILS, STEP_LATER, ABORT_OF_GZ, true},
		{true, false, true, ABORTED, STEP_NEXT, ABORT_OF_GZ, false},
		{true, false, true, FAILS, STEP_SETTLED, ABORT_OF_GZ, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!steps_make(&steps, CONTENT, strlen(CONTENT)) || !begin(&steps))
			return;
		struct file *file = steps.file;
		struct candidate *c = file->candidate;
		record(&steps, 5);
		snprintf(file->claim.upload.suffix, SUFFIX_MAX + 1, ".gz");
		snprintf(c->suffix, SUFFIX_MAX + 1, ".zst");
		file->claim.upload.is_open = rows[i].is_open;
		file_set_kept_bytes(file, 7);
		steps.run->dry = rows[i].is_dry;
		file->step = rows[i].is_stranded ? STEP_STRANDED : STEP_SEND;
		steps.worker->visible_limits.abandon = always;
		steps_answer(&steps, rows[i].reply);
		bool good = CHECK_INT(multipart_abort(steps.worker, file), rows[i].step);
		if (rows[i].step == STEP_LATER) { /* the queue has it again */
			c = queue_pop_file(steps.run->queue);
			good &= CHECK_INT(c->kept_bytes, 7);
			free(c);
		} else {
			good &= CHECK_INT(file->claim.upload.is_open, rows[i].stays);
			good &= CHECK_INT(c->kept_bytes, rows[i].stays || !*rows[i].asked ? 7 : 0);
		}
		steps.run->dry = false;
		steps_end_row(&steps, good, rows[i].asked, i);
	}
}

/* An upload that is gone: S3 may be making an object of it, otherwise another one is begun, but not
 * for ever. */
static void test_gone(void)
{
	static const struct {
		bool is_completing;
		unsigned restarts; /* before */
		enum step step;
	} rows[] = {
		{false, 0, STEP_LOOK},
		{false, FILE_RESTARTS_MAX - 1, STEP_LOOK},
		{false, FILE_RESTARTS_MAX, STEP_SETTLED},
		{true, 0, STEP_LATER},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!steps_make(&steps, CONTENT, strlen(CONTENT)) || !begin(&steps))
			return;
		struct file *file = steps.file;
		struct candidate *c = file->candidate;
		record(&steps, 5);
		file->restarts = rows[i].restarts;
		c->is_completing = rows[i].is_completing;
		file_set_kept_bytes(file, 7);
		bool good = CHECK_INT(multipart_handle_gone(steps.worker, file), rows[i].step);
		good &= CHECK_INT(file->claim.upload.is_open, rows[i].is_completing);
		good &= CHECK_INT(
			atomic_load(&steps.run->report.kept), rows[i].is_completing ? 7 : 0);
		if (rows[i].step == STEP_LOOK)
			good &= CHECK_INT(file->restarts, rows[i].restarts + 1);
		if (rows[i].step == STEP_SETTLED)
			good &= steps_say(&steps, "its multipart uploads disappear");
		steps_end_row(&steps, good, "", i);
	}
}

/* An upload is resumed only if its object would be encrypted as this run asks. */
static void test_encryption(void)
{
	static const struct {
		const char *sse, *recorded;
		bool fits;
	} rows[] = {
		{NULL, "", true},
		{NULL, "AES256", false},
		{"AES256", "AES256", true},
		{"AES256", "", false},
		{"AES256", "aws:kms", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct s3once_setting setting = {"sse", rows[i].sse};
		struct steps steps;
		bool resumes = !rows[i].fits;
		if (!steps_make(&steps, CONTENT, strlen(CONTENT)))
			return;
		steps.options.settings = &setting;
		steps.options.n_settings = rows[i].sse != NULL;
		if (!begin(&steps))
			return;
		const struct open_upload ours = open_upload_of_file(steps.worker, steps.file);
		bool good = CHECK_STRING(ours.encryption, rows[i].sse ? rows[i].sse : "");
		good &= CHECK(ours.is_open);
		good &= CHECK_INT(ours.checksum, s3_checksum(steps.run->s3));
		record(&steps, 5);
		snprintf(steps.file->claim.upload.encryption,
			sizeof steps.file->claim.upload.encryption, "%s", rows[i].recorded);
		CHECK_INT(multipart_choose_plan(steps.worker, steps.file, &resumes), STEP_NEXT);
		good &= CHECK_INT(resumes, rows[i].fits);
		steps_end_row(&steps, good, "", i);
	}
}

/* Makes the file large, and full of zeros, except for n samples of it which cannot be compressed:
 * at its beginning, in its middle, at its end. Such a file is cut by these three. */
static void enlarge(const struct steps *steps, unsigned n)
{
	static unsigned char bytes[SAMPLE];
	const int fd = open(steps->path, O_WRONLY | O_CLOEXEC);
	unsigned random = 1;
	for (size_t i = 0; i < sizeof bytes; i++) {
		random = random * 1103515245 + 12345;
		bytes[i] = (unsigned char)(random >> 16);
	}
	CHECK_INT(ftruncate(fd, BIG_BYTES), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(pwrite(fd, bytes, SAMPLE, (off_t)((BIG_BYTES - SAMPLE) / 2 * i)),
			(int64_t)SAMPLE);
	CHECK_INT(futimens(fd, (struct timespec[]){{.tv_sec = 1000}, {.tv_sec = 1000}}), 0);
	close(fd);
}

static bool begin_compressed(struct steps *steps, unsigned n_random)
{
	if (!steps_make(steps, "x", 1))
		return false;
	enlarge(steps, n_random);
	steps->options.compress = "zstd:3";
	if (!begin(steps))
		return false;
	steps->run->bodies.encoders.buffer_bytes = 8 * MIB + 7; /* nine tenths are 7 MiB */
	return true;
}

/* A file that is compressed is cut into ranges of which each, compressed, is meant to fit an
 * encoder. Parts that have to have one length are padded to that of an encoder. */
static void test_cut(void)
{
	/* so much surely fits 8 MiB */
	const uint64_t sure = 8 * MIB - 64 * 1024 - 4096;
	const struct {
		unsigned n_random; /* of the three samples */
		bool takes_equal_parts_only;
		uint64_t max_range_bytes;
		uint64_t range, padded; /* 0: it is sent whole */
	} rows[] = {
		{3, false, 0, 7 * MIB, 0},
		{1, false, 0, 21 * MIB, 0},
		{0, false, 0, 0, 0},
		{3, true, 0, sure, 8 * MIB},
		{1, true, 0, 21 * MIB, 8 * MIB},
		{1, true, 11 * MIB, 11 * MIB, 8 * MIB}, /* more did not fit when it was tried */
		{1, true, 30 * MIB, 21 * MIB, 8 * MIB},
		{1, true, MIB, sure, 8 * MIB},
		{0, true, 0, 0, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		bool resumes = true;
		if (!begin_compressed(&steps, rows[i].n_random))
			return;
		struct file *file = steps.file;
		const struct encoding *of_run = &steps.run->bodies.encoding;
		file->max_range_bytes = rows[i].max_range_bytes;
		s3_set_support(steps.run->s3, S3_UNEQUAL_PARTS,
			rows[i].takes_equal_parts_only ? S3_NO : S3_YES);
		bool good =
			CHECK_INT(multipart_choose_plan(steps.worker, file, &resumes), STEP_NEXT);
		good &= CHECK(!resumes);
		good &= CHECK_INT(file->plan.n_parts,
			rows[i].range ? (BIG_BYTES + rows[i].range - 1) / rows[i].range : 0);
		if (rows[i].range) {
			/* the last digits are those of the sample */
			good &= CHECK_INT(file->plan.part_bytes / MIB, rows[i].range / MIB);
			good &= CHECK_INT(file->plan.part_bytes == sure, rows[i].range == sure);
		}
		good &= CHECK_INT(file->encoding->part_bytes, rows[i].padded);
		good &= CHECK_INT(strcmp(file->encoding->name, of_run->name) == 0, !rows[i].padded);
		steps_end_row(&steps, good, "", i);
	}
}

/* Which upload of compressed parts is resumed, and how the file is compressed otherwise. */
static void test_compressed(void)
{
	enum recorded { SAME, PADDED, OLDER, OTHER_CODEC, CONTENT_SAME, CONTENT_OTHER, CLOSED };
	static const struct {
		enum recorded recorded;
		bool takes_equal_parts_only, resumes;
		uint64_t padded;
	} rows[] = {
		{SAME, false, true, 0},
		{SAME, true, false, 8 * MIB},
		{PADDED, false, true, 6 * MIB},
		{PADDED, true, true, 6 * MIB},
		{OLDER, false, false, 0}, /* padded, but of an earlier version of the file */
		{OTHER_CODEC, false, false, 0},
		{CONTENT_SAME, false, true, 0},
		{CONTENT_OTHER, false, false, 0},
		{CLOSED, false, false, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const enum recorded recorded = rows[i].recorded;
		struct steps steps;
		bool resumes = !rows[i].resumes;
		if (!begin_compressed(&steps, 1))
			return;
		struct file *file = steps.file;
		struct open_upload *upload = &file->claim.upload;
		struct encoding encoding = steps.run->bodies.encoding;
		s3_set_support(steps.run->s3, S3_UNEQUAL_PARTS,
			rows[i].takes_equal_parts_only ? S3_NO : S3_YES);
		record(&steps, 10 * MIB);
		if (recorded == OTHER_CODEC)
			CHECK_INT(encoding_parse("gzip:3", &encoding, &steps.problem), 0);
		if (recorded == PADDED || recorded == OLDER || recorded == OTHER_CODEC)
			encoding = encoding_in_parts(&encoding, 6 * MIB);
		snprintf(upload->encoding, sizeof upload->encoding, "%s", encoding.name);
		upload->mtime_ns -= recorded == OLDER;
		upload->is_open = recorded != CLOSED;
		if (recorded == CONTENT_SAME || recorded == CONTENT_OTHER) {
			CHECK_INT(multipart_add_content_sha256(steps.worker, file), STEP_NEXT);
			CHECK_INT(file->content_sums.kinds, DIGEST_SHA256);
			const struct open_upload ours = open_upload_of_file(steps.worker, file);
			CHECK_INT(strlen(ours.content_id), 64);
			memcpy(upload->content_id, ours.content_id, sizeof upload->content_id);
			upload->content_id[5] ^= recorded == CONTENT_OTHER;
			file->content_sums = (struct sums){0};
		}
		bool good =
			CHECK_INT(multipart_choose_plan(steps.worker, file, &resumes), STEP_NEXT);
		good &= CHECK_INT(resumes, rows[i].resumes);
		good &= CHECK_INT(file->encoding->codec, CODEC_ZSTD);
		good &= CHECK_INT(file->encoding->part_bytes, rows[i].padded);
		if (rows[i].resumes)
			good &= CHECK_INT(file->plan.part_bytes, 10 * MIB);
		else
			good &= CHECK_INT(file->plan.part_bytes / MIB, 21);
		/* The content is read as a whole only where the upload names it. */
		good &= CHECK_INT(file->content_sums.kinds,
			recorded == CONTENT_SAME || recorded == CONTENT_OTHER ? DIGEST_SHA256 : 0);
		steps_end_row(&steps, good, "", i);
	}
}

/* The SHA-256 of the content is needed only for a compressed file that is not known by it. */
static void test_when_the_content_is_read(void)
{
	static char id[] = "c0ffee";
	for (unsigned k = 0; k < 4; k++) {
		const bool is_compressed = k & 1, is_known = k & 2;
		struct steps steps;
		if (!steps_make(&steps, CONTENT, strlen(CONTENT)))
			return;
		steps.options.compress = is_compressed ? "zstd" : NULL;
		if (!begin(&steps))
			return;
		if (is_known)
			steps.file->candidate->content_id = id;
		bool good = CHECK_INT(
			multipart_add_content_sha256(steps.worker, steps.file), STEP_NEXT);
		good &= CHECK_INT(steps.file->content_sums.kinds,
			is_compressed && !is_known ? DIGEST_SHA256 : 0);
		steps_end_row(&steps, good, "", k);
	}
}

/* Nothing is resumed of a file that changes while it is read for its plan. */
static void test_changed(void)
{
	for (unsigned has_content = 0; has_content < 2; has_content++) {
		struct steps steps;
		bool resumes = true;
		if (!begin_compressed(&steps, 3))
			return;
		record(&steps, 10 * MIB);
		steps.file->claim.upload.is_open = has_content;
		memcpy(steps.file->claim.upload.content_id, "c0ffee", 7);
		steps_append(steps.path);
		const enum step step = multipart_choose_plan(steps.worker, steps.file, &resumes);
		bool good = CHECK(step != STEP_NEXT);
		good &= CHECK(!resumes);
		steps_end_row(&steps, good, "", has_content);
	}
}

int main(void)
{
	test_abort();
	test_gone();
	test_encryption();
	test_cut();
	test_compressed();
	test_when_the_content_is_read();
	test_changed();
	return check_result();
}
