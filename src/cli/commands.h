/* Each command is one function, whose argv[0] is the command's name. It returns the exit code.
 *
 * All commands begin and end with the functions of struct command_frame. These read the command
 * line, open the marks and services that the command needs, and print the reason of its failure. */
#pragma once
#include "cli/job/job.h"
#include "cli/json.h"
#include "cli/open_marks.h"

typedef int command_main(int argc, char **argv);
command_main push_main, run_main, watch_main, init_main, proven_main, fleet_main, forget_main,
	gc_main, status_main, verify_main, manifest_main, cat_main, config_main, doctor_main,
	lock_main, version_main;

/* Options that several commands share. The frame adds them to those of the command, and has their
 * values. */
enum shared_options {
	SHARES_JOB = 1,      /* --job, which the frame opens */
	SHARES_MARKS = 2,    /* --marks */
	SHARES_S3 = 4,       /* --endpoint-url */
	SHARES_ACCOUNT = 8,  /* --region, --profile, --ca-bundle */
	SHARES_TIMEOUT = 16, /* --request-timeout */
	SHARES_SERVICES = SHARES_ACCOUNT | SHARES_TIMEOUT,
	SHARES_CHECKSUM = 32, /* --checksum */
	SHARES_KEY_FILE = 64, /* --sse-c-key-file */
	SHARES_JSON = 128,    /* --json */
};
enum { FRAME_GROUPS = 16 }; /* more than any command has, with those of the frame */

/* The frame of a command. Zero it, set the first members, and use it as follows:
 *
 * 	if (frame_begin(&frame, argc, argv) && frame_choose_marks(&frame, MARKS_READ))
 * 		frame.code = show_what_is_there(&frame);
 * 	return frame_end(&frame);
 *
 * The frame is for one thread and must not move. Its `output` is for all threads. */
struct command_frame {
	/* Set by the command: */
	const struct command *command; /* its options and texts */
	void *values;                  /* the struct that its own options are read into */
	bool has_own_output; /* frame_begin() does not begin `output`: the command prints without
				it, or begins it with its own options */
	int unprinted_code;  /* the exit code if results cannot be printed; 0: S3ONCE_EXIT_FILES */
	/* Set by the command later: */
	int code; /* the exit code */
	/* The reason of a failure. frame_end() prints it, unless it is "" or the code is
	 * S3ONCE_EXIT_OK. So a successful command may leave the sentence of an ignored error
	 * here. */
	struct problem problem;
	/* The values of the shared options: from the command line, or else from the job.
	 */
	struct job_asked job;
	struct access access;
	const char *key_file; /* argument of --sse-c-key-file; NULL: none */
	int json;
	/* Valid after frame_begin(): */
	struct command parsed; /* `command`, with the groups of the frame, its values and `given` */
	struct option_group groups[FRAME_GROUPS];
	/* Where each option was set (enum set_in). With --job, only the command line counts. */
	unsigned given[OPTIONS_MAX];
	const char *topic; /* the TOPIC of --help; NULL: none */
	int before_dashes; /* operands before "--"; 0 even if there is no "--" */
	char **words;      /* the original argv */
	int n_operands;
	char **operands;
	struct output output;
	/* Valid after frame_choose_marks() and frame_open_marks(): */
	struct marks_place place;
	bool disk_is_full; /* the disk of the marks is full, so they may lack results of runs */
	struct text marks_name; /* "dynamodb:TABLE" or "sqlite:PATH", as messages show it */
	struct services services;
	struct open_marks marks;
	/* Valid after frame_open_s3(): the bucket, a connection, and the headers with the key of
	 * --sse-c-key-file; NULL: without. */
	struct s3 *s3;
	struct s3_conn *s3_conn;
	struct s3_headers *headers;
};

/* Reads argv[1…], prints the help if --help asks for it, opens the job of --job, and checks the
 * number of operands. Returns whether the command continues. If not, the frame has the reason. The
 * code is S3ONCE_EXIT_USAGE until the command sets another one.
 *
 * argv is rearranged and stays borrowed. Call frame_end() in any case. */
bool frame_begin(struct command_frame *frame, int argc, char **argv);
/* The command's use of the marks. READ: it writes none. */
enum marks_use { MARKS_READ, MARKS_WRITTEN };
/* Sets frame->place to the marks that --marks or the environment names, or else to the local ones.
 * Returns false if that fails; the frame then has the code and the reason. */
bool frame_choose_marks(struct command_frame *frame, enum marks_use use);
/* Opens the services and the marks of frame->place, which must exist. *ret becomes the place of the
 * bucket's marks in the store ("": no bucket), without ret->generation. Returns false if that
 * fails; the frame then has the reason. The code is S3ONCE_EXIT_SETUP in any case, until the
 * command sets another one. */
bool frame_open_marks(struct command_frame *frame, const char *bucket, struct mark_space *ret);
/* Opens the services unless they are open, and then the bucket. Returns false if that fails; the
 * frame then has the reason. */
bool frame_open_s3(struct command_frame *frame, const char *bucket);
/* Prints an event, which is evaluated only with --json, or else a line, printf style. */
#define frame_print(frame, event, ...)                                                             \
	((frame)->json ? json_print(&(frame)->output, (event))                                     \
		       : output_resultf(&(frame)->output, __VA_ARGS__))
/* Finishes the output, prints frame->problem, closes everything that is open, and returns the exit
 * code. If results could not be printed, S3ONCE_EXIT_OK and S3ONCE_EXIT_FILES become
 * frame->unprinted_code. */
int frame_end(struct command_frame *frame);

/* Prints that no command is named `given`, with the most similar of n names. `before` is the word
 * before it in a command line: "lock " for the commands of s3once lock, and else "". Returns the
 * exit code. */
int command_unknown(const char *before, const char *given, const char *const *names, size_t n);
