/* `s3once fleet`: the state of the jobs of all hosts that share the marks. */
#include "base/quote.h"
#include "cli/audit/fleet_tell.h"
#include "cli/commands.h"
#include "cli/open_marks.h"
#include <errno.h>
#include <string.h>

struct fleet_command {
	struct access access;
	uint64_t expect_ms;
	const char *forget;
	int quiet, json;
};

static const struct option what_options[] = {
	{.name = "expect",
		.type = OPTION_DURATION,
		.offset = offsetof(struct fleet_command, expect_ms),
		.argument = "AGE",
		.help = "a job is overdue if its last success is longer than\n"
			"AGE ago, such as 26h",
		.least = 1000},
	{.name = "forget",
		.type = OPTION_STRING,
		.offset = offsetof(struct fleet_command, forget),
		.argument = "HOST[/JOB]",
		.help = "remove what is kept of a host, or of one of its jobs,\n"
			"that no longer exists"},
	{NULL},
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct fleet_command, json),
		.help = "one event a line on standard output, as JSON"},
	{.name = "quiet",
		.letter = 'q',
		.type = OPTION_FLAG,
		.offset = offsetof(struct fleet_command, quiet),
		.help = "show only jobs that are not fine, and the sums"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"forget", "expect", "what is forgotten is not judged"},
	{"forget", "quiet", "what is forgotten is always shown"},
	{NULL},
};

enum { GROUPS = 5 };

static struct command fleet_command(
	struct option_group groups[static GROUPS], struct fleet_command *values)
{
	const struct option_group filled[GROUPS] = {
		{"What to look for", what_options, values},
		{"Marks", access_marks_options, &values->access},
		{"Services", access_dynamodb_options, &values->access},
		{NULL, access_options, &values->access},
		{"Output", output_options, values},
	};
	memcpy(groups, filled, sizeof filled);
	return (struct command){
		.name = "fleet",
		.operands = "",
		.about =
			"Shows each job of each host that uses the marks: when it succeeded last, how its\n"
			"last run ended, whether one is under way or has stopped sending heartbeats.\n"
			"Needs one request for 500 jobs, and reads no mark of a file.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.conflicts = conflicts,
		.examples =
			"  s3once fleet --marks dynamodb:s3once\n"
			"  s3once fleet --marks dynamodb:s3once --expect 26h --quiet   (for monitoring)\n"
			"  s3once fleet --marks dynamodb:s3once --forget web7\n"
			"\n"
			"Exit codes: 0 all jobs are fine; 1 one is overdue, has failed, or has fallen\n"
			"silent, or nothing was forgotten; 2 usage; 3 it cannot be known.\n"
			"More: man s3once-fleet\n",
	};
}

struct fleet {
	const struct fleet_command *values;
	struct open_marks marks;
	struct fleet_view view;
	uint64_t forgotten, kept;
};

static enum outcome show_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	struct fleet *fleet = arg;
	(void)ret_problem;
	fleet->view.now_s = store_time_s(fleet->marks.store);
	fleet_tell_job(&fleet->view, job);
	return OUTCOME_OK;
}

/* HOST ends at the first slash. */
static bool is_named(const char *name, const struct job_row *row)
{
	const size_t host = strlen(row->host);
	if (strncmp(name, row->host, host) != 0)
		return false;
	return !name[host] || (name[host] == '/' && strcmp(name + host + 1, row->job) == 0);
}

static enum outcome forget_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	struct fleet *fleet = arg;
	const struct call_limits limits = {0};
	enum outcome o = OUTCOME_OK;
	if (!is_named(fleet->values->forget, &job->row))
		return o;
	if (job->state == FLEET_RUNNING) {
		fleet->kept++;
		fleet_tell_kept(&fleet->view, &job->row, "a run of it is at work");
		return o;
	}
	o = job_row_remove(fleet->marks.conn, &job->row, &limits, ret_problem);
	if (o == OUTCOME_OK) {
		fleet->forgotten++;
		fleet_tell_forgotten(&fleet->view, &job->row);
	} else if (o == OUTCOME_REFUSED) {
		fleet->kept++;
		fleet_tell_kept(
			&fleet->view, &job->row, "a run of it has begun or ended meanwhile");
		o = OUTCOME_OK;
	}
	return o;
}

/* The exit code; 3 with a sentence. */
static int look_at_jobs(struct fleet *fleet, struct problem *ret_problem)
{
	const struct fleet_command *values = fleet->values;
	const struct call_limits limits = {0};
	const struct fleet_visitor visitor = {values->forget ? forget_job : show_job, fleet};
	if (fleet_walk(fleet->marks.conn, values->expect_ms / 1000, &limits, &visitor,
		    ret_problem) != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	if (values->forget) {
		if (!fleet->forgotten && !fleet->kept)
			output_say(fleet->view.output,
				"error: fleet: these marks know no run of %s: name it as "
				"s3once fleet shows it",
				quote(values->forget).text);
		return fleet->forgotten && !fleet->kept ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
	}
	if (!fleet->view.jobs) {
		problem_set(ret_problem,
			"no run with these marks has said yet how it ended: check --marks, or look "
			"again after the first run");
		return S3ONCE_EXIT_SETUP;
	}
	const int code = fleet->view.fine == fleet->view.jobs ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
	fleet_tell_end(&fleet->view, code);
	return code;
}

static int fleet_of(const struct fleet_command *values, const struct marks_place *place)
{
	struct output output;
	struct services services = {0};
	struct store_settings settings;
	struct problem problem = {0};
	struct text name = TEXT(8192);
	struct fleet fleet = {.values = values,
		.view = {.output = &output, .json = values->json, .only_wrong = values->quiet}};
	marks_place_name(place, &name);
	output_init(&output);
	const bool ok = marks_are_there(place, &problem) &&
			services_open(&values->access, &services, &problem) == 0 &&
			marks_open(place, &services, &fleet.marks, &problem) == 0 &&
			marks_load_settings(&fleet.marks, text_string(&name), &settings, &problem);
	int code = ok ? look_at_jobs(&fleet, &problem) : S3ONCE_EXIT_SETUP;
	if (output_finish(&output) < 0 && code == S3ONCE_EXIT_OK)
		code = S3ONCE_EXIT_FILES;
	if (code == S3ONCE_EXIT_SETUP)
		command_fail("fleet", code, &problem);
	marks_close(&fleet.marks);
	services_close(&services);
	text_clear(&name);
	return code;
}

/* 0, or the exit code with a sentence. */
static int understand(const struct fleet_command *values, int n, char **operands,
	struct marks_place *ret_place, struct problem *ret_problem)
{
	if (n > 0) {
		problem_set(ret_problem,
			"'%s': fleet shows all jobs of the marks, and takes no operand",
			quote(operands[0]).text);
		return S3ONCE_EXIT_USAGE;
	}
	return marks_place_chosen(&values->access, !values->forget, ret_place, ret_problem);
}

int fleet_main(int argc, char **argv)
{
	struct fleet_command values = {0};
	struct option_group groups[GROUPS];
	struct command command = fleet_command(groups, &values);
	struct problem problem = {0};
	struct marks_place place = {0};
	const int n = options_parse(&command, argc, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	int code = n < 0 ? S3ONCE_EXIT_USAGE : understand(&values, n, argv, &place, &problem);
	code = code ? command_fail("fleet", code, &problem) : fleet_of(&values, &place);
	marks_place_clear(&place);
	return code;
}
