/* `s3once verify`: whether the bucket has what the marks say. Changes nothing. */
#include "audit/bucket_known.h"
#include "base/clock.h"
#include "base/quote.h"
#include "cli/audit/audit_setup.h"
#include "cli/audit/verify_options.h"
#include "cli/audit/verify_view.h"
#include "cli/audit/verify_with_manifest.h"
#include "cli/audit/verify_with_report.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS          8
#define GIVE_UP_AFTER_MS 60000

/* The options of the command, and the services that it uses. */
struct job {
	const struct verify_options *options;
	struct s3_url url;
	struct verify_subset subset;
	struct marks_place place;
	struct audit_setup setup;
	struct s3_headers *headers;
	struct text prefix;
	uint64_t deadline_ns; /* 0: none */
};

/* Reads the operand and what needs no service. 0, or the exit code with a sentence. */
static int read_operands(struct job *job, int n, char **operands, struct problem *ret_problem)
{
	const struct verify_options *options = job->options;
	if (n != 1)
		problem_set(ret_problem, "name one s3://BUCKET[/KEY-OR-PREFIX]");
	if (n != 1 || url_parse(operands[0], &job->url, ret_problem) < 0)
		return S3ONCE_EXIT_USAGE;
	if (options->public_key && !options->manifest) {
		problem_set(
			ret_problem, "--public-key is that of a manifest: give --manifest, too");
		return S3ONCE_EXIT_USAGE;
	}
	if (options->subset && !options->head && !options->download && !options->manifest) {
		problem_set(ret_problem, "--subset goes with --head or --download: the listing is "
					 "compared as a whole");
		return S3ONCE_EXIT_USAGE;
	}
	if (options->subset && verify_subset_read(options->subset, &job->subset, ret_problem) < 0)
		return S3ONCE_EXIT_USAGE;
	key_add_base(&job->prefix, job->url.key);
	const char *prefix = text_string(&job->prefix);
	if (options->after && strncmp(options->after, prefix, strlen(prefix)) != 0) {
		problem_set(ret_problem, "--after '%s' is not a key below %s",
			quote(options->after).text, quote(operands[0]).text);
		return S3ONCE_EXIT_USAGE;
	}
	if (options->manifest)
		return S3ONCE_EXIT_OK;
	return marks_place_chosen(&options->access, true, &job->place, ret_problem);
}

static bool prepare_key(struct job *job, struct problem *ret_problem)
{
	if (!job->options->key_file)
		return true;
	return s3_headers_new(&job->headers) == 0 &&
	       s3_headers_set(
		       job->headers, "sse-c-key-file", job->options->key_file, ret_problem) == 0 &&
	       s3_headers_prepare(job->headers, ret_problem) == 0;
}

static bool open_all(struct job *job, struct problem *ret_problem)
{
	const struct audit_wanted wanted = {&job->options->access, &job->place, job->url.bucket,
		.needs_s3 = !job->options->reports.n};
	return prepare_key(job, ret_problem) &&
	       audit_setup_open(&wanted, &job->setup, ret_problem) == 0;
}

static void close_all(struct job *job)
{
	audit_setup_close(&job->setup);
	s3_headers_free(job->headers);
	marks_place_clear(&job->place);
	text_clear(&job->prefix);
}

static bool is_late(const struct job *job)
{
	return job->deadline_ns && clock_boot_ns() >= job->deadline_ns;
}

/* What the run's threads are given as `arg`. */
struct audience {
	struct verify_view view;
	const struct job *job;
};

static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	verify_view_found(&((struct audience *)arg)->view, finding, key, problem);
}

static void on_progress(void *arg, const struct verify_counts *counts)
{
	verify_view_progress(&((struct audience *)arg)->view, counts);
}

static bool is_stopped(void *arg)
{
	return signals_came() || is_late(((const struct audience *)arg)->job);
}

/* If the key has a mark of its own, only that one is meant, as for `status`. */
static enum outcome is_one_key(const struct job *job, bool *ret, struct problem *ret_problem)
{
	const struct mark_ref ref = {.conn = job->setup.marks.conn,
		.space = &job->setup.space,
		.key = job->url.key,
		.session = "",
		.source = ""};
	const char *prefix = text_string(&job->prefix);
	struct mark mark = {0};
	*ret = false;
	if (strcmp(prefix, job->url.key) == 0)
		return OUTCOME_OK;
	const enum outcome o = mark_get(&ref, &mark, ret_problem);
	*ret = o == OUTCOME_OK && mark.state != MARK_ABSENT && mark.state != MARK_FORGOTTEN;
	mark_clear(&mark);
	return o;
}

static struct call_limits limits_of(const struct job *job, struct audience *audience)
{
	return (struct call_limits){.abandon = is_stopped,
		.abandon_arg = audience,
		.patience_ms = job->options->give_up_after_ms};
}

/* In another bucket of that name, every object would be missing or different. What ends the run is
 * noticed by the comparison. */
static enum outcome know_bucket(
	const struct job *job, struct audience *audience, struct problem *ret_problem)
{
	struct audit_place place = job->setup.place;
	struct audit_hand hand;
	place.limits = limits_of(job, audience);
	enum outcome o = OUTCOME_LOCAL;
	if (audit_hand_open(&place, &hand))
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
	else
		o = bucket_is_known(&place, &hand, job->url.bucket, ret_problem);
	audit_hand_clear(&hand);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

/* With --subset 10G, the size of all objects decides which keys are chosen. */
static enum outcome size_subset(
	struct job *job, struct audience *audience, struct problem *ret_problem)
{
	const struct mark_range range = {.prefix = text_string(&job->prefix)};
	const struct call_limits limits = limits_of(job, audience);
	uint64_t total = 0;
	if (!job->subset.bytes)
		return OUTCOME_OK;
	const enum outcome o = verify_bytes_of_marks(
		job->setup.marks.conn, &job->setup.space, &range, &limits, &total, ret_problem);
	verify_subset_share(&job->subset, total);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

static bool is_empty(const struct verify_end *end)
{
	uint64_t all = end->counts.listed;
	for (int i = 0; i < FINDING_NOTHING; i++)
		all += end->counts.of[i];
	return !all;
}

static int exit_code_of(const struct verify_end *end)
{
	const struct verify_counts *counts = &end->counts;
	if (counts->of[FINDING_MISSING] || counts->of[FINDING_DIFFERS] ||
		counts->of[FINDING_UNKNOWN] || counts->of[FINDING_ERROR])
		return S3ONCE_EXIT_FILES;
	return end->is_complete ? S3ONCE_EXIT_OK : S3ONCE_EXIT_LIMIT;
}

static int exit_code(const struct job *job, const struct verify_end *end, struct problem *ret)
{
	if (!end->is_complete || !is_empty(end) || job->options->after)
		return exit_code_of(end);
	problem_set(ret,
		"there is neither a mark nor an object in s3://%s/%s: check the target "
		"and --marks",
		quote(job->url.bucket).text, quote(text_string(&job->prefix)).text);
	return S3ONCE_EXIT_FILES;
}

/* What is compared, and how. */
static struct verify verify_of(const struct job *job, struct audience *audience)
{
	const struct verify_options *options = job->options;
	return (struct verify){.store = job->setup.marks.store,
		.s3 = job->setup.s3,
		.space = &job->setup.space,
		.headers = job->headers,
		.range = {.prefix = text_string(&job->prefix), .after = options->after},
		.id_object = options->id_object,
		.by = audience->view.by,
		.subset = job->subset,
		.workers = options->workers ? options->workers : WORKERS,
		.patience_ms = options->give_up_after_ms,
		.visitor = {on_found, on_progress, is_stopped, audience}};
}

static int compare_manifest(struct job *job, struct audience *audience)
{
	const struct verify_options *options = job->options;
	struct verify_with_manifest wanted = {.where = {.access = &options->access,
						      .url = &job->url,
						      .sse_c_key_file = options->key_file,
						      .public_key_file = options->public_key},
		.manifest = options->manifest,
		.verify = verify_of(job, audience),
		.view = &audience->view,
		.exit_code = exit_code_of};
	signals_count("s3once: stopping\n");
	const int code = verify_with_manifest(&wanted);
	const int signal = signals_restore();
	return signal && code == S3ONCE_EXIT_LIMIT ? S3ONCE_EXIT_STOPPED + signal : code;
}

/* Says how it ended, and returns the exit code. */
static int tell_end(const struct job *job, struct audience *audience, const struct verify_end *end,
	enum outcome o, const struct problem *problem)
{
	const struct verify verify = verify_of(job, audience);
	const int signal = signals_restore();
	int code = S3ONCE_EXIT_SETUP;
	struct problem nothing = {0};
	if (o == OUTCOME_OK)
		code = exit_code(job, end, &nothing);
	if (signal && !end->is_complete)
		code = S3ONCE_EXIT_STOPPED + signal;
	const struct problem *told = o != OUTCOME_OK ? problem : *nothing.text ? &nothing : NULL;
	verify_view_end(&audience->view, &(struct verify_told){end, &verify, told, code});
	return told ? command_fail("verify", code, told) : code;
}

static enum outcome compare_bucket(struct job *job, struct audience *audience,
	struct verify_end *ret_end, struct problem *ret_problem)
{
	bool is_one = false;
	enum outcome o = know_bucket(job, audience, ret_problem);
	if (o == OUTCOME_OK)
		o = is_one_key(job, &is_one, ret_problem);
	if (is_one)
		audience->view.prefix = job->url.key;
	if (o == OUTCOME_OK && !is_one)
		o = size_subset(job, audience, ret_problem);
	const struct verify verify = verify_of(job, audience);
	if (o == OUTCOME_OK)
		o = is_one ? verify_one(&verify, job->url.key, ret_end, ret_problem)
			   : verify_run(&verify, ret_end, ret_problem);
	return o;
}

static int compare_all(struct job *job, struct audience *audience)
{
	struct verify_end end = {0};
	struct problem problem = {0};
	const bool is_of_report = audience->view.by == VERIFY_BY_REPORT;
	signals_count("s3once: stopping\n");
	const struct verify verify = verify_of(job, audience);
	const enum outcome o =
		is_of_report ? verify_with_report(&verify, &job->options->reports, &end, &problem)
			     : compare_bucket(job, audience, &end, &problem);
	return tell_end(job, audience, &end, o, &problem);
}

static int verify(struct job *job)
{
	const struct verify_options *options = job->options;
	struct output output;
	struct problem problem = {0};
	struct audience audience = {.job = job,
		.view = {.output = &output,
			.bucket = job->url.bucket,
			.prefix = text_string(&job->prefix),
			.json = options->json,
			.verbose = options->verbose > 0,
			.draws = terminal_can_draw(STDERR_FILENO) && !options->no_progress,
			.of_manifest = options->manifest != NULL,
			.by = options->reports.n                   ? VERIFY_BY_REPORT
			      : options->download                  ? VERIFY_BY_DOWNLOAD
			      : options->head || options->manifest ? VERIFY_BY_HEAD
								   : VERIFY_BY_LISTING}};
	if (options->max_duration_ms)
		job->deadline_ns = clock_boot_ns() + options->max_duration_ms * NS_PER_MS;
	output_init(&output);
	output_never_block(&output);
	int code = S3ONCE_EXIT_SETUP;
	if (options->manifest)
		code = compare_manifest(job, &audience);
	else if (open_all(job, &problem))
		code = compare_all(job, &audience);
	else
		code = command_fail("verify", code, &problem);
	if (output_finish(&output) < 0 && code == S3ONCE_EXIT_OK)
		code = S3ONCE_EXIT_FILES;
	return code;
}

int verify_main(int argc, char **argv)
{
	struct s3once_setting *reports = calloc((size_t)argc + 1, sizeof *reports);
	struct verify_options options = {
		.give_up_after_ms = GIVE_UP_AFTER_MS, .reports.settings = reports};
	struct option_group groups[VERIFY_GROUPS];
	struct command command = verify_command(groups, &options);
	struct problem problem = {0};
	struct job job = {.options = &options, .prefix = TEXT(2048)};
	const int n = reports ? options_parse(&command, argc, argv, &problem) : -ENOMEM;
	if (!reports)
		problem_set(&problem, "out of memory");
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		free(reports);
		return S3ONCE_EXIT_OK;
	}
	int code = n < 0 ? S3ONCE_EXIT_USAGE : read_operands(&job, n, argv, &problem);
	code = code ? command_fail("verify", code, &problem) : verify(&job);
	close_all(&job);
	free(reports);
	return code;
}
