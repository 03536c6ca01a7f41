#include "scan/rotated/log_family.h"
#include "base/quote.h"
#include "scan/open.h"
#include "scan/rotated/grown_file.h"
#include "scan/rotated/log_match.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* For so many days a log whose file is gone is looked for: logrotate's renamecopy gives it a name
 * of another family for a moment, and it may be compressed while no run looks. */
#define MISSING_DAYS 7

void log_family_clear_rows(struct log_family *family)
{
	for (size_t k = 0; k < family->n_rows; k++)
		log_row_clear(&family->rows[k]);
	free(family->rows);
	free(family->states);
	family->rows = NULL;
	family->states = NULL;
	family->n_rows = 0;
}

static int load_rows(struct log_family *family, struct problem *ret_problem)
{
	log_family_clear_rows(family);
	const int r = log_rows_load(family->options->log_rows, &family->name, &family->rows,
		&family->n_rows, ret_problem);
	if (r < 0)
		return r;
	const size_t most = family->n_rows + family->n_files;
	struct log_row *rows = reallocarray(family->rows, most, sizeof *rows);
	family->rows = rows ? rows : family->rows;
	family->states = calloc(most, sizeof *family->states);
	if (rows && family->states)
		return 0;
	open_out_of_resources(-ENOMEM, ret_problem);
	return -ENOMEM;
}

/* Whether another log has the file that had this one. */
static bool is_replaced(const struct log_family *family, const struct log_row *row)
{
	for (size_t i = 0; i < family->n_files; i++)
		if (family->files[i].row && grown_file_had(&family->files[i], row))
			return true;
	return false;
}

/* What is not found anywhere is given up, after a while. */
static bool is_lost(struct log_family *family, size_t k, int64_t today)
{
	struct log_row *row = &family->rows[k];
	if (family->states[k] == LOG_TRUNCATED)
		return !family->is_unsure && !family->has_waiting && is_replaced(family, row);
	return family->states[k] == LOG_LOOSE && row->missing &&
	       today - row->missing >= MISSING_DAYS;
}

static void tell_lost(struct log_family *family, const struct log_row *row, enum log_state state)
{
	if (!row->was_live || *family->notice.text)
		return;
	problem_set(&family->notice,
		state == LOG_TRUNCATED
			? "%s was emptied after %llu bytes of it were uploaded, and no file here "
			  "begins with them; a copy that was made before the last of them were "
			  "written, or in another folder (logrotate's olddir), is uploaded as a "
			  "whole"
			: "%s is gone since %llu bytes of it were uploaded, and no file here begins "
			  "with them; if it was moved to another folder (logrotate's olddir), it is "
			  "uploaded there as a whole",
		quote(family->name.family).text, (unsigned long long)row->end);
}

static int drop_lost(struct log_family *family, int64_t today, struct problem *ret_problem)
{
	int r = 0;
	for (size_t k = 0; r == 0 && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (!row->number || !is_lost(family, k, today))
			continue;
		tell_lost(family, row, family->states[k]);
		r = log_rows_drop(family->options->log_rows, row, ret_problem);
	}
	return r;
}

static int note_missing(struct log_family *family, int64_t today, struct problem *ret_problem)
{
	int r = 0;
	for (size_t k = 0; r == 0 && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (family->states[k] != LOG_LOOSE || row->missing || family->is_unsure)
			continue;
		row->missing = today;
		r = log_rows_put(family->options->log_rows, &family->name, row, ret_problem);
	}
	return r;
}

/* Known rows come before new ones, which may be of a file that had a known one. */
static int keep_changed(
	struct log_family *family, int64_t today, bool is_new, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		struct log_row *row = file->row;
		if (!row || (row->number == 0) != is_new)
			continue;
		if (!file->is_changed && row->seen == today && !row->missing)
			continue;
		row->seen = today;
		row->missing = 0;
		r = log_rows_put(family->options->log_rows, &family->name, row, ret_problem);
	}
	return r;
}

static bool has_changes(const struct log_family *family, int64_t today)
{
	for (size_t i = 0; i < family->n_files; i++)
		if (family->files[i].row &&
			(family->files[i].is_changed || family->files[i].row->seen != today))
			return true;
	for (size_t k = 0; k < family->n_rows; k++)
		if (family->states[k] == LOG_LOOSE || family->states[k] == LOG_TRUNCATED)
			return true;
	return false;
}

static int keep(struct log_family *family, struct problem *ret_problem)
{
	struct log_rows *rows = family->options->log_rows;
	const int64_t today = log_rows_today(rows);
	if (family->options->only_looks || !has_changes(family, today))
		return 0;
	int r = log_rows_begin(rows, ret_problem);
	if (r == 0)
		r = drop_lost(family, today, ret_problem);
	if (r == 0)
		r = note_missing(family, today, ret_problem);
	if (r == 0)
		r = keep_changed(family, today, false, ret_problem);
	if (r == 0)
		r = keep_changed(family, today, true, ret_problem);
	if (r == 0)
		r = log_rows_commit(rows, ret_problem);
	if (r < 0)
		log_rows_undo(rows);
	return r;
}

int log_family_settle(struct log_family *family, struct problem *ret_problem)
{
	int r = load_rows(family, ret_problem);
	if (r == 0)
		r = log_match_by_identity(family, ret_problem);
	if (r == 0)
		r = log_match_by_content(family, ret_problem);
	if (r == 0)
		r = log_match_new(family, ret_problem);
	return r < 0 ? r : keep(family, ret_problem);
}
