#include "cli/watch/watched.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "cli/push/push_command.h"
#include "cli/push/service_notify.h"
#include "cli/watch/watch_folders.h"
#include "cli/watch/watch_young.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_AGE_MS        10000
#define FIRST_RETRY_NS    (5 * NS_PER_S)
#define SAID_BYTES_MAX    (16U << 10)
#define METRICS_BYTES_MAX (256U << 10)
#define TOUCH_DELAY_NS    (100 * NS_PER_MS) /* a time stamp of a file may be a little late */

struct watched {
	struct job job;
	struct filter *filter; /* of the job's rules; NULL: none */
	struct watch_folders *folders;
	struct watch_young young;
	struct push_pass pass;
	struct watched_sums sums;
	uint64_t next_whole_ns; /* the next pass over all files */
	uint64_t retry_ns;      /* how long the last one that failed was waited out; 0: it did not
				   fail */
	int code;               /* see watched_code() */
	int64_t began_wall_ns;  /* of the pass under way */
	struct service_notify service;
	uint64_t fed_ns; /* when the watchdog was told of a folder last */
};

/* Options that make no sense for a service that does not end, or without a person to decide. */
static int refuse(const struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	const char *option = o->dry_run           ? "dry-run"
			     : o->files_from      ? "files-from"
			     : o->reupload        ? "reupload"
			     : o->new_bucket      ? "new-bucket"
			     : o->same_bucket     ? "same-bucket"
			     : o->manifest        ? "manifest"
			     : o->compare_content ? "compare-content"
						  : NULL;
	if (!option)
		return 0;
	log_error("watch: %s: %s is for a single run; use s3once run for that",
		quote(watched->job.name).text, option);
	return -EINVAL;
}

static int open_filter(struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	int error = o->n_rules ? filter_new(&watched->filter) : 0;
	for (size_t i = 0; !error && i < o->n_rules; i++)
		error = filter_add(watched->filter, o->rules[i].include != 0, o->rules[i].pattern);
	return error;
}

static void on_young(void *arg, const char *path)
{
	struct watched *watched = arg;
	watch_young_add(&watched->young, path, watched->began_wall_ns);
}

/* The options that a service needs: it waits for no other uploader, and for files to rest. */
static void prepare(struct watched *watched)
{
	struct push_options *options = &watched->job.options;
	if (!options->run.min_age_ms)
		options->run.min_age_ms = MIN_AGE_MS;
	options->run.no_wait = 1;
	watched->young.min_age_ms = options->run.min_age_ms;
	watched->pass = (struct push_pass){.young = on_young,
		.arg = watched,
		.metrics = TEXT(METRICS_BYTES_MAX),
		.said = TEXT(SAID_BYTES_MAX)};
}

static void on_moved(void *arg)
{
	struct watched *watched = arg;
	const uint64_t now_ns = clock_boot_ns();
	if (now_ns - watched->fed_ns < NS_PER_S)
		return;
	watched->fed_ns = now_ns;
	if (service_notify_watchdog_ms())
		service_notify_say(&watched->service, "WATCHDOG=1\n");
}

static int open_folders(struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	const struct watch_folders_options options = {.job = watched->job.name,
		.sources = o->sources,
		.n_sources = o->n_sources,
		.filter = watched->filter,
		.ignored = o->log_file,
		.follow = o->follow != 0,
		.rest_ns = o->min_age_ms * NS_PER_MS + TOUCH_DELAY_NS,
		.moves = on_moved,
		.arg = watched};
	service_notify_init(&watched->service);
	return watch_folders_new(&options, &watched->folders);
}

int watched_new(const char *name, int argc, char *const *argv, struct watched **ret)
{
	struct watched *watched = calloc(1, sizeof *watched);
	if (!watched) {
		log_error("watch: out of memory");
		return -EINVAL;
	}
	int error = job_open(name, argc, argv, &watched->job);
	if (!error)
		error = refuse(watched);
	if (!error) {
		prepare(watched);
		error = open_filter(watched);
		if (!error)
			error = open_folders(watched);
		if (error)
			log_error("watch: out of memory");
	}
	if (error) {
		watched_free(watched);
		return -EINVAL;
	}
	*ret = watched;
	return 0;
}

void watched_free(struct watched *watched)
{
	if (!watched)
		return;
	watch_folders_free(watched->folders);
	watch_young_clear(&watched->young);
	filter_free(watched->filter);
	text_clear(&watched->pass.said);
	text_clear(&watched->pass.metrics);
	job_close(&watched->job);
	free(watched);
}

void watched_take_over(struct watched *watched, const struct watched *before)
{
	watched->sums = before->sums;
	text_reset(&watched->pass.metrics);
	text_add(&watched->pass.metrics, text_string(&before->pass.metrics));
}

const struct job *watched_job(const struct watched *watched)
{
	return &watched->job;
}

int watched_fd(const struct watched *watched)
{
	return watch_folders_fd(watched->folders);
}

static void look_at_all_by(struct watched *watched, uint64_t due_ns)
{
	if (due_ns < watched->next_whole_ns)
		watched->next_whole_ns = due_ns;
}

static uint64_t min_age_ns(const struct watched *watched)
{
	return watched->young.min_age_ms * NS_PER_MS;
}

void watched_read(struct watched *watched)
{
	const uint64_t now_ns = clock_boot_ns();
	if (!watch_folders_read(watched->folders, now_ns))
		look_at_all_by(watched, now_ns + min_age_ns(watched));
}

/* After such an end the next pass would end the same way. */
static bool is_held_up(const struct watched *watched)
{
	return watched->code == S3ONCE_EXIT_SETUP || watched->code == S3ONCE_EXIT_FENCED;
}

static uint64_t touched_due_ns(const struct watched *watched)
{
	const uint64_t touched_ns = watch_folders_due_ns(watched->folders);
	const uint64_t young_ns = watch_young_due_ns(&watched->young);
	return touched_ns < young_ns ? touched_ns : young_ns;
}

uint64_t watched_due_ns(const struct watched *watched)
{
	const uint64_t due_ns = is_held_up(watched) ? UINT64_MAX : touched_due_ns(watched);
	return due_ns < watched->next_whole_ns ? due_ns : watched->next_whole_ns;
}

/* The folders of a pass. */
struct touched {
	const char **paths; /* the first `borrowed` are not ours */
	size_t n, borrowed;
	bool is_incomplete;
};

static void add_touched(void *arg, const char *folder)
{
	struct touched *touched = arg;
	const char **grown = realloc(touched->paths, (touched->n + 1) * sizeof *touched->paths);
	char *copy = grown ? strdup(folder) : NULL;
	if (grown)
		touched->paths = grown;
	if (copy)
		touched->paths[touched->n++] = copy;
	touched->is_incomplete |= !copy;
}

static struct touched take_touched(struct watched *watched)
{
	const uint64_t now_ns = clock_boot_ns();
	struct touched touched = {0};
	const int n = watch_folders_take(watched->folders, now_ns, &touched.paths);
	touched.is_incomplete = n < 0;
	touched.n = touched.borrowed = n < 0 ? 0 : (size_t)n;
	watch_young_take(&watched->young, now_ns, add_touched, &touched);
	return touched;
}

static void touched_clear(struct touched *touched)
{
	while (touched->n > touched->borrowed)
		free((char *)(uintptr_t)touched->paths[--touched->n]);
	free(touched->paths);
}

/* Folders are enough only where keys are paths: what a template makes of several folders, or a link
 * leads to, is known when all is looked at. */
static bool needs_all(const struct watched *watched)
{
	const struct s3once_options *o = &watched->job.options.run;
	return o->key_template || o->rotated || o->follow;
}

static int run(struct watched *watched, const struct touched *touched)
{
	struct push_options *options = &watched->job.options;
	watched->began_wall_ns = clock_wall_ns();
	options->run.folders = touched ? touched->paths : NULL;
	options->run.n_folders = touched ? touched->n : 0;
	const int code = push_run_pass(options, &watched->pass);
	options->run.folders = NULL;
	watched->sums.passes++;
	watched->sums.failed += code != S3ONCE_EXIT_OK;
	watched->sums.files += watched->pass.ret_counts.uploaded;
	watched->sums.bytes += watched->pass.ret_counts.bytes_uploaded;
	return code;
}

static void plan_retry(struct watched *watched)
{
	const uint64_t most_ns = watched->job.options.whole_scan_ms * NS_PER_MS;
	watched->retry_ns = watched->retry_ns ? 2 * watched->retry_ns : FIRST_RETRY_NS;
	if (watched->retry_ns > most_ns)
		watched->retry_ns = most_ns;
	look_at_all_by(watched, clock_boot_ns() + watched->retry_ns);
}

static int pass_over_all(struct watched *watched)
{
	watch_young_clear(&watched->young);
	watch_folders_renew(watched->folders);
	const int code = run(watched, NULL);
	watched->sums.whole++;
	watched->code = watched->pass.whole_code = code;
	watched->next_whole_ns = clock_boot_ns() + watched->job.options.whole_scan_ms * NS_PER_MS;
	if (watched->young.is_whole)
		look_at_all_by(watched, clock_boot_ns() + min_age_ns(watched));
	if (code)
		plan_retry(watched);
	else
		watched->retry_ns = 0;
	return code;
}

static int pass_over_some(struct watched *watched, const struct touched *touched)
{
	const int code = run(watched, touched);
	if (code) {
		watched->code = code;
		plan_retry(watched);
	}
	if (watched->young.is_whole)
		look_at_all_by(watched, clock_boot_ns() + min_age_ns(watched));
	return code;
}

int watched_pass(struct watched *watched)
{
	if (watched->next_whole_ns <= clock_boot_ns())
		return pass_over_all(watched);
	struct touched touched = take_touched(watched);
	int code = S3ONCE_EXIT_OK;
	if (touched.is_incomplete || (touched.n && needs_all(watched)))
		code = pass_over_all(watched);
	else if (touched.n)
		code = pass_over_some(watched, &touched);
	touched_clear(&touched);
	return code;
}

int watched_code(const struct watched *watched)
{
	return watched->code;
}

bool watched_waits(const struct watched *watched)
{
	return !watched->next_whole_ns || watch_folders_due_ns(watched->folders) != UINT64_MAX;
}

void watched_add(const struct watched *watched, struct watched_sums *sums)
{
	sums->passes += watched->sums.passes;
	sums->whole += watched->sums.whole;
	sums->failed += watched->sums.failed;
	sums->files += watched->sums.files;
	sums->bytes += watched->sums.bytes;
	sums->folders += watch_folders_count(watched->folders);
}

const char *watched_metrics(const struct watched *watched)
{
	return text_string(&watched->pass.metrics);
}
