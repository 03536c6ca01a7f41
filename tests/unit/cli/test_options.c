#include "../check.h"
#include "base/text.h"
#include "cli/options/options.h"
#include <errno.h>
#include <stdlib.h>

struct values {
	int flag, choice;
	unsigned set, count, number;
	const char *string;
	uint64_t size, duration;
	struct option_rules rules;
};

static const char *const colours[] = {"red", "green", NULL};
#define FIELD(name) offsetof(struct values, name)
static const struct option options[] = {
	FLAG("flag", FIELD(flag), "a flag", .letter = 'f'),
	VALUE("count", COUNT, FIELD(count), NULL, "counts", .letter = 'c'),
	VALUE("string", STRING, FIELD(string), "WORD", "a word"),
	VALUE("choice", CHOICE, FIELD(choice), "red|green", "a\ncolour", .choices = colours),
	VALUE("set", SET, FIELD(set), "red|green", "colours", .choices = colours),
	VALUE("number", NUMBER, FIELD(number), "N", "a number", .min = 1, .max = 10),
	VALUE("size", SIZE, FIELD(size), "SIZE", "a size", .min = 5 << 20),
	VALUE("duration", DURATION, FIELD(duration), "DUR", "a duration", .min = 100, .max = 60000),
	VALUE("exclude", EXCLUDE, FIELD(rules), "P", "out"),
	VALUE("include", INCLUDE, FIELD(rules), "P", "in"),
	{.name = "short",
		.type = OPTION_NUMBER,
		.offset = offsetof(struct values, number),
		.argument = "N",
		.help = "one\ntwo",
		.standard = "7"},
	{.name = "long",
		.type = OPTION_NUMBER,
		.offset = offsetof(struct values, number),
		.argument = "N",
		.help = "a line of fifty characters, which is nearly too much\n"
			"and then one of 54, to whose end there is no room … 54 which goes on",
		.standard = "the value that has no room in a line like this"},
	{NULL},
};
static const struct option_group groups[] = {{"Group", options}, {NULL}};
static const struct option_conflict conflicts[] = {{"flag", "count", "choose one"}, {NULL}};

/* The result of options_parse for these words; operands are joined by '|'. */
struct parsed {
	int r;
	struct values values;
	struct problem problem;
	char operands[200];
};

static struct parsed parse(const char *const *words)
{
	struct parsed p = {0};
	char *argv[16] = {(char[]){"cmd"}};
	int argc = 1;
	for (; words[argc - 1]; argc++)
		argv[argc] = strdup(words[argc - 1]);
	char *owned[16];
	memcpy(owned, argv, sizeof owned);
	unsigned given[OPTIONS_MAX] = {0};
	const struct command command = {.name = "cmd",
		.groups = groups,
		.conflicts = conflicts,
		.values = &p.values,
		.given = given};
	p.r = options_parse(&command, argc, argv, &p.problem);
	for (int i = 0; i < p.r; i++) {
		strcat(p.operands, i ? "|" : "");
		strcat(p.operands, argv[i]);
	}
	for (int i = 1; i < argc; i++)
		if (p.values.string != owned[i])
			free(owned[i]); /* a string that was kept leaks no later than this test */
	free(p.values.rules.rules);
	p.values.rules.rules = NULL;
	return p;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void check_accepted(void)
{
	struct parsed p = PARSE("a", "-f", "--number=7", "b", "--", "--flag", "-");
	CHECK_INT(p.r, 4);
	CHECK_STRING(p.operands, "a|b|--flag|-");
	CHECK_INT(p.values.flag, 1);
	CHECK_INT(p.values.number, 7);
	p = PARSE("--size", "8MiB", "--duration=30s", "--choice", "green", "-cc", "--count", "-");
	CHECK_INT(p.values.size, 8 << 20);
	CHECK_INT(p.values.duration, 30000);
	CHECK_INT(p.values.choice, 1);
	CHECK_INT(p.values.count, 3);
	CHECK_STRING(p.operands, "-");
	/* The bounds themselves are allowed. */
	p = PARSE("--number=10", "--size=5MiB", "--duration=1m");
	CHECK_INT(p.values.number, 10);
	CHECK_INT(p.values.size, 5 << 20);
	CHECK_INT(p.values.duration, 60000);
	p = PARSE("--number=1", "--duration=100ms");
	CHECK_INT(p.values.number, 1);
	CHECK_INT(p.values.duration, 100);
	p = PARSE("--set", "red,green");
	CHECK_INT(p.values.set, 3);
	p = PARSE("--set=red,green", "--set=green");
	CHECK_INT(p.values.set, 2);
	p = PARSE("--string=", "x");
	CHECK_INT(p.r, -EINVAL);
	p = PARSE("--string", "--flag");
	CHECK_INT(p.r, 0);
	CHECK_STRING(p.values.string, "--flag");
	CHECK_INT(p.values.flag, 0);
	free((void *)(uintptr_t)p.values.string);
	p = PARSE("--number=7", "--number=8");
	CHECK_INT(p.values.number, 8);
	CHECK_INT(PARSE("--help").r, -ECANCELED);
	CHECK_INT(PARSE("-fh").r, -ECANCELED);
}

static void check_rules_keep_their_order(void)
{
	struct values values = {0};
	char *argv[] = {(char[]){"cmd"}, (char[]){"--exclude"}, (char[]){"a"},
		(char[]){"--include=b"}, (char[]){"--exclude=c"}};
	unsigned given[OPTIONS_MAX] = {0};
	const struct command command = {
		.name = "cmd", .groups = groups, .values = &values, .given = given};
	struct problem problem;
	CHECK_INT(options_parse(&command, 5, argv, &problem), 0);
	if (CHECK_INT(values.rules.n, 3)) {
		CHECK_STRING(values.rules.rules[0].pattern, "a");
		CHECK_INT(values.rules.rules[0].kind, S3ONCE_RULE_EXCLUDE);
		CHECK_STRING(values.rules.rules[1].pattern, "b");
		CHECK_INT(values.rules.rules[1].kind, S3ONCE_RULE_INCLUDE);
		CHECK_STRING(values.rules.rules[2].pattern, "c");
	}
	free(values.rules.rules);
}

/* As a file has them, and what was given is written down. */
static void check_by_name(void)
{
	struct values values = {0};
	struct option_match match;
	unsigned given[OPTIONS_MAX] = {0};
	struct problem problem;
	const struct command command = {
		.name = "cmd", .groups = groups, .values = &values, .given = given};
	char *argv[] = {(char[]){"cmd"}, (char[]){"-f"}, (char[]){"--number=2"}};
	CHECK_INT(options_parse(&command, 3, argv, &problem), 0);
	CHECK_INT(options_set_in(&command, "flag"), SET_IN_WORDS);
	CHECK_INT(options_set_in(&command, "number"), SET_IN_WORDS);
	CHECK(!options_set_in(&command, "count") && !options_set_in(&command, "fla"));
	CHECK(!options_find(&command, "fla", &match) && !options_find(&command, "f", &match));
	CHECK_STRING(options_nearest(&command, "flog"), "flag");
	CHECK(options_find(&command, "flag", &match) && match.field == &values.flag);
	CHECK_INT(option_set(match.option, match.field, "no", &problem), 0);
	CHECK_INT(values.flag, 0);
	CHECK_INT(option_set(match.option, match.field, "true", &problem), 0);
	CHECK_INT(values.flag, 1);
	CHECK_INT(option_set(match.option, match.field, "1", &problem), -EINVAL);
	CHECK_STRING(problem.text, "'1' is neither yes nor no");
	CHECK(options_find(&command, "count", &match));
	CHECK_INT(option_set(match.option, match.field, "yes", &problem), 0);
	CHECK_INT(values.count, 1);
	CHECK_INT(option_set(match.option, match.field, "3", &problem), 0);
	CHECK_INT(values.count, 3);
	CHECK_INT(option_set(match.option, match.field, "10", &problem), -EINVAL);
	CHECK_INT(option_set(match.option, match.field, "false", &problem), 0);
	CHECK_INT(values.count, 0);
}

static void check_refused(void)
{
	static const struct {
		const char *words[4];
		const char *says;
	} rows[] = {
		{{"--flagg"}, "unknown option '--flagg'; did you mean --flag?"},
		{{"--flagg=1"}, "unknown option '--flagg'; did you mean --flag?"},
		{{"--dur"}, "unknown option '--dur'; did you mean --duration?"},
		{{"--xyzzy"}, "unknown option '--xyzzy'; see s3once cmd --help"},
		{{"-x"}, "unknown option '-x'; see s3once cmd --help"},
		{{"-fx"}, "unknown option '-x'; see s3once cmd --help"},
		{{"--\x1b[31m"}, "unknown option '--\\x1b[31m'; see s3once cmd --help"},
		{{"--flag=1"}, "--flag: '1' is neither yes nor no"},
		{{"--help=yes"}, "--help takes no value"},
		{{"--number"}, "--number needs a value: --number N"},
		{{"--number", "x"}, "--number: 'x' is not a whole number"},
		{{"--number", "0"}, "--number: '0' is too small: at least 1"},
		{{"--number=11"}, "--number: '11' is too large: at most 10"},
		{{"--size=1MiB"}, "--size: '1MiB' is too small: at least 5MiB"},
		{{"--duration=99ms"}, "--duration: '99ms' is too small: at least 100ms"},
		{{"--duration=61s"}, "--duration: '61s' is too large: at most 1m"},
		{{"--choice=blue"}, "--choice: 'blue' is not one of red|green"},
		{{"--set=red,blue"}, "--set: 'blue' is not one of red|green"},
		{{"--set=re"}, "--set: 're' is not one of red|green"},
		{{"--set", "green,"}, "--set: '' is not one of red|green"},
		{{"--string", ""}, "--string: the value is empty"},
		{{"-f", "-c"}, "--flag and --count contradict each other: choose one"},
		{{"--count", "--flag"}, "--flag and --count contradict each other: choose one"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct parsed p = parse(rows[i].words);
		CHECK_INT(p.r, -EINVAL);
		CHECK_STRING(p.problem.text, rows[i].says);
	}
}

static void check_help(void)
{
	char page[4096] = "";
	FILE *stream = fmemopen(page, sizeof page - 1, "w");
	const struct command command = {.name = "cmd",
		.operands = "FILE",
		.about = "About.\n",
		.groups = groups,
		.examples = "  one\n"};
	struct problem problem = {0};
	CHECK_INT(options_help(&command, NULL, stream, &problem), 0);
	fclose(stream);
	CHECK(strstr(page, "Usage: s3once cmd [OPTIONS] FILE\n\nAbout.\n\nGroup:\n"));
	CHECK(strstr(page, "\n  -f, --flag              a flag\n"));
	CHECK(strstr(page, "\n      --choice red|green  a\n                          colour\n"));
	CHECK(strstr(page, "\n      --short N           one\n                          two [7]\n"));
	CHECK(strstr(page,
		" nearly too much\n                          and then one of 54, to whose "
		"end there is no room … 54\n                          which goes on\n"
		"                          [the value that has no room"));
	CHECK(strstr(page, "\n  -h, --help              print this and exit\n"));
	CHECK(strstr(page, "\n\nExamples:\n  one\n"));
	CHECK_INT(options_help(&command, "colours", stdout, &problem), -EINVAL);
	CHECK_STRING(problem.text, "there is no help on 'colours', but on: all, group");
}

int main(void)
{
	check_accepted();
	check_rules_keep_their_order();
	check_by_name();
	check_refused();
	check_help();
	static const char *const names[] = {"push", "init", "status"};
	CHECK_STRING(nearest_name("psuh", names, 3), "push");
	CHECK_STRING(nearest_name("sta", names, 3), "status");
	CHECK_STRING(nearest_name("upload", names, 3), NULL);
	CHECK_STRING(nearest_name("", names, 3), NULL);
	return check_result();
}
