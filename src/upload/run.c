/* The run itself: whether it is over and why, the limits of all its requests, what precedes its
 * first claim, and the row of its job. Its exit status is computed in push.c. All threads of a run
 * call these functions. The limits are checked again and again while a request or a wait lasts, so
 * the end of the run need not be announced to any thread. */
#include "upload/run.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "lease/process.h"
#include "marks/job_row.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB_PATIENCE_NS (3 * NS_PER_S) /* for the row of the job, on which no file depends */

void liveness_sign(struct liveness *liveness)
{
	atomic_store(&liveness->seen_ns, clock_boot_ns());
}

void liveness_begin_task(struct liveness *liveness)
{
	liveness_sign(liveness);
	atomic_fetch_add(&liveness->tasks, 1);
}

void liveness_end_task(struct liveness *liveness)
{
	liveness_sign(liveness);
	atomic_fetch_sub(&liveness->tasks, 1);
}

bool run_is_hung(const struct run *run, const struct liveness *liveness)
{
	const struct s3once_options *o = &run->options;
	const uint64_t ms = o->lease_ms > o->give_up_after_ms ? o->lease_ms : o->give_up_after_ms;
	const uint64_t seen_ns = atomic_load(&liveness->seen_ns), now_ns = clock_boot_ns();
	/* Another thread may have given a sign after now_ns. */
	const uint64_t silent_ns = now_ns > seen_ns ? now_ns - seen_ns : 0;
	return atomic_load(&liveness->tasks) && silent_ns >= ms * NS_PER_MS;
}

bool run_grace_is_over(void *arg)
{
	const struct run *run = arg;
	const uint64_t ends_ns = atomic_load(&run->end.grace_ends_ns);
	return ends_ns && clock_monotonic_ns() >= ends_ns;
}

bool run_is_over(void *arg)
{
	struct run *run = arg;
	return run_grace_is_over(arg) || atomic_load(&run->end.fenced) ||
	       atomic_load(&run->end.failed_setup) || progress_poll_is_over(&run->progress) ||
	       (run->session && session_is_fenced(run->session));
}

bool run_is_stopping(void *arg)
{
	struct run *run = arg;
	return run_is_over(arg) || atomic_load(&run->end.grace_ends_ns);
}

bool run_ends_scan(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->scanning);
	/* After a limit, a scan with --final goes on until the grace is over (run_is_over()),
	 * unless the run was asked to stop. The queue takes none of its files then: they are only
	 * reported. */
	const bool is_at_limit =
		atomic_load(&run->end.limit) && !atomic_load(&run->end.was_asked_to_stop);
	const bool only_reports = run->options.final && is_at_limit;
	return only_reports ? run_is_over(run) : run_is_stopping(run);
}

bool run_poll_is_over(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->liveness);
	return run_is_over(run);
}

bool run_poll_is_stopping(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->liveness);
	return run_is_stopping(run);
}

bool run_poll_while_reading(void *arg)
{
	struct run *run = arg;
	progress_note_local_work(&run->progress);
	return run_poll_is_over(run);
}

bool run_is_stuck(void *arg)
{
	const struct run *run = arg;
	return run_is_hung(run, &run->liveness);
}

/* Whether a request that makes something visible has to end: the run is over, or our lease has run
 * out, so that another uploader may be sending the same file. */
static bool is_over_or_expired(void *arg)
{
	struct run *run = arg;
	return run_poll_is_over(run) || clock_boot_ns() >= session_lease_ends_ns(run->session);
}

struct call_limits run_limits(struct run *run)
{
	return (struct call_limits){.abandon = run_poll_is_over,
		.abandon_arg = run,
		.patience_ms = run->options.give_up_after_ms,
		.progress = &run->progress};
}

struct call_limits run_visible_limits(struct run *run)
{
	struct call_limits limits = run_limits(run);
	limits.abandon = is_over_or_expired;
	return limits;
}

bool run_excludes_size(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event)
{
	const uint64_t max_bytes = run->options.max_bytes;
	const bool is_too_large = max_bytes && bytes > max_bytes;
	*ret_event = is_too_large ? S3ONCE_EVENT_OVERSIZED : S3ONCE_EVENT_UNDERSIZED;
	return is_too_large || bytes < run->options.min_bytes;
}

/* Returns service_clock_ahead_s() of S3, or 0 if the run does not use S3 yet. */
static int64_t clock_ahead_s(const struct run *run)
{
	return run->s3 ? service_clock_ahead_s(s3_service(run->s3)) : 0;
}

/* Whether the age of files is counted by this host's clock, not by that of a service. */
static bool counts_by_own_clock(const struct run *run)
{
	return !run->store->service;
}

bool run_removal_is_due(const struct run *run, int64_t done_at_s)
{
	const struct s3once_options *o = &run->options;
	if (!o->removes)
		return false;
	if (!o->remove_after_s) /* the age does not matter */
		return true;
	/* Local marks have their times from the clock of this host. If that is wrong, so may be the
	 * age. */
	if (counts_by_own_clock(run) && clock_ahead_s(run))
		return false;
	/* The age is negative if the store's clock was set back since the file was done, and then
	 * the file is not due yet. */
	const int64_t age_s = store_time_s(run->store) - done_at_s;
	return age_s >= 0 && (uint64_t)age_s >= o->remove_after_s;
}

void candidate_note_mark(struct candidate *c, const struct mark *mark)
{
	c->mark_state = mark->state;
	memcpy(c->mark_session, mark->session, sizeof c->mark_session);
}

bool run_skips_by_mark(const struct run *run, const struct candidate *c, const struct mark *mark)
{
	const struct s3once_options *o = &run->options;
	const struct file_version found = {
		c->size, c->mtime_ns, c->content_id, c->is_piped, o->producer_id};
	/* With these options, files that are done are sent again or read. */
	if (o->reupload || o->compare_content || mark_says(mark, &found) != SAYS_DONE)
		return false;
	/* A file whose mark notes a newer version is not skipped, since the note may have to be
	 * cleared. Nor is a file that is due for removal. */
	return !mark->has_newer && !run_removal_is_due(run, mark->at_s);
}

void run_report_unfinished(struct run *run, const struct candidate *candidate)
{
	const struct report_file about = {candidate->path, candidate->object_key, candidate->size};
	if (run->options.final)
		report_file(&run->report, S3ONCE_EVENT_LEFT, &about, NULL);
}

void run_fail(struct run *run, const struct problem *problem)
{
	if (atomic_exchange(&run->end.failed_setup, true))
		return;
	report_run(&run->report, S3ONCE_EVENT_FATAL, problem);
	queue_enter_phase(run->queue, QUEUE_CLOSED);
}

/* Begins the grace. Returns false if the grace had begun before. */
static bool begin_grace(struct run *run)
{
	uint64_t none = 0;
	const uint64_t ends_ns = clock_monotonic_ns() + run->options.grace_ms * NS_PER_MS;
	return atomic_compare_exchange_strong(&run->end.grace_ends_ns, &none, ends_ns);
}

void run_reach_limit(struct run *run, const char *limit)
{
	const char *none = NULL;
	if (!atomic_compare_exchange_strong(&run->end.limit, &none, limit))
		return;
	report_run(&run->report, S3ONCE_EVENT_NOTE, PROBLEM("%s", limit));
	begin_grace(run);
	queue_enter_phase(run->queue, QUEUE_CLOSED);
}

/* The limit is reached once the bodies that were begun before this one add up to
 * max_transfer_bytes, or once so many bytes were sent (report.sent, which counts bytes that are
 * sent again). The first body is sent whatever its size, so that each run makes progress. */
bool run_may_send_body(struct run *run, uint64_t bytes)
{
	const uint64_t max_bytes = run->options.max_transfer_bytes;
	const uint64_t begun_before = atomic_fetch_add(&run->end.begun_bytes, bytes);
	if (begun_before < max_bytes && atomic_load(&run->report.sent) < max_bytes)
		return true;
	run_reach_limit(
		run, "--max-transfer is reached: nothing more is sent; the next run goes on");
	return false;
}

void run_fence(struct run *run, const char *why)
{
	if (atomic_exchange(&run->end.fenced, true))
		return;
	report_run(&run->report, S3ONCE_EVENT_FATAL,
		PROBLEM("stopped, because %s; the other uploader continues what was under way; "
			"run again for the rest",
			why));
	queue_enter_phase(run->queue, QUEUE_CLOSED);
}

void run_check_lease(struct run *run)
{
	if (run->session && session_is_fenced(run->session))
		run_fence(run, session_fence_reason(run->session));
}

void run_check_progress(struct run *run)
{
	struct problem why, explained;
	/* Once the grace is over, tasks are given up, which would look like progress. Until then,
	 * run_warn_of_wait() has reported the wait. */
	if (run_grace_is_over(run) || !progress_poll_is_over(&run->progress))
		return;
	const uint64_t still_ns = progress_still_ns(&run->progress, &why);
	explained = why;
	snprintf(explained.text, sizeof explained.text,
		"%.800s; nothing has moved for %llu s (--give-up-after): run again when it answers",
		why.text, (unsigned long long)(still_ns / NS_PER_S));
	run_fail(run, &explained);
}

/* A shorter time without progress is not worth a warning when the run is stopped. */
#define WORTH_A_WARNING_NS (PROGRESS_SAY_NS / 2)

void run_warn_of_wait(struct run *run)
{
	struct problem why;
	const uint64_t still_ns = progress_still_ns(&run->progress, &why);
	if (!atomic_load(&run->end.was_asked_to_stop) || still_ns < WORTH_A_WARNING_NS)
		return;
	problem_prefix(&why, "when it was stopped, nothing had moved for %llu s",
		(unsigned long long)(still_ns / NS_PER_S));
	report_run(&run->report, S3ONCE_EVENT_WARNING, &why);
}

void run_ask_to_stop(struct run *run)
{
	atomic_store(&run->end.was_asked_to_stop, true);
	/* The grace ends now if it had begun before, by another call or at a limit. */
	if (!begin_grace(run))
		atomic_store(&run->end.grace_ends_ns, clock_monotonic_ns());
}

#define RENEWAL "RenewLease" /* named like a request */

/* Whether the run is over. This is polled during the wait for the lease, which is noted as a
 * request that fails, so that no answer to another request counts as progress. A host that was
 * suspended has not tried to renew the lease yet, and progress_poll_is_over() does not count that
 * time. */
static bool poll_is_over_without_lease(void *arg)
{
	struct run *run = arg;
	progress_failed(&run->progress, RENEWAL,
		PROBLEM("the lease is not renewed, since the marks cannot be reached"));
	return run_poll_is_over(run);
}

bool run_wait_for_lease(struct run *run)
{
	if (!session_wait_for_lease(run->session, poll_is_over_without_lease, run))
		return false;
	progress_answered(&run->progress, RENEWAL);
	return true;
}

static bool abandons_at_once(void *arg)
{
	return true;
}

bool run_has_lease(struct run *run)
{
	return session_wait_for_lease(run->session, abandons_at_once, NULL);
}

enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn,
	const struct call_limits *limits, struct problem *problem)
{
	const enum outcome o = s3_look_for_bucket(conn, limits, problem);
	if (o == OUTCOME_ABSENT)
		problem_set(problem,
			"the bucket %s does not exist at %s; create it, or check name and region",
			run->options.bucket, quote(run->aws->s3_endpoint).text);
	return o;
}

/* Adds the URL of the run's target. With --as it is only the folder of the key, since the key of a
 * nightly output changes each night. */
static void add_job_target(struct text *t, const struct run *run)
{
	const char *as = run->options.as, *prefix = as ? as : run->options.prefix;
	const size_t n = as ? (size_t)(path_name(as) - as) : strlen(prefix);
	text_addf(t, "s3://%s%s%.*s", run->options.bucket, n ? "/" : "", (int)n, prefix);
}

/* Adds the same URL, escaped for a terminal. */
static void add_readable_target(struct text *t, const struct run *run)
{
	struct text target = TEXT(8192);
	add_job_target(&target, run);
	text_add_escaped_string(t, text_string(&target));
	text_clear(&target);
}

/* The kind that a SOURCE is taken for if it cannot be reached. */
enum unreached { UNREACHED_IS_FOLDER, UNREACHED_IS_FILE };

/* Adds a SOURCE that cannot be reached, by the path that it would have, as add_source() would add
 * it. Without memory, the path is added as it is. */
static void add_unreached_source(struct text *t, const char *path, enum unreached unreached)
{
	char *would_be = path_resolve_existing(path), *folder = NULL;
	const char *whole = would_be ? would_be : path;
	if (unreached == UNREACHED_IS_FILE)
		folder = path_folder(whole);
	text_addf(t, "%s%s ", folder ? folder : whole, unreached == UNREACHED_IS_FILE ? "/*" : "");
	free(would_be);
	free(folder);
}

/* Adds the text by which a SOURCE counts: a directory by its path, and a file by its folder with
 * an asterisk. With `read` a SOURCE is only a name. */
static void add_source(struct text *t, const struct run *run, size_t i, enum unreached unreached)
{
	const struct s3once_options *o = &run->options;
	const char *path = scan_source_path(run->files.scan, i); /* of a file: its folder */
	if (!o->read && scan_source_error(run->files.scan, i)) {
		add_unreached_source(t, path, unreached);
		return;
	}
	const bool is_folder = o->read || scan_source_is_directory(run->files.scan, i);
	text_addf(t, "%s%s ", path, is_folder ? "" : "/*");
}

/* Adds the texts of all SOURCEs. Files of one folder, which come one after the other, have the same
 * text: it is added only once. */
static void add_sources_once(struct text *t, const struct run *run, enum unreached unreached)
{
	struct text source = TEXT(8192);
	size_t last_at = 0; /* the start of the last text that was added */
	for (size_t i = 0; i < run->options.n_sources; i++) {
		text_reset(&source);
		add_source(&source, run, i, unreached);
		const bool is_first = !t->len;
		if (is_first || strcmp(t->data + last_at, text_string(&source)) != 0) {
			last_at = t->len;
			text_add(t, text_string(&source));
		}
	}
	text_clear(&source);
}

/* Makes the key of the job's row, from options.job or else from the sources and the target. A file
 * counts by its folder, since each night's files have other names. */
static void make_job_key(const struct run *run, enum unreached unreached, struct job_key *ret)
{
	const struct s3once_options *o = &run->options;
	struct process self;
	struct text name = TEXT(32U << 10);
	process_self(&self);
	if (o->job) {
		text_add(&name, o->job);
	} else {
		add_sources_once(&name, run, unreached);
		add_job_target(&name, run);
	}
	const struct job_name whole = {
		.host = self.host, .job = text_string(&name), .machine = run->machine};
	job_key_make(&whole, ret);
	text_clear(&name);
}

/* Makes the keys under which the job's row may be. A write tries them in this order, until one is
 * not refused. Returns their number.
 *
 * A SOURCE that cannot be reached may have been a directory or a file. So the row of either is
 * looked for. If the SOURCE does not exist and there is no row, the path is probably mistyped. No
 * row is made then, since the runs of the right path would have another one, and nothing would ever
 * correct this one. */
static size_t make_job_keys(const struct run *run, struct job_key ret[static 2])
{
	bool is_unreached = false, is_missing = false;
	for (size_t i = 0; !run->options.job && i < run->options.n_sources; i++) {
		const int error = scan_source_error(run->files.scan, i);
		is_unreached |= error != 0;
		is_missing |= error == -ENOENT || error == -ENOTDIR;
	}
	make_job_key(run, UNREACHED_IS_FOLDER, &ret[0]);
	if (!is_unreached)
		return 1;
	make_job_key(run, UNREACHED_IS_FILE, &ret[1]);
	ret[0].only_updates = true;
	ret[1].only_updates = is_missing;
	return 2;
}

/* Warns once if the server's clock, which its replies have shown, is not that of this host. The
 * caller holds run->locked.mutex. */
static void warn_of_clock_locked(struct run *run)
{
	const long long ahead_s = clock_ahead_s(run);
	const struct s3once_options *o = &run->options;
	if (!ahead_s || run->locked.has_warned_of_clock)
		return;
	run->locked.has_warned_of_clock = true;
	report_run(&run->report, S3ONCE_EVENT_WARNING,
		PROBLEM(ahead_s > 0 ? "this host's clock is %lld s ahead of the server's: set it%s"
				    : "this host's clock is %lld s behind the server's: set it%s",
			llabs(ahead_s),
			o->removes && o->remove_after_s && counts_by_own_clock(run)
				? "; no file is removed by its age until then"
				: ""));
}

/* Sends HeadBucket, unless an earlier one was answered. Returns false with a problem if the run
 * cannot go on. The caller holds run->locked.mutex. */
static bool look_for_bucket_locked(struct run *run, struct problem *problem)
{
	struct s3_conn *conn;
	struct call_limits limits = run_limits(run);
	limits.abandon = run_is_stopping; /* no upload needs the answer any more */
	if (run->locked.head_bucket_answered)
		return true;
	if (s3_conn_new(run->s3, &conn))
		return problem_error(problem, false, PROBLEM_NO_DESCRIPTORS);
	const enum outcome o = run_look_for_bucket(run, conn, &limits, problem);
	s3_conn_free(conn);
	/* HeadBucket answers 403 if s3:ListBucket is missing. That says nothing about the uploads,
	 * and run_look_for_bucket() has made sure that the credentials are not the reason. */
	if (o == OUTCOME_DENIED)
		log_info("HeadBucket is refused (no s3:ListBucket), and left out");
	run->locked.head_bucket_answered = o == OUTCOME_OK || o == OUTCOME_DENIED;
	if (run->locked.head_bucket_answered)
		atomic_store(&run->bucket_answers, true);
	else
		run->locked.no_answer = *problem;
	/* Any other failure does not end the run here. If it lasts, the requests of the uploads
	 * meet it again, or the run has nothing to send, and ends without success. */
	return o != OUTCOME_ABSENT && o != OUTCOME_SETUP;
}

void run_ensure_bucket_exists(struct run *run)
{
	struct problem problem = {0};
	uv_mutex_lock(&run->locked.mutex);
	const bool can_go_on = atomic_load(&run->bucket_answers) || run_is_stopping(run) ||
			       look_for_bucket_locked(run, &problem);
	warn_of_clock_locked(run);
	uv_mutex_unlock(&run->locked.mutex);
	if (!can_go_on && !run_is_stopping(run))
		run_fail(run, &problem);
}

/* Notes the start of this session in the row of the job. */
static void begin_job(struct run *run, struct store_conn *marks)
{
	struct call_limits limits = run_limits(run);
	struct text target = TEXT(32U << 10);
	struct job_key keys[2];
	struct problem problem = {0};
	limits.deadline_ns = clock_boot_ns() + JOB_PATIENCE_NS;
	add_readable_target(&target, run);
	const struct job_begin begin = {
		.session = session_id(run->session), .target = text_string(&target)};
	enum outcome o = OUTCOME_REFUSED;
	const size_t n = make_job_keys(run, keys);
	for (size_t i = 0; i < n && o == OUTCOME_REFUSED; i++)
		o = job_row_begin(marks, &keys[i], &begin, &limits, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("s3once status and fleet do not show this run while it lasts: %s",
			problem.text);
	text_clear(&target);
}

/* Looks for the bucket, and then begins the session, except in a dry run. Returns false with a
 * problem if the run cannot go on. The caller holds run->locked.mutex. */
static bool begin_session_locked(struct run *run, struct store_conn *marks, struct problem *problem)
{
	const bool can_go_on = look_for_bucket_locked(run, problem);
	/* The row of the bucket may say which conditions this server honours, as an earlier run has
	 * found out. That is believed only of a server of the same name, which the reply to
	 * HeadBucket contained. */
	conditions_recall(&run->locked.bucket, run->s3, store_time_s(run->store));
	if (!can_go_on || run->dry)
		return can_go_on;
	return session_begin(run->session, marks, problem) == OUTCOME_OK;
}

bool run_ensure_begun(struct run *run, struct store_conn *marks)
{
	struct problem problem = {0};
	uv_mutex_lock(&run->locked.mutex);
	/* If the first call has failed, the run is over, and later calls do not try again. */
	const bool is_first = !run->locked.begun && !run_is_over(run);
	if (is_first) {
		run->locked.begun = begin_session_locked(run, marks, &problem);
		if (!run->locked.begun && !run_is_over(run))
			run_fail(run, &problem);
	}
	const bool begun = run->locked.begun;
	uv_mutex_unlock(&run->locked.mutex);
	/* The first worker notes the start of the session in the row of the job. Only s3once fleet
	 * and status read that row. So no other worker waits for it, and the mutex is free. */
	if (is_first && begun && !run->dry && !run->options.folders)
		begin_job(run, marks);
	return begun;
}

/* Writes the end of the run into the row of its job. REFUSED: there is no row, and this run must
 * not create one. */
static enum outcome write_job_end(struct run *run, struct store_conn *conn, const char *session,
	enum s3once_exit exit, struct problem *ret_problem)
{
	const struct s3once_counts counts = report_get_counts(&run->report);
	const struct call_limits limits = {.deadline_ns = clock_boot_ns() + JOB_PATIENCE_NS};
	struct text target = TEXT(32U << 10), failures = TEXT(REPORT_FAILURES_MAX + 1);
	struct job_key keys[2];
	struct problem error;
	add_readable_target(&target, run);
	report_get_errors(&run->report, &error, &failures);
	const struct job_end end = {.target = text_string(&target),
		.session = session,
		.error = exit == S3ONCE_EXIT_OK ? "" : error.text,
		.failures = exit == S3ONCE_EXIT_OK ? "" : text_string(&failures),
		.exit = (int)exit,
		.repeats = counts.repeats_s != 0,
		.found = counts.found,
		.uploaded = counts.uploaded,
		.failed = counts.failed + counts.changed + counts.not_removed,
		.bytes = counts.bytes_uploaded,
		.has_seen_all = counts.scan_complete,
		.waiting = counts.waiting,
		.waiting_since_s = counts.oldest_waiting_ns == INT64_MAX
					   ? 0
					   : counts.oldest_waiting_ns / (int64_t)NS_PER_S};
	/* A key that only_updates, and has no row, is REFUSED: then the second key is tried, if
	 * there is one. */
	enum outcome o = OUTCOME_REFUSED;
	const size_t n = make_job_keys(run, keys);
	for (size_t i = 0; i < n && o == OUTCOME_REFUSED; i++)
		o = job_row_end(conn, &keys[i], &end, &limits, ret_problem);
	text_clear(&target);
	text_clear(&failures);
	return o;
}

void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	struct problem problem = {0};
	/* The end of a run of some folders is not the end of the job. */
	if (run->options.folders)
		return;
	const enum outcome o = write_job_end(run, conn, session, exit, &problem);
	if (o == OUTCOME_OK || o == OUTCOME_REFUSED)
		return;
	/* After SETUP this is only logged, since the reason was already reported. */
	if (exit == S3ONCE_EXIT_SETUP) {
		log_info("the row of this job cannot be written: %s", problem.text);
		return;
	}
	problem_format(&problem, sentence, sizeof sentence);
	report_run(&run->report, S3ONCE_EVENT_WARNING,
		PROBLEM("s3once fleet does not show how this run ended, since the row of its job "
			"cannot be written: %s",
			sentence));
}
