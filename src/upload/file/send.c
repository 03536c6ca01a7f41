/* Step 5 of docs/protocol.md: a file is sent by its plan. A small one is sent here by one
 * PutObject, from reading it to the proof. A large one is left to multipart.c. worker.c calls
 * send_file() once nothing is known to be in the way. */
#include "base/clock.h"
#include "upload/file/file_done.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/multipart.h"
#include "upload/file/payload.h"
#include "upload/file/spool.h"
#include "upload/file/steps.h"
#include "upload/file/worker.h"

/* Reads the whole file, and makes its body. Sets the checksums of the file. Returns NEXT, or the
 * step to take instead. */
static enum step read_whole(struct worker *worker, struct file *file, struct payload *payload)
{
	const struct payload_request request = {.range = file_whole_range(file, file->encoding),
		.kinds = s3_wanted_digests(worker->server, s3_checksum(worker->server)),
		.input_kinds = DIGEST_SHA256}; /* the metadata names it: file_meta() */
	const uint64_t began_ns = clock_boot_ns();
	int error = payload_read(worker, file, &request, payload);
	if (!error && file->must_reread)
		error = payload_confirm(worker, file, &request.range, payload_range_sums(payload));
	worker->read_ns += clock_boot_ns() - began_ns;
	file->content_sums = file->object_sums = (struct sums){0};
	if (error)
		return file_handle_read_error(worker, file, error);
	file->content_sums = *payload_range_sums(payload);
	if (file->encoding)
		file->object_sums = payload->body_sums;
	return STEP_NEXT;
}

/* Makes the body of the file. Returns NEXT if it may be sent now, or the step to take instead.
 *
 * Where the server may ignore conditions, S3's object is checked right before the body is sent. If
 * the body is encoded, the object is also compared before the body is made: comparing needs an
 * encoder, and a worker that holds one must not wait for a second one. The later check then
 * compares no content. */
static enum step prepare_whole(struct worker *worker, struct file *file, struct payload *payload)
{
	enum step step = STEP_NEXT;
	if (file->claim.upload.is_open) /* an upload was begun when the file was larger */
		step = multipart_abort(worker, file);
	if (step == STEP_NEXT && file->encoding && file_needs_look(worker, file, S3_PUT_CONDITION))
		step = look_at_object(worker, file, LOOK_REQUIRED);
	if (step == STEP_NEXT)
		step = read_whole(worker, file, payload);
	if (step != STEP_NEXT)
		return step;
	/* The body must not be sent if the run is over, or has sent as much as --max-transfer
	 * allows. */
	if (!payload_wait_to_send(worker, payload))
		return STEP_OVER;
	if (!file_needs_look(worker, file, S3_PUT_CONDITION))
		return STEP_NEXT;
	return file->encoding ? look_before_write(worker, file)
			      : look_at_object(worker, file, LOOK_REQUIRED);
}

/* Whether the body may have been stored, as far as this outcome tells. A refusal does not count:
 * the claim in the object's metadata then shows whether this run stored it. */
static bool may_be_stored(enum outcome o)
{
	return o == OUTCOME_OK || o == OUTCOME_LOST || o == OUTCOME_TRANSIENT ||
	       o == OUTCOME_THROTTLED || o == OUTCOME_CONFLICT || o == OUTCOME_ABANDONED;
}

/* Sends the body, and proves the object by the reply or by a HEAD. */
static enum step put_whole(struct worker *worker, struct file *file, struct payload *payload)
{
	const struct s3_put put = {
		.target = file->target,
		.body = &payload->http,
		.sums = &payload->body_sums,
		.checksum = s3_checksum(worker->server),
		.condition = file_condition(worker, file, S3_PUT_CONDITION),
		.meta = file_meta(worker, file),
		.limits = worker->visible_limits,
	};
	struct s3_object reply = {0};
	struct problem problem = {0};
	const enum outcome o = s3_put_object(worker->s3, &put, &reply, &problem);
	if (o != OUTCOME_OK)
		transfer_undo(&payload->body.transfer);
	file->candidate->was_sent |= may_be_stored(o);
	payload_end(worker, payload); /* others may use its encoder while this proves the upload */
	const int error = payload_find_error(worker, file, payload, o);
	if (error)
		return file_handle_read_error(worker, file, error);
	/* A refusal of the condition means that S3 accepts such requests, since it checks
	 * conditions last. */
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED)
		atomic_store(&worker->run->refusals.has_stored, true);
	if (o != OUTCOME_OK)
		return look_after_failed_write(worker, file, &put.condition, o, &problem);
	switch (proof_whole(&payload->body_sums, &reply, SIZE_UNKNOWN)) {
	case PROOF_YES:
		file->sent_part_bytes = 0;
		file->parts_sum[0] = '\0';
		return file_finish(worker, file, &reply, S3ONCE_EVENT_UPLOADED);
	/* This body has become the object, in place of the one that was to be replaced. The object
	 * is checked next, and replaced if it is damaged. */
	case PROOF_NO:
		transfer_undo(&payload->body.transfer);
		file->replaced_etag[0] = '\0';
		if (++file->restarts <= FILE_RESTARTS_MAX)
			return STEP_LOOK;
		return file_fail(worker, file,
			PROBLEM("S3 stored other bytes than were sent (its checksum %s differs)",
				*reply.sum.text ? reply.sum.text : reply.etag));
	case PROOF_UNKNOWN:
		break;
	}
	return prove_by_head(worker, file);
}

enum step send_file(struct worker *worker, struct file *file)
{
	struct payload payload = {0};
	if (worker->run->dry)
		return file_settle(worker, file, S3ONCE_EVENT_PLANNED);
	if (file->fd < 0) /* the input of the pipe has not come yet */
		return spool_take(worker, file);
	enum step step = file->plan.n_parts ? multipart_begin(worker, file) : STEP_NEXT;
	/* NEXT: the file is small, or has become so small by compressing that it is sent whole. */
	if (step == STEP_NEXT)
		step = prepare_whole(worker, file, &payload);
	if (step == STEP_NEXT)
		step = put_whole(worker, file, &payload);
	payload_end(worker, &payload);
	return step;
}
