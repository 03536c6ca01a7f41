#include "cli/config_view.h"
#include "base/text.h"
#include "cli/json.h"
#include <string.h>

static void print_row(struct config_view *view, const struct config_row *row)
{
	struct text line = TEXT(1 << 16);
	if (view->is_json) {
		json_t *object = json_event("setting");
		if (view->job)
			json_set_bytes(object, "job", view->job->name);
		json_object_set_new(object, "name", json_string(row->name));
		json_set_bytes(object, "value", row->value);
		json_set_bytes(object, "from", row->from);
		json_print(&view->output, object);
		return;
	}
	text_addf(&line, "%-32s ", row->name);
	size_t before = line.len;
	text_add_escaped_string(&line, row->value);
	size_t width = line.len - before;
	text_addf(&line, "%*s  ", width < 39 ? (int)(39 - width) : 0, "");
	text_add_escaped_string(&line, row->from);
	output_result(&view->output, text_string(&line));
	text_clear(&line);
}

static void tell_line(
	struct config_view *view, const char *name, const char *value, const struct job_line *line)
{
	struct text from = TEXT(1 << 13);
	if (line)
		text_addf(&from, "line %u of ", line->number);
	text_add(&from, view->job->path);
	print_row(view, &(struct config_row){name, (char *)(uintptr_t)value,
				(char *)(uintptr_t)text_string(&from)});
	text_clear(&from);
}

/* The line of the job that sets what the row has from an option, or NULL. */
static const struct job_line *line_of(const struct job *job, const struct config_row *row)
{
	return job && strncmp(row->from, "--", 2) == 0 ? job_line_of(job, row->from + 2) : NULL;
}

/* Tells what the file sets and no row has. */
static void tell_job(struct config_view *view, const struct config_rows *rows)
{
	const struct job_file *file = view->job->file;
	for (size_t i = 0; i < file->n; i++) {
		const struct job_line *line = &file->lines[i];
		bool has_row = job_is_overridden(view->job, line->name);
		for (size_t j = 0; j < rows->n && !has_row; j++)
			has_row = line_of(view->job, &rows->rows[j]) == line;
		if (!has_row)
			tell_line(view, line->name, line->value, line);
	}
}

/* Tells the options that are set nowhere, and their defaults. */
static void tell_defaults(struct config_view *view)
{
	const struct job *job = view->job;
	for (size_t g = 0; g < job->command.n_groups; g++)
		for (const struct option *o = job->command.groups[g].options; o->name; o++)
			if (o->standard && !job_line_of(job, o->name) &&
				!job_is_overridden(job, o->name))
				print_row(view, &(struct config_row){o->name,
							(char *)(uintptr_t)o->standard,
							(char[]){"default"}});
}

void config_view_tell(struct config_view *view, const struct config_rows *rows)
{
	if (view->job) {
		tell_job(view, rows);
		tell_defaults(view);
	}
	for (size_t i = 0; i < rows->n; i++) {
		const struct config_row *row = &rows->rows[i];
		const struct job_line *line = line_of(view->job, row);
		if (view->job && strcmp(row->name, "max_attempts") == 0 &&
			job_line_of(view->job, "retries"))
			continue; /* the job says it by another name */
		if (line)
			tell_line(view, row->name, row->value, line);
		else
			print_row(view, row);
	}
}
