#include "base/clock.h"
#include "scan/open.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/file_encoding.h"
#include "upload/file/piece.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A key that was made from the modification time or the content belongs to one version of the file,
 * and so does the id of what a rotated file contains. */
static bool is_another_version(const struct worker *worker, const struct file *file)
{
	const struct key_template *template = worker->run->files.key_template;
	const struct candidate *found = file->candidate;
	return (*found->content || (template && key_template_is_of_version(template))) &&
	       (file->state.size != found->size || file->state.mtime_ns != found->mtime_ns);
}

/* A rotated file may have another name since it was found, and the name may be another file's. */
static int open_rotated(const struct scan *scan, const struct candidate *c, struct file_state *ret)
{
	const struct file_state found = {
		.size = c->size, .mtime_ns = c->mtime_ns, .dev = c->dev, .ino = c->ino};
	int fd = scan_open_file(scan, c->source, c->relative, ret);
	if (fd >= 0 && (ret->dev != found.dev || ret->ino != found.ino)) {
		close(fd);
		fd = -ENOENT;
	}
	if (fd == -ENOENT)
		fd = scan_open_moved(scan, c->source, c->relative, &found, ret);
	return fd;
}

/* A copy of it, since the log goes on growing. */
static int open_piece(const struct scan *scan, const struct candidate *c, struct file_state *ret,
	struct problem *ret_problem)
{
	struct scan_entry found = {.source = c->source,
		.relative = c->relative,
		.size = c->size,
		.mtime_ns = c->mtime_ns,
		.dev = c->dev,
		.ino = c->ino,
		.is_piece = true,
		.offset = c->offset};
	memcpy(found.content_id, c->content, sizeof found.content_id);
	return scan_open_piece(scan, &found, ret, ret_problem);
}

/* Opens what the candidate stands for: a descriptor or -errno, perhaps with a sentence. */
static int open_candidate(const struct scan *scan, const struct candidate *c,
	struct file_state *ret, struct problem *ret_problem)
{
	if (c->is_piece)
		return open_piece(scan, c, ret, ret_problem);
	return c->is_rotated ? open_rotated(scan, c, ret)
			     : scan_open_file(scan, c->source, c->relative, ret);
}

/* Another uploader may have uploaded and removed the file since it was found. That is not an error.
 */
static enum step gone(struct worker *worker, struct file *file)
{
	const struct asked asked = candidate_asks(file->candidate);
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	mark_clear(&file->seen);
	if (!file->claimed && !worker->run->options.reupload &&
		mark_get(&ref, &file->seen, &problem) == OUTCOME_OK && !file->seen.has_newer &&
		mark_says(&file->seen, &asked) == SAYS_DONE)
		return bucket_is_believed(worker->run, worker->marks)
			       ? file_settle_done(worker, file)
			       : STEP_OVER;
	if (!file->candidate->is_rotated)
		return file_read_error(worker, file, -ENOENT);
	problem_set(&problem,
		"was compressed or deleted before it could be sent; the next run takes what "
		"is there then");
	return file_fail(worker, file, &problem);
}

enum step file_open(struct worker *worker, struct file *file)
{
	struct candidate *c = file->candidate;
	const struct scan *scan = worker->run->files.scan;
	struct problem problem = {.text = ""};
	if (file->fd >= 0)
		close(file->fd);
	file->summed = file->is_planned = false;
	file->stored = (struct sums){0};
	file->opened_ns = clock_wall_ns();
	file->fd = open_candidate(scan, c, &file->state, &problem);
	if (file->fd < 0) {
		int error = -file->fd;
		file->fd = -1;
		if (*problem.text)
			return file_fail(worker, file, &problem);
		return error == ENOENT ? gone(worker, file) : file_read_error(worker, file, -error);
	}
	file->opened_ctime_ns = file->state.ctime_ns;
	if (c->is_rotated) /* a rename while it is sent changes it */
		file->state.ctime_ns = 0;
	if (!c->is_piece && scan_is_young(worker->run->files.scan,
				    &file->state)) /* written to since the scan */
		return file_settle(worker, file, S3ONCE_EVENT_YOUNG);
	enum s3once_event_type event;
	if (run_leaves_out(
		    worker->run, file->state.size, &event)) /* it is another since the scan */
		return file_settle(worker, file, event);
	file->has_lost_key = is_another_version(worker, file);
	if (file->has_lost_key) {
		problem_set(&problem,
			"changed while the run was under way, so that it is no longer the file "
			"that its key and its mark are about; the next run takes it, and --min-age "
			"leaves out files that were modified a moment ago");
		return file_fail(worker, file, &problem);
	}
	if (!file->state.size && pread(file->fd, &(char){0}, 1, 0) > 0 &&
		!body_unchanged(file->fd, &file->state)) {
		problem_set(&problem,
			"has size 0 but is not empty, as files of the kernel do (/proc, /sys): "
			"copy it to a file, or exclude it");
		return file_fail(worker, file, &problem);
	}
	int error;
	const enum step step = file_choose_encoding(worker, file, &error);
	if (step != STEP_NEXT)
		return step;
	if (error)
		return file_read_error(worker, file, error);
	if (!plan_upload(file->state.size, worker->run->options.part_bytes, &file->plan))
		return STEP_NEXT;
	problem_set(&problem, "larger than the largest object S3 can hold; split it or exclude it");
	return file_fail(worker, file, &problem);
}

struct range file_range(const struct file *file, const struct encoding *encoding,
	const struct plan *plan, unsigned index)
{
	struct range range = {.fd = file->fd, .bytes = file->state.size, .encoding = encoding};
	if (!plan)
		return range;
	range.offset = plan_offset(plan, index);
	range.bytes = plan_bytes(plan, file->state.size, index);
	if (encoding && index + 1 < plan->n_parts)
		range.least_bytes = encoding->part_bytes ? encoding->part_bytes : PART_BYTES_MIN;
	return range;
}

int file_digest(struct worker *worker, const struct file *file, unsigned kinds,
	const struct range *range, struct sums *ret)
{
	int error = range->encoding ? encoded_digest(worker, kinds, range, ret)
				    : body_digest(&worker->reader, kinds, range, ret);
	return error ? error : body_unchanged(file->fd, &file->state);
}

enum step file_sum(struct worker *worker, struct file *file, unsigned kinds)
{
	if (file->summed && (file->sums.kinds & kinds) == kinds)
		return STEP_NEXT;
	const struct range range = file_range(file, NULL, NULL, 0);
	int error = file_digest(worker, file, kinds, &range, &file->sums);
	file->summed = !error;
	return error ? file_read_error(worker, file, error) : STEP_NEXT;
}

enum step file_sum_parts(
	struct worker *worker, struct file *file, const struct sending *how, struct sums **ret)
{
	struct sums *sums = calloc(how->plan->n_parts, sizeof *sums);
	int error = sums ? 0 : -ENOMEM;
	for (unsigned i = 0; !error && i < how->plan->n_parts; i++) {
		const struct range range = file_range(file, how->encoding, how->plan, i);
		error = file_digest(worker, file, how->kinds, &range, &sums[i]);
	}
	if (error) {
		free(sums);
		return file_read_error(worker, file, error);
	}
	*ret = sums;
	return STEP_NEXT;
}

/* The file changed while it was read: opens what is there now, says so, gives up after too many.
 * AGAIN or SETTLED. */
static enum step changed(struct worker *worker, struct file *file)
{
	struct problem problem;
	const struct report_file about = file_about(file);
	if (++file->restarts > FILE_RESTARTS_MAX) {
		problem_set(&problem,
			"changes faster than it can be read; --min-age skips files that were "
			"modified a moment ago");
		return file_fail(worker, file, &problem);
	}
	problem_set(&problem, "changed while it was read, starting again with what it is now");
	report_file(&worker->run->report, S3ONCE_EVENT_RETRY, &about, &problem);
	enum step step = file_open(worker, file);
	return step == STEP_NEXT ? STEP_AGAIN : step;
}

enum step file_read_error(struct worker *worker, struct file *file, int error)
{
	struct problem problem;
	switch (error) {
	case -ESTALE:
		return changed(worker, file);
	case -ECANCELED:
		return STEP_OVER;
	case -ENOENT:
	case -ENOTDIR:
		problem_set(&problem, "disappeared while it was uploaded");
		break;
	case -ELOOP:
	case -EXDEV:
		problem_set(&problem,
			"became a symbolic link, or lies behind one, since the directory was "
			"read; links are not followed");
		break;
	case -EINVAL:
		problem_set(&problem, "is no longer a regular file");
		break;
	case -EAGAIN: /* our attempt has asked for it back */
		problem_set(&problem, "cannot be read: another process holds a lease on it");
		return file_again(worker, file, &problem);
	case -ENOMEM:
		problem_set(&problem, "out of memory");
		break;
	case -EMFILE:
	case -ENFILE:
		problem_set(&problem,
			"out of file descriptors; raise ulimit -n or lower --concurrency");
		run_fail(worker->run, &problem);
		return STEP_OVER;
	default:
		open_explain_unread(error, &problem);
	}
	return file_fail(worker, file, &problem);
}
