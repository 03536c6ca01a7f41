/* A file that is under way: making it, deriving values from it, and ending its turn. Every step
 * uses these functions. None of them sends a request to S3. They write to a mark only to set it to
 * failed. */
#include "upload/file/file.h"
#include "base/clock.h"
#include "base/log.h"
#include "upload/file/worker.h"
#include "upload/run_manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file *file_new(struct run *run, struct candidate *c)
{
	struct file *file = calloc(1, sizeof *file);
	if (!file)
		return NULL;
	file->candidate = c;
	file->target = object_rules_target(
		run->bodies.rules, c->object_key, c->is_piped ? c->key : c->relative);
	file->step = STEP_OPEN;
	file->fd = -1;
	file->begun_ns = clock_boot_ns();
	file_progress_init(&file->progress, &run->report, c->path, c->size);
	file->progress.bandwidth = run->bodies.bandwidth;
	file->progress.user = (struct bandwidth_user){run_poll_is_over, run};
	return file;
}

void file_free(struct file *file)
{
	if (!file)
		return;
	atomic_fetch_sub(&file->progress.report->under_way, atomic_load(&file->progress.bytes));
	/* Without a candidate, the file was put back into the queue, and another turn of it
	 * decides. */
	const bool needs_upload = file->candidate && file->step < STEP_LEFT_OUT;
	if (needs_upload)
		report_note_unshipped(file->progress.report, file->candidate->mtime_ns);
	if (file->fd >= 0)
		close(file->fd);
	free(file->candidate);
	file_progress_clear(&file->progress);
	mark_clear(&file->seen_mark);
	claim_clear(&file->claim);
	free(file);
}

void file_limit_requests(struct worker *worker, const struct candidate *candidate)
{
	worker->limits.failed_ms = worker->visible_limits.failed_ms =
		candidate->failing_ns / NS_PER_MS;
}

const char *file_source(const struct worker *worker, const struct file *file)
{
	return worker->run->files.sources_of_marks[file->candidate->source];
}

struct mark_ref file_mark_ref(struct worker *worker, const struct file *file)
{
	return (struct mark_ref){
		.conn = worker->marks,
		.space = &worker->run->space,
		.key = file->candidate->key,
		.session = session_id(worker->run->session),
		.source = file_source(worker, file),
		.suffix = file->candidate->suffix,
		.limits = worker->limits,
	};
}

void file_set_kept_bytes(struct file *file, uint64_t bytes)
{
	struct candidate *c = file->candidate;
	/* A difference below 0 wraps around, which subtracts. */
	atomic_fetch_add(&file->progress.report->kept, bytes - c->kept_bytes);
	c->kept_bytes = bytes;
}

struct report_file file_about(const struct file *file)
{
	const struct candidate *c = file->candidate;
	return (struct report_file){
		c->path, c->object_key, file->fd >= 0 ? file->state.size : c->size};
}

void file_report(struct worker *worker, const struct file *file, enum s3once_event_type event,
	const struct problem *problem)
{
	struct report_file about = file_about(file);
	if (event == S3ONCE_EVENT_WAITING) { /* here, only check_opened() reports it */
		about.wait = S3ONCE_WAIT_YOUNG;
		about.mtime_ns = file->mtime_ns;
	}
	report_file(worker->report, event, &about, problem);
}

struct file_version file_opened_version(const struct worker *worker, const struct file *file)
{
	const struct candidate *c = file->candidate;
	return (struct file_version){file->state.size, file->mtime_ns, c->content_id, c->is_piped,
		worker->options->producer_id};
}

struct s3_meta file_meta(const struct worker *worker, const struct file *file)
{
	struct s3_meta meta = {
		.mtime_ns = file->mtime_ns,
		.ctime_ns = file->state.ctime_ns,
		.part_bytes = file->plan.n_parts ? file->plan.part_bytes : 0,
		.log_offset = file->candidate->offset,
	};
	snprintf(meta.table_id, sizeof meta.table_id, "%s", worker->run->space.settings.table_id);
	snprintf(meta.claim_id, sizeof meta.claim_id, "%s", file->claim.id);
	snprintf(meta.content_id, sizeof meta.content_id, "%s", file->candidate->content_id);
	if (!file->encoding)
		return meta;
	snprintf(meta.encoding, sizeof meta.encoding, "%s", file->encoding->name);
	snprintf(meta.suffix, sizeof meta.suffix, "%s", file->candidate->suffix);
	meta.content_bytes = file->state.size;
	if (!*meta.content_id && file->content_sums.kinds & DIGEST_SHA256)
		hex_encode(file->content_sums.sha256, sizeof file->content_sums.sha256,
			meta.content_id);
	return meta;
}

/* Returns whether the server honours the condition of the file's write. `feature` is the condition
 * of a write that makes a new object; one that replaces an object has If-Match. */
static enum s3_support condition_support(
	const struct worker *worker, const struct file *file, enum s3_feature feature)
{
	const bool replaces = *file->replaced_etag != 0;
	if (file->is_unconditional)
		return S3_NO;
	return s3_supports(worker->server, replaces ? S3_IF_MATCH : feature);
}

struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_feature feature)
{
	/* No condition is sent to a server that is known not to honour it. */
	if (condition_support(worker, file, feature) == S3_NO)
		return (struct s3_condition){0};
	if (*file->replaced_etag)
		return (struct s3_condition){.if_match = file->replaced_etag};
	return (struct s3_condition){.if_none_match = true};
}

bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_feature feature)
{
	return condition_support(worker, file, feature) != S3_YES;
}

bool file_was_done_here(const struct worker *worker, const struct file *file)
{
	return file->candidate->was_marked_done && file->seen_mark.state == MARK_DONE &&
	       strcmp(file->seen_mark.session, session_id(worker->run->session)) == 0;
}

bool file_is_unread_pipe(const struct file *file)
{
	return file->candidate->is_piped && file->fd < 0;
}

/* Sets the mark of a file to failed if this run holds the claim, from this turn or from an earlier
 * one. Otherwise the file would be held as long as the run lives, and two runs that wait for each
 * other's files would never end. */
static void fail_claimed_mark(struct worker *worker, struct file *file, const char *error)
{
	const struct mark *seen = &file->seen_mark;
	const struct mark_ref ref = file_mark_ref(worker, file);
	const bool claimed_in_this_turn = file->step > STEP_CLAIM;
	const bool claimed_before = !claimed_in_this_turn && seen->state == MARK_CLAIMED &&
				    strcmp(seen->session, session_id(worker->run->session)) == 0;
	struct claim earlier = {0};
	struct problem second = {0};
	if (worker->run->dry || (!claimed_in_this_turn && !claimed_before))
		return;
	if (claimed_before)
		memcpy(earlier.id, seen->claim, sizeof earlier.id);
	const struct claim *claim = claimed_before ? &earlier : &file->claim;
	/* The upload stays recorded, so that the next run can resume it. */
	if (mark_fail(&ref, claim, error, KEEP_UPLOAD, &second) != OUTCOME_OK)
		log_info("the mark could not be set to failed: %s", second.text);
}

enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event)
{
	const bool was_refreshed = event == S3ONCE_EVENT_REFRESHED;
	const bool is_in_s3 = was_refreshed || event == S3ONCE_EVENT_SKIPPED;
	if (!is_in_s3) {
		fail_claimed_mark(worker, file,
			"has changed since an earlier try, and is not to be sent as it is now");
		file_report(worker, file, event, NULL);
		return STEP_LEFT_OUT;
	}
	struct version version = file->seen_mark.done;
	/* A refreshed mark has the present modification time of the file; file->seen_mark is from
	 * before that. */
	if (was_refreshed)
		version.mtime_ns = file->mtime_ns;
	else if (file_was_done_here(worker, file))
		event = file->candidate->was_sent ? S3ONCE_EVENT_UPLOADED : S3ONCE_EVENT_ADOPTED;
	run_report_in_s3(worker->run,
		&(struct in_s3){.file = file->candidate, .version = &version, .event = event},
		file_about(file).bytes);
	/* REFRESHED follows a comparison of the content, so this turn has read all of it. */
	return was_refreshed ? STEP_PROVEN : STEP_IN_S3;
}

enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem)
{
	fail_claimed_mark(worker, file, problem->text);
	file_report(worker, file, S3ONCE_EVENT_FAILED, problem);
	return STEP_SETTLED;
}

enum step file_put_back(struct worker *worker, struct file *file, uint64_t not_before_ns)
{
	file->candidate->mark_state = MARK_CLAIMED; /* so that begin_turn() reads the mark again */
	queue_put_back_later(worker->run->queue, &file->candidate, 1, not_before_ns);
	file->candidate = NULL;
	return STEP_LATER;
}
