#include "cli/options/option_value.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/options/values.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define COUNT_MAX 9

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
	if (!*value) {
		problem_set(ret_problem, "the value is empty");
		return -EINVAL;
	}
	if (option->choices && set_choice(option, &(int){0}, value, ret_problem) < 0)
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

bool option_takes_value(const struct option *option)
{
	return option->type != OPTION_FLAG && option->type != OPTION_COUNT &&
	       option->type != OPTION_HELP;
}

int option_set(
	const struct option *option, void *field, const char *value, struct problem *ret_problem)
{
	switch (option->type) {
	case OPTION_FLAG:
		return set_flag(field, value, ret_problem);
	case OPTION_HELP:
		return -ECANCELED;
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
	}
	return -EINVAL;
}
