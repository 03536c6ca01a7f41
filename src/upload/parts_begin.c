/* Step 5 for a large file, its beginning: a multipart upload, recorded in the mark before its first
 * part, resumed by any run. */
#include "base/log.h"
#include "base/quote.h"
#include "upload/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREATES_LOST_MAX 1 /* that are begun anew at once */

static struct upload *upload_new(struct file *file)
{
	struct upload *upload = calloc(1, sizeof *upload);
	if (!upload)
		return NULL;
	pthread_mutex_init(&upload->locked.mutex, NULL);
	upload->file = file;
	upload->done = calloc(file->plan.n_parts, sizeof *upload->done);
	upload->sums = calloc(file->plan.n_parts, sizeof *upload->sums);
	if (upload->done && upload->sums)
		return upload;
	upload_free(upload);
	return NULL;
}

static enum step out_of_memory(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem, "out of memory");
	return file_fail(worker, file, &problem);
}

enum step parts_abort(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	if (!file->upload_is_open)
		return STEP_NEXT;
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_abort_upload(
		worker->s3, file->candidate->key, file->upload_id, &limits, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD)
		return file_outcome(worker, file, o, &problem);
	file->upload_is_open = false;
	upload_keeps(file, 0);
	return STEP_NEXT;
}

enum step upload_is_gone(struct worker *worker, struct file *file)
{
	struct problem problem;
	upload_keeps(file, 0);
	file->upload_is_open = false;
	file->must_look = true;
	if (++file->restarts <= FILE_RESTARTS_MAX)
		return STEP_AGAIN;
	problem_set(&problem,
		"its multipart uploads disappear while they are under way: check whether "
		"a lifecycle rule or another program aborts them");
	return file_fail(worker, file, &problem);
}

/* Whether the recorded upload was begun for this very version of the file, with this very key: with
 * another the server refuses parts, or completes what the caller cannot read. */
static bool fits(const struct file *file, struct plan *ret)
{
	return file->upload_is_open && file->upload_checksum != CHECKSUMS &&
	       file->upload_size == file->state.size &&
	       file->upload_mtime_ns == file->state.mtime_ns &&
	       !strcmp(file->upload_key, s3_headers_key_md5(file->target.headers)) &&
	       !plan_resume(file->state.size, file->upload_part_bytes, ret);
}

static int note_part(void *arg, const struct s3_part *part)
{
	struct upload *upload = arg;
	if (part->part_number >= 1 && part->part_number <= upload->file->plan.n_parts)
		upload->done[part->part_number - 1] = *part;
	return 0;
}

/* Whether the server answered ListParts with something else than a list: it will the next time,
 * too.
 */
static bool cannot_list(enum outcome o, const struct problem *problem)
{
	return o == OUTCOME_UNSUPPORTED || o == OUTCOME_INVALID ||
	       ((o == OUTCOME_LOST || o == OUTCOME_TRANSIENT) && problem->status / 100 == 2);
}

/* Nobody can say which parts are there, so they are of no use: the recorded upload is aborted, as
 * far as the server knows how to, and another one begun. */
static enum step give_up_parts(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem said, second = {0};
	const struct call_limits limits = run_limits(worker->run);
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(worker, file, problem);
	problem_set(&said,
		"%s: the server cannot list the parts that were uploaded before (%.300s), so the "
		"upload begins anew",
		quote(file->candidate->path).text, problem->text);
	report_run(&worker->run->report, S3ONCE_EVENT_WARNING, &said);
	enum outcome o = s3_abort_upload(
		worker->s3, file->candidate->key, file->upload_id, &limits, &second);
	if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD && !cannot_list(o, &second))
		return file_outcome(worker, file, o, &second);
	file->upload_is_open = false;
	file->must_look = true;
	return STEP_AGAIN;
}

/* The parts the server has already are compared with the file, one by one, as they come up. */
static enum step resume(struct worker *worker, struct file *file, struct upload *upload)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	enum outcome o = s3_list_parts(
		worker->s3, &file->target, file->upload_id, &limits, note_part, upload, &problem);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	if (o == OUTCOME_NO_UPLOAD)
		return upload_is_gone(worker, file);
	return cannot_list(o, &problem) ? give_up_parts(worker, file, &problem)
					: file_outcome(worker, file, o, &problem);
}

/* The id is in the mark before the first part is sent: else a crash would leave parts that no run
 * finds again. */
static enum step record(struct worker *worker, struct file *file, char *upload_id)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	const struct mark_ref ref = file_mark_ref(worker, file);
	const struct upload_record entry = {
		.upload_id = upload_id,
		.before = file->upload_id,
		.checksum = s3_checksum(worker->run->s3),
		.key_md5 = s3_headers_key_md5(file->target.headers),
		.part_bytes = file->plan.part_bytes,
		.size = file->state.size,
		.mtime_ns = file->state.mtime_ns,
	};
	enum outcome o = mark_record_upload(&ref, &file->claim, &entry, &problem);
	if (o == OUTCOME_OK) {
		free(file->upload_id);
		file->upload_id = upload_id;
		file->upload_is_open = true;
		file->upload_checksum = entry.checksum;
		snprintf(file->upload_key, sizeof file->upload_key, "%s", entry.key_md5);
		file->upload_size = entry.size;
		file->upload_mtime_ns = entry.mtime_ns;
		file->upload_part_bytes = entry.part_bytes;
		return STEP_NEXT;
	}
	/* Should the record arrive yet, the upload it names is one that vanished. */
	struct problem second = {0};
	if (s3_abort_upload(worker->s3, file->candidate->key, upload_id, &limits, &second) !=
		OUTCOME_OK)
		log_info("an upload that could not be recorded was not aborted: %s", second.text);
	free(upload_id);
	if (o != OUTCOME_REFUSED)
		return file_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, "another uploader took over a file of this run");
	return STEP_OVER;
}

/* Not one part is sent to where it would lie in clear. Takes the id. */
static enum step not_encrypted(struct worker *worker, struct file *file, char *upload_id)
{
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	if (s3_abort_upload(worker->s3, file->candidate->key, upload_id, &limits, &problem) !=
		OUTCOME_OK)
		log_info("an upload to which nothing was sent stays open: %s", problem.text);
	free(upload_id);
	problem_set(&problem,
		"not uploaded: the server does not confirm the encryption that was asked for (sse, "
		"sse-c-key-file); leave the option out, or use a server that encrypts");
	return file_fail(worker, file, &problem);
}

static enum step create(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	struct s3_created created = {0};
	enum step step = parts_abort(worker, file);
	if (step == STEP_NEXT) /* before gigabytes are sent: is something there already? */
		step = look_ahead(worker, file);
	if (step != STEP_NEXT)
		return step;
	const struct s3_create call = {.target = file->target,
		.meta = file_meta(worker, file),
		.checksum = s3_checksum(worker->run->s3),
		.limits = run_limits(worker->run)};
	enum outcome o = s3_create_upload(worker->s3, &call, &created, &problem);
	if (o == OUTCOME_OK) {
		refusals_stored(&worker->run->refusals);
		return created.lacks_encryption ? not_encrypted(worker, file, created.upload_id)
						: record(worker, file, created.upload_id);
	}
	/* No reply that can be read: an upload nobody knows of costs storage, so that few are
	 * risked. A server that has answered so twice does not answer otherwise later. */
	if (o == OUTCOME_LOST && ++file->restarts <= CREATES_LOST_MAX)
		return STEP_AGAIN;
	return o == OUTCOME_LOST && problem.status ? file_fail(worker, file, &problem)
						   : file_outcome(worker, file, o, &problem);
}

enum step parts_begin(struct worker *worker, struct file *file)
{
	struct plan plan;
	enum step step = STEP_NEXT;
	const bool resumes = fits(file, &plan);
	if (resumes)
		file->plan = plan;
	else
		step = create(worker, file);
	if (step != STEP_NEXT)
		return step;
	struct upload *upload = upload_new(file);
	if (!upload)
		return out_of_memory(worker, file);
	if (resumes)
		step = resume(worker, file, upload);
	if (step != STEP_NEXT) {
		upload_free(upload);
		return step;
	}
	queue_open_parts(worker->run->queue, &upload->parts, file->plan.n_parts);
	return STEP_PARTS;
}
