#include "base/csv.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct csv {
	FILE *stream;
	size_t n_fields;
	struct text bytes; /* of the record; each field ends with a NUL */
	size_t starts[CSV_FIELDS_MAX], n;
	uint64_t line;
};

struct csv *csv_new(FILE *stream, size_t n_fields)
{
	struct csv *csv = calloc(1, sizeof *csv);
	assert(n_fields && n_fields <= CSV_FIELDS_MAX);
	if (!csv)
		return NULL;
	csv->stream = stream;
	csv->n_fields = n_fields;
	csv->bytes = TEXT(CSV_RECORD_BYTES);
	csv->line = 1;
	return csv;
}

void csv_free(struct csv *csv)
{
	if (!csv)
		return;
	text_clear(&csv->bytes);
	free(csv);
}

static int damaged(const struct csv *csv, const char *how, struct problem *ret_problem)
{
	problem_set(ret_problem, "it is damaged in line %" PRIu64 ": %s", csv->line, how);
	return -EBADMSG;
}

/* The next byte; CR LF counts as LF. EOF also for an error of the stream. */
static int next_byte(struct csv *csv)
{
	int c = getc(csv->stream);
	if (c == '\r') {
		c = getc(csv->stream);
		if (c != '\n') {
			if (c != EOF)
				ungetc(c, csv->stream);
			c = '\r';
		}
	}
	csv->line += c == '\n';
	return c;
}

/* A field whose first quotation mark was read. Returns what follows the last one, or -EBADMSG. */
static int read_quoted(struct csv *csv, int *ret_after, struct problem *ret_problem)
{
	for (;;) {
		int c = next_byte(csv);
		if (c == '"') {
			c = next_byte(csv);
			if (c != '"') {
				*ret_after = c;
				break;
			}
		}
		if (c == EOF || c == '\0')
			return damaged(csv,
				c == EOF ? "a quotation mark is not closed" : "it has a NUL byte",
				ret_problem);
		text_add_char(&csv->bytes, (char)c);
	}
	if (*ret_after != ',' && *ret_after != '\n' && *ret_after != EOF)
		return damaged(csv, "something follows a closing quotation mark", ret_problem);
	return 0;
}

static int read_plain(struct csv *csv, int c, int *ret_after, struct problem *ret_problem)
{
	const bool is_rest = csv->n == csv->n_fields;
	for (; c != '\n' && c != EOF && (c != ',' || is_rest); c = next_byte(csv)) {
		if (c == '\0')
			return damaged(csv, "it has a NUL byte", ret_problem);
		text_add_char(&csv->bytes, (char)c);
	}
	*ret_after = c;
	return 0;
}

/* *ret_after: what ended it. */
static int read_field(struct csv *csv, int c, int *ret_after, struct problem *ret_problem)
{
	if (csv->n == csv->n_fields)
		return damaged(csv, "it has too many fields", ret_problem);
	csv->starts[csv->n++] = csv->bytes.len;
	const int error = c == '"' ? read_quoted(csv, ret_after, ret_problem)
				   : read_plain(csv, c, ret_after, ret_problem);
	text_add_char(&csv->bytes, '\0');
	if (!error && csv->bytes.error)
		return damaged(csv, "it is too long", ret_problem);
	return error;
}

int csv_next(struct csv *csv, struct csv_record *ret, struct problem *ret_problem)
{
	int c, error = 0;
	text_reset(&csv->bytes);
	csv->n = 0;
	do
		c = next_byte(csv);
	while (c == '\n');
	bool more = c != EOF;
	while (more && !error) {
		error = read_field(csv, c, &c, ret_problem);
		more = !error && c == ',';
		if (more)
			c = next_byte(csv);
	}
	if (ferror(csv->stream)) {
		error = errno ? -errno : -EIO;
		problem_set(ret_problem, "it cannot be read: %s", strerror(-error));
	}
	if (error)
		return error;
	ret->n = csv->n;
	for (size_t i = 0; i < csv->n; i++)
		ret->fields[i] = csv->bytes.data + csv->starts[i];
	return csv->n > 0;
}
