/* Whether a file is done at this very moment, for `s3once proven` (src/upload/prove.c), for
 * --compare-content (claim.c), and for what --delete-after and --move-to ask for once a file is in
 * S3: its removal, which worker.c calls at the end of a turn. That changes nothing of what became
 * of the file before: that is told and counted already. */
#include "upload/file/done_now.h"
#include "base/clock.h"
#include "base/wait_until.h"
#include "scan/content/content.h"
#include "scan/removal.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum done no(struct problem *ret, const char *sentence)
{
	problem_set(ret, "%s", sentence);
	return DONE_NO;
}

/* The mark says that this version is done, and keeps what its content can be compared with. If the
 * content is compared, another modification time does not matter. */
static enum done check_mark(
	const struct mark *mark, const struct file *file, bool is_read, struct problem *ret)
{
	const struct asked asked = file_asks(file);
	switch (mark_says(mark, &asked)) {
	case SAYS_COMPARE:
		if (is_read)
			return no(ret, "what was uploaded under its key is another version");
		/* fall through */
	case SAYS_DONE:
		return *mark->done.sum || *asked.content
			       ? DONE_YES
			       : no(ret, "its mark has no checksum of its content");
	case SAYS_CHANGED:
		return no(ret, "what was uploaded under its key is another version");
	case SAYS_CLAIMED:
		return no(ret, "an uploader has it under way");
	case SAYS_FREE:
		break;
	}
	return no(ret, "no upload of it is marked as done");
}

static enum done not_read(int error, struct problem *ret)
{
	if (error == -ESTALE)
		return no(ret, "it changed while it was read");
	problem_set(ret, "it cannot be read: %s", strerror(-error));
	return DONE_UNKNOWN;
}

/* A file that is known by its content may have been compressed since, so that its bytes are others
 * than those that were sent. */
static enum done check_id(
	struct worker *worker, const struct file *file, const char *id, struct problem *ret)
{
	const struct content content = {file->fd, file->state.size, run_ask_is_over, worker->run};
	char now[CONTENT_ID_CHARS + 1];
	const int error = content_id(&content, now, ret);
	if (error == -EFBIG)
		return DONE_UNKNOWN;
	if (error)
		return not_read(error, ret);
	return strcmp(now, id) == 0 ? DONE_YES : no(ret, "its content is not what was uploaded");
}

enum done done_content(struct worker *worker, const struct file *file, const struct version *done,
	struct problem *ret)
{
	const struct kept kept = kept_of_content(done);
	const struct range range = file_range(file, NULL, NULL, 0);
	struct sums sums;
	if (*file->candidate->content)
		return check_id(worker, file, done->content, ret);
	const int error = file_digest(worker, file, judge_digests(&kept), &range, &sums);
	if (error)
		return not_read(error, ret);
	if (judge_bytes(&kept, &sums) == PROOF_YES)
		return DONE_YES;
	return no(ret, "its content is not what was uploaded, although its size is");
}

/* Some servers told another etag when the upload was completed than they show now, which is the MD5
 * of the whole. The file is read for it: it is what the mark says. */
static bool has_md5_of_file(
	struct worker *worker, const struct file *file, const struct s3_object *object)
{
	const struct kept by_etag = {
		.bytes = object->size, .sum = "", .etag = object->etag, .etag_is_md5 = true};
	const struct range range = file_range(file, NULL, NULL, 0);
	struct sums sums;
	return !file_digest(worker, file, DIGEST_MD5, &range, &sums) &&
	       judge_bytes(&by_etag, &sums) == PROOF_YES;
}

/* The object is the one that was proven when the mark was set. */
static enum done check_object(struct worker *worker, const struct file *file,
	const struct version *done, const struct s3_object *object, struct problem *ret)
{
	const struct kept kept = kept_of_object(done);
	if (object->lacks_encryption)
		return no(ret, "S3 does not confirm the encryption of its object");
	switch (judge_kept(&kept, object)) {
	case LIKE_SAME:
		return DONE_YES;
	case LIKE_OTHER:
		return no(ret, "S3 holds another object under its key than was uploaded");
	case LIKE_OTHER_ETAG:
		if (proof_etag_parts(done->etag) && has_md5_of_file(worker, file, object))
			return DONE_YES;
		break;
	case LIKE_UNTOLD:
		break;
	}
	return no(ret, "S3 holds another object under its key than was uploaded, or shows nothing "
		       "that shows it is the same");
}

static enum done ask_marks(
	struct worker *worker, struct file *file, struct mark *ret, struct problem *ret_problem)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	if (mark_get(&ref, ret, ret_problem) == OUTCOME_OK)
		return DONE_YES;
	problem_prefix(ret_problem, "its mark cannot be read");
	return DONE_UNKNOWN;
}

static enum done ask_s3(struct worker *worker, const struct file *file, const char *suffix,
	struct done_object *ret, struct problem *ret_problem)
{
	struct s3_target target = file->target;
	snprintf(ret->key, sizeof ret->key, "%s%s", file->candidate->key, suffix);
	target.key = ret->key;
	switch (s3_head_object(worker->s3, &target, &worker->limits, &ret->object, ret_problem)) {
	case OUTCOME_OK:
		return DONE_YES;
	case OUTCOME_ABSENT:
		return no(ret_problem, "S3 does not hold its object any more, although it was "
				       "uploaded; --reupload uploads it again");
	case OUTCOME_DENIED:
		problem_prefix(ret_problem,
			"S3 does not show its object; allow s3:GetObject and s3:ListBucket");
		return DONE_UNKNOWN;
	default:
		problem_prefix(ret_problem, "S3 does not show its object");
		return DONE_UNKNOWN;
	}
}

/* A change of the mark while the content was read matters as much as one before: it is read once
 * more, and has to say the same of the content. */
static enum done read_content(
	struct worker *worker, struct file *file, struct mark *mark, struct problem *ret_problem)
{
	const struct version read = mark->done;
	enum done done = done_content(worker, file, &mark->done, ret_problem);
	mark_clear(mark);
	*mark = (struct mark){0};
	if (done == DONE_YES)
		done = ask_marks(worker, file, mark, ret_problem);
	if (done == DONE_YES)
		done = check_mark(mark, file, false, ret_problem);
	if (done == DONE_YES && (strcmp(read.sum, mark->done.sum) != 0 ||
					strcmp(read.content, mark->done.content) != 0))
		return no(ret_problem, "its mark changed meanwhile");
	return done;
}

enum done done_now(struct worker *worker, struct file *file, bool is_read, struct done_object *ret,
	struct problem *ret_problem)
{
	struct mark mark = {0};
	*ret = (struct done_object){0};
	enum done done = ask_marks(worker, file, &mark, ret_problem);
	if (done == DONE_YES)
		done = check_mark(&mark, file, is_read, ret_problem);
	if (done == DONE_YES && !is_read)
		done = read_content(worker, file, &mark, ret_problem);
	if (done == DONE_YES)
		done = ask_s3(worker, file, mark.done.suffix, ret, ret_problem);
	if (done == DONE_YES)
		done = check_object(worker, file, &mark.done, &ret->object, ret_problem);
	mark_clear(&mark);
	return done;
}

void done_describe(const struct done_object *object, char checksum[static SUM_MAX + S3_SUM_MAX],
	struct report_file *about)
{
	const struct s3_sum *sum = &object->object.sum;
	snprintf(checksum, SUM_MAX + S3_SUM_MAX, "%s%s%s",
		*sum->text ? checksum_kinds[sum->kind].name : "", *sum->text ? ":" : "", sum->text);
	about->key = object->key;
	about->version_id = object->object.version_id;
	about->etag = object->object.etag;
	about->checksum = checksum;
}

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

static void report_end(struct worker *worker, const struct file *file, enum removal_end end,
	const struct done_object *object, const struct problem *problem)
{
	struct report_file about = file_about(file);
	char checksum[SUM_MAX + S3_SUM_MAX];
	enum s3once_event_type event = S3ONCE_EVENT_NOT_REMOVED;
	if (end == REMOVAL_DONE) {
		event = worker->is_dry                   ? S3ONCE_EVENT_REMOVABLE
			: worker->files->move_to_fd >= 0 ? S3ONCE_EVENT_MOVED
							 : S3ONCE_EVENT_REMOVED;
		done_describe(object, checksum, &about);
	} else if (end == REMOVAL_KEPT) {
		event = S3ONCE_EVENT_KEPT;
	}
	report_file(worker->report, event, &about, end == REMOVAL_DONE ? NULL : problem);
}

/* The state that the file is to stay in from here on. A rotated one may have been renamed since it
 * was opened, so that its ctime is another: then this is not what the turn has read. */
static struct file_state state_to_keep(const struct file *file, bool *ret_is_read)
{
	struct file_state state = file->state;
	*ret_is_read =
		file->life == FILE_PROVEN && file->opened_ns - file->opened_ctime_ns >= QUIET_NS;
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
	/* A failure of power must not undo the mark, whoever has set it. */
	if (done == DONE_YES && !worker->is_dry &&
		store_sync(worker->marks, &worker->limits, &problem) != OUTCOME_OK)
		done = DONE_UNKNOWN;
	if (run_is_stopping(run))
		return;
	struct problem changed;
	if (done == DONE_YES)
		end = worker->is_dry ? removal_check(removal, &problem)
				     : removal_run(removal, &problem);
	else if (removal_check(removal, &changed) == REMOVAL_KEPT)
		end = REMOVAL_KEPT;
	else
		end = REMOVAL_FAILED;
	report_end(worker, file, end, &object, &problem);
}

void remove_file(struct worker *worker, struct file *file)
{
	struct run *run = worker->run;
	const struct s3once_options *o = worker->options;
	const struct candidate *c = file->candidate;
	/* The numbers of rotated files come again, so that each is moved to the name of its object.
	 */
	const char *below = c->object + strlen(o->prefix);
	bool is_read;
	struct problem problem;
	struct removal removal = {.fd = file->fd,
		.linked = o->remove_linked != 0,
		.open = o->remove_open != 0,
		.foreign = o->remove_foreign != 0,
		.target_fd = run->files.move_to_fd,
		.target = !c->is_rotated  ? c->relative
			  : *below == '/' ? below + 1
					  : below};
	/* What this turn has marked is done since now. A dry run does not refresh a mark, which
	 * then says another time. */
	const struct asked asked = file_asks(file);
	const bool is_proven = file->life == FILE_PROVEN;
	const bool says_done = is_proven || mark_says(&file->seen, &asked) == SAYS_DONE;
	const int64_t done_at_s = is_proven ? store_time_s(run->store) : file->seen.at_s;
	if (!says_done || file->fd < 0 || !run_removes_by_now(run, done_at_s) ||
		run_is_stopping(run))
		return;
	removal.state = state_to_keep(file, &is_read);
	removal.directory_fd = scan_open_folder(
		worker->files->scan, c->source, c->relative, &removal.name, &removal.owner);
	if (removal.directory_fd >= 0) {
		remove_proven(worker, file, &removal, is_read);
		close(removal.directory_fd);
	} else if (removal.directory_fd == -ELOOP) {
		problem_set(&problem, "it is reached through a symbolic link");
		report_end(worker, file, REMOVAL_KEPT, NULL, &problem);
	} else {
		problem_set(&problem, "its folder cannot be opened: %s",
			strerror(-removal.directory_fd));
		report_end(worker, file, REMOVAL_FAILED, NULL, &problem);
	}
}
