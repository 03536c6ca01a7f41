#include "scan/rotated/grown_file.h"
#include "scan/rotated/log_match.h"
#include <string.h>
#include <unistd.h>

/* Whether the file had another log, of which it is not known yet where it is now. */
static bool awaits_old_log(const struct log_family *family, const struct grown_file *file)
{
	for (size_t k = 0; k < family->n_rows; k++)
		if (family->states[k] == LOG_TRUNCATED && grown_file_had(file, &family->rows[k]) &&
			(family->is_unsure || family->has_waiting))
			return true;
	return false;
}

/* How much there is to begin with, and its id. */
static int measure(struct log_family *family, struct grown_file *file, int fd, uint64_t *ret_end,
	struct content_range_ids *ret_ids, struct problem *ret_why)
{
	const int packed = content_seems_compressed(fd);
	int r = packed < 0 ? packed : 0;
	*ret_end = 0;
	if (r == 0 && packed && !file->is_live)
		r = grown_file_points(family, file, fd, NULL, 0, ret_end, ret_why);
	else if (r == 0 && !packed)
		r = grown_file_end(file, fd, 0, ret_end);
	if (r < 0)
		return r;
	if (!file->is_live) { /* read already */
		memcpy(ret_ids->range, file->entry.content_id, sizeof ret_ids->range);
		memcpy(ret_ids->until, file->entry.content_id, sizeof ret_ids->until);
		return 0;
	}
	const struct content_range range = {0, *ret_end, -1};
	return *ret_end ? grown_file_range(family, file, fd, &range, ret_ids, ret_why) : 0;
}

/* Whether a file without a log may be a copy of the live file, which is to be emptied next
 * (copytruncate), or has just been. Then it waits: it is known once that has happened. One reading
 * tells both whether the live file begins with all of the file, and that it is not emptied yet. */
static int is_copy_of(struct log_family *family, const struct grown_file *live,
	const struct grown_file *file, bool *ret, struct problem *ret_why)
{
	const struct log_row none = {.until = ""}, *row = live->row ? live->row : &none;
	const bool is_shorter = file->state.size < row->end;
	struct content_point points[2];
	struct content_point *whole = &points[!is_shorter], *known = &points[is_shorter];
	uint64_t size;
	whole->at = file->state.size;
	known->at = row->end;
	struct grown_file now = *live;
	const int fd = source_open_inode(family->source, &live->entry, &now.state);
	const int r = fd < 0 ? fd : grown_file_points(family, &now, fd, points, 2, &size, ret_why);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return r;
	const bool is_emptied =
		live->row && !(known->is_there && log_is_same_id(known->id, row->until));
	*ret = is_emptied || (whole->is_there && log_is_same_id(whole->id, file->entry.content_id));
	return 0;
}

static int may_be_copy(struct log_family *family, const struct grown_file *file, bool *ret,
	struct problem *ret_why)
{
	int r = 0;
	*ret = false;
	for (size_t i = 0; r == 0 && !*ret && i < family->n_files; i++) {
		const struct grown_file *live = &family->files[i];
		if (live->is_live && (live->row || grown_file_is_open(live)) && !file->is_live &&
			file->state.size)
			r = is_copy_of(family, live, file, ret, ret_why);
	}
	return r;
}

/* The log that another rotated file has, and that this compressed one contains as well, or NULL:
 * one log may be there in two compressions. Compressing keeps the time, and equal logs of two days
 * differ in it. */
static struct log_row *find_same_log(const struct log_family *family, const struct grown_file *file)
{
	for (size_t k = 0; *file->entry.suffix && k < family->n_rows; k++) {
		struct log_row *row = &family->rows[k];
		if (family->states[k] == LOG_TAKEN && !row->was_live && row->end &&
			log_is_same_id(file->entry.content_id, row->until) &&
			log_seconds(file->state.mtime_ns) == log_seconds(row->file_mtime_ns))
			return row;
	}
	return NULL;
}

static int begin_log(
	struct log_family *family, struct grown_file *file, struct problem *ret_problem)
{
	struct content_range_ids ids;
	struct problem why = {.text = ""};
	uint64_t end = 0;
	bool is_copy;
	file->row = find_same_log(family, file);
	if (file->row) { /* whose pieces are those of the other file */
		file->is_whole = grown_file_is_whole(file, file->row);
		return 0;
	}
	int r = may_be_copy(family, file, &is_copy, &why);
	if (r < 0)
		return grown_file_not_read(family, file, r, &why, ret_problem);
	if (is_copy) {
		grown_file_waits(family, file);
		return 0;
	}
	const int fd = grown_file_open(family, file);
	r = fd < 0 ? fd : measure(family, file, fd, &end, &ids, &why);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return grown_file_not_read(family, file, r, &why, ret_problem);
	if (file->is_live && !end) { /* no line yet, or no log */
		grown_file_waits(family, file);
		return 0;
	}
	struct log_row *row = &family->rows[family->n_rows++];
	*row = (struct log_row){.number = 0};
	r = grown_file_take(family, file, row, end, &ids);
	return r < 0 ? grown_file_not_read(family, file, r, &why, ret_problem) : 0;
}

int log_match_new(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		if (!grown_file_is_open(file))
			continue;
		if (awaits_old_log(family, file))
			grown_file_waits(family, file);
		else
			r = begin_log(family, file, ret_problem);
	}
	return r;
}
