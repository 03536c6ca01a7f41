#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "upload/bucket_check.h"
#include "upload/settings_kept.h"
#include "upload/worker.h"
#include <stdio.h>
#include <string.h>

enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem)
{
	const struct report_file about = file_about(file);
	if (file->claimed) {
		struct mark_ref ref = file_mark_ref(worker, file);
		struct problem second = {0};
		if (mark_fail(&ref, &file->claim, problem->text, &second) != OUTCOME_OK)
			log_info("the mark could not be set to failed: %s", second.text);
	}
	report_file(&worker->run->report, S3ONCE_EVENT_FAILED, &about, problem);
	return STEP_SETTLED;
}

enum step file_later(struct worker *worker, struct file *file, uint64_t not_before_ns)
{
	file->candidate->known.state = MARK_CLAIMED; /* so that the mark is read first */
	queue_later(worker->run->queue, &file->candidate, 1, not_before_ns);
	file->candidate = NULL;
	return STEP_LATER;
}

#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MOST_NS  (30 * NS_PER_S)

/* With a pause that grows. That it waits for the others does not count. Its claim stays ours. */
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
	uint64_t pause_ns = AGAIN_FIRST_NS << (c->failures < 5 ? c->failures : 5);
	pause_ns = pause_ns < AGAIN_MOST_NS ? pause_ns : AGAIN_MOST_NS;
	c->failing_ns += pause_ns;
	c->failures++;
	problem_prefix(&said, "will be retried later");
	report_file(&worker->run->report, S3ONCE_EVENT_RETRY, &about, &said);
	c->known.state = MARK_CLAIMED; /* so that the mark is read first */
	queue_again(worker->run->queue, c, now + pause_ns);
	file->candidate = NULL;
	return STEP_LATER;
}

/* 404 to a request that writes. Some servers answer so, even by the name NoSuchBucket, for a key
 * that they cannot store. */
static enum step not_found(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct run *run = worker->run;
	struct problem said = {0};
	switch (run_look_for_bucket(run, worker->s3, &said)) {
	case OUTCOME_OK:
		said = *problem;
		snprintf(said.text, sizeof said.text,
			"S3 answers 404 for this key, although bucket %s is there: the server may "
			"not take such keys",
			quote(run->options.bucket).text);
		return file_refused(worker, file, &said);
	case OUTCOME_ABSENT:
	case OUTCOME_SETUP:
		run_fail(run, &said);
		return STEP_OVER;
	default:
		return file_refused(worker, file, problem);
	}
}

enum step file_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	if (outcome == OUTCOME_DENIED || outcome == OUTCOME_ABSENT)
		outcome = OUTCOME_SETUP;
	return file_outcome(worker, file, outcome, problem);
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
		return file_refused(worker, file, problem);
	case OUTCOME_INVALID:
	case OUTCOME_UNSUPPORTED:
		if (refusal_may_be_of_setting(file, problem))
			return file_refused(worker, file, problem);
		break;
	case OUTCOME_ABSENT:
		return not_found(worker, file, problem);
	case OUTCOME_SETUP:
		if (!strcmp(problem->code, "NoSuchBucket"))
			return not_found(worker, file, problem);
		run_fail(run, problem);
		return STEP_OVER;
	case OUTCOME_LOST:
	case OUTCOME_TRANSIENT:
		/* What never answered as S3 does will not begin to. */
		if (!atomic_load(&run->refusals.has_stored) && !file->candidate->parts_done &&
			(outcome == OUTCOME_LOST || !problem->status))
			break;
		/* fall through */
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

enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event)
{
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	return STEP_SETTLED;
}

enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version)
{
	struct mark seen = {0};
	struct problem problem = {0};
	struct mark_ref ref = file_mark_ref(worker, file);
	ref.limits = run_visible_limits(worker->run);
	enum outcome o = mark_done(&ref, &file->claim, version, &seen, &problem);
	const bool is_gone = seen.state == MARK_ABSENT;
	mark_clear(&seen);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	if (o != OUTCOME_REFUSED)
		return file_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, is_gone ? "the mark of a file of this run was deleted"
				       : "another uploader took over a file of this run");
	return STEP_OVER;
}

enum step file_done(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event)
{
	if (object->lacks_encryption) {
		struct problem problem;
		problem_set(&problem,
			"the object is there, but the server does not confirm the encryption that was "
			"asked for (sse, sse-c-key-file), so it may lie there in clear: remove it, and "
			"leave the option out or use a server that encrypts");
		return file_fail(worker, file, &problem);
	}
	struct version version = {.size = file->state.size,
		.mtime_ns = file->state.mtime_ns,
		.part_bytes = file->sent_part_bytes,
		.etag_is_md5 = file_etag_is_md5(worker, object)};
	mark_sum_of(&file->sums, s3_checksum(worker->run->s3), version.sum);
	snprintf(version.etag, sizeof version.etag, "%s", object->etag);
	snprintf(version.parts_sum, sizeof version.parts_sum, "%s", file->parts_sum);
	refusals_stored(&worker->run->refusals);
	enum step step = file_mark_done(worker, file, &version);
	if (step != STEP_NEXT)
		return step;
	bucket_saw_object(worker->run, file->candidate->key, object->etag);
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	if (event == S3ONCE_EVENT_UPLOADED)
		settings_look(worker, file);
	return STEP_SETTLED;
}
