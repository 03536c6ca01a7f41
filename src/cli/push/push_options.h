/* The options of `s3once push`. */
#pragma once
#include "base/sha256.h"
#include "cli/options/access.h"
#include "cli/options/values.h"
#include "cli/push/pipe_input.h"

struct push_options {
	struct s3once_options run; /* the options of the library; borrows from here and from argv */
	struct access access;
	struct option_rules rules;
	struct option_settings settings;
	struct s3_url url;
	/* A line for the beginning of the run, from push_options_decide_key() or of a service,
	 * owned; NULL: none. */
	char *note;
	const char *job; /* the job that has these options; NULL: a command line has them */
	uint64_t delete_after_ms; /* UINT64_MAX: not asked for */
	unsigned verbose;
	const char *bwlimit;
	struct s3once_rate rates[BANDWIDTH_RATES_MAX]; /* of bwlimit */
	int json, quiet;
	const char *metrics;      /* as it was given; NULL: not asked for */
	const char *metrics_file; /* of `metrics`; NULL: it is a URL, or there is none */
	/* The receivers of notifications of the run (notifier.h); NULL: none. */
	const char *ping_url, *on_success, *on_failure, *metrics_otlp /* of `metrics` */;
	/* Only `s3once watch` uses these three. metrics_listen is NULL if it does not listen. */
	const char *metrics_listen;
	uint64_t whole_scan_ms, drain_ms;
	bool is_command; /* the operands are the URL and a command. Only push sets it */
	/* The option that has taken the word right before the only operand for its value, and that
	 * word, which may have been meant as the SOURCE. Only push sets them. NULL: there is none.
	 */
	const char *taking_option, *taken_word;
	/* The input if the SOURCE is -, or if there is a COMMAND. Only push sets it. NULL: the
	 * SOURCE - is a file of this name. */
	struct pipe_input *pipe;
	char producer_id[SHA256_HEX_CHARS + 1]; /* of a COMMAND */
};

/* Advice on the -- before a COMMAND. */
#define COMMAND_BEHIND_DASHES "a command is written behind --: s3://BUCKET/KEY -- COMMAND..."

/* Options are read in steps. push_options_init() sets the defaults. Then the fields are set by way
 * of the tables below. push_options_complete() takes the operands, which stay borrowed, and checks
 * the demands of one option on another. It returns 0, or -EINVAL with a sentence. Clear *ret in any
 * case. */
void push_options_init(struct push_options *ret);
int push_options_complete(
	struct push_options *options, int n, char **operands, struct problem *ret_problem);
/* Sets the place of the marks and of the services, also in options->run. The strings stay borrowed.
 */
void push_options_set_access(struct push_options *options, const struct access *access);
/* Decides, as users of cp expect it, whether the target of a command line is the key of its one
 * file, as in `push a.txt s3://my-bucket/b.txt`, and writes options->note where the keys may
 * surprise. Call it after push_options_complete(), and not for a job: the keys of a job must not
 * depend on what its sources are at the moment. */
void push_options_decide_key(struct push_options *options);
void push_options_clear(struct push_options *options);
/* Log a warning of variables of the environment that look like those of options, and are none: of
 * all, or of one "NAME=VALUE" that was set by this file. */
void push_options_warn_of_variables(void);
void push_options_warn_of_variable(const char *file, const char *variable);

/* The tables of push_option_tables.c. Their values are a struct push_options. */
enum { PUSH_GROUPS = 15 }; /* with the NULL at the end */
extern const struct option_group push_groups[PUSH_GROUPS];
extern const struct option_conflict push_conflicts[];
/* The same groups, and those of `s3once watch`, which the file of a job may have as well. */
extern const struct option_group job_groups[];
/* The commands `s3once push`, with the options for pipes, and a job, which has no text. */
extern const struct command push_own_command, job_command;
