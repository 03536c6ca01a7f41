/* `s3once watch`: a service that uploads the files of jobs some seconds after they were written.
 * This file has the loop around all jobs, and the end after SIGTERM or SIGINT, with the uploads of
 * --drain. watched_job.c has one job and its passes. */
#include "base/clock.h"
#include "base/must_have.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "cli/other_tools.h"
#include "cli/push/service_notify.h"
#include "cli/signals.h"
#include "cli/watch/metrics_server.h"
#include "cli/watch/watched_job.h"
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STATUS_BYTES_MAX 1024   /* size of the list of failing jobs in the status */
#define WATCHDOG_MS      450000 /* without a watchdog: half of the unit's WatchdogSec=15min */

struct watch {
	struct watched **jobs;
	size_t n;
	char *const *names; /* names of the jobs */
	int argc;           /* argc and argv: the options that override the files of the jobs */
	char *const *argv;
	struct pollfd *fds; /* the inotify descriptor of each job */
	struct service_notify service;
	uint64_t watchdog_ms; /* the longest time from one sign of life to the next */
	sigset_t unblocked; /* the signal mask during ppoll() and passes, which signals interrupt */
	size_t next;        /* the job whose turn is next, if several are due */
	const struct watched *running;  /* the job whose pass is under way, or was the last one */
	struct metrics_server *server;  /* NULL: no job has --metrics-listen */
	struct watched_service of_jobs; /* callbacks of the jobs to this service */
};

/* Its options are those of push. */
static const struct command watch_command = {
	.name = "watch",
	.has_first_screen = true,
	.operands = "JOB...",
	.about = "Runs until it is stopped, and uploads each file of a JOB once it has not been\n"
		 "modified for --min-age (10s by default). A JOB is given as to s3once run: the\n"
		 "NAME of a file /etc/s3once/NAME.conf, or a path. Options on the command line\n"
		 "take precedence. SIGHUP rereads the files. After SIGTERM, waiting files are\n"
		 "uploaded before the end (--drain).\n",
	.groups = job_groups,
	.conflicts = push_conflicts,
	.elsewhere = other_tools_options,
	.examples =
		"  s3once watch nginx\n"
		"  s3once watch --full-scan 1h nginx photos\n"
		"  systemctl enable --now s3once-watch@nginx\n\n"
		"Exit codes: 2 usage, or a file is invalid: it never began; 3 it never began,\n"
		"since it cannot listen at --metrics-listen; 129, 130, 143 a signal stopped it\n"
		"while files were waiting; else that of s3once run for the last uploads. A pass\n"
		"that fails is retried, and does not end the service.\n",
};

/* Sets the text of `systemctl status` between two passes. */
static void report_status(const struct watch *watch)
{
	struct watched_sums sums = {0};
	size_t n_folders = 0;
	struct text failing = TEXT(STATUS_BYTES_MAX);
	for (size_t i = 0; i < watch->n; i++) {
		const struct watched *job = watch->jobs[i];
		sums.whole += job->sums.whole;
		sums.some += job->sums.some;
		sums.failed += job->sums.failed;
		sums.files += job->sums.files;
		sums.bytes += job->sums.bytes;
		n_folders += watch_folders_count(job->folders);
		if (job->code)
			text_addf(&failing, "; %s: exit status %d, is tried again",
				quote(job->job.name).text, job->code);
	}
	service_notify_say(&watch->service,
		"STATUS=Watching %s: %s, %s pass%s over some folders, %s of both failed; uploaded %s "
		"(%s)%s\nWATCHDOG=1\n",
		human_things(n_folders, "folder").text, human_things(sums.whole, "full scan").text,
		human_count(sums.some).text, sums.some == 1 ? "" : "es",
		human_count(sums.failed).text, human_things(sums.files, "file").text,
		human_bytes(sums.bytes).text, text_string(&failing));
	text_clear(&failing);
}

static const struct metric_kind passes = {"s3once_watch_passes_total", "counter",
	"Passes since the service began, over all files or over some folders."};
static const struct metric_kind folders = {
	"s3once_watch_folders", "gauge", "Folders whose changes the kernel reports."};
static const struct metric_kind failed_passes = {"s3once_watch_failed_passes_total", "counter",
	"Passes since the service began that ended with an exit status other than 0."};
static const struct metric_kind uploaded_files = {"s3once_watch_uploaded_files_total", "counter",
	"Files that were uploaded since the service began."};
static const struct metric_kind uploaded_bytes = {
	"s3once_watch_uploaded_bytes_total", "counter", "Bytes of these files."};

/* Sets the content of /metrics. If the text is too long or memory runs out, the earlier text
 * stays. */
static void update_server(const struct watch *watch)
{
	struct text t = TEXT(METRICS_ANSWER_BYTES_MAX);
	struct metrics metrics = {0};
	if (!watch->server)
		return;
	for (size_t i = 0; i < watch->n; i++) {
		const struct watched *job = watch->jobs[i];
		const struct watched_sums *sums = &job->sums;
		struct text labels = TEXT(METRICS_BYTES_MAX);
		metrics_add_labels(&labels, &job->job.options);
		const char *own = text_string(&labels);
		metrics_add_all(&metrics, &job->pass.metrics);
		metrics_add(&metrics, &passes, own, "over=\"all\"", "%" PRIu64, sums->whole);
		metrics_add(&metrics, &passes, own, "over=\"some\"", "%" PRIu64, sums->some);
		metrics_add(&metrics, &folders, own, "", "%zu", watch_folders_count(job->folders));
		metrics_add(&metrics, &failed_passes, own, "", "%" PRIu64, sums->failed);
		metrics_add(&metrics, &uploaded_files, own, "", "%" PRIu64, sums->files);
		metrics_add(&metrics, &uploaded_bytes, own, "", "%" PRIu64, sums->bytes);
		text_clear(&labels);
	}
	metrics_text(&metrics, &t);
	if (!t.error)
		metrics_server_set(watch->server, text_string(&t));
	metrics_clear(&metrics);
	text_clear(&t);
}

/* Sets the answers to probes. The service is healthy for twice watchdog_ms from now, which is also
 * the time after which systemd's watchdog would end it. */
static void update_probes(const struct watch *watch)
{
	bool is_ready = true;
	for (size_t i = 0; i < watch->n; i++)
		is_ready &= watch->jobs[i]->is_ready;
	if (watch->server)
		metrics_server_set_probes(watch->server, is_ready,
			clock_monotonic_ns() + 2 * watch->watchdog_ms * NS_PER_MS);
}

/* Gives a sign of life to probes and to the watchdog of systemd. */
static void send_sign_of_life(void *arg)
{
	const struct watch *watch = arg;
	update_probes(watch);
	service_notify_say(&watch->service, "WATCHDOG=1\n");
}

/* Starts the server at the --metrics-listen of the jobs, unless one is running at this address.
 * Then ends the server at the earlier address, if there is one. All jobs with --metrics-listen have
 * the same one, which report_clash() ensures. False: the new server cannot listen, which was
 * reported, and the server that ran before goes on. */
static bool listen_as_configured(struct watch *watch)
{
	const char *address = NULL; /* NULL: no job has --metrics-listen */
	struct metrics_server *server = NULL;
	struct problem problem;
	for (size_t i = 0; !address && i < watch->n; i++)
		address = watch->jobs[i]->job.options.metrics_listen;
	if (address && watch->server && strcmp(address, metrics_server_address(watch->server)) == 0)
		return true;
	if (address && metrics_server_new(address, &server, &problem) < 0) {
		log_error("watch: %s", problem.text);
		return false;
	}
	metrics_server_free(watch->server);
	watch->server = server;
	update_server(watch);
	update_probes(watch);
	return true;
}

/* Reports it if two jobs cannot be watched by one service, and why. Returns whether that is so. */
static bool report_clash(const struct job *a, const struct job *b)
{
	const char *address = a->options.metrics_listen, *other = b->options.metrics_listen;
	if (jobs_report_shared_metrics("watch", a, b))
		return true;
	if (address && other && strcmp(address, other) != 0) {
		log_error("watch: the jobs %s and %s have different --metrics-listen: name one",
			quote(a->name).text, quote(b->name).text);
		return true;
	}
	const bool have_metrics = address || other;
	const bool have_same_labels = strcmp(a->name, b->name) == 0 &&
				      strcmp(a->options.run.bucket, b->options.run.bucket) == 0 &&
				      strcmp(a->options.run.prefix, b->options.run.prefix) == 0;
	if (have_metrics && have_same_labels) {
		log_error(
			"watch: --metrics-listen: two jobs are called %s and have the same target, so "
			"that their metrics could not be told from each other: rename one of the files",
			quote(a->name).text);
		return true;
	}
	return false;
}

/* Reports it if one of the other jobs clashes with jobs[i]. Returns whether one does. At the start,
 * the jobs from i on are NULL. */
static bool report_clash_of(struct watched *const *jobs, size_t n, size_t i)
{
	for (size_t j = 0; j < n; j++)
		if (j != i && jobs[j] && report_clash(&jobs[j]->job, &jobs[i]->job))
			return true;
	return false;
}

static void warn_of_pairs(struct watched *const *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			if (j < i)
				jobs_warn_of_shared_name("watch", &jobs[j]->job, &jobs[i]->job);
			if (j != i)
				jobs_warn_of_removal("watch", &jobs[i]->job, &jobs[j]->job);
		}
}

/* Puts the present job with the index i into `next`, and frees the newly read one. */
static void keep_options(const struct watch *watch, size_t i, struct watched **next)
{
	log_error("watch: %s: goes on with the options that it had", quote(watch->names[i]).text);
	watched_free(next[i]);
	next[i] = watch->jobs[i];
}

/* Reads the files of all jobs again, into next[…]. A job whose file has an error, or whose new
 * options clash with those of another job, keeps its present options: next[i] is then jobs[i]. */
static void read_jobs_again(const struct watch *watch, struct watched **next)
{
	for (size_t i = 0; i < watch->n; i++)
		if (watched_new(
			    watch->names[i], watch->argc, watch->argv, &watch->of_jobs, &next[i]))
			keep_options(watch, i, next);
	/* The options that a job keeps may clash with the new ones of another job. So whenever a
	 * job keeps its options, all are compared from the first one on. That ends, since each time
	 * one job less has new options. */
	for (size_t i = 0; i < watch->n;) {
		const bool is_refused =
			next[i] != watch->jobs[i] && report_clash_of(next, watch->n, i);
		if (is_refused)
			keep_options(watch, i, next);
		i = is_refused ? 0 : i + 1;
	}
	warn_of_pairs(next, watch->n);
}

/* Replaces the jobs by those that their files describe now. */
static void reload(struct watch *watch)
{
	struct watched **next = must_have(calloc(watch->n, sizeof(struct watched *)));
	service_notify_say(&watch->service, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
		(unsigned long long)(clock_monotonic_ns() / 1000));
	read_jobs_again(watch, next);
	for (size_t i = 0; i < watch->n; i++) {
		if (next[i] == watch->jobs[i])
			continue;
		/* The counters of the service and the metrics of the last pass are kept until the
		 * new job has made a pass. */
		next[i]->sums = watch->jobs[i]->sums;
		metrics_add_all(&next[i]->pass.metrics, &watch->jobs[i]->pass.metrics);
		watched_free(watch->jobs[i]);
	}
	free(watch->jobs);
	watch->jobs = next;
	if (!listen_as_configured(watch) && watch->server)
		log_error("watch: the metrics are still at %s",
			quote(metrics_server_address(watch->server)).text);
	service_notify_say(&watch->service, "READY=1\n");
}

/* Reads what the kernel has reported about the folders of all jobs. */
static void read_folders(struct watch *watch)
{
	for (size_t i = 0; i < watch->n; i++)
		watched_read(watch->jobs[i]);
}

/* Waits until something happens in a folder, a signal comes, a job is due, or the watchdog needs a
 * sign of life. */
static void wait_for_work(struct watch *watch)
{
	const uint64_t now_ns = clock_boot_ns();
	/* The wait ends at the next sign of life, or when a job is due before. */
	uint64_t due_ns = now_ns + watch->watchdog_ms * NS_PER_MS;
	for (size_t i = 0; i < watch->n; i++) {
		const uint64_t job_ns = watched_due_ns(watch->jobs[i]);
		due_ns = job_ns < due_ns ? job_ns : due_ns;
		watch->fds[i] = (struct pollfd){
			.fd = watch_folders_fd(watch->jobs[i]->folders), .events = POLLIN};
	}
	const uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	const struct timespec timeout = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
	/* Whatever ended the wait, all folders are read. */
	ppoll(watch->fds, watch->n, &timeout, &watch->unblocked);
	read_folders(watch);
	send_sign_of_life(watch);
}

/* Returns whether a job other than the one whose pass is under way wants its turn. Checks all jobs,
 * so that each reads its events. */
static bool others_want_turn(void *arg)
{
	const struct watch *watch = arg;
	bool want = false;
	for (size_t i = 0; i < watch->n; i++)
		want |= watch->jobs[i] != watch->running && watched_wants_turn(watch->jobs[i]);
	return want;
}

/* Makes one pass of the next job that is due, if there is one. The jobs take turns. Signals are
 * unblocked meanwhile, and stop the pass. */
static void run_due_job(struct watch *watch)
{
	for (size_t tried = 0; tried < watch->n; tried++) {
		struct watched *job = watch->jobs[watch->next];
		watch->next = (watch->next + 1) % watch->n;
		if (watched_due_ns(job) > clock_boot_ns())
			continue;
		sigset_t blocked;
		thread_mask_signals(SIG_SETMASK, &watch->unblocked, &blocked);
		watch->running = job;
		watched_pass(job);
		thread_mask_signals(SIG_SETMASK, &blocked, NULL);
		/* The metrics come first, so that a reader of the new status finds them up to
		 * date. */
		update_server(watch);
		update_probes(watch);
		report_status(watch);
		break;
	}
}

/* Uploads the waiting and failed files of a job in its share of the time of --drain, which began at
 * since_ns. This job and the n_after jobs that follow have equal shares of the time that is left.
 * Warns if no time is left. */
static void drain_job(struct watched *job, uint64_t since_ns, size_t n_after)
{
	const uint64_t drain_ms = job->job.options.drain_ms;
	const struct quoted name = quote(job->job.name);
	const uint64_t now_ns = clock_boot_ns(), end_ns = since_ns + drain_ms * NS_PER_MS;
	const bool has_failed = job->code != 0; /* in an earlier pass */
	const bool leaves_files = watched_leaves_files(job) || has_failed;
	if (end_ns > now_ns) {
		log_note(
			"%s: what waits is uploaded before the end (--drain); a second signal ends "
			"that",
			name.text);
		watched_drain(job, now_ns + (end_ns - now_ns) / (n_after + 1));
	} else if (drain_ms && leaves_files) {
		log_warning(
			"%s: what was under way took all the time of --drain, so files are left "
			"for the next start",
			name.text);
	}
}

/* After a SIGTERM, uploads waiting files, and retries failed ones, job by job. Signals are
 * unblocked meanwhile, so that a second one ends this. */
static void drain(struct watch *watch)
{
	uint64_t since_ns;
	sigset_t blocked;
	if (!signals_begin_drain(&since_ns))
		return;
	thread_mask_signals(SIG_SETMASK, &watch->unblocked, &blocked);
	for (size_t i = 0; i < watch->n; i++)
		drain_job(watch->jobs[i], since_ns, watch->n - i - 1);
	thread_mask_signals(SIG_SETMASK, &blocked, NULL);
}

/* Returns the exit code after this signal and drain(): that of the signal if files still wait, and
 * otherwise the worst one of the jobs. */
static int code_at_end(const struct watch *watch, int signal)
{
	int code = S3ONCE_EXIT_OK;
	bool waits = false;
	for (size_t i = 0; i < watch->n; i++) {
		waits |= watched_leaves_files(watch->jobs[i]);
		code = jobs_worse_code(code, watch->jobs[i]->code);
	}
	return waits ? S3ONCE_EXIT_STOPPED + signal : code;
}

/* Serves the jobs until a signal comes. Returns the exit code. */
static int serve(struct watch *watch)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};
	sigset_t taken;
	bool reloads = false;
	watch->watchdog_ms = service_notify_watchdog_ms();
	if (!watch->watchdog_ms)
		watch->watchdog_ms = WATCHDOG_MS;
	if (!listen_as_configured(watch))
		return S3ONCE_EXIT_SETUP;
	signals_serve();
	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaddset(&taken, numbers[i]);
	/* From here on, signals come only where watch->unblocked is set: in ppoll() and in passes.
	 * So none can come between a check for signals and ppoll(). */
	thread_mask_signals(SIG_BLOCK, &taken, &watch->unblocked);
	service_notify_init(&watch->service);
	service_notify_say(&watch->service, "READY=1\n");
	while (!signals_came()) { /* not counting SIGHUP, which causes a reload() */
		if (reloads || signals_take_reload())
			reload(watch);
		run_due_job(watch);
		reloads = signals_take_reload(); /* a SIGHUP came during the pass */
		if (!signals_came() && !reloads)
			wait_for_work(watch);
	}
	/* If the signal came during a pass, files that were touched since its beginning wait. */
	read_folders(watch);
	service_notify_say(&watch->service, "STOPPING=1\n");
	drain(watch);
	thread_mask_signals(SIG_SETMASK, &watch->unblocked, NULL);
	return code_at_end(watch, signals_restore());
}

/* Opens all jobs, and serves them. If one of them has an error, none is served. */
static int open_and_serve(size_t n, char *const *names, int argc, char *const *argv)
{
	struct watch watch = {.n = n, .names = names, .argc = argc, .argv = argv};
	watch.of_jobs = (struct watched_service){
		.others_want_turn = others_want_turn, .sign = send_sign_of_life, .arg = &watch};
	watch.jobs = must_have(calloc(n, sizeof(struct watched *)));
	watch.fds = must_have(calloc(n, sizeof *watch.fds));
	bool are_valid = true;
	/* All are opened even after an error, so that the errors of all are reported. */
	for (size_t i = 0; i < n; i++)
		if (watched_new(names[i], argc, argv, &watch.of_jobs, &watch.jobs[i]) ||
			report_clash_of(watch.jobs, n, i))
			are_valid = false;
	if (are_valid)
		warn_of_pairs(watch.jobs, n);
	const int code = are_valid ? serve(&watch) : S3ONCE_EXIT_USAGE;
	for (size_t i = 0; i < n; i++)
		watched_free(watch.jobs[i]);
	metrics_server_free(watch.server);
	free(watch.jobs);
	free(watch.fds);
	return code;
}

int watch_main(int argc, char **argv)
{
	return jobs_main(&watch_command, open_and_serve, argc, argv);
}
