/* `s3once lock`: finds the command and reads its options. */
#include "base/log.h"
#include "base/nearest.h"
#include "base/problem.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/lock/lock_command.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct lock_command *const commands[] = {&lock_run_command, &lock_acquire_command,
	&lock_renew_command, &lock_release_command, &lock_status_command, &lock_list_command,
	&lock_break_command, &lock_init_command};
enum { COMMANDS = sizeof commands / sizeof(void *), GROUPS = 7 };

static void print_usage(FILE *stream)
{
	fprintf(stream, "Usage: s3once lock COMMAND [OPTIONS] ...\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-8s %s\n", commands[i]->name, commands[i]->description);
	fprintf(stream, "\n"
			"  s3once lock COMMAND --help   the options of a command\n"
			"\n"
			"Example: s3once lock run nightly -- backup --all\n");
}

static struct command command_of(const struct lock_command *which, char name[static 32],
	struct option_group groups[static GROUPS], struct lock_options *options)
{
	size_t n = 0;
	for (; n < 3 && which->groups[n]; n++)
		groups[n] = (struct option_group){n ? NULL : "Lock", which->groups[n], options};
	groups[n++] = (struct option_group){"Table or file", lock_place_options, options};
	groups[n++] = (struct option_group){"Services", access_dynamodb_options, &options->access};
	groups[n++] = (struct option_group){NULL, access_options, &options->access};
	groups[n++] = (struct option_group){"Output", lock_output_options, options};
	snprintf(name, 32, "lock %s", which->name);
	return (struct command){
		.name = name,
		.operands = which->operands,
		.about = which->about,
		.groups = groups,
		.n_groups = n,
		.examples = which->examples,
	};
}

static int run_lock_command(const struct lock_command *which, int argc, char **argv)
{
	struct lock_options options = {.wait_ms = UINT64_MAX};
	struct option_group groups[GROUPS];
	struct problem problem = {0};
	char name[32];
	struct command command = command_of(which, name, groups, &options);
	int n = options_parse(&command, argc, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	if (n >= 0 && n < which->least)
		problem_set(&problem, "something is missing: give %s; see s3once %s --help",
			which->operands, name);
	else if (n >= 0 && which->most >= 0 && n > which->most)
		problem_set(&problem, "'%s' is too much: it takes %s; see s3once %s --help",
			quote(argv[which->most]).text,
			*which->operands ? which->operands : "no operand", name);
	if (problem.text[0])
		return command_fail(name, S3ONCE_EXIT_USAGE, &problem);
	return which->run(&options, n, argv);
}

static int unknown_command(const char *given)
{
	const char *names[COMMANDS];
	for (int i = 0; i < COMMANDS; i++)
		names[i] = commands[i]->name;
	const char *nearest = nearest_name(given, names, COMMANDS);
	if (nearest)
		log_error("unknown %s '%s'; did you mean lock %s?",
			*given == '-' ? "option" : "command", quote(given).text, nearest);
	else
		log_error("unknown %s '%s'; see s3once lock --help",
			*given == '-' ? "option" : "command", quote(given).text);
	return S3ONCE_EXIT_USAGE;
}

int lock_main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return S3ONCE_EXIT_USAGE;
	}
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return run_lock_command(commands[i], argc - 1, argv + 1);
	if (strcmp(argv[1], "child") == 0)
		return lock_child_main(argc - 1, argv + 1);
	if (strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
		return unknown_command(argv[1]);
	print_usage(stdout);
	return S3ONCE_EXIT_OK;
}
