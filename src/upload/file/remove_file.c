/* What --delete-after and --move-to ask for once a file is in S3. Nothing here changes what became
 * of the file before: that is told and counted already. */
#include "base/clock.h"
#include "base/wait_until.h"
#include "scan/removal.h"
#include "upload/file/done_now.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A change may leave no trace in the times as long as the clock of the file system stands still,
 * which is two seconds at most (FAT). What was read sooner after the last change is read again. */
#define QUIET_NS (2 * (int64_t)NS_PER_S)

/* Waits until the file's last change is so long ago. False: the run ends, or the clock says that
 * the change lies in the future. */
static bool wait_for_quiet(struct run *run, const struct file_state *state)
{
	int64_t age_ns;
	wait_until((age_ns = clock_wall_ns() - state->ctime_ns) >= QUIET_NS || age_ns < 0,
		.deadline_ns = UINT64_MAX, .abandon = run_ask_is_stopping, .arg = run);
	return age_ns >= QUIET_NS;
}

static void report(struct worker *worker, const struct file *file, enum s3once_event_type type,
	const struct done_object *done, const struct problem *problem)
{
	struct report_file about = file_about(file);
	char checksum[SUM_MAX + S3_SUM_MAX];
	if (done)
		done_describe(done, checksum, &about);
	report_file(&worker->run->report, type, &about, problem);
}

static void report_end(struct worker *worker, const struct file *file, enum removal_end end,
	const struct done_object *object, const struct problem *problem)
{
	const struct run *run = worker->run;
	switch (end) {
	case REMOVAL_DONE:
		report(worker, file,
			run->dry                     ? S3ONCE_EVENT_REMOVABLE
			: run->files.move_to_fd >= 0 ? S3ONCE_EVENT_MOVED
						     : S3ONCE_EVENT_REMOVED,
			object, NULL);
		break;
	case REMOVAL_KEPT:
		report(worker, file, S3ONCE_EVENT_KEPT, NULL, problem);
		break;
	case REMOVAL_FAILED:
		report(worker, file, S3ONCE_EVENT_NOT_REMOVED, NULL, problem);
		break;
	}
}

/* The state that the file is to stay in from here on. A rotated one may have been renamed since it
 * was opened, so that its ctime is another: then this is not what the turn has read. */
static struct file_state state_to_keep(const struct file *file, bool *ret_is_read)
{
	struct file_state state = file->state;
	*ret_is_read = file->is_proven && file->opened_ns - file->opened_ctime_ns >= QUIET_NS;
	if (!file->candidate->is_rotated)
		return state;
	state.ctime_ns = file->opened_ctime_ns;
	struct file_state now;
	if (file_state_of(file->fd, &now) == 0 && now.ctime_ns != state.ctime_ns) {
		state.ctime_ns = now.ctime_ns;
		*ret_is_read = false;
	}
	return state;
}

/* The rules come first, since they cost no reading. Then all that proves the file, and right after
 * that it is removed. */
static void remove_proven(
	struct worker *worker, struct file *file, const struct removal *removal, bool is_read)
{
	struct run *run = worker->run;
	struct problem problem = {0};
	struct done_object object;
	enum removal_end end = removal_check(removal, &problem);
	if (end != REMOVAL_DONE) {
		report_end(worker, file, end, NULL, &problem);
		return;
	}
	if (!is_read && !wait_for_quiet(run, &removal->state)) {
		problem_set(&problem, "it was changed a moment ago");
		report_end(worker, file, REMOVAL_KEPT, NULL, &problem);
		return;
	}
	enum done done = done_now(worker, file, is_read, &object, &problem);
	const struct call_limits limits = run_limits(run);
	/* A failure of power must not undo the mark, whoever has set it. */
	if (done == DONE_YES && !run->dry &&
		store_sync(worker->marks, &limits, &problem) != OUTCOME_OK)
		done = DONE_UNKNOWN;
	if (run_is_stopping(run))
		return;
	struct problem changed;
	if (done == DONE_YES)
		end = run->dry ? removal_check(removal, &problem) : removal_run(removal, &problem);
	else if (removal_check(removal, &changed) == REMOVAL_KEPT)
		end = REMOVAL_KEPT;
	else
		end = REMOVAL_FAILED;
	report_end(worker, file, end, &object, &problem);
}

static void tell_unreachable(struct worker *worker, const struct file *file, int error)
{
	struct problem problem;
	if (error == -ELOOP)
		problem_set(&problem, "it is reached through a symbolic link");
	else
		problem_set(&problem, "its folder cannot be opened: %s", strerror(-error));
	report_end(worker, file, error == -ELOOP ? REMOVAL_KEPT : REMOVAL_FAILED, NULL, &problem);
}

/* What this turn has marked is done since now. */
static bool is_due(struct run *run, const struct file *file)
{
	const int64_t done_at_s = file->is_proven ? store_time_s(run->store) : file->seen.at_s;
	/* A dry run does not refresh a mark, which then says another time. */
	const struct asked asked = {
		file->state.size, file->state.mtime_ns, file->candidate->content};
	const bool says_done = file->is_proven || mark_says(&file->seen, &asked) == SAYS_DONE;
	return says_done && file->fd >= 0 && run_removes_by_now(run, done_at_s) &&
	       !run_is_stopping(run);
}

/* The numbers of rotated files come again, so that each is moved to the name of its object. */
static const char *moved_to(const struct run *run, const struct candidate *c)
{
	const char *below = c->object + strlen(run->options.prefix);
	return !c->is_rotated ? c->relative : *below == '/' ? below + 1 : below;
}

void remove_file(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	const struct s3once_options *o = &run->options;
	const struct candidate *c = file->candidate;
	bool is_read;
	struct removal removal = {.fd = file->fd,
		.linked = o->remove_linked != 0,
		.open = o->remove_open != 0,
		.foreign = o->remove_foreign != 0,
		.target_fd = run->files.move_to_fd,
		.target = moved_to(run, c)};
	if (!is_due(run, file))
		return;
	removal.state = state_to_keep(file, &is_read);
	removal.directory_fd = scan_open_folder(
		run->files.scan, c->source, c->relative, &removal.name, &removal.owner);
	if (removal.directory_fd < 0) {
		tell_unreachable(worker, file, removal.directory_fd);
		return;
	}
	remove_proven(worker, file, &removal, is_read);
	close(removal.directory_fd);
}
