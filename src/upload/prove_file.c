#include "upload/prove_file.h"
#include "scan/scan.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum done prove_unknown(
	struct run *run, const char *path, const char *key, const struct problem *problem)
{
	const struct report_file about = {.path = path, .key = key};
	report_file(&run->report, S3ONCE_EVENT_FAILED, &about, problem);
	return DONE_UNKNOWN;
}

static enum done cannot_read(struct run *run, const char *path, const char *key, int error)
{
	struct problem problem;
	problem_set(&problem, "cannot be read: %s", strerror(-error));
	return prove_unknown(run, path, key, &problem);
}

static void report_proof(struct run *run, const struct file *file, enum done done,
	const struct done_object *object, const struct problem *problem)
{
	struct report_file about = file_about(file);
	char checksum[SUM_MAX + S3_SUM_MAX];
	if (done == DONE_YES)
		done_describe(object, checksum, &about);
	report_file(&run->report,
		done == DONE_YES  ? S3ONCE_EVENT_PROVEN
		: done == DONE_NO ? S3ONCE_EVENT_UNPROVEN
				  : S3ONCE_EVENT_FAILED,
		&about, done == DONE_YES ? NULL : problem);
}

/* Opens the file as uploading it would, and reads it. */
static enum done prove_open(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	const struct candidate *c = file->candidate;
	struct done_object object;
	struct problem problem = {0};
	struct file_state now;
	const int fd = scan_open_file(run->scan, c->source, c->relative, &file->state);
	if (fd < 0)
		return cannot_read(run, c->path, c->object, fd);
	file->fd = fd;
	buffers_lend(&run->buffers, &worker->reader, file->state.size);
	enum done done = done_now(worker, file, false, &object, &problem);
	buffers_take_back(&run->buffers, &worker->reader);
	if (done == DONE_YES &&
		(file_state_of(fd, &now) || !file_state_equal(&now, &file->state))) {
		problem_set(&problem, "it changed while it was read");
		done = DONE_UNKNOWN;
	}
	report_proof(run, file, done, &object, &problem);
	return done;
}

enum done prove_candidate(struct worker *worker, struct candidate *candidate)
{
	struct file *file = file_new(worker->run, candidate);
	if (!file) {
		const enum done done =
			cannot_read(worker->run, candidate->path, candidate->object, -ENOMEM);
		free(candidate);
		return done;
	}
	const enum done done = prove_open(worker, file);
	file_free(file);
	return done;
}
