/* Step 4: what S3 holds under a key, judged by content alone. */
#include "upload/body.h"
#include "upload/proof.h"
#include "upload/worker.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sums of each part of a file that was sent in parts of this size. The caller frees them. NEXT,
 * or why not. */
static enum step sum_parts(struct worker *worker, struct file *file, const struct plan *plan,
	unsigned kinds, struct sums **ret)
{
	struct sums *sums = calloc(plan->n_parts, sizeof *sums);
	int error = sums ? 0 : -ENOMEM;
	for (unsigned i = 0; !error && i < plan->n_parts; i++) {
		const struct range range = {
			file->fd, plan_offset(plan, i), plan_bytes(plan, file->state.size, i)};
		error = body_digest(&worker->digest, kinds, &range, worker->buffer,
			worker->buffer_bytes, run_is_over, worker->run, &sums[i]);
	}
	if (!error)
		error = body_unchanged(file->fd, &file->state);
	if (error) {
		free(sums);
		return file_read_error(worker, file, error);
	}
	*ret = sums;
	return STEP_NEXT;
}

/* Which part size an object's etag or checksum was made with: ours by its metadata, else the one
 * this file would get. */
static int plan_of(const struct worker *worker, const struct file *file,
	const struct s3_object *object, unsigned n_parts, struct plan *ret)
{
	if (n_parts == 1) {
		*ret = (struct plan){file->state.size, 1};
		return 0;
	}
	const uint64_t sizes[] = {object->meta.part_bytes, file->plan.part_bytes,
		worker->run->options.part_bytes, 8 << 20, 5 << 20};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (!plan_resume(file->state.size, sizes[i], ret) && ret->n_parts == n_parts)
			return 0;
	return -ENOENT;
}

/* Whether the object is this file. NEXT sets *ret. */
static enum step compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	unsigned parts;
	/* One that combines too, since that of the whole goes into the mark. */
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	*ret = PROOF_NO;
	if (object->size != file->state.size)
		return STEP_NEXT;
	if (!parts) {
		enum step step = file_sum(worker, file, kinds);
		if (step == STEP_NEXT)
			*ret = proof_whole(&file->sums, object, true);
		return step;
	}
	struct plan plan;
	struct sums *sums = NULL;
	*ret = PROOF_MISSING;
	if (plan_of(worker, file, object, parts, &plan))
		return STEP_NEXT;
	enum step step = sum_parts(worker, file, &plan, kinds, &sums);
	if (step == STEP_NEXT) {
		*ret = proof_parts(sums, plan.n_parts, object, true);
		/* A guessed part size that does not fit says nothing of the content. */
		if (*ret == PROOF_NO && plan.part_bytes != object->meta.part_bytes)
			*ret = PROOF_MISSING;
		file->sums = sums_combine(sums, plan.n_parts);
		file->summed = true;
		free(sums);
	}
	return step;
}

/* Whether it is the version that the mark said to be done before it was taken over. */
static bool was_done(const struct file *file, const struct s3_object *object)
{
	const struct mark *before = &file->claim.before;
	return before->has_done && !strcmp(before->done.etag, object->etag) &&
	       before->done.size == object->size;
}

/* An earlier version that was sent for this mark and not marked: mark it done as what it is. Then
 * the file is a changed one like any other. */
static enum step mark_earlier(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	struct version version = {.size = object->size, .mtime_ns = object->meta.mtime_ns};
	if (was_done(file, object))
		version = file->claim.before.done;
	else if (proof_tells_whole(object))
		snprintf(version.sum, sizeof version.sum, "%s:%s",
			checksum_kinds[object->sum.kind].name, object->sum.text);
	snprintf(version.etag, sizeof version.etag, "%s", object->etag);
	/* Rewritten with its size and time put back: another time lets the content decide, now and
	 * in later runs. */
	if (version.size == file->state.size && version.mtime_ns == file->state.mtime_ns)
		version.mtime_ns ^= 1;
	enum step step = parts_abort(worker, file);
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

static enum step adopt(struct worker *worker, struct file *file, const struct s3_object *object)
{
	enum step step = parts_abort(worker, file);
	return step == STEP_NEXT ? file_done(worker, file, object->etag, S3ONCE_EVENT_ADOPTED)
				 : step;
}

static enum step nothing_there(struct file *file)
{
	file->must_look = false;
	file->replaces = (struct version){0};
	return STEP_NEXT;
}

/* It was sent by us and its reply was lost, it is an earlier version (perhaps not sent by us, but
 * adopted), or it is someone else's. */
static enum step judge(struct worker *worker, struct file *file, const struct s3_object *object)
{
	enum proof proof;
	struct problem problem;
	const bool ours = !strcmp(object->meta.table, worker->run->space.settings.table_id);
	enum step step = compare(worker, file, object, &proof);
	if (step != STEP_NEXT)
		return step;
	if (proof == PROOF_YES)
		return adopt(worker, file, object);
	if (*file->replaces.etag && !strcmp(file->replaces.etag, object->etag)) {
		file->must_look = false;
		return STEP_NEXT;
	}
	if ((ours && proof == PROOF_NO) || (*object->etag && was_done(file, object)))
		return mark_earlier(worker, file, object);
	if (proof == PROOF_MISSING)
		problem_set(&problem,
			"an object with this key and size exists, and nothing that the server tells of it "
			"shows whether its content is the same; remove it, or choose another prefix");
	else
		problem_set(&problem,
			"an object with this key and other content exists, and this program did not put it "
			"there; remove it, or choose another prefix");
	return file_fail(worker, file, &problem);
}

static enum step look(struct worker *worker, struct file *file, bool must)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_head_object(worker->s3, &file->target, &limits, &object, &problem);
	switch (o) {
	case OUTCOME_OK:
		return judge(worker, file, &object);
	case OUTCOME_ABSENT:
		return nothing_there(file);
	case OUTCOME_DENIED:
		if (!must)
			return STEP_NEXT;
		problem_prefix(&problem,
			"whether the object is there already cannot be seen: allow s3:GetObject and "
			"s3:ListBucket");
		return file_outcome(worker, file, o, &problem);
	case OUTCOME_INVALID: /* so does HEAD say that credentials have expired */
		if (run_ask_why(worker->run, worker->s3, &problem))
			o = OUTCOME_SETUP;
		else if (file->target.headers && s3_headers_have_key(file->target.headers))
			problem_prefix(&problem,
				"the object that is there is not encrypted with this sse-c-key-file");
		return file_outcome(worker, file, o, &problem);
	default:
		return file_outcome(worker, file, o, &problem);
	}
}

enum step look_at_object(struct worker *worker, struct file *file)
{
	return look(worker, file, true);
}

enum step look_ahead(struct worker *worker, struct file *file)
{
	return look(worker, file, file_needs_look(worker, file, S3_COMPLETE_CONDITION));
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
			"the server refuses the upload as if an object were there, and shows none");
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
		problem_prefix(&problem, "uploaded, but it cannot be proven without s3:GetObject");
		return file_outcome(worker, file, o, &problem);
	}
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		return file_outcome(worker, file, o, &problem);
	enum step step = o == OUTCOME_OK ? compare(worker, file, &object, &proof) : STEP_NEXT;
	if (step != STEP_NEXT)
		return step;
	if (proof == PROOF_YES)
		return file_done(worker, file, object.etag, S3ONCE_EVENT_UPLOADED);
	if (o == OUTCOME_ABSENT)
		problem_set(&problem,
			"uploaded, but the object is not there: it was deleted meanwhile");
	else if (proof == PROOF_NO)
		problem_set(&problem,
			"uploaded, but S3 holds other content: someone else writes this key");
	else
		problem_set(&problem,
			"uploaded, but it cannot be proven: the server tells neither a checksum "
			"nor an MD5 of its content");
	return file_fail(worker, file, &problem);
}
