/* Removes or moves a file once it is in S3, for --delete-after and --move-to. A file that is due,
 * kept by no rule and proven once more (done_now.c) is removed or moved (src/scan/removal.h).
 * worker.c calls remove_file() for a file that has been settled. The upload of the file is reported
 * and counted already, and does not change here. */
#include "base/clock.h"
#include "base/wait_until.h"
#include "scan/removal.h"
#include "upload/file/done_now.h"
#include "upload/file/steps.h"
#include "upload/file/worker.h"
#include <string.h>
#include <unistd.h>

/* The clock of a file system moves in steps of up to two seconds (FAT). Two changes within one step
 * give a file the same times, so the second one would not be noticed. A file that was read less
 * than this after its last change is read again. */
#define QUIET_NS (2 * (int64_t)NS_PER_S)

static bool is_kept_by_rule(enum removal_end end)
{
	return end == REMOVAL_KEPT || end == REMOVAL_NEVER;
}

/* Reports the end of a removal. `object` is the proven one, and counts only with DONE. */
static void report_end(struct worker *worker, const struct file *file, enum removal_end end,
	const struct done_object *object, const struct problem *problem)
{
	struct run *run = worker->run;
	const enum s3once_event_type event = is_kept_by_rule(end)         ? S3ONCE_EVENT_KEPT
					     : end != REMOVAL_DONE        ? S3ONCE_EVENT_NOT_REMOVED
					     : run->dry                   ? S3ONCE_EVENT_REMOVABLE
					     : run->files.move_to_fd >= 0 ? S3ONCE_EVENT_MOVED
									  : S3ONCE_EVENT_REMOVED;
	report_done_object(run, file, event, end == REMOVAL_DONE ? object : NULL, problem);
	/* Without a warning, a disk would fill up with files that were to be removed. */
	if (end == REMOVAL_NEVER && !atomic_exchange(&run->reported_never, true))
		report_run(&run->report, S3ONCE_EVENT_WARNING,
			PROBLEM("%s is due for removal and stays in this run and in later ones, and "
				"perhaps further files do: %s",
				quote(file->candidate->path).text, problem->text));
}

/* Waits until the file's last change is QUIET_NS ago. Returns false if the run ends before that, or
 * if the change lies in the future. If the ctime does not count, the last change is the one of the
 * content. */
static bool wait_until_quiet(struct run *run, const struct removal *removal)
{
	const struct file_state *state = &removal->state;
	const int64_t changed_ns = state->ctime_ns ? state->ctime_ns : state->mtime_ns;
	int64_t age_ns;
	/* Each test of the condition sets age_ns. */
	wait_until((age_ns = clock_wall_ns() - changed_ns) >= QUIET_NS || age_ns < 0,
		.deadline_ns = UINT64_MAX, .abandon = run_poll_is_stopping, .arg = run);
	return age_ns >= QUIET_NS;
}

/* Proves the file again. Also syncs its mark, whichever run has set it, so that a power failure
 * does not undo the mark of a file that is removed. Returns YES if the file may be removed, and
 * otherwise NO or UNKNOWN with a sentence. */
static enum proof prove_and_sync(struct worker *worker, struct file *file,
	enum content_state content, struct done_object *ret, struct problem *ret_problem)
{
	const enum proof done = prove_done_now(worker, file, content, ret, ret_problem);
	if (done != PROOF_YES || worker->run->dry)
		return done;
	const enum outcome o = store_sync(worker->marks, &worker->limits, ret_problem);
	return o == OUTCOME_OK ? PROOF_YES : PROOF_UNKNOWN;
}

/* Returns the end of a file that is not proven. If a rule keeps the file by now, it was changed
 * meanwhile, which is no failure. */
static enum removal_end end_of_unproven(struct run *run, const struct removal *removal)
{
	struct problem unused; /* the report has the reason why the file is not proven */
	const enum removal_end end = removal_check(removal, &unused);
	if (is_kept_by_rule(end))
		return REMOVAL_KEPT;
	report_count_unproven(&run->report);
	return REMOVAL_FAILED;
}

/* Checks the rules first, since that needs no reading. Then proves the file, and removes it right
 * after that. Reports the result, unless the run stops while the file is proven. */
static void prove_and_remove(struct worker *worker, struct file *file,
	const struct removal *removal, enum content_state content, int64_t done_at_s)
{
	struct run *run = worker->run;
	struct problem problem = {0};
	struct done_object object;
	enum removal_end end = removal_check(removal, &problem);
	bool stays = is_kept_by_rule(end);
	if (!stays && content == CONTENT_UNREAD && !wait_until_quiet(run, removal)) {
		problem_set(&problem, "it was changed a moment ago");
		end = REMOVAL_KEPT;
		stays = true;
	}
	/* After FAILED, the file is proven all the same: whether it is in S3 does not depend on
	 * its removal. The check below, or removal_run(), fails again. */
	if (stays) {
		report_end(worker, file, end, NULL, &problem);
		return;
	}
	const enum proof done = prove_and_sync(worker, file, content, &object, &problem);
	/* The server has replied by now, so it is known whether this host's clock, by which the
	 * file is due, is right. */
	if (run_is_stopping(run) || !run_removal_is_due(run, done_at_s))
		return;
	/* Proving the file takes time, so the rules are checked again. removal_run() does that,
	 * too. */
	if (done != PROOF_YES)
		end = end_of_unproven(run, removal);
	else if (run->dry)
		end = removal_check(removal, &problem);
	else
		end = removal_run(removal, &problem);
	report_end(worker, file, end, &object, &problem);
}

/* Makes the name of the file in the folder of --move-to, which is that of its object without the
 * prefix. The suffix of a run that compresses is not the file's own, so it is dropped. */
static void name_of_object(
	const struct worker *worker, const struct file *file, char ret[static KEY_BYTES_MAX + 1])
{
	const struct candidate *c = file->candidate;
	const char *below = c->object_key + strlen(worker->options->prefix);
	const size_t n_suffix = file->encoding ? strlen(c->suffix) : 0;
	below += *below == '/';
	snprintf(ret, KEY_BYTES_MAX + 1, "%.*s", (int)(strlen(below) - n_suffix), below);
}

/* Returns PROVEN if this turn has read the content in such a way that it need not be read again:
 * the file had not changed for QUIET_NS when it was opened, and its times show each change since.
 */
static enum content_state content_of_turn(const struct file *file)
{
	const bool is_proven = file->step == STEP_PROVEN;
	const bool was_quiet = file->opened_ns - file->opened_ctime_ns >= QUIET_NS;
	return is_proven && was_quiet && !file->must_reread ? CONTENT_PROVEN : CONTENT_UNREAD;
}

/* Returns the ctime that the file has now, or if that is unknown, the one that it was opened with.
 */
static int64_t present_ctime_ns(const struct file *file)
{
	struct file_state now;
	return file_state_of(file->fd, &now) ? file->opened_ctime_ns : now.ctime_ns;
}

/* Whether the file is due for removal. Sets *ret_done_at_s to the time from which its age
 * counts. */
static bool is_due(const struct worker *worker, const struct file *file, int64_t *ret_done_at_s)
{
	struct run *run = worker->run;
	const struct file_version opened = file_opened_version(worker, file);
	/* The age of a file counts from now if this turn has proven the file, and otherwise from
	 * the time at which its mark was set. In a dry run only, a file whose modification time
	 * alone has changed is not due: a dry run refreshes no mark, so the mark of that file does
	 * not say done. */
	const bool is_proven = file->step == STEP_PROVEN;
	const bool is_done = is_proven || mark_says(&file->seen_mark, &opened) == SAYS_DONE;
	*ret_done_at_s = is_proven ? store_time_s(run->store) : file->seen_mark.at_s;
	return is_done && run_removal_is_due(run, *ret_done_at_s);
}

void remove_file(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	const struct s3once_options *o = worker->options;
	const struct candidate *c = file->candidate;
	int64_t done_at_s;
	if (file->fd < 0 || !is_due(worker, file, &done_at_s) || run_is_stopping(run))
		return;
	char target[KEY_BYTES_MAX + 1];
	name_of_object(worker, file, target);
	struct removal removal = {.path = c->path,
		.fd = file->fd,
		.state = file->state,
		.takes_linked = (o->remove_even & S3ONCE_REMOVE_LINKED) != 0,
		.takes_open = (o->remove_even & S3ONCE_REMOVE_OPEN) != 0,
		.takes_foreign = (o->remove_even & S3ONCE_REMOVE_FOREIGN) != 0,
		.target_fd = run->files.move_to_fd,
		/* The numbers in the names of rotated files are reused, so such a file is moved to
		 * the name of its object. */
		.target = c->is_rotated ? target : c->relative};
	enum content_state content = content_of_turn(file);
	if (c->is_rotated) {
		/* file->state has no ctime of a rotated file, since each rename changes it. From
		 * here on it counts. If it has changed since the file was opened, that may have
		 * been a write, so the file is read again. */
		removal.state.ctime_ns = present_ctime_ns(file);
		if (removal.state.ctime_ns != file->opened_ctime_ns)
			content = CONTENT_UNREAD;
	}
	removal.directory_fd = scan_open_folder(
		run->files.scan, c->source, c->relative, &removal.name, &removal.owner);
	if (removal.directory_fd >= 0) {
		prove_and_remove(worker, file, &removal, content, done_at_s);
		close(removal.directory_fd);
	} else if (removal.directory_fd == -ELOOP)
		report_end(worker, file, REMOVAL_KEPT, NULL,
			PROBLEM("it is reached through a symbolic link"));
	else
		report_end(worker, file, REMOVAL_FAILED, NULL,
			PROBLEM("its folder cannot be opened: %s",
				strerror(-removal.directory_fd)));
}
