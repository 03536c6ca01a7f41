/* Prints --help from the table of a command's options: all of it, the options of a topic, or a
 * first screen with the options that most people need. */
#include "base/text.h"
#include "cli/options/options.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

#define HELP_COLUMN    26 /* column at which the text about an option begins */
#define HELP_COLUMNS   54 /* width of this text, so that a line has at most 80 columns */
#define EXCEPTIONS_MAX 3  /* options without a variable that are named one by one */

/* Returns the length of the first line of a text in bytes. The line ends at a '\n', or at the blank
 * before the first word that does not fit. */
static size_t first_line_bytes(const char *text)
{
	size_t n = 0, columns = 0, blank = 0;
	for (; text[n] && text[n] != '\n' && columns <= HELP_COLUMNS; n++) {
		blank = text[n] == ' ' ? n : blank;
		columns += (text[n] & 0xC0) != 0x80; /* a character of UTF-8 begins */
	}
	return columns <= HELP_COLUMNS ? n : blank;
}

enum help_length { HELP_BRIEF, HELP_WHOLE };

/* Prints the lines of an option: its help, or in the first screen its `brief`. */
static void print_option(const struct option *option, enum help_length length, FILE *stream)
{
	const bool is_brief = length == HELP_BRIEF;
	const char *help = (is_brief && *option->brief) ? option->brief : option->help;
	const char *standard = is_brief ? NULL : option->standard;
	/* n is the number of columns of the line that were printed so far. */
	int n = option->letter ? fprintf(stream, "  -%c, ", option->letter)
			       : fprintf(stream, "      ");
	/* An argument that may be omitted has its '=' in brackets: --delete-after[=AGE]. */
	n += fprintf(stream, "--%s%s%s", option->name,
		(option->argument && *option->argument != '[') ? " " : "",
		option->argument ? option->argument : "");
	if (n > HELP_COLUMN - 2) { /* there is no room for two blanks before the text */
		fputc('\n', stream);
		n = 0;
	}
	size_t len = 0;
	for (const char *line = help; *line; line += len + (line[len] != 0)) {
		len = first_line_bytes(line);
		fprintf(stream, "%*s%.*s", HELP_COLUMN - n, "", (int)len, line);
		if (line[len])
			fprintf(stream, "\n");
		n = 0;
	}
	if (standard) {
		const bool has_room = len + strlen(standard) + strlen(" []") <= HELP_COLUMNS;
		fprintf(stream, "%s%*s[%s]", has_room ? "" : "\n", has_room ? 1 : HELP_COLUMN, "",
			standard);
	}
	fprintf(stream, "\n");
}

static void print_usage(const struct command *command, FILE *stream)
{
	fprintf(stream, "Usage: s3once %s [OPTIONS]%s%s\n\n%s", command->name,
		*command->operands ? " " : "", command->operands, command->about);
}

/* Prints how variables of the environment set options: "S3ONCE_X sets --x, and so on for each
 * option but --y and --z". If more than EXCEPTIONS_MAX options have no variable, it reads "... for
 * the options of TITLE and TITLE". */
static void print_environment(const struct command *command, FILE *stream)
{
	const struct option *example = NULL; /* --x */
	struct text titles = TEXT(200), exceptions = TEXT(2000);
	unsigned n_exceptions = 0;
	for (const struct option_group *group = command->groups; group->options; group++) {
		if (group->has_variables && !example)
			example = group->options;
		if (group->has_variables && group->title)
			text_addf(&titles, "%s%s", titles.len ? " and " : "", group->title);
		for (const struct option *o = group->options; o->name && !group->has_variables; o++)
			text_addf(
				&exceptions, "%s --%s", n_exceptions++ ? " and" : " but", o->name);
	}
	const bool names_exceptions = n_exceptions <= EXCEPTIONS_MAX;
	if (example)
		fprintf(stream,
			"\nEnvironment:\n  %s sets --%s, and so on for\n"
			"  %s%s.\n"
			"  A job's file and the command line take precedence. More: man s3once\n",
			option_variable(example).name, example->name,
			names_exceptions ? "each option" : "the options of ",
			text_string(names_exceptions ? &exceptions : &titles));
	text_clear(&titles);
	text_clear(&exceptions);
}

/* Prints the options of the groups that `topic` names by their title, in lower or upper case. NULL:
 * those of all groups. Returns whether there is such a group. */
static bool print_groups(const struct command *command, const char *topic, FILE *stream)
{
	bool is_asked = false, is_found = false;
	for (const struct option_group *group = command->groups; group->options; group++) {
		if (group->title) /* a group without one continues the group before it */
			is_asked = !topic || strcasecmp(group->title, topic) == 0;
		is_found |= is_asked;
		if (is_asked && group->title)
			fprintf(stream, "%s%s:\n", topic ? "" : "\n", group->title);
		for (const struct option *o = group->options; is_asked && o->name; o++)
			print_option(o, HELP_WHOLE, stream);
	}
	return is_found;
}

/* Adds the titles of all groups, as one writes them as a topic: "files, logs, …". */
static void add_topics(const struct command *command, struct text *text)
{
	for (const struct option_group *group = command->groups; group->options; group++)
		if (group->title) {
			text_addf(text, "%s%s", text->len ? ", " : "", group->title);
			text->data[text->len - strlen(group->title)] |= 0x20; /* a small letter */
		}
}

/* Prints words, with line breaks at blanks in front of column 80. */
static void print_wrapped(const char *words, FILE *stream)
{
	while (*words) {
		size_t n = strlen(words); /* length of the next line */
		while (n > 79 || (words[n] && words[n] != ' '))
			n--;
		fprintf(stream, "%.*s\n", (int)n, words);
		words += n + (words[n] == ' ');
	}
}

/* Prints the first screen of help. */
static void print_brief(const struct command *command, FILE *stream)
{
	struct text topics = TEXT(400);
	struct option_match match = {0};
	print_usage(command, stream);
	fprintf(stream, "\nMost used options:\n");
	while (options_next(command, &match))
		if (match.option->brief)
			print_option(match.option, HELP_BRIEF, stream);
	const char *end = strstr(command->examples, "\n\n");
	fprintf(stream, "\nExamples:\n%.*s\n", end ? (int)(end - command->examples) : -1,
		command->examples);
	add_topics(command, &topics);
	fprintf(stream, "\nAll options: s3once %s --help all, or by topic --help TOPIC, which is\n",
		command->name);
	print_wrapped(text_string(&topics), stream);
	text_clear(&topics);
}

/* Prints all options, how the environment sets them, and the examples. */
static void print_all(const struct command *command, FILE *stream)
{
	print_usage(command, stream);
	print_groups(command, NULL, stream);
	print_option(help_options, HELP_WHOLE, stream);
	print_environment(command, stream);
	/* "lock run" is in the manual page of "lock". */
	fprintf(stream, "\nExamples:\n%s\nMore: man s3once-%.*s\n", command->examples,
		(int)strcspn(command->name, " "), command->name);
}

int options_help(
	const struct command *command, const char *topic, FILE *stream, struct problem *ret_problem)
{
	if (!topic && command->has_first_screen) {
		print_brief(command, stream);
		return 0;
	}
	if (!topic || strcmp(topic, "all") == 0) {
		print_all(command, stream);
		return 0;
	}
	if (print_groups(command, topic, stream))
		return 0;
	struct text topics = TEXT(400);
	add_topics(command, &topics);
	problem_set(ret_problem, "there is no help on '%s', but on: all, %s", quote(topic).text,
		text_string(&topics));
	text_clear(&topics);
	return -EINVAL;
}
