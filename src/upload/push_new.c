#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "scan/content/identity_cache.h"
#include "store/state_folder.h"
#include "upload/cut_logs.h"
#include "upload/push_struct.h"
#include "upload/run_options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

/* What rotation and compression do not change. */
#define ROTATED_KEY "{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}"

/* A path may have any bytes; the store takes only text. */
static int name_sources(struct run *run)
{
	struct process self;
	process_self(&self);
	run->sources_of_marks = calloc(run->options.n_sources, sizeof *run->sources_of_marks);
	for (size_t i = 0; run->sources_of_marks && i < run->options.n_sources; i++)
		if (asprintf(&run->sources_of_marks[i], "%s:%s", self.host,
			    quote(scan_source_path(run->scan, i)).text) < 0) {
			run->sources_of_marks[i] = NULL;
			return -ENOMEM;
		}
	return run->sources_of_marks ? 0 : -ENOMEM;
}

/* Whether nothing more is to be found: the run is over, or is to end. */
static bool scan_is_over(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->scanning);
	return run_is_over(run) || atomic_load(&run->stop);
}

static int read_template(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	if (!o->key_template && !o->rotated)
		return 0;
	int error = family_rules_new(o->rotated_pattern, &run->families, problem);
	if (error)
		problem_prefix(problem, "--rotated-pattern");
	const struct key_template_options options = {
		.text = o->key_template ? o->key_template : ROTATED_KEY,
		.time_zone = o->key_template ? o->time_zone : NULL,
		.zone_has_other_use = o->n_rates >= 2,
		.families = run->families,
		.names_families = o->rotated != 0};
	if (!error)
		error = key_template_new(&options, &run->key_template, problem);
	return error;
}

/* What cannot be kept is read again by the next run: no reason to end this one. */
static void open_identities(struct run *run)
{
	char path[4096];
	struct problem problem;
	const int error = (run->options.dry_run ? state_path : state_file)(
		"identities.db", path, sizeof path);
	if (error || (run->options.dry_run && access(path, F_OK)))
		return; /* the environment names no place for it, or a dry run must not leave traces
			 */
	if (identity_cache_open(
		    path, clock_wall_ns() / (int64_t)NS_PER_S, &run->identities, &problem))
		log_info("the content of files is read again by each run: %s", problem.text);
}

static int open_scan(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	int error = read_template(run, problem);
	if (error)
		return error;
	if (o->rotated || (run->key_template && key_template_has_id(run->key_template)))
		open_identities(run);
	error = cut_logs_open(run, problem);
	if (error)
		return error;
	const struct scan_options options = {
		.sources = o->sources,
		.n_sources = o->n_sources,
		.prefix = o->prefix,
		.as = o->as,
		.key_template = run->key_template,
		.rotated = o->rotated ? run->families : NULL,
		.log_rows = run->log_rows,
		.takes_live = o->live != 0,
		.refuses_grown = o->if_grown == S3ONCE_GROWN_FAIL,
		.template_is_of_rotated = !o->key_template,
		.identities = run->identities,
		.files_from = o->files_from,
		.nul_separated = o->nul_separated != 0,
		.folders = o->folders,
		.n_folders = o->n_folders,
		.filter = run->filter,
		.follow = o->follow != 0,
		.min_age_ms = o->min_age_ms,
		.only_looks = o->dry_run != 0,
		.now_wall_ns = clock_wall_ns(),
		.max_bytes = o->max_bytes,
		.is_over = scan_is_over,
		.is_over_arg = run,
	};
	error = scan_open(&options, &run->scan, problem);
	if (!error && name_sources(run)) {
		problem_set(problem, "out of memory");
		scan_close(run->scan);
		run->scan = NULL;
	}
	return error;
}

static int open_bandwidth(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	const struct bandwidth_options options = {
		.rates = o->rates, .n_rates = o->n_rates, .time_zone = o->time_zone};
	return bandwidth_new(&options, &run->bandwidth, problem);
}

static void open_encoders(struct run *run)
{
	const struct s3once_options *o = &run->options;
	struct problem problem;
	if (!o->compress || encoding_parse(o->compress, &run->encoding, &problem))
		return;
	const struct encoders_limits limits = {.memory_bytes = encoders_memory(o->memory_bytes),
		.part_bytes = o->part_bytes,
		.cpus = uv_available_parallelism()};
	encoders_init(&run->encoders, &run->encoding, &limits);
}

int s3once_push_new(
	const struct s3once_options *options, struct s3once_push **ret, char *ret_text, size_t size)
{
	struct s3once_push *push = calloc(1, sizeof *push);
	struct problem problem = {0};
	if (!push)
		return -ENOMEM;
	struct run *run = &push->run;
	int error = run_options_complete(options, &run->options, &problem);
	if (!error)
		error = run_options_filter(options, &run->filter, &problem);
	if (!error)
		error = object_rules_new(options, &run->rules, &problem);
	if (!error && options->n_rates)
		error = open_bandwidth(run, &problem);
	if (error) {
		snprintf(ret_text, size, "%s", problem.text);
		filter_free(run->filter);
		object_rules_free(run->rules);
		free(push);
		return error;
	}
	uv_mutex_init(&run->locked.mutex);
	refusals_init(&run->refusals);
	run->move_to_fd = -1;
	report_init(&run->report, &run->options);
	atomic_store(&run->dry, run->options.dry_run != 0);
	const unsigned most = run->options.concurrency;
	buffers_init(
		&run->buffers, run->options.memory_bytes, most < LARGE_MOST ? most : LARGE_MOST);
	open_encoders(run);
	/* Other errors than contradictions are errors of the run. */
	if (open_scan(run, &push->scan_problem) == -EINVAL) {
		snprintf(ret_text, size, "%s", push->scan_problem.text);
		s3once_push_free(push);
		return -EINVAL;
	}
	*ret = push;
	return 0;
}
