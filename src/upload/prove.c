/* `s3once proven`: whether files are done, without uploading anything. */
#include "base/quote.h"
#include "upload/bucket/bucket_check.h"
#include "upload/feed.h"
#include "upload/file/done_now.h"
#include "upload/push_struct.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum done unknown(
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
	return unknown(run, path, key, &problem);
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

static enum done prove_entry(struct worker *worker, const struct scan_entry *entry)
{
	struct candidate *candidate = feed_candidate(entry);
	struct file *file = candidate ? file_new(worker->run, candidate) : NULL;
	if (!file) {
		free(candidate);
		return cannot_read(worker->run, entry->path, entry->key, -ENOMEM);
	}
	const enum done done = prove_open(worker, file);
	file_free(file);
	return done;
}

static enum done prove_path(struct worker *worker, const char *path)
{
	struct run *run = worker->run;
	struct scan_entry entry;
	struct problem problem = {0};
	const int r = scan_look(run->scan, path, &entry, &problem);
	const bool is_file = r > 0 && (entry.kind == SCAN_FILE || entry.kind == SCAN_YOUNG);
	if (is_file && *entry.key)
		return prove_entry(worker, &entry);
	if (is_file)
		problem_set(&problem, "has no key: it is larger than --max-size, or younger than "
				      "--min-age");
	else if (r > 0 && entry.kind == SCAN_PROBLEM)
		problem = entry.problem;
	else if (r > 0)
		problem_set(&problem, "is not a regular file");
	else if (r == 0)
		problem_set(&problem,
			"does not exist, or is not one of the files that these options "
			"would upload");
	return unknown(run, path, "", &problem);
}

static enum s3once_exit prove_all(struct worker *worker, const char *const *files, size_t n)
{
	enum s3once_exit exit = S3ONCE_EXIT_OK;
	for (size_t i = 0; i < n && !run_is_over(worker->run); i++) {
		const enum done done = prove_path(worker, files[i]);
		if (done == DONE_UNKNOWN)
			exit = S3ONCE_EXIT_SETUP;
		else if (done == DONE_NO && exit == S3ONCE_EXIT_OK)
			exit = S3ONCE_EXIT_FILES;
	}
	return run_is_over(worker->run) ? S3ONCE_EXIT_SETUP : exit;
}

/* The marks count for one bucket. */
static bool is_the_bucket(struct s3once_push *push)
{
	struct problem problem = {0};
	if (bucket_check(&push->run, push->conn, &problem))
		return true;
	run_fail(&push->run, &problem);
	return false;
}

enum s3once_exit s3once_push_prove(struct s3once_push *push, const char *const *files, size_t n)
{
	struct run *run = &push->run;
	struct worker *worker = NULL;
	struct problem problem;
	enum s3once_exit exit = S3ONCE_EXIT_SETUP;
	if (push_set_up(push) && is_the_bucket(push)) {
		if (worker_new(run, &worker)) {
			problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
			run_fail(run, &problem);
		} else {
			exit = prove_all(worker, files, n);
		}
	}
	worker_free(worker);
	if (run->session)
		session_close(run->session, push->conn);
	run->session = NULL;
	push->counts = report_get(&run->report);
	return exit;
}
