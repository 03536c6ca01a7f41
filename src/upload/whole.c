/* Step 5 for a small file: one PutObject. */
#include "base/clock.h"
#include "upload/proof.h"
#include "upload/worker.h"
#include <errno.h>

static unsigned wanted_digests(const struct worker *worker)
{
	return s3_wanted_digests(worker->run->s3, s3_checksum(worker->run->s3));
}

/* As file_digest(), of the whole file, which is in the buffer afterwards. */
static int read_into_buffer(struct worker *worker, struct file *file)
{
	struct reader *reader = &worker->reader;
	for (uint64_t got = 0; got < file->state.size;) {
		const struct range rest = {file->fd, got, file->state.size - got};
		long n = body_read(&rest, (char *)reader->buffer + got, rest.bytes);
		if (n < 0)
			return (int)n;
		got += (uint64_t)n;
	}
	int error = digest_restart(&reader->digest, wanted_digests(worker));
	if (error)
		return error;
	digest_update(&reader->digest, reader->buffer, file->state.size);
	digest_finish(&reader->digest, &file->sums);
	return body_unchanged(file->fd, &file->state);
}

/* Reads the file once: its sums, and its bytes too if they fit the buffer. */
static int read_whole(struct worker *worker, struct file *file, struct body *ret_stream,
	struct http_body *ret_body)
{
	const struct range range = {file->fd, 0, file->state.size};
	/* Under a limit of bandwidth a larger one takes its bytes as they leave. */
	const bool fits = file->state.size <= worker->reader.buffer_bytes &&
			  (!file->share.bandwidth || file->state.size <= BANDWIDTH_WHOLE_BYTES);
	int error = fits ? read_into_buffer(worker, file)
			 : file_digest(worker, file, wanted_digests(worker), &range, &file->sums);
	file->summed = !error;
	*ret_stream = body_of(&range, &file->state, &file->share);
	*ret_body = fits ? body_memory(ret_stream, worker->reader.buffer) : body_stream(ret_stream);
	return error;
}

/* The reply proves it, or a HEAD does. */
static enum step prove(struct worker *worker, struct file *file, const struct s3_object *reply)
{
	struct problem problem;
	switch (proof_whole(&file->sums, reply, false)) {
	case PROOF_YES:
		file_note_whole(file);
		return file_done(worker, file, reply, S3ONCE_EVENT_UPLOADED);
	case PROOF_NO: /* what is there now is looked at, and replaced if it is damaged */
		file->must_look = true;
		file->replaces = (struct version){0};
		if (++file->restarts <= FILE_RESTARTS_MAX)
			return STEP_AGAIN;
		problem_set(&problem,
			"S3 stored other bytes than were sent (its checksum %s%s differs)",
			reply->sum.text, *reply->sum.text ? "" : reply->etag);
		return file_fail(worker, file, &problem);
	case PROOF_MISSING:
		break;
	}
	return file_prove_by_head(worker, file);
}

static enum step after_put(struct worker *worker, struct file *file, const struct s3_put *put,
	enum outcome o, const struct s3_object *reply, const struct problem *problem)
{
	const bool conditional = put->condition.if_none_match || put->condition.if_match;
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED) /* S3 looks at conditions last */
		refusals_stored(&worker->run->refusals);
	switch (o) {
	case OUTCOME_OK:
		return prove(worker, file, reply);
	case OUTCOME_REFUSED: /* it exists, perhaps by a request of ours whose reply was lost */
		return look_after_refusal(worker, file, &put->condition);
	case OUTCOME_ABSENT: /* what If-Match names was deleted meanwhile */
		if (put->condition.if_match)
			return look_after_refusal(worker, file, &put->condition);
		break;
	case OUTCOME_UNSUPPORTED:
		if (conditional && !file->unconditional) {
			file->unconditional = true; /* looked at right before instead */
			return STEP_AGAIN;
		}
		break;
	default:
		break;
	}
	return file_outcome(worker, file, o, problem);
}

enum step send_whole(struct worker *worker, struct file *file)
{
	struct body stream = {0};
	struct http_body body;
	const uint64_t began_ns = clock_boot_ns();
	int error = read_whole(worker, file, &stream, &body);
	worker->read_ns += clock_boot_ns() - began_ns;
	if (error)
		return file_read_error(worker, file, error);
	if (!run_may_send(worker->run, file->state.size) ||
		(body.memory && !bandwidth_take_all(file->share.bandwidth, file->state.size,
					&file->share.user)))
		return STEP_OVER;
	if (file_needs_look(worker, file, S3_PUT_CONDITION)) {
		enum step step = look_at_object(worker, file);
		if (step != STEP_NEXT)
			return step;
	}
	struct s3_put put = {
		.target = file->target,
		.body = &body,
		.sums = &file->sums,
		.checksum = s3_checksum(worker->run->s3),
		.condition = file_condition(worker, file, S3_PUT_CONDITION),
		.meta = file_meta(worker, file),
		.limits = run_visible_limits(worker->run),
	};
	struct s3_object reply = {0};
	struct problem problem = {0};
	const enum outcome o = s3_put_object(worker->s3, &put, &reply, &problem);
	if (o != OUTCOME_OK)
		transfer_undo(&stream.transfer);
	if (stream.error)
		return file_read_error(worker, file, stream.error);
	return after_put(worker, file, &put, o, &reply, &problem);
}
