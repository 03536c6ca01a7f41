/* include/s3once/push.h: a run from its options to its summary. */
#include "s3once/push.h"
#include "aws/global.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "store/place.h"
#include "store/state_folder.h"
#include "upload/feed.h"
#include "upload/options.h"
#include "upload/run.h"
#include "upload/threads.h"
#include "upload/worker.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define WORKER_BUFFER_MIN (16U << 10)
#define WORKER_BUFFER_MAX (2U << 20)

/* One body of the pool. */
struct work {
	uv_work_t request;
	struct s3once_push *push;
};

struct s3once_push {
	struct run run;
	struct store_conn *conn; /* the main thread's */
	size_t buffer_bytes;
	bool whole; /* the scan came to its end */
	bool set_up;
	struct problem scan_problem; /* why there is no run.scan */
	struct s3once_counts counts; /* final, after the run */
	/* The loop of s3once_push_run; the handles are closed when the last work has ended. */
	uv_loop_t loop;
	uv_async_t stopped;
	uv_timer_t progress, grace;
	struct work *works;
	unsigned n_works; /* still running */
	atomic_bool looping;
};

const char *s3once_version(void)
{
	return S3ONCE_VERSION;
}

/* What a dry run that finds no marks looks into instead of making some. */
static int place_without_traces(struct marks_place *place)
{
	if (place->is_dynamodb || !access(place->path, F_OK) || errno != ENOENT)
		return 0;
	free(place->path);
	place->path = strdup(STORE_SQLITE_NOWHERE);
	return place->path ? 0 : -ENOMEM;
}

static bool open_marks(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	const char *marks = run->options.marks;
	struct marks_place place;
	int error = marks_place_parse(marks, &place, problem);
	if (!error && run->dry)
		error = place_without_traces(&place);
	if (!error)
		error = marks_place_open(&place, run->aws, run->http, &run->store, problem);
	if (!error)
		error = store_conn_new(run->store, &push->conn);
	const bool is_dynamodb = place.is_dynamodb;
	const char *table = place.table; /* within marks */
	if (error) {
		marks_place_clear(&place);
		return false;
	}
	enum outcome o = settings_load(
		push->conn, !is_dynamodb, SHARDS_DEFAULT, &run->space.settings, problem);
	if (!is_dynamodb) {
		own_files_find(place.path, &run->own_files);
		place.path = NULL;
	}
	marks_place_clear(&place);
	if (o == OUTCOME_ABSENT)
		problem_set(problem, "%s was never set up; run: s3once init --marks %s",
			quote(marks).text, quote(marks).text);
	else if (o != OUTCOME_OK && table && !strstr(problem->text, table))
		problem_prefix(problem, "%s", quote(marks).text);
	return o == OUTCOME_OK;
}

static bool open_session(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	char observations[4096];
	struct session_options options = {
		.store = run->store,
		.lease_ns = run->options.lease_ms * NS_PER_MS,
		.heartbeat_ns = run->options.heartbeat_ms * NS_PER_MS,
		.abandon = run_is_over,
		.abandon_arg = run,
	};
	if (!(run->dry ? state_path : state_file)("sessions", observations, sizeof observations))
		options.observations = observations;
	if (!session_new(&options, &run->session))
		return true;
	problem_set(problem, PROBLEM_NO_DESCRIPTORS);
	return false;
}

static bool open_s3(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	const struct s3once_options *o = &run->options;
	const struct aws_options aws = {
		.profile = o->profile,
		.region = o->region,
		.endpoint_url = o->endpoint_url,
		.dynamodb_endpoint_url = o->dynamodb_endpoint_url,
		.ca_bundle = o->ca_bundle,
		.attempts = o->attempts,
		.request_timeout_ms = o->request_timeout_ms,
	};
	if (aws_settings_resolve(&aws, &run->aws, problem))
		return false;
	const struct http_options http = {
		.ca_bundle = run->aws->ca_bundle, .upload_buffer_bytes = push->buffer_bytes};
	if (http_shared_new(&http, &run->http)) {
		problem_set(problem, "out of memory");
		return false;
	}
	if (s3_open(run->aws, run->http, o->bucket, &run->s3, problem))
		return false;
	if (object_rules_have_key(run->rules) && strncmp(run->aws->s3_endpoint, "https:", 6)) {
		problem_set(problem,
			"sse-c-key-file sends the key with each request, so the endpoint must be https, "
			"and it is %s",
			quote(run->aws->s3_endpoint).text);
		return false;
	}
	s3_set_terms(run->s3, o->expected_bucket_owner, o->requester_pays != 0);
	snprintf(run->space.service, sizeof run->space.service, "%s",
		aws_settings_service(run->aws));
	snprintf(run->space.bucket, sizeof run->space.bucket, "%s", o->bucket);
	return true;
}

static bool set_up(struct s3once_push *push)
{
	struct problem problem = push->scan_problem;
	push->set_up = push->run.scan && !queue_new(&push->run.queue) && !aws_global_init() &&
		       open_s3(push, &problem) && open_marks(push, &problem) &&
		       open_session(push, &problem);
	if (!push->set_up) {
		atomic_store(&push->run.failed_setup, true);
		report_run(&push->run.report, S3ONCE_EVENT_FATAL, &problem);
	}
	return push->set_up;
}

static int name_sources(struct run *run)
{
	struct process self;
	process_self(&self);
	run->sources_of_marks = calloc(run->options.n_sources, sizeof *run->sources_of_marks);
	for (size_t i = 0; run->sources_of_marks && i < run->options.n_sources; i++)
		if (asprintf(&run->sources_of_marks[i], "%s:%.400s", self.host,
			    scan_source_path(run->scan, i)) < 0) {
			run->sources_of_marks[i] = NULL;
			return -ENOMEM;
		}
	return run->sources_of_marks ? 0 : -ENOMEM;
}

static int open_scan(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	const struct scan_options options = {
		.sources = o->sources,
		.n_sources = o->n_sources,
		.prefix = o->prefix,
		.as = o->as,
		.files_from = o->files_from,
		.nul_separated = o->nul_separated != 0,
		.filter = run->filter,
		.follow = o->follow != 0,
		.min_age_s = o->min_age_s,
		.now_wall_ns = clock_wall_ns(),
	};
	problem_set(problem, "out of memory");
	int error = scan_open(&options, &run->scan, problem);
	if (!error && name_sources(run)) {
		scan_close(run->scan);
		run->scan = NULL;
	}
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
	int error = options_complete(options, &run->options, &problem);
	if (!error)
		error = options_filter(options, &run->filter, &problem);
	if (!error)
		error = object_rules_new(options, &run->rules, &problem);
	if (error) {
		snprintf(ret_text, size, "%s", problem.text);
		filter_free(run->filter);
		free(push);
		return error;
	}
	pthread_mutex_init(&run->locked.mutex, NULL);
	report_init(&run->report, &run->options);
	atomic_store(&run->dry, run->options.dry_run != 0);
	uint64_t each = run->options.memory_bytes / 2 / run->options.concurrency;
	push->buffer_bytes = each < WORKER_BUFFER_MIN   ? WORKER_BUFFER_MIN
			     : each > WORKER_BUFFER_MAX ? WORKER_BUFFER_MAX
							: (size_t)each;
	/* What is no contradiction is an error of the run. */
	if (open_scan(run, &push->scan_problem) == -EINVAL) {
		snprintf(ret_text, size, "%s", push->scan_problem.text);
		s3once_push_free(push);
		return -EINVAL;
	}
	*ret = push;
	return 0;
}

static void work(uv_work_t *request)
{
	struct work *self = (struct work *)request->data;
	struct run *run = &self->push->run;
	struct worker *worker;
	if (self == self->push->works) { /* the first is the scan */
		self->push->whole = feed_run(run);
		return;
	}
	if (worker_new(run, self->push->buffer_bytes, &worker)) {
		struct problem problem;
		problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
		run_fail(run, &problem);
		return;
	}
	worker_run(worker);
	worker_free(worker);
}

static void close_handles(struct s3once_push *push)
{
	atomic_store(&push->looping, false);
	uv_close((uv_handle_t *)&push->stopped, NULL);
	uv_close((uv_handle_t *)&push->progress, NULL);
	uv_close((uv_handle_t *)&push->grace, NULL);
}

static void after_work(uv_work_t *request, int status)
{
	struct work *self = (struct work *)request->data;
	(void)status;
	if (--self->push->n_works == 0)
		close_handles(self->push);
}

static void on_progress(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	report_counts(&push->run.report, S3ONCE_EVENT_PROGRESS);
}

static void on_grace_over(uv_timer_t *timer)
{
	struct s3once_push *push = timer->data;
	atomic_store(&push->run.stop, 2);
}

static void on_stop(uv_async_t *async)
{
	struct s3once_push *push = async->data;
	queue_close(push->run.queue);
	if (!uv_is_active((uv_handle_t *)&push->grace))
		uv_timer_start(&push->grace, on_grace_over, push->run.options.grace_ms, 0);
}

void s3once_push_stop(struct s3once_push *push)
{
	atomic_fetch_add(&push->run.stop, 1);
	if (atomic_load(&push->looping))
		uv_async_send(&push->stopped);
}

static void out_of_threads(struct s3once_push *push, unsigned n_can, unsigned n)
{
	struct problem problem;
	problem_set(&problem,
		"only %u of %u threads can be started: lower --concurrency, or raise ulimit -u and -v "
		"or the container's limit of processes",
		n_can, n);
	run_fail(&push->run, &problem);
}

/* Signals are the main thread's: the pool's threads are born with all of them blocked. */
static int start_works(struct s3once_push *push)
{
	const unsigned n = push->run.options.concurrency + 1;
	push->works = calloc(n, sizeof *push->works);
	if (!push->works)
		return -ENOMEM;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	const unsigned n_can = threads_try(n);
	push->n_works = n_can < n ? 0 : n;
	for (unsigned i = 0; i < push->n_works; i++) {
		push->works[i].push = push;
		push->works[i].request.data = &push->works[i];
		uv_queue_work(&push->loop, &push->works[i].request, work, after_work);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (n_can < n)
		out_of_threads(push, n_can, n);
	return n_can < n ? -EAGAIN : 0;
}

/* The pool is made at its first use, with as many threads as there are bodies: each of them blocks
 * for the whole run. */
static void size_pool(const struct s3once_push *push)
{
	char text[12];
	snprintf(text, sizeof text, "%u", push->run.options.concurrency + 1);
	setenv("UV_THREADPOOL_SIZE", text, 1);
}

static bool loop(struct s3once_push *push)
{
	size_pool(push);
	if (!threads_loop_has_descriptors() || uv_loop_init(&push->loop))
		return false;
	if (uv_async_init(&push->loop, &push->stopped, on_stop)) {
		uv_loop_close(&push->loop);
		return false;
	}
	uv_timer_init(&push->loop, &push->progress);
	uv_timer_init(&push->loop, &push->grace);
	push->stopped.data = push->progress.data = push->grace.data = push;
	const uint64_t interval = push->run.options.progress_interval_ms;
	if (interval)
		uv_timer_start(&push->progress, on_progress, interval, interval);
	atomic_store(&push->looping, true);
	int error = start_works(push);
	if (error)
		close_handles(push);
	else if (atomic_load(&push->run.stop)) /* asked for before there was anybody to tell */
		uv_async_send(&push->stopped);
	uv_run(&push->loop, UV_RUN_DEFAULT);
	uv_loop_close(&push->loop);
	return !error;
}

static enum s3once_exit verdict(struct s3once_push *push)
{
	struct run *run = &push->run;
	const struct s3once_counts c = report_get(&run->report);
	if (atomic_load(&run->stop))
		return S3ONCE_EXIT_STOPPED;
	if (atomic_load(&run->fenced))
		return S3ONCE_EXIT_FENCED;
	if (atomic_load(&run->failed_setup))
		return S3ONCE_EXIT_SETUP;
	if (c.failed || c.changed || !push->whole)
		return S3ONCE_EXIT_FILES;
	if (c.found && c.found == c.links) {
		struct problem problem;
		problem_set(&problem,
			"found nothing but symbolic links, and they are not followed; give --follow "
			"to upload what they lead to");
		report_run(&run->report, S3ONCE_EVENT_WARNING, &problem);
		return S3ONCE_EXIT_FILES;
	}
	return c.held ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
}

static void tell_start(struct s3once_push *push)
{
	struct problem problem;
	const char *marks = push->run.options.marks;
	problem_set(&problem, "%s", quote(marks).text);
	report_run(&push->run.report, S3ONCE_EVENT_START, &problem);
}

static void look_for_marks(struct s3once_push *push)
{
	struct problem problem;
	if (own_files_are_there(&push->run.own_files))
		return;
	problem_set(&problem,
		"%s: was removed or replaced while this run had it open, so that what it marked "
		"may be lost: run again, which compares files without a mark with what S3 holds",
		quote(push->run.own_files.path).text);
	run_fail(&push->run, &problem);
}

enum s3once_exit s3once_push_run(struct s3once_push *push)
{
	struct run *run = &push->run;
	struct problem problem;
	if (set_up(push)) {
		tell_start(push);
		if (!loop(push)) {
			problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
			run_fail(run, &problem);
		}
		for (struct parts *parts; (parts = queue_leftover(run->queue));)
			file_free(parts_give_up(parts));
	}
	if (run->session)
		session_close(run->session, push->conn);
	run->session = NULL;
	if (push->set_up)
		look_for_marks(push);
	enum s3once_exit exit = verdict(push);
	push->counts = report_get(&run->report);
	report_counts(&run->report, S3ONCE_EVENT_SUMMARY);
	return exit;
}

const char *s3once_push_requests(const struct s3once_push *push, size_t i, uint64_t *ret_count)
{
	unsigned long count = 0;
	const char *name = NULL;
	size_t n = 0;
	for (; push->run.s3 && (name = service_kind(s3_service(push->run.s3), n, &count)); n++)
		if (n == i)
			goto found;
	if (push->run.store)
		name = push->run.store->ops->kind(push->run.store, i - n, &count);
found:
	*ret_count = count;
	return name;
}

const struct s3once_counts *s3once_push_counts(const struct s3once_push *push)
{
	return &push->counts;
}

void s3once_push_free(struct s3once_push *push)
{
	if (!push)
		return;
	struct run *run = &push->run;
	queue_free(run->queue);
	for (size_t i = 0; run->sources_of_marks && i < run->options.n_sources; i++)
		free(run->sources_of_marks[i]);
	free(run->sources_of_marks);
	if (run->scan)
		scan_close(run->scan);
	store_conn_free(push->conn);
	store_close(run->store);
	if (run->s3)
		s3_close(run->s3);
	http_shared_free(run->http);
	aws_settings_free(run->aws);
	filter_free(run->filter);
	object_rules_free(run->rules);
	report_clear(&run->report);
	pthread_mutex_destroy(&run->locked.mutex);
	own_files_clear(&run->own_files);
	free(push->works);
	free(push);
}
