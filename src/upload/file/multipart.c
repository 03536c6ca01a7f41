/* Step 5 of docs/protocol.md for a large file. It becomes an upload whose parts go into the queue,
 * where any worker takes them. The worker that ends the last part completes the upload.
 *
 * send.c calls multipart_begin() once nothing is known to be in the way, and worker.c calls
 * multipart_send() for each part. An upload that ends without an object stays recorded in the mark,
 * for multipart_resume.c. */
#include "upload/file/multipart.h"
#include "base/log.h"
#include "upload/file/file_done.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/payload.h"
#include "upload/file/worker.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most retries in the same turn: of CreateMultipartUpload after a lost reply, and of
 * CompleteMultipartUpload after an ambiguous answer. */
#define CREATES_LOST_MAX 1
#define AMBIGUOUS_MAX    2

#define BAD_GATEWAY     502
#define GATEWAY_TIMEOUT 504

/* The failure of a part. */
struct part_failure {
	int read_error; /* -errno of reading the file; if it is not 0, the other members are invalid
			 */
	bool has_trailed; /* it was sent with its checksum after it */
	enum outcome outcome;
	struct problem problem;
};

/* An upload while workers send its parts. The file is not changed until the last part has ended. */
struct multipart {
	struct parts parts; /* the parts that the queue has still to hand out */
	struct file *file;  /* owned by the worker that ends the last part */
	/* All in one allocation with the struct. While parts are sent, only the worker that has a
	 * part uses its elements. */
	struct s3_part
		*server_parts;   /* [n_parts]: as the server has them; part_number 0: not yet */
	struct sums *body_sums;  /* [n_parts]: of what is sent */
	struct sums *input_sums; /* [n_parts]: of the content, if the file is encoded; else NULL */
	struct {
		uv_mutex_t mutex;
		bool has_failed;
		struct part_failure failure; /* the first one */
	} locked;
};

static void multipart_free(struct multipart *multipart)
{
	uv_mutex_destroy(&multipart->locked.mutex);
	free(multipart);
}

/* Makes an upload with the parts of file->plan. Returns NULL if there is no memory. */
static struct multipart *multipart_new(struct file *file)
{
	const size_t n = file->plan.n_parts, n_sums = file->encoding ? 2 * n : n;
	struct multipart *multipart = calloc(
		1, sizeof *multipart + n_sums * sizeof(struct sums) + n * sizeof(struct s3_part));
	if (!multipart)
		return NULL;
	uv_mutex_init(&multipart->locked.mutex);
	multipart->file = file;
	multipart->body_sums = (struct sums *)(multipart + 1);
	multipart->input_sums = file->encoding ? multipart->body_sums + n : NULL;
	multipart->server_parts = (struct s3_part *)(multipart->body_sums + n_sums);
	return multipart;
}

/* Returns the upload in which these parts are embedded. */
static struct multipart *multipart_of(struct parts *parts)
{
	return (struct multipart *)((char *)parts - offsetof(struct multipart, parts));
}

/* An upload begins. */

/* Aborts an upload that no mark records, and to which nothing was sent. */
static void discard_empty(
	struct worker *worker, const struct file *file, struct open_upload *upload)
{
	struct problem problem = {0};
	if (s3_abort_upload(worker->s3, file->candidate->object_key, upload->id, &worker->limits,
		    &problem) != OUTCOME_OK)
		log_info("an empty upload that no mark records stays open: %s", problem.text);
	open_upload_clear(upload);
}

/* Begins an upload with file->plan, and records it in the mark. Returns NEXT once it is recorded,
 * or the step to take instead. */
static enum step create_upload(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	struct s3_created created = {0};
	const struct mark_ref ref = file_mark_ref(worker, file);
	const struct s3_create call = {.target = file->target,
		.meta = file_meta(worker, file),
		.checksum = s3_checksum(worker->server),
		.limits = worker->limits};
	enum outcome o = s3_create_upload(worker->s3, &call, &created, &problem);
	/* If the reply cannot be read, S3 may have begun an upload that is recorded nowhere and
	 * costs storage. So the request is repeated only once. After that the file fails if the
	 * server did answer, since it would answer the same later. */
	if (o == OUTCOME_LOST && ++file->restarts <= CREATES_LOST_MAX)
		return STEP_SEND;
	if (o == OUTCOME_LOST && problem.status)
		return file_fail(worker, file, &problem);
	if (o != OUTCOME_OK)
		return file_handle_outcome(worker, file, o, &problem);
	atomic_store(&worker->run->refusals.has_stored, true);
	struct open_upload upload = open_upload_of_file(worker, file);
	upload.id = created.upload_id;
	if (created.lacks_encryption) {
		/* No part is sent to an upload that would store it unencrypted. */
		discard_empty(worker, file, &upload);
		return file_fail(worker, file,
			PROBLEM("not uploaded: the server does not confirm the encryption that was "
				"asked for (sse, sse-c-key-file); leave the option out, or use a "
				"server that encrypts"));
	}
	/* The upload id is recorded in the mark before the first part is sent. Without that, a
	 * crash would leave parts that no run finds again. */
	o = mark_record_upload(&ref, &file->claim, &upload, &problem);
	file->candidate->is_completing = false;
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	/* If only the reply to this write was lost, the mark records an upload that is aborted
	 * here. A later turn or run then finds that the upload is gone, and begins another one. */
	discard_empty(worker, file, &upload);
	if (o != OUTCOME_REFUSED)
		return file_handle_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, "another uploader took over a file of this run");
	return STEP_OVER;
}

/* Begins a new upload with file->plan. A recorded upload, which cannot be resumed, is aborted. The
 * object is checked before, since gigabytes might be sent in vain. Returns NEXT once the upload is
 * recorded in the mark, or the step to take instead. */
static enum step begin_new_upload(struct worker *worker, struct file *file)
{
	enum step step = multipart_abort(worker, file);
	if (step == STEP_NEXT)
		step = look_at_object(worker, file, LOOK_OPTIONAL);
	if (step == STEP_NEXT && s3_checksum(worker->server) == CHECKSUM_SHA256)
		step = multipart_add_content_sha256(worker, file);
	return step == STEP_NEXT ? create_upload(worker, file) : step;
}

enum step multipart_begin(struct worker *worker, struct file *file)
{
	bool resumes;
	enum step step = multipart_choose_plan(worker, file, &resumes);
	if (step != STEP_NEXT || !file->plan.n_parts) /* without parts, send.c sends it whole */
		return step;
	if (!resumes)
		step = begin_new_upload(worker, file);
	if (step != STEP_NEXT)
		return step;
	struct multipart *multipart = multipart_new(file);
	if (!multipart)
		return file_fail(worker, file, PROBLEM("out of memory"));
	if (resumes) /* the parts that the server has are listed */
		step = multipart_resume(worker, file, multipart->server_parts);
	if (step != STEP_NEXT) {
		multipart_free(multipart);
		return step;
	}
	queue_open_parts(worker->run->queue, &multipart->parts, file->plan.n_parts);
	return STEP_PARTS;
}

/* The parts of an upload are sent. */

/* Adds the MD5 to the sums of a part, since the server has returned only an etag, which may be an
 * MD5. For that the part is read again, and has to have the checksums of the sent bytes. Returns 0,
 * -ESTALE if it has others, or another error of reading. */
static int add_md5(struct worker *worker, struct payload *payload, struct sums *sums)
{
	struct sums again;
	int error = range_digest(
		worker, payload->encoder, sums->kinds | DIGEST_MD5, &payload->body.range, &again);
	for (unsigned kind = 0; !error && kind < CHECKSUMS; kind++)
		if (sums->kinds & DIGEST_OF(kind) && !sums_equal(&again, sums, (enum checksum)kind))
			error = -ESTALE;
	if (!error)
		*sums = again;
	return error;
}

/* Checks the server's reply to a part against the sums of what was sent. Returns false, and sets
 * *ret_failure, if the server has other bytes, or if the part cannot be read again. */
static bool check_stored_part(struct worker *worker, struct payload *payload,
	const struct s3_part *part, struct part_failure *ret_failure)
{
	struct sums *sums = &payload->body_sums;
	enum proof proof = proof_part(sums, part);
	/* The reply may show only an etag, which can be compared only with the MD5 of the part. */
	if (proof == PROOF_UNKNOWN && !(sums->kinds & DIGEST_MD5)) {
		ret_failure->read_error = add_md5(worker, payload, sums);
		if (ret_failure->read_error)
			return false;
		proof = proof_part(sums, part);
	}
	/* PROOF_UNKNOWN is enough here: the whole object is proven once it is complete. */
	if (proof != PROOF_NO)
		return true;
	ret_failure->outcome = OUTCOME_BAD_DIGEST;
	return problem_error(&ret_failure->problem, false,
		"S3 stored other bytes of part %u than were sent", part->part_number);
}

/* Notes that the server has part `index` now. */
static void note_stored_part(struct worker *worker, struct multipart *multipart, unsigned index,
	const struct s3_part *part)
{
	struct file *file = multipart->file;
	/* S3 stores what this run sends, so a file that it refuses fails by itself (run.h). */
	atomic_store(&worker->run->refusals.has_stored, true);
	uv_mutex_lock(&multipart->locked.mutex);
	/* A part that multipart_resume() has listed is counted by note_parts_done(). */
	if (!multipart->server_parts[index].part_number)
		file_set_kept_bytes(file, file->candidate->kept_bytes +
						  plan_bytes(&file->plan, file->state.size, index));
	multipart->server_parts[index] = *part;
	uv_mutex_unlock(&multipart->locked.mutex);
}

/* Sends a part. Returns whether the server has it now, which is false if the reply shows other
 * bytes than were sent. If it is false, *ret_failure has the reason. */
static bool put_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct payload *payload, struct part_failure *ret_failure)
{
	const struct file *file = multipart->file;
	/* The body must not be sent if the run is over, or has sent as much as --max-transfer
	 * allows. The part then counts as one whose request was ended by this run. */
	if (!payload_wait_to_send(worker, payload)) {
		ret_failure->outcome = OUTCOME_ABANDONED;
		return false;
	}
	const struct s3_put put = {
		.target = file->target,
		.upload_id = file->claim.upload.id,
		.part_number = index + 1,
		.body = &payload->http,
		.trailing = payload->trailing.kinds ? &payload->trailing : NULL,
		.sums = &payload->body_sums,
		.checksum = file->claim.upload.checksum,
		.limits = worker->limits, /* a part is not visible, so it may outlive the lease */
	};
	struct s3_part part = {0};
	ret_failure->outcome = s3_upload_part(worker->s3, &put, &part, &ret_failure->problem);
	ret_failure->read_error = payload_find_error(worker, file, payload, ret_failure->outcome);
	const bool was_taken = ret_failure->outcome == OUTCOME_OK && !ret_failure->read_error;
	const bool is_stored = was_taken && check_stored_part(worker, payload, &part, ret_failure);
	if (is_stored)
		note_stored_part(worker, multipart, index, &part);
	else
		transfer_undo(&payload->body.transfer);
	return is_stored;
}

/* Whether a part of this many bytes can be sent. In an upload with parts of one length, every part
 * but the last has that length, and the last one has no more. */
static bool has_fitting_length(const struct file *file, unsigned index, uint64_t bytes)
{
	const uint64_t length = file->encoding ? file->encoding->part_bytes : 0; /* 0: any */
	const bool is_last = index + 1 == file->plan.n_parts;
	return !length || bytes == length || (is_last && bytes < length);
}

/* Whether part `index` may be read only once, while it is sent, with its checksum after it. */
static bool may_trail(
	const struct worker *worker, const struct multipart *multipart, unsigned index)
{
	const struct file *file = multipart->file;
	/* A part that the server has is read and compared before it is sent. The length of an
	 * encoded part is known only once it was encoded. */
	if (file->encoding || multipart->server_parts[index].part_number)
		return false;
	/* Without a checksum in the reply, the proof would need an MD5: part_digests(). */
	return s3_supports(worker->server, S3_ECHOES_CHECKSUM) == S3_YES &&
	       s3_may_trail(worker->server, file->claim.upload.checksum);
}

/* If the server may have refused a part because it does not know checksums that trail, turns them
 * off for all further parts, and returns true. The caller then sends this part again. No object is
 * harmed: a part that a server has stored with its frame has another checksum. */
static bool turn_off_refused_trailers(struct worker *worker, const struct part_failure *failure)
{
	if (!failure->has_trailed || failure->read_error)
		return false;
	switch (failure->outcome) {
	case OUTCOME_BAD_DIGEST:
	case OUTCOME_DENIED: /* a policy may allow other bodies only */
	case OUTCOME_INVALID:
	case OUTCOME_SETTING:
	case OUTCOME_UNSUPPORTED:
		s3_set_support(worker->server, S3_TRAILER, S3_NO);
		return true;
	default:
		return false;
	}
}

/* Returns the kinds of digests of part `index` that are needed to send it, or to compare it with
 * the server's values if the server has it. */
static unsigned part_digests(
	const struct worker *worker, const struct multipart *multipart, unsigned index)
{
	const enum checksum kind = multipart->file->claim.upload.checksum;
	const struct s3_part *stored = &multipart->server_parts[index];
	unsigned kinds = s3_wanted_digests(worker->server, kind);
	/* The reply to the first part of a run shows whether MD5 is needed. Parts that begin before
	 * that reply are sent without an MD5, and put_part() adds it if it is needed. */
	if (kind != CHECKSUM_MD5 && s3_supports(worker->server, S3_ECHOES_CHECKSUM) == S3_UNKNOWN)
		kinds &= ~(unsigned)DIGEST_MD5;
	if (stored->part_number) /* the server has it already */
		kinds |= *stored->sum.text ? DIGEST_OF(stored->sum.kind) : DIGEST_MD5;
	return kinds;
}

/* Sends a part that was read, unless the server has exactly these bytes already. Returns whether
 * the server has the part now. If not, *ret_failure has the reason. */
static bool send_read_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct payload *payload, struct part_failure *ret_failure)
{
	/* part_number 0: the server does not have the part */
	const struct s3_part *stored = &multipart->server_parts[index];
	const bool is_stored =
		stored->part_number && proof_part(&payload->body_sums, stored) == PROOF_YES;
	if (!is_stored)
		return put_part(worker, multipart, index, payload, ret_failure);
	file_progress_add_stored(&multipart->file->progress, payload->body.range.bytes);
	return true;
}

/* Reads part `index`, and sends it unless the server has exactly these bytes already. Returns
 * whether the server has it now. If not, *ret_failure has the reason. */
static bool send_part(struct worker *worker, struct multipart *multipart, unsigned index,
	struct part_failure *ret_failure)
{
	struct file *file = multipart->file;
	const enum checksum kind = file->claim.upload.checksum;
	/* The mark needs a checksum of the whole object, so each part needs one that can be
	 * combined. An encoded part needs it both of the bytes sent and of their content. */
	const enum checksum combining = checksum_kinds[kind].combines ? kind : checksum_default();
	const struct payload_request request = {
		.range = file_part_range(file, file->encoding, &file->plan, index),
		.kinds = part_digests(worker, multipart, index) | DIGEST_OF(combining),
		.input_kinds = DIGEST_OF(combining),
		.digests_while_sent = may_trail(worker, multipart, index),
	};
	struct payload payload;
	bool is_stored = false;
	*ret_failure = (struct part_failure){.has_trailed = request.digests_while_sent};
	ret_failure->read_error = payload_read(worker, file, &request, &payload);
	if (!ret_failure->read_error && !has_fitting_length(file, index, payload.body_sums.bytes))
		ret_failure->read_error = -EMSGSIZE; /* it does not fit: continue_after_parts() */
	if (!ret_failure->read_error) {
		if (multipart->input_sums)
			multipart->input_sums[index] = payload.input_sums;
		is_stored = send_read_part(worker, multipart, index, &payload, ret_failure);
		/* Only now are the sums complete: those that trail are known once the part was
		 * sent, and put_part() may add an MD5. */
		multipart->body_sums[index] = payload.body_sums;
	}
	payload_end(worker, &payload);
	return is_stored;
}

/* Sets the checksums of the file from those of the parts that were sent. */
static void set_sums_of_parts(const struct multipart *multipart)
{
	struct file *file = multipart->file;
	const size_t n = file->plan.n_parts;
	const struct sums sent = sums_combine(multipart->body_sums, n);
	file->object_sums = file->encoding ? sent : (struct sums){0};
	if (!file->encoding)
		file->content_sums = sent;
	else if (!file->content_sums.kinds) /* the content was not read as a whole before */
		file->content_sums = sums_combine(multipart->input_sums, n);
	file->sent_part_bytes = file->plan.part_bytes;
	mark_parts_sum_of(multipart->body_sums, n, file->claim.upload.checksum, file->parts_sum);
}

/* Proves the object by the reply to Complete. If that is not enough, a HEAD is compared with the
 * checksums of the parts that were sent. If that is not enough either, prove_by_head() reads the
 * file once more.
 *
 * A HEAD is also needed where Complete may return another etag than the object has from then on,
 * since the mark gets the latter. */
static enum step prove_multipart(
	struct worker *worker, struct multipart *multipart, const struct s3_object *reply)
{
	struct file *file = multipart->file;
	const size_t n = file->plan.n_parts;
	struct s3_object object = *reply; /* the reply to Complete lacks the size; a HEAD has it */
	struct problem problem = {0};
	enum proof proof = proof_parts(multipart->body_sums, n, &object, SIZE_UNKNOWN);
	const bool has_final_etag = s3_supports(worker->server, S3_COMPLETE_RETURNS_ETAG) == S3_YES;
	const bool needs_head = proof != PROOF_YES || !has_final_etag;
	/* If the HEAD fails, the reply to Complete counts. */
	if (needs_head && s3_head_object(worker->s3, &file->target, &worker->limits, &object,
				  &problem) == OUTCOME_OK) {
		s3_set_support(worker->server, S3_COMPLETE_RETURNS_ETAG,
			strcmp(object.etag, reply->etag) == 0 ? S3_YES : S3_NO);
		proof = proof_parts(multipart->body_sums, n, &object, SIZE_KNOWN);
	}
	set_sums_of_parts(multipart); /* for the mark */
	if (proof == PROOF_YES)
		return file_finish(worker, file, &object, S3ONCE_EVENT_UPLOADED);
	return prove_by_head(worker, file);
}

/* Whether the parts have one length, and the last part may be shorter. */
static bool has_equal_parts(const struct multipart *multipart)
{
	const size_t n = multipart->file->plan.n_parts;
	const uint64_t first_bytes = multipart->body_sums[0].bytes;
	for (size_t i = 1; i + 1 < n; i++)
		if (multipart->body_sums[i].bytes != first_bytes)
			return false;
	return multipart->body_sums[n - 1].bytes <= first_bytes;
}

/* Whether the server may have refused the upload because its parts have different lengths, as
 * compressed parts do. */
static bool may_want_equal_parts(const struct worker *worker, const struct multipart *multipart)
{
	return multipart->file->encoding && !s3_is_aws(worker->server) &&
	       !has_equal_parts(multipart);
}

/* Notes that from here on the parts of all files have to have one length, and aborts the upload of
 * this file. Returns NEXT, which begins another upload, or the step to take instead. */
static enum step restart_with_equal_parts(struct worker *worker, struct file *file)
{
	if (s3_supports(worker->server, S3_UNEQUAL_PARTS) != S3_NO)
		report_run(worker->report, S3ONCE_EVENT_NOTE,
			PROBLEM("the server refuses compressed parts of different lengths: "
				"from here on they are padded to one length"));
	s3_set_support(worker->server, S3_UNEQUAL_PARTS, S3_NO);
	return multipart_abort(worker, file);
}

/* Handles the outcome of Complete. An outcome that leaves the switch, since retrying is useless, is
 * handled like that of any write. */
static enum step handle_complete_outcome(struct worker *worker, struct multipart *multipart,
	const struct s3_condition *condition, enum outcome o, const struct s3_object *reply,
	const struct problem *problem)
{
	struct file *file = multipart->file;
	enum step step;
	switch (o) {
	case OUTCOME_OK:
		file->claim.upload.is_open = false;
		file_set_kept_bytes(file, 0);
		return prove_multipart(worker, multipart, reply);
	case OUTCOME_NO_UPLOAD:
		return multipart_handle_gone(worker, file);
	case OUTCOME_LOST:
	case OUTCOME_TRANSIENT:
		/* The upload may have become the object, or may be gone, which RGW answers with
		 * 500. A HEAD will show which. */
		if (++file->restarts <= AMBIGUOUS_MAX)
			return STEP_LOOK;
		break;
	case OUTCOME_CONFLICT:
		/* The conflict may be with our own earlier request. */
		if (file->candidate->is_completing)
			return multipart_handle_gone(worker, file);
		/* An object of this key was written or deleted since the upload was begun, so S3
		 * will never complete it. Another upload is begun, once S3's object was checked. */
		step = multipart_abort(worker, file);
		if (step != STEP_NEXT)
			return step;
		if (++file->restarts <= FILE_RESTARTS_MAX)
			return STEP_LOOK;
		break;
	case OUTCOME_BAD_PART:
		/* SEND lists the parts that the server has, and compares them again. If this turn
		 * was restarted before, and it has not helped, the server may require parts of one
		 * length. */
		if (file->restarts && may_want_equal_parts(worker, multipart))
			return restart_with_equal_parts(worker, file);
		if (++file->restarts <= FILE_RESTARTS_MAX)
			return STEP_SEND;
		break;
	case OUTCOME_INVALID:
		/* This may mean the same: that the parts must have one length. */
		if (may_want_equal_parts(worker, multipart))
			return restart_with_equal_parts(worker, file);
		break;
	default:
		break;
	}
	return look_after_failed_write(worker, file, condition, o, problem);
}

/* Finds out whether the file is still the version that its parts were made of. Returns 0 or
 * -errno. */
static int check_parts_unchanged(struct worker *worker, const struct multipart *multipart)
{
	const struct file *file = multipart->file;
	/* The checksums of the ranges of the file. If it is encoded, body_sums are those of the
	 * encoded bytes. */
	const struct sums *file_sums =
		multipart->input_sums ? multipart->input_sums : multipart->body_sums;
	int error = body_check_unchanged(file->fd, &file->state);
	if (!file->must_reread)
		return error;
	for (unsigned i = 0; !error && i < file->plan.n_parts; i++) {
		const struct range range = file_part_range(file, NULL, &file->plan, i);
		error = payload_confirm(worker, file, &range, &file_sums[i]);
	}
	/* If the content was read before the parts, the metadata and the mark name the checksum of
	 * that reading: multipart_add_content_sha256(), set_sums_of_parts(). */
	const bool was_read_before = file->encoding && file->content_sums.kinds;
	if (!error && was_read_before) {
		const struct range whole = file_whole_range(file, NULL);
		error = payload_confirm(worker, file, &whole, &file->content_sums);
	}
	return error;
}

/* Whether the server may still be at work on a Complete with this outcome. `maybe_applied`: an
 * attempt of it may have had an effect although its reply was lost. */
static bool may_be_completing(enum outcome o, const struct problem *problem, bool maybe_applied)
{
	if (o == OUTCOME_OK)
		return false;
	if (!outcome_is_ambiguous(o)) /* the last attempt is over, but an earlier one may not be */
		return maybe_applied;
	/* If the request timed out, the server may still be at work, also after a gateway. An error
	 * of the server itself has ended the request: RGW answers 500 if the upload is gone. */
	return problem->status == 0 || problem->status == BAD_GATEWAY ||
	       problem->status == GATEWAY_TIMEOUT;
}

/* Completes an upload whose parts are all there, and proves the object. */
static enum step complete_and_prove(struct worker *worker, struct multipart *multipart)
{
	struct file *file = multipart->file;
	enum step step = STEP_NEXT;
	/* A server that may ignore the condition of Complete would replace an existing object. So
	 * it is checked as at the beginning: an object that has the content by now is adopted. */
	if (file_needs_look(worker, file, S3_COMPLETE_CONDITION))
		step = look_at_object(worker, file, LOOK_REQUIRED);
	if (step != STEP_NEXT)
		return step;
	const int error = check_parts_unchanged(worker, multipart);
	if (error)
		return file_handle_read_error(worker, file, error);
	const struct sums whole = sums_combine(multipart->body_sums, file->plan.n_parts);
	struct call_limits limits = worker->visible_limits;
	bool maybe_applied = false;
	limits.maybe_applied = &maybe_applied;
	const struct s3_complete call = {
		.target = file->target,
		.upload_id = file->claim.upload.id,
		.parts = multipart->server_parts,
		.n_parts = file->plan.n_parts,
		.checksum = file->claim.upload.checksum,
		.whole = &whole,
		.condition = file_condition(worker, file, S3_COMPLETE_CONDITION),
		.limits = limits,
	};
	struct s3_object reply = {0};
	struct problem problem = {0};
	file->candidate->was_sent = true;
	const enum outcome o = s3_complete_upload(worker->s3, &call, &reply, &problem);
	if (may_be_completing(o, &problem, maybe_applied))
		file->candidate->is_completing = true;
	return handle_complete_outcome(worker, multipart, &call.condition, o, &reply, &problem);
}

/* Counts the parts that S3 has, as the bytes that it keeps. If they are more than ever before, the
 * file makes progress, and its earlier failures no longer count. No part is under way, so that no
 * other worker uses the upload. */
static void note_parts_done(const struct multipart *multipart)
{
	const struct file *file = multipart->file;
	struct candidate *c = file->candidate;
	unsigned n_done = 0;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < file->plan.n_parts; i++) {
		if (!multipart->server_parts[i].part_number)
			continue;
		n_done++;
		bytes += plan_bytes(&file->plan, file->state.size, i);
	}
	file_set_kept_bytes(multipart->file, bytes);
	if (n_done <= c->parts_done)
		return;
	progress_made(file->progress.report->progress);
	c->parts_done = n_done;
	c->failures = 0;
	c->failing_ns = 0;
}

/* Goes on with the file once no part of the upload is under way. The mutex need not be held, since
 * no other worker uses the upload now. */
static enum step continue_after_parts(struct worker *worker, struct multipart *multipart)
{
	struct file *file = multipart->file;
	const struct part_failure *failure = &multipart->locked.failure;
	note_parts_done(multipart);
	if (run_is_over(worker->run))
		return STEP_OVER;
	if (!multipart->locked.has_failed)
		return complete_and_prove(worker, multipart);
	/* All parts must have one length, and a part was longer: send_part(). Ranges of half the
	 * size are tried next. This ends at the ranges that surely fit: plan_equal_parts(). */
	if (failure->read_error == -EMSGSIZE) {
		log_info("%s: compressed, a range does not fit into a part; smaller ones are cut",
			quote(file->candidate->path).text);
		file->max_range_bytes = file->plan.part_bytes / 2;
		return multipart_abort(worker, file);
	}
	if (failure->read_error)
		return file_handle_read_error(worker, file, failure->read_error);
	if (failure->outcome == OUTCOME_NO_UPLOAD)
		return multipart_handle_gone(worker, file);
	return file_handle_outcome(worker, file, failure->outcome, &failure->problem);
}

enum step multipart_send(
	struct worker *worker, struct parts *parts, unsigned index, struct file **ret_file)
{
	struct multipart *multipart = multipart_of(parts);
	struct part_failure failure;
	file_limit_requests(worker, multipart->file->candidate);
	bool is_stored = send_part(worker, multipart, index, &failure);
	if (!is_stored && turn_off_refused_trailers(worker, &failure))
		is_stored = send_part(worker, multipart, index, &failure);
	*ret_file = NULL;
	if (!is_stored) {
		uv_mutex_lock(&multipart->locked.mutex);
		if (!multipart->locked.has_failed)
			multipart->locked.failure = failure;
		multipart->locked.has_failed = true;
		uv_mutex_unlock(&multipart->locked.mutex);
	}
	const bool was_last =
		queue_end_part(worker->run->queue, parts, is_stored ? PART_STORED : PART_FAILED);
	if (!was_last)
		return STEP_PARTS; /* other workers go on with the upload */
	const enum step step = continue_after_parts(worker, multipart);
	*ret_file = multipart->file;
	multipart_free(multipart);
	return step;
}

struct file *multipart_give_up(struct parts *parts)
{
	struct multipart *multipart = multipart_of(parts);
	struct file *file = multipart->file;
	note_parts_done(multipart);
	multipart_free(multipart);
	return file;
}
