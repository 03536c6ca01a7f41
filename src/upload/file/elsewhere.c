/* Step 4 for a content that may be stored under its mark's key with another suffix of compression:
 * the log was compressed since, and the mark that said so is lost, or was never written. */
#include "base/quote.h"
#include "base/text.h"
#include "scan/key/family.h"
#include "upload/file/multipart.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* The first suffix is that of a log that was not compressed yet. */
static const char *suffix_at(size_t i)
{
	return i ? family_suffixes[i - 1] : "";
}

enum step adopt_by_content(struct worker *worker, struct file *file, const char *suffix,
	const struct s3_object *object)
{
	const enum step step = multipart_abort(worker, file);
	return step == STEP_NEXT ? file_done_otherwise(worker, file, object, suffix) : step;
}

enum step fail_unproven(struct worker *worker, struct file *file, const char *key)
{
	struct problem problem;
	problem_set(&problem,
		"the object %s says that it has this content, and nothing shows that its bytes are "
		"the ones that were sent; compare it with the file, and remove one of them",
		quote(key).text);
	return file_fail(worker, file, &problem);
}

/* It cannot take the place of what is under another key. */
static void tell_damage(struct worker *worker, const struct file *file, const char *key)
{
	struct problem problem;
	problem_set(&problem,
		"%s: S3 holds other bytes under the key %s than were sent; the upload was damaged on "
		"the way or by the server, and the file is sent again as %s; remove the damaged "
		"object",
		quote(file->candidate->path).text, quote(key).text,
		quote(file->candidate->object).text);
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &problem);
}

/* NEXT: it has other content, or is of no use. */
static enum step judge_elsewhere(
	struct worker *worker, struct file *file, const char *key, const struct s3_object *object)
{
	const struct judged judged = file_judged(worker, file, object, PROOF_MISSING);
	if (strcmp(object->meta.content, file->candidate->content) != 0)
		return STEP_NEXT;
	switch (judge(&judged)) {
	case JUDGED_THE_CONTENT:
		return adopt_by_content(worker, file, key + strlen(file->candidate->key), object);
	case JUDGED_UNPROVEN:
		return fail_unproven(worker, file, key);
	case JUDGED_DAMAGED:
		tell_damage(worker, file, key);
		return STEP_NEXT;
	default:
		return STEP_NEXT;
	}
}

static void tell_blindness(struct run *run)
{
	struct problem problem;
	problem_set(&problem,
		"S3 does not show whether a rotated log is there already with another compression: "
		"if its mark was lost, it is uploaded once more; allow s3:GetObject and "
		"s3:ListBucket");
	if (!atomic_exchange(&run->said_blind, true))
		report_run(&run->report, S3ONCE_EVENT_NOTE, &problem);
}

/* NEXT: the object is not there, or has other content. */
static enum step look_under_key(struct worker *worker, struct file *file, const char *key)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	struct s3_target target = file->target;
	target.key = key;
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_head_object(worker->s3, &target, &limits, &object, &problem);
	if (o == OUTCOME_OK)
		return judge_elsewhere(worker, file, key, &object);
	if (o == OUTCOME_DENIED)
		tell_blindness(worker->run);
	/* Of these, the step that looks at the file's own key or writes to it says more. */
	if (o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID)
		return STEP_NEXT;
	return file_outcome(worker, file, o, &problem);
}

/* Without a mark that says done, what the log was compressed to at any time may stand there: marks
 * may be lost, and a run that was killed may have stored it. Nobody but s3once compresses a piece,
 * so that of one without a mark only its own key matters. */
static bool may_be_elsewhere(const struct file *file)
{
	const struct candidate *c = file->candidate;
	const bool keeps_its_name = c->is_piece && !file->must_look;
	return *c->content && !*file->replaces.etag && !keeps_its_name;
}

enum step look_elsewhere(struct worker *worker, struct file *file)
{
	const size_t n = may_be_elsewhere(file) ? 1 + FAMILY_SUFFIXES : 0;
	enum step step = STEP_NEXT;
	for (size_t i = 0; step == STEP_NEXT && i < n; i++) {
		if (strcmp(suffix_at(i), candidate_suffix(file->candidate)) == 0)
			continue;
		struct text key = TEXT(KEY_BYTES_MAX + SUFFIX_MAX);
		text_add(&key, file->candidate->key);
		text_add(&key, suffix_at(i));
		if (!key.error)
			step = look_under_key(worker, file, text_string(&key));
		text_clear(&key);
	}
	file->looked_elsewhere = step == STEP_NEXT;
	return step;
}
