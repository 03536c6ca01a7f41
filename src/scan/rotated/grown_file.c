#include "scan/rotated/grown_file.h"
#include "base/clock.h"
#include "scan/open.h"
#include "scan/scan_over.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES  65536
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

void grown_file_waits(struct log_family *family, struct grown_file *file)
{
	file->entry.kind = SCAN_YOUNG;
	family->has_waiting |= !file->is_live;
}

int grown_file_not_read(struct log_family *family, struct grown_file *file, int error,
	const struct problem *why, struct problem *ret_problem)
{
	if (error == -ECANCELED)
		return scan_may_be_over(family->options, ret_problem);
	if (open_out_of_resources(error, ret_problem))
		return error;
	family->is_unsure = true;
	if (error == -ESTALE || error == -ENOENT || error == -ENOTDIR || error == -ELOOP) {
		grown_file_waits(family, file); /* it was renamed, removed or emptied just now */
		return 0;
	}
	file->entry.kind = SCAN_PROBLEM;
	if (*why->text)
		file->entry.problem = *why;
	else
		open_explain_unread(error, &file->entry.problem);
	return 0;
}

int grown_file_open(const struct log_family *family, const struct grown_file *file)
{
	struct file_state state;
	return source_open_inode(family->source, &file->entry, &state);
}

/* Where the last line end in these bytes is followed by the next line; from if there is none. */
static int find_line_end(int fd, uint64_t from, uint64_t to, uint64_t *ret_end)
{
	char bytes[CHUNK_BYTES];
	for (uint64_t at = to; at > from;) {
		const size_t want = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes;
		const ssize_t n = pread(fd, bytes, want, (off_t)(at - want));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n < want)
			return -ESTALE;
		for (size_t i = want; i-- > 0;) {
			if (bytes[i] == '\n') {
				*ret_end = at - want + i + 1;
				return 0;
			}
		}
		at -= want;
	}
	*ret_end = from;
	return 0;
}

int grown_file_end(const struct grown_file *file, int fd, uint64_t from, uint64_t *ret_end)
{
	*ret_end = file->state.size;
	if (!file->is_live || file->state.size <= from)
		return 0;
	return find_line_end(fd, from, file->state.size, ret_end);
}

static struct content content_of(
	const struct log_family *family, const struct grown_file *file, int fd)
{
	return (struct content){
		fd, file->state.size, family->options->is_over, family->options->is_over_arg};
}

int grown_file_points(const struct log_family *family, const struct grown_file *file, int fd,
	struct content_point *points, size_t n, uint64_t *ret_size, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_points(&content, points, n, ret_size, ret_why);
}

int grown_file_range(const struct log_family *family, const struct grown_file *file, int fd,
	const struct content_range *range, struct content_range_ids *ret, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_range(&content, range, ret, ret_why);
}

bool log_is_same_id(const char *a, const char *b)
{
	return *a && strcmp(a, b) == 0;
}

int64_t log_seconds(int64_t ns)
{
	return ns / (int64_t)NS_PER_S;
}

bool grown_file_is_open(const struct grown_file *file)
{
	return file->entry.kind == SCAN_FILE && file->has_identity && !file->row;
}

bool grown_file_is_whole(const struct grown_file *file, const struct log_row *row)
{
	return !file->is_live && !file->has_grown && row->n_pieces == 1 &&
	       log_seconds(file->state.mtime_ns) == log_seconds(row->pieces[0].mtime_ns);
}

int grown_file_take(struct log_family *family, struct grown_file *file, struct log_row *row,
	uint64_t end, const struct content_range_ids *ids)
{
	const bool is_new = end > row->end || !row->n_pieces;
	file->has_grown = is_new && row->n_pieces && family->options->refuses_grown;
	if (is_new && !file->has_grown) {
		struct log_piece piece = {
			.start = row->end, .end = end, .mtime_ns = file->state.mtime_ns};
		memcpy(piece.id, ids->range, sizeof piece.id);
		if (log_row_add_piece(row, &piece))
			return -ENOMEM;
		row->end = end;
		memcpy(row->until, ids->until, sizeof row->until);
	}
	const bool is_settled =
		!file->has_grown && file->state.mtime_ns < clock_wall_ns() - TOO_FRESH_NS;
	row->identity = file->identity;
	row->file_size = is_settled ? file->state.size : LOG_SIZE_UNSETTLED;
	row->file_mtime_ns = file->state.mtime_ns;
	row->was_live = file->is_live;
	file->row = row;
	file->is_changed = true;
	file->is_whole = grown_file_is_whole(file, row);
	family->states[row - family->rows] = LOG_TAKEN;
	return 0;
}

bool grown_file_had(const struct grown_file *file, const struct log_row *row)
{
	return file->has_identity && file->identity.n == row->identity.n &&
	       memcmp(file->identity.bytes, row->identity.bytes, row->identity.n) == 0;
}
