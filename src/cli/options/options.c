#include "cli/options/options.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/quote.h"
#include "cli/options/option_value.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

struct parse {
	const struct command *command;
	char **argv;
	int argc, at; /* argv[at] is read next */
	struct options_given *given;
	struct problem *problem;
};

/* Calls `each` for every option of the command until it returns true; fills *ret with that one. */
static bool find_option(const struct command *command,
	bool (*each)(const struct option *, const void *), const void *arg,
	struct option_match *ret)
{
	unsigned index = 0;
	for (size_t g = 0; g < command->n_groups; g++) {
		const struct option_group *group = &command->groups[g];
		for (const struct option *o = group->options; o->name; o++, index++) {
			assert(index < OPTIONS_MAX);
			if (!each(o, arg))
				continue;
			*ret = (struct option_match){o, (char *)group->values + o->offset, index};
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

bool options_find(const struct command *command, const char *name, struct option_match *ret)
{
	return find_option(command, has_name, &(struct name){name, strlen(name)}, ret);
}

const char *options_nearest(const struct command *command, const char *name)
{
	const char *names[OPTIONS_MAX];
	size_t n = 0;
	for (size_t g = 0; g < command->n_groups; g++)
		for (const struct option *o = command->groups[g].options; o->name; o++)
			names[n++] = o->name;
	return nearest_name(name, names, n);
}

/* Says where an option is that the command does not have. */
static bool is_elsewhere(const struct parse *p, const char *given, size_t len)
{
	const struct option_elsewhere *e = p->command->elsewhere;
	for (; e && e->name; e++)
		if (len == 2 + strlen(e->name) && memcmp(given + 2, e->name, len - 2) == 0) {
			problem_set(p->problem, "%s has no --%s: %s", p->command->name, e->name,
				e->where);
			return true;
		}
	return false;
}

static int unknown_option(struct parse *p, const char *given)
{
	size_t len = strcspn(given, "=");
	if (is_elsewhere(p, given, len))
		return -EINVAL;
	const char *nearest =
		given[1] == '-' ? options_nearest(p->command, quote_bytes(given + 2, len - 2).text)
				: NULL;
	if (nearest)
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
	struct name name = {given + 2, strcspn(given + 2, "=")};
	const char *value = given[2 + name.n] == '=' ? given + 3 + name.n : NULL;
	struct option_match match;
	if (!find_option(p->command, has_name, &name, &match))
		return unknown_option(p, given);
	const struct option *option = match.option;
	if (!option_takes_value(option) && value) {
		problem_set(p->problem, "--%s takes no value", option->name);
		return -EINVAL;
	}
	if (option_takes_value(option) && option->type != OPTION_AGE &&
		find_value(p, option, &value) < 0)
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
		if (!find_option(p->command, has_letter, letter, &match) ||
			option_takes_value(match.option))
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

static int check_conflicts(const struct parse *p)
{
	for (const struct option_conflict *c = p->command->conflicts; c && c->a; c++)
		if (options_has(p->command, p->given, c->a) &&
			options_has(p->command, p->given, c->b)) {
			problem_set(p->problem, "--%s and --%s contradict each other: %s", c->a,
				c->b, c->why ? c->why : "choose one");
			return -EINVAL;
		}
	return 0;
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

int command_fail(const char *name, int code, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	log_error("%s: %s", name, sentence);
	return code;
}
