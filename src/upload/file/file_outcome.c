#include "base/clock.h"
#include "base/quote.h"
#include "upload/file/refusal_setting.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MOST_NS  (30 * NS_PER_S)

#define NOT_FOUND_AGAIN 2 /* so often a file is tried again after 404 */

static uint64_t pause_after(unsigned failures)
{
	const uint64_t pause_ns = AGAIN_FIRST_NS << (failures < 5 ? failures : 5);
	return pause_ns < AGAIN_MOST_NS ? pause_ns : AGAIN_MOST_NS;
}

/* The pause before the next try grows. The time for which the file waits for its turn does not
 * count. Its claim stays ours. */
enum step file_again(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct candidate *c = file->candidate;
	const struct report_file about = file_about(file);
	const uint64_t now = clock_boot_ns();
	struct problem said = *problem;
	/* Of the first turn only what the service says counts: the file may be a large one. */
	c->failing_ns += c->failures ? now - file->begun_ns : problem->failing_ms * NS_PER_MS;
	if (c->failing_ns / NS_PER_MS >= worker->run->options.give_up_after_ms) {
		if (c->failures)
			problem_prefix(&said, "failed after %u attempts", c->failures + 1);
		return file_fail(worker, file, &said);
	}
	const uint64_t pause_ns = pause_after(c->failures);
	c->failing_ns += pause_ns;
	c->failures++;
	problem_prefix(&said, "will be retried later");
	report_file(&worker->run->report, S3ONCE_EVENT_RETRY, &about, &said);
	c->known.state = MARK_CLAIMED; /* so that the mark is read first */
	queue_later(worker->run->queue, &c, 1, now + pause_ns);
	file->candidate = NULL;
	return STEP_LATER;
}

static enum step put_aside_refused(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem said = *problem;
	refusal_name_setting(file, &said);
	return refusals_keep(worker->run, file, &said) ? STEP_ASIDE
						       : file_fail(worker, file, &said);
}

/* 404 to a request that writes, although the bucket is there. Swift answers so while it cannot
 * reach the bucket's own server, which passes. Some servers answer so for a key that they cannot
 * store. */
static enum step not_found_in_bucket(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem said = *problem;
	const bool is_again = file->candidate->failures < NOT_FOUND_AGAIN;
	snprintf(said.text, sizeof said.text,
		"S3 answers 404 for this key, although bucket %s is there%s",
		quote(worker->run->options.bucket).text,
		is_again ? "" : ": the server may not take such keys");
	return is_again ? file_again(worker, file, &said) : put_aside_refused(worker, file, &said);
}

static enum step not_found(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct run *run = worker->run;
	struct problem said = {0};
	switch (run_look_for_bucket(run, worker->s3, &said)) {
	case OUTCOME_OK:
		return not_found_in_bucket(worker, file, problem);
	case OUTCOME_ABSENT:
	case OUTCOME_SETUP:
		run_fail(run, &said);
		return STEP_OVER;
	default:
		return put_aside_refused(worker, file, problem);
	}
}

enum step file_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	struct run *run = worker->run;
	if (run_is_over(run))
		return STEP_OVER;
	switch (outcome) {
	case OUTCOME_DENIED:
	case OUTCOME_SETTING:
		return put_aside_refused(worker, file, problem);
	case OUTCOME_INVALID:
	case OUTCOME_UNSUPPORTED:
		if (refusal_may_be_of_setting(file, problem))
			return put_aside_refused(worker, file, problem);
		break;
	case OUTCOME_ABSENT:
		return not_found(worker, file, problem);
	case OUTCOME_SETUP:
		if (strcmp(problem->code, "NoSuchBucket") == 0)
			return not_found(worker, file, problem);
		run_fail(run, problem);
		return STEP_OVER;
	case OUTCOME_LOST:
		/* What answered, but never as S3 does, will not begin to. */
		if (problem->status && !atomic_load(&run->refusals.has_stored))
			break;
		/* fall through */
	case OUTCOME_TRANSIENT:
	case OUTCOME_CONFLICT:
	case OUTCOME_THROTTLED:
		return file_again(worker, file, problem);
	case OUTCOME_ABANDONED: /* our lease ran out for a while; the claim is judged anew once it
				   is back */
		return file_later(worker, file, clock_boot_ns() + NS_PER_S / 2);
	default:
		break;
	}
	return file_fail(worker, file, problem);
}

enum step file_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	if (outcome == OUTCOME_DENIED || outcome == OUTCOME_ABSENT)
		outcome = OUTCOME_SETUP;
	return file_outcome(worker, file, outcome, problem);
}
