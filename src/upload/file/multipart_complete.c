#include "marks/judge.h"
#include "upload/file/multipart.h"
#include <string.h>

#define AMBIGUOUS_MAX 2 /* each was tried as often as any request */

static void note_sums(struct file *file, const struct multipart *multipart)
{
	const size_t n = file->plan.n_parts;
	const struct sums sent = sums_combine(multipart->sums, n);
	file->stored = file->encoding ? sent : (struct sums){0};
	if (!file->encoding)
		file->sums = sent;
	else if (!file->summed)
		file->sums = sums_combine(multipart->read, n);
	file->summed = true;
}

/* Every part is there. The reply proves the object, or a HEAD with what was computed of the parts,
 * or a HEAD and the file read once more. Some servers tell another etag at Complete than they show
 * from then on, which is the one that the mark needs. */
static enum step prove_multipart(
	struct worker *worker, struct multipart *multipart, const struct s3_object *reply)
{
	struct file *file = multipart->file;
	const size_t n = file->plan.n_parts;
	struct s3_object object = *reply;
	enum proof proof = proof_parts(multipart->sums, n, &object, false);
	if (proof != PROOF_YES || s3_knows(worker->run->s3, S3_COMPLETE_TELLS_ETAG) != S3_YES) {
		const struct call_limits limits = run_limits(worker->run);
		struct problem problem = {0};
		if (s3_head_object(worker->s3, &file->target, &limits, &object, &problem) ==
			OUTCOME_OK) {
			s3_learn(worker->run->s3, S3_COMPLETE_TELLS_ETAG,
				strcmp(object.etag, reply->etag) == 0);
			proof = proof_parts(multipart->sums, n, &object, true);
		}
	}
	note_sums(file, multipart);
	file_note_parts(file, multipart->sums, &file->plan, file->claim.upload.checksum);
	if (proof == PROOF_YES)
		return file_done(worker, file, &object, S3ONCE_EVENT_UPLOADED);
	return file_prove_by_head(worker, file);
}

/* Compressed parts have any length, which a server may refuse although it has every one of them. */
static bool may_want_equal_parts(const struct worker *worker, const struct multipart *multipart)
{
	const struct file *file = multipart->file;
	const size_t n = file->plan.n_parts;
	bool are_equal = multipart->sums[n - 1].bytes <= multipart->sums[0].bytes;
	for (size_t i = 1; i + 1 < n; i++)
		are_equal = are_equal && multipart->sums[i].bytes == multipart->sums[0].bytes;
	return file->encoding && !file->encoding->part_bytes && !are_equal &&
	       !s3_is_aws(worker->run->s3);
}

static enum step send_in_equal_parts(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem,
		"the server refuses compressed parts of different lengths: from here on they are "
		"padded to one length");
	if (s3_knows(worker->run->s3, S3_UNEQUAL_PARTS) != S3_NO)
		report_run(&worker->run->report, S3ONCE_EVENT_NOTE, &problem);
	s3_learn(worker->run->s3, S3_UNEQUAL_PARTS, false);
	file->is_planned = false;
	const enum step step = multipart_abort(worker, file);
	return step == STEP_NEXT ? STEP_AGAIN : step;
}

static enum step after_complete(struct worker *worker, struct multipart *multipart,
	const struct s3_condition *condition, enum outcome o, const struct s3_object *reply,
	const struct problem *problem)
{
	struct file *file = multipart->file;
	enum step step;
	switch (o) {
	case OUTCOME_OK:
		file->claim.upload.is_open = false;
		multipart_keeps(file, 0);
		return prove_multipart(worker, multipart, reply);
	case OUTCOME_REFUSED:
		return look_after_refusal(worker, file, condition);
	case OUTCOME_ABSENT: /* what If-Match names was deleted meanwhile */
		if (condition->if_match)
			return look_after_refusal(worker, file, condition);
		break;
	case OUTCOME_NO_UPLOAD:
		return multipart_is_gone(worker, file);
	case OUTCOME_LOST: /* it may have worked; or the upload is gone and this server has no word
			      for it (RGW: 500) */
	case OUTCOME_TRANSIENT:
		file->must_look = true;
		if (++file->restarts <= AMBIGUOUS_MAX)
			return STEP_AGAIN;
		break;
	case OUTCOME_CONFLICT: /* an object of the key was written or deleted since the upload was
				  begun: S3 will never complete it */
		file->must_look = true;
		step = multipart_abort(worker, file);
		if (step != STEP_NEXT || ++file->restarts <= FILE_RESTARTS_MAX)
			return step == STEP_NEXT ? STEP_AGAIN : step;
		break;
	case OUTCOME_INVALID:
		if (may_want_equal_parts(worker, multipart))
			return send_in_equal_parts(worker, file);
		break;
	case OUTCOME_BAD_PART: /* what the server has is listed and compared again */
		if (file->restarts && may_want_equal_parts(worker, multipart))
			return send_in_equal_parts(worker, file);
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

enum step multipart_complete(struct worker *worker, struct multipart *multipart)
{
	struct file *file = multipart->file;
	enum step step = STEP_NEXT;
	if (file_needs_look(worker, file, S3_COMPLETE_CONDITION))
		step = look_at_object(worker, file);
	if (step != STEP_NEXT)
		return step;
	int error = body_unchanged(file->fd, &file->state);
	if (error)
		return file_read_error(worker, file, error);
	const struct sums whole = sums_combine(multipart->sums, file->plan.n_parts);
	const struct s3_complete call = {
		.target = file->target,
		.upload_id = file->claim.upload.id,
		.parts = multipart->done,
		.n_parts = file->plan.n_parts,
		.checksum = file->claim.upload.checksum,
		.whole = &whole,
		.condition = file_condition(worker, file, S3_COMPLETE_CONDITION),
		.limits = run_visible_limits(worker->run),
	};
	struct s3_object reply = {0};
	struct problem problem = {0};
	file->candidate->was_sent = true;
	const enum outcome o = s3_complete_upload(worker->s3, &call, &reply, &problem);
	file_explain_denial(o, &call.condition, &problem);
	return after_complete(worker, multipart, &call.condition, o, &reply, &problem);
}
