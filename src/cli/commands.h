/* Each command is one function. Its argv[0] is the command's name, and it returns the exit code.
 * All begin and end in the same frame, which reads the words, opens what is asked for, and says why
 * the command fails. */
#pragma once
#include "cli/open_marks.h"
#include "cli/options/options.h"
#include "cli/output.h"

typedef int command_main(int argc, char **argv);
command_main push_main, run_main, watch_main, init_main, proven_main, fleet_main, forget_main,
	gc_main, status_main, verify_main, manifest_main, config_main, doctor_main, lock_main,
	version_main;

/* The frame of a command. Zero it, set what the command has, and use it as follows:
 *
 *	if (frame_begin(&frame, argc, argv) && frame_choose_marks(&frame, true))
 *		frame.code = show_what_is_there(&frame);
 *	return frame_end(&frame);
 *
 * For one thread; `output` is for all of them. It must not move. */
struct command_frame {
	/* Set by the command: */
	const struct command *command; /* its options and texts */
	void *values;                  /* what the options are read into */
	struct job_asked *job;         /* of --job; NULL: it has no such option */
	struct access *access;         /* its marks and services; NULL: it has none */
	bool speaks_itself;            /* it does not use `output` */
	int unprinted_code;            /* if its results cannot be printed; 0: S3ONCE_EXIT_FILES */
	/* Set by the command as it goes on: */
	int code; /* the exit code */
	/* Why it fails, which frame_end() says. Nothing is said if it is "", or if the code is
	 * S3ONCE_EXIT_OK: what the command got over may be left here then. */
	struct problem problem;
	/* From frame_begin() on: */
	struct command read; /* the command with its values, and with what is in `given` */
	/* What words and environment say; with --job the words alone. */
	unsigned given[OPTIONS_MAX];
	char **words; /* argv as it was */
	int n;        /* operands */
	char **operands;
	struct output output;
	/* From frame_choose_marks() and frame_open_marks() on: */
	struct marks_place place;
	struct text marks_name; /* "dynamodb:TABLE" or "sqlite:PATH", as messages show it */
	struct services services;
	struct open_marks marks;
};

/* Of a command whose values have the fields `job` and `access`. */
#define FRAME_WITH_JOB(of, its)                                                                    \
	((struct command_frame){                                                                   \
		.command = &(of), .values = &(its), .job = &(its).job, .access = &(its).access})

/* Reads argv[1…], which is rearranged and stays borrowed, prints what --help asks for, opens the
 * job of --job, and counts the operands. Returns whether the command goes on; if not, the frame
 * says why. The code is S3ONCE_EXIT_USAGE until the command sets another one. Call frame_end() in
 * any case. */
bool frame_begin(struct command_frame *frame, int argc, char **argv);
/* Finds out which marks were chosen. False: the frame has the code and says why. */
bool frame_choose_marks(struct command_frame *frame, bool only_read);
/* Opens the services, and those marks, which have to be there: *ret is that of a bucket ("": none)
 * in them, whose generation is not known yet. False: the frame says why, and the
 * code is S3ONCE_EXIT_SETUP. */
bool frame_open_marks(struct command_frame *frame, const char *bucket, struct mark_space *ret);
/* Lets go of the output, says what went wrong, closes all that is open, and returns the code. If
 * results could not be printed, it is another one than success. */
int frame_end(struct command_frame *frame);

/* Says that none of n commands has this name, and which one is like it. They are those of s3once,
 * or with "lock " those of that. Returns the exit code. */
int command_unknown(const char *of, const char *given, const char *const *names, size_t n);
