/* The table of a command's options, put to use: a value is read into its field, a command line and
 * the variables S3ONCE_* into all of them, what the options have to do with each other is checked,
 * and --help is printed. Every command comes here, and so does a job's file, which names options as
 * the command line does (src/cli/job/job.c). Nothing here knows an option, opens a file, or prints
 * an error. */
#include "cli/options/options.h"
#include "base/must_have.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/options/values.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_MAX    9
#define NAME_COLUMN  26
#define HELP_COLUMNS 52
#define OTHERS_MAX   3

static int add_rule(struct option_rules *rules, bool include, const char *pattern)
{
	rules->rules = must_have(reallocarray(rules->rules, rules->n + 1, sizeof *rules->rules));
	rules->rules[rules->n++] = (struct s3once_rule){.include = include, .pattern = pattern};
	return 0;
}

static int check_empty(const char *value, struct problem *ret_problem)
{
	assert(value); /* option_set() and add_setting() see to it */
	if (!*value)
		problem_set(ret_problem, "the value is empty");
	return *value ? 0 : -EINVAL;
}

static int add_setting(struct option_settings *list, const char *name, const char *value,
	struct problem *ret_problem)
{
	if (check_empty(value, ret_problem) < 0)
		return -EINVAL;
	list->settings =
		must_have(reallocarray(list->settings, list->n + 1, sizeof *list->settings));
	list->settings[list->n++] = (struct s3once_setting){.name = name, .value = value};
	return 0;
}

static int set_choice(
	const struct option *option, int *field, const char *value, struct problem *ret_problem)
{
	assert(value);
	for (int i = 0; option->choices[i]; i++)
		if (strcmp(option->choices[i], value) == 0) {
			*field = i;
			return 0;
		}
	struct text all = TEXT(200);
	for (int i = 0; option->choices[i]; i++)
		text_addf(&all, "%s%s", i ? "|" : "", option->choices[i]);
	problem_set(ret_problem, "'%s' is not one of %s", quote(value).text, text_string(&all));
	text_clear(&all);
	return -EINVAL;
}

static int check_bounds(
	const struct option *option, const char *value, uint64_t n, struct problem *ret_problem)
{
	bool too_small = n < option->least, too_large = option->most && n > option->most;
	if (!too_small && !too_large)
		return 0;
	struct text bound = TEXT(60);
	uint64_t n_bound = too_small ? option->least : option->most;
	if (option->type == OPTION_NUMBER)
		text_addf(&bound, "%" PRIu64, n_bound);
	else if (option->type == OPTION_SIZE)
		value_show_size(&bound, n_bound);
	else
		value_show_duration(&bound, n_bound);
	problem_set(ret_problem, "'%s' is too %s: at %s %s", value, too_small ? "small" : "large",
		too_small ? "least" : "most", text_string(&bound));
	text_clear(&bound);
	return -EINVAL;
}

static int set_quantity(
	const struct option *option, void *field, const char *value, struct problem *ret_problem)
{
	uint64_t n;
	const enum option_type type = option->type;
	int r = type == OPTION_NUMBER ? value_number(value, &n, ret_problem)
		: type == OPTION_SIZE ? value_size(value, &n, ret_problem)
				      : value_duration(value, &n, ret_problem);
	if (r == 0)
		r = check_bounds(option, value, n, ret_problem);
	if (r < 0)
		return r;
	if (type == OPTION_NUMBER)
		*(unsigned *)field = (unsigned)n;
	else
		*(uint64_t *)field = n;
	return 0;
}

static int set_flag(int *field, const char *value, struct problem *ret_problem)
{
	const bool is_yes = !value || strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
	if (!is_yes && strcmp(value, "no") != 0 && strcmp(value, "false") != 0) {
		problem_set(ret_problem, "'%s' is neither yes nor no", quote(value).text);
		return -EINVAL;
	}
	*field = is_yes;
	return 0;
}

static int set_count(unsigned *field, const char *value, struct problem *ret_problem)
{
	uint64_t n = *field + 1;
	int yes = 0;
	if (value && set_flag(&yes, value, NULL) == 0)
		n = yes != 0;
	else if (value && (value_number(value, &n, NULL) < 0 || n > COUNT_MAX)) {
		problem_set(ret_problem, "'%s' is neither yes nor no nor a number from 0 to %d",
			quote(value).text, COUNT_MAX);
		return -EINVAL;
	}
	*field = (unsigned)n;
	return 0;
}

static int set_string(const struct option *option, const char **field, const char *value,
	struct problem *ret_problem)
{
	if (check_empty(value, ret_problem) < 0 ||
		(option->choices && set_choice(option, &(int){0}, value, ret_problem) < 0))
		return -EINVAL;
	*field = value;
	return 0;
}

static int set_age(const struct option *option, uint64_t *field, const char *value,
	struct problem *ret_problem)
{
	int yes = 1;
	if (value && set_flag(&yes, value, NULL) < 0)
		return set_quantity(option, field, value, ret_problem);
	*field = yes ? 0 : UINT64_MAX;
	return 0;
}

/* Whether it is written with a value on a command line. */
static bool takes_value(const struct option *option)
{
	return option->type != OPTION_FLAG && option->type != OPTION_COUNT &&
	       option->type != OPTION_HELP;
}

int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem)
{
	assert(value || option->type == OPTION_AGE || !takes_value(option));
	assert(field || option->type == OPTION_HELP);
	switch (option->type) {
	case OPTION_FLAG:
		return set_flag(field, value, ret_problem);
	case OPTION_COUNT:
		return set_count(field, value, ret_problem);
	case OPTION_STRING:
		return set_string(option, field, value, ret_problem);
	case OPTION_CHOICE:
		return set_choice(option, field, value, ret_problem);
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_DURATION:
		return set_quantity(option, field, value, ret_problem);
	case OPTION_AGE:
		return set_age(option, field, value, ret_problem);
	case OPTION_EXCLUDE:
	case OPTION_INCLUDE:
		return add_rule(field, option->type == OPTION_INCLUDE, value);
	case OPTION_SETTING:
		return add_setting(field, option->name, value, ret_problem);
	case OPTION_HELP:
		break;
	}
	return -ECANCELED;
}

struct parse {
	const struct command *command;
	char **argv;
	int argc, at; /* argv[at] is read next */
	struct options_given *given;
	struct problem *problem;
};

const struct option no_options[] = {{NULL}};
static const struct option help = {
	.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"};

static void *field_of(const struct command *command, const struct option_group *group,
	const struct option *option)
{
	return command->values ? (char *)command->values + group->at + option->offset : NULL;
}

/* Whether it has the n bytes of this name, or the letter if `name` is NULL. */
static bool is_called(const struct option *option, const char *name, size_t n, char letter)
{
	return name ? strlen(option->name) == n && memcmp(option->name, name, n) == 0
		    : option->letter == letter;
}

static bool find_option(const struct command *command, const char *name, size_t n, char letter,
	struct option_match *ret)
{
	unsigned index = 0;
	for (const struct option_group *group = command->groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++, index++)
			if (is_called(o, name, n, letter)) {
				*ret = (struct option_match){o, field_of(command, group, o), index};
				return true;
			}
	assert(index < OPTIONS_MAX);
	*ret = (struct option_match){&help, NULL, index};
	return is_called(&help, name, n, letter);
}

bool options_find(const struct command *command, const char *name, struct option_match *ret)
{
	return find_option(command, name, strlen(name), 0, ret);
}

const char *options_nearest(const struct command *command, const char *name)
{
	const char *names[OPTIONS_MAX];
	size_t n = 0;
	for (const struct option_group *group = command->groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++)
			names[n++] = o->name;
	names[n++] = help.name;
	return nearest_name(name, names, n);
}

static int unknown_option(struct parse *p, const char *given)
{
	const size_t len = strcspn(given, "=");
	const char *nearest =
		given[1] == '-' ? options_nearest(p->command, quote_bytes(given + 2, len - 2).text)
				: NULL;
	const struct option_elsewhere *e = p->command->elsewhere;
	while (e && e->name &&
		(len != 2 + strlen(e->name) || memcmp(given + 2, e->name, len - 2) != 0))
		e++;
	if (e && e->name)
		problem_set(p->problem, "%s has no --%s: %s", p->command->name, e->name, e->where);
	else if (nearest)
		problem_set(p->problem, "unknown option '%s'; did you mean --%s?",
			quote_bytes(given, len).text, nearest);
	else
		problem_set(p->problem, "unknown option '%s'; see s3once %s --help",
			quote_bytes(given, len).text, p->command->name);
	return -EINVAL;
}

/* The value that comes with an option that takes one: after its '=', or the next word. */
static int find_value(struct parse *p, const struct option *option, const char **value)
{
	if (*value)
		return 0;
	if (p->at == p->argc) {
		problem_set(p->problem, "--%s needs a value: --%s %s", option->name, option->name,
			option->argument);
		return -EINVAL;
	}
	*value = p->argv[p->at++];
	return 0;
}

static int parse_long(struct parse *p, const char *given)
{
	const size_t n = strcspn(given + 2, "=");
	const char *value = given[2 + n] == '=' ? given + 3 + n : NULL;
	struct option_match match;
	if (!find_option(p->command, given + 2, n, 0, &match))
		return unknown_option(p, given);
	const struct option *option = match.option;
	if (!takes_value(option) && value) {
		problem_set(p->problem, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (takes_value(option) && option->type != OPTION_AGE && find_value(p, option, &value) < 0)
		return -EINVAL;
	int r = option_set(option, match.field, value, p->problem);
	if (r == -EINVAL)
		problem_prefix(p->problem, "--%s", option->name);
	p->given->is[match.index] = true;
	return r;
}

static int parse_letters(struct parse *p, const char *given)
{
	for (const char *letter = given + 1; *letter; letter++) {
		struct option_match match;
		if (!find_option(p->command, NULL, 0, *letter, &match) || takes_value(match.option))
			return unknown_option(p, given);
		int r = option_set(match.option, match.field, NULL, p->problem);
		if (r < 0)
			return r;
		p->given->is[match.index] = true;
	}
	return 0;
}

bool options_has(const struct command *command, const struct options_given *given, const char *name)
{
	struct option_match match;
	return options_find(command, name, &match) && given->is[match.index];
}

/* Whether an option was given, and does something: "quiet = no" in a file contradicts nothing. */
static bool is_in_force(
	const struct command *command, const struct options_given *given, const char *name)
{
	struct option_match match;
	if (!options_find(command, name, &match) || !given->is[match.index])
		return false;
	const enum option_type type = match.option->type;
	if (type == OPTION_FLAG || type == OPTION_COUNT)
		return *(const int *)match.field != 0;
	return type != OPTION_AGE || *(const uint64_t *)match.field != UINT64_MAX;
}

const struct option_conflict *options_conflict(const struct command *command,
	const struct options_given *given, const struct option_conflict *from)
{
	for (; from && from->a; from++)
		if (is_in_force(command, given, from->a) && is_in_force(command, given, from->b))
			return from;
	return NULL;
}

bool option_is_list(const struct option *option)
{
	return option->type == OPTION_EXCLUDE || option->type == OPTION_INCLUDE ||
	       option->type == OPTION_SETTING;
}

bool options_override(const struct command *command, const struct options_given *given,
	const struct option_match *match)
{
	const char *name = match->option->name;
	if (option_is_list(match->option))
		return false;
	if (given->is[match->index])
		return true;
	for (const struct option_conflict *c = command->conflicts; c && c->a; c++) {
		const char *other = strcmp(c->a, name) == 0   ? c->b
				    : strcmp(c->b, name) == 0 ? c->a
							      : NULL;
		if (other && !c->why && options_has(command, given, other))
			return true;
	}
	return false;
}

const char *option_opposite(
	const struct command *command, struct option_match *match, const char *value)
{
	struct option_match opposite;
	char name[64];
	const char *own = match->option->name;
	if (match->option->type != OPTION_FLAG ||
		(strcmp(value, "no") != 0 && strcmp(value, "false") != 0))
		return value;
	if (strncmp(own, "no-", 3) == 0)
		snprintf(name, sizeof name, "%s", own + 3);
	else
		snprintf(name, sizeof name, "no-%s", own);
	if (!options_find(command, name, &opposite))
		return value;
	*match = opposite;
	return "yes";
}

#define VARIABLE "S3ONCE_"

struct option_variable option_variable(const struct option *option)
{
	struct option_variable v;
	const int n = snprintf(v.name, sizeof v.name, VARIABLE "%s", option->name);
	for (int i = 0; i < n && v.name[i]; i++)
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
	const char *value = i == 0 || option_is_list(option) ? getenv(ret->name) : NULL;
	return value && *value ? value : NULL;
}

static int set_by_variable(const struct command *command, struct option_match match,
	const char *value, struct options_given *ret, struct problem *ret_problem)
{
	ret->is[match.index] = true;
	value = option_opposite(command, &match, value);
	ret->is[match.index] = true;
	return option_set(match.option, match.field, value, ret_problem);
}

int options_variables(const struct command *command, const struct options_given *given,
	struct options_given *ret, struct problem *ret_problem)
{
	struct option_variable variable;
	const char *value;
	struct option_match match = {.index = 0};
	for (const struct option_group *group = command->groups; group->options; group++)
		for (match.option = group->options; match.option->name;
			match.option++, match.index++) {
			if (!group->has_variables ||
				option_is_list(match.option) == (given != NULL) ||
				(given && options_override(command, given, &match)))
				continue;
			match.field = field_of(command, group, match.option);
			for (unsigned i = 0;
				(value = option_variable_value(match.option, i, &variable)); i++)
				if (set_by_variable(command, match, value, ret, ret_problem) < 0) {
					problem_prefix(ret_problem, "%s", variable.name);
					return -EINVAL;
				}
		}
	return 0;
}

extern char **environ;

/* Whether it is that of an option, and not one behind a gap, "S3ONCE_TAG_3" without _2. */
static bool is_variable(const struct command *command, const char *name)
{
	struct option_variable variable;
	for (const struct option_group *group = command->groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++)
			for (unsigned i = 0; option_variable_value(o, i, &variable); i++)
				if (strcmp(variable.name, name) == 0)
					return group->has_variables;
	return false;
}

const char *options_foreign_variable(const struct command *command, size_t *at)
{
	char name[64];
	while (environ[*at]) {
		const char *variable = environ[(*at)++];
		const size_t n = strcspn(variable, "=");
		snprintf(name, sizeof name, "%.*s", (int)n, variable);
		if (strncmp(variable, VARIABLE, strlen(VARIABLE)) == 0 && variable[n] &&
			variable[n + 1] && !is_variable(command, name))
			return variable;
	}
	return NULL;
}

static int check_conflicts(const struct parse *p)
{
	const struct option_conflict *c =
		options_conflict(p->command, p->given, p->command->conflicts);
	if (!c)
		return 0;
	problem_set(p->problem, "--%s and --%s contradict each other: %s", c->a, c->b,
		c->why ? c->why : "choose one");
	return -EINVAL;
}

int options_parse(const struct command *command, int argc, char **argv, struct problem *ret_problem)
{
	struct options_given unasked = {0};
	struct parse p = {
		command, argv, argc, 1, command->given ? command->given : &unasked, ret_problem};
	int operands = 0, r = 0;
	bool only_operands = false;
	while (r == 0 && p.at < argc) {
		char *given = argv[p.at++];
		if (only_operands || given[0] != '-' || !given[1])
			argv[operands++] = given;
		else if (strcmp(given, "--") == 0)
			only_operands = true;
		else
			r = given[1] == '-' ? parse_long(&p, given) : parse_letters(&p, given);
	}
	if (r == 0)
		r = check_conflicts(&p);
	return r < 0 ? r : operands;
}

static void print_option(const struct option *option, FILE *stream)
{
	char letter[5] = "    ";
	if (option->letter)
		memcpy(letter, (char[]){'-', option->letter, ',', ' '}, 4);
	int n = fprintf(stream, "  %s--%s%s%s", letter, option->name,
		option->argument && *option->argument != '[' ? " " : "",
		option->argument ? option->argument : "");
	if (n > NAME_COLUMN - 2)
		n = fprintf(stream, "\n") * 0;
	size_t len = 0;
	for (const char *line = option->help; *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		fprintf(stream, "%*s%.*s", NAME_COLUMN - n, "", (int)len, line);
		if (line[len])
			fprintf(stream, "\n");
		n = 0;
	}
	if (option->standard) {
		const bool has_room =
			len + strlen(option->standard) + strlen(" []") <= HELP_COLUMNS;
		fprintf(stream, "%s%*s[%s]", has_room ? "" : "\n", has_room ? 1 : NAME_COLUMN, "",
			option->standard);
	}
	fprintf(stream, "\n");
}

/* Which options have variables: all but a few, or those of some titles. */
static void help_environment(const struct command *command, FILE *stream)
{
	const struct option *first = NULL;
	struct text titles = TEXT(200), others = TEXT(2000);
	unsigned n_others = 0;
	for (const struct option_group *group = command->groups; group->options; group++) {
		const bool has = group->has_variables;
		first = has && !first ? group->options : first;
		if (has && group->title)
			text_addf(&titles, "%s%s", titles.len ? " and " : "", group->title);
		for (const struct option *o = group->options; !has && o->name; o++)
			text_addf(&others, "%s --%s", n_others++ ? " and" : " but", o->name);
	}
	const bool are_few = n_others <= OTHERS_MAX;
	if (first)
		fprintf(stream,
			"\nEnvironment:\n  %s sets --%s, and so on for\n"
			"  %s%s.\n"
			"  A job's file and the command line take precedence. More: man s3once\n",
			option_variable(first).name, first->name,
			are_few ? "each option" : "the options of ",
			text_string(are_few ? &others : &titles));
	text_clear(&titles);
	text_clear(&others);
}

void options_help(const struct command *command, FILE *stream)
{
	fprintf(stream, "Usage: s3once %s [OPTIONS]%s%s\n\n", command->name,
		*command->operands ? " " : "", command->operands);
	fputs(command->about, stream);
	for (const struct option_group *group = command->groups; group->options; group++) {
		if (group->title)
			fprintf(stream, "\n%s:\n", group->title);
		for (const struct option *o = group->options; o->name; o++)
			print_option(o, stream);
	}
	print_option(&help, stream);
	help_environment(command, stream);
	fprintf(stream, "\nExamples:\n%s", command->examples);
}
