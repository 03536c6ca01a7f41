#include "upload/multipart.h"
#include "upload/proof.h"
#include <errno.h>

/* The server did not say what it has but for an etag, which may be the MD5 of the bytes that were
 * sent: those whose checksum is known. */
static int add_md5(struct worker *worker, const struct range *range, struct sums *sums)
{
	struct sums again;
	int error = body_digest(&worker->reader, sums->kinds | DIGEST_MD5, range, &again);
	for (unsigned kind = 0; !error && kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind) && !sums_equal(&again, sums, (enum checksum)kind))
			error = -ESTALE;
	if (!error)
		*sums = again;
	return error;
}

static struct range part_range(const struct file *file, unsigned index)
{
	return (struct range){file->fd, plan_offset(&file->plan, index),
		plan_bytes(&file->plan, file->state.size, index)};
}

/* The reply to a part: whether the server has the bytes that were sent. */
static bool accept_part(struct worker *worker, struct multipart *multipart, unsigned index,
	const struct s3_part *part, struct part_failure *ret_failure)
{
	const struct file *file = multipart->file;
	const struct range range = part_range(file, index);
	struct sums *sums = &multipart->sums[index];
	enum proof proof = proof_part(sums, part);
	if (proof == PROOF_MISSING && !(sums->kinds & DIGEST_MD5)) {
		ret_failure->read_error = add_md5(worker, &range, sums);
		if (ret_failure->read_error)
			return false;
		proof = proof_part(sums, part);
	}
	if (proof == PROOF_NO) {
		ret_failure->outcome = OUTCOME_BAD_DIGEST;
		problem_set(&ret_failure->problem,
			"S3 stored other bytes of part %u than were sent", index + 1);
		return false;
	}
	refusals_stored(&worker->run->refusals);
	multipart->done[index] = *part;
	return true;
}

static bool put_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct part_failure *ret_failure)
{
	struct file *file = multipart->file;
	const struct range range = part_range(file, index);
	if (!run_may_send(worker->run, range.bytes)) {
		ret_failure->outcome = OUTCOME_ABANDONED;
		return false;
	}
	struct body stream = body_of(&range, &file->state, &file->share);
	const struct http_body body = body_stream(&stream);
	const struct s3_part_put put = {
		.target = file->target,
		.upload_id = file->claim.upload.id,
		.part_number = index + 1,
		.body = &body,
		.sums = &multipart->sums[index],
		.checksum = file->claim.upload.checksum,
		.limits = run_limits(worker->run), /* invisible: it may outlive the lease */
	};
	struct s3_part part = {0};
	ret_failure->outcome = s3_upload_part(worker->s3, &put, &part, &ret_failure->problem);
	ret_failure->read_error = stream.error;
	if (ret_failure->outcome != OUTCOME_OK)
		transfer_undo(&stream.transfer);
	if (ret_failure->outcome != OUTCOME_OK || stream.error)
		return false;
	return accept_part(worker, multipart, index, &part, ret_failure);
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
static bool send_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct part_failure *ret_failure)
{
	struct file *file = multipart->file;
	const struct range range = part_range(file, index);
	const struct s3_part *there = &multipart->done[index];
	unsigned kinds = digests_of_part(worker->run->s3, file->claim.upload.checksum);
	if (there->part_number)
		kinds |= *there->sum.text ? DIGEST_OF(there->sum.kind) : DIGEST_MD5;
	ret_failure->read_error = file_digest(worker, file, kinds, &range, &multipart->sums[index]);
	if (ret_failure->read_error)
		return false;
	if (!there->part_number || proof_part(&multipart->sums[index], there) != PROOF_YES)
		return put_part(worker, multipart, index, ret_failure);
	share_has(&file->share, range.bytes);
	return true;
}

static void note_failure(struct multipart *multipart, const struct part_failure *failure)
{
	pthread_mutex_lock(&multipart->locked.mutex);
	if (!multipart->locked.has_failed)
		multipart->locked.failure = *failure;
	multipart->locked.has_failed = true;
	pthread_mutex_unlock(&multipart->locked.mutex);
}

/* An upload that gets on is not one that keeps failing. */
static void note_progress(const struct multipart *multipart)
{
	struct candidate *c = multipart->file->candidate;
	unsigned n = 0;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < multipart->file->plan.n_parts; i++) {
		n += multipart->done[i].part_number != 0;
		bytes += multipart->done[i].part_number ? multipart->done[i].size : 0;
	}
	multipart_keeps(multipart->file, bytes);
	if (n <= c->parts_done)
		return;
	c->parts_done = n;
	c->failures = 0;
	c->failing_ns = 0;
}

/* Nothing of it is under way any more. */
static enum step after_last_part(struct worker *worker, struct multipart *multipart)
{
	struct file *file = multipart->file;
	const struct part_failure *failure = &multipart->locked.failure;
	note_progress(multipart);
	if (run_is_over(worker->run))
		return STEP_OVER;
	if (!multipart->locked.has_failed)
		return multipart_complete(worker, multipart);
	if (failure->read_error)
		return file_read_error(worker, file, failure->read_error);
	if (failure->outcome == OUTCOME_NO_UPLOAD)
		return multipart_is_gone(worker, file);
	return file_outcome(worker, file, failure->outcome, &failure->problem);
}

enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file)
{
	struct multipart *multipart = multipart_of(parts);
	struct part_failure failure = {0};
	const bool is_there = send_part(worker, multipart, index, &failure);
	*ret_file = NULL;
	if (!is_there)
		note_failure(multipart, &failure);
	if (!queue_part_ended(worker->run->queue, parts, !is_there))
		return STEP_PARTS;
	enum step step = after_last_part(worker, multipart);
	*ret_file = multipart->file;
	multipart_free(multipart);
	return step;
}

struct file *multipart_give_up(struct parts *parts)
{
	struct multipart *multipart = multipart_of(parts);
	struct file *file = multipart->file;
	note_progress(multipart);
	multipart_free(multipart);
	return file;
}
