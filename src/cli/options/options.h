/* The options of a command. One table declares them. By it the command line is parsed, --help is
 * printed, and options that contradict each other are refused. */
#pragma once
#include "base/problem.h"
#include "s3once/push.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The type of an option, which decides the type and the new value of its field. */
enum option_type {
	OPTION_FLAG,   /* int: becomes 1, or 0 for "no" */
	OPTION_COUNT,  /* unsigned: becomes one more each time */
	OPTION_STRING, /* const char *: the value, which is not empty, and is one of `choices` if
			  there are any; borrowed */
	OPTION_CHOICE, /* int: the index of the value in `choices` */
	OPTION_SET,    /* unsigned: bit i is set if the value, a list with commas, has choices[i] */
	OPTION_NUMBER, /* unsigned */
	OPTION_SIZE,   /* uint64_t, bytes */
	OPTION_DURATION, /* uint64_t, milliseconds */
	OPTION_AGE,      /* uint64_t, milliseconds. 0 without a value and for "yes", UINT64_MAX for
			    "no". A value comes only after '=' */
	OPTION_EXCLUDE,  /* struct option_rules: adds a rule; the next two add to the same list */
	OPTION_INCLUDE,
	OPTION_EXCLUDE_FROM,
	OPTION_SETTING, /* struct option_settings: adds a setting named like the option */
	OPTION_HELP,    /* no field: ends the parsing */
};

struct option_rules {
	struct s3once_rule *rules; /* grown by options_parse(); the caller frees it */
	size_t n;
};

struct option_settings {
	struct s3once_setting *settings; /* grown and freed as the rules are */
	size_t n;
};

struct option {
	const char *name; /* without the dashes; NULL ends a list */
	char letter;      /* 0: none; only an option without a value has one */
	bool is_secret;   /* config does not show its value */
	bool removes;     /* it makes a command remove something, so no message proposes it */
	/* A second value on the command line is refused. It would replace the first one without a
	 * word, where people mean both: two jobs that are to be verified, or two lists of files. */
	bool only_once;
	enum option_type type;
	size_t offset;        /* offset of its field in the group's values */
	const char *argument; /* placeholder of the value in --help; NULL: it takes no value */
	const char *help;     /* wrapped into lines; '\n' also begins one */
	uint64_t min, max;    /* range of a NUMBER, SIZE or DURATION, inclusive; max 0: no bound */
	const char *const *choices; /* NULL-terminated */
	/* The default, which --help prints after `help`. NULL: none is printed. */
	const char *standard;
	/* For SIZE and DURATION: the value to store for 0. It is 1 if a field of 0 stands for the
	 * default: `--grace 0` must mean at once, not 10 s. */
	uint64_t for_zero;
	/* Its line on the first screen of help, or "" if `help` is short enough. NULL: the first
	 * screen omits the option, which few people need. */
	const char *brief;
};

/* Initialisers of a struct option. `field` is its offset, `word` the placeholder of the value in
 * --help, and `text` the help. Further arguments set other members, such as .min = 1. */
#define VALUE(option, kind, field, word, text, ...)                                                \
	{                                                                                          \
		.name = (option), .type = OPTION_##kind, .offset = (field), .argument = (word),    \
		.help = (text), __VA_ARGS__                                                        \
	}
#define FLAG(option, field, text, ...) VALUE(option, FLAG, field, NULL, text, __VA_ARGS__)

struct option_group {
	/* The topic of --help TOPIC, in small letters. NULL: it continues the group before it. */
	const char *title;
	const struct option *options; /* NULL ends the groups of a command */
	size_t at;                    /* offset in `values` of the struct that has the fields */
	/* Each option is also set by a variable of the environment: min-age by S3ONCE_MIN_AGE. */
	bool has_variables;
	void *values; /* NULL: the values of the command */
};

/* Two options that exclude each other, and why. */
struct option_conflict {
	const char *a, *b; /* NULL a ends a list */
	const char *why;   /* a clause; NULL: they set the same thing */
};

/* An option that the command does not have, but that people expect there, and its proper place. */
struct option_elsewhere {
	const char *name;  /* without the dashes, or a letter; NULL ends a list */
	const char *where; /* a clause: "s3once push --x does that" */
};

#define OPTIONS_MAX 128 /* the most options in all groups of a command */

/* Where an option was set. A variable of the environment does not count if the option was also set
 * elsewhere, unless the option may be repeated. */
enum set_in {
	SET_IN_ENVIRONMENT = 1,
	SET_IN_FILE = 2,
	SET_IN_WORDS = 4, /* words of the command line */
};

/* Number of operands of a command, which its frame checks. */
struct operand_count {
	int min, max; /* max 0: any number, or none if the command has no operands */
};

struct command {
	const char *name;
	const char *operands;       /* "SOURCE... s3://BUCKET[/PREFIX]"; "": no operands */
	struct operand_count takes; /* number of operands */
	const char *about;          /* whole lines, of at most 79 columns, as --help prints them */
	const struct option_group *groups; /* --help is in none of them, and comes last */
	/* The options that the frame adds after these groups: a set of enum shared_options
	 * (commands.h), and the command's own options of the output, or NULL. */
	unsigned shares;
	const struct option *output_options;
	const struct option_conflict *conflicts;  /* NULL: none */
	const struct option_elsewhere *elsewhere; /* NULL: none */
	/* A command with options that people may try here. The error names that command. NULL:
	 * there is none. */
	const struct command *larger;
	const char *examples; /* whole lines, under "Examples:" in --help */
	/* It has so many options that --help prints only those with a `brief`, and the topics. */
	bool has_first_screen;
	/* Results of this parse: */
	void *values;    /* the struct that its options are read into */
	unsigned *given; /* [OPTIONS_MAX]: the places where each option was set (enum set_in) */
	const char **ret_topic; /* set to the word after --help, if there is one; may be NULL */
	/* Set to the number of operands before "--"; unchanged if there is no "--". May be NULL. */
	int *ret_before_dashes;
};

/* Reads argv[1…] into the values, notes in command->given which options they set, refuses options
 * that contradict each other, and moves the operands to argv[0…] in their order.
 * Options and operands may be mixed. Only "--" ends the options, so a COMMAND that has options of
 * its own comes after it. Returns the number of operands, -ECANCELED if --help was asked for, or
 * -EINVAL with a sentence. */
int options_parse(
	const struct command *command, int argc, char **argv, struct problem *ret_problem);

/* An option of a command, and the field for its value. */
struct option_match {
	const struct option *option;
	const struct option_group *group;
	void *field;
	unsigned index; /* index over all groups */
};
/* Moves *at to the next option of a command. A zeroed *at moves to the first one, and --help is the
 * last. Returns false if there are no more. */
bool options_next(const struct command *command, struct option_match *at);
/* Finds the option with this name, without dashes. Returns false if there is none. */
bool options_find(const struct command *command, const char *name, struct option_match *ret);
/* Returns the name of the option that is most like `name`, or NULL if none is similar. Never
 * proposes an option that removes files, since a typing error must not cause a loss. */
const char *options_nearest(const struct command *command, const char *name);
/* Returns the clause of the command's table about an option that it does not have, or NULL. */
const char *options_elsewhere(const struct command *command, const char *name);
/* Completes the sentence of option_set() about a value: puts the option before it, as it was given,
 * and appends the clause of options_elsewhere(), if there is one. */
void option_name_problem(const struct command *command, const struct option *option,
	const char *as_given, struct problem *problem);
/* Returns the places where the option with this name was set, as a set of enum set_in. */
unsigned options_set_in(const struct command *command, const char *name);

/* Whether the option may be repeated. */
bool option_is_list(const struct option *option);
/* Whether the option, or another option that sets the same thing, was set in one of the `places` (a
 * set of enum set_in). If so, a place of lower precedence must not set it. An option that may be
 * repeated is never overridden: its values add up. */
bool option_is_overridden(
	const struct command *command, const struct option_match *match, unsigned places);
/* The name of an option's variable. */
struct option_variable {
	char name[64];
};
struct option_variable option_variable(const struct option *option);
/* Returns the i-th value of an option in the environment, and sets *ret to the name of its
 * variable. Further values of an option that may be repeated are in S3ONCE_TAG_2, S3ONCE_TAG_3 and
 * so on. NULL: the variable is not set, or is empty. */
const char *option_variable_value(
	const struct option *option, unsigned i, struct option_variable *ret);
/* Sets the options that may be repeated from their environment variables, and notes that in
 * command->given. Call it first, since these values come before all others. It cannot fail, since
 * their values may be any text. */
void options_take_list_variables(const struct command *command);
/* The same for all other options, unless option_is_overridden(). Call it after the file and the
 * command line have been read. Returns 0, or -EINVAL with a sentence. */
int options_take_variables(const struct command *command, struct problem *ret_problem);
/* The most bytes of an option's name. */
enum { OPTION_NAME_MAX = 63 };
/* Returns the rest of a sentence after the option with which it begins, as in "--min-size is more
 * than …", and sets ret_name to the name of the option. If it begins with none, returns the whole
 * sentence, and the name is "". */
const char *option_skip_in_sentence(
	const char *sentence, char ret_name[static OPTION_NAME_MAX + 1]);
/* If the sentence begins with an option that only the environment has set, it begins with the name
 * of the variable from then on. */
void options_name_variable(const struct command *command, struct problem *problem);
/* Whether "NAME=VALUE" of the environment looks like the variable of an option (the name begins
 * with S3ONCE_, and the value is not empty), but belongs to none. */
bool options_lack_variable(const struct command *command, const char *variable);

/* Searches the list of conflicts, beginning with `from`, for one whose two options were both given,
 * not as "no". Returns NULL if there is none. The values must have been read. */
const struct option_conflict *options_next_conflict(
	const struct command *command, const struct option_conflict *from);
/* Refuses two options that contradict each other. Returns 0, or -EINVAL with a sentence about the
 * first conflict. */
int options_refuse_conflict(const struct command *command, struct problem *ret_problem);
/* Reads the value of one option into `field`, which has the type in enum option_type. Strings stay
 * borrowed. `value` is NULL if no value was given, as usual for flags on a command line. The value
 * of a flag is yes or no; that of a count may also be a number. Returns 0, -ECANCELED for
 * OPTION_HELP, or -EINVAL with a sentence about the value. */
int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem);

/* The options of a group with only --help. */
extern const struct option no_options[];
/* --help itself. */
extern const struct option help_options[];
/* Prints the help. `topic` is "all", the title of a group, or NULL, which means the first screen if
 * the command has one, and otherwise all. Returns 0, or -EINVAL with a sentence if there is no such
 * topic. */
int options_help(const struct command *command, const char *topic, FILE *stream,
	struct problem *ret_problem);
