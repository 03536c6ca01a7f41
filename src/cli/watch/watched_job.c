/* One job of `s3once watch`: the files and folders that wait until they are at rest, when the next
 * pass is due, and the passes. A file is at rest if it was not written to for --min-age.
 * watch_command.c has the loop around all jobs. */
#include "cli/watch/watched_job.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/must_have.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIN_AGE_MS     10000          /* default of --min-age */
#define FIRST_RETRY_NS (5 * NS_PER_S) /* the wait after the first pass that failed */
#define SAID_BYTES_MAX (16U << 10)    /* a message without room here is repeated in each pass */
#define LONGEST_TIMES  5              /* see has_lasted_enough() */
/* Added to each wait, since a time stamp of a file may be a little late. */
#define TOUCH_DELAY_NS (100 * NS_PER_MS)

/* Refuses options that are for a single run, or that need a decision of a person. Returns 0, or
 * -EINVAL after an error was logged. */
static int refuse_options(const struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	const char *option = o->dry_run           ? "dry-run"
			     : o->files_from      ? "files-from"
			     : o->reupload        ? "reupload"
			     : o->bucket_is       ? "bucket"
			     : o->manifest        ? "manifest"
			     : o->sign_key_file   ? "sign"
			     : o->compare_content ? "compare-content"
			     : o->final           ? "final"
						  : NULL;
	if (!option)
		return 0;
	log_error("watch: %s: %s is for a single run; use s3once run for that",
		quote(watched->job.name).text, option);
	return -EINVAL;
}

/* Returns the wall time from which on a file is at rest: --min-age after its modification time. For
 * a modification time in the future, the ctime counts instead, as in the scan. */
static int64_t at_rest_wall_ns(const struct watched *watched, const struct stat *st)
{
	const int64_t mtime_ns = clock_to_ns(st->st_mtim);
	const bool is_in_future = mtime_ns > clock_wall_ns();
	const int64_t changed_ns = is_in_future ? clock_to_ns(st->st_ctim) : mtime_ns;
	return changed_ns + (int64_t)watched->min_age_ns;
}

/* Converts the wall time from which on a file is at rest to the clock_boot_ns() at which the file
 * is checked. That is between TOUCH_DELAY_NS from now and --min-age later, even if the times of the
 * file are in the future. */
static uint64_t due_boot_ns(const struct watched *watched, int64_t at_rest_ns)
{
	const int64_t max_ns = (int64_t)watched->min_age_ns;
	int64_t wait_ns = at_rest_ns - clock_wall_ns();
	if (wait_ns < 0)
		wait_ns = 0;
	if (wait_ns > max_ns)
		wait_ns = max_ns;
	return clock_boot_ns() + TOUCH_DELAY_NS + (uint64_t)wait_ns;
}

/* Lets a file wait that a pass has left for later, under the path by which inotify reports it:
 * without links in its folder. A file that was old enough when the pass began was left for another
 * reason, for example since rotation still writes to it. Such a file does not wait.
 *
 * Threads of the run call this and gives_way(), one call at a time, while the thread of
 * watched_pass() waits for the run. So no lock is needed. */
static void on_waiting(void *arg, const char *path)
{
	struct watched *watched = arg;
	struct stat st;
	/* A file that is gone does not wait: it has 0, which is before any pass. */
	const int64_t at_rest_ns = lstat(path, &st) ? 0 : at_rest_wall_ns(watched, &st);
	const bool was_too_young = at_rest_ns > watched->began_wall_ns;
	if (!was_too_young)
		return;
	char *given = path_folder(path), *folder = given ? realpath(given, NULL) : NULL, *file;
	/* In the folder "/", the name must not follow a second slash. */
	if (folder && asprintf(&file, "%s/%s", folder[1] ? folder : "", path_name(path)) >= 0) {
		pending_add(&watched->pending, file, due_boot_ns(watched, at_rest_ns), SINCE_PASS);
		free(file);
	}
	free(folder);
	free(given);
}

/* Lets a file or folder that was touched wait for --min-age from now. */
static void on_touched(void *arg, const char *path)
{
	struct watched *watched = arg;
	pending_add(&watched->pending, path, clock_boot_ns() + watched->min_age_ns + TOUCH_DELAY_NS,
		SINCE_TOUCH);
}

/* Returns the time at which a pass can take a path that is due at now_ns: now_ns, or a later time
 * if the file was written to meanwhile, or UINT64_MAX if it is gone. With --live, a pass takes a
 * file even while it is being written, and uploads its new lines. */
static uint64_t postponed_ns(void *arg, const char *path, uint64_t now_ns)
{
	const struct watched *watched = arg;
	struct stat st;
	if (lstat(path, &st)) /* the pass reports any error but ENOENT */
		return errno == ENOENT ? UINT64_MAX : now_ns;
	const int64_t at_rest_ns = at_rest_wall_ns(watched, &st);
	const bool is_at_rest = at_rest_ns <= clock_wall_ns();
	const bool needs_no_rest = S_ISDIR(st.st_mode) || watched->job.options.run.live;
	return (is_at_rest || needs_no_rest) ? now_ns : due_boot_ns(watched, at_rest_ns);
}

/* Whether any waiting path is at rest. */
static bool has_rested(struct watched *watched)
{
	return pending_check(&watched->pending, clock_boot_ns(), postponed_ns, watched, NULL);
}

/* Moves all waiting paths that are at rest to *ret. */
static void take_rested(struct watched *watched, struct path_list *ret)
{
	pending_check(&watched->pending, clock_boot_ns(), postponed_ns, watched, ret);
}

/* Plans a pass over all files for this time, unless one is planned for an earlier time. */
static void plan_pass_over_all(struct watched *watched, uint64_t due_ns)
{
	if (due_ns < watched->next_whole_ns)
		watched->next_whole_ns = due_ns;
}

void watched_read(struct watched *watched)
{
	/* Files whose events were lost will be at rest after --min-age. */
	if (!watch_folders_read(watched->folders))
		plan_pass_over_all(watched, clock_boot_ns() + watched->min_age_ns);
}

/* Returns whether a pass gave way and has to continue. */
static bool has_unfinished_pass(const struct watched *watched)
{
	return watched->last_pass != PASS_ENDED;
}

/* Returns whether the last pass ended with an error that a pass over some files would have, too,
 * such as denied access to the bucket. Then files at rest wait for the next pass over all files. */
static bool is_held_up(const struct watched *watched)
{
	return watched->code == S3ONCE_EXIT_SETUP || watched->code == S3ONCE_EXIT_FENCED;
}

uint64_t watched_due_ns(const struct watched *watched)
{
	if (has_unfinished_pass(watched))
		return 0;
	const uint64_t due_ns =
		is_held_up(watched) ? UINT64_MAX : pending_due_ns(&watched->pending);
	return due_ns < watched->next_whole_ns ? due_ns : watched->next_whole_ns;
}

bool watched_wants_turn(struct watched *watched)
{
	watched_read(watched);
	/* With retry_ns, the next pass over all files repeats one that failed, and takes no turn
	 * from other jobs. */
	const bool wants_all = !watched->retry_ns && watched->next_whole_ns <= clock_boot_ns();
	return has_unfinished_pass(watched) || wants_all ||
	       (!is_held_up(watched) && has_rested(watched));
}

/* Returns whether each pass has to be over all files. If keys are paths, a pass over some files is
 * enough. But files with the same key by a template, one log under several names (--rotated), and
 * targets of links are found only in a pass over all files. */
static bool needs_all(const struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	return o->key_template || o->rotated || o->follow;
}

static uint64_t files_stored(const struct s3once_counts *c)
{
	return c->uploaded + c->adopted + c->refreshed + c->removed + c->moved;
}

/* Whether the run has stored anything since the last note_stored(). */
static bool has_stored_more(const struct stored *stored, const struct s3once_counts *c)
{
	return files_stored(c) != stored->files || c->bytes_kept != stored->bytes_kept;
}

/* Notes that the run has stored something, and how long that took. */
static void note_stored(struct stored *stored, const struct s3once_counts *c)
{
	const double took_s = c->seconds - stored->last_s;
	*stored = (struct stored){.files = files_stored(c),
		.bytes_kept = c->bytes_kept,
		.last_s = c->seconds,
		.longest_s = took_s > stored->longest_s ? took_s : stored->longest_s};
}

/* Returns whether a run that has just stored something may end, so that others get their turn: it
 * has lasted for --min-age, and LONGEST_TIMES as long as the longest time in which it stored
 * nothing. The reason: interrupted requests have to be sent again, which takes about as long as
 * that longest time, and so at most about a fifth of the pass. */
static bool has_lasted_enough(const struct watched *watched, const struct s3once_counts *c)
{
	return c->seconds * NS_PER_S >= (double)watched->min_age_ns &&
	       c->seconds >= LONGEST_TIMES * watched->stored.longest_s;
}

/* Gives a sign of life to the watchdog of systemd, at most once a second. */
static void give_sign_of_life(void *arg)
{
	struct watched *watched = arg;
	const uint64_t now_ns = clock_boot_ns();
	if (now_ns - watched->last_sign_ns < NS_PER_S)
		return;
	watched->last_sign_ns = now_ns;
	watched->service->sign(watched->service->arg);
}

/* Returns whether a pass has to end so that others get their turn: other jobs, files of this job
 * that have come to rest, or an earlier pass that gave way to this one (last_pass). If each
 * pass is over all files, files at rest do not end it, since the pass for them would repeat the
 * work. The last pass (watched_drain()) gives way to nothing.
 *
 * It also notes from the counts that the job is ready, and gives a sign of life unless the run is
 * stuck. */
static bool gives_way(void *arg, const struct s3once_counts *counts)
{
	struct watched *watched = arg;
	watched->is_ready |= counts->uploaded || counts->adopted || counts->refreshed ||
			     counts->skipped || counts->bytes_kept;
	if (!counts->is_stuck) /* the watchdog shall end a service whose run hangs */
		give_sign_of_life(watched);
	/* The last pass never gives way, and neither does a pass that has not just stored
	 * something. */
	if (watched->job.options.run.final || !has_stored_more(&watched->stored, counts))
		return false;
	note_stored(&watched->stored, counts);
	if (!has_lasted_enough(watched, counts))
		return false;
	watched_read(watched); /* so that has_rested() knows the files touched up to now */
	return has_unfinished_pass(watched) || (!needs_all(watched) && has_rested(watched)) ||
	       watched->service->others_want_turn(watched->service->arg);
}

/* Prints at the first pass which files the service watches, since otherwise it prints nothing until
 * a file comes. */
static void note_sources(struct push_options *options)
{
	const struct s3once_options *run = &options->run;
	struct text note = TEXT(8192);
	text_addf(&note, "watching %s", quote(run->sources[0]).text);
	if (run->n_sources > 1)
		text_addf(&note, " and %zu more", run->n_sources - 1);
	text_addf(&note, " for s3://%s%s%s", run->bucket, *run->prefix ? "/" : "",
		quote(run->prefix).text);
	free(options->note);
	options->note = must_have(strdup(text_string(&note)));
	text_clear(&note);
}

int watched_new(const char *name, int argc, char *const *argv,
	const struct watched_service *service, struct watched **ret)
{
	struct watched *watched = must_have(calloc(1, sizeof *watched));
	struct s3once_options *o = &watched->job.options.run;
	watched->service = service;
	if (job_open(name, JOB_RUN, argc, argv, &watched->job) || refuse_options(watched)) {
		watched_free(watched);
		return -EINVAL;
	}
	/* A service lets files come to rest, and does not wait for other uploaders. */
	if (!o->min_age_ms)
		o->min_age_ms = MIN_AGE_MS;
	o->no_wait = 1;
	watched->min_age_ns = o->min_age_ms * NS_PER_MS;
	watched->pass = (struct push_pass){.waits = on_waiting,
		.gives_way = gives_way,
		.arg = watched,
		.printed_warnings = TEXT(SAID_BYTES_MAX),
		.printed_errors = TEXT(SAID_BYTES_MAX)};
	note_sources(&watched->job.options);
	watched->folders = watch_folders_new(&watched->job, on_touched, give_sign_of_life, watched);
	*ret = watched;
	return 0;
}

void watched_free(struct watched *watched)
{
	if (!watched)
		return;
	watch_folders_free(watched->folders);
	pending_clear(&watched->pending);
	text_clear(&watched->pass.printed_warnings);
	text_clear(&watched->pass.printed_errors);
	path_list_clear(&watched->left);
	metrics_clear(&watched->pass.metrics);
	job_close(&watched->job);
	free(watched);
}

/* Runs push over these paths, or over all files if that is NULL, and adds to the sums.
 * Returns the exit code, which does not count if the pass gave way (pass.ret_gave_way). */
static int run_pass(struct watched *watched, const struct path_list *paths)
{
	struct push_options *options = &watched->job.options;
	watched->began_wall_ns = clock_wall_ns();
	watched->stored = (struct stored){0};
	/* While an earlier pass has to continue, the metrics show that not everything is done. */
	watched->pass.whole_code =
		has_unfinished_pass(watched) ? S3ONCE_EXIT_LIMIT : watched->whole_code;
	options->run.folders = paths ? paths->paths : NULL;
	options->run.n_folders = paths ? paths->n : 0;
	job_set_variables(&watched->job);
	const int code = push_run(options, &watched->pass);
	job_unset_variables(&watched->job);
	options->run.folders = NULL; /* the paths are the caller's, who frees them */
	watched->sums.files += watched->pass.ret_counts.uploaded;
	watched->sums.bytes += watched->pass.ret_counts.bytes_uploaded;
	if (watched->pass.ret_gave_way) {
		log_note("%s: files that came meanwhile have their turn, and then what is left",
			quote(watched->job.name).text);
		return code;
	}
	watched->is_ready = code != S3ONCE_EXIT_USAGE && code != S3ONCE_EXIT_SETUP &&
			    code != S3ONCE_EXIT_FENCED;
	watched->sums.whole += paths == NULL;
	watched->sums.some += paths != NULL;
	watched->sums.failed += code != S3ONCE_EXIT_OK;
	return code;
}

/* Plans a pass over all files after a pass that failed. The wait doubles with each failure, up to
 * the time between two full scans. */
static void plan_retry(struct watched *watched)
{
	const uint64_t max_ns = watched->job.options.whole_scan_ms * NS_PER_MS;
	watched->retry_ns = watched->retry_ns ? 2 * watched->retry_ns : FIRST_RETRY_NS;
	if (watched->retry_ns > max_ns)
		watched->retry_ns = max_ns;
	plan_pass_over_all(watched, clock_boot_ns() + watched->retry_ns);
}

/* Makes a pass over all files, and plans the next one: for now, if this one gave way. */
static void pass_over_all(struct watched *watched)
{
	pending_clear(&watched->pending); /* this pass includes these paths */
	watch_folders_renew(watched->folders);
	watched->next_whole_ns = UINT64_MAX; /* an event during the pass may plan another one */
	const int code = run_pass(watched, NULL);
	if (watched->pass.ret_gave_way) {
		watched->next_whole_ns = 0;
		return;
	}
	watched->code = watched->whole_code = code;
	plan_pass_over_all(
		watched, clock_boot_ns() + watched->job.options.whole_scan_ms * NS_PER_MS);
	if (code)
		plan_retry(watched);
	else
		watched->retry_ns = 0;
}

/* Makes a pass over these paths. If it gives way, all of them are moved to those that are left for
 * its continuation, which skips files done by then. A pass that succeeds leaves watched->code as it
 * is, since only a pass over all files shows that an earlier failure is over. */
static void pass_over_some(struct watched *watched, struct path_list *paths)
{
	const int code = run_pass(watched, paths);
	if (watched->pass.ret_gave_way) {
		path_list_move(&watched->left, paths);
	} else if (code) {
		watched->code = code;
		plan_retry(watched);
	}
}

/* Makes the pass that is due: over all files, or over the files at rest. An earlier pass that gave
 * way is continued here: over all files, or over its remaining paths and the files at rest. If
 * nothing is due, there is no pass. */
static void pass_over_due(struct watched *watched)
{
	struct path_list paths = {0};
	path_list_move(&paths, &watched->left); /* those of a pass over some files that gave way */
	watched->last_pass = PASS_ENDED;
	take_rested(watched, &paths);
	/* next_whole_ns is 0, and so it is due, if a pass over all files gave way. */
	const bool all_are_due = watched->next_whole_ns <= clock_boot_ns();
	if (all_are_due || (paths.n && needs_all(watched)))
		pass_over_all(watched);
	else if (paths.n)
		pass_over_some(watched, &paths);
	path_list_clear(&paths);
}

void watched_pass(struct watched *watched)
{
	struct path_list rested = {0};
	watched->pass.ret_gave_way = false; /* pass_over_due() may find that nothing is due */
	if (watched->last_pass == PASS_GAVE_WAY && !needs_all(watched))
		take_rested(watched, &rested);
	if (rested.n) {
		/* The earlier pass continues after this one, even if this one gives way, too. So it
		 * comes to its end. */
		pass_over_some(watched, &rested);
		watched->last_pass = PASS_GOES_ON;
	} else {
		pass_over_due(watched);
		watched->last_pass = watched->pass.ret_gave_way ? PASS_GAVE_WAY : PASS_ENDED;
	}
	/* While a pass still has to continue, errors that were printed are not repeated. */
	if (!has_unfinished_pass(watched))
		text_reset(&watched->pass.printed_errors);
	path_list_clear(&rested);
}

void watched_drain(struct watched *watched, uint64_t until_ns)
{
	struct s3once_options *o = &watched->job.options.run;
	const uint64_t now_ns = clock_boot_ns();
	o->final = 1;
	/* At least 1, since 0 would set no limit. */
	o->max_duration_ms = until_ns > now_ns ? (until_ns - now_ns) / NS_PER_MS + 1 : 1;
	watched->code = run_pass(watched, NULL);
	pending_clear(&watched->pending);
	watched->next_whole_ns = UINT64_MAX;
	/* The pass reached its time limit and left files, so that watched_leaves_files() returns
	 * true. */
	watched->last_pass = watched->code == S3ONCE_EXIT_LIMIT ? PASS_GOES_ON : PASS_ENDED;
}

bool watched_leaves_files(const struct watched *watched)
{
	/* next_whole_ns is 0 before the first pass, and while a pass over all files has to go on.
	 */
	return has_unfinished_pass(watched) || !watched->next_whole_ns ||
	       pending_has_new(&watched->pending);
}
