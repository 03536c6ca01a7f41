/* Measures the files of growing logs, and cuts the bytes that a log has gained into its next piece.
 * A piece is never changed after it was cut, so a file that may end in the middle of a line is cut
 * after its last whole one. Files are only read here. */
#include "scan/rotated/log_growth.h"
#include "base/clock.h"
#include "base/files.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES 65536
/* A file system may count modification times in steps of two seconds. */
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

bool grown_file_has_family_name(const struct log_family *family, const struct grown_file *file)
{
	return strcmp(file->entry.relative, family->name.family) == 0;
}

bool grown_file_may_end_in_line(const struct grown_file *file)
{
	return file->is_live || file->is_being_written;
}

int grown_file_open(const struct log_family *family, const struct grown_file *file,
	struct file_state *ret_state)
{
	const struct scan_entry *entry = &file->entry;
	return source_open_inode(
		family->source, entry->relative, entry->dev, entry->ino, ret_state);
}

bool is_same_second(int64_t a_ns, int64_t b_ns)
{
	return a_ns / (int64_t)NS_PER_S == b_ns / (int64_t)NS_PER_S;
}

int log_still_begins(const struct content *content, const struct log_row *row, bool *ret)
{
	char edges[CONTENT_ID_CHARS + 1];
	*ret = false;
	if (content->size < row->end)
		return 0;
	const int r = content_edges(content, row->end, edges);
	*ret = r == 0 && strcmp(edges, row->edges) == 0;
	return r == -ESTALE ? 0 : r; /* the file is shorter than the log by now */
}

/* Sets *ret_end to the offset after the last newline between the offsets from and to, or to from if
 * there is none. Reads backwards, since a line is short and the file may be large. Returns 0 or
 * -errno. */
static int find_line_end(int fd, uint64_t from, uint64_t to, uint64_t *ret_end)
{
	char bytes[CHUNK_BYTES];
	for (uint64_t at = to; at > from;) {
		const size_t want = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes;
		at -= want;
		const long n = read_at(fd, bytes, want, at);
		if (n < 0)
			return (int)n;
		const char *newline = memrchr(bytes, '\n', want);
		if (newline) {
			*ret_end = at + (size_t)(newline - bytes) + 1;
			return 0;
		}
	}
	*ret_end = from;
	return 0;
}

/* Measures the bytes after the log's end in the file that had the log in an earlier run. Sets
 * prefix->is_there to whether the file still begins with the log; if it does not, *ret is
 * untouched. Returns 0 or -errno. */
static int measure_behind_log(const struct content *content, const struct log_row *row,
	struct content_prefix *prefix, struct content_measured *ret)
{
	const int r = log_still_begins(content, row, &prefix->is_there);
	if (r < 0 || !prefix->is_there)
		return r;
	return content_measure_more(content, &row->sha256, prefix, ret);
}

int grown_file_measure(const struct log_family *family, struct grown_file *file,
	const struct log_row *own, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret)
{
	const struct scan_options *options = family->options;
	const uint64_t first_prefix_bytes = n ? prefixes[0].bytes : 0;
	struct file_state ignored;
	const int fd = grown_file_open(family, file, &ignored);
	/* The size is the one that log_match() has found: later lines are left to the next run. */
	struct content content = {fd, file->state.size, options->abandon, options->abandon_arg};
	int r = fd < 0 ? fd : 0;
	if (r == 0 && grown_file_may_end_in_line(file) && content.size > first_prefix_bytes)
		r = find_line_end(fd, first_prefix_bytes, content.size, &content.size);
	file->has_rest = content.size < file->state.size;
	/* The edges are read before the file is measured, and again at the end of that. If they
	 * differ, the file was overwritten meanwhile. */
	char edges[CONTENT_ID_CHARS + 1];
	if (r == 0)
		r = content_edges(&content, content.size, edges);
	const bool knows_edges = own && *own->edges; /* so that the log itself need not be read */
	if (r == 0 && knows_edges)
		r = measure_behind_log(&content, own, prefixes, ret);
	else if (r == 0)
		r = content_measure(&content, prefixes, n, ret, &file->entry.problem);
	if (r == 0 && *ret->edges && strcmp(ret->edges, edges) != 0)
		r = -ESTALE;
	if (fd >= 0)
		close(fd);
	return r;
}

void grown_file_take_log(struct grown_file *file, struct log_row *row)
{
	/* A file that is the log's only piece is uploaded as it is, and not as a piece. For this
	 * its time has to be that of the piece, since the template may use it in the key. */
	const bool is_finished = !file->is_live && !file->has_rest;
	file->row = row;
	file->is_whole = is_finished && row->n_pieces == 1 &&
			 is_same_second(file->state.mtime_ns, row->pieces[0].mtime_ns);
	row->state = LOG_TAKEN;
}

void log_row_note_name(
	const struct log_family *family, const struct grown_file *file, struct log_row *row)
{
	const bool is_live = grown_file_has_family_name(family, file);
	if (row->was_live == is_live && row->moment == file->moment)
		return;
	row->was_live = is_live;
	row->moment = file->moment;
	row->change = LOG_CHANGED;
}

/* Adds to the log, as its next piece, the bytes of the file after the log's end. `found` is the
 * measured file. Returns 0 or -ENOMEM. */
static int add_next_piece(
	const struct grown_file *file, struct log_row *row, const struct content_measured *found)
{
	struct log_piece piece = {
		.start = row->end, .end = found->bytes, .mtime_ns = file->state.mtime_ns};
	memcpy(piece.id, found->rest, sizeof piece.id); /* of the bytes after the log's end */
	if (log_row_add_piece(row, &piece))
		return -ENOMEM;
	row->end = found->bytes;
	memcpy(row->until, found->id, sizeof row->until); /* of all bytes */
	return 0;
}

int log_row_extend(const struct log_family *family, struct grown_file *file, struct log_row *row,
	const struct content_measured *found)
{
	const bool has_grown = found->bytes > row->end;
	const bool is_new = row->n_pieces == 0;
	if ((has_grown || is_new) && add_next_piece(file, row, found))
		return -ENOMEM;
	/* A later run skips a file of the same size and time. It must not skip one that was written
	 * a moment ago, or whose unfinished line was left out: that line becomes a piece once the
	 * file is finished. */
	const bool is_settled = !file->has_rest && !file->is_being_written &&
				file->state.mtime_ns < clock_wall_ns() - TOO_FRESH_NS;
	row->identity = file->identity;
	row->file_size = is_settled ? file->state.size : LOG_SIZE_UNSETTLED;
	row->file_mtime_ns = file->state.mtime_ns;
	row->was_packed = file->is_packed;
	memcpy(row->edges, found->edges, sizeof row->edges);
	row->sha256 = found->sha256;
	log_row_note_name(family, file, row);
	row->change = LOG_CHANGED;
	grown_file_take_log(file, row);
	return 0;
}
