#include "marks/judge.h"
#include "upload/file/multipart.h"
#include "upload/file/piece.h"
#include <errno.h>

/* The server did not say what it has but for an etag, which may be the MD5 of the bytes that were
 * sent: those whose checksum is known. */
static int add_md5(struct worker *worker, struct piece *piece, struct sums *sums)
{
	struct sums again;
	int error = piece_digest(worker, piece, sums->kinds | DIGEST_MD5, &again);
	for (unsigned kind = 0; !error && kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind) && !sums_equal(&again, sums, (enum checksum)kind))
			error = -ESTALE;
	if (!error)
		*sums = again;
	return error;
}

static void keep_part(struct multipart *multipart, const struct s3_part *part)
{
	const struct file *file = multipart->file;
	const unsigned index = part->part_number - 1;
	uv_mutex_lock(&multipart->locked.mutex);
	if (!multipart->done[index].part_number)
		multipart_keeps(
			multipart->file, file->candidate->kept_bytes +
						 plan_bytes(&file->plan, file->state.size, index));
	multipart->done[index] = *part;
	uv_mutex_unlock(&multipart->locked.mutex);
}

/* Whether the reply to a part shows that the server has the bytes that were sent. */
static bool accept_part(struct worker *worker, struct multipart *multipart, struct piece *piece,
	const struct s3_part *part, struct part_failure *ret_failure)
{
	struct sums *sums = &multipart->sums[part->part_number - 1];
	enum proof proof = proof_part(sums, part);
	if (proof == PROOF_MISSING && !(sums->kinds & DIGEST_MD5)) {
		ret_failure->read_error = add_md5(worker, piece, sums);
		if (ret_failure->read_error)
			return false;
		proof = proof_part(sums, part);
	}
	if (proof == PROOF_NO) {
		ret_failure->outcome = OUTCOME_BAD_DIGEST;
		problem_set(&ret_failure->problem,
			"S3 stored other bytes of part %u than were sent", part->part_number);
		return false;
	}
	refusals_stored(&worker->run->refusals);
	keep_part(multipart, part);
	return true;
}

static bool put_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct piece *piece, struct part_failure *ret_failure)
{
	const struct file *file = multipart->file;
	if (!piece_may_leave(worker, piece)) {
		ret_failure->outcome = OUTCOME_ABANDONED;
		return false;
	}
	const struct s3_part_put put = {
		.target = file->target,
		.upload_id = file->claim.upload.id,
		.part_number = index + 1,
		.body = &piece->http,
		.sums = &multipart->sums[index],
		.checksum = file->claim.upload.checksum,
		.limits = run_limits(worker->run), /* invisible: it may outlive the lease */
	};
	struct s3_part part = {0};
	ret_failure->outcome = s3_upload_part(worker->s3, &put, &part, &ret_failure->problem);
	ret_failure->read_error = piece->body.error;
	if (ret_failure->outcome != OUTCOME_OK)
		transfer_undo(&piece->body.transfer);
	if (ret_failure->outcome != OUTCOME_OK || piece->body.error)
		return false;
	return accept_part(worker, multipart, piece, &part, ret_failure);
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

/* The digests of the content of an encoded part that the mark needs for the whole file. */
static unsigned digests_of_content(enum checksum checksum)
{
	return DIGEST_OF(checksum_kinds[checksum].combines ? checksum : checksum_default());
}

/* Sends part `index`, unless the server has exactly these bytes already. */
static bool send_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct part_failure *ret_failure)
{
	struct file *file = multipart->file;
	const enum checksum checksum = file->claim.upload.checksum;
	const struct s3_part *there = &multipart->done[index];
	struct piece_asked asked = {
		.range = file_range(file, file->encoding, &file->plan, index),
		.kinds = digests_of_part(worker->run->s3, checksum),
		.read_kinds = digests_of_content(checksum),
	};
	struct piece piece;
	if (there->part_number)
		asked.kinds |= *there->sum.text ? DIGEST_OF(there->sum.kind) : DIGEST_MD5;
	ret_failure->read_error = piece_read(worker, file, &asked, &piece);
	if (!ret_failure->read_error && !multipart_part_fits(file, index, piece.sums.bytes))
		ret_failure->read_error = -EMSGSIZE;
	bool is_there = !ret_failure->read_error;
	if (is_there) {
		multipart->sums[index] = piece.sums;
		if (multipart->read)
			multipart->read[index] = piece.read;
		if (!there->part_number || proof_part(&piece.sums, there) != PROOF_YES)
			is_there = put_part(worker, multipart, index, &piece, ret_failure);
		else
			share_has(&file->share, asked.range.bytes);
	}
	piece_end(worker, &piece);
	return is_there;
}

static void note_failure(struct multipart *multipart, const struct part_failure *failure)
{
	uv_mutex_lock(&multipart->locked.mutex);
	if (!multipart->locked.has_failed)
		multipart->locked.failure = *failure;
	multipart->locked.has_failed = true;
	uv_mutex_unlock(&multipart->locked.mutex);
}

/* An upload that makes progress does not count as one that keeps failing. */
static void note_progress(const struct multipart *multipart)
{
	struct candidate *c = multipart->file->candidate;
	unsigned n = 0;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < multipart->file->plan.n_parts; i++) {
		n += multipart->done[i].part_number != 0;
		if (multipart->done[i].part_number)
			bytes += plan_bytes(&multipart->file->plan, multipart->file->state.size, i);
	}
	multipart_keeps(multipart->file, bytes);
	if (n <= c->parts_done)
		return;
	c->parts_done = n;
	c->failures = 0;
	c->failing_ns = 0;
}

/* No part of the upload is under way any more. */
static enum step after_last_part(struct worker *worker, struct multipart *multipart)
{
	struct file *file = multipart->file;
	const struct part_failure *failure = &multipart->locked.failure;
	note_progress(multipart);
	if (run_is_over(worker->run))
		return STEP_OVER;
	if (!multipart->locked.has_failed)
		return multipart_complete(worker, multipart);
	if (failure->read_error == -EMSGSIZE)
		return multipart_misfits(worker, file);
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
