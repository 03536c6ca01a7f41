#include "base/log.h"
#include "upload/file/worker.h"
#include "upload/run_manifest.h"
#include <string.h>

/* A mark that was refreshed has the modification time of the file as it is now. */
static void tell_manifest(struct run *run, const struct file *file, enum s3once_event_type event)
{
	struct version version = file->seen.done;
	if (event == S3ONCE_EVENT_REFRESHED)
		version.mtime_ns = file->state.mtime_ns;
	run_manifest_add(
		run, &(struct in_s3){.file = file->candidate, .version = &version, .event = event});
}

enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event)
{
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	file->is_proven = event == S3ONCE_EVENT_REFRESHED;
	file->is_in_s3 = file->is_proven || event == S3ONCE_EVENT_SKIPPED ||
			 event == S3ONCE_EVENT_UPLOADED || event == S3ONCE_EVENT_ADOPTED;
	file->is_left_out = !file->is_in_s3;
	if (file->is_in_s3)
		tell_manifest(worker->run, file, event);
	return STEP_SETTLED;
}

bool file_was_done_here(const struct worker *worker, const struct file *file)
{
	return file->candidate->said_done && file->seen.state == MARK_DONE &&
	       strcmp(file->seen.session, session_id(worker->run->session)) == 0;
}

enum step file_settle_done(struct worker *worker, struct file *file)
{
	if (!file_was_done_here(worker, file))
		return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
	return file_settle(worker, file,
		file->candidate->was_sent ? S3ONCE_EVENT_UPLOADED : S3ONCE_EVENT_ADOPTED);
}

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
