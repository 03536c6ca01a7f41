/* The frame of all commands (commands.h), which each command calls first and last. It opens the
 * marks for the commands that only read marks or remove them; init and doctor open theirs
 * themselves, and a push does so by the library. Lost output changes the exit code here, except for
 * commands with an output of their own, such as push. */
#include "cli/commands.h"
#include "base/log.h"
#include "base/must_have.h"
#include "base/text.h"
#include "s3/s3.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define FULL_BYTES (256U << 10) /* a disk with less room than this is full */

/* Reads the options of the command line, and from the environment those that it does not set.
 * Returns the number of operands, -ECANCELED for --help, or -EINVAL with a sentence. */
static int read_options(struct command_frame *frame, int argc, char **argv)
{
	const struct command *command = &frame->parsed;
	options_take_list_variables(command);
	const int n = options_parse(command, argc, argv, &frame->problem);
	/* With --job, job_asked_open() reads the environment, after the job's file. */
	const bool has_job = command->shares & SHARES_JOB && frame->job.name;
	if (n < 0 || has_job)
		return n;
	if (options_take_variables(command, &frame->problem) < 0 ||
		options_refuse_conflict(command, &frame->problem) < 0)
		return -EINVAL;
	return n;
}

/* Checks the number n of operands, including the target that a job has added. Returns 0, or -EINVAL
 * with a sentence. */
static int check_operand_count(struct command_frame *frame, int n)
{
	const struct command *command = frame->command;
	const int max = command->takes.max;
	const bool takes_some = *command->operands;
	/* A command that takes operands, and for which `max` is 0, takes any number. */
	const bool takes_any_number = takes_some && !max;
	if (n < command->takes.min)
		return problem_error(&frame->problem, -EINVAL,
			"something is missing: give %s; see s3once %s --help", command->operands,
			command->name);
	if (n > max && !takes_any_number)
		return problem_error(&frame->problem, -EINVAL,
			"'%s' is too much: it takes %s; see s3once %s --help",
			quote(frame->operands[max]).text,
			takes_some ? command->operands : "no operand", command->name);
	return 0;
}

static const struct option json_options[] = {
	FLAG("json", 0, "print one event per line to standard output, as JSON"),
	{NULL},
};

static const struct option key_file_options[] = {
	VALUE("sse-c-key-file", STRING, 0, "FILE", "decrypt with the key in FILE (SSE-C)"),
	{NULL},
};

/* Sets frame->groups to the groups of the command, with the shared ones after them. */
static void add_shared_groups(struct command_frame *frame)
{
	const struct {
		unsigned shares; /* 0: every command has this group */
		bool has_variables;
		const char *title;
		const struct option *options;
		void *values;
	} shared[] = {
		{SHARES_JOB, false, NULL, job_asked_options, &frame->job},
		{SHARES_MARKS, true, "Marks", access_marks_options, &frame->access},
		{SHARES_S3, true, "Services", access_s3_options, &frame->access},
		{SHARES_ACCOUNT, true, "Services", access_options, &frame->access},
		{SHARES_TIMEOUT, true, "Services", access_timeout_options, &frame->access},
		{SHARES_CHECKSUM, true, "Services", access_checksum_options, &frame->access},
		{SHARES_KEY_FILE, true, "Services", key_file_options, &frame->key_file},
		{SHARES_JSON, false, "Output", json_options, &frame->json},
		{0, false, "Output", no_options, NULL},
	};
	const struct command *command = frame->command;
	const struct option_group *own = command->groups;
	const char *last_title = NULL; /* the last title that --help prints so far */
	size_t n = 0;
	for (; own && own->options; own++) {
		last_title = own->title ? own->title : last_title;
		frame->groups[n++] = *own;
	}
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		if (shared[i].shares && !(shared[i].shares & command->shares))
			continue;
		/* A title is printed once: groups without a title go on under the last one. */
		const char *title = shared[i].title;
		if (title && last_title && strcmp(title, last_title) == 0)
			title = NULL;
		last_title = title ? title : last_title;
		frame->groups[n++] = (struct option_group){.title = title,
			.options = shared[i].options,
			.has_variables = shared[i].has_variables,
			.values = shared[i].values};
	}
	if (command->output_options)
		frame->groups[n++] = (struct option_group){.options = command->output_options};
	assert(n < FRAME_GROUPS);
	frame->parsed.groups = frame->groups;
}

/* Reads the command line and the job of --job, and checks the number of operands. Returns it,
 * -ECANCELED for --help, or another -errno with a sentence. */
static int read_words(struct command_frame *frame, int argc, char **argv)
{
	const unsigned shares = frame->command->shares;
	int n = read_options(frame, argc, argv);
	/* A job may add its target to the operands. Without --job, the number stays. */
	if (n >= 0 && shares & SHARES_JOB)
		n = job_asked_open(&frame->job, &frame->access, n, argv);
	if (n < 0)
		return n;
	if (shares & SHARES_KEY_FILE && !frame->key_file)
		frame->key_file = job_asked_setting(&frame->job, "sse-c-key-file");
	return check_operand_count(frame, n) < 0 ? -EINVAL : n;
}

bool frame_begin(struct command_frame *frame, int argc, char **argv)
{
	frame->code = S3ONCE_EXIT_USAGE;
	frame->operands = argv; /* options_parse() moves the operands to the beginning of argv */
	frame->words = must_have(calloc((size_t)argc + 1, sizeof *frame->words));
	memcpy(frame->words, argv, (size_t)argc * sizeof *argv);
	frame->parsed = *frame->command;
	frame->parsed.values = frame->values;
	frame->parsed.given = frame->given;
	frame->parsed.ret_topic = &frame->topic;
	frame->parsed.ret_before_dashes = &frame->before_dashes;
	if (frame->command->shares)
		add_shared_groups(frame);
	frame->n_operands = read_words(frame, argc, argv);
	const bool asks_for_help = frame->n_operands == -ECANCELED;
	const bool goes_on = frame->n_operands >= 0;
	if (asks_for_help &&
		options_help(&frame->parsed, frame->topic, stdout, &frame->problem) == 0)
		frame->code = S3ONCE_EXIT_OK;
	if (goes_on && !frame->has_own_output)
		output_init(&frame->output, &(struct output_options){0});
	return goes_on;
}

bool frame_choose_marks(struct command_frame *frame, enum marks_use use)
{
	const char *spec = frame->access.marks ? frame->access.marks : "local";
	const int error = marks_place_parse(spec, &frame->place, &frame->problem);
	frame->place.only_read = use == MARKS_READ;
	if (error) {
		frame->code = error == -EINVAL ? S3ONCE_EXIT_USAGE : S3ONCE_EXIT_SETUP;
		return false;
	}
	const char *path = frame->place.path;
	const bool is_roots_own =
		strcmp(spec, "local") == 0 && geteuid() == 0 && access(path, F_OK) == 0;
	/* Root may have meant the marks of the units. */
	if (is_roots_own && marks_of_units_are_there(path))
		log_warning("these are the marks of root's own runs; the systemd units keep theirs "
			    "in sqlite:" MARKS_OF_UNITS ": --job NAME or --marks looks there");
	return true;
}

static bool disk_is_full(const char *path)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < FULL_BYTES;
}

/* Puts the name of the marks before the sentence, unless the sentence names them already: by the
 * path, or by ":TABLE", since the name of a table without the colon could be any word. */
static void name_marks_in_problem(struct command_frame *frame)
{
	const char *name = text_string(&frame->marks_name); /* "dynamodb:TABLE", "sqlite:PATH" */
	const char *colon = strchr(name, ':');
	if (!colon) /* memory ran out while the name was made */
		return;
	const char *part = frame->place.is_dynamodb ? colon : colon + 1;
	if (!strstr(frame->problem.text, part))
		problem_prefix(&frame->problem, "%s", name);
}

bool frame_open_marks(struct command_frame *frame, const char *bucket, struct mark_space *ret)
{
	const struct marks_place *place = &frame->place;
	struct problem *problem = &frame->problem;
	const char *table_or_path = place->is_dynamodb ? place->table : place->path;
	frame->marks_name = TEXT(8192);
	text_add(&frame->marks_name, place->is_dynamodb ? "dynamodb:" : "sqlite:");
	text_add_escaped_string(&frame->marks_name, table_or_path);
	frame->code = S3ONCE_EXIT_SETUP;
	/* Opening a missing file of marks would create it, and a command that only reads must not
	 * do that. */
	if (marks_are_missing(place, problem))
		return false;
	/* Runs that met a full disk could not record their failure, so the marks show an earlier
	 * success. */
	frame->disk_is_full = !place->is_dynamodb && disk_is_full(place->path);
	if (frame->disk_is_full)
		log_warning("the disk of %s is full, so that the last runs may not have recorded "
			    "how they ended: free some of it, and run again",
			quote(place->path).text);
	if (services_open(&frame->access, &frame->services, problem) < 0 ||
		marks_open(place, &frame->services, &frame->marks, problem) < 0)
		return false;
	snprintf(
		ret->service, sizeof ret->service, "%s", aws_settings_service(frame->services.aws));
	snprintf(ret->bucket, sizeof ret->bucket, "%s", bucket);
	const enum outcome o = settings_load(frame->marks.conn, NULL, &ret->settings, problem);
	if (o == OUTCOME_OK)
		return true;
	if (o == OUTCOME_ABSENT && !place->is_dynamodb)
		marks_describe_missing(place, problem);
	else if (o == OUTCOME_ABSENT)
		marks_place_explain_unset(place, frame->services.aws, problem);
	else
		name_marks_in_problem(frame);
	return false;
}

/* Reads the key of --sse-c-key-file into frame->headers. False with a sentence. */
static bool read_key_file(struct command_frame *frame)
{
	struct problem *problem = &frame->problem;
	if (s3_headers_new(&frame->headers))
		return problem_error(problem, false, "out of memory");
	return s3_headers_set(frame->headers, "sse-c-key-file", frame->key_file, problem) == 0 &&
	       s3_headers_prepare(frame->headers, problem) == 0;
}

bool frame_open_s3(struct command_frame *frame, const char *bucket)
{
	struct problem *problem = &frame->problem;
	struct services *services = &frame->services;
	if (frame->key_file && !read_key_file(frame))
		return false;
	const bool are_services_open = services->http != NULL;
	if (!are_services_open && services_open(&frame->access, services, problem) < 0)
		return false;
	if (s3_open(services->aws, services->http, bucket, &frame->s3, problem) < 0)
		return false;
	const bool is_open = s3_conn_new(frame->s3, &frame->s3_conn) == 0;
	if (!is_open)
		problem_set(problem, PROBLEM_NO_DESCRIPTORS);
	return is_open;
}

int frame_end(struct command_frame *frame)
{
	/* The output is finished first, so that the error comes after all results. */
	const bool has_begun = frame->output.writer != NULL;
	const bool is_printed = !has_begun || output_finish(&frame->output) == 0;
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(&frame->problem, sentence, sizeof sentence);
	if (*frame->problem.text && frame->code != S3ONCE_EXIT_OK)
		log_error("%s: %s", frame->command->name, sentence);
	/* Lost output changes only these two codes. For any other, frame->problem has the
	 * explanation. */
	int code = frame->code;
	if (!is_printed && (code == S3ONCE_EXIT_OK || code == S3ONCE_EXIT_FILES))
		code = frame->unprinted_code ? frame->unprinted_code : S3ONCE_EXIT_FILES;
	s3_conn_free(frame->s3_conn);
	s3_close(frame->s3);
	s3_headers_free(frame->headers);
	marks_close(&frame->marks);
	services_close(&frame->services);
	text_clear(&frame->marks_name);
	marks_place_clear(&frame->place);
	job_close(&frame->job.job);
	free(frame->words);
	return code;
}

int command_unknown(const char *before, const char *given, const char *const *names, size_t n)
{
	const char *what = *given == '-' ? "option" : "command";
	const char *nearest = nearest_name(given, names, n);
	if (nearest)
		log_error("unknown %s '%s'; did you mean %s%s?", what, quote(given).text, before,
			nearest);
	else
		log_error("unknown %s '%s'; see s3once %s--help", what, quote(given).text, before);
	return S3ONCE_EXIT_USAGE;
}
