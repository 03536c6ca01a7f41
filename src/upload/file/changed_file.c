/* Step 2 for a file that was uploaded before and may have changed. */
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "upload/file/done_now.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* Left alone for now: `status` is to know of it. It matters to no other step, so an error is only
 * logged. */
static void note_newer(struct worker *worker, const struct file *file)
{
	const struct mark *seen = &file->seen;
	const struct file_state *now = &file->state;
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	const bool is_noted = seen->has_newer && seen->newer_size == now->size &&
			      seen->newer_mtime_ns == now->mtime_ns;
	if (is_noted || worker->run->dry)
		return;
	enum outcome o = mark_note_newer(&ref, seen, now->size, now->mtime_ns, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("that the file has changed could not be noted: %s", problem.text);
}

/* The content differs from the object, which stays as it is. This is always reported. */
static enum step keep_earlier_version(struct worker *worker, struct file *file)
{
	static const char said[] = "changed since it was uploaded; S3 keeps the earlier version";
	const struct report_file about = file_about(file);
	struct problem problem;
	note_newer(worker, file);
	problem_set(&problem, "%s", said);
	report_file(&worker->run->report, S3ONCE_EVENT_OUTDATED, &about, &problem);
	file->is_left_out = true;
	return STEP_SETTLED;
}

/* The earlier content is in an object under a different key, which a replacement would leave
 * behind. */
static enum step other_suffix(struct worker *worker, struct file *file)
{
	const struct report_file about = file_about(file);
	const struct candidate *c = file->candidate;
	struct problem problem;
	problem_set(&problem,
		"changed since it was uploaded as %s%s; it cannot take that object's place as %s: "
		"use the same --compress as before, put {id} into the template of the keys, or "
		"remove the object and its mark",
		quote(c->key).text, file->seen.done.suffix, quote(c->object).text);
	report_file(&worker->run->report, S3ONCE_EVENT_CHANGED, &about, &problem);
	return STEP_SETTLED;
}

enum step changed_file(struct worker *worker, struct file *file)
{
	const struct report_file about = file_about(file);
	switch (worker->run->options.if_changed) {
	case S3ONCE_CHANGED_REPLACE:
		if (strcmp(file->seen.done.suffix, candidate_suffix(file->candidate)) != 0)
			return other_suffix(worker, file);
		file->replaces = file->seen.done;
		return STEP_NEXT;
	case S3ONCE_CHANGED_SKIP:
		return keep_earlier_version(worker, file);
	case S3ONCE_CHANGED_FAIL:
		break;
	}
	note_newer(worker, file);
	struct problem problem;
	struct text sources = TEXT(700);
	const char *here = worker->run->files.sources_of_marks[file->candidate->source];
	const char *there = file->seen.source ? file->seen.source : "";
	if (*there && strcmp(here, there) != 0) {
		text_add(&sources, "; it was uploaded from ");
		text_add_escaped_string(&sources, there);
		text_add(&sources, ", this is ");
		text_add_escaped_string(&sources, here);
		text_add(&sources, ": give each source its own prefix");
	}
	problem_set(&problem,
		"changed since it was uploaded; --if-changed=replace overwrites the "
		"object in S3, --if-changed=skip leaves it%s",
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
	return o == OUTCOME_OK ? STEP_AGAIN : file_marks_outcome(worker, file, o, &problem);
}

/* Compares the content with all that the mark knows of what was done: the checksum, and unless the
 * object was compressed the etag if it is an MD5, and the checksum of the parts' checksums. NEXT
 * sets *ret. */
static enum step compare_with_mark(struct worker *worker, struct file *file, enum proof *ret)
{
	const struct version *done = &file->seen.done;
	struct s3_object object = {.size = done->size,
		.sum = mark_sum_told(done->sum),
		.etag_is_opaque = s3_knows(worker->run->s3, S3_ETAG_IS_MD5) == S3_NO};
	if (done->object_bytes)
		return file_compare_content(worker, file, &object, ret);
	object.meta.part_bytes = done->part_bytes;
	if (done->etag_is_md5 || !*object.sum.text)
		snprintf(object.etag, sizeof object.etag, "%s", done->etag);
	enum step step = file_compare_content(worker, file, &object, ret);
	if (step != STEP_NEXT || *ret != PROOF_YES || !*done->parts_sum)
		return step;
	object.sum = mark_sum_told(done->parts_sum);
	return file_compare_content(worker, file, &object, ret);
}

static enum step same_file(struct worker *worker, struct file *file)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	if (file->seen.has_newer && !worker->run->dry &&
		mark_refresh(&ref, &file->seen, file->state.mtime_ns, &problem) != OUTCOME_OK)
		log_info("the note of a newer version stays for now: %s", problem.text);
	return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
}

enum step done_file(struct worker *worker, struct file *file)
{
	const struct s3once_options *o = &worker->run->options;
	struct problem problem = {0};
	if (file_was_done_here(worker, file))
		return file_settle_done(worker, file);
	if (o->compare_content) {
		const enum done done = done_content(worker, file, &file->seen.done, &problem);
		if (run_is_over(worker->run))
			return STEP_OVER;
		if (done == DONE_UNKNOWN)
			return file_fail(worker, file, &problem);
		if (done == DONE_NO)
			return changed_file(worker, file);
	}
	return o->reupload ? STEP_NEXT : same_file(worker, file);
}

enum step touched_file(struct worker *worker, struct file *file)
{
	enum proof proof;
	enum step step = compare_with_mark(worker, file, &proof);
	if (step != STEP_NEXT)
		return step;
	if (proof != PROOF_YES)
		return changed_file(worker, file);
	if (worker->run->options.reupload)
		return STEP_NEXT;
	if (worker->run->dry)
		return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
	struct problem problem = {0};
	const struct mark_ref ref = file_mark_ref(worker, file);
	enum outcome o = mark_refresh(&ref, &file->seen, file->state.mtime_ns, &problem);
	if (o == OUTCOME_OK)
		return file_settle(worker, file, S3ONCE_EVENT_REFRESHED);
	return o == OUTCOME_REFUSED ? look_again(worker, file)
				    : file_marks_outcome(worker, file, o, &problem);
}
