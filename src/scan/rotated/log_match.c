/* Which log each file of a family has: the one that its identity had, if it still begins with that
 * log's bytes; else one that was copied or compressed to it, which these bytes tell; else a new
 * one. All files are looked at for the first before any is for the second, so that two logs that
 * begin alike stay two. What is new of a log is cut here, too: a piece of a live log ends where its
 * last line does. growing_logs.c calls it for one family after the other, and writes down
 * what was found out. Files are only read here. */
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include "scan/open.h"
#include "scan/rotated/growing_logs.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES  65536
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

/* The file has to wait for a later run. */
static void let_wait(struct log_family *family, struct grown_file *file)
{
	file->entry.kind = SCAN_YOUNG;
	family->has_waiting |= !file->is_live;
}

/* The file could not be read: it waits, or becomes a PROBLEM. 0, or the error if nothing can go on,
 * with a sentence. The file may have a sentence already. */
static int tell_unread(
	struct log_family *family, struct grown_file *file, int error, struct problem *ret_problem)
{
	if (open_cannot_go_on(error, ret_problem))
		return error;
	family->is_unsure = true;
	if (error == -ESTALE || error == -ENOENT || error == -ENOTDIR || error == -ELOOP) {
		let_wait(family, file); /* it was renamed, removed or emptied just now */
		return 0;
	}
	file->entry.kind = SCAN_PROBLEM;
	return open_tell_unread(error, &file->entry.problem, ret_problem);
}

/* Compressing keeps the time, but not what is below a second of it. */
static bool is_same_second(int64_t a_ns, int64_t b_ns)
{
	return a_ns / (int64_t)NS_PER_S == b_ns / (int64_t)NS_PER_S;
}

/* The file is to be uploaded, and is not known to have a log yet. */
static bool needs_log(const struct grown_file *file)
{
	return file->entry.kind == SCAN_FILE && file->identity.n && !file->row;
}

bool grown_file_had(const struct grown_file *file, const struct log_row *row)
{
	return file->identity.n && file->identity.n == row->identity.n &&
	       memcmp(file->identity.bytes, row->identity.bytes, row->identity.n) == 0;
}

/* Opens the file of that entry, whatever its name is now. The descriptor or -errno. */
static int open_file(const struct log_family *family, const struct grown_file *file,
	struct file_state *ret_state)
{
	const struct scan_entry *entry = &file->entry;
	return source_open_inode(
		family->source, entry->relative, entry->dev, entry->ino, ret_state);
}

/* Where the last line ends in these bytes; from if none does. */
static int find_line_end(int fd, uint64_t from, uint64_t to, uint64_t *ret_end)
{
	char bytes[CHUNK_BYTES];
	for (uint64_t at = to; at > from;) {
		const size_t want = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes;
		at -= want;
		const long n = read_at(fd, bytes, want, at);
		if (n < 0)
			return (int)n;
		const char *end = memrchr(bytes, '\n', want);
		if (end) {
			*ret_end = at + (size_t)(end - bytes) + 1;
			return 0;
		}
	}
	*ret_end = from;
	return 0;
}

/* Measures what may be uploaded of the file: all of a rotated one, and of a live one what is there
 * up to the last line end behind the first prefix. 0 or -errno, perhaps with the file's problem. */
static int measure(const struct log_family *family, struct grown_file *file,
	struct content_prefix *prefixes, size_t n, struct content_measured *ret)
{
	const struct scan_options *options = family->options;
	const uint64_t from = n ? prefixes[0].bytes : 0;
	struct file_state now;
	struct content content = {open_file(family, file, &now), file->state.size, options->is_over,
		options->is_over_arg};
	int r = content.fd < 0 ? content.fd : 0;
	if (r == 0 && file->is_live && content.size > from)
		r = find_line_end(content.fd, from, content.size, &content.size);
	if (r == 0)
		r = content_measure(&content, prefixes, n, ret, &file->entry.problem);
	if (content.fd >= 0)
		close(content.fd);
	return r;
}

/* The file has this log, whose row's only piece may be what the file contains. */
static void set_log(struct grown_file *file, struct log_row *row)
{
	file->row = row;
	file->is_whole = !file->is_live && !file->has_grown && row->n_pieces == 1 &&
			 is_same_second(file->state.mtime_ns, row->pieces[0].mtime_ns);
	row->state = LOG_TAKEN;
}

/* The file has this log by what was found in it. What is new is cut as the next piece. 0 or
 * -ENOMEM. */
static int take_log(const struct log_family *family, struct grown_file *file, struct log_row *row,
	const struct content_measured *found)
{
	const bool is_new = found->bytes > row->end || !row->n_pieces;
	file->has_grown = is_new && row->n_pieces && family->options->refuses_grown;
	if (is_new && !file->has_grown) {
		struct log_piece piece = {
			.start = row->end, .end = found->bytes, .mtime_ns = file->state.mtime_ns};
		memcpy(piece.id, found->rest, sizeof piece.id);
		if (log_row_add_piece(row, &piece))
			return -ENOMEM;
		row->end = found->bytes;
		memcpy(row->until, found->id, sizeof row->until);
	}
	const bool is_settled =
		!file->has_grown && file->state.mtime_ns < clock_wall_ns() - TOO_FRESH_NS;
	row->identity = file->identity;
	row->file_size = is_settled ? file->state.size : LOG_SIZE_UNSETTLED;
	row->file_mtime_ns = file->state.mtime_ns;
	row->was_live = file->is_live;
	row->moment = file->moment;
	row->change = LOG_CHANGED;
	set_log(file, row);
	return 0;
}

/* It was compared, and has not been touched since. What a live file had behind its last line end
 * counts once it is rotated. */
static bool is_as_it_was(const struct grown_file *file, const struct log_row *row)
{
	return file->state.mtime_ns == row->file_mtime_ns && file->state.size == row->file_size &&
	       file->is_live == row->was_live;
}

/* The file that had this log is the same one still. Does it contain it? */
static int match_own(struct log_family *family, struct grown_file *file, struct log_row *row)
{
	struct content_prefix known = {.bytes = row->end, .id = row->until};
	struct content_measured found = {0};
	if (row->state == LOG_TAKEN) {
		file->entry.kind = SCAN_PROBLEM;
		return problem_error(&file->entry.problem, 0,
			"is another name (a hard link) of a log of this family; remove it, or "
			"exclude it");
	}
	row->state = LOG_WAITS;
	if (file->entry.kind == SCAN_YOUNG)
		return 0;
	if (is_as_it_was(file, row)) {
		set_log(file, row);
		return 0;
	}
	const int r = measure(family, file, &known, 1, &found);
	if (r == 0 && !known.is_there)
		row->state = LOG_TRUNCATED;
	return r == 0 && known.is_there ? take_log(family, file, row, &found) : r;
}

/* Opens the file for its identity, and finds the log that it had. A file that is as it was is not
 * read. */
static int match_by_identity(struct log_family *family, struct grown_file *file)
{
	struct log_row *own = NULL;
	if (!entry_is_file(&file->entry)) {
		family->is_unsure = true;
		return 0;
	}
	if (file->entry.kind == SCAN_YOUNG)
		let_wait(family, file);
	const int fd = open_file(family, file, &file->state);
	if (fd < 0)
		return fd;
	const bool has_identity = file_identity_of(fd, &file->identity) == 0;
	for (size_t k = 0; k < family->n_rows && !own; k++)
		if (grown_file_had(file, &family->rows[k]))
			own = &family->rows[k];
	int packed = 0;
	if (file->entry.kind == SCAN_FILE && !(own && is_as_it_was(file, own)))
		packed = content_seems_compressed(fd);
	close(fd);
	file->is_packed = packed == 1;
	family->is_unsure |= !has_identity;
	if (!has_identity && file->entry.kind == SCAN_FILE) {
		file->entry.kind = SCAN_PROBLEM;
		problem_set(&file->entry.problem,
			"is on a file system without lasting file handles, by which --live and "
			"--if-grown know a log that grew; run without these options");
	}
	if (packed < 0) {
		if (own && own->state != LOG_TAKEN)
			own->state = LOG_WAITS;
		return packed;
	}
	/* A rotated file is what the listing found, or waits. */
	if (file->entry.kind == SCAN_FILE && !file->is_live &&
		(file->state.size != file->entry.size ||
			file->state.mtime_ns != file->entry.mtime_ns))
		let_wait(family, file);
	return own ? match_own(family, file, own) : 0;
}

/* Whether the file is a copy of this log, since it begins with its bytes: logs of two days may be
 * equal, but compressing and decompressing keep the time, or, as the kubelet does it, a name that
 * no other log has. */
static bool is_copy(const struct grown_file *file, const struct log_row *row,
	const struct content_measured *found)
{
	if (row->state == LOG_TRUNCATED || row->was_live)
		return true;
	if (found->bytes != row->end)
		return file->is_packed;
	return (file->moment && file->moment == row->moment) ||
	       is_same_second(file->state.mtime_ns, row->file_mtime_ns);
}

/* Finds the log that was copied or compressed to the file, by its first bytes: the longest of the n
 * free ones, which are in order of their ends. `known` has room for them. */
static int take_copied(struct log_family *family, struct grown_file *file, struct log_row **logs,
	struct content_prefix *known, size_t n)
{
	struct content_measured found = {0};
	struct log_row *row = NULL;
	for (; n && !row; n--) {
		for (size_t k = 0; k < n; k++)
			known[k] = (struct content_prefix){logs[k]->end, logs[k]->until, false};
		const int r = measure(family, file, known, n, &found);
		if (r < 0)
			return r;
		while (n > 1 && !known[n - 1].is_there)
			n--;
		if (known[n - 1].is_there && is_copy(file, logs[n - 1], &found))
			row = logs[n - 1];
	}
	if (!row)
		return 0;
	/* A file that is not there for us, or could not be read, may be the one that has it. */
	if (row->state == LOG_WAITS || (family->is_unsure && row->state == LOG_LOOSE))
		return -ESTALE;
	if (row->state == LOG_TRUNCATED &&
		log_rows_tells(family->options->log_rows, &family->name, "copytruncate"))
		problem_set(&family->notice,
			"%s was copied to %s and emptied (copytruncate): what was written between "
			"the two is lost, whoever uploads the copy; logrotate's create loses "
			"nothing",
			quote(family->name.family).text, quote(file->relative).text);
	return take_log(family, file, row, &found);
}

/* Finds the logs that were copied or compressed to another file. */
static int match_by_content(struct log_family *family, struct grown_file *file)
{
	size_t n = 0;
	if (!needs_log(file) || file->is_live)
		return 0;
	struct log_row **logs = calloc(family->n_rows + 1, sizeof(struct log_row *));
	struct content_prefix *known = calloc(family->n_rows + 1, sizeof *known);
	for (size_t k = 0; logs && k < family->n_rows; k++)
		if (family->rows[k].end && family->rows[k].state != LOG_TAKEN)
			logs[n++] = &family->rows[k];
	const int r = logs && known ? take_copied(family, file, logs, known, n) : -ENOMEM;
	free(known);
	free(logs);
	return r;
}

/* Whether a file without a log may be a copy of the live file, which is to be emptied next
 * (copytruncate), or has just been. Then it waits: it is known once that has happened. One reading
 * tells both whether the live file begins with all of the file, and that it is not emptied yet. */
static int may_be_copy(const struct log_family *family, struct grown_file *file, bool *ret)
{
	const struct content_prefix whole = {file->state.size, file->entry.content_id, false};
	struct content_prefix known[2] = {whole, whole};
	struct content_measured found = {0};
	const struct scan_options *options = family->options;
	const struct grown_file *live = NULL;
	struct file_state now;
	for (size_t i = 0; i < family->n_files && !live; i++)
		if (family->files[i].is_live &&
			(family->files[i].row || needs_log(&family->files[i])))
			live = &family->files[i];
	*ret = false;
	if (!live || file->is_live || !file->state.size)
		return 0;
	const bool is_shorter = live->row && file->state.size < live->row->end;
	struct content_prefix *old = &known[is_shorter];
	if (live->row)
		*old = (struct content_prefix){live->row->end, live->row->until, false};
	const int fd = open_file(family, live, &now);
	const struct content content = {fd, now.size, options->is_over, options->is_over_arg};
	const int r =
		fd < 0 ? fd : content_measure(&content, known, 2, &found, &file->entry.problem);
	if (fd >= 0)
		close(fd);
	*ret = r == 0 && (known[!is_shorter].is_there || (live->row && !old->is_there));
	return r;
}

/* The log that another rotated file has, and that this one contains as well, or NULL: one log may
 * be there in two compressions, or copied. Equal logs of two days differ in their time. */
static struct log_row *find_same_log(const struct log_family *family, const struct grown_file *file)
{
	for (size_t k = 0; !file->is_live && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (row->state == LOG_TAKEN && !row->was_live && row->end && *row->until &&
			strcmp(file->entry.content_id, row->until) == 0 &&
			is_same_second(file->state.mtime_ns, row->file_mtime_ns))
			return row;
	}
	return NULL;
}

/* The file begins a log, unless it may be a copy, or has nothing yet. The content of a rotated file
 * was read already for its id. */
static int begin_log(struct log_family *family, struct grown_file *file)
{
	struct content_measured found = {.bytes = file->state.size};
	bool is_copy_of_live;
	int r = may_be_copy(family, file, &is_copy_of_live);
	memcpy(found.id, file->entry.content_id, sizeof found.id);
	memcpy(found.rest, file->entry.content_id, sizeof found.rest);
	if (r == 0 && !is_copy_of_live && (file->is_live || file->is_packed))
		r = measure(family, file, NULL, 0, &found);
	if (r < 0)
		return r;
	/* A live file may have no line yet, or be no log. */
	if (is_copy_of_live || (file->is_live && (!found.bytes || file->is_packed))) {
		let_wait(family, file);
		return 0;
	}
	struct log_row *row = &family->rows[family->n_rows++];
	*row = (struct log_row){.number = 0};
	return take_log(family, file, row, &found);
}

/* A new log for a file that has none yet, unless it shares one with another file. */
static int match_new(struct log_family *family, struct grown_file *file)
{
	if (!needs_log(file))
		return 0;
	struct log_row *same = find_same_log(family, file);
	/* Whether it had another log, of which it is not known yet where it is now. */
	bool awaits_old = false;
	for (size_t k = 0; (family->is_unsure || family->has_waiting) && k < family->n_rows; k++)
		awaits_old |= family->rows[k].state == LOG_TRUNCATED &&
			      grown_file_had(file, &family->rows[k]);
	if (awaits_old)
		let_wait(family, file);
	else if (same)
		set_log(file, same);
	else
		return begin_log(family, file);
	return 0;
}

int log_match(struct log_family *family, struct problem *ret_problem)
{
	static int (*const passes[])(struct log_family *, struct grown_file *) = {
		match_by_identity, match_by_content, match_new};
	for (size_t pass = 0; pass < sizeof passes / sizeof *passes; pass++)
		for (size_t i = 0; i < family->n_files; i++) {
			struct grown_file *file = &family->files[i];
			int r = passes[pass](family, file);
			if (r < 0)
				r = tell_unread(family, file, r, ret_problem);
			if (r < 0)
				return r;
		}
	return 0;
}
