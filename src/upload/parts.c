/* Step 5 for a large file: any workers send its parts. */
#include "upload/parts.h"
#include "upload/body.h"
#include "upload/proof.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct upload *upload_of(struct parts *parts)
{
	return (struct upload *)((char *)parts - offsetof(struct upload, parts));
}

void upload_free(struct upload *upload)
{
	pthread_mutex_destroy(&upload->locked.mutex);
	free(upload->done);
	free(upload->sums);
	free(upload);
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
	struct body stream = body_of(range, &file->state, &file->share);
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
	if (o != OUTCOME_OK)
		transfer_undo(&stream.transfer);
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
	if (o == OUTCOME_OK) {
		refusals_stored(&worker->run->refusals);
		upload->done[index] = part;
	}
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
	if (there->part_number && proof_part(&upload->sums[index], there) == PROOF_YES) {
		share_has(&upload->file->share, range.bytes);
		return OUTCOME_OK;
	}
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

void upload_keeps(struct file *file, uint64_t bytes)
{
	struct candidate *c = file->candidate;
	report_kept(file->share.report, (int64_t)(bytes - c->kept_bytes));
	c->kept_bytes = bytes;
}

/* An upload that gets on is not one that keeps failing. */
static void note_progress(const struct upload *upload)
{
	struct candidate *c = upload->file->candidate;
	unsigned n = 0;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < upload->file->plan.n_parts; i++) {
		n += upload->done[i].part_number != 0;
		bytes += upload->done[i].part_number ? upload->done[i].size : 0;
	}
	upload_keeps(upload->file, bytes);
	if (n <= c->parts_done)
		return;
	c->parts_done = n;
	c->failures = 0;
	c->failing_ns = 0;
}

static enum step finish(struct worker *worker, struct upload *upload)
{
	struct file *file = upload->file;
	const enum outcome o = upload->locked.outcome;
	note_progress(upload);
	if (run_is_over(worker->run))
		return STEP_OVER;
	if (o == OUTCOME_OK)
		return upload_complete(worker, upload);
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
	*ret_file = upload->file;
	upload_free(upload);
	return step;
}

struct file *parts_give_up(struct parts *parts)
{
	struct upload *upload = upload_of(parts);
	struct file *file = upload->file;
	note_progress(upload);
	upload_free(upload);
	return file;
}
