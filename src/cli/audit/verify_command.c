/* `s3once verify`: whether the bucket has what the marks say. Changes nothing. */
#include "base/clock.h"
#include "base/quote.h"
#include "cli/audit/verify_options.h"
#include "cli/audit/verify_with_bucket.h"
#include "cli/audit/verify_with_manifest.h"
#include "cli/audit/verify_with_report.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKERS          8
#define GIVE_UP_AFTER_MS 60000

/* The options of the command, and the services that it uses. */
struct verification {
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
static int read_operands(
	struct verification *verification, int n, char **operands, struct problem *ret_problem)
{
	const struct verify_options *options = verification->options;
	if (n != 1)
		problem_set(ret_problem, "name one s3://BUCKET[/KEY-OR-PREFIX]");
	if (n != 1 || url_parse(operands[0], &verification->url, ret_problem) < 0)
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
	if (options->subset &&
		verify_subset_read(options->subset, &verification->subset, ret_problem) < 0)
		return S3ONCE_EXIT_USAGE;
	key_add_base(&verification->prefix, verification->url.key);
	const char *prefix = text_string(&verification->prefix);
	if (options->after && strncmp(options->after, prefix, strlen(prefix)) != 0) {
		problem_set(ret_problem, "--after '%s' is not a key below %s",
			quote(options->after).text, quote(operands[0]).text);
		return S3ONCE_EXIT_USAGE;
	}
	if (options->manifest)
		return S3ONCE_EXIT_OK;
	return marks_place_chosen(&options->access, true, &verification->place, ret_problem);
}

static bool prepare_key(struct verification *verification, struct problem *ret_problem)
{
	if (!verification->options->key_file)
		return true;
	return s3_headers_new(&verification->headers) == 0 &&
	       s3_headers_set(verification->headers, "sse-c-key-file",
		       verification->options->key_file, ret_problem) == 0 &&
	       s3_headers_prepare(verification->headers, ret_problem) == 0;
}

static bool open_all(struct verification *verification, struct problem *ret_problem)
{
	const struct audit_wanted wanted = {&verification->options->access, &verification->place,
		verification->url.bucket, .needs_s3 = !verification->options->reports.n};
	return prepare_key(verification, ret_problem) &&
	       audit_setup_open(&wanted, &verification->setup, ret_problem) == 0;
}

static void close_all(struct verification *verification)
{
	audit_setup_close(&verification->setup);
	s3_headers_free(verification->headers);
	marks_place_clear(&verification->place);
	text_clear(&verification->prefix);
}

static bool is_late(const struct verification *verification)
{
	return verification->deadline_ns && clock_boot_ns() >= verification->deadline_ns;
}

/* What the run's threads are given as `arg`. */
struct audience {
	struct verify_view view;
	const struct verification *verification;
};

static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	verify_view_found(&((struct audience *)arg)->view, finding, key, problem);
}

static void on_warned(void *arg, const struct problem *problem)
{
	verify_view_warned(&((struct audience *)arg)->view, problem);
}

static void on_progress(void *arg, const struct verify_counts *counts)
{
	verify_view_progress(&((struct audience *)arg)->view, counts);
}

static bool is_stopped(void *arg)
{
	return signals_came() || is_late(((const struct audience *)arg)->verification);
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

static int exit_code(
	const struct verification *verification, const struct verify_end *end, struct problem *ret)
{
	if (!end->is_complete || !is_empty(end) || verification->options->after)
		return exit_code_of(end);
	problem_set(ret,
		"there is neither a mark nor an object in s3://%s/%s: check the target "
		"and --marks",
		quote(verification->url.bucket).text,
		quote(text_string(&verification->prefix)).text);
	return S3ONCE_EXIT_FILES;
}

/* What is compared, and how. */
static struct verify verify_of(const struct verification *verification, struct audience *audience)
{
	const struct verify_options *options = verification->options;
	return (struct verify){.store = verification->setup.marks.store,
		.s3 = verification->setup.s3,
		.space = &verification->setup.space,
		.headers = verification->headers,
		.range = {.prefix = text_string(&verification->prefix), .after = options->after},
		.keep_marks_s = options->keep_marks_ms / 1000,
		.id_object = options->id_object,
		.by = audience->view.by,
		.subset = verification->subset,
		.workers = options->workers ? options->workers : WORKERS,
		.patience_ms = options->give_up_after_ms,
		.visitor = {on_found, on_warned, on_progress, is_stopped, audience}};
}

static int compare_manifest(struct verification *verification, struct audience *audience)
{
	const struct verify_options *options = verification->options;
	struct verify_with_manifest wanted = {.where = {.access = &options->access,
						      .url = &verification->url,
						      .sse_c_key_file = options->key_file,
						      .public_key_file = options->public_key},
		.manifest = options->manifest,
		.verify = verify_of(verification, audience),
		.view = &audience->view,
		.exit_code = exit_code_of};
	signals_count("s3once: stopping\n");
	const int code = verify_with_manifest(&wanted);
	const int signal = signals_restore();
	return signal && code == S3ONCE_EXIT_LIMIT ? S3ONCE_EXIT_STOPPED + signal : code;
}

/* Says how it ended, and returns the exit code. told.problem is why it could not go on. */
static int tell_end(
	const struct verification *verification, struct audience *audience, struct verify_told told)
{
	struct problem nothing = {0};
	const int signal = signals_restore();
	told.code = told.problem ? S3ONCE_EXIT_SETUP : exit_code(verification, told.end, &nothing);
	if (signal && !told.end->is_complete)
		told.code = S3ONCE_EXIT_STOPPED + signal;
	if (*nothing.text)
		told.problem = &nothing;
	verify_view_end(&audience->view, &told);
	return told.problem ? command_fail("verify", told.code, told.problem) : told.code;
}

static int compare_all(struct verification *verification, struct audience *audience)
{
	struct verify_end end = {0};
	struct problem problem = {0};
	struct verify verify = verify_of(verification, audience);
	const struct verify_with_bucket with_bucket = {.setup = &verification->setup,
		.url = &verification->url,
		.verify = &verify,
		.view = &audience->view};
	signals_count("s3once: stopping\n");
	const enum outcome o = audience->view.by == VERIFY_BY_REPORT
				       ? verify_with_report(&verify,
						 &verification->options->reports, &end, &problem)
				       : verify_with_bucket(&with_bucket, &end, &problem);
	return tell_end(verification, audience,
		(struct verify_told){.end = &end,
			.verify = &verify,
			.problem = o == OUTCOME_OK ? NULL : &problem});
}

static int verify(struct verification *verification)
{
	const struct verify_options *options = verification->options;
	struct output output;
	struct problem problem = {0};
	struct audience audience = {.verification = verification,
		.view = {.output = &output,
			.bucket = verification->url.bucket,
			.prefix = text_string(&verification->prefix),
			.json = options->json,
			.verbose = options->verbose > 0,
			.draws = terminal_can_draw(STDERR_FILENO) && !options->no_progress,
			.of_manifest = options->manifest != NULL,
			.by = options->reports.n                   ? VERIFY_BY_REPORT
			      : options->download                  ? VERIFY_BY_DOWNLOAD
			      : options->head || options->manifest ? VERIFY_BY_HEAD
								   : VERIFY_BY_LISTING}};
	if (options->max_duration_ms)
		verification->deadline_ns = clock_boot_ns() + options->max_duration_ms * NS_PER_MS;
	output_init(&output);
	output_never_block(&output);
	int code = S3ONCE_EXIT_SETUP;
	if (options->manifest)
		code = compare_manifest(verification, &audience);
	else if (open_all(verification, &problem))
		code = compare_all(verification, &audience);
	else
		code = command_fail("verify", code, &problem);
	if (output_finish(&output) < 0 && code == S3ONCE_EXIT_OK)
		code = S3ONCE_EXIT_FILES;
	return code;
}

/* What a comparison of its objects needs, beside the access. */
static void take_from_job(struct verify_options *options)
{
	if (!options->key_file)
		options->key_file = job_asked_setting(&options->job, "sse-c-key-file");
	if (!options->id_object)
		options->id_object = options->job.job.options.run.bucket_id_object;
}

int verify_main(int argc, char **argv)
{
	struct s3once_setting *reports = calloc((size_t)argc + 1, sizeof *reports);
	struct verify_options options = {
		.give_up_after_ms = GIVE_UP_AFTER_MS, .reports.settings = reports};
	struct option_group groups[VERIFY_GROUPS];
	struct command command = verify_command(groups, &options);
	struct problem problem = {0};
	struct verification verification = {.options = &options, .prefix = TEXT(2048)};
	int n = reports ? options_parse(&command, argc, argv, &problem) : -ENOMEM;
	if (n >= 0)
		n = job_asked_open(&options.job, &options.access, n, argv, &problem);
	if (!reports)
		problem_set(&problem, "out of memory");
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		free(reports);
		return S3ONCE_EXIT_OK;
	}
	if (n >= 0 && options.job.name)
		take_from_job(&options);
	int code = n < 0 ? S3ONCE_EXIT_USAGE : read_operands(&verification, n, argv, &problem);
	code = code ? command_fail("verify", code, &problem) : verify(&verification);
	close_all(&verification);
	job_asked_close(&options.job);
	free(reports);
	return code;
}
