#include "cli/push/metrics_merge.h"
#include <string.h>

static const char HELP[] = "# HELP ";

static size_t line_length(const char *line)
{
	const char *end = strchr(line, '\n');
	return end ? (size_t)(end - line) + 1 : strlen(line);
}

static bool is_help(const char *line)
{
	return strncmp(line, HELP, strlen(HELP)) == 0;
}

/* "# HELP NAME ", with the blank at its end. */
static size_t name_length(const char *help)
{
	return strlen(HELP) + strcspn(help + strlen(HELP), " ") + 1;
}

/* The line that describes the same metric in another text, or NULL. */
static const char *find_metric(const char *text, const char *help)
{
	for (const char *line = text; *line; line += line_length(line))
		if (is_help(line) && strncmp(line, help, name_length(help)) == 0)
			return line;
	return NULL;
}

/* The samples behind the two lines that describe a metric. */
static void add_samples(const char *help, struct text *ret)
{
	const char *begin = help + line_length(help), *end;
	begin += line_length(begin);
	for (end = begin; *end && !is_help(end);)
		end += line_length(end);
	text_add_bytes(ret, begin, (size_t)(end - begin));
}

void metrics_merge(const char *const *texts, size_t n, struct text *ret)
{
	for (size_t i = 0; i < n; i++)
		for (const char *line = texts[i]; *line; line += line_length(line)) {
			if (!is_help(line) || find_metric(text_string(ret), line))
				continue;
			const char *type = line + line_length(line);
			text_add_bytes(ret, line, line_length(line) + line_length(type));
			for (size_t j = i; j < n && !ret->error; j++) {
				const char *same = find_metric(texts[j], line);
				if (same)
					add_samples(same, ret);
			}
		}
}
