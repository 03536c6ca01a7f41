/* The text of a job's file: lines in order, strings without blanks around them, and what was read
 * reads the same when it is written anew. */
#include "base/text.h"
#include "cli/job/job.h"
#include "fuzz.h"

static void ensure_sound(const struct job_file *file, size_t n_lines)
{
	unsigned number = 0;
	for (size_t i = 0; i < file->n; i++) {
		const struct job_line *line = &file->lines[i];
		ENSURE(line->number > number && line->number <= n_lines);
		number = line->number;
		ENSURE(line->name && line->value);
		ENSURE(line->wrong || *line->name);
		ENSURE(line->wrong || (!strchr(line->name, '=') && !strchr(line->name, '\n') &&
					      !strchr(line->value, '\n')));
		ENSURE(!strchr(" \t\r", *line->name) || !*line->name);
	}
}

/* A value in the quotes that it has none of, or as it is: false if neither can be written. */
static bool add_value(struct text *text, const char *value)
{
	const char *quote = !strchr(value, '"') ? "\"" : !strchr(value, '\'') ? "'" : NULL;
	if (quote)
		text_addf(text, "%s%s%s", quote, value, quote);
	return quote != NULL;
}

static void ensure_same_again(const struct job_file *file)
{
	for (size_t i = 0; i < file->n; i++) {
		const struct job_line *line = &file->lines[i];
		struct text text = TEXT(1 << 20);
		struct job_file again = {0};
		if (!line->wrong) {
			text_addf(&text, "\n%s = ", line->name);
			if (add_value(&text, line->value)) {
				job_file_parse(text_string(&text), text.len, &again);
				ENSURE(again.n == 1 && again.lines->number == 2);
				ENSURE(!again.lines->wrong);
				ENSURE(strcmp(again.lines->name, line->name) == 0);
				ENSURE(strcmp(again.lines->value, line->value) == 0);
			}
		}
		job_file_clear(&again);
		text_clear(&text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct job_file file = {0};
	size_t lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	job_file_parse((const char *)data, size, &file);
	ensure_sound(&file, lines);
	ensure_same_again(&file);
	job_file_clear(&file);
	return 0;
}
