/* `s3once status`: reads the marks, changes nothing. */
#include "base/problem.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/job/job_asked.h"
#include "cli/open_marks.h"
#include "cli/options/access.h"
#include "cli/options/url.h"
#include "cli/status/status_jobs.h"
#include "cli/status/status_table.h"
#include "cli/status/status_tell.h"
#include "cli/status/status_watch.h"
#include "scan/key/key.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct status_options {
	struct access access;
	struct job_asked job;
	uint64_t watch_ms; /* UINT64_MAX: it looks once */
	unsigned verbose, depth;
	int json;
};

static const struct option what_options[] = {
	{.name = "depth",
		.type = OPTION_NUMBER,
		.offset = offsetof(struct status_options, depth),
		.argument = "N",
		.help = "print a table with a sum for each folder down to N\n"
			"levels below the prefix, as du does",
		.least = 1,
		.most = STATUS_DEPTH_MAX},
	{.name = "watch",
		.type = OPTION_AGE,
		.offset = offsetof(struct status_options, watch_ms),
		.argument = "[=DUR]",
		.help = "look again every DUR until a signal ends it, with what\n"
			"was done meanwhile",
		.standard = "2s",
		.least = 100,
		.most = 24 * 3600 * 1000},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct status_options, json),
		.help = "one event a line on standard output, as JSON"},
	{.name = "verbose",
		.letter = 'v',
		.type = OPTION_COUNT,
		.offset = offsetof(struct status_options, verbose),
		.help = "list all failed files, not only the first ten"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

enum { GROUPS = 3 + ACCESS_GROUPS };
#define WATCH_MS 2000

static struct command status_command(
	struct option_group groups[static GROUPS], struct status_options *options)
{
	groups[0] = (struct option_group){"What to show", what_options, options};
	groups[1] = (struct option_group){NULL, job_asked_options, &options->job};
	access_groups(&options->access, groups + 2);
	groups[2 + ACCESS_GROUPS] = (struct option_group){"Output", output_options, options};
	return (struct command){
		.name = "status",
		.operands = "[s3://BUCKET[/KEY-OR-PREFIX]]",
		.about =
			"Says what the marks hold: of a bucket or a prefix how many files are done, claimed\n"
			"and failed, whose claims they are, how the last run of each job there ended, and\n"
			"what failed in it; of one key its whole story; without a bucket, what kind of\n"
			"store it is. Changes nothing and never asks S3.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.examples =
			"  s3once status s3://my-bucket/photos\n"
			"  s3once status --job nginx\n"
			"  s3once status --depth 1 --watch s3://my-bucket/photos\n"
			"  s3once status --marks dynamodb:s3once s3://my-bucket/photos/2024/a.jpg\n"
			"\n"
			"Exit codes: 0 the marks were read; 2 usage; 3 they cannot be read.\n"
			"More: man s3once-status\n",
	};
}

static int tell_unfinished(void *arg, const char *key, const struct mark *mark)
{
	status_tell_unfinished(arg, key, mark);
	return 0;
}

static bool is_empty(const struct status_counts *counts)
{
	return !(counts->claimed | counts->done | counts->failed | counts->unreadable);
}

/* `key` was asked for. It does not have a mark, and may be a prefix. */
static enum outcome tell_prefix(
	struct status_view *view, const char *key, const char *prefix, struct problem *ret_problem)
{
	struct status_summary *summary = malloc(sizeof *summary);
	if (!summary) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	const struct status_visitor visitor = {tell_unfinished, view};
	enum outcome o =
		status_of_prefix(view->conn, view->space, prefix, &visitor, summary, ret_problem);
	if (o == OUTCOME_OK && is_empty(&summary->counts) && strcmp(key, prefix) != 0)
		status_tell_absent(view, key);
	if (o == OUTCOME_OK && is_empty(&summary->counts) && !view->json)
		status_tell_nothing(view, prefix);
	else if (o == OUTCOME_OK)
		status_tell_counts(view, prefix, summary);
	free(summary);
	return o;
}

/* Reads the mark of this key, if its object has this suffix. NULL: whatever suffix it has. OK also
 * if there is none; then *ret_found is false. */
static enum outcome tell_mark(struct status_view *view, const char *key, const char *suffix,
	bool *ret_found, struct problem *ret_problem)
{
	const struct mark_ref ref = {
		.conn = view->conn, .space = view->space, .key = key, .session = "", .source = ""};
	struct mark mark = {0};
	struct session_info session;
	bool known = false;
	enum outcome o = mark_get(&ref, &mark, ret_problem);
	if (o == OUTCOME_OK && mark.state == MARK_CLAIMED) {
		o = session_describe(view->conn, mark.session, &session, ret_problem);
		known = o == OUTCOME_OK;
		o = o == OUTCOME_ABSENT ? OUTCOME_OK : o;
	}
	*ret_found = o == OUTCOME_OK && mark.state != MARK_ABSENT &&
		     (!suffix || strcmp(mark.suffix, suffix) == 0);
	if (*ret_found)
		status_tell_mark(view, key, &mark, known ? &session : NULL);
	mark_clear(&mark);
	return o;
}

/* The key of a mark, or that of the object, which may have a suffix of compression behind it. */
static enum outcome tell_key(
	struct status_view *view, const char *key, bool *ret_found, struct problem *ret_problem)
{
	const char *suffix = strrchr(key, '.');
	enum outcome o = tell_mark(view, key, NULL, ret_found, ret_problem);
	if (o != OUTCOME_OK || *ret_found || !suffix || suffix == key || strchr(suffix, '/'))
		return o;
	char *bare = strndup(key, (size_t)(suffix - key));
	if (!bare) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	o = tell_mark(view, bare, suffix, ret_found, ret_problem);
	free(bare);
	return o;
}

/* A prefix as push makes it: "logs" stands for "logs/". */
static enum outcome tell_below(
	struct status_view *view, const char *key, struct problem *ret_problem)
{
	struct text prefix = TEXT(2048);
	key_add_base(&prefix, key);
	enum outcome o = view->depth ? status_table_tell(view, text_string(&prefix), ret_problem)
				     : tell_prefix(view, key, text_string(&prefix), ret_problem);
	text_clear(&prefix);
	return o;
}

static enum outcome tell_all(
	struct status_view *view, const struct s3_url *url, struct problem *ret_problem)
{
	bool found = false;
	enum outcome o = OUTCOME_OK;
	struct bucket_row row = {0};
	status_tell_store(view, url != NULL);
	if (url)
		o = bucket_row_read(view->conn, view->space, NULL, &row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	view->space->generation = row.generation;
	view->knows_bucket = *row.version;
	if (view->knows_bucket)
		status_tell_bucket(view, &row);
	if (url && o == OUTCOME_OK && !view->watches)
		o = status_jobs_tell(view, url->key, ret_problem);
	if (url && *url->key && !view->depth && o == OUTCOME_OK)
		o = tell_key(view, url->key, &found, ret_problem);
	if (url && o == OUTCOME_OK && !found)
		o = tell_below(view, url->key, ret_problem);
	return o;
}

/* What there is to tell, for each time that it is told. */
struct look {
	struct status_view *view;
	const struct s3_url *url;
};

static enum outcome look_once(void *arg, struct problem *ret_problem)
{
	const struct look *look = arg;
	return tell_all(look->view, look->url, ret_problem);
}

static enum outcome look(
	const struct status_options *options, struct look *look, struct problem *ret_problem)
{
	const struct status_watch watch = {.view = look->view,
		.interval_ms = options->watch_ms ? options->watch_ms : WATCH_MS,
		.look = look_once,
		.arg = look};
	return options->watch_ms == UINT64_MAX ? look_once(look, ret_problem)
					       : status_watch(&watch, ret_problem);
}

static int status_of(const struct status_options *options, const struct marks_place *place,
	const struct s3_url *url)
{
	struct output output;
	struct services services = {0};
	struct open_marks marks = {0};
	struct mark_space space = {0};
	struct problem problem = {0};
	struct text name = TEXT(8192);
	marks_place_name(place, &name);
	struct status_view view = {.output = &output,
		.marks = text_string(&name),
		.space = &space,
		.json = options->json,
		.depth = options->depth,
		.watches = options->watch_ms != UINT64_MAX,
		.verbose = options->verbose};
	bool ok = marks_are_there(place, &problem) &&
		  services_open(&options->access, &services, &problem) == 0 &&
		  marks_open(place, &services, &marks, &problem) == 0 &&
		  marks_load_settings(&marks, view.marks, &space.settings, &problem);
	output_init(&output);
	if (ok) {
		snprintf(space.service, sizeof space.service, "%s",
			aws_settings_service(services.aws));
		snprintf(space.bucket, sizeof space.bucket, "%s", url ? url->bucket : "");
		view.conn = marks.conn;
		ok = look(options, &(struct look){&view, url}, &problem) == OUTCOME_OK;
	}
	int code = output_finish(&output) < 0 ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
	if (!ok)
		code = command_fail("status", S3ONCE_EXIT_SETUP, &problem);
	marks_close(&marks);
	services_close(&services);
	text_clear(&name);
	return code;
}

/* Reads the operand and the place. 0, or the exit code with a sentence. */
static int read_options_of_status(const struct status_options *options, int n, char **operands,
	struct s3_url *ret_url, struct marks_place *ret_place, struct problem *ret_problem)
{
	if (n > 1)
		problem_set(ret_problem, "'%s': one s3://BUCKET[/KEY-OR-PREFIX] at a time",
			quote(operands[1]).text);
	if (n == 0 && (options->depth || options->watch_ms != UINT64_MAX)) {
		problem_set(ret_problem, "%s: name s3://BUCKET[/PREFIX]",
			options->depth ? "--depth shows the folders of a bucket"
				       : "--watch looks at a bucket");
		return S3ONCE_EXIT_USAGE;
	}
	if (n > 1 || (n == 1 && url_parse(operands[0], ret_url, ret_problem) < 0))
		return S3ONCE_EXIT_USAGE;
	return marks_place_chosen(&options->access, true, ret_place, ret_problem);
}

int status_main(int argc, char **argv)
{
	struct status_options options = {.watch_ms = UINT64_MAX};
	struct option_group groups[GROUPS];
	struct command command = status_command(groups, &options);
	struct problem problem = {0};
	struct marks_place place = {0};
	struct s3_url url;
	int n = options_parse(&command, argc, argv, &problem);
	if (n >= 0)
		n = job_asked_open(&options.job, &options.access, n, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	int code = n < 0 ? S3ONCE_EXIT_USAGE
			 : read_options_of_status(&options, n, argv, &url, &place, &problem);
	code = code ? command_fail("status", code, &problem)
		    : status_of(&options, &place, n == 1 ? &url : NULL);
	marks_place_clear(&place);
	job_asked_close(&options.job);
	return code;
}
