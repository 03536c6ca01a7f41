#include "base/log.h"
#include "base/quote.h"
#include "upload/file/multipart.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREATES_LOST_MAX 1 /* that are started again at once */
#define SAMPLES          3 /* of SAMPLE_BYTES each: less than any file that is sent in parts has */
#define SAMPLE_BYTES     (512ULL << 10)

static enum step out_of_memory(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem, "out of memory");
	return file_fail(worker, file, &problem);
}

static const char *encoding_of(const struct file *file)
{
	return file->encoding ? file->encoding->name : "";
}

/* Whether the recorded upload's metadata is true of the content, as far as it names one. An upload
 * from before that was recorded is of no use for a file that is known by its content. */
static bool is_of_content(struct worker *worker, const struct file *file)
{
	const char *begun_for = file->claim.upload.content;
	const struct s3_meta meta = file_meta(worker, file);
	return strcmp(begun_for, *begun_for ? meta.content : file->candidate->content) == 0;
}

/* Whether the recorded upload was begun for this very version of the file, with this very key: with
 * another the server refuses parts, or completes what the caller cannot read. Another encoding
 * makes other parts. Of other content with this size and time, parts would be compared and sent
 * again, but the metadata stays. */
static bool fits(struct worker *worker, const struct file *file, struct plan *ret)
{
	const struct open_upload *upload = &file->claim.upload;
	return upload->is_open && upload->checksum != CHECKSUMS &&
	       upload->size == file->state.size && upload->mtime_ns == file->state.mtime_ns &&
	       strcmp(upload->key_md5, s3_headers_key_md5(file->target.headers)) == 0 &&
	       strcmp(upload->suffix, candidate_suffix(file->candidate)) == 0 &&
	       strcmp(upload->encoding, encoding_of(file)) == 0 &&
	       multipart_may_be(worker, file->encoding) && is_of_content(worker, file) &&
	       !plan_resume(file->state.size, upload->part_bytes, ret);
}

static int note_part(void *arg, const struct s3_part *part)
{
	struct multipart *multipart = arg;
	if (part->part_number >= 1 && part->part_number <= multipart->file->plan.n_parts)
		multipart->done[part->part_number - 1] = *part;
	return 0;
}

/* Whether the server answered ListParts with something else than a list: it will the next time,
 * too.
 */
static bool cannot_list(enum outcome o, const struct problem *problem)
{
	return o == OUTCOME_UNSUPPORTED || o == OUTCOME_INVALID ||
	       ((o == OUTCOME_LOST || o == OUTCOME_TRANSIENT) && problem->status / 100 == 2);
}

/* Nobody can say which parts are there, so they are of no use: the recorded upload is aborted, as
 * far as the server knows how to, and another one begun. */
static enum step give_up_parts(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem said, second = {0};
	const struct call_limits limits = run_limits(worker->run);
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(worker, file, problem);
	problem_set(&said,
		"%s: the server cannot list the parts that were uploaded before (%.300s), so the "
		"upload starts again",
		quote(file->candidate->path).text, problem->text);
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &said);
	enum outcome o = s3_abort_upload(
		worker->s3, file->candidate->object, file->claim.upload.id, &limits, &second);
	if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD && !cannot_list(o, &second))
		return file_outcome(worker, file, o, &second);
	file->claim.upload.is_open = false;
	file->must_look = true;
	return STEP_AGAIN;
}

/* The parts the server has already are compared with the file, one by one, as they come up. */
static enum step resume_upload(
	struct worker *worker, struct file *file, struct multipart *multipart)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_list_parts(worker->s3, &file->target, file->claim.upload.id, &limits,
		note_part, multipart, &problem);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	if (o == OUTCOME_NO_UPLOAD)
		return multipart_is_gone(worker, file);
	return cannot_list(o, &problem) ? give_up_parts(worker, file, &problem)
					: file_outcome(worker, file, o, &problem);
}

/* Aborts an upload that no mark records, and to which nothing was sent. */
static void discard(struct worker *worker, const struct file *file, struct open_upload *upload)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o =
		s3_abort_upload(worker->s3, file->candidate->object, upload->id, &limits, &problem);
	if (o != OUTCOME_OK)
		log_info("an empty upload that no mark records stays open: %s", problem.text);
	open_upload_clear(upload);
}

/* The id is in the mark before the first part is sent: else a crash would leave parts that no run
 * finds again. */
static enum step record(struct worker *worker, struct file *file, struct open_upload *upload)
{
	struct problem problem = {0};
	const struct mark_ref ref = file_mark_ref(worker, file);
	enum outcome o = mark_record_upload(&ref, &file->claim, upload, &problem);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	/* Should the record arrive yet, the upload it names is one that vanished. */
	discard(worker, file, upload);
	if (o != OUTCOME_REFUSED)
		return file_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, "another uploader took over a file of this run");
	return STEP_OVER;
}

/* No part is sent to an upload that would store it unencrypted. */
static enum step not_encrypted(struct worker *worker, struct file *file, struct open_upload *upload)
{
	struct problem problem;
	discard(worker, file, upload);
	problem_set(&problem,
		"not uploaded: the server does not confirm the encryption that was asked for (sse, "
		"sse-c-key-file); leave the option out, or use a server that encrypts");
	return file_fail(worker, file, &problem);
}

/* No reply that can be read: an upload nobody knows of costs storage, so that few are risked. A
 * server that has answered so twice does not answer otherwise later. */
static enum step create_was_lost(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	if (++file->restarts <= CREATES_LOST_MAX)
		return STEP_AGAIN;
	return problem->status ? file_fail(worker, file, problem)
			       : file_outcome(worker, file, OUTCOME_LOST, problem);
}

/* The metadata is sent before the content is read. */
static enum step learn_content(struct worker *worker, struct file *file, bool is_needed)
{
	return is_needed && file->encoding && !*file->candidate->content
		       ? file_sum(worker, file, DIGEST_SHA256)
		       : STEP_NEXT;
}

static enum step create_upload(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	struct s3_created created = {0};
	const struct s3_create call = {.target = file->target,
		.meta = file_meta(worker, file),
		.checksum = s3_checksum(worker->run->s3),
		.limits = run_limits(worker->run)};
	enum outcome o = s3_create_upload(worker->s3, &call, &created, &problem);
	if (o != OUTCOME_OK)
		return o == OUTCOME_LOST ? create_was_lost(worker, file, &problem)
					 : file_outcome(worker, file, o, &problem);
	refusals_stored(&worker->run->refusals);
	struct open_upload upload = {.id = created.upload_id,
		.is_open = true,
		.checksum = call.checksum,
		.part_bytes = file->plan.part_bytes,
		.size = file->state.size,
		.mtime_ns = file->state.mtime_ns};
	snprintf(upload.key_md5, sizeof upload.key_md5, "%s",
		s3_headers_key_md5(file->target.headers));
	snprintf(upload.suffix, sizeof upload.suffix, "%s", candidate_suffix(file->candidate));
	snprintf(upload.encoding, sizeof upload.encoding, "%s", encoding_of(file));
	snprintf(upload.content, sizeof upload.content, "%s", call.meta.content);
	return created.lacks_encryption ? not_encrypted(worker, file, &upload)
					: record(worker, file, &upload);
}

/* In place of the recorded upload, if that is of no use. Before gigabytes are sent S3 is asked what
 * it holds already. */
static enum step begin_anew(struct worker *worker, struct file *file)
{
	enum step step = multipart_abort(worker, file);
	if (step == STEP_NEXT)
		step = look_ahead(worker, file);
	if (step == STEP_NEXT)
		step = learn_content(worker, file, s3_checksum(worker->run->s3) == CHECKSUM_SHA256);
	return step == STEP_NEXT ? create_upload(worker, file) : step;
}

/* Compresses samples of the file's beginning, middle and end. */
static enum step sample_encoding(
	struct worker *worker, struct file *file, uint64_t *ret_in, uint64_t *ret_out)
{
	*ret_in = *ret_out = 0;
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct range range = file_range(file, file->encoding, NULL, 0);
		range.offset = (range.bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i;
		range.bytes = SAMPLE_BYTES;
		struct sums sums;
		const int error = file_digest(worker, file, 0, &range, &sums);
		if (error)
			return file_read_error(worker, file, error);
		*ret_in += range.bytes;
		*ret_out += sums.bytes;
	}
	return STEP_NEXT;
}

/* Ranges as large as the sample allows, each compressed and padded to parts of one length. */
static void plan_in_equal_parts(struct worker *worker, struct file *file, uint64_t range_bytes)
{
	const uint64_t mib = 1ULL << 20;
	uint64_t part_bytes = worker->run->bodies.encoders.buffer_bytes / mib * mib;
	if (file->range_most && range_bytes > file->range_most)
		range_bytes = file->range_most;
	plan_equal_parts(file->state.size, range_bytes, &part_bytes, &file->plan);
	file->own_encoding = encoding_in_parts(&worker->run->bodies.encoding, part_bytes);
	if (file->plan.n_parts)
		file->encoding = &file->own_encoding;
}

/* The recorded upload may be one in equal parts, whatever this run knows of the server. */
static void choose_as_recorded(struct worker *worker, struct file *file)
{
	const struct open_upload *upload = &file->claim.upload;
	const struct encoding *plain = &worker->run->bodies.encoding;
	struct encoding recorded;
	file->encoding = plain;
	if (!upload->is_open || encoding_named(upload->encoding, &recorded) ||
		!recorded.part_bytes || recorded.codec != plain->codec ||
		recorded.level != plain->level)
		return;
	file->own_encoding = recorded;
	file->encoding = &file->own_encoding;
}

enum step multipart_plan(struct worker *worker, struct file *file)
{
	struct plan plan;
	uint64_t in, out;
	if (!file->encoding || !file->plan.n_parts || file->is_planned)
		return STEP_NEXT;
	const struct open_upload *upload = &file->claim.upload;
	enum step step = learn_content(worker, file, upload->is_open && *upload->content);
	if (step != STEP_NEXT)
		return step;
	choose_as_recorded(worker, file);
	if (fits(worker, file, &plan)) {
		file->plan = plan;
		return STEP_NEXT;
	}
	file->is_planned = true;
	file->encoding = &worker->run->bodies.encoding;
	step = sample_encoding(worker, file, &in, &out);
	if (step != STEP_NEXT)
		return step;
	const uint64_t bytes = encoders_part_bytes(&worker->run->bodies.encoders, in, out);
	if (multipart_may_be(worker, file->encoding))
		plan_upload(file->state.size, bytes, &file->plan);
	else
		plan_in_equal_parts(worker, file, bytes);
	return STEP_NEXT;
}

enum step multipart_begin(struct worker *worker, struct file *file)
{
	struct plan plan;
	enum step step = STEP_NEXT;
	const bool resumes = fits(worker, file, &plan);
	if (resumes)
		file->plan = plan;
	else
		step = begin_anew(worker, file);
	if (step != STEP_NEXT)
		return step;
	struct multipart *multipart = multipart_new(file);
	if (!multipart)
		return out_of_memory(worker, file);
	if (resumes)
		step = resume_upload(worker, file, multipart);
	if (step != STEP_NEXT) {
		multipart_free(multipart);
		return step;
	}
	queue_open_parts(worker->run->queue, &multipart->parts, file->plan.n_parts);
	return STEP_PARTS;
}
