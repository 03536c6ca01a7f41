#include "scan/log_match.h"
#include "base/clock.h"
#include "base/quote.h"
#include "scan/log_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

static bool is_same_id(const char *a, const char *b)
{
	return *a && strcmp(a, b) == 0;
}

static int64_t seconds_of(int64_t ns)
{
	return ns / (int64_t)NS_PER_S;
}

static bool is_open(const struct log_file *file)
{
	return file->entry.kind == SCAN_FILE && file->has_identity && !file->row;
}

/* Whether the log's only piece is what the file contains, and its key is that of the file. */
static bool is_whole(const struct log_file *file, const struct log_row *row)
{
	return !file->is_live && !file->has_grown && row->n_pieces == 1 &&
	       seconds_of(file->state.mtime_ns) == seconds_of(row->pieces[0].mtime_ns);
}

/* The file has this log, which ends at `end` in it. What is new is cut as the next piece. */
static int take_row(struct log_family *family, struct log_file *file, struct log_row *row,
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
	row->file_size = file->state.size;
	row->file_mtime_ns = is_settled ? file->state.mtime_ns : 0;
	row->was_live = file->is_live;
	file->row = row;
	file->is_changed = true;
	file->is_whole = is_whole(file, row);
	family->states[row - family->rows] = LOG_TAKEN;
	return 0;
}

/* It was compared, and has not been touched since. What a live file had behind its last line end
 * counts once it is rotated. */
static bool is_as_it_was(const struct log_file *file, const struct log_row *row)
{
	return row->file_mtime_ns && file->state.mtime_ns == row->file_mtime_ns &&
	       file->state.size == row->file_size && file->is_live == row->was_live;
}

/* How much content the file has, and whether it begins with the log. */
static int compare_with_row(struct log_family *family, struct log_file *file, int fd,
	const struct log_row *row, uint64_t *ret_end, struct content_range_ids *ret_ids,
	struct problem *ret_why)
{
	const int packed = file->is_live ? 0 : content_seems_compressed(fd);
	int r = packed < 0 ? packed : 0;
	if (packed == 1) {
		struct content_point point = {.at = row->end};
		r = log_file_points(family, file, fd, &point, 1, ret_end, ret_why);
	} else if (r == 0) {
		r = log_file_end(file, fd, row->end, ret_end);
	}
	if (r < 0 || *ret_end < row->end)
		return r;
	const struct content_range range = {row->end, *ret_end, -1};
	return log_file_range(family, file, fd, &range, ret_ids, ret_why);
}

/* The file that had this log is the same one still. Does it contain it? */
static int match_same_file(struct log_family *family, struct log_file *file, struct log_row *row,
	struct problem *ret_problem)
{
	enum log_state *state = &family->states[row - family->rows];
	struct content_range_ids ids = {.range = ""};
	struct problem why = {.text = ""};
	uint64_t end = 0;
	if (*state == LOG_TAKEN) {
		file->entry.kind = SCAN_PROBLEM;
		problem_set(&file->entry.problem,
			"is another name (a hard link) of a log of this family; remove it, or "
			"exclude it");
		return 0;
	}
	if (file->entry.kind == SCAN_YOUNG || is_as_it_was(file, row)) {
		*state = file->entry.kind == SCAN_YOUNG ? LOG_WAITS : LOG_TAKEN;
		if (*state == LOG_WAITS)
			return 0;
		file->row = row;
		file->is_whole = is_whole(file, row);
		return 0;
	}
	const int fd = log_file_open(family, file);
	int r = fd < 0 ? fd : compare_with_row(family, file, fd, row, &end, &ids, &why);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		*state = LOG_WAITS;
		return log_file_not_read(family, file, r, &why, ret_problem);
	}
	if (end < row->end || !is_same_id(ids.before, row->until)) {
		*state = LOG_TRUNCATED;
		return 0;
	}
	r = take_row(family, file, row, end, &ids);
	return r < 0 ? log_file_not_read(family, file, r, &why, ret_problem) : 0;
}

static int identify(struct log_family *family, struct log_file *file, struct problem *ret_problem)
{
	static const struct problem none = {.text = ""};
	const int fd = source_open_inode(family->source, &file->entry, &file->state);
	if (fd < 0)
		return log_file_not_read(family, file, fd, &none, ret_problem);
	file->has_identity = file_identity_of(fd, &file->identity) == 0;
	close(fd);
	if (file->has_identity)
		return 0;
	family->is_unsure = true;
	if (file->entry.kind != SCAN_FILE)
		return 0;
	file->entry.kind = SCAN_PROBLEM;
	problem_set(&file->entry.problem,
		"is on a file system without lasting file handles, by which --live and --if-grown "
		"know a log that grew; run without these options");
	return 0;
}

static bool has_identity(const struct log_file *file, const struct log_row *row)
{
	return file->has_identity && file->identity.n == row->identity.n &&
	       memcmp(file->identity.bytes, row->identity.bytes, row->identity.n) == 0;
}

int log_match_by_identity(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct log_file *file = &family->files[i];
		if (file->entry.kind != SCAN_FILE && file->entry.kind != SCAN_YOUNG) {
			family->is_unsure = true;
			continue;
		}
		family->has_waiting |= file->entry.kind == SCAN_YOUNG;
		r = identify(family, file, ret_problem);
		/* A rotated file is what the listing found, or waits. */
		const bool is_version =
			file->is_live || (file->state.size == file->entry.size &&
						 file->state.mtime_ns == file->entry.mtime_ns);
		if (r == 0 && file->entry.kind == SCAN_FILE && !is_version)
			log_file_waits(family, file);
		for (size_t k = 0; r == 0 && k < family->n_rows; k++)
			if (has_identity(file, &family->rows[k])) {
				r = match_same_file(family, file, &family->rows[k], ret_problem);
				break;
			}
	}
	return r;
}

/* Whether a file without a log may be the copy of one, as far as that can be told without reading
 * it. Other files than copies keep their identity. */
static bool may_have(const struct log_family *family, const struct log_row *row, bool is_packed)
{
	const enum log_state state = family->states[row - family->rows];
	return row->end && (state == LOG_LOOSE || state == LOG_TRUNCATED) &&
	       (is_packed || state == LOG_TRUNCATED || row->was_live);
}

/* Whether it has that log, of which it has the first bytes: logs of two days may be equal, but
 * compressing keeps the time. */
static bool has_log(const struct log_family *family, const struct log_file *file,
	const struct log_row *row, uint64_t size)
{
	return size > row->end || row->was_live ||
	       family->states[row - family->rows] == LOG_TRUNCATED ||
	       seconds_of(file->state.mtime_ns) ==
		       seconds_of(row->pieces[row->n_pieces - 1].mtime_ns);
}

struct candidates {
	struct content_point *points;
	struct log_row **rows;
	size_t n;
};

static int compare_ends(const void *a, const void *b)
{
	const struct log_row *x = *(struct log_row *const *)a, *y = *(struct log_row *const *)b;
	return x->end < y->end ? -1 : x->end > y->end;
}

static int find_candidates(struct log_family *family, bool is_packed, struct candidates *ret)
{
	ret->rows = calloc(family->n_rows + 1, sizeof(struct log_row *));
	ret->points = calloc(family->n_rows + 1, sizeof *ret->points);
	ret->n = 0;
	if (!ret->rows || !ret->points)
		return -ENOMEM;
	for (size_t k = 0; k < family->n_rows; k++)
		if (may_have(family, &family->rows[k], is_packed))
			ret->rows[ret->n++] = &family->rows[k];
	qsort(ret->rows, ret->n, sizeof *ret->rows, compare_ends);
	for (size_t k = 0; k < ret->n; k++)
		ret->points[k].at = ret->rows[k]->end;
	return 0;
}

/* The longest log that the open file has, or NULL. */
static int find_log(struct log_family *family, const struct log_file *file, int fd,
	struct candidates *candidates, struct log_row **ret, uint64_t *ret_size,
	struct problem *ret_why)
{
	*ret = NULL;
	if (!candidates->n)
		return 0;
	const int r = log_file_points(
		family, file, fd, candidates->points, candidates->n, ret_size, ret_why);
	for (size_t k = candidates->n; r == 0 && !*ret && k-- > 0;)
		if (candidates->points[k].is_there &&
			is_same_id(candidates->points[k].id, candidates->rows[k]->until) &&
			has_log(family, file, candidates->rows[k], *ret_size))
			*ret = candidates->rows[k];
	return r;
}

static int match_open_file(
	struct log_family *family, struct log_file *file, int fd, struct problem *ret_why)
{
	struct candidates candidates;
	struct content_range_ids ids;
	struct log_row *row = NULL;
	uint64_t size = 0;
	const int packed = content_seems_compressed(fd);
	if (packed < 0)
		return packed;
	int r = find_candidates(family, packed == 1, &candidates);
	if (r == 0)
		r = find_log(family, file, fd, &candidates, &row, &size, ret_why);
	free(candidates.rows);
	free(candidates.points);
	if (r < 0 || !row)
		return r;
	/* A file that is not there for us may be the one that has it. */
	if (family->is_unsure && family->states[row - family->rows] == LOG_LOOSE)
		return -ESTALE;
	if (family->states[row - family->rows] == LOG_TRUNCATED &&
		log_rows_tells(family->options->log_rows, &family->name, "copytruncate"))
		problem_set(&family->notice,
			"%s was copied to %s and emptied (copytruncate): what was written between "
			"the two is lost, whoever uploads the copy; logrotate's create loses "
			"nothing",
			quote(family->name.family).text, quote(file->relative).text);
	const struct content_range range = {row->end, size, -1};
	r = log_file_range(family, file, fd, &range, &ids, ret_why);
	return r < 0 ? r : take_row(family, file, row, size, &ids);
}

static bool has_loose(const struct log_family *family)
{
	for (size_t k = 0; k < family->n_rows; k++)
		if (may_have(family, &family->rows[k], true))
			return true;
	return false;
}

int log_match_by_content(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && has_loose(family) && i < family->n_files; i++) {
		struct log_file *file = &family->files[i];
		struct problem why = {.text = ""};
		if (!is_open(file) || file->is_live)
			continue;
		const int fd = log_file_open(family, file);
		r = fd < 0 ? fd : match_open_file(family, file, fd, &why);
		if (fd >= 0)
			close(fd);
		if (r < 0)
			r = log_file_not_read(family, file, r, &why, ret_problem);
	}
	return r;
}

/* Whether the file had another log, of which it is not known yet where it is now. */
static bool awaits_old_log(const struct log_family *family, const struct log_file *file)
{
	for (size_t k = 0; k < family->n_rows; k++)
		if (family->states[k] == LOG_TRUNCATED && has_identity(file, &family->rows[k]) &&
			(family->is_unsure || family->has_waiting))
			return true;
	return false;
}

/* How much there is to begin with, and its id. */
static int measure(struct log_family *family, struct log_file *file, int fd, uint64_t *ret_end,
	struct content_range_ids *ret_ids, struct problem *ret_why)
{
	const int packed = content_seems_compressed(fd);
	int r = packed < 0 ? packed : 0;
	*ret_end = 0;
	if (r == 0 && packed && !file->is_live)
		r = log_file_points(family, file, fd, NULL, 0, ret_end, ret_why);
	else if (r == 0 && !packed)
		r = log_file_end(file, fd, 0, ret_end);
	if (r < 0)
		return r;
	if (!file->is_live) { /* read already */
		memcpy(ret_ids->range, file->entry.content_id, sizeof ret_ids->range);
		memcpy(ret_ids->until, file->entry.content_id, sizeof ret_ids->until);
		return 0;
	}
	const struct content_range range = {0, *ret_end, -1};
	return *ret_end ? log_file_range(family, file, fd, &range, ret_ids, ret_why) : 0;
}

static int begin_log(struct log_family *family, struct log_file *file, struct problem *ret_problem)
{
	struct content_range_ids ids;
	struct problem why = {.text = ""};
	uint64_t end = 0;
	const int fd = log_file_open(family, file);
	int r = fd < 0 ? fd : measure(family, file, fd, &end, &ids, &why);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return log_file_not_read(family, file, r, &why, ret_problem);
	if (file->is_live && !end) { /* no line yet, or no log */
		log_file_waits(family, file);
		return 0;
	}
	struct log_row *row = &family->rows[family->n_rows++];
	*row = (struct log_row){.number = 0};
	r = take_row(family, file, row, end, &ids);
	return r < 0 ? log_file_not_read(family, file, r, &why, ret_problem) : 0;
}

int log_match_new(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct log_file *file = &family->files[i];
		if (!is_open(file))
			continue;
		if (awaits_old_log(family, file))
			log_file_waits(family, file);
		else
			r = begin_log(family, file, ret_problem);
	}
	return r;
}
