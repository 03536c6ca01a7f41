#include "cli/options/options.h"
#include <string.h>

#define NAME_COLUMN  26
#define HELP_COLUMNS 52
#define COLUMNS      79

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

/* Prints the words of a line behind what stands in the row already. Returns the column after it. */
static size_t print_words(const char *line, size_t len, size_t column, FILE *stream)
{
	for (size_t at = 0; at < len;) {
		const size_t n = strcspn(line + at, " \n");
		if (column && column + 1 + n > COLUMNS) {
			fputc('\n', stream);
			column = 0;
		}
		fprintf(stream, "%s%.*s", column ? " " : "", (int)n, line + at);
		column += n + (column > 0);
		at += n + 1;
	}
	return column;
}

/* Fills paragraphs to the width of a terminal. Lines that begin with a blank stay as they are. */
static void print_filled(const char *text, FILE *stream)
{
	size_t column = 0, len;
	for (const char *line = text; *line; line += len + (line[len] == '\n')) {
		len = strcspn(line, "\n");
		if (len && *line != ' ') {
			column = print_words(line, len, column, stream);
			continue;
		}
		fprintf(stream, "%s%.*s\n", column ? "\n" : "", (int)len, line);
		column = 0;
	}
	if (column)
		fputc('\n', stream);
}

void options_help(const struct command *command, FILE *stream)
{
	fprintf(stream, "Usage: s3once %s [OPTIONS]%s%s\n\n", command->name,
		*command->operands ? " " : "", command->operands);
	print_filled(command->about, stream);
	for (size_t g = 0; g < command->n_groups; g++) {
		if (command->groups[g].title)
			fprintf(stream, "\n%s:\n", command->groups[g].title);
		for (const struct option *o = command->groups[g].options; o->name; o++)
			print_option(o, stream);
	}
	fprintf(stream, "\nExamples:\n");
	print_filled(command->examples, stream);
}
