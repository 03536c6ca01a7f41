/* `s3once gc`: clears away what ended runs have left behind. */
#include "audit/collect.h"
#include "base/clock.h"
#include "base/host_name.h"
#include "base/quote.h"
#include "cli/audit/audit_setup.h"
#include "cli/audit/fate_tell.h"
#include "cli/commands.h"
#include "cli/human_figures.h"
#include "cli/job/job_asked.h"
#include "cli/json.h"
#include "cli/signals.h"
#include "scan/key/key.h"
#include "store/state_folder.h"
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define LEASE_MS        30000
#define KEEP_UPLOADS_MS (7ULL * 24 * 3600 * 1000)

struct gc_command {
	struct access access;
	struct job_asked job;
	uint64_t keep_uploads_ms, keep_marks_ms;
	int dry_run, json;
};

static const struct option what_options[] = {
	{.name = "keep-uploads",
		.type = OPTION_DURATION,
		.offset = offsetof(struct gc_command, keep_uploads_ms),
		.argument = "AGE",
		.help = "abort unfinished uploads that nobody has gone on with\n"
			"for AGE [7d]"},
	{.name = "keep-marks",
		.type = OPTION_DURATION,
		.offset = offsetof(struct gc_command, keep_marks_ms),
		.argument = "AGE",
		.help = "forget marks that have not changed for AGE, such as\n"
			"400d [all are kept]",
		.least = 1000},
	{.name = "dry-run",
		.letter = 'n',
		.type = OPTION_FLAG,
		.offset = offsetof(struct gc_command, dry_run),
		.help = "show what would be done, and change nothing"},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct gc_command, json),
		.help = "one event a line on standard output, as JSON"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

enum { GROUPS = 3 + ACCESS_GROUPS };

static struct command gc_command(
	struct option_group groups[static GROUPS], struct gc_command *values)
{
	groups[0] = (struct option_group){"What to keep", what_options, values};
	groups[1] = (struct option_group){"Where", job_asked_options, &values->job};
	access_groups(&values->access, groups + 2);
	groups[2 + ACCESS_GROUPS] = (struct option_group){"Output", output_options, values};
	return (struct command){
		.name = "gc",
		.operands = "s3://BUCKET[/PREFIX] | --job JOB",
		.about =
			"Clears away what ended runs have left behind: aborts unfinished uploads that\n"
			"marks name and nobody goes on with, forgets old marks if asked to, lists\n"
			"damaged ones, and gives room in an SQLite file back. Touches no object, no\n"
			"upload that no mark names, and nothing of an uploader that may live.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.examples =
			"  s3once gc s3://my-bucket\n"
			"  s3once gc --keep-marks 400d --keep-uploads 2d s3://my-bucket/logs\n"
			"\n"
			"Exit codes: 0 done; 1 something could not be done, or marks are damaged;\n"
			"2 usage; 3 the marks or the bucket cannot be used. More: man s3once-gc\n",
	};
}

struct gc {
	const struct gc_command *values;
	const struct marks_place *marks;
	struct audit_setup setup;
	struct session *session;
	struct fate_view view;
	uint64_t bytes_before, bytes_after; /* of the SQLite file; 0: it is none */
};

static bool is_stopped(void *arg)
{
	(void)arg;
	return signals_came() > 0;
}

static uint64_t file_bytes(const struct marks_place *marks)
{
	struct stat st;
	return marks->is_dynamodb || stat(marks->path, &st) ? 0 : (uint64_t)st.st_size;
}

static bool open_session(struct gc *gc, struct problem *ret_problem)
{
	char observations[4096];
	struct session_options options = {
		.store = gc->setup.marks.store,
		.lease_ns = LEASE_MS * NS_PER_MS,
		.heartbeat_ns = LEASE_MS / 5 * NS_PER_MS,
		.abandon = is_stopped,
		.reads_only = gc->values->dry_run != 0,
	};
	if (!(gc->values->dry_run ? state_path : state_file)(
		    "sessions", observations, sizeof observations))
		options.observations = observations;
	if (!session_new(&options, &gc->session))
		return true;
	problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
	return false;
}

static bool collect_all(struct gc *gc, const char *prefix, struct problem *ret_problem)
{
	char host[HOST_NAME_BYTES], source[HOST_NAME_BYTES + 8];
	struct problem unnamed;
	if (host_name_short(host, &unnamed))
		snprintf(host, sizeof host, "unknown");
	snprintf(source, sizeof source, "%s:gc", host);
	const struct gc_command *values = gc->values;
	const struct collect_options options = {
		.place = gc->setup.place,
		.session = gc->session,
		.source = source,
		.keep_uploads_s = values->keep_uploads_ms / 1000,
		.keep_marks_s = values->keep_marks_ms ? values->keep_marks_ms / 1000 : UINT64_MAX,
		.only_show = values->dry_run,
		.teller = {fate_tell, &gc->view},
	};
	return collect(&options, prefix, ret_problem) == OUTCOME_OK;
}

static bool compact(struct gc *gc, struct problem *ret_problem)
{
	struct store_conn *conn = gc->setup.marks.conn;
	enum outcome o = OUTCOME_OK;
	bool more = conn->store->ops->compact && !gc->values->dry_run;
	while (more && o == OUTCOME_OK)
		o = conn->store->ops->compact(conn, &gc->setup.place.limits, &more, ret_problem);
	gc->bytes_after = file_bytes(gc->marks);
	return o == OUTCOME_OK;
}

static void tell_json(struct gc *gc)
{
	json_t *object = json_event("gc");
	json_set_number(object, "aborted", fate_count(&gc->view, FATE_ABORTED));
	json_set_number(object, "abortable", fate_count(&gc->view, FATE_ABORTABLE));
	json_set_number(object, "forgotten", fate_count(&gc->view, FATE_FORGOTTEN));
	json_set_number(object, "forgettable", fate_count(&gc->view, FATE_FORGETTABLE));
	json_set_number(object, "kept", fate_count(&gc->view, FATE_KEPT));
	json_set_number(object, "damaged", fate_count(&gc->view, FATE_DAMAGED));
	json_set_number(object, "failed", fate_count(&gc->view, FATE_FAILED));
	json_set_number(object, "file_bytes_before", gc->bytes_before);
	json_set_number(object, "file_bytes", gc->bytes_after);
	json_print(gc->view.output, object);
}

static void add_figure(struct text *t, const char *what, uint64_t n)
{
	text_add(t, what);
	human_count(t, n);
}

static void tell_end(struct gc *gc)
{
	const bool dry = gc->values->dry_run;
	struct text t = TEXT(600);
	if (gc->values->json) {
		tell_json(gc);
		return;
	}
	add_figure(&t, dry ? "would abort uploads: " : "aborted uploads: ",
		fate_count(&gc->view, dry ? FATE_ABORTABLE : FATE_ABORTED));
	add_figure(&t, dry ? ", would forget marks: " : ", forgot marks: ",
		fate_count(&gc->view, dry ? FATE_FORGETTABLE : FATE_FORGOTTEN));
	add_figure(&t, ", kept: ", fate_count(&gc->view, FATE_KEPT));
	add_figure(&t, ", damaged: ", fate_count(&gc->view, FATE_DAMAGED));
	add_figure(&t, ", errors: ", fate_count(&gc->view, FATE_FAILED));
	if (gc->bytes_after < gc->bytes_before) {
		text_add(&t, "; the file of marks had ");
		human_bytes(&t, gc->bytes_before);
		text_add(&t, " and has ");
		human_bytes(&t, gc->bytes_after);
	}
	output_result(gc->view.output, text_string(&t));
	text_clear(&t);
}

/* A prefix as push makes it: "logs" stands for "logs/". */
static bool work_below(struct gc *gc, const char *key, struct problem *ret_problem)
{
	struct text prefix = TEXT(2048);
	key_add_base(&prefix, key);
	const bool ok = !prefix.error && open_session(gc, ret_problem) &&
			collect_all(gc, text_string(&prefix), ret_problem) &&
			compact(gc, ret_problem);
	if (prefix.error)
		problem_set(ret_problem, "out of memory");
	text_clear(&prefix);
	if (gc->session)
		session_close(gc->session, gc->setup.marks.conn);
	return ok;
}

static int collect_garbage(
	const struct gc_command *values, const struct marks_place *place, const struct s3_url *url)
{
	struct output output;
	struct problem problem = {0};
	struct gc gc = {.values = values,
		.marks = place,
		.view = {&output, url->bucket, values->json, {0}}};
	const struct audit_wanted wanted = {&values->access, place, url->bucket, true};
	output_init(&output);
	signals_count("s3once: stopping; what is under way is ended in order\n");
	gc.bytes_before = file_bytes(place);
	bool ok = audit_setup_open(&wanted, &gc.setup, &problem) == 0;
	gc.setup.place.limits = (struct call_limits){.abandon = is_stopped};
	ok = ok && work_below(&gc, url->key, &problem);
	if (ok)
		tell_end(&gc);
	int code = fate_count(&gc.view, FATE_FAILED) || fate_count(&gc.view, FATE_DAMAGED)
			   ? S3ONCE_EXIT_FILES
			   : S3ONCE_EXIT_OK;
	if (output_finish(&output) < 0)
		code = S3ONCE_EXIT_FILES;
	const int stopped_by = signals_restore();
	if (stopped_by)
		code = S3ONCE_EXIT_STOPPED + stopped_by;
	else if (!ok)
		code = command_fail("gc", S3ONCE_EXIT_SETUP, &problem);
	audit_setup_close(&gc.setup);
	return code;
}

/* Reads the operand and the place. 0, or the exit code with a sentence. */
static int read_options_of_gc(const struct gc_command *values, int n, char **operands,
	struct s3_url *ret_url, struct marks_place *ret_place, struct problem *ret_problem)
{
	if (n == 0)
		problem_set(ret_problem,
			"name where to clear away: s3://BUCKET, or s3://BUCKET/PREFIX");
	else if (n > 1)
		problem_set(ret_problem, "'%s': one s3://BUCKET[/PREFIX] at a time",
			quote(operands[1]).text);
	if (n != 1 || url_parse(operands[0], ret_url, ret_problem) < 0)
		return S3ONCE_EXIT_USAGE;
	return marks_place_chosen(&values->access, values->dry_run, ret_place, ret_problem);
}

int gc_main(int argc, char **argv)
{
	struct gc_command values = {.keep_uploads_ms = KEEP_UPLOADS_MS};
	struct option_group groups[GROUPS];
	struct command command = gc_command(groups, &values);
	struct problem problem = {0};
	struct marks_place place = {0};
	struct s3_url url;
	int n = options_parse(&command, argc, argv, &problem);
	if (n >= 0)
		n = job_asked_open(&values.job, &values.access, n, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	int code = n < 0 ? S3ONCE_EXIT_USAGE
			 : read_options_of_gc(&values, n, argv, &url, &place, &problem);
	code = code ? command_fail("gc", code, &problem) : collect_garbage(&values, &place, &url);
	marks_place_clear(&place);
	job_asked_close(&values.job);
	return code;
}
