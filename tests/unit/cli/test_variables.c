/* Every option of a job has a variable, by the table alone: it does what the option does. */
#include "../check.h"
#include "cli/push/push_options.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The size of the field that an option has, and a value that is right for it. */
static size_t sample(const struct option *option, const char **ret_value)
{
	static const char *const values[] = {[OPTION_FLAG] = "yes",
		[OPTION_COUNT] = "2",
		[OPTION_STRING] = "some value",
		[OPTION_NUMBER] = "7",
		[OPTION_SIZE] = "64M",
		[OPTION_DURATION] = "2m",
		[OPTION_AGE] = "3d",
		[OPTION_EXCLUDE] = "*.tmp",
		[OPTION_INCLUDE] = "*.log",
		[OPTION_EXCLUDE_FROM] = "patterns",
		[OPTION_SETTING] = "a=b"};
	*ret_value = option->choices ? option->choices[1] : values[option->type];
	switch (option->type) {
	case OPTION_STRING:
		return sizeof(char *);
	case OPTION_SIZE:
	case OPTION_DURATION:
	case OPTION_AGE:
		return sizeof(uint64_t);
	default:
		return sizeof(int);
	}
}

/* min-age is S3ONCE_MIN_AGE. Written once more, since the name is a promise. */
static void name_of(const struct option *option, char *ret)
{
	strcpy(ret, "S3ONCE_");
	char *at = ret + strlen(ret);
	for (const char *from = option->name; *from; from++)
		*at++ = *from == '-' ? '_' : (char)toupper((unsigned char)*from);
	*at = 0;
}

static struct push_options by_variable, by_option;

static int read_all(const struct command *command, struct problem *problem)
{
	options_take_list_variables(command);
	return options_take_variables(command, problem);
}

static void check_option(
	struct command *command, const struct command *other, struct option_match match)
{
	const struct option *option = match.option;
	char name[64];
	const char *value;
	unsigned set[OPTIONS_MAX] = {0};
	struct problem problem = {0};
	struct option_match same;
	const size_t bytes = sample(option, &value);
	name_of(option, name);
	CHECK_STRING(option_variable(option).name, name);
	push_options_init(&by_variable);
	push_options_init(&by_option);
	setenv(name, value, 1);
	command->given = set;
	CHECK_INT(read_all(command, &problem), 0);
	CHECK_INT(set[match.index], SET_IN_ENVIRONMENT);
	CHECK(options_find(other, option->name, &same));
	CHECK_INT(option_set(option, same.field, value, &problem), 0);
	if (option_is_list(option)) {
		CHECK_INT(by_variable.rules.n + by_variable.settings.n, 1);
		CHECK_INT(by_option.rules.n + by_option.settings.n, 1);
	} else {
		const bool is_string = option->type == OPTION_STRING;
		CHECK(is_string ? strcmp(*(char **)match.field, value) == 0
				: memcmp(match.field, same.field, bytes) == 0);
	}
	push_options_clear(&by_variable);
	push_options_clear(&by_option);
	/* Values from the command line are not changed. */
	memset(set, 0, sizeof set);
	push_options_init(&by_variable);
	set[match.index] = SET_IN_WORDS;
	CHECK_INT(options_take_variables(command, &problem), 0);
	CHECK_INT(set[match.index], SET_IN_WORDS);
	push_options_clear(&by_variable);
	unsetenv(name);
}

static void check_wrong_value(struct command *command, const struct option *option)
{
	unsigned set[OPTIONS_MAX] = {0};
	struct problem problem = {0};
	char name[64];
	name_of(option, name);
	const enum option_type type = option->type;
	if (option_is_list(option) || (type == OPTION_STRING && !option->choices))
		return;
	setenv(name, "%", 1);
	push_options_init(&by_variable);
	command->given = set;
	CHECK_INT(read_all(command, &problem), -EINVAL);
	CHECK(strncmp(problem.text, name, strlen(name)) == 0 && problem.text[strlen(name)] == ':');
	setenv(name, "", 1); /* as if it were not there */
	CHECK_INT(read_all(command, &problem), 0);
	unsetenv(name);
}

static void check_every_option(void)
{
	struct command command = job_command, other = job_command;
	command.values = &by_variable;
	other.values = &by_option;
	size_t n = 0;
	for (const struct option_group *group = job_groups; group->options; group++)
		for (const struct option *o = group->options; o->name; o++) {
			struct option_match match;
			CHECK(options_find(&command, o->name, &match));
			check_option(&command, &other, match);
			check_wrong_value(&command, o);
			n++;
		}
	CHECK(n > 60);
}

static void check_lists(void)
{
	struct command command = job_command;
	command.values = &by_variable;
	unsigned set[OPTIONS_MAX] = {0};
	struct problem problem;
	push_options_init(&by_variable);
	setenv("S3ONCE_TAG", "a=1", 1);
	setenv("S3ONCE_TAG_2", "b=2", 1);
	setenv("S3ONCE_TAG_4", "d=4", 1); /* there is no third one */
	setenv("S3ONCE_MIN_AEG", "1m", 1);
	setenv("S3ONCE_MIN_AGE", "1m", 1);
	command.given = set;
	CHECK_INT(read_all(&command, &problem), 0);
	CHECK_INT(by_variable.settings.n, 2);
	CHECK_STRING(by_variable.settings.settings[1].value, "b=2");
	push_options_clear(&by_variable);
	static const struct {
		const char *variable;
		bool is_foreign;
	} tests[] = {{"S3ONCE_TAG=a=1", false}, {"S3ONCE_TAG_2=b=2", false},
		{"S3ONCE_TAG_4=d=4", true}, {"S3ONCE_MIN_AEG=1m", true}, {"S3ONCE_MIN_AEG=", false},
		{"S3ONCE_MIN_AGE=1m", false}, {"S3ONCE_MIN_AGES=1m", true}, {"HOME=/root", false}};
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		CHECK_INT(options_lack_variable(&command, tests[i].variable), tests[i].is_foreign);
}

int main(void)
{
	clearenv();
	check_every_option();
	check_lists();
	return check_result();
}
