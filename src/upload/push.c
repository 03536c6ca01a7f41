/* One push from its beginning to its end, which is what include/s3once/push.h offers: it is made
 * from options, run, asked for its counts, and freed. push_set_up.c opens the services for it, and
 * push_loop.c runs its threads. Everything here is the main thread's. */
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include "scan/content/identity_cache.h"
#include "scan/rotated/log_rows.h"
#include "store/sqlite_file.h"
#include "store/state_folder.h"
#include "store/store.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/multipart.h"
#include "upload/push_struct.h"
#include "upload/run_manifest.h"
#include "upload/run_options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

/* What rotation and compression do not change. */
#define ROTATED_KEY "{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}"

/* A path may have any bytes; the store takes only text. */
static int name_sources(struct run *run)
{
	struct process self;
	process_self(&self);
	run->files.sources_of_marks =
		calloc(run->options.n_sources, sizeof *run->files.sources_of_marks);
	for (size_t i = 0; run->files.sources_of_marks && i < run->options.n_sources; i++)
		if (asprintf(&run->files.sources_of_marks[i], "%s:%s", self.host,
			    quote(scan_source_path(run->files.scan, i)).text) < 0) {
			run->files.sources_of_marks[i] = NULL;
			return -ENOMEM;
		}
	return run->files.sources_of_marks ? 0 : -ENOMEM;
}

/* Whether nothing more is to be found: the run is over, or is to end. */
static bool scan_is_over(void *arg)
{
	struct run *run = arg;
	liveness_sign(&run->scanning);
	return run_is_stopping(run);
}

static int read_template(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	if (!o->key_template && !o->rotated)
		return 0;
	int error = family_rules_new(o->rotated_pattern, &run->files.families, problem);
	if (error)
		problem_prefix(problem, "--rotated-pattern");
	const struct key_template_options options = {
		.text = o->key_template ? o->key_template : ROTATED_KEY,
		.time_zone = o->key_template ? o->time_zone : NULL,
		.zone_has_other_use = o->n_rates >= 2,
		.families = run->files.families,
		.names_families = o->rotated != 0};
	if (!error)
		error = key_template_new(&options, &run->files.key_template, problem);
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
		    path, clock_wall_ns() / (int64_t)NS_PER_S, &run->files.identities, &problem))
		log_info("the content of files is read again by each run: %s", problem.text);
}

/* NULL where a run that leaves no traces finds no file. */
static int open_marks_file(const struct run *run, const struct marks_place *place, sqlite3 **ret,
	struct problem *ret_problem)
{
	char *name = NULL;
	*ret = NULL;
	if (run->options.dry_run && access(place->path, F_OK))
		return 0;
	const int error =
		sqlite_file_open(place->path, run->options.dry_run != 0, ret, &name, ret_problem);
	free(name);
	return error;
}

static int make_log_rows(
	struct run *run, const struct marks_place *place, struct problem *ret_problem)
{
	const struct s3once_options *o = &run->options;
	char *scope;
	sqlite3 *db;
	int error = open_marks_file(run, place, &db, ret_problem);
	if (error)
		return error;
	if (asprintf(&scope, "%s/%s", o->bucket, o->prefix) < 0) {
		problem_set(ret_problem, "out of memory");
		sqlite3_close(db);
		return -ENOMEM;
	}
	const struct log_rows_options options = {.db = db,
		.scope = scope,
		.only_looks = o->dry_run != 0,
		.now_s = clock_wall_ns() / (int64_t)NS_PER_S};
	error = log_rows_new(&options, &run->files.log_rows, ret_problem);
	free(scope);
	return error;
}

/* Opens run->files.log_rows, where a run keeps how it has cut logs that grow, in the file of its
 * marks. */
static int open_log_rows(struct run *run, struct problem *ret_problem)
{
	struct marks_place place;
	if (!run_options_cut_logs(&run->options))
		return 0;
	int error = marks_place_parse(run->options.marks, &place, ret_problem);
	if (!error && place.is_dynamodb) {
		problem_set(ret_problem,
			"--live and --if-grown=tail|fail need marks in a file of this host (--marks "
			"local or sqlite:PATH): only the host that has a log open knows its file "
			"again when it has grown");
		error = -EINVAL;
	}
	if (!error)
		error = make_log_rows(run, &place, ret_problem);
	marks_place_clear(&place);
	return error;
}

static int open_scan(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	int error = read_template(run, problem);
	if (error)
		return error;
	if (o->rotated || (run->files.key_template && key_template_has_id(run->files.key_template)))
		open_identities(run);
	error = open_log_rows(run, problem);
	if (error)
		return error;
	const struct scan_options options = {
		.sources = o->sources,
		.n_sources = o->n_sources,
		.prefix = o->prefix,
		.as = o->as,
		.key_template = run->files.key_template,
		.rotated = o->rotated ? run->files.families : NULL,
		.log_rows = run->files.log_rows,
		.takes_live = o->live != 0,
		.refuses_grown = o->if_grown == S3ONCE_GROWN_FAIL,
		.template_is_of_rotated = !o->key_template,
		.identities = run->files.identities,
		.files_from = o->files_from,
		.nul_separated = o->nul_separated != 0,
		.folders = o->folders,
		.n_folders = o->n_folders,
		.filter = run->files.filter,
		.follow = o->follow != 0,
		.min_age_ms = o->min_age_ms,
		.only_looks = o->dry_run != 0,
		.now_wall_ns = clock_wall_ns(),
		.max_bytes = o->max_bytes,
		.is_over = scan_is_over,
		.is_over_arg = run,
	};
	error = scan_open(&options, &run->files.scan, problem);
	if (!error && name_sources(run)) {
		problem_set(problem, "out of memory");
		scan_close(run->files.scan);
		run->files.scan = NULL;
	}
	return error;
}

static int open_bandwidth(struct run *run, struct problem *problem)
{
	const struct s3once_options *o = &run->options;
	const struct bandwidth_options options = {
		.rates = o->rates, .n_rates = o->n_rates, .time_zone = o->time_zone};
	return bandwidth_new(&options, &run->bodies.bandwidth, problem);
}

static void open_encoders(struct run *run)
{
	const struct s3once_options *o = &run->options;
	struct problem problem;
	if (!o->compress || encoding_parse(o->compress, &run->bodies.encoding, &problem))
		return;
	const struct encoders_limits limits = {.memory_bytes = encoders_memory(o->memory_bytes),
		.part_bytes = o->part_bytes,
		.cpus = uv_available_parallelism()};
	encoders_init(&run->bodies.encoders, &run->bodies.encoding, &limits);
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
		error = run_options_filter(options, &run->files.filter, &problem);
	if (!error)
		error = object_rules_new(options, &run->bodies.rules, &problem);
	if (!error && options->n_rates)
		error = open_bandwidth(run, &problem);
	if (error) {
		snprintf(ret_text, size, "%s", problem.text);
		filter_free(run->files.filter);
		object_rules_free(run->bodies.rules);
		free(push);
		return error;
	}
	uv_mutex_init(&run->locked.mutex);
	refusals_init(&run->refusals);
	run->files.move_to_fd = -1;
	report_init(&run->report, &run->options);
	run->dry = run->options.dry_run != 0;
	const unsigned most = run->options.concurrency;
	buffers_init(&run->bodies.buffers, run->options.memory_bytes,
		most < LARGE_MOST ? most : LARGE_MOST);
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

const char *s3once_version(void)
{
	return S3ONCE_VERSION;
}

/* What nobody was told of must not pass for done. */
static void tell_lost(struct run *run, const struct s3once_counts *c)
{
	struct problem problem;
	problem_set(&problem,
		"%llu files were found, but %llu were counted, which is an error of "
		"s3once itself: run again",
		(unsigned long long)c->found, (unsigned long long)s3once_counts_settled(c));
	report_run(&run->report, S3ONCE_EVENT_FATAL, &problem);
}

static enum s3once_exit verdict(struct s3once_push *push)
{
	struct run *run = &push->run;
	const struct s3once_counts c = report_get(&run->report);
	const bool settled = push->whole && s3once_counts_settled(&c) == c.found;
	if (atomic_load(&run->end.was_asked_to_stop) && !settled)
		return S3ONCE_EXIT_STOPPED;
	if (atomic_load(&run->end.fenced))
		return S3ONCE_EXIT_FENCED;
	if (atomic_load(&run->end.failed_setup))
		return S3ONCE_EXIT_SETUP;
	const bool is_limited = atomic_load(&run->end.has_reached_limit);
	if (push->whole && !settled && !is_limited)
		tell_lost(run, &c);
	if (c.failed || c.changed || c.not_removed || (!settled && !is_limited))
		return S3ONCE_EXIT_FILES;
	if (!settled)
		return S3ONCE_EXIT_LIMIT;
	if (c.found && c.found == c.links) {
		struct problem problem;
		problem_set(&problem,
			"found only symbolic links, which are not followed; use --follow to "
			"upload the files that they lead to");
		report_run(&run->report, S3ONCE_EVENT_WARNING, &problem);
		return S3ONCE_EXIT_FILES;
	}
	return c.held ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
}

static void tell_start(struct s3once_push *push)
{
	struct problem problem;
	const char *marks = push->run.options.marks;
	problem_set(&problem, "%s", quote(marks).text);
	report_run(&push->run.report, S3ONCE_EVENT_START, &problem);
}

/* Before it is said that files are in S3, that is on the disk, whichever run has marked them. */
static void look_for_marks(struct s3once_push *push)
{
	struct problem problem;
	if (!push->run.dry && store_sync(push->conn, NULL, &problem) != OUTCOME_OK)
		run_fail(&push->run, &problem);
	if (own_files_are_there(&push->run.files.own_files))
		return;
	problem_set(&problem,
		"%s: was removed or replaced while this run had it open, so that marks "
		"may be lost: run again; files without a mark are compared with what S3 "
		"holds",
		quote(push->run.files.own_files.path).text);
	run_fail(&push->run, &problem);
}

/* A run that could not do its work has none: the next one's says what it found done. */
static enum s3once_exit put_manifest(struct run *run, enum s3once_exit exit)
{
	switch (exit) {
	case S3ONCE_EXIT_OK:
	case S3ONCE_EXIT_HELD:
	case S3ONCE_EXIT_LIMIT:
		return run_manifest_put(run) ? exit : S3ONCE_EXIT_FILES;
	case S3ONCE_EXIT_FILES:
		run_manifest_put(run);
		return exit;
	default:
		return exit;
	}
}

enum s3once_exit s3once_push_run(struct s3once_push *push)
{
	struct run *run = &push->run;
	struct problem problem;
	if (push_set_up(push)) {
		tell_start(push);
		if (!push_loop(push)) {
			problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
			run_fail(run, &problem);
		}
		for (struct parts *parts; (parts = queue_leftover(run->queue));)
			file_free(multipart_give_up(parts));
		report_unshipped(&run->report, queue_oldest_ns(run->queue));
	}
	batches_learner_end(&run->batches_learner);
	if (push->set_up)
		bucket_keep(run, push->conn);
	char session[ID_CHARS + 1] = "";
	if (run->locked.begun)
		snprintf(session, sizeof session, "%s", session_id(run->session));
	run_look_at_lease(run);
	if (run->session)
		session_close(run->session, push->conn);
	run->session = NULL;
	if (push->set_up)
		look_for_marks(push);
	const enum s3once_exit exit = put_manifest(run, verdict(push));
	if (push->has_marks && !run->dry)
		run_job_end(run, push->conn, *session ? session : NULL, exit);
	push->counts = report_get(&run->report);
	report_counts(&run->report, S3ONCE_EVENT_SUMMARY);
	return exit;
}

const char *s3once_push_requests(const struct s3once_push *push, size_t i, uint64_t *ret_count)
{
	unsigned long count = 0;
	const char *name = NULL;
	size_t n = 0;
	for (; push->run.s3 && (name = service_kind(s3_service(push->run.s3), n, &count)); n++)
		if (n == i)
			goto found;
	if (push->run.store)
		name = push->run.store->ops->kind(push->run.store, i - n, &count);
found:
	*ret_count = count;
	return name;
}

const char *s3once_push_manifest(const struct s3once_push *push)
{
	return run_manifest_key(&push->run);
}

const struct s3once_counts *s3once_push_counts(const struct s3once_push *push)
{
	return &push->counts;
}

uint64_t s3once_counts_settled(const struct s3once_counts *counts)
{
	return counts->uploaded + counts->adopted + counts->refreshed + counts->skipped +
	       counts->planned + counts->changed + counts->failed + counts->held + counts->young +
	       counts->oversized + counts->undersized + counts->links + counts->special +
	       counts->outdated;
}

void s3once_push_free(struct s3once_push *push)
{
	if (!push)
		return;
	struct run *run = &push->run;
	queue_free(run->queue);
	run_manifest_free(run);
	for (size_t i = 0; run->files.sources_of_marks && i < run->options.n_sources; i++)
		free(run->files.sources_of_marks[i]);
	free(run->files.sources_of_marks);
	if (run->files.scan)
		scan_close(run->files.scan);
	store_conn_free(push->conn);
	store_close(run->store);
	if (run->s3)
		s3_close(run->s3);
	http_shared_free(run->http);
	aws_settings_free(run->aws);
	key_template_free(run->files.key_template);
	log_rows_free(run->files.log_rows);
	identity_cache_close(run->files.identities);
	bandwidth_free(run->bodies.bandwidth);
	family_rules_free(run->files.families);
	if (run->files.move_to_fd >= 0)
		close(run->files.move_to_fd);
	filter_free(run->files.filter);
	object_rules_free(run->bodies.rules);
	encoders_clear(&run->bodies.encoders);
	refusals_clear(&run->refusals);
	report_clear(&run->report);
	uv_mutex_destroy(&run->locked.mutex);
	own_files_clear(&run->files.own_files);
	free(push);
}
