/* Step 4 for a content that may be stored under its mark's key with another suffix of compression:
 * the log was compressed since, and the mark that said so is lost, or was never written. */
#include "base/text.h"
#include "scan/key/family.h"
#include "upload/bucket/bucket_evidence.h"
#include "upload/file/multipart.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* The first suffix is that of a log that was not compressed yet. */
static const char *suffix_at(size_t i)
{
	return i ? family_suffixes[i - 1] : "";
}

/* s3once wrote the id of its content after the last byte of a file that had not changed meanwhile.
 */
enum step adopt_by_content(
	struct worker *worker, struct file *file, const char *key, const struct s3_object *object)
{
	const char *suffix = key + strlen(file->candidate->key);
	struct version version = file_version_of(worker, object);
	version.mtime_ns = file->state.mtime_ns;
	enum step step = multipart_abort(worker, file);
	if (step != STEP_NEXT)
		return step;
	snprintf(version.content, sizeof version.content, "%s", file->candidate->content);
	snprintf(version.suffix, sizeof version.suffix, "%s", suffix);
	file->candidate->said_done = true;
	step = file_mark_done(worker, file, &version);
	if (step != STEP_NEXT)
		return step;
	bucket_saw_object(worker->run, key, object->etag);
	const struct report_file about = {file->candidate->path, key, object->size};
	report_file(&worker->run->report, S3ONCE_EVENT_ADOPTED, &about, NULL);
	return STEP_SETTLED;
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
		return strcmp(object.meta.content, file->candidate->content) != 0
			       ? STEP_NEXT
			       : adopt_by_content(worker, file, key, &object);
	/* Of these, the step that looks at the file's own key or writes to it says more. */
	if (o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID)
		return STEP_NEXT;
	return file_outcome(worker, file, o, &problem);
}

/* How many of the suffixes are worth a request. After a take-over whatever was stored may stand
 * there. Where there was no mark, a compressed log may have been stored before it was compressed,
 * if the marks were lost. */
static size_t worth_asking(const struct file *file)
{
	const struct candidate *c = file->candidate;
	if (!*c->content || *file->replaces.etag)
		return 0;
	if (file->must_look)
		return 1 + FAMILY_SUFFIXES;
	return !file->claim.taken_over && *candidate_suffix(c) ? 1 : 0;
}

enum step look_elsewhere(struct worker *worker, struct file *file)
{
	const size_t n = worth_asking(file);
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
