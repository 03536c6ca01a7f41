/* Step 4: what S3 holds under a key, judged by content alone. */
#include "base/quote.h"
#include "upload/file/multipart.h"
#include "upload/file/stored_look.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* An earlier version that was sent for this mark and not marked: mark it done as what it is. Then
 * the file is a changed one like any other. */
static enum step mark_earlier(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	struct version version = file_version_of(worker, object);
	if (*file->candidate->content)
		memcpy(version.content, object->meta.content, sizeof version.content);
	snprintf(version.suffix, sizeof version.suffix, "%s", candidate_suffix(file->candidate));
	if (judge_is_done_version(&file->claim, object))
		version = file->claim.before.done;
	/* Rewritten with its size and time put back: the content decides, now and in later runs. */
	if (version.size == file->state.size && version.mtime_ns == file->state.mtime_ns)
		version.mtime_is_shared = true;
	enum step step = multipart_abort(worker, file);
	if (step == STEP_NEXT)
		step = file_mark_done(worker, file, &version);
	if (step != STEP_NEXT)
		return step;
	mark_clear(&file->seen);
	file->seen = (struct mark){.state = MARK_DONE, .has_done = true, .done = version};
	snprintf(file->seen.session, sizeof file->seen.session, "%s",
		session_id(worker->run->session));
	memcpy(file->seen.claim, file->claim.id, sizeof file->seen.claim);
	claim_clear(&file->claim);
	file->claimed = false;
	return STEP_AGAIN;
}

static enum step nothing_there(struct file *file)
{
	file->must_look = false;
	file->replaces = (struct version){0};
	return STEP_NEXT;
}

/* It may have been sent by this very run, and the reply was lost. */
static enum step adopt_object(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	const struct judged judged = file_judged(worker, file, object, PROOF_YES);
	const bool is_sent =
		judge_is_ours(&judged) &&
		(file->candidate->was_sent || strcmp(object->meta.claim, file->claim.id) == 0);
	enum step step = multipart_abort(worker, file);
	file->candidate->was_sent = is_sent;
	return step == STEP_NEXT ? file_done(worker, file, object,
					   is_sent ? S3ONCE_EVENT_UPLOADED : S3ONCE_EVENT_ADOPTED)
				 : step;
}

/* Other bytes were stored than were sent: by no means an earlier version. The file is sent again in
 * place of exactly what is there. */
static enum step object_damaged(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	struct problem problem;
	if (++file->damages > FILE_DAMAGES_MAX) {
		problem_set(&problem,
			"S3 holds other bytes than were sent, although the file was sent %u "
			"times: the network, a proxy or the server damages it; the object is not "
			"a version of this file",
			FILE_DAMAGES_MAX);
		return file_fail(worker, file, &problem);
	}
	problem_set(&problem,
		"%s: S3 holds other bytes than were sent; the upload was damaged on the "
		"way or by the "
		"server, and the file is sent again in its place",
		quote(file->candidate->path).text);
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &problem);
	file->replaces = (struct version){.size = object->size, .mtime_ns = object->meta.mtime_ns};
	snprintf(file->replaces.etag, sizeof file->replaces.etag, "%s", object->etag);
	file->must_look = false;
	return STEP_AGAIN;
}

static enum step conflict(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof proof)
{
	struct problem problem;
	const bool is_of_these_marks =
		strcmp(object->meta.table, worker->run->space.settings.table_id) == 0;
	const bool is_copy =
		object->meta.written_for == S3_WRITTEN_FOR_ANOTHER && is_of_these_marks;
	problem_set(&problem,
		"an object with this key and %s exists, and %s; remove it, or choose "
		"another prefix",
		proof == PROOF_MISSING ? "size" : "other content",
		proof == PROOF_MISSING && proof_etag_parts(object->etag) > 1
			? "it was uploaded in parts of a size that s3once cannot find out, so that "
			  "its content cannot be compared; name that size with --part-size, or "
			  "make sure that it is this file"
		: proof == PROOF_MISSING
			? "the server returns nothing that shows whether its content is the same"
		: is_copy ? "it is a copy of an object that s3once uploaded under another key"
		: *object->meta.table && !is_of_these_marks
			? "another s3once, whose marks are not these, uploaded it"
			: "s3once did not upload it");
	return file_fail(worker, file, &problem);
}

/* PROOF is NO or MISSING if the object is not the file's. */
static enum step judge_proof(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof proof)
{
	const struct judged judged = file_judged(worker, file, object, proof);
	switch (judge(&judged)) {
	case JUDGED_THE_FILE:
		return adopt_object(worker, file, object);
	case JUDGED_THE_CONTENT:
		return adopt_by_content(worker, file, candidate_suffix(file->candidate), object);
	case JUDGED_REPLACED:
		file->must_look = false;
		return STEP_NEXT;
	case JUDGED_DAMAGED:
		return object_damaged(worker, file, object);
	case JUDGED_EARLIER:
		return mark_earlier(worker, file, object);
	case JUDGED_UNPROVEN:
		return fail_unproven(worker, file, file->candidate->object);
	case JUDGED_FOREIGN:
		break;
	}
	return conflict(worker, file, object, proof);
}

static enum step judge_existing(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	enum proof proof;
	enum step step = file_compare(worker, file, object, &proof);
	return step == STEP_NEXT ? judge_proof(worker, file, object, proof) : step;
}

static enum step leave_to_next_look(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	file->must_look = !*file->replaces.etag || strcmp(file->replaces.etag, object->etag) != 0;
	return file->must_look ? STEP_AGAIN : STEP_NEXT;
}

/* HEAD was answered 400, which is how it says that credentials have expired, that the object's key
 * (SSE-C) is another, or whatever a server does not like: another request is told why. */
static enum step refused_head(
	struct worker *worker, struct file *file, bool must, struct problem *problem)
{
	struct problem why = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_ask_object(worker->s3, &file->target, &limits, &why);
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT && *why.code)
		*problem = why;
	else
		o = s3_ask_why(worker->s3, &limits, problem) ? OUTCOME_SETUP : OUTCOME_INVALID;
	if (o == OUTCOME_INVALID && file->target.headers &&
		s3_headers_have_key(file->target.headers))
		problem_prefix(
			problem, "the existing object is not encrypted with this sse-c-key-file");
	else if (o == OUTCOME_INVALID && !must) /* then the upload itself is told why */
		return STEP_NEXT;
	return file_outcome(worker, file, o, problem);
}

typedef enum step shown_fn(
	struct worker *worker, struct file *file, const struct s3_object *object);

static enum step head_object(struct worker *worker, struct file *file, bool must, shown_fn *then)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_head_object(worker->s3, &file->target, &limits, &object, &problem);
	switch (o) {
	case OUTCOME_OK:
		return then(worker, file, &object);
	case OUTCOME_ABSENT:
		return nothing_there(file);
	case OUTCOME_DENIED:
		if (!must)
			return STEP_NEXT;
		problem_prefix(&problem,
			"cannot find out whether the object exists already: allow s3:GetObject "
			"and s3:ListBucket");
		return file_outcome(worker, file, o, &problem);
	case OUTCOME_INVALID:
		return refused_head(worker, file, must, &problem);
	default:
		return file_outcome(worker, file, o, &problem);
	}
}

enum step look_at_object(struct worker *worker, struct file *file)
{
	return head_object(worker, file, true, judge_existing);
}

enum step look_once_more(struct worker *worker, struct file *file)
{
	return head_object(worker, file, true, leave_to_next_look);
}

enum step look_ahead(struct worker *worker, struct file *file)
{
	return head_object(
		worker, file, file_needs_look(worker, file, S3_COMPLETE_CONDITION), judge_existing);
}

enum step look_after_refusal(
	struct worker *worker, struct file *file, const struct s3_condition *condition)
{
	enum step step = look_at_object(worker, file);
	if (step != STEP_NEXT)
		return step;
	/* Refused, although nothing is there or exactly what we named: not the condition that we
	 * meant (some servers want an etag without its quotes). Or it was deleted in between: then
	 * the look costs one request. */
	if (condition->if_match && *file->replaces.etag)
		s3_learn(worker->run->s3, S3_IF_MATCH, false);
	if (++file->restarts > FILE_RESTARTS_MAX) {
		struct problem problem;
		problem_set(&problem,
			"the server refuses the upload as if the object existed, but HEAD finds "
			"none");
		return file_fail(worker, file, &problem);
	}
	return STEP_AGAIN;
}

enum step file_prove_by_head(struct worker *worker, struct file *file)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum proof proof = PROOF_MISSING;
	enum outcome o = s3_head_object(worker->s3, &file->target, &limits, &object, &problem);
	if (o == OUTCOME_DENIED) {
		problem_prefix(
			&problem, "uploaded, but it cannot be verified without s3:GetObject");
		return file_outcome(worker, file, o, &problem);
	}
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		return file_outcome(worker, file, o, &problem);
	enum step step = o == OUTCOME_OK ? file_compare(worker, file, &object, &proof) : STEP_NEXT;
	if (step != STEP_NEXT)
		return step;
	if (proof == PROOF_YES)
		return file_done(worker, file, &object, S3ONCE_EVENT_UPLOADED);
	if (proof == PROOF_NO) {
		file->replaces = (struct version){0}; /* what was to be replaced is */
		return judge_proof(worker, file, &object, proof);
	}
	if (o == OUTCOME_ABSENT)
		return stored_nowhere(worker, file);
	problem_set(&problem,
		"uploaded, but it cannot be verified: the server returns neither a checksum nor an "
		"MD5 of its content");
	return file_fail(worker, file, &problem);
}
