/* The program: it prepares the process, runs the command that the first word names, and checks
 * standard output once more before the exit code is final. The list of commands is here; their
 * common frame is in commands.h. The unit tests link all of src/cli except this file. */
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/other_tools.h"
#include <stdio.h>
#include <string.h>
#include <uv.h>

static command_main help_main;

static const struct {
	const char *name;
	command_main *run;
	const char *description;
	bool removes; /* it removes something, so no message proposes it */
} commands[] = {
	{"push", push_main, "upload files to S3, each exactly once"},
	{"run", run_main, "upload the files of jobs, each described in a file"},
	{"watch", watch_main, "run jobs as a service: upload each file soon after its last write"},
	{"proven", proven_main, "check whether files are in S3, before you remove them"},
	{"status", status_main, "show the state of the uploads to a bucket, a prefix or a key"},
	{"fleet", fleet_main, "show the state of the jobs of all hosts that share the marks"},
	{"forget", forget_main, "remove marks: of a key, a prefix, or of objects that are gone",
		true},
	{"verify", verify_main, "compare the bucket with the marks"},
	{"manifest", manifest_main,
		"print the lists of files that runs have stored, also as checksums"},
	{"cat", cat_main, "print the lines of a log from its objects in S3"},
	{"gc", gc_main, "clean up after ended runs: unfinished uploads, claims, old marks", true},
	{"init", init_main, "create the table that keeps the marks of many hosts"},
	{"config", config_main, "show the settings and where each comes from"},
	{"doctor", doctor_main, "check the setup, and test what the server supports"},
	{"lock", lock_main, "hold locks with leases, across many hosts"},
	{"version", version_main, "show the versions of the program and of its libraries"},
	{"help", help_main, "print the options of a command"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *stream)
{
	fprintf(stream, "Usage: s3once COMMAND [OPTIONS] ...\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-9s %s\n", commands[i].name, commands[i].description);
	fprintf(stream,
		"\n  s3once help COMMAND     print the options of a command; also COMMAND --help\n"
		"  s3once --version        print the version alone; also -V\n\n"
		"Example: s3once push /srv/photos s3://my-bucket/photos\n");
}

/* Runs the command that argv[0] names. */
static int run_command(int argc, char **argv)
{
	const char *names[COMMANDS]; /* the commands that a message may propose */
	size_t n = 0;
	for (int i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name) == 0)
			return commands[i].run(argc, argv);
		if (!commands[i].removes)
			names[n++] = commands[i].name;
	}
	if (other_tools_command(argc, argv)) /* it has reported what to use instead */
		return S3ONCE_EXIT_USAGE;
	return command_unknown("", argv[0], names, n);
}

/* Runs "help lock run" as "lock run --help", and "help push logs" as "push --help logs". */
static int help_main(int argc, char **argv)
{
	static char option[] = "--help";
	if (argc < 2 || strcmp(argv[1], "help") == 0 || *argv[1] == '-') {
		print_usage(stdout);
		return S3ONCE_EXIT_OK;
	}
	/* "--help" takes the place after the words of the command's name: one, or "lock run". */
	const int name_words = (argc > 2 && strcmp(argv[1], "lock") == 0) ? 2 : 1;
	memmove(argv, argv + 1, (size_t)name_words * sizeof *argv);
	argv[name_words] = option;
	return run_command(argc, argv);
}

/* Runs the command of the command line, or prints the help or the version. Returns the exit code.
 */
static int run_command_line(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return S3ONCE_EXIT_USAGE;
	}
	const char *first = argv[1];
	if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
		print_usage(stdout);
		return S3ONCE_EXIT_OK;
	}
	if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
		printf("s3once %s\n", s3once_version());
		return S3ONCE_EXIT_OK;
	}
	return run_command(argc - 1, argv + 1);
}

/* Flushes standard output, and returns the final exit code. Lost output turns a success into
 * S3ONCE_EXIT_FILES, with a message. S3ONCE_EXIT_HELD is an answer and no failure: it gets the
 * message, too, but stays. A command that has failed has reported the reason, and nothing is added.
 */
static int finish_stdout(int code)
{
	const int error = output_flush_stdout();
	if (!error || (code != S3ONCE_EXIT_OK && code != S3ONCE_EXIT_HELD))
		return code;
	fprintf(stderr, "s3once: error: cannot write to standard output: %s\n", strerror(-error));
	return code == S3ONCE_EXIT_OK ? S3ONCE_EXIT_FILES : code;
}

int main(int argc, char **argv)
{
	/* The buffer holds the largest output, such as help. So output_flush_stdout() writes it,
	 * and has the reason of a failure. */
	static char buffer[64 << 10];
	startup_prepare();
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	const int code = run_command_line(argc, argv);
	/* Ends the threads of libuv's pool, which keep memory of OpenSSL and libxml2 as long as
	 * they run. */
	uv_library_shutdown();
	return finish_stdout(code);
}
