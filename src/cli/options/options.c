/* Uses the table of a command's options. It reads a value into its field, reads a command line and
 * the variables S3ONCE_* into all fields, and refuses options that contradict each other.
 * options_help.c prints the table. Every command uses this, and so does a job's file, which names
 * options as the command line does (src/cli/job/job.c). No option is known by name here, no file is
 * opened, and no error is printed. */
#include "cli/options/options.h"
#include "base/must_have.h"
#include "cli/options/values.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 9 /* the largest number that a file may give to an OPTION_COUNT */

/* Refuses a value of n bytes that is not one of the option's choices. Returns -EINVAL. */
static int refuse_choice(
	const struct option *option, const char *value, size_t n, struct problem *ret_problem)
{
	struct text all = TEXT(200);
	for (int i = 0; option->choices[i]; i++)
		text_addf(&all, "%s%s", i ? "|" : "", option->choices[i]);
	problem_set(ret_problem, "'%s' is not one of %s", quote_bytes(value, n).text,
		text_string(&all));
	text_clear(&all);
	return -EINVAL;
}

/* Returns the index of the choice that is the word of n bytes, or -1. */
static int find_choice(const struct option *option, const char *word, size_t n)
{
	for (int i = 0; option->choices[i]; i++)
		if (strlen(option->choices[i]) == n && memcmp(option->choices[i], word, n) == 0)
			return i;
	return -1;
}

/* Reads a list of choices with commas between them. */
static int set_choices(const struct option *option, unsigned *field, const char *value,
	struct problem *ret_problem)
{
	unsigned set = 0;
	for (const char *word = value;; word++) {
		const size_t n = strcspn(word, ",");
		const int choice = find_choice(option, word, n);
		if (choice < 0)
			return refuse_choice(option, word, n, ret_problem);
		set |= 1U << choice;
		word += n;
		if (!*word)
			break;
	}
	*field = set;
	return 0;
}

/* The bound of an option that a value exceeds. */
enum exceeded { TOO_SMALL, TOO_LARGE };

/* Refuses a value that is outside of the bounds of an option. Returns -EINVAL. */
static int refuse_quantity(const struct option *option, const char *value, enum exceeded exceeded,
	struct problem *ret_problem)
{
	const bool is_too_small = exceeded == TOO_SMALL;
	const uint64_t bound = is_too_small ? option->min : option->max;
	struct text shown = TEXT(60);
	if (option->type == OPTION_NUMBER)
		text_addf(&shown, "%" PRIu64, bound);
	else if (option->type == OPTION_SIZE)
		value_show_size(&shown, bound);
	else
		value_show_duration(&shown, bound);
	problem_set(ret_problem, "'%s' is too %s: at %s %s", value,
		is_too_small ? "small" : "large", is_too_small ? "least" : "most",
		text_string(&shown));
	text_clear(&shown);
	return -EINVAL;
}

/* Reads a value in the units of values.h, and checks it against the bounds of the option. */
static int set_quantity(
	const struct option *option, void *field, const char *value, struct problem *ret_problem)
{
	uint64_t n;
	const enum option_type type = option->type;
	const int r = type == OPTION_NUMBER ? value_number(value, &n, ret_problem)
		      : type == OPTION_SIZE ? value_size(value, &n, ret_problem)
					    : value_duration(value, &n, ret_problem);
	if (r < 0)
		return r;
	if (n < option->min)
		return refuse_quantity(option, value, TOO_SMALL, ret_problem);
	if (option->max && n > option->max)
		return refuse_quantity(option, value, TOO_LARGE, ret_problem);
	if (type == OPTION_NUMBER)
		*(unsigned *)field = (unsigned)n;
	else
		*(uint64_t *)field = n ? n : option->for_zero; /* 0 for most options */
	return 0;
}

/* Reads the value of a flag. A flag without a value, as on a command line, is yes. */
static int set_flag(int *field, const char *value, struct problem *ret_problem)
{
	const bool is_yes = !value || strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
	if (!is_yes && strcmp(value, "no") != 0 && strcmp(value, "false") != 0)
		return problem_error(
			ret_problem, -EINVAL, "'%s' is neither yes nor no", quote(value).text);
	*field = is_yes;
	return 0;
}

/* Reads a count: yes, no or a number. Without a value, as on a command line, one is added. */
static int set_count(unsigned *field, const char *value, struct problem *ret_problem)
{
	uint64_t n = 0;
	int yes = 0;
	if (!value)
		n = *field + 1;
	else if (set_flag(&yes, value, NULL) == 0)
		n = yes ? 1 : 0;
	else if (value_number(value, &n, NULL) < 0 || n > COUNT_MAX)
		return problem_error(ret_problem, -EINVAL,
			"'%s' is neither yes nor no nor a number from 0 to %d", quote(value).text,
			COUNT_MAX);
	*field = (unsigned)n;
	return 0;
}

/* Reads an age. Without a value it is 0, as for "yes"; for "no" it is UINT64_MAX. */
static int set_age(const struct option *option, uint64_t *field, const char *value,
	struct problem *ret_problem)
{
	int yes = 1;
	if (value && set_flag(&yes, value, NULL) < 0)
		return set_quantity(option, field, value, ret_problem);
	*field = yes ? 0 : UINT64_MAX;
	return 0;
}

static void add_rule(struct option_rules *list, enum option_type type, const char *pattern)
{
	list->rules = must_have(reallocarray(list->rules, list->n + 1, sizeof *list->rules));
	list->rules[list->n++] = (struct s3once_rule){
		.kind = type == OPTION_INCLUDE        ? S3ONCE_RULE_INCLUDE
			: type == OPTION_EXCLUDE_FROM ? S3ONCE_RULE_EXCLUDE_FROM
						      : S3ONCE_RULE_EXCLUDE,
		.pattern = pattern};
}

static void add_setting(struct option_settings *list, const char *name, const char *value)
{
	list->settings =
		must_have(reallocarray(list->settings, list->n + 1, sizeof *list->settings));
	list->settings[list->n++] = (struct s3once_setting){.name = name, .value = value};
}

/* Whether the option is written with a value on a command line. */
static bool takes_value(const struct option *option)
{
	return option->type != OPTION_FLAG && option->type != OPTION_COUNT &&
	       option->type != OPTION_HELP;
}

int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem)
{
	const enum option_type type = option->type;
	const bool takes_text = type == OPTION_STRING || option_is_list(option);
	const bool takes_one_choice = option->choices && type != OPTION_SET;
	int choice = 0;
	/* parse_long() has seen to it that there is a value if the option needs one. */
	assert(value || type == OPTION_AGE || !takes_value(option));
	assert(value || !option->choices);
	assert(type != OPTION_SET || option->choices);
	assert(field || type == OPTION_HELP);
	if (takes_text && value && !*value)
		return problem_error(ret_problem, -EINVAL, "the value is empty");
	if (takes_one_choice) {
		choice = find_choice(option, value, strlen(value));
		if (choice < 0)
			return refuse_choice(option, value, strlen(value), ret_problem);
	}
	switch (type) {
	case OPTION_FLAG:
		return set_flag(field, value, ret_problem);
	case OPTION_COUNT:
		return set_count(field, value, ret_problem);
	case OPTION_STRING:
		*(const char **)field = value;
		return 0;
	case OPTION_CHOICE:
		*(int *)field = choice;
		return 0;
	case OPTION_SET:
		return set_choices(option, field, value, ret_problem);
	case OPTION_AGE:
		return set_age(option, field, value, ret_problem);
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_DURATION:
		return set_quantity(option, field, value, ret_problem);
	case OPTION_EXCLUDE:
	case OPTION_INCLUDE:
	case OPTION_EXCLUDE_FROM:
		add_rule(field, type, value);
		return 0;
	case OPTION_SETTING:
		add_setting(field, option->name, value);
		return 0;
	case OPTION_HELP:
		break;
	}
	return -ECANCELED; /* the caller prints the help */
}

const struct option no_options[] = {{NULL}};
const struct option help_options[] = {
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};
static const struct option_group help_group = {NULL, help_options};

bool options_next(const struct command *command, struct option_match *at)
{
	if (at->option) {
		at->option++;
		at->index++;
	} else {
		at->group = command->groups;
		at->option = at->group->options;
	}
	/* At the end of a group, the next group follows. The group of --help is the last one. */
	while (!at->option->name) {
		if (at->group == &help_group)
			return false;
		at->group = at->group[1].options ? at->group + 1 : &help_group;
		at->option = at->group->options;
	}
	assert(at->index < OPTIONS_MAX);
	char *values = at->group->values ? at->group->values : command->values;
	if (values)
		at->field = values + at->group->at + at->option->offset;
	return true;
}

bool options_find(const struct command *command, const char *name, struct option_match *ret)
{
	*ret = (struct option_match){0};
	while (options_next(command, ret))
		if (strcmp(ret->option->name, name) == 0)
			return true;
	return false;
}

const char *options_nearest(const struct command *command, const char *name)
{
	const char *names[OPTIONS_MAX];
	size_t n = 0;
	for (struct option_match match = {0}; options_next(command, &match);)
		if (!match.option->removes)
			names[n++] = match.option->name;
	return nearest_name(name, names, n);
}

const char *options_elsewhere(const struct command *command, const char *name)
{
	for (const struct option_elsewhere *e = command->elsewhere; e && e->name; e++)
		if (strcmp(e->name, name) == 0)
			return e->where;
	return NULL;
}

void option_name_problem(const struct command *command, const struct option *option,
	const char *as_given, struct problem *problem)
{
	const char *where = options_elsewhere(command, option->name);
	problem_prefix(problem, "%s", as_given);
	if (where) {
		const struct problem alone = *problem;
		problem_set(problem, "%s; %s", alone.text, where);
	}
}

/* The form in which a command line names an option: -x, or --name. */
enum option_name { OPTION_LETTER, OPTION_LONG };

/* Refuses an option that the command does not have: a letter, or NAME[=VALUE] after the dashes. The
 * sentence names the option to use instead, or the one with the most similar name. Returns
 * -EINVAL. */
static int refuse_unknown(const struct command *command, const char *given, enum option_name form,
	struct problem *ret_problem)
{
	const bool is_letter = form == OPTION_LETTER;
	const char *dashes = is_letter ? "-" : "--";
	const struct quoted name = quote_bytes(given, is_letter ? 1 : strcspn(given, "="));
	const char *where = options_elsewhere(command, name.text);
	const char *nearest = is_letter ? NULL : options_nearest(command, name.text);
	struct option_match match;
	if (command->larger && !is_letter && options_find(command->larger, name.text, &match))
		problem_set(ret_problem,
			"%s has no --%s, which %s has: leave it out, or name the job that has it "
			"by --job",
			command->name, name.text, command->larger->name);
	else if (where)
		problem_set(ret_problem, "there is no %s%s: %s", dashes, name.text, where);
	else if (nearest)
		problem_set(ret_problem, "unknown option '%s%s'; did you mean --%s?", dashes,
			name.text, nearest);
	else
		problem_set(ret_problem, "unknown option '%s%s'; see s3once %s --help", dashes,
			name.text, command->name);
	return -EINVAL;
}

/* Reads --NAME, --NAME VALUE or --NAME=VALUE. The value of an age, a flag or a count is optional,
 * so it is never taken from the next word. `next` is the next word, or NULL. Returns 1 if `next` is
 * the value, 0 if it is not, -ECANCELED for --help, or -EINVAL with a sentence. */
static int parse_long(const struct command *command, const char *word, const char *next,
	struct problem *ret_problem)
{
	char name[64], as_given[sizeof "--" + sizeof name];
	const size_t n = strcspn(word, "=");
	const char *value = word[n] ? word + n + 1 : NULL;
	struct option_match match;
	/* A truncated name matches no option. */
	snprintf(name, sizeof name, "%.*s", (int)n - 2, word + 2);
	if (!options_find(command, name, &match))
		return refuse_unknown(command, word + 2, OPTION_LONG, ret_problem);
	const bool takes = takes_value(match.option);
	const bool takes_next = takes && !value && match.option->type != OPTION_AGE;
	if (match.option->type == OPTION_HELP && value)
		return problem_error(ret_problem, -EINVAL, "--%s takes no value", name);
	const char *where = options_elsewhere(command, name);
	if (match.option->only_once && command->given[match.index] & SET_IN_WORDS)
		return problem_error(ret_problem, -EINVAL,
			"--%s is given twice, but takes only one %s", name, match.option->argument);
	if (takes_next && !next)
		return problem_error(ret_problem, -EINVAL, "--%s needs a value: --%s %s%s%s", name,
			name, match.option->argument, where ? "; " : "", where ? where : "");
	const int r = option_set(match.option, match.field, takes_next ? next : value, ret_problem);
	if (r == -EINVAL) {
		snprintf(as_given, sizeof as_given, "--%s", name);
		option_name_problem(command, match.option, as_given, ret_problem);
	}
	command->given[match.index] |= SET_IN_WORDS;
	return r ? r : (takes_next ? 1 : 0);
}

/* Reads options by their letters, such as -nv for -n -v. None of them takes a value. Returns 0,
 * -ECANCELED for --help, or -EINVAL with a sentence. */
static int parse_letters(
	const struct command *command, const char *word, struct problem *ret_problem)
{
	for (const char *letter = word + 1; *letter; letter++) {
		struct option_match match = {0};
		while (options_next(command, &match) && match.option->letter != *letter)
			;
		/* Behind the last option, options_next() stays at the end of the list. */
		if (!match.option->name)
			return refuse_unknown(command, letter, OPTION_LETTER, ret_problem);
		const int r = option_set(match.option, match.field, NULL, ret_problem);
		if (r < 0)
			return r;
		command->given[match.index] |= SET_IN_WORDS;
	}
	return 0;
}

unsigned options_set_in(const struct command *command, const char *name)
{
	struct option_match match;
	return options_find(command, name, &match) ? command->given[match.index] : 0;
}

/* Whether an option was given, and its value is not "no": "quiet = no" in a file contradicts no
 * other option. A field of type AGE is UINT64_MAX for "no". */
static bool is_in_force(const struct command *command, const char *name)
{
	struct option_match match;
	if (!options_find(command, name, &match) || !command->given[match.index])
		return false;
	const enum option_type type = match.option->type;
	if (type == OPTION_FLAG || type == OPTION_COUNT)
		return *(const int *)match.field != 0;
	return type != OPTION_AGE || *(const uint64_t *)match.field != UINT64_MAX;
}

const struct option_conflict *options_next_conflict(
	const struct command *command, const struct option_conflict *from)
{
	for (; from && from->a; from++)
		if (is_in_force(command, from->a) && is_in_force(command, from->b))
			return from;
	return NULL;
}

int options_refuse_conflict(const struct command *command, struct problem *ret_problem)
{
	const struct option_conflict *c = options_next_conflict(command, command->conflicts);
	if (!c)
		return 0;
	const bool environment_sets_one = options_set_in(command, c->a) == SET_IN_ENVIRONMENT ||
					  options_set_in(command, c->b) == SET_IN_ENVIRONMENT;
	return problem_error(ret_problem, -EINVAL, "--%s and --%s contradict each other: %s%s",
		c->a, c->b, c->why ? c->why : "choose one",
		environment_sets_one ? "; the environment sets one of them" : "");
}

bool option_is_list(const struct option *option)
{
	return option->type == OPTION_EXCLUDE || option->type == OPTION_INCLUDE ||
	       option->type == OPTION_EXCLUDE_FROM || option->type == OPTION_SETTING;
}

bool option_is_overridden(
	const struct command *command, const struct option_match *match, unsigned places)
{
	const char *name = match->option->name;
	if (option_is_list(match->option))
		return false;
	if (command->given[match->index] & places)
		return true;
	for (const struct option_conflict *c = command->conflicts; c && c->a; c++) {
		const char *other = strcmp(c->a, name) == 0   ? c->b
				    : strcmp(c->b, name) == 0 ? c->a
							      : NULL;
		/* If the table gives no reason, both options set the same thing. */
		if (other && !c->why && options_set_in(command, other) & places)
			return true;
	}
	return false;
}

#define VARIABLE "S3ONCE_"

struct option_variable option_variable(const struct option *option)
{
	struct option_variable v;
	const int n = snprintf(v.name, sizeof v.name, VARIABLE "%s", option->name);
	for (int i = 0; i < n && v.name[i]; i++) /* the '_' of the prefix stays as it is */
		v.name[i] = v.name[i] == '-' ? '_' : (char)toupper((unsigned char)v.name[i]);
	return v;
}

const char *option_variable_value(
	const struct option *option, unsigned i, struct option_variable *ret)
{
	*ret = option_variable(option);
	const size_t n = strlen(ret->name);
	if (i)
		snprintf(ret->name + n, sizeof ret->name - n, "_%u", i + 1);
	const char *value = (i == 0 || option_is_list(option)) ? getenv(ret->name) : NULL;
	return (value && *value) ? value : NULL;
}

/* Sets one option from its variables of the environment, unless it is overridden. Returns 0, or
 * -EINVAL with a sentence. */
static int take_variables_of(const struct command *command, const struct option_match *match,
	struct problem *ret_problem)
{
	struct option_variable variable;
	const char *value;
	if (!match->group->has_variables ||
		option_is_overridden(command, match, SET_IN_FILE | SET_IN_WORDS))
		return 0;
	/* Unless it is a list, option_variable_value() returns NULL for the second value. */
	for (unsigned i = 0; (value = option_variable_value(match->option, i, &variable)); i++) {
		command->given[match->index] |= SET_IN_ENVIRONMENT;
		if (option_set(match->option, match->field, value, ret_problem) < 0) {
			option_name_problem(command, match->option, variable.name, ret_problem);
			return -EINVAL;
		}
	}
	return 0;
}

void options_take_list_variables(const struct command *command)
{
	struct problem unused;
	for (struct option_match at = {0}; options_next(command, &at);)
		if (option_is_list(at.option))
			take_variables_of(command, &at, &unused);
}

int options_take_variables(const struct command *command, struct problem *ret_problem)
{
	int error = 0;
	for (struct option_match at = {0}; !error && options_next(command, &at);)
		if (!option_is_list(at.option))
			error = take_variables_of(command, &at, ret_problem);
	return error;
}

const char *option_skip_in_sentence(const char *sentence, char ret_name[static OPTION_NAME_MAX + 1])
{
	*ret_name = '\0';
	sscanf(sentence, "--%63[a-z0-9-]", ret_name);
	return *ret_name ? sentence + strlen("--") + strlen(ret_name) : sentence;
}

void options_name_variable(const struct command *command, struct problem *problem)
{
	const struct problem as_option = *problem;
	char name[OPTION_NAME_MAX + 1];
	struct option_match match;
	const char *rest = option_skip_in_sentence(as_option.text, name);
	if (options_find(command, name, &match) &&
		command->given[match.index] == SET_IN_ENVIRONMENT)
		problem_set(problem, "%s%s", option_variable(match.option).name, rest);
}

/* Whether a variable is that of an option. S3ONCE_TAG_3 counts only if S3ONCE_TAG_2 is set: the
 * values of an option are read up to the first variable that is missing. `name` has n bytes. */
static bool is_variable(const struct command *command, const char *name, size_t n)
{
	struct option_variable own;
	for (struct option_match at = {0}; options_next(command, &at);)
		for (unsigned i = 0;
			at.group->has_variables && option_variable_value(at.option, i, &own); i++)
			if (strlen(own.name) == n && memcmp(own.name, name, n) == 0)
				return true;
	return false;
}

bool options_lack_variable(const struct command *command, const char *variable)
{
	const size_t n = strcspn(variable, "=");
	return strncmp(variable, VARIABLE, strlen(VARIABLE)) == 0 && variable[n] &&
	       variable[n + 1] && !is_variable(command, variable, n);
}

/* Refuses an operand that is a duration if an option of type AGE was given without a value, or with
 * 0. The operand is probably meant as the value, which needs a '=': `--delete-after 7d` would take
 * 7d for a SOURCE, and remove at once what was to stay for 7 days. */
static int check_ages(
	const struct command *command, int n, char **operands, struct problem *ret_problem)
{
	uint64_t ms;
	for (struct option_match at = {0}; options_next(command, &at);) {
		const char *name = at.option->name;
		const uint64_t *age = at.option->type == OPTION_AGE ? at.field : NULL;
		const bool lacks_value = age && command->given[at.index] && *age == 0;
		for (int i = 0; lacks_value && i < n; i++)
			if (value_duration(operands[i], &ms, NULL) == 0)
				return problem_error(ret_problem, -EINVAL,
					"%s looks like the value of --%s: write --%s=%s, or ./%s "
					"if it is a file",
					operands[i], name, name, operands[i], operands[i]);
	}
	return 0;
}

int options_parse(const struct command *command, int argc, char **argv, struct problem *ret_problem)
{
	int operands = 0, r = 0;
	bool only_operands = false;
	/* The words of a job's command line are read twice. */
	for (struct option_match match = {0}; options_next(command, &match);)
		command->given[match.index] &= ~(unsigned)SET_IN_WORDS;
	for (int at = 1; r >= 0 && at < argc; at++) {
		char *word = argv[at];
		const bool is_operand = word[0] != '-' || !word[1]; /* "-" is standard input */
		if (is_operand || only_operands) {
			argv[operands++] = word;
		} else if (strcmp(word, "--") == 0) {
			only_operands = true;
			if (command->ret_before_dashes)
				*command->ret_before_dashes = operands;
		} else if (word[1] != '-')
			r = parse_letters(command, word, ret_problem);
		else {
			const char *next = at + 1 < argc ? argv[at + 1] : NULL;
			r = parse_long(command, word, next, ret_problem);
			at += r > 0; /* `next` was the value */
		}
		const bool is_help = r == -ECANCELED, has_next = at + 1 < argc;
		/* The word after --help or -h is the topic, unless it is an option. */
		if (is_help && command->ret_topic && has_next && *argv[at + 1] != '-')
			*command->ret_topic = argv[at + 1];
	}
	if (r >= 0)
		r = check_ages(command, operands, argv, ret_problem);
	if (r >= 0)
		r = options_refuse_conflict(command, ret_problem);
	return r < 0 ? r : operands;
}
