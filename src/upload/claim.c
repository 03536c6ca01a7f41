/* Steps 2 and 3: whether there is anything to do for a file, and the claim. */
#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/proof.h"
#include "upload/worker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS_MAX 20 /* each is another uploader's move on this very file */

/* Somebody alive has it. */
static enum step held(struct worker *worker, struct file *file, uint64_t again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	const struct report_file about = file_about(file);
	const char *source = file->seen.source ? file->seen.source : "an unknown source";
	struct text shown = TEXT(300);
	text_add_escaped(&shown, source, strlen(source));
	problem_set(&problem, "held by another uploader (session %s, from %s)%s",
		quote(file->seen.session).text, text_string(&shown),
		run->options.no_wait ? "; run again, or without --no-wait" : "");
	text_clear(&shown);
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

/* Other content than was uploaded, which stays as it is: never in silence. */
static enum step keep(struct worker *worker, struct file *file)
{
	const struct report_file about = file_about(file);
	struct problem problem;
	problem_set(&problem, "changed since it was uploaded; S3 keeps the earlier version");
	report_file(&worker->run->report, S3ONCE_EVENT_SKIPPED, &about, &problem);
	return STEP_SETTLED;
}

static enum step settle(struct worker *worker, struct file *file, enum s3once_event_type event)
{
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	return STEP_SETTLED;
}

/* Done with other content: what to do is the user's choice. NEXT: replace it. */
static enum step changed(struct worker *worker, struct file *file)
{
	const struct report_file about = file_about(file);
	switch (worker->run->options.if_changed) {
	case S3ONCE_CHANGED_REPLACE:
		file->replaces = file->seen.done;
		return STEP_NEXT;
	case S3ONCE_CHANGED_SKIP:
		return keep(worker, file);
	case S3ONCE_CHANGED_FAIL:
		break;
	}
	struct problem problem;
	struct text sources = TEXT(700);
	const char *here = worker->run->sources_of_marks[file->candidate->source];
	const char *there = file->seen.source ? file->seen.source : "";
	if (*there && strcmp(here, there)) {
		text_add(&sources, "; it came from ");
		text_add_escaped(&sources, there, strlen(there));
		text_add(&sources, ", this is ");
		text_add_escaped(&sources, here, strlen(here));
		text_add(&sources, ": give each source a prefix of its own");
	}
	problem_set(&problem,
		"changed since it was uploaded; --if-changed=replace uploads it again, "
		"--if-changed=skip keeps what is in S3%s",
		text_string(&sources));
	text_clear(&sources);
	report_file(&worker->run->report, S3ONCE_EVENT_CHANGED, &about, &problem);
	return STEP_SETTLED;
}

static enum step look_again(struct worker *worker, struct file *file)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	mark_clear(&file->seen);
	enum outcome o = mark_get(&ref, &file->seen, &problem);
	return o == OUTCOME_OK ? STEP_AGAIN : file_outcome(worker, file, o, &problem);
}

/* Whether the content is what the mark says was done: by its checksum, else by an etag that is an
 * MD5. */
static bool is_what_was_done(const struct file *file)
{
	const struct version *done = &file->seen.done;
	const char *crc = !strncmp(done->sum, "crc32c:", 7) ? done->sum + 7 : "";
	struct s3_object object = {.size = done->size};
	snprintf(object.crc32c, sizeof object.crc32c, "%s", crc);
	snprintf(object.etag, sizeof object.etag, "%s", done->etag);
	return proof_whole(&file->sums, &object, true) == PROOF_YES;
}

/* Done with the same size and another mtime: the content decides. */
static enum step compare(struct worker *worker, struct file *file)
{
	const unsigned kinds = DIGEST_CRC32C | (*file->seen.done.sum ? 0 : DIGEST_MD5);
	enum step step = file_sum(worker, file, kinds);
	if (step != STEP_NEXT)
		return step;
	if (!is_what_was_done(file))
		return changed(worker, file);
	if (worker->run->dry)
		return settle(worker, file, S3ONCE_EVENT_SKIPPED);
	struct problem problem = {0};
	const struct mark_ref ref = file_mark_ref(worker, file);
	enum outcome o = mark_refresh(&ref, &file->seen, file->state.mtime_ns, &problem);
	if (o == OUTCOME_OK)
		return settle(worker, file, S3ONCE_EVENT_REFRESHED);
	return o == OUTCOME_REFUSED ? look_again(worker, file)
				    : file_outcome(worker, file, o, &problem);
}

/* Claimed by somebody. NEXT: it is stale. */
static enum step judge_claim(struct worker *worker, struct file *file)
{
	struct problem problem = {0};
	uint64_t again_ns = clock_boot_ns() + NS_PER_S / 2;
	/* One of ours that no worker holds, since this one has the file: a request that came late.
	 */
	if (!strcmp(file->seen.session, session_id(worker->run->session)))
		return STEP_NEXT;
	if (file->seen.state == MARK_UNREADABLE)
		return held(worker, file, again_ns);
	int over = session_is_over(
		worker->run->session, worker->marks, file->seen.session, &again_ns, &problem);
	if (over < 0)
		return file_outcome(worker, file, OUTCOME_TRANSIENT, &problem);
	return over ? STEP_NEXT : held(worker, file, again_ns);
}

/* NEXT: file->seen may be claimed or taken over. */
static enum step judge(struct worker *worker, struct file *file)
{
	switch (mark_says(&file->seen, file->state.size, file->state.mtime_ns)) {
	case SAYS_DONE:
		return settle(worker, file, S3ONCE_EVENT_SKIPPED);
	case SAYS_COMPARE:
		return compare(worker, file);
	case SAYS_CHANGED:
		return changed(worker, file);
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
	if (file->seen.state == MARK_ABSENT)
		return mark_claim(&ref, &file->claim, seen, problem);
	return mark_take(&ref, &file->seen, &file->claim, seen, problem);
}

/* Somebody else moved first: what he left is judged next, and his block is left to him. */
static void lost_the_race(struct worker *worker, struct file *file, struct mark *seen)
{
	mark_clear(&file->seen);
	file->seen = *seen;
	report_claim_refused(&worker->run->report);
	queue_contested(worker->run->queue, file->candidate->block);
}

static void adopt_claim(struct file *file)
{
	const struct mark *before = &file->claim.before;
	file->claimed = true;
	file->must_look = file->claim.taken_over && before->state != MARK_DONE;
	free(file->upload_id);
	file->upload_id = before->upload_id ? strdup(before->upload_id) : NULL;
	file->upload_is_open = file->upload_id != NULL;
	file->upload_part_bytes = before->part_bytes;
	file->upload_size = before->upload_size;
	file->upload_mtime_ns = before->upload_mtime_ns;
}

enum step claim_file(struct worker *worker, struct file *file)
{
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		struct mark seen = {0};
		struct problem problem = {0};
		file->replaces = (struct version){0};
		enum step step = judge(worker, file);
		if (step == STEP_AGAIN)
			continue;
		if (step != STEP_NEXT)
			return step;
		if (worker->run->dry)
			return settle(worker, file, S3ONCE_EVENT_PLANNED);
		if (!session_may_begin(worker->run->session, run_is_over, worker->run))
			return STEP_OVER;
		enum outcome o = write_claim(worker, file, &seen, &problem);
		if (o == OUTCOME_OK) {
			adopt_claim(file);
			return STEP_NEXT;
		}
		if (o != OUTCOME_REFUSED)
			return file_outcome(worker, file, o, &problem);
		lost_the_race(worker, file, &seen);
	}
	return file_later(worker, file, clock_boot_ns() + NS_PER_S);
}
