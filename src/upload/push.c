/* One push from its beginning to its end, as include/s3once/push.h offers it: it is made from
 * options, run, its counts are read, and it is freed. Its counts decide the exit status here.
 * push_set_up.c opens the services for it, and push_loop.c runs its threads. Only the main thread
 * calls these functions. */
#include "scan/filter/filter.h"
#include "upload/bucket/bucket_check.h"
#include "upload/feed.h"
#include "upload/file/multipart.h"
#include "upload/file/spool.h"
#include "upload/push_struct.h"
#include "upload/run_manifest.h"
#include "upload/run_options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* Makes a filter of options.rules, or NULL if there are none. Returns 0, -ENOMEM, or -EINVAL with a
 * sentence. Whatever it returns, s3once_push_free() frees *ret by run_files_close(). */
static int open_filter(
	const struct s3once_options *o, struct filter **ret, struct problem *ret_problem)
{
	int error = o->n_rules ? filter_new(ret) : 0;
	for (size_t i = 0; !error && i < o->n_rules; i++)
		error = filter_add_rule(*ret, &o->rules[i], ret_problem);
	return error;
}

/* Makes the means for bodies: the settings of objects, the limit of bandwidth, the encoding, and
 * the memory for buffers and encoders. Returns 0, -ENOMEM, or -EINVAL with a sentence. Whatever it
 * returns, s3once_push_free() frees them. */
static int open_bodies(
	struct run_bodies *bodies, const struct s3once_options *o, struct problem *problem)
{
	int error = object_rules_new(o, &bodies->rules, problem);
	if (!error && o->n_rates)
		error = bandwidth_new(o, &bodies->bandwidth, problem);
	if (!error && o->compress)
		error = encoding_parse(o->compress, &bodies->encoding, problem);
	if (!error)
		buffers_init(&bodies->buffers, o->memory_bytes,
			o->concurrency < LARGE_BODIES_MAX ? o->concurrency : LARGE_BODIES_MAX);
	if (!error && o->compress)
		encoders_init(&bodies->encoders, &bodies->encoding, o, uv_available_parallelism());
	return error;
}

int s3once_push_new(
	const struct s3once_options *options, struct s3once_push **ret, char *ret_text, size_t size)
{
	struct s3once_push *push = calloc(1, sizeof *push);
	struct problem problem = {0};
	if (!push)
		return -ENOMEM;
	struct run *run = &push->run;
	const struct s3once_options *o = &run->options;
	machine_id(run->machine);
	uv_mutex_init(&run->locked.mutex);
	refusals_init(&run->refusals);
	report_init(&run->report, options);
	progress_init(&run->progress);
	run->report.progress = &run->progress;
	run->files.move_to_fd = run->piped_fd = -1;
	int error = run_options_complete(options, &run->options, &problem);
	progress_set_limit(&run->progress, o->give_up_after_ms, o->request_timeout_ms);
	if (!error)
		error = open_filter(o, &run->files.filter, &problem);
	if (!error)
		error = open_bodies(&run->bodies, o, &problem);
	run->dry = o->dry_run != 0;
	/* Only a contradiction (-EINVAL) is an error of this call. The problem of any other error
	 * is kept, and push_set_up() reports it as an error of the run. */
	if (!error && run_files_open(run, &problem) == -EINVAL)
		error = -EINVAL;
	else if (!error)
		push->scan_problem = problem;
	if (error) {
		snprintf(ret_text, size, "%s", problem.text);
		s3once_push_free(push);
		return error;
	}
	*ret = push;
	return 0;
}

const char *s3once_version(void)
{
	return S3ONCE_VERSION;
}

enum s3once_exit push_exit_status(struct s3once_push *push)
{
	struct run *run = &push->run;
	const struct s3once_counts c = report_get_counts(&run->report);
	const uint64_t counted = s3once_counts_settled(&c);
	/* Whether the scan has found all files, and the run has finished with each of them. */
	const bool all_settled = c.scan_complete && counted == c.found;
	/* Without files to send, there may have been no request to S3 yet when the run was
	 * stopped. */
	const bool is_whole = all_settled && atomic_load(&run->bucket_answers);
	if (atomic_load(&run->end.was_asked_to_stop) && !is_whole)
		return S3ONCE_EXIT_STOPPED;
	if (atomic_load(&run->end.fenced))
		return S3ONCE_EXIT_FENCED;
	if (atomic_load(&run->end.failed_setup))
		return S3ONCE_EXIT_SETUP;
	/* Only a limit explains from here on that files are not settled. */
	const bool is_limited = atomic_load(&run->end.limit) != NULL;
	/* A file that was found but not counted must not count as done. */
	if (c.scan_complete && !all_settled && !is_limited)
		report_run(&run->report, S3ONCE_EVENT_FATAL,
			PROBLEM("%llu files were found, but %llu were counted, which is an error "
				"of s3once itself: run again",
				(unsigned long long)c.found, (unsigned long long)counted));
	if (c.failed || c.changed || c.not_removed || (!all_settled && !is_limited))
		return S3ONCE_EXIT_FILES;
	if (!is_whole && is_limited)
		return S3ONCE_EXIT_LIMIT;
	if (!is_whole) {
		struct problem *why = &run->locked.no_answer;
		problem_prefix(
			why, "S3 has not answered for bucket %s", quote(run->options.bucket).text);
		report_run(&run->report, S3ONCE_EVENT_FATAL, why);
		return S3ONCE_EXIT_SETUP;
	}
	/* A tree of only links is probably a mistake without --follow. With options.removes it is
	 * not: an earlier run may have removed the files beside the links. */
	if (c.found && c.found == c.links && !run->options.removes) {
		report_run(&run->report, S3ONCE_EVENT_WARNING,
			PROBLEM("found only symbolic links, which are not followed; use --follow "
				"to upload the files that they lead to"));
		return S3ONCE_EXIT_FILES;
	}
	return c.held ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
}

/* Frees the uploads and files that no worker has taken. */
static void drop_left_work(struct run *run)
{
	for (struct parts *parts; (parts = queue_pop_upload(run->queue));) {
		struct file *file = multipart_give_up(parts);
		run_report_unfinished(run, file->candidate);
		atomic_fetch_sub(&run->report.in_flight, 1); /* its turn ends here */
		file_free(file);
	}
	for (struct candidate *left; (left = queue_pop_file(run->queue));)
		feed_drop_candidate(run, left);
}

/* Makes sure of the marks, before the exit status says that the files are in S3: all of them are
 * synced to the disk, also those of other runs, and their file is still the one of this run. */
static void secure_marks(struct s3once_push *push)
{
	struct run *run = &push->run;
	struct problem problem;
	if (!run->dry && store_sync(push->conn, NULL, &problem) != OUTCOME_OK)
		run_fail(run, &problem);
	const int r = own_files_check(&run->files.own_files);
	if (r < 0)
		run_fail(run,
			PROBLEM("%s: %s, so that marks may be lost: run again; files without a "
				"mark are compared with what S3 holds",
				quote(run->files.own_files.path).text,
				r == -ESTALE ? "was removed or replaced while this run had it open"
					     : strerror(-r)));
}

enum s3once_exit s3once_push_run(struct s3once_push *push)
{
	struct run *run = &push->run;
	/* If push_set_up() fails, it has set end.failed_setup, on which push_exit_status() depends.
	 * It has also reported the reason, unless the run is stopping for another one. */
	if (push_set_up(push)) {
		report_run(&run->report, S3ONCE_EVENT_START,
			PROBLEM("%s", quote(run->options.marks).text));
		if (!push_loop(push))
			run_fail(run, PROBLEM(PROBLEM_NO_DESCRIPTORS));
		drop_left_work(run);
		bucket_save_witness(run, push->conn);
	}
	/* A lease that was lost since the main thread's last check still counts for the exit
	 * status. So does a clock that has run out since then. */
	run_check_lease(run);
	run_check_progress(run);
	run_warn_of_wait(run);
	/* The work is over, and nothing below depends on the lease any more. But the session stays
	 * open until the job's row has the result: a session that has ended without a result is
	 * that of a run that was killed. */
	struct session *session = run->session;
	run->session = NULL;
	if (push->is_set_up)
		secure_marks(push);
	enum s3once_exit exit = push_exit_status(push);
	/* A run that could not do its work stores no manifest. The manifest of the next run lists
	 * what this run has marked done, too. */
	const bool has_worked = exit == S3ONCE_EXIT_OK || exit == S3ONCE_EXIT_HELD ||
				exit == S3ONCE_EXIT_LIMIT || exit == S3ONCE_EXIT_FILES;
	if (has_worked && !run_manifest_put(run))
		exit = S3ONCE_EXIT_FILES;
	/* The output of a pipe is kept for the next run until it is in S3. */
	if (exit == S3ONCE_EXIT_OK && !run->dry)
		spool_forget(run);
	if (push->has_marks && !run->dry)
		run_job_end(run, push->conn, run->locked.begun ? session_id(session) : NULL, exit);
	if (session)
		session_close(session, push->conn);
	push->counts = report_get_counts(&run->report);
	report_counts(&run->report, S3ONCE_EVENT_SUMMARY);
	return exit;
}

const char *s3once_push_requests(const struct s3once_push *push, size_t i, uint64_t *ret_count)
{
	const struct run *run = &push->run;
	unsigned long count = 0;
	const char *name = NULL;
	/* The kinds of requests to S3 come first, and then those to the store of marks. */
	size_t n_s3 = 0;
	while (run->s3 && service_kind(s3_service(run->s3), n_s3, &count))
		n_s3++;
	if (i < n_s3)
		name = service_kind(s3_service(run->s3), i, &count);
	else if (run->store)
		name = run->store->ops->kind(run->store, i - n_s3, &count);
	*ret_count = name ? count : 0;
	return name;
}

const struct s3once_counts *s3once_push_counts(const struct s3once_push *push)
{
	return &push->counts;
}

const struct s3once_waiting *s3once_push_waiting(
	const struct s3once_push *push, enum s3once_wait why)
{
	return report_waiting(&push->run.report, why < S3ONCE_WAITS ? why : S3ONCE_WAIT_NONE);
}

const char *s3once_push_limit(const struct s3once_push *push)
{
	const char *limit = atomic_load(&push->run.end.limit);
	return limit ? limit : "";
}

void s3once_push_free(struct s3once_push *push)
{
	if (!push)
		return;
	struct run *run = &push->run;
	queue_free(run->queue);
	run_manifest_free(run);
	if (run->piped_fd >= 0)
		close(run->piped_fd);
	run_files_close(&run->files);
	store_conn_free(push->conn);
	store_close(run->store);
	s3_close(run->s3);
	http_shared_free(run->http);
	aws_settings_free(run->aws);
	bandwidth_free(run->bodies.bandwidth);
	object_rules_free(run->bodies.rules);
	encoders_clear(&run->bodies.encoders);
	refusals_clear(&run->refusals);
	report_clear(&run->report);
	progress_clear(&run->progress);
	uv_mutex_destroy(&run->locked.mutex);
	free(push);
}
