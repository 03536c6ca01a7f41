#include "upload/run.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "marks/bucket_conditions.h"
#include "upload/run_job.h"

bool run_is_over(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->liveness);
	if (session_is_fenced(run->session))
		run_fence(run, session_fence_reason(run->session));
	return atomic_load(&run->stop) > 1 || atomic_load(&run->fenced) ||
	       atomic_load(&run->failed_setup);
}

bool run_is_stopping(void *arg)
{
	const struct run *run = arg;
	return run_is_over(arg) || atomic_load(&run->stop);
}

static uint64_t patience_ns(const struct run *run)
{
	const struct s3once_options *o = &run->options;
	const uint64_t ms = o->lease_ms > o->give_up_after_ms ? o->lease_ms : o->give_up_after_ms;
	return ms * NS_PER_MS;
}

bool run_is_stuck(void *arg)
{
	const struct run *run = arg;
	return liveness_is_lost(&run->liveness, patience_ns(run));
}

bool run_scan_is_stuck(const struct run *run)
{
	return liveness_is_lost(&run->scanning, patience_ns(run));
}

unsigned run_files(void *arg)
{
	struct run *run = arg;
	return report_get(&run->report).in_flight;
}

static bool may_not_show(void *arg)
{
	struct run *run = arg;
	return run_is_over(run) || clock_boot_ns() >= session_lease_ends_ns(run->session);
}

struct call_limits run_limits(struct run *run)
{
	return (struct call_limits){.abandon = run_is_over,
		.abandon_arg = run,
		.patience_ms = run->options.give_up_after_ms};
}

struct call_limits run_visible_limits(struct run *run)
{
	return (struct call_limits){.abandon = may_not_show,
		.abandon_arg = run,
		.patience_ms = run->options.give_up_after_ms};
}

bool run_leaves_out(const struct run *run, uint64_t bytes, enum s3once_event_type *ret_event)
{
	const uint64_t most = run->options.max_bytes;
	const bool is_too_large = most && bytes > most;
	*ret_event = is_too_large ? S3ONCE_EVENT_OVERSIZED : S3ONCE_EVENT_UNDERSIZED;
	return is_too_large || bytes < run->options.min_bytes;
}

bool run_removes_by_now(const struct run *run, int64_t done_at_s)
{
	const struct s3once_options *o = &run->options;
	const int64_t age_s = store_time_s(run->store) - done_at_s;
	return o->removes &&
	       (!o->remove_after_s || (age_s >= 0 && (uint64_t)age_s >= o->remove_after_s));
}

bool run_skips(const struct run *run, const struct known_mark *mark, const struct asked *asked)
{
	return !run->options.reupload && !run->options.compare_content &&
	       known_is_done(mark, asked) && !run_removes_by_now(run, mark->at_s);
}

void run_fail(struct run *run, const struct problem *problem)
{
	if (atomic_exchange(&run->failed_setup, true))
		return;
	report_run(&run->report, S3ONCE_EVENT_FATAL, problem);
	queue_close(run->queue);
}

void run_reach_limit(struct run *run, const struct problem *said)
{
	int none = 0;
	if (atomic_exchange(&run->has_reached_limit, true))
		return;
	report_run(&run->report, S3ONCE_EVENT_NOTE, said);
	atomic_compare_exchange_strong(&run->stop, &none, 1);
	queue_close(run->queue);
}

/* A body that is sent again counts again. The first body is sent whatever its size, so that each
 * run makes progress.
 */
bool run_may_send(struct run *run, uint64_t bytes)
{
	const uint64_t most = run->options.max_transfer_bytes;
	struct problem said;
	if (!most)
		return true;
	if (atomic_fetch_add(&run->begun_bytes, bytes) < most &&
		atomic_load(&run->report.sent) < most)
		return true;
	problem_set(&said,
		"--max-transfer is reached: nothing more is sent, and the next run goes on from "
		"there");
	run_reach_limit(run, &said);
	return false;
}

void run_fence(struct run *run, const char *why)
{
	if (atomic_exchange(&run->fenced, true))
		return;
	struct problem problem;
	problem_set(&problem,
		"stopped, because %s; the other uploader continues what was under way; "
		"run again for the rest",
		why);
	report_run(&run->report, S3ONCE_EVENT_FATAL, &problem);
	queue_close(run->queue);
}

struct wait {
	struct run *run;
	uint64_t began_ns;
};

/* Not even heartbeats have got through, for as long as anything is tried again. A host that slept
 * has not tried: that counts from when it waits. */
static bool is_cut_off(const struct wait *wait)
{
	const uint64_t patience_ns = wait->run->options.give_up_after_ms * NS_PER_MS;
	const uint64_t ended_ns = session_lease_ends_ns(wait->run->session);
	const uint64_t since_ns = ended_ns > wait->began_ns ? ended_ns : wait->began_ns;
	return clock_boot_ns() >= since_ns + patience_ns;
}

static bool is_over_or_cut_off(void *arg)
{
	const struct wait *wait = arg;
	return run_is_over(wait->run) || is_cut_off(wait);
}

bool run_may_begin(struct run *run)
{
	struct problem problem;
	struct wait wait = {run, clock_boot_ns()};
	if (session_may_begin(run->session, is_over_or_cut_off, &wait))
		return true;
	if (!run_is_over(run)) {
		problem_set(&problem,

			"the lease expired and could not be renewed for %llu s: the marks cannot "
			"be reached; run again when they answer",
			(unsigned long long)run->options.give_up_after_ms / 1000);
		run_fail(run, &problem);
	}
	return false;
}

enum outcome run_look_for_bucket(struct run *run, struct s3_conn *conn, struct problem *problem)
{
	const struct call_limits limits = run_limits(run);
	const enum outcome o = s3_look_for_bucket(conn, &limits, problem);
	if (o == OUTCOME_ABSENT)
		problem_set(problem,
			"the bucket %s does not exist at %s; create it, or check its name and "
			"the region",
			run->options.bucket, quote(run->aws->s3_endpoint).text);
	return o;
}

/* Without s3:ListBucket HeadBucket answers 403: that says nothing about the uploads. */
static bool bucket_is_there(struct run *run, struct problem *problem)
{
	struct s3_conn *conn;
	if (s3_conn_new(run->s3, &conn)) {
		problem_set(problem, PROBLEM_NO_DESCRIPTORS);
		return false;
	}
	enum outcome o = run_look_for_bucket(run, conn, problem);
	s3_conn_free(conn);
	if (o == OUTCOME_DENIED)
		log_info("HeadBucket is refused (s3:ListBucket is missing): continuing without it");
	return o != OUTCOME_ABSENT && o != OUTCOME_SETUP;
}

bool run_begin(struct run *run, struct store_conn *marks)
{
	struct problem problem = {0};
	uv_mutex_lock(&run->locked.mutex);
	const bool is_first = !run->locked.begun && !run_is_over(run);
	if (is_first) {
		const bool is_there = bucket_is_there(run, &problem);
		batches_learner_end(&run->batches_learner);
		conditions_recall(&run->locked.bucket, run->s3, store_time_s(run->store));
		const bool good = is_there && (run->dry || session_begin(run->session, marks,
								   &problem) == OUTCOME_OK);
		if (!good && !run_is_over(run))
			run_fail(run, &problem);
		run->locked.begun = good;
	}
	const bool begun = run->locked.begun;
	uv_mutex_unlock(&run->locked.mutex);
	/* Only people read this row, so no other worker waits for it. */
	if (is_first && begun && !run->dry)
		run_job_begin(run, marks, run_limits(run));
	return begun;
}
