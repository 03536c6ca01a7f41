#include "upload/file/multipart.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include <stddef.h>
#include <stdlib.h>

struct multipart *multipart_new(struct file *file)
{
	struct multipart *multipart = calloc(1, sizeof *multipart);
	if (!multipart)
		return NULL;
	uv_mutex_init(&multipart->locked.mutex);
	multipart->file = file;
	multipart->done = calloc(file->plan.n_parts, sizeof *multipart->done);
	multipart->sums = calloc(file->plan.n_parts, sizeof *multipart->sums);
	if (file->encoding)
		multipart->read = calloc(file->plan.n_parts, sizeof *multipart->read);
	if (multipart->done && multipart->sums && (multipart->read || !file->encoding))
		return multipart;
	multipart_free(multipart);
	return NULL;
}

void multipart_free(struct multipart *multipart)
{
	uv_mutex_destroy(&multipart->locked.mutex);
	free(multipart->done);
	free(multipart->sums);
	free(multipart->read);
	free(multipart);
}

struct multipart *multipart_of(struct parts *parts)
{
	return (struct multipart *)((char *)parts - offsetof(struct multipart, parts));
}

void multipart_keeps(struct file *file, uint64_t bytes)
{
	struct candidate *c = file->candidate;
	report_kept(file->share.report, (int64_t)(bytes - c->kept_bytes));
	c->kept_bytes = bytes;
}

/* The key has what the suffix was when the upload was begun: the file may be compressed otherwise
 * by now. */
static enum outcome abort_upload(struct worker *worker, struct file *file, struct problem *problem)
{
	struct open_upload *upload = &file->claim.upload;
	struct text object = TEXT(KEY_BYTES_MAX + SUFFIX_MAX);
	text_add(&object, file->candidate->key);
	text_add(&object, upload->suffix);
	if (object.error) {
		problem_set(problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o =
		s3_abort_upload(worker->s3, text_string(&object), upload->id, &limits, problem);
	text_clear(&object);
	if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD)
		return o;
	upload->is_open = false;
	multipart_keeps(file, 0);
	return OUTCOME_OK;
}

enum step multipart_abort(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	if (!file->claim.upload.is_open)
		return STEP_NEXT;
	enum outcome o = abort_upload(worker, file, &problem);
	return o == OUTCOME_OK ? STEP_NEXT : file_outcome(worker, file, o, &problem);
}

void multipart_discard(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	if (file->claim.upload.is_open && abort_upload(worker, file, &problem) != OUTCOME_OK)
		log_info("an upload that nobody will go on with was not aborted: %s", problem.text);
}

enum step multipart_is_gone(struct worker *worker, struct file *file)
{
	struct problem problem;
	multipart_keeps(file, 0);
	file->claim.upload.is_open = false;
	file->must_look = true;
	if (++file->restarts <= FILE_RESTARTS_MAX)
		return STEP_AGAIN;
	problem_set(&problem,
		"its multipart uploads disappear while they are under way: check whether "
		"a lifecycle rule or another program aborts them");
	return file_fail(worker, file, &problem);
}

bool multipart_may_be(const struct worker *worker, const struct encoding *encoding)
{
	return !encoding || encoding->part_bytes ||
	       s3_knows(worker->run->s3, S3_UNEQUAL_PARTS) != S3_NO;
}

bool multipart_part_fits(const struct file *file, unsigned index, uint64_t bytes)
{
	const uint64_t wanted = file->encoding ? file->encoding->part_bytes : 0;
	return !wanted || bytes == wanted || (index + 1 == file->plan.n_parts && bytes < wanted);
}

enum step multipart_misfits(struct worker *worker, struct file *file)
{
	log_info("%s: compressed, a part is larger than the others may be; the file is cut into "
		 "smaller ranges",
		quote(file->candidate->path).text);
	file->range_most = file->plan.part_bytes / 2;
	file->is_planned = false;
	const enum step step = multipart_abort(worker, file);
	return step == STEP_NEXT ? STEP_AGAIN : step;
}
