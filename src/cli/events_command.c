/* `s3once events`: a log of `push --json` told to people. */
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/event_read.h"
#include "cli/line_reader.h"
#include "cli/options/options.h"
#include "cli/push/people.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOLD_MAX 10 /* lines that are left out and named */

struct events_options {
	unsigned verbose;
	int quiet;
};

static const struct option output_options[] = {
	{.name = "verbose",
		.letter = 'v',
		.type = OPTION_COUNT,
		.offset = offsetof(struct events_options, verbose),
		.help = "print each file that was uploaded, and each error;\n"
			"-vv: also files that were skipped"},
	{.name = "quiet",
		.letter = 'q',
		.type = OPTION_FLAG,
		.offset = offsetof(struct events_options, quiet),
		.help = "print errors and warnings alone, and a last line of\n"
			"each run that had any"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this help and exit"},
	{NULL},
};

static const struct option_conflict conflicts[] = {{"quiet", "verbose", NULL}, {NULL}};

static struct command events_command(
	struct option_group groups[static 1], struct events_options *options)
{
	groups[0] = (struct option_group){"Output", output_options, options};
	return (struct command){
		.name = "events",
		.operands = "[FILE]",
		.about =
			"Prints the events that push, run and watch have written with --json, as the\n"
			"lines that they print without it, each with its time in UTC. FILE is mostly that\n"
			"of --log-file; standard input is read if FILE is - or missing.\n",
		.groups = groups,
		.n_groups = 1,
		.conflicts = conflicts,
		.examples =
			"  s3once events -v /var/log/s3once/nginx.json\n"
			"  tail -F /var/log/s3once/nginx.json | s3once events -\n"
			"  zcat nginx.json.2.gz | s3once events --quiet\n"
			"\n"
			"Exit codes: 0 all lines were read; 1 some are no events, and were left out;\n"
			"2 usage; 3 FILE cannot be read.\n"
			"More: man s3once-events\n",
	};
}

/* One job, and the run of it that the events are about. */
struct told_run {
	char *job, *bucket, *prefix; /* owned */
	struct people people;
};

struct reading {
	const struct events_options *options;
	struct output output;
	struct event_read read;
	struct told_run *runs;
	size_t n_runs;
	uint64_t left_out;
};

static void end_run(struct told_run *run)
{
	alike_clear(&run->people.errors);
	free(run->bucket);
	free(run->prefix);
	run->bucket = run->prefix = NULL;
}

/* What the log does not say was not asked for. */
static int begin_run(struct reading *reading, struct told_run *run, const char *bucket)
{
	end_run(run);
	run->bucket = strdup(bucket);
	run->prefix = strdup(text_string(&reading->read.prefix));
	run->people = (struct people){.output = &reading->output,
		.job = *run->job ? run->job : NULL,
		.bucket = run->bucket,
		.prefix = run->prefix,
		.verbose = reading->options->verbose,
		.quiet = reading->options->quiet,
		.dry_run = reading->read.dry_run,
		.gives_up_held = reading->read.dry_run};
	return run->bucket && run->prefix ? 0 : -ENOMEM;
}

/* The run that the event is of. The beginning of a log may be gone, and the bucket with it. */
static struct told_run *run_of_event(struct reading *reading)
{
	const char *job = text_string(&reading->read.job);
	for (size_t i = 0; i < reading->n_runs; i++)
		if (strcmp(reading->runs[i].job, job) == 0)
			return &reading->runs[i];
	struct told_run *runs =
		realloc(reading->runs, (reading->n_runs + 1) * sizeof *reading->runs);
	if (!runs)
		return NULL;
	reading->runs = runs;
	struct told_run *run = &runs[reading->n_runs];
	*run = (struct told_run){.job = strdup(job)};
	if (!run->job)
		return NULL;
	reading->n_runs++;
	return begin_run(reading, run, "?") < 0 ? NULL : run;
}

static int tell_begin(struct reading *reading, struct told_run *run)
{
	struct text t = TEXT(PEOPLE_LINE_BYTES_MAX);
	const int error = begin_run(reading, run, text_string(&reading->read.bucket));
	if (!error && !reading->options->quiet) {
		people_add_job(&t, &run->people);
		text_addf(&t, "%s begins: s3://%s/", run->people.dry_run ? "a dry run" : "a run",
			run->bucket);
		text_add_escaped_string(&t, run->prefix);
		text_addf(&t, ", marks: %s", text_string(&reading->read.marks));
		output_result(&reading->output, text_string(&t));
	}
	text_clear(&t);
	return error;
}

static int tell_event(struct reading *reading)
{
	const struct event_read *read = &reading->read;
	struct told_run *run = run_of_event(reading);
	if (!run)
		return -ENOMEM;
	output_stamp(&reading->output, read->time);
	if (read->event.type == S3ONCE_EVENT_START)
		return tell_begin(reading, run);
	if (read->event.type != S3ONCE_EVENT_SUMMARY) {
		people_event(&run->people, &read->event);
		return 0;
	}
	const struct people_end end = {
		&read->counts, text_string(&read->manifest), read->exit_code};
	run->people.dry_run = read->dry_run;
	people_summary(&run->people, &end);
	return 0;
}

static void tell_left_out(struct reading *reading, uint64_t number, const char *why)
{
	output_stamp(&reading->output, NULL);
	if (++reading->left_out <= TOLD_MAX)
		output_say(&reading->output, "warning: line %" PRIu64 " %s: it is left out", number,
			why);
}

/* 0 or -errno. Standard output that is broken ends it; output_finish() says so. */
static int read_events(struct reading *reading, int fd)
{
	struct line_reader lines = {.fd = fd};
	struct line line;
	int r;
	while ((r = line_reader_next(&lines, &line)) > 0 && !reading->output.locked.error) {
		const char *why = line.is_cut ? "is longer than 1 MiB"
				  : line.n    ? event_read(&reading->read, line.bytes, line.n)
					      : NULL;
		if (why)
			tell_left_out(reading, lines.number, why);
		else if (line.n && (r = tell_event(reading)) < 0)
			break;
	}
	line_reader_clear(&lines);
	return r < 0 ? r : 0;
}

static void clear_reading(struct reading *reading)
{
	for (size_t i = 0; i < reading->n_runs; i++) {
		end_run(&reading->runs[i]);
		free(reading->runs[i].job);
	}
	free(reading->runs);
	event_read_clear(&reading->read);
}

static int tell_all(const struct events_options *options, const char *path, int fd)
{
	struct reading reading = {.options = options};
	struct problem problem = {0};
	output_init(&reading.output);
	const int error = read_events(&reading, fd);
	output_stamp(&reading.output, NULL);
	int code = reading.left_out ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
	if (reading.left_out > TOLD_MAX)
		output_say(&reading.output, "warning: %" PRIu64 " lines were left out in all",
			reading.left_out);
	if (output_finish(&reading.output) < 0)
		code = S3ONCE_EXIT_FILES;
	clear_reading(&reading);
	if (!error)
		return code;
	problem_set(&problem, "cannot read %s: %s", quote(path).text, strerror(-error));
	return command_fail("events", S3ONCE_EXIT_SETUP, &problem);
}

/* *ret stays as it is without an operand. Nobody types events. */
static int read_operands(int n, char **operands, const char **ret, struct problem *ret_problem)
{
	if (n > 1)
		problem_set(ret_problem,
			"'%s': one FILE at a time; cat several into standard input",
			quote(operands[1]).text);
	else if (n == 1 && !*operands[0])
		problem_set(ret_problem, "the name of FILE is empty");
	else if (n == 0 && isatty(STDIN_FILENO))
		problem_set(ret_problem,
			"name the FILE that --json or --log-file has written, or - to read standard "
			"input");
	else if (n == 1)
		*ret = operands[0];
	return *ret_problem->text ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_OK;
}

static int tell_file(const struct events_options *options, const char *path)
{
	struct problem problem = {0};
	if (strcmp(path, "-") == 0)
		return tell_all(options, "standard input", STDIN_FILENO);
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		problem_set(&problem, "cannot read %s: %s", quote(path).text, strerror(errno));
		return command_fail("events", S3ONCE_EXIT_SETUP, &problem);
	}
	const int code = tell_all(options, path, fd);
	close(fd);
	return code;
}

int events_main(int argc, char **argv)
{
	struct events_options options = {0};
	struct option_group groups[1];
	const struct command command = events_command(groups, &options);
	struct problem problem = {0};
	const char *path = "-";
	const int n = options_parse(&command, argc, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	const int code = n < 0 ? S3ONCE_EXIT_USAGE : read_operands(n, argv, &path, &problem);
	return code ? command_fail("events", code, &problem) : tell_file(&options, path);
}
