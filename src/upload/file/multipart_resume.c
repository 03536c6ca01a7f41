/* The upload that a mark records, of this run or of an earlier one: whether it fits the present
 * file, the parts that the server has of it, and aborting it if it is useless.
 * multipart_choose_plan() also plans the parts of a file if no upload can be resumed.
 *
 * multipart.c sends by that plan. A step that finds the file in S3 already aborts the recorded
 * upload. No part is sent here. */
#include "base/log.h"
#include "upload/file/file_open.h"
#include "upload/file/multipart.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* The number of samples of SAMPLE_BYTES each. A file that is sent in parts is larger than all of
 * them, since the smallest part has 5 MiB. */
#define SAMPLES      3
#define SAMPLE_BYTES (512ULL << 10)

enum step multipart_abort(struct worker *worker, struct file *file)
{
	struct open_upload *upload = &file->claim.upload;
	char object[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	struct problem problem = {0};
	if (!upload->is_open || worker->run->dry)
		return STEP_NEXT;
	/* The upload has the key that the object had when it was begun. By now the file may be
	 * compressed differently, with another suffix. */
	snprintf(object, sizeof object, "%s%s", file->candidate->key, upload->suffix);
	const enum outcome o =
		s3_abort_upload(worker->s3, object, upload->id, &worker->limits, &problem);
	if (o == OUTCOME_OK || o == OUTCOME_NO_UPLOAD) {
		upload->is_open = false;
		file_set_kept_bytes(file, 0);
		return STEP_NEXT;
	}
	if (file->step != STEP_STRANDED)
		return file_handle_outcome(worker, file, o, &problem);
	log_info("an upload that nobody will go on with was not aborted: %s", problem.text);
	return STEP_SETTLED;
}

enum step multipart_handle_gone(struct worker *worker, struct file *file)
{
	/* S3 may be assembling the parts, and show the object later. Another upload would send the
	 * file again in vain. In its next turn the file looks for the object first. */
	if (file->candidate->is_completing)
		return file_retry(worker, file,
			PROBLEM("S3 has not answered the request that completes the upload, and "
				"shows neither the upload any more nor the object yet"));
	file_set_kept_bytes(file, 0);
	file->claim.upload.is_open = false;
	if (++file->restarts <= FILE_RESTARTS_MAX)
		return STEP_LOOK;
	return file_fail(worker, file,
		PROBLEM("its multipart uploads disappear while they are under way: check whether "
			"a lifecycle rule or another program aborts them"));
}

struct open_upload open_upload_of_file(const struct worker *worker, const struct file *file)
{
	const struct s3_meta meta = file_meta(worker, file);
	const char *sse = s3_headers_value(file->target.headers, "sse");
	struct open_upload upload = {.is_open = true,
		.checksum = s3_checksum(worker->server),
		.part_bytes = file->plan.part_bytes,
		.size = file->state.size,
		.mtime_ns = file->mtime_ns};
	snprintf(upload.encryption, sizeof upload.encryption, "%s",
		sse ? sse : s3_headers_key_md5(file->target.headers));
	snprintf(upload.suffix, sizeof upload.suffix, "%s", file->candidate->suffix);
	snprintf(upload.encoding, sizeof upload.encoding, "%s", meta.encoding);
	snprintf(upload.content_id, sizeof upload.content_id, "%s", meta.content_id);
	snprintf(upload.table_id, sizeof upload.table_id, "%s",
		worker->run->space.settings.table_id);
	return upload;
}

/* Whether the server may accept the parts of this encoding, which have different lengths unless
 * they are padded. `encoding` is NULL for a file that is sent as it is. */
static bool server_takes_parts_of(const struct worker *worker, const struct encoding *encoding)
{
	return !encoding || encoding->part_bytes ||
	       s3_supports(worker->server, S3_UNEQUAL_PARTS) != S3_NO;
}

enum step multipart_add_content_sha256(struct worker *worker, struct file *file)
{
	return (file->encoding && !*file->candidate->content_id)
		       ? file_compute_sums(worker, file, NULL, DIGEST_SHA256)
		       : STEP_NEXT;
}

/* Whether the recorded upload was begun for this very version of the file, and can be resumed. Then
 * *ret is its plan. The checksum and the size of the parts need not be those of this run. */
static bool recorded_upload_fits(struct worker *worker, const struct file *file, struct plan *ret)
{
	const struct open_upload *upload = &file->claim.upload;
	const struct open_upload ours = open_upload_of_file(worker, file);
	/* An upload that records no content fits only a file that is not known by its content. */
	const char *content = *upload->content_id ? ours.content_id : file->candidate->content_id;
	if (!upload->is_open || upload->checksum == CHECKSUMS) /* an algorithm that is not ours */
		return false;
	if (upload->size != ours.size || upload->mtime_ns != ours.mtime_ns)
		return false;
	/* With another key, the server refuses parts, or completes an object that the caller cannot
	 * read. With another algorithm, the object would not be encrypted as requested. */
	if (strcmp(upload->encryption, ours.encryption) != 0)
		return false;
	/* Another encoding makes other parts, and another suffix another key. */
	if (strcmp(upload->suffix, ours.suffix) != 0 ||
		strcmp(upload->encoding, ours.encoding) != 0)
		return false;
	/* The upload's metadata names its content. Parts of other content with this size and time
	 * would be compared and sent again, but the metadata would stay. */
	if (strcmp(upload->content_id, content) != 0)
		return false;
	/* The metadata also names the table of the marks that began the upload. If these marks are
	 * a copy of another machine's, that machine would take the object for its own. */
	if (strcmp(upload->table_id, ours.table_id) != 0)
		return false;
	return server_takes_parts_of(worker, file->encoding) &&
	       !plan_resume(file->state.size, upload->part_bytes, ret);
}

/* Compresses samples of the beginning, middle and end of a file. Sets *ret_in to their number of
 * bytes, and *ret_out to that of their compressed form. Returns 0 or an error of file_digest(). */
static int compress_samples(
	struct worker *worker, const struct file *file, uint64_t *ret_in, uint64_t *ret_out)
{
	*ret_in = *ret_out = 0;
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct range range = file_whole_range(file, file->encoding);
		range.offset = (range.bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i;
		range.bytes = SAMPLE_BYTES;
		struct sums sums;
		const int error = file_digest(worker, file, 0, &range, &sums);
		if (error)
			return error;
		*ret_in += range.bytes;
		*ret_out += sums.bytes;
	}
	return 0;
}

/* Plans the parts of a file that is compressed during its upload: each range of the plan becomes a
 * part. Samples show how well the file can be compressed, and so how large a range may be whose
 * output an encoder can keep.
 *
 * If the server takes only parts of one length, file->encoding also pads each part to that length.
 * The plan has no parts if the whole file is one range: then it is sent whole, and not padded. */
static enum step plan_by_sample(struct worker *worker, struct file *file)
{
	const uint64_t mib = 1ULL << 20, size = file->state.size;
	uint64_t in, out;
	const int error = compress_samples(worker, file, &in, &out);
	if (error)
		return file_handle_read_error(worker, file, error);
	uint64_t range_bytes = encoders_part_bytes(&worker->run->bodies.encoders, in, out);
	if (server_takes_parts_of(worker, file->encoding)) {
		/* this succeeds, as it did in file_open() */
		plan_upload(size, range_bytes, &file->plan);
		return STEP_NEXT;
	}
	/* A part is as long as a buffer, in whole MiB, so that an encoder can keep it. */
	uint64_t part_bytes = worker->run->bodies.encoders.buffer_bytes / mib * mib;
	/* If max_range_bytes is set, an earlier try in this turn has shown that larger ranges do
	 * not fit a part, even when they are compressed: continue_after_parts(). */
	if (file->max_range_bytes && range_bytes > file->max_range_bytes)
		range_bytes = file->max_range_bytes;
	plan_equal_parts(size, range_bytes, &part_bytes, &file->plan);
	if (file->plan.n_parts) {
		file->own_encoding = encoding_in_parts(&worker->run->bodies.encoding, part_bytes);
		file->encoding = &file->own_encoding;
	}
	return STEP_NEXT;
}

/* Returns the encoding in which an upload that this run can resume would be recorded. That is the
 * encoding of the run. If the recorded upload was begun with parts of one length, it also has that
 * length, even if this run does not know of the server's limit. */
static struct encoding resumable_encoding(const struct worker *worker, const struct file *file)
{
	const struct open_upload *upload = &file->claim.upload;
	const struct encoding *of_run = &worker->run->bodies.encoding;
	struct encoding recorded;
	const bool is_known = upload->is_open && !encoding_named(upload->encoding, &recorded);
	const bool is_in_equal_parts = is_known && recorded.part_bytes &&
				       recorded.codec == of_run->codec &&
				       recorded.level == of_run->level;
	return is_in_equal_parts ? recorded : *of_run;
}

enum step multipart_choose_plan(struct worker *worker, struct file *file, bool *ret_resumes)
{
	const struct open_upload *upload = &file->claim.upload;
	*ret_resumes = false;
	plan_upload(file->state.size, worker->options->part_bytes, &file->plan);
	/* If the recorded upload names its content, recorded_upload_fits() compares that. */
	if (upload->is_open && *upload->content_id) {
		const enum step step = multipart_add_content_sha256(worker, file);
		if (step != STEP_NEXT)
			return step;
	}
	if (file->encoding) {
		file->own_encoding = resumable_encoding(worker, file);
		file->encoding = &file->own_encoding;
	}
	/* If the recorded upload fits, file->plan becomes the plan of that upload. */
	*ret_resumes = recorded_upload_fits(worker, file, &file->plan);
	if (*ret_resumes || !file->encoding)
		return STEP_NEXT;
	/* A new upload does not take over the part length of the recorded one. */
	file->encoding = &worker->run->bodies.encoding;
	return plan_by_sample(worker, file);
}

/* The parts that the server has, by their index in the plan. */
struct listed_parts {
	struct s3_part *done; /* [n] */
	unsigned n;
};

/* Called by s3_list_parts() for each part. A part that the plan does not have is skipped. */
static int note_listed_part(void *arg, const struct s3_part *part)
{
	const struct listed_parts *listed = arg;
	if (part->part_number >= 1 && part->part_number <= listed->n)
		listed->done[part->part_number - 1] = *part;
	return 0;
}

/* Aborts an upload whose parts the server cannot list, if the server can do that. It is unknown
 * which parts the server has, so they are useless. Returns the step that follows, which begins
 * another upload. */
static enum step abort_unlisted(struct worker *worker, struct file *file, const struct problem *why)
{
	struct problem problem = {0};
	report_run(worker->report, S3ONCE_EVENT_WARNING,
		PROBLEM("%s: the server cannot list the parts that were uploaded before "
			"(%.300s), so the upload starts again",
			quote(file->candidate->path).text, why->text));
	const enum outcome o = s3_abort_upload(worker->s3, file->candidate->object_key,
		file->claim.upload.id, &worker->limits, &problem);
	const bool is_gone = o == OUTCOME_OK || o == OUTCOME_NO_UPLOAD;
	const bool cannot_abort = o == OUTCOME_UNSUPPORTED || o == OUTCOME_INVALID;
	if (!is_gone && !cannot_abort)
		return file_handle_outcome(worker, file, o, &problem);
	return multipart_handle_gone(worker, file);
}

enum step multipart_resume(struct worker *worker, struct file *file, struct s3_part *ret_done)
{
	struct listed_parts listed = {.done = ret_done, .n = file->plan.n_parts};
	struct problem problem = {0};
	const enum outcome o = s3_list_parts(worker->s3, &file->target, file->claim.upload.id,
		&worker->limits, note_listed_part, &listed, &problem);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	if (o == OUTCOME_NO_UPLOAD)
		return multipart_handle_gone(worker, file);
	/* A server that cannot list parts refuses the request, or answers with a 2xx status and
	 * something other than S3's document. It would do so the next time, too. */
	const bool is_refused = o == OUTCOME_UNSUPPORTED || o == OUTCOME_INVALID;
	const bool is_other_document =
		(o == OUTCOME_LOST || o == OUTCOME_TRANSIENT) && problem.status / 100 == 2;
	return is_refused || is_other_document ? abort_unlisted(worker, file, &problem)
					       : file_handle_outcome(worker, file, o, &problem);
}
