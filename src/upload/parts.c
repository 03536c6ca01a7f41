/* Step 5 for a large file: a multipart upload, recorded in the mark before its first part, sent by
 * any workers, resumed by any run. */
#include "base/log.h"
#include "upload/body.h"
#include "upload/proof.h"
#include "upload/worker.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFLICTS_MAX 20
#define AMBIGUOUS_MAX 2 /* each was tried as often as any request */

/* Its parts, while workers send them. The file is untouched until the last of them has ended. */
struct upload {
	struct parts parts;
	struct file *file;
	struct s3_part *done; /* [n_parts]: as the server has them; part_number 0: not yet */
	struct sums *sums;    /* [n_parts] */
	struct {
		pthread_mutex_t mutex;
		enum outcome outcome; /* the first failure, or OK */
		int read_error;       /* of an OUTCOME_LOCAL */
		struct problem problem;
	} locked;
};

static struct upload *upload_of(struct parts *parts)
{
	return (struct upload *)((char *)parts - offsetof(struct upload, parts));
}

static void upload_free(struct upload *upload)
{
	pthread_mutex_destroy(&upload->locked.mutex);
	free(upload->done);
	free(upload->sums);
	free(upload);
}

static struct upload *upload_new(struct file *file)
{
	struct upload *upload = calloc(1, sizeof *upload);
	if (!upload)
		return NULL;
	pthread_mutex_init(&upload->locked.mutex, NULL);
	upload->file = file;
	upload->done = calloc(file->plan.n_parts, sizeof *upload->done);
	upload->sums = calloc(file->plan.n_parts, sizeof *upload->sums);
	if (upload->done && upload->sums)
		return upload;
	upload_free(upload);
	return NULL;
}

static enum step out_of_memory(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem, "out of memory");
	return file_fail(worker, file, &problem);
}

enum step parts_abort(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	if (!file->upload_is_open)
		return STEP_NEXT;
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_abort_upload(
		worker->s3, file->candidate->key, file->upload_id, &limits, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD)
		return file_outcome(worker, file, o, &problem);
	file->upload_is_open = false;
	return STEP_NEXT;
}

/* The upload id is worth nothing any more: completed by a late request, aborted, or expired. HEAD
 * tells which. */
static enum step upload_is_gone(struct worker *worker, struct file *file)
{
	struct problem problem;
	file->upload_is_open = false;
	file->must_look = true;
	if (++file->restarts <= FILE_RESTARTS_MAX)
		return STEP_AGAIN;
	problem_set(&problem,
		"its multipart uploads vanish while they are under way; does a lifecycle rule, or "
		"another program, abort them?");
	return file_fail(worker, file, &problem);
}

/* Whether the recorded upload was begun for this very version of the file, with this very key: with
 * another the server refuses parts, or completes what the caller cannot read. */
static bool fits(const struct file *file, struct plan *ret)
{
	return file->upload_is_open && file->upload_checksum != CHECKSUMS &&
	       file->upload_size == file->state.size &&
	       file->upload_mtime_ns == file->state.mtime_ns &&
	       !strcmp(file->upload_key, s3_headers_key_md5(file->target.headers)) &&
	       !plan_resume(file->state.size, file->upload_part_bytes, ret);
}

static int note_part(void *arg, const struct s3_part *part)
{
	struct upload *upload = arg;
	if (part->part_number >= 1 && part->part_number <= upload->file->plan.n_parts)
		upload->done[part->part_number - 1] = *part;
	return 0;
}

/* The parts the server has already are compared with the file, one by one, as they come up. */
static enum step resume(struct worker *worker, struct file *file, struct upload *upload)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_list_parts(
		worker->s3, &file->target, file->upload_id, &limits, note_part, upload, &problem);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	return o == OUTCOME_NO_UPLOAD ? upload_is_gone(worker, file)
				      : file_outcome(worker, file, o, &problem);
}

/* The id is in the mark before the first part is sent: else a crash would leave parts that no run
 * finds again. */
static enum step record(struct worker *worker, struct file *file, char *upload_id)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	const struct mark_ref ref = file_mark_ref(worker, file);
	const struct upload_record entry = {
		.upload_id = upload_id,
		.before = file->upload_id,
		.checksum = s3_checksum(worker->run->s3),
		.key_md5 = s3_headers_key_md5(file->target.headers),
		.part_bytes = file->plan.part_bytes,
		.size = file->state.size,
		.mtime_ns = file->state.mtime_ns,
	};
	enum outcome o = mark_record_upload(&ref, &file->claim, &entry, &problem);
	if (o == OUTCOME_OK) {
		free(file->upload_id);
		file->upload_id = upload_id;
		file->upload_is_open = true;
		file->upload_checksum = entry.checksum;
		snprintf(file->upload_key, sizeof file->upload_key, "%s", entry.key_md5);
		file->upload_size = entry.size;
		file->upload_mtime_ns = entry.mtime_ns;
		file->upload_part_bytes = entry.part_bytes;
		return STEP_NEXT;
	}
	struct problem second = {0};
	if (o == OUTCOME_REFUSED && s3_abort_upload(worker->s3, file->candidate->key, upload_id,
					    &limits, &second) != OUTCOME_OK)
		log_info("an upload that could not be recorded stays open: %s", second.text);
	free(upload_id);
	if (o != OUTCOME_REFUSED)
		return file_outcome(worker, file, o, &problem);
	run_fence(worker->run, "another uploader took over a file of this run");
	return STEP_OVER;
}

static enum step create(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	char *upload_id = NULL;
	enum step step = parts_abort(worker, file);
	if (step == STEP_NEXT) /* before gigabytes are sent: is something there already? */
		step = look_ahead(worker, file);
	if (step != STEP_NEXT)
		return step;
	const struct s3_create call = {.target = file->target,
		.meta = file_meta(worker, file),
		.checksum = s3_checksum(worker->run->s3),
		.limits = run_limits(worker->run)};
	enum outcome o = s3_create_upload(worker->s3, &call, &upload_id, &problem);
	if (o == OUTCOME_OK)
		return record(worker, file, upload_id);
	/* No reply that can be read: an upload nobody knows of costs storage only. */
	if (o == OUTCOME_LOST && ++file->restarts <= FILE_RESTARTS_MAX)
		return STEP_AGAIN;
	return file_outcome(worker, file, o, &problem);
}

enum step parts_begin(struct worker *worker, struct file *file)
{
	struct plan plan;
	enum step step = STEP_NEXT;
	const bool resumes = fits(file, &plan);
	if (resumes)
		file->plan = plan;
	else
		step = create(worker, file);
	if (step != STEP_NEXT)
		return step;
	struct upload *upload = upload_new(file);
	if (!upload)
		return out_of_memory(worker, file);
	if (resumes)
		step = resume(worker, file, upload);
	if (step != STEP_NEXT) {
		upload_free(upload);
		return step;
	}
	queue_open_parts(worker->run->queue, &upload->parts, file->plan.n_parts);
	return STEP_PARTS;
}

static enum outcome failed_reading(int error, int *ret_read_error, struct problem *problem)
{
	problem_set(problem, "cannot be read: %s", strerror(-error));
	*ret_read_error = error;
	return error == -ECANCELED ? OUTCOME_ABANDONED : OUTCOME_LOCAL;
}

/* The server did not say what it has but for an etag, which may be the MD5 of the bytes that were
 * sent: those whose checksum is known. */
static int add_md5(struct worker *worker, const struct range *range, struct sums *sums)
{
	struct sums again;
	int error = body_digest(&worker->digest, sums->kinds | DIGEST_MD5, range, worker->buffer,
		worker->buffer_bytes, run_is_over, worker->run, &again);
	for (unsigned kind = 0; !error && kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind) && !sums_equal(&again, sums, (enum checksum)kind))
			error = -ESTALE;
	if (!error)
		*sums = again;
	return error;
}

static enum outcome put_part(struct worker *worker, struct upload *upload, unsigned index,
	const struct range *range, int *ret_read_error, struct problem *problem)
{
	struct file *file = upload->file;
	struct body stream = {.range = *range, .state = file->state};
	const struct http_body body = body_stream(&stream);
	const struct s3_part_put put = {
		.target = file->target,
		.upload_id = file->upload_id,
		.part_number = index + 1,
		.body = &body,
		.sums = &upload->sums[index],
		.checksum = file->upload_checksum,
		.limits = run_limits(worker->run), /* invisible: it may outlive the lease */
	};
	struct s3_part part = {0};
	enum outcome o = s3_upload_part(worker->s3, &put, &part, problem);
	report_sent(&worker->run->report, range->bytes);
	if (stream.error)
		return failed_reading(stream.error, ret_read_error, problem);
	if (o == OUTCOME_OK && !(put.sums->kinds & DIGEST_MD5) &&
		proof_part(put.sums, &part) == PROOF_MISSING) {
		int error = add_md5(worker, range, &upload->sums[index]);
		if (error)
			return failed_reading(error, ret_read_error, problem);
	}
	if (o == OUTCOME_OK && proof_part(&upload->sums[index], &part) == PROOF_NO) {
		problem_set(problem, "S3 stored other bytes of part %u than were sent", index + 1);
		return OUTCOME_BAD_DIGEST;
	}
	if (o == OUTCOME_OK)
		upload->done[index] = part;
	return o;
}

static unsigned digests_of_part(const struct s3 *s3, enum checksum checksum)
{
	unsigned kinds = s3_wanted_digests(s3, checksum);
	/* Many first parts are sent before the first reply tells whether MD5 is needed. */
	if (checksum != CHECKSUM_MD5 && s3_knows(s3, S3_ECHOES_CHECKSUM) == S3_UNKNOWN)
		kinds &= ~(unsigned)DIGEST_MD5;
	/* The mark has that of the whole file. */
	return checksum_kinds[checksum].combines ? kinds : kinds | DIGEST_OF(checksum_default());
}

/* Sends part `index`, unless the server has exactly these bytes already. */
static enum outcome send_part(struct worker *worker, struct upload *upload, unsigned index,
	int *ret_read_error, struct problem *problem)
{
	const struct file *file = upload->file;
	const struct range range = {file->fd, plan_offset(&file->plan, index),
		plan_bytes(&file->plan, file->state.size, index)};
	const struct s3_part *there = &upload->done[index];
	unsigned kinds = digests_of_part(worker->run->s3, file->upload_checksum);
	if (there->part_number)
		kinds |= *there->sum.text ? DIGEST_OF(there->sum.kind) : DIGEST_MD5;
	int error = body_digest(&worker->digest, kinds, &range, worker->buffer,
		worker->buffer_bytes, run_is_over, worker->run, &upload->sums[index]);
	if (!error)
		error = body_unchanged(file->fd, &file->state);
	if (error)
		return failed_reading(error, ret_read_error, problem);
	if (there->part_number && proof_part(&upload->sums[index], there) == PROOF_YES)
		return OUTCOME_OK;
	return put_part(worker, upload, index, &range, ret_read_error, problem);
}

static void note_failure(
	struct upload *upload, enum outcome o, int read_error, const struct problem *problem)
{
	pthread_mutex_lock(&upload->locked.mutex);
	if (upload->locked.outcome == OUTCOME_OK) {
		upload->locked.outcome = o;
		upload->locked.read_error = read_error;
		upload->locked.problem = *problem;
	}
	pthread_mutex_unlock(&upload->locked.mutex);
}

/* Every part is there. The reply proves the object, or a HEAD with what was computed of the parts,
 * or a HEAD and the file read once more. */
static enum step prove(struct worker *worker, struct upload *upload, const struct s3_object *reply)
{
	struct file *file = upload->file;
	const size_t n = file->plan.n_parts;
	struct s3_object object = *reply;
	enum proof proof = proof_parts(upload->sums, n, &object, false);
	if (proof != PROOF_YES || !*object.etag) {
		const struct call_limits limits = run_limits(worker->run);
		struct problem problem = {0};
		if (s3_head_object(worker->s3, &file->target, &limits, &object, &problem) ==
			OUTCOME_OK)
			proof = proof_parts(upload->sums, n, &object, true);
	}
	file->sums = sums_combine(upload->sums, n);
	file->summed = true;
	if (proof == PROOF_YES)
		return file_done(worker, file, object.etag, S3ONCE_EVENT_UPLOADED);
	return file_prove_by_head(worker, file);
}

static enum step after_complete(struct worker *worker, struct upload *upload,
	const struct s3_condition *condition, enum outcome o, const struct s3_object *reply,
	const struct problem *problem)
{
	struct file *file = upload->file;
	switch (o) {
	case OUTCOME_OK:
		file->upload_is_open = false;
		return prove(worker, upload, reply);
	case OUTCOME_REFUSED:
		return look_after_refusal(worker, file, condition);
	case OUTCOME_ABSENT: /* what If-Match names was deleted meanwhile */
		if (condition->if_match)
			return look_after_refusal(worker, file, condition);
		break;
	case OUTCOME_NO_UPLOAD:
		return upload_is_gone(worker, file);
	case OUTCOME_LOST: /* it may have worked; or the upload is gone and this server has no word
			      for it (RGW: 500) */
	case OUTCOME_TRANSIENT:
		file->must_look = true;
		if (++file->restarts <= AMBIGUOUS_MAX)
			return STEP_AGAIN;
		break;
	case OUTCOME_BAD_PART: /* what the server has is listed and compared again */
		if (++file->restarts <= FILE_RESTARTS_MAX)
			return STEP_AGAIN;
		break;
	case OUTCOME_UNSUPPORTED:
		if (!file->unconditional) {
			file->unconditional = true;
			return STEP_AGAIN;
		}
		break;
	default:
		break;
	}
	return file_outcome(worker, file, o, problem);
}

static enum step complete(struct worker *worker, struct upload *upload)
{
	struct file *file = upload->file;
	enum step step = STEP_NEXT;
	if (file_needs_look(worker, file, S3_COMPLETE_CONDITION))
		step = look_at_object(worker, file);
	if (step != STEP_NEXT)
		return step;
	int error = body_unchanged(file->fd, &file->state);
	if (error)
		return file_read_error(worker, file, error);
	const struct sums whole = sums_combine(upload->sums, file->plan.n_parts);
	const struct s3_complete call = {
		.target = file->target,
		.upload_id = file->upload_id,
		.parts = upload->done,
		.n_parts = file->plan.n_parts,
		.checksum = file->upload_checksum,
		.whole = &whole,
		.condition = file_condition(worker, file, S3_COMPLETE_CONDITION),
		.limits = run_visible_limits(worker->run),
	};
	struct s3_object reply = {0};
	struct problem problem = {0};
	enum outcome o = OUTCOME_CONFLICT;
	for (unsigned i = 0; o == OUTCOME_CONFLICT && i < CONFLICTS_MAX; i++)
		o = s3_complete_upload(worker->s3, &call, &reply, &problem);
	return after_complete(worker, upload, &call.condition, o, &reply, &problem);
}

static enum step finish(struct worker *worker, struct upload *upload)
{
	struct file *file = upload->file;
	const enum outcome o = upload->locked.outcome;
	if (run_is_over(worker->run))
		return STEP_OVER;
	if (o == OUTCOME_OK)
		return complete(worker, upload);
	if (o == OUTCOME_LOCAL && upload->locked.read_error)
		return file_read_error(worker, file, upload->locked.read_error);
	if (o == OUTCOME_NO_UPLOAD)
		return upload_is_gone(worker, file);
	return file_outcome(worker, file, o, &upload->locked.problem);
}

enum step parts_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file)
{
	struct upload *upload = upload_of(parts);
	struct problem problem = {0};
	int read_error = 0;
	enum outcome o = send_part(worker, upload, index, &read_error, &problem);
	if (o != OUTCOME_OK)
		note_failure(upload, o, read_error, &problem);
	if (!queue_part_ended(worker->run->queue, parts, o != OUTCOME_OK))
		return STEP_PARTS;
	enum step step = finish(worker, upload);
	*ret_file = parts_give_up(parts);
	return step;
}

struct file *parts_give_up(struct parts *parts)
{
	struct upload *upload = upload_of(parts);
	struct file *file = upload->file;
	upload_free(upload);
	return file;
}
