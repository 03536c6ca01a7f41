/* Hands out the uploads for growing logs: whole files of the last listing or pieces of them, family
 * by family. Also makes the copy of a piece that is sent. rotation.c asks for the next file, and
 * the workers ask for copies.
 *
 * log_match.c finds out which log each file has. The rows of the logs are kept before any piece is
 * handed out, so that every run finds the same pieces. */
#include "scan/rotated/growing_logs.h"
#include "base/files.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sets the sentence for a piece that could not be copied because of this error. `was_made`: the
 * file for the copy could be made. `why` is the sentence of the reading, or "". Other errors stay
 * without a sentence. */
static void explain_failed_copy(const struct scan_entry *found, int error, bool was_made,
	const struct problem *why, struct problem *ret_problem)
{
	const bool is_full = error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
	/* If the process is out of descriptors, another folder would not help. */
	const bool lacks_descriptors = error == -EMFILE || error == -ENFILE;
	const bool is_of_folder = was_made ? is_full : !lacks_descriptors;
	if (error == -ESTALE)
		problem_set(ret_problem,
			"no longer contains the %llu bytes from byte %llu on that were to be "
			"uploaded; the next run takes what is there then",
			(unsigned long long)found->size, (unsigned long long)found->offset);
	else if (*why->text)
		*ret_problem = *why;
	else if (is_of_folder)
		problem_set(ret_problem,
			"no copy of %llu bytes of it could be made in %s (%s); name another folder "
			"in SQLITE_TMPDIR, which has room and lets this user write",
			(unsigned long long)found->size, quote(temporary_folder()).text,
			strerror(-error));
}

int growing_logs_copy_piece(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem)
{
	const struct scan_options *options = source->options;
	char id[CONTENT_ID_CHARS + 1];
	struct file_state state;
	struct problem why = {.text = ""};
	const int fd = source_open_inode(source, found->relative, found->dev, found->ino, &state);
	if (fd < 0)
		return fd;
	const int copy_fd = make_unnamed_file(temporary_folder());
	const struct content content = {fd, state.size, options->abandon, options->abandon_arg};
	const struct content_range range = {
		.from = found->offset, .to = found->offset + found->size, .copy_fd = copy_fd};
	int r = copy_fd < 0 ? copy_fd : content_copy(&content, &range, id, &why);
	close(fd);
	/* The file may have been emptied and written anew since the piece was cut. */
	if (r == 0 && strcmp(id, found->content_id) != 0)
		r = -ESTALE;
	if (r == 0)
		r = file_state_of(copy_fd, ret_state);
	if (r == 0)
		return copy_fd;
	explain_failed_copy(found, r, copy_fd >= 0, &why, ret_problem);
	if (copy_fd >= 0)
		close(copy_fd);
	return r;
}

/* The number of days with a run for which a log is searched after its file is gone. logrotate's
 * renamecopy gives the file a name of another family for a moment, and the log may be compressed
 * while no run looks. */
#define MISSING_DAYS 7
#define ATTEMPTS     5 /* the most attempts to keep rows that other runs change */

static void clear_rows(struct log_family *family)
{
	for (size_t k = 0; k < family->n_rows; k++)
		log_row_clear(&family->rows[k]);
	free(family->rows);
	family->rows = NULL;
	family->n_rows = 0;
}

/* Reads the rows of the family, and makes room for a new row of each file. Returns 0, or -errno
 * with a sentence. */
static int load_rows(struct log_family *family, struct problem *ret_problem)
{
	clear_rows(family);
	const int r = log_rows_load(family->options->log_rows, &family->name, &family->rows,
		&family->n_rows, ret_problem);
	if (r < 0)
		return r;
	struct log_row *rows =
		reallocarray(family->rows, family->n_rows + family->n_files, sizeof *rows);
	family->rows = rows ? rows : family->rows;
	return rows ? 0 : scan_no_memory(ret_problem);
}

/* Reports that a live log is lost, unless the family has a notice already. `is_emptied`: its file
 * was emptied; otherwise the file is gone. */
static void notice_loss(struct log_family *family, const struct log_row *row, bool is_emptied)
{
	if (*family->notice.text)
		return;
	problem_set(&family->notice,
		is_emptied ? "%s was emptied after %llu bytes of it were taken, and no "
			     "file here is known as their copy; a copy that was made "
			     "before the last of them were written, or in another folder "
			     "(logrotate's olddir), is uploaded as a whole"
			   : "%s disappeared after %llu bytes of it were taken, and no file "
			     "here is known to have them; if it was moved to another "
			     "folder (logrotate's olddir), it is uploaded there as a whole",
		quote(family->name.family).text, (unsigned long long)row->end);
}

/* Updates the days on which the file of this log was there, and drops the row of a log that is
 * lost, in two cases. Either its file was missing for MISSING_DAYS. Or its file was emptied and no
 * other file has the log, unless a file of the family may have it that was missed, could not be
 * judged or has to wait. If the row of an emptied log stayed, new lines equal to its first lines
 * would be taken for the old ones. */
static void update_days(struct log_family *family, struct log_row *row, int64_t today)
{
	const bool is_emptied = row->state == LOG_TRUNCATED && !family->may_lack_files;
	const bool was_missing_too_long =
		row->state == LOG_LOOSE && row->missing && today - row->missing >= MISSING_DAYS;
	if (is_emptied || was_missing_too_long) {
		if (row->was_live)
			notice_loss(family, row, is_emptied);
		row->change = LOG_LOST;
	} else if (row->state == LOG_TAKEN && (row->seen != today || row->missing)) {
		row->seen = today;
		row->missing = 0;
		row->change = LOG_CHANGED;
	} else if (row->state == LOG_LOOSE && !row->missing && !family->may_lack_files) {
		row->missing = today;
		row->change = LOG_CHANGED;
	}
}

/* Updates the rows, and writes those that have changed. Returns 0; -EAGAIN if another run has
 * changed one of them; or another -errno with a sentence. */
static int keep_rows(struct log_family *family, struct problem *ret_problem)
{
	struct log_rows *rows = family->options->log_rows;
	bool has_changes = false;
	if (family->options->read_only)
		return 0;
	for (size_t k = 0; k < family->n_rows; k++) {
		update_days(family, &family->rows[k], log_rows_today(rows));
		has_changes |= family->rows[k].change != LOG_UNCHANGED;
	}
	if (!has_changes)
		return 0;
	return log_rows_keep(rows, &family->name, family->rows, family->n_rows, ret_problem);
}

/* Reads the next entry of the listing into logs->ahead: it belongs to the present family or begins
 * the next one. Returns 0, also at the end of the listing, or -errno with a sentence. */
static int look_ahead(struct growing_logs *logs, struct problem *ret_problem)
{
	const int r = rotation_table_next(logs->table, ROTATION_ALL, &logs->ahead, ret_problem);
	logs->ahead_name = r > 0 ? rotation_table_family(logs->table) : NULL;
	return r < 0 ? r : 0;
}

void growing_logs_clear(struct growing_logs *logs)
{
	for (size_t i = 0; i < logs->family.n_files; i++)
		free(logs->family.files[i].relative);
	free(logs->family.files);
	clear_rows(&logs->family);
	free(logs->name);
	logs->name = NULL;
	logs->family = (struct log_family){.n_files = 0};
	logs->file = logs->piece = 0;
}

/* Adds a copy of the entry, which stays when the listing goes on. Returns 0 or -ENOMEM. */
static int add_file(struct log_family *family, const struct scan_entry *entry)
{
	struct grown_file *files = reallocarray(family->files, family->n_files + 1, sizeof *files);
	if (!files)
		return -ENOMEM;
	family->files = files;
	struct grown_file *file = &files[family->n_files];
	struct family name;
	family_of(family->options->rotated, path_name(entry->relative), &name);
	*file = (struct grown_file){.listed = *entry,
		.relative = strdup(entry->relative),
		.is_live = !entry->is_rotated,
		.moment = family_moment(&name)};
	if (!file->relative)
		return -ENOMEM;
	family->n_files++;
	file->listed.relative = file->relative;
	file->listed.suffix = file->relative + strlen(file->relative) - strlen(entry->suffix);
	return 0;
}

/* Reads the files of the next family, the first of which is logs->ahead. Returns 0, or -errno with
 * a sentence. */
static int gather_family(struct growing_logs *logs, struct problem *ret_problem)
{
	struct log_family *family = &logs->family;
	struct source *source = &logs->sources[logs->ahead.source];
	int r = 0;
	growing_logs_clear(logs);
	family->source = source;
	family->options = source->options;
	logs->name = strdup(logs->ahead_name);
	if (!logs->name)
		return scan_no_memory(ret_problem);
	family->name = (struct log_family_name){
		.directory = source->directory ? source->directory : "", .family = logs->name};
	while (r == 0 && logs->ahead_name && logs->ahead.source == source->index &&
		strcmp(logs->ahead_name, logs->name) == 0)
		r = add_file(family, &logs->ahead) ? scan_no_memory(ret_problem)
						   : look_ahead(logs, ret_problem);
	return r;
}

/* Resets the files to what is known of them by the listing. A notice of an earlier attempt stays,
 * since log_rows_note_once() asks for it only once. Returns the number of files that are to be
 * uploaded. */
static size_t reset_files(struct log_family *family)
{
	size_t n = 0;
	for (size_t i = 0; i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		*file = (struct grown_file){.listed = file->listed,
			.relative = file->relative,
			.is_live = file->is_live,
			.moment = file->moment,
			.entry = file->listed};
		n += file->listed.kind == SCAN_FILE;
	}
	return n;
}

/* Makes each file that was to be uploaded a PROBLEM with this sentence. */
static void refuse_family(struct log_family *family, const char *sentence)
{
	reset_files(family);
	for (size_t i = 0; i < family->n_files; i++) {
		struct scan_entry *entry = &family->files[i].entry;
		if (entry->kind != SCAN_FILE)
			continue;
		entry->kind = SCAN_PROBLEM;
		problem_set(&entry->problem, "%s", sentence);
	}
}

/* Finds the log of each file, cuts new pieces, and keeps the rows. If another run has changed the
 * rows meanwhile, all of this begins again. A family without files to upload stays as the listing
 * found it. Returns 0, or -errno with a sentence. */
static int match_family(struct growing_logs *logs, struct problem *ret_problem)
{
	struct log_family *family = &logs->family;
	if (family->source->directory_fd < 0) {
		refuse_family(family, "is a single file: with --live, name its folder");
		return 0;
	}
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (!reset_files(family))
			return 0;
		family->may_lack_files = !logs->is_complete;
		int r = load_rows(family, ret_problem);
		if (r == 0)
			r = log_match(family, ret_problem);
		if (r == 0)
			r = keep_rows(family, ret_problem);
		if (r != -EAGAIN)
			return r;
	}
	refuse_family(family, "is left for the next run: another run is at work on its logs");
	return 0;
}

/* Makes entry i of the file, from 0 on. The entries are the pieces of its log or, without a log,
 * the file itself. If two files have the same log, only the file that the row identifies hands out
 * its pieces. Returns 1, or 0 if the file has no more entries. */
static int entry_of_file(const struct grown_file *file, size_t i, struct scan_entry *ret)
{
	const struct log_row *row = file->row;
	*ret = file->entry;
	const bool is_one_entry = file->entry.kind != SCAN_FILE || !row || file->is_whole;
	if (is_one_entry)
		return i == 0;
	const bool hands_out_pieces = log_row_is_of(row, file);
	if (!hands_out_pieces || i >= row->n_pieces)
		return 0;
	const struct log_piece *piece = &row->pieces[i];
	ret->is_rotated = ret->is_piece = true;
	ret->offset = piece->start;
	/* This run has cut each piece that was not in the database. The first piece never counts as
	 * new, since it may be in S3 as a whole file. */
	ret->is_new = i > 0 && i >= row->n_kept;
	ret->size = piece->end - piece->start;
	ret->mtime_ns = piece->mtime_ns;
	memcpy(ret->content_id, piece->id, sizeof ret->content_id);
	return 1;
}

/* Makes the next entry of the family: its notice, then the entries of its files. Returns 1, or 0 if
 * there are no more. */
static int next_of_family(struct growing_logs *logs, struct scan_entry *ret)
{
	struct log_family *family = &logs->family;
	if (*family->notice.text) {
		*ret = (struct scan_entry){.kind = SCAN_NOTICE,
			.suffix = "",
			.relative = ".",
			.source = family->source->index,
			.problem = family->notice};
		*family->notice.text = '\0';
		return 1;
	}
	for (; logs->file < family->n_files; logs->file++, logs->piece = 0)
		if (entry_of_file(&family->files[logs->file], logs->piece++, ret))
			return 1;
	return 0;
}

int growing_logs_next(
	struct growing_logs *logs, struct scan_entry *ret, struct problem *ret_problem)
{
	/* Before the first family there is no source. */
	int r = logs->family.source ? 0 : look_ahead(logs, ret_problem);
	while (r == 0 && !next_of_family(logs, ret)) {
		if (!logs->ahead_name)
			return 0;
		r = gather_family(logs, ret_problem);
		if (r == 0)
			r = match_family(logs, ret_problem);
	}
	return r < 0 ? r : 1;
}
