/* When a run is over, what it leaves out, and what it may still begin: the decisions of run.c, each
 * as a table of all cases. */
#include "../check.h"
#include "base/clock.h"
#include "upload/push_struct.h"
#include <string.h>

static struct s3once_push *push;
static struct run *run;
static unsigned events[64];
static char said[800];

static void note(void *arg, const struct s3once_event *event)
{
	(void)arg;
	events[event->type]++;
	if (*event->text)
		snprintf(said, sizeof said, "%s", event->text);
}

/* A run that has nothing but its options, and a queue. */
static bool begin(void (*change)(struct s3once_options *options))
{
	static const char *const sources[] = {"."};
	char text[400];
	struct s3once_options options = {.sources = sources,
		.n_sources = 1,
		.bucket = "b",
		.marks = "sqlite:/nowhere/at/all",
		.callback = note};
	if (change)
		change(&options);
	memset(events, 0, sizeof events);
	*said = '\0';
	if (!CHECK_INT(s3once_push_new(&options, &push, text, sizeof text), 0)) {
		fprintf(stderr, "\t%s\n", text);
		return false;
	}
	run = &push->run;
	return CHECK_INT(queue_new(1, 8 << 20, QUEUE_BY_TURNS, &run->queue), 0);
}

static void end(void)
{
	run->store = NULL;
	s3once_push_free(push);
}

/* Each reason to end a run, and what it is the end of. */
static void test_over(void)
{
	enum { NO_GRACE, GRACE, GRACE_OVER, GRACES };
	if (!begin(NULL))
		return;
	for (unsigned k = 0; k < GRACES * 64; k++) {
		const unsigned grace = k % GRACES, bits = k / GRACES;
		const bool fenced = bits & 1, failed = bits & 2, still = bits & 4;
		const bool final = bits & 8, limited = bits & 16, asked = bits & 32;
		const uint64_t now_ns = clock_monotonic_ns();
		atomic_store(&run->end.grace_ends_ns, grace == NO_GRACE ? 0
						      : grace == GRACE  ? now_ns + 3600 * NS_PER_S
									: now_ns);
		atomic_store(&run->end.fenced, fenced);
		atomic_store(&run->end.failed_setup, failed);
		atomic_store(&run->progress.is_over, still);
		run->options.final = final;
		atomic_store(&run->end.limit, limited ? "limit" : NULL);
		atomic_store(&run->end.was_asked_to_stop, asked);
		const bool is_over = grace == GRACE_OVER || fenced || failed || still;
		const bool is_stopping = is_over || grace != NO_GRACE;
		/* With --final, a limit does not end the scan, which names the files that are
		 * left, unless somebody has asked for the end. */
		const bool ends_scan =
			is_over || (grace != NO_GRACE && !(final && limited && !asked));
		bool good = CHECK_INT(run_is_over(run), is_over);
		good &= CHECK_INT(run_poll_is_over(run), is_over);
		good &= CHECK_INT(run_poll_while_reading(run), is_over);
		good &= CHECK_INT(run_limits(run).abandon(run), is_over);
		good &= CHECK_INT(run_is_stopping(run), is_stopping);
		good &= CHECK_INT(run_poll_is_stopping(run), is_stopping);
		good &= CHECK_INT(run_ends_scan(run), ends_scan);
		good &= CHECK_INT(run_grace_is_over(run), grace == GRACE_OVER);
		if (!good)
			fprintf(stderr, "\tcase %u\n", k);
	}
	atomic_store(&run->progress.is_over, false);
	end();
}

static void set_times(struct s3once_options *o)
{
	o->grace_ms = 100 * 1000;
	o->give_up_after_ms = 60 * 1000;
	o->lease_ms = 30 * 1000;
}

/* Whether the grace ends about `s` seconds from now. */
static bool grace_ends_in(uint64_t s)
{
	const uint64_t ends_ns = atomic_load(&run->end.grace_ends_ns),
		       now_ns = clock_monotonic_ns();
	return ends_ns <= now_ns + s * NS_PER_S && ends_ns + 20 * NS_PER_S > now_ns + s * NS_PER_S;
}

static void test_stops(void)
{
	if (begin(set_times)) {
		run_ask_to_stop(run);
		CHECK(grace_ends_in(100));
		CHECK(run_is_stopping(run) && !run_is_over(run));
		CHECK(atomic_load(&run->end.was_asked_to_stop));
		CHECK(!atomic_load(&run->end.limit));
		const uint64_t ends_ns = atomic_load(&run->end.grace_ends_ns);
		run_reach_limit(run, "limit"); /* does not put off the end */
		CHECK_INT(atomic_load(&run->end.grace_ends_ns), ends_ns);
		run_ask_to_stop(run);
		CHECK(run_is_over(run));
		end();
	}
	if (begin(set_times)) { /* the grace of a limit is over at the first call */
		run_reach_limit(run, "limit");
		run_reach_limit(run, "another limit");
		CHECK(grace_ends_in(100));
		CHECK_INT(events[S3ONCE_EVENT_NOTE], 1);
		CHECK_STRING(said, "limit");
		CHECK(!atomic_load(&run->end.was_asked_to_stop));
		struct task task;
		queue_take(run->queue, &task); /* it is closed, so this does not wait */
		CHECK_INT(task.kind, TASK_END);
		run_ask_to_stop(run);
		CHECK(run_is_over(run));
		end();
	}
}

/* A failure and a fence end the run at once, close the queue, and are reported once. */
static void test_ends_at_once(void)
{
	for (int fences = 0; fences < 2; fences++) {
		struct task task;
		if (!begin(NULL))
			return;
		for (int i = 0; i < 2; i++) {
			if (fences)
				run_fence(run, i ? "two" : "one");
			else
				run_fail(run, PROBLEM(i ? "two" : "one"));
			CHECK(run_is_over(run));
			CHECK_INT(events[S3ONCE_EVENT_FATAL], 1);
			CHECK(strstr(said, "one") != NULL);
		}
		CHECK_INT(atomic_load(&run->end.fenced), fences);
		CHECK_INT(atomic_load(&run->end.failed_setup), !fences);
		CHECK_INT(atomic_load(&run->end.grace_ends_ns), 0);
		queue_take(run->queue, &task);
		CHECK_INT(task.kind, TASK_END);
		end();
	}
}

/* Threads hang if tasks are under way, and none has given a sign of life for the longer one of
 * --give-up-after and the lease. */
static void test_liveness(void)
{
	static const struct {
		uint64_t lease_s, give_up_s, silent_s;
		int tasks;
		bool is_lost;
	} rows[] = {
		{30, 60, 61, 1, true},
		{30, 60, 59, 1, false},
		{30, 60, 31, 1, false},
		{60, 30, 61, 1, true},
		{60, 30, 59, 2, false},
		{60, 30, 61, 0, false},
		{30, 60, 3600, 0, false},
		{30, 60, 3600, 7, true},
	};
	if (!begin(NULL))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		run->options.lease_ms = rows[i].lease_s * 1000;
		run->options.give_up_after_ms = rows[i].give_up_s * 1000;
		struct liveness liveness = {0};
		for (int n = 0; n < rows[i].tasks; n++)
			liveness_begin_task(&liveness);
		const uint64_t now_ns = clock_boot_ns(), silent_ns = rows[i].silent_s * NS_PER_S;
		if (now_ns < silent_ns + NS_PER_S) /* a host that has just started */
			continue;
		atomic_store(&liveness.seen_ns, now_ns - silent_ns);
		bool good = CHECK_INT(run_is_hung(run, &liveness), rows[i].is_lost);
		liveness_sign(&liveness);
		good &= CHECK(!run_is_hung(run, &liveness));
		good &= CHECK_INT(atomic_load(&liveness.tasks), rows[i].tasks);
		atomic_store(&liveness.seen_ns, now_ns + 3600 * NS_PER_S);
		good &= CHECK(!run_is_hung(run, &liveness));
		if (rows[i].tasks)
			liveness_end_task(&liveness);
		good &= CHECK_INT(
			atomic_load(&liveness.tasks), rows[i].tasks ? rows[i].tasks - 1 : 0);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	/* Each question of a worker is a sign of its life, and each one of the scan of the scan's.
	 */
	atomic_store(&run->liveness.seen_ns, 0);
	atomic_store(&run->scanning.seen_ns, 0);
	run_is_over(run);
	run_is_stopping(run);
	CHECK_INT(atomic_load(&run->liveness.seen_ns), 0);
	run_ends_scan(run);
	CHECK(atomic_load(&run->scanning.seen_ns) != 0);
	CHECK_INT(atomic_load(&run->liveness.seen_ns), 0);
	bool (*const asks[])(void *) = {
		run_poll_is_over, run_poll_is_stopping, run_poll_while_reading};
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		atomic_store(&run->liveness.seen_ns, 0);
		asks[i](run);
		CHECK(atomic_load(&run->liveness.seen_ns) != 0);
	}
	atomic_store(&run->liveness.tasks, 1);
	atomic_store(&run->liveness.seen_ns, 1);
	run->options.lease_ms = run->options.give_up_after_ms = 1;
	CHECK(run_is_stuck(run));
	atomic_store(&run->liveness.tasks, 0);
	end();
}

static void test_sizes(void)
{
	static const struct {
		uint64_t least, most, bytes;
		bool is_left_out;
		enum s3once_event_type event;
	} rows[] = {
		{0, 0, 0, false, 0},
		{0, 0, UINT64_MAX, false, 0},
		{0, 10, 10, false, 0},
		{0, 10, 11, true, S3ONCE_EVENT_OVERSIZED},
		{5, 10, 5, false, 0},
		{5, 10, 4, true, S3ONCE_EVENT_UNDERSIZED},
		{5, 0, 4, true, S3ONCE_EVENT_UNDERSIZED},
		{5, 5, 5, false, 0},
		{5, 5, 6, true, S3ONCE_EVENT_OVERSIZED},
		{1, 0, 0, true, S3ONCE_EVENT_UNDERSIZED},
	};
	if (!begin(NULL))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		enum s3once_event_type event;
		run->options.min_bytes = rows[i].least;
		run->options.max_bytes = rows[i].most;
		bool good = CHECK_INT(
			run_excludes_size(run, rows[i].bytes, &event), rows[i].is_left_out);
		good &= !rows[i].is_left_out || CHECK_INT(event, rows[i].event);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	end();
}

static int64_t store_time(const struct store *store)
{
	(void)store;
	return 1000;
}
static const struct store_ops clock_alone = {.time_s = store_time};
static struct store store_of_time = {.ops = &clock_alone};

static void test_due_for_removal(void)
{
	static const struct {
		bool removes;
		uint64_t after_s;
		int64_t done_at_s;
		bool is_due;
	} rows[] = {
		{false, 0, 0, false},
		{true, 0, 0, true},
		{true, 0, 5000, true}, /* the store's clock was set back, and no age is asked for */
		{true, 10, 990, true},
		{true, 10, 991, false},
		{true, 10, 1000, false},
		{true, 10, 1001, false},
		{true, 10, 5000, false},
		{true, 10, -5000, true},
		{true, UINT64_MAX, 0, false},
		{false, 10, 0, false},
	};
	if (!begin(NULL))
		return;
	run->store = &store_of_time;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		run->options.removes = rows[i].removes;
		run->options.remove_after_s = rows[i].after_s;
		if (!CHECK_INT(run_removal_is_due(run, rows[i].done_at_s), rows[i].is_due))
			fprintf(stderr, "\trow %zu\n", i);
	}
	end();
}

/* A file is skipped if its mark says done of this version, and there is nothing else to do. */
static void test_skips(void)
{
	static const enum mark_state states[] = {
		MARK_ABSENT, MARK_CLAIMED, MARK_DONE, MARK_FAILED, MARK_FORGOTTEN, MARK_UNREADABLE};
	if (!begin(NULL))
		return;
	run->store = &store_of_time;
	run->options.remove_after_s = 10;
	for (unsigned k = 0; k < 64 * sizeof states / sizeof *states; k++) {
		const enum mark_state state = states[k / 64];
		const bool has_newer = k & 1, reupload = k & 2, compares = k & 4, is_other = k & 8;
		const bool removes = k & 16, is_due = k & 32;
		struct candidate c = {.size = 5, .mtime_ns = 7, .content_id = (char[]){""}};
		const struct mark mark = {.state = state,
			.session = "0123456789abcdef",
			.has_done = true,
			.done = {.size = is_other ? 6 : 5, .mtime_ns = 7},
			.has_newer = has_newer,
			.at_s = is_due ? 990 : 991};
		run->options.reupload = reupload;
		run->options.compare_content = compares;
		run->options.removes = removes;
		const bool skips = state == MARK_DONE && !is_other && !has_newer && !reupload &&
				   !compares && !(removes && is_due);
		candidate_note_mark(&c, &mark);
		bool good = CHECK_INT(run_skips_by_mark(run, &c, &mark), skips);
		good &= CHECK_INT(c.mark_state, state);
		good &= CHECK_STRING(c.mark_session, mark.session);
		if (!good)
			fprintf(stderr, "\tcase %u\n", k);
	}
	end();
}

/* --max-transfer counts bodies as they are begun, and also bytes that were sent more than once. The
 * first body is sent whatever its size. */
static void test_most_bytes(void)
{
	static const struct {
		uint64_t bodies[4], sent; /* `sent`: before the last of the bodies */
		unsigned may;             /* a bit for each body that may be sent */
	} rows[] = {
		{{50, 49, 1, 1}, 0, 7},
		{{100, 1, 1, 1}, 0, 1},
		{{500, 1, 1, 1}, 0, 1},
		{{99, 500, 1, 1}, 0, 3},
		{{1, 1, 1, 1}, 99, 15},
		{{1, 1, 1, 1}, 100, 7},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!begin(NULL))
			return;
		run->options.max_transfer_bytes = 100;
		unsigned may = 0;
		for (unsigned n = 0; n < 4; n++) {
			if (n == 3)
				atomic_store(&run->report.sent, rows[i].sent);
			may |= (unsigned)run_may_send_body(run, rows[i].bodies[n]) << n;
			CHECK_INT(atomic_load(&run->end.limit) != NULL, may != (2U << n) - 1);
		}
		bool good = CHECK_INT(may, rows[i].may);
		good &= CHECK_INT(events[S3ONCE_EVENT_NOTE], rows[i].may != 15);
		good &= CHECK(!run_is_over(run));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		end();
	}
}

/* A run that was asked to stop tells of a wait that has lasted, and only such a run does. */
static void test_wait_at_a_stop(void)
{
	for (unsigned k = 0; k < 4; k++) {
		const bool asked = k & 1, is_long = k & 2;
		if (!begin(NULL))
			return;
		run->progress.locked.still_ns =
			is_long ? PROGRESS_SAY_NS / 2 : PROGRESS_SAY_NS / 2 - 1;
		atomic_store(&run->end.was_asked_to_stop, asked);
		run_warn_of_wait(run);
		if (!CHECK_INT(events[S3ONCE_EVENT_WARNING], asked && is_long))
			fprintf(stderr, "\tcase %u\n", k);
		end();
	}
}

/* The end of the clock is the failure of the run, unless its grace has ended it. */
static void test_nothing_moves(void)
{
	for (unsigned k = 0; k < 4; k++) {
		const bool is_still = k & 1, grace_is_over = k & 2;
		if (!begin(NULL))
			return;
		atomic_store(&run->progress.is_over, is_still);
		atomic_store(&run->end.grace_ends_ns, grace_is_over ? 1 : 0);
		run_check_progress(run);
		if (!CHECK_INT(atomic_load(&run->end.failed_setup), is_still && !grace_is_over))
			fprintf(stderr, "\tcase %u\n", k);
		CHECK(!is_still || grace_is_over || strstr(said, "--give-up-after"));
		run_check_lease(run); /* without a session there is none to lose */
		CHECK(!atomic_load(&run->end.fenced));
		end();
	}
}

static char left[20];

static void note_left(void *arg, const struct s3once_event *event)
{
	CHECK_INT(event->type, S3ONCE_EVENT_LEFT);
	snprintf(left, sizeof left, "%s %s", event->path, event->key);
}

static void test_unfinished(void)
{
	for (int final = 0; final < 2; final++) {
		struct candidate c = {
			.path = (char[]){"p"}, .object_key = (char[]){"k"}, .size = 3};
		if (!begin(NULL))
			return;
		run->options.final = final;
		left[0] = '\0';
		s3once_callback *const counts = run->report.callback;
		run->report.callback = final ? note_left : counts;
		run_report_unfinished(run, &c);
		run->report.callback = counts;
		CHECK_STRING(left, final ? "p k" : "");
		CHECK_INT(report_get_counts(&run->report).left, final);
		CHECK_INT(report_get_counts(&run->report).bytes_left, final ? 3 : 0);
		end();
	}
}

/* All requests of a run share its patience and its clock. */
static void test_limits(void)
{
	if (!begin(set_times))
		return;
	const struct call_limits limits = run_limits(run), visible = run_visible_limits(run);
	CHECK_INT(limits.patience_ms, 60 * 1000);
	CHECK_INT(visible.patience_ms, 60 * 1000);
	CHECK(limits.progress == &run->progress && visible.progress == &run->progress);
	CHECK(limits.abandon_arg == run && visible.abandon_arg == run);
	CHECK(!limits.is_progress && !visible.is_progress);
	CHECK(limits.abandon == run_poll_is_over && visible.abandon != run_poll_is_over);
	CHECK(!limits.deadline_ns && !visible.deadline_ns);
	end();
}

int main(void)
{
	test_over();
	test_stops();
	test_ends_at_once();
	test_liveness();
	test_sizes();
	test_due_for_removal();
	test_skips();
	test_most_bytes();
	test_wait_at_a_stop();
	test_nothing_moves();
	test_unfinished();
	test_limits();
	return check_result();
}
