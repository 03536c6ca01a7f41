#include "cli/options.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/nearest.h"
#include "cli/values.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 64

struct parse {
	const struct command *command;
	char **argv;
	int argc, at;   /* argv[at] is read next */
	uint64_t given; /* bit i: the i-th option of all groups */
	struct problem *problem;
};

/* An option that was found, and where its value goes. */
struct match {
	const struct option *option;
	void *field;
	unsigned index; /* over all groups */
};

/* Calls `each` for every option of the command until it returns true; fills *ret with that one. */
static bool find(const struct command *command, bool (*each)(const struct option *, const void *),
	const void *arg, struct match *ret)
{
	unsigned index = 0;
	for (size_t g = 0; g < command->n_groups; g++) {
		const struct option_group *group = &command->groups[g];
		for (const struct option *o = group->options; o->name; o++, index++) {
			assert(index < OPTIONS_MAX);
			if (!each(o, arg))
				continue;
			*ret = (struct match){o, (char *)group->values + o->offset, index};
			return true;
		}
	}
	return false;
}

struct name {
	const char *bytes;
	size_t n;
};

static bool has_name(const struct option *option, const void *arg)
{
	const struct name *name = arg;
	return strlen(option->name) == name->n && memcmp(option->name, name->bytes, name->n) == 0;
}

static bool has_letter(const struct option *option, const void *arg)
{
	return option->letter && option->letter == *(const char *)arg;
}

static bool takes_value(const struct option *option)
{
	return option->type != OPTION_FLAG && option->type != OPTION_COUNT &&
	       option->type != OPTION_HELP;
}

static int unknown_option(struct parse *p, const char *given)
{
	const char *names[OPTIONS_MAX], *nearest;
	size_t n = 0;
	for (size_t g = 0; g < p->command->n_groups; g++)
		for (const struct option *o = p->command->groups[g].options; o->name; o++)
			names[n++] = o->name;
	size_t len = strcspn(given, "=");
	nearest = given[1] == '-' ? nearest_name(quote_bytes(given + 2, len - 2).text, names, n)
				  : NULL;
	if (nearest)
		problem_set(p->problem, "unknown option '%s'; did you mean --%s?",
			quote_bytes(given, len).text, nearest);
	else
		problem_set(p->problem, "unknown option '%s'; see s3once %s --help",
			quote_bytes(given, len).text, p->command->name);
	return -EINVAL;
}

static int add_rule(struct option_rules *rules, bool include, const char *pattern)
{
	rules->rules[rules->n++] = (struct s3once_rule){.include = include, .pattern = pattern};
	return 0;
}

static int add_setting(struct option_settings *settings, const char *name, const char *value,
	struct problem *ret_problem)
{
	if (!*value) {
		problem_set(ret_problem, "the value is empty");
		return -EINVAL;
	}
	settings->settings[settings->n++] = (struct s3once_setting){.name = name, .value = value};
	return 0;
}

static int set_choice(
	const struct option *option, int *field, const char *value, struct problem *ret_problem)
{
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

static int set_quantity(const struct match *match, const char *value, struct problem *ret_problem)
{
	uint64_t n;
	enum option_type type = match->option->type;
	int r = type == OPTION_NUMBER ? value_number(value, &n, ret_problem)
		: type == OPTION_SIZE ? value_size(value, &n, ret_problem)
				      : value_duration(value, &n, ret_problem);
	if (r == 0)
		r = check_bounds(match->option, value, n, ret_problem);
	if (r < 0)
		return r;
	if (type == OPTION_NUMBER)
		*(unsigned *)match->field = (unsigned)n;
	else
		*(uint64_t *)match->field = n;
	return 0;
}

static int set_value(const struct match *match, const char *value, struct problem *ret_problem)
{
	switch (match->option->type) {
	case OPTION_FLAG:
		*(int *)match->field = 1;
		return 0;
	case OPTION_HELP:
		return -ECANCELED;
	case OPTION_COUNT:
		++*(unsigned *)match->field;
		return 0;
	case OPTION_STRING:
		if (!*value) {
			problem_set(ret_problem, "the value is empty");
			return -EINVAL;
		}
		if (match->option->choices &&
			set_choice(match->option, &(int){0}, value, ret_problem) < 0)
			return -EINVAL;
		*(const char **)match->field = value;
		return 0;
	case OPTION_CHOICE:
		return set_choice(match->option, match->field, value, ret_problem);
	case OPTION_NUMBER:
	case OPTION_SIZE:
	case OPTION_DURATION:
		return set_quantity(match, value, ret_problem);
	case OPTION_EXCLUDE:
	case OPTION_INCLUDE:
		return add_rule(match->field, match->option->type == OPTION_INCLUDE, value);
	case OPTION_SETTING:
		return add_setting(match->field, match->option->name, value, ret_problem);
	}
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
	struct name name = {given + 2, strcspn(given + 2, "=")};
	const char *value = given[2 + name.n] == '=' ? given + 3 + name.n : NULL;
	struct match match;
	if (!find(p->command, has_name, &name, &match))
		return unknown_option(p, given);
	const struct option *option = match.option;
	if (!takes_value(option) && value) {
		problem_set(p->problem, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (takes_value(option) && find_value(p, option, &value) < 0)
		return -EINVAL;
	int r = set_value(&match, value ? value : "", p->problem);
	if (r == -EINVAL)
		problem_prefix(p->problem, "--%s", option->name);
	p->given |= 1ULL << match.index;
	return r;
}

static int parse_letters(struct parse *p, const char *given)
{
	for (const char *letter = given + 1; *letter; letter++) {
		struct match match;
		if (!find(p->command, has_letter, letter, &match) || takes_value(match.option))
			return unknown_option(p, given);
		int r = set_value(&match, "", p->problem);
		if (r < 0)
			return r;
		p->given |= 1ULL << match.index;
	}
	return 0;
}

static bool is_given(const struct parse *p, const char *option)
{
	struct name name = {option, strlen(option)};
	struct match match = {0};
	return find(p->command, has_name, &name, &match) && p->given >> match.index & 1;
}

static int check_conflicts(const struct parse *p)
{
	for (const struct option_conflict *c = p->command->conflicts; c && c->a; c++)
		if (is_given(p, c->a) && is_given(p, c->b)) {
			problem_set(p->problem, "--%s and --%s contradict each other: %s", c->a,
				c->b, c->why);
			return -EINVAL;
		}
	return 0;
}

int options_parse(const struct command *command, int argc, char **argv, struct problem *ret_problem)
{
	struct parse p = {command, argv, argc, 1, 0, ret_problem};
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

int command_fail(const char *name, int code, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	log_error("%s: %s", name, sentence);
	return code;
}
