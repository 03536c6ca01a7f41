/* The options of a command. A table declares them once for what is parsed, what --help prints, and
 * which of them contradict each other. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What an option is, by what it does to the field at `offset`. */
enum option_type {
	OPTION_FLAG,     /* int: 1 */
	OPTION_COUNT,    /* unsigned: one more each time */
	OPTION_STRING,   /* const char *: the value, which is not empty, and is one of `choices` if
		    there are any; borrowed from argv */
	OPTION_CHOICE,   /* int: the index of the value in `choices` */
	OPTION_NUMBER,   /* unsigned */
	OPTION_SIZE,     /* uint64_t, bytes */
	OPTION_DURATION, /* uint64_t, milliseconds */
	OPTION_AGE,      /* uint64_t, milliseconds. 0 without a value and for "yes", UINT64_MAX for
		    "no". A value comes only after '=' */
	OPTION_EXCLUDE,  /* struct option_rules: one more, in one order with OPTION_INCLUDE */
	OPTION_INCLUDE,
	OPTION_SETTING, /* struct option_settings: one more, by the option's name */
	OPTION_HELP,    /* no field: ends the parsing */
};

struct option_rules {
	struct s3once_rule *rules; /* grown by options_parse(); the caller frees it */
	size_t n;
};

struct option_settings {
	struct s3once_setting *settings; /* likewise */
	size_t n;
};

struct option {
	const char *name; /* without the dashes; NULL ends a list */
	char letter;      /* 0: none; only of those without a value */
	bool is_secret;   /* config does not show its value */
	enum option_type type;
	size_t offset;              /* of its field in the group's values */
	const char *argument;       /* what stands for the value in --help; NULL if there is none */
	const char *help;           /* is broken into lines; '\n' begins one, too */
	uint64_t least, most;       /* of NUMBER, SIZE and DURATION, inclusive; most 0: no bound */
	const char *const *choices; /* NULL-terminated */
	/* What holds without the option, which --help adds to `help`. NULL: nothing. */
	const char *standard;
	uint64_t for_zero; /* of SIZE and DURATION: what 0 becomes, where a field of 0 is not set */
};

/* The lines of a table. `field` is an offset, and what follows the help sets further members. */
#define VALUE(option, kind, field, word, text, ...)                                                \
	{                                                                                          \
		.name = (option), .type = OPTION_##kind, .offset = (field), .argument = (word),    \
		.help = (text), __VA_ARGS__                                                        \
	}
#define FLAG(option, field, text, ...) VALUE(option, FLAG, field, NULL, text, __VA_ARGS__)

struct option_group {
	const char *title;            /* NULL: it continues the group before it */
	const struct option *options; /* NULL ends the groups of a command */
	size_t at; /* of what the offsets count from, in the values of the command */
	/* Each option is also set by a variable of the environment: min-age by S3ONCE_MIN_AGE. */
	bool has_variables;
};

/* Two options that exclude each other, and why. */
struct option_conflict {
	const char *a, *b; /* NULL a ends a list */
	const char *why;   /* a clause; NULL: they set the same thing */
};

/* An option that people look for in a command that does not have it, and where it is instead. */
struct option_elsewhere {
	const char *name;  /* without the dashes; NULL ends a list */
	const char *where; /* a clause: "s3once push --x does that" */
};

#define OPTIONS_MAX 128 /* of all groups of a command */

/* Who has said an option. A variable whose option somebody else has said does not count, unless the
 * option may be repeated. */
enum said_by {
	SAID_IN_ENVIRONMENT = 1,
	SAID_IN_FILE = 2,
	SAID_IN_WORDS = 4, /* of the command line */
};

/* How many operands a command takes, which its frame checks. */
struct operand_count {
	int least, most; /* most 0: any number, if there are some at all */
};

struct command {
	const char *name;
	const char *operands;       /* "SOURCE... s3://BUCKET[/PREFIX]"; "": there are none */
	struct operand_count takes; /* of which there are so many */
	const char *about;          /* whole lines, of at most 79 columns, as --help prints them */
	const struct option_group *groups;        /* --help comes behind them, and is in none */
	const struct option_conflict *conflicts;  /* NULL: none */
	const struct option_elsewhere *elsewhere; /* NULL: none */
	const char *examples;                     /* likewise */
	/* Of this run of the command: */
	void *values;    /* what its options are read into */
	unsigned *given; /* OPTIONS_MAX, filled as options are read: of enum said_by */
};

/* Reads argv[1…] into the values, and moves the operands to argv[0…] in their order.
 * Options and operands may be mixed, and "--" ends the options. Returns the number of operands,
 * -ECANCELED if --help was asked for, or -EINVAL with a sentence. */
int options_parse(
	const struct command *command, int argc, char **argv, struct problem *ret_problem);

/* An option of a command, and where its value goes. */
struct option_match {
	const struct option *option;
	const struct option_group *group;
	void *field;
	unsigned index; /* over all groups */
};
/* The next option of a command, the first one after zeros, with --help as the last. False: there
 * are no more. */
bool options_next(const struct command *command, struct option_match *at);
/* The option of this name, without dashes. False if there is none. */
bool options_find(const struct command *command, const char *name, struct option_match *ret);
/* The name of an option that is most like `name`, or NULL if none is near. */
const char *options_nearest(const struct command *command, const char *name);
/* Those of enum said_by who have said the option of this name. */
unsigned options_said(const struct command *command, const char *name);

/* Whether it may be repeated. */
bool option_is_list(const struct option *option);
/* Whether one of `by` (of enum said_by) has said the option, or another one that takes its place.
 * One that may be repeated is always added. */
bool options_override(const struct command *command, const struct option_match *match, unsigned by);
/* "wait = no" is "no-wait = yes", and the other way round: the option that is set, and the value
 * that it gets. */
const char *option_opposite(
	const struct command *command, struct option_match *match, const char *value);

/* The name of an option's variable. */
struct option_variable {
	char name[64];
};
struct option_variable option_variable(const struct option *option);
/* The i-th value in the environment: the others of an option that may be repeated are in
 * S3ONCE_TAG_2, S3ONCE_TAG_3 and so on. NULL: there is none, or it is empty. */
const char *option_variable_value(
	const struct option *option, unsigned i, struct option_variable *ret);
/* Sets the options that have a variable, and notes it in command->given. It is called twice: first
 * for those that may be repeated, which come before all others, and then, when file and words are
 * read, for the rest, unless options_override(). 0, or -EINVAL with a sentence. */
int options_variables(const struct command *command, bool lists, struct problem *ret_problem);
/* The next variable of the environment that begins with S3ONCE_ and is not that of an option, from
 * environ[*at] on, which goes on. NULL: there is none. */
const char *options_foreign_variable(const struct command *command, size_t *at);

/* The first conflict from `from` on of which both options were given, and neither is "no"; NULL if
 * there is none. The values are read already. */
const struct option_conflict *options_conflict(
	const struct command *command, const struct option_conflict *from);
/* Refuses the first of them. 0, or -EINVAL with a sentence. */
int options_check(const struct command *command, struct problem *ret_problem);
/* The value of one option, by its type. Reads `value` into `field`, whose type option_type gives.
 * Strings stay borrowed. `value` is NULL for an option without a value, as flags are on a command
 * line. In a file, a flag is yes or no, and a count may also be a number. Returns 0, -ECANCELED for
 * OPTION_HELP, or -EINVAL with a sentence about the value. */
int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem);

/* Of a group that has --help alone. */
extern const struct option no_options[];
/* What --help prints. */
void options_help(const struct command *command, FILE *stream);
