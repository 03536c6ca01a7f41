/* Steps 2 and 3: whether there is anything to do for a file, and the claim. */
#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/worker.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX 20 /* each is another uploader's move on this very file */

static void say_who_holds(const struct run *run, const struct file *file, struct problem *ret)
{
	struct session_info holder;
	char since[24] = "an unknown time";
	const char *source = file->seen.source ? file->seen.source : "an unknown source";
	struct text shown = TEXT(300);
	session_recall(run->session, file->seen.session, &holder);
	if (holder.started_s > 0)
		clock_format_iso(holder.started_s, since);
	text_add_escaped_string(&shown, source);
	problem_set(ret,
		"held by another uploader (%s, running since %s, session %s, from %s)%s; once it "
		"sends no more heartbeats, its files are free after %" PRIu64 " s at most",
		quote(holder.owner).text, since, quote(file->seen.session).text,
		text_string(&shown),
		run->options.no_wait ? "; run again, or without --no-wait" : "",
		(uint64_t)(holder.lease_ns / NS_PER_S));
	text_clear(&shown);
}

/* A running uploader has claimed the file. */
static enum step held(struct worker *worker, struct file *file, uint64_t again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	const struct report_file about = file_about(file);
	say_who_holds(run, file, &problem);
	if (run->options.no_wait || run->dry) {
		report_held(&run->report, &about, &problem, true);
		return STEP_SETTLED;
	}
	if (!candidate_was_just_seen_held(file->candidate) && !file->candidate->said_held) {
		report_held(&run->report, &about, &problem, false);
		file->candidate->said_held = true;
	}
	return file_later(worker, file, again_ns);
}

/* Waiting does not help, and taking the mark over might undo what a later version of s3once did. */
static enum step unreadable_mark(struct worker *worker, struct file *file)
{
	struct problem problem;
	problem_set(&problem,
		"its mark is damaged, or was written by a later version of s3once: use "
		"that version, or delete the mark's row (s3once status shows it)");
	return file_fail(worker, file, &problem);
}

/* The file is claimed. NEXT: the claim is stale. */
static enum step judge_claim(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	uint64_t again_ns = clock_boot_ns() + NS_PER_S / 2;
	if (file->seen.state == MARK_UNREADABLE)
		return unreadable_mark(worker, file);
	/* One of ours that no worker holds, since this one has the file: a request that came late.
	 */
	if (strcmp(file->seen.session, session_id(worker->run->session)) == 0)
		return STEP_NEXT;
	bool over;
	enum outcome o = session_is_over(worker->run->session, worker->marks, file->seen.session,
		&over, &again_ns, &problem);
	if (o != OUTCOME_OK)
		return file_marks_outcome(worker, file, o, &problem);
	return over ? STEP_NEXT : held(worker, file, again_ns);
}

/* NEXT: file->seen may be claimed or taken over. */
static enum step judge_seen_mark(struct worker *worker, struct file *file)
{
	const struct asked asked = {
		file->state.size, file->state.mtime_ns, file->candidate->content};
	if (file->seen.state == MARK_DONE && !bucket_is_believed(worker->run, worker->marks))
		return STEP_OVER;
	switch (mark_says(&file->seen, &asked)) {
	case SAYS_DONE:
		return done_file(worker, file);
	case SAYS_COMPARE:
		return touched_file(worker, file);
	case SAYS_CHANGED:
		return changed_file(worker, file);
	case SAYS_CLAIMED:
		return judge_claim(worker, file);
	case SAYS_FREE:
		break;
	}
	return STEP_NEXT;
}

static enum outcome write_claim(
	struct worker *worker, struct file *file, struct mark *seen, struct problem *problem)
{
	struct mark_ref ref = file_mark_ref(worker, file);
	ref.limits = run_visible_limits(worker->run);
	/* A failure of power may also undo what was written to the file system a moment ago. Then a
	 * mark that says done again would be believed of a file that is what it was, although its
	 * object was replaced. */
	ref.may_sync_later = file->seen.state != MARK_DONE;
	if (file->seen.state == MARK_ABSENT)
		return mark_claim(&ref, &file->claim, seen, problem);
	return mark_take(&ref, &file->seen, &file->claim, seen, problem);
}

/* Another uploader was first. Its mark is judged next, and the block is left to it. */
static void lost_the_race(struct worker *worker, struct file *file, struct mark *seen)
{
	mark_clear(&file->seen);
	file->seen = *seen;
	report_claim_refused(&worker->run->report);
	queue_contested(worker->run->queue, file->candidate->block);
}

static void adopt_claim(const struct run *run, struct file *file)
{
	queue_claimed(run->queue, file->candidate);
	const struct mark *before = &file->claim.before;
	file->claimed = true;
	file->must_look =
		file->claim.taken_over && (before->state != MARK_DONE || run->options.reupload);
}

enum step claim_file(struct worker *worker, struct file *file)
{
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		struct mark seen = {0};
		struct problem problem = {0};
		file->replaces = (struct version){0};
		enum step step = judge_seen_mark(worker, file);
		if (step == STEP_AGAIN)
			continue;
		if (step != STEP_NEXT)
			return step;
		if (worker->run->dry)
			return file_settle(worker, file, S3ONCE_EVENT_PLANNED);
		if (!run_may_begin(worker->run))
			return STEP_OVER;
		enum outcome o = write_claim(worker, file, &seen, &problem);
		if (o == OUTCOME_OK) {
			adopt_claim(worker->run, file);
			return STEP_NEXT;
		}
		if (o != OUTCOME_REFUSED)
			return file_marks_outcome(worker, file, o, &problem);
		lost_the_race(worker, file, &seen);
	}
	return file_later(worker, file, clock_boot_ns() + NS_PER_S);
}
