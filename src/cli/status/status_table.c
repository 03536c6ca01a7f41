#include "cli/status/status_table.h"
#include "audit/mark_stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct folder_sums {
	struct status_view *view;
	unsigned open;                     /* the deepest folder that `key` is in; 0: the prefix */
	size_t ends[STATUS_DEPTH_MAX + 1]; /* of the prefix and of each folder in `key` */
	struct status_counts sums[STATUS_DEPTH_MAX + 1];
	char key[KEY_BYTES_MAX + 1]; /* of the last mark */
};

static void add_counts(struct status_counts *sum, const struct status_counts *more)
{
	sum->done += more->done;
	sum->claimed += more->claimed;
	sum->failed += more->failed;
	sum->changed += more->changed;
	sum->unreadable += more->unreadable;
	sum->bytes_done += more->bytes_done;
}

static void close_folder(struct folder_sums *table)
{
	const unsigned level = table->open--;
	table->key[table->ends[level]] = '\0';
	status_tell_folder(table->view, table->key, &table->sums[level]);
	add_counts(&table->sums[table->open], &table->sums[level]);
}

static void open_folders(struct folder_sums *table)
{
	while (table->open < table->view->depth) {
		const char *slash = strchr(table->key + table->ends[table->open], '/');
		if (!slash)
			return;
		table->open++;
		table->ends[table->open] = (size_t)(slash - table->key) + 1;
		table->sums[table->open] = (struct status_counts){0};
	}
}

static void count_mark_row(struct status_counts *sum, const struct mark_row *mark)
{
	switch (mark->state) {
	case MARK_DONE:
		sum->done++;
		sum->changed += mark->has_newer;
		sum->bytes_done += mark->file_bytes;
		break;
	case MARK_CLAIMED:
		sum->claimed++;
		break;
	case MARK_FAILED:
		sum->failed++;
		break;
	case MARK_FORGOTTEN:
		break;
	case MARK_UNREADABLE:
	case MARK_ABSENT:
		sum->unreadable++;
	}
}

static void add_row(struct folder_sums *table, const struct mark_row *mark)
{
	if (mark->state == MARK_FORGOTTEN)
		return;
	while (table->open && strncmp(table->key, mark->key, table->ends[table->open]) != 0)
		close_folder(table);
	snprintf(table->key, sizeof table->key, "%s", mark->key);
	open_folders(table);
	count_mark_row(&table->sums[table->open], mark);
}

static enum outcome read_marks(
	struct mark_stream *stream, struct folder_sums *table, struct problem *ret_problem)
{
	for (;;) {
		struct mark_row *row;
		const enum outcome o = mark_stream_next(stream, &row, ret_problem);
		if (o != OUTCOME_OK || !row)
			return o;
		add_row(table, row);
		free(row);
	}
}

enum outcome status_table_tell(
	struct status_view *view, const char *prefix, struct problem *ret_problem)
{
	const struct mark_range range = {.prefix = prefix};
	const struct call_limits limits = {0};
	struct mark_stream *stream = NULL;
	struct folder_sums *table = calloc(1, sizeof *table);
	enum outcome o = OUTCOME_LOCAL;
	if (table && mark_stream_new(view->conn, view->space, &range, &limits, &stream) == 0) {
		table->view = view;
		table->ends[0] = strlen(prefix);
		status_tell_head(view);
		o = read_marks(stream, table, ret_problem);
	} else {
		problem_set(ret_problem, "out of memory");
	}
	if (o == OUTCOME_OK) {
		while (table->open)
			close_folder(table);
		status_tell_sum(view, prefix, &table->sums[0]);
	}
	mark_stream_free(stream);
	free(table);
	return o;
}
