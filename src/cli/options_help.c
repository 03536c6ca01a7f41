#include "cli/options.h"
#include <string.h>

#define NAME_COLUMN  26
#define HELP_COLUMNS 52

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

void options_help(const struct command *command, FILE *stream)
{
	fprintf(stream, "Usage: s3once %s [OPTIONS]%s%s\n\n%s", command->name,
		*command->operands ? " " : "", command->operands, command->about);
	for (size_t g = 0; g < command->n_groups; g++) {
		if (command->groups[g].title)
			fprintf(stream, "\n%s:\n", command->groups[g].title);
		for (const struct option *o = command->groups[g].options; o->name; o++)
			print_option(o, stream);
	}
	fprintf(stream, "\nExamples:\n%s", command->examples);
}
