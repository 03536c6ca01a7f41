/* Which log each file of a family has: by its identity, else by its first bytes, else a new one;
 * and what is new of it. growing_logs.c calls it for one family after the other. Files are only
 * read here; what was found out is written by growing_logs.c. */
#include "scan/rotated/log_match.h"
#include "base/clock.h"
#include "base/quote.h"
#include "scan/open.h"
#include "scan/scan_entry.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES  65536
#define TOO_FRESH_NS ((int64_t)(2 * NS_PER_S))

static void grown_file_waits(struct log_family *family, struct grown_file *file)
{
	file->entry.kind = SCAN_YOUNG;
	family->has_waiting |= !file->is_live;
}

static int grown_file_not_read(struct log_family *family, struct grown_file *file, int error,
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

/* Opens the file of that entry, whatever its name is now. The descriptor or -errno. */
static int grown_file_open(const struct log_family *family, const struct grown_file *file,
	struct file_state *ret_state)
{
	const struct scan_entry *entry = &file->entry;
	return source_open_inode(
		family->source, entry->relative, entry->dev, entry->ino, ret_state);
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

static int grown_file_end(const struct grown_file *file, int fd, uint64_t from, uint64_t *ret_end)
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

static int grown_file_points(const struct log_family *family, const struct grown_file *file, int fd,
	struct content_point *points, size_t n, uint64_t *ret_size, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_points(&content, points, n, ret_size, ret_why);
}

static int grown_file_range(const struct log_family *family, const struct grown_file *file, int fd,
	const struct content_range *range, struct content_range_ids *ret, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_range(&content, range, ret, ret_why);
}

static bool log_is_same_id(const char *a, const char *b)
{
	return *a && strcmp(a, b) == 0;
}

static int64_t log_seconds(int64_t ns)
{
	return ns / (int64_t)NS_PER_S;
}

static bool grown_file_is_open(const struct grown_file *file)
{
	return file->entry.kind == SCAN_FILE && file->has_identity && !file->row;
}

static bool grown_file_is_whole(const struct grown_file *file, const struct log_row *row)
{
	return !file->is_live && !file->has_grown && row->n_pieces == 1 &&
	       log_seconds(file->state.mtime_ns) == log_seconds(row->pieces[0].mtime_ns);
}

static int grown_file_take(struct log_family *family, struct grown_file *file, struct log_row *row,
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

/* It was compared, and has not been touched since. What a live file had behind its last line end
 * counts once it is rotated. */
static bool is_as_it_was(const struct grown_file *file, const struct log_row *row)
{
	return file->state.mtime_ns == row->file_mtime_ns && file->state.size == row->file_size &&
	       file->is_live == row->was_live;
}

/* How much content the file has, and whether it begins with the log. */
static int compare_with_row(struct log_family *family, struct grown_file *file, int fd,
	const struct log_row *row, uint64_t *ret_end, struct content_range_ids *ret_ids,
	struct problem *ret_why)
{
	const int packed = file->is_live ? 0 : content_seems_compressed(fd);
	int r = packed < 0 ? packed : 0;
	if (packed == 1) {
		struct content_point point = {.at = row->end};
		r = grown_file_points(family, file, fd, &point, 1, ret_end, ret_why);
	} else if (r == 0) {
		r = grown_file_end(file, fd, row->end, ret_end);
	}
	if (r < 0 || *ret_end < row->end)
		return r;
	const struct content_range range = {row->end, *ret_end, -1};
	return grown_file_range(family, file, fd, &range, ret_ids, ret_why);
}

/* The file that had this log is the same one still. Does it contain it? */
static int match_same_file(struct log_family *family, struct grown_file *file, struct log_row *row,
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
		file->is_whole = grown_file_is_whole(file, row);
		return 0;
	}
	struct file_state now;
	const int fd = grown_file_open(family, file, &now);
	int r = fd < 0 ? fd : compare_with_row(family, file, fd, row, &end, &ids, &why);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		*state = LOG_WAITS;
		return grown_file_not_read(family, file, r, &why, ret_problem);
	}
	if (end < row->end || !log_is_same_id(ids.before, row->until)) {
		*state = LOG_TRUNCATED;
		return 0;
	}
	r = grown_file_take(family, file, row, end, &ids);
	return r < 0 ? grown_file_not_read(family, file, r, &why, ret_problem) : 0;
}

static int identify_log(
	struct log_family *family, struct grown_file *file, struct problem *ret_problem)
{
	static const struct problem none = {.text = ""};
	const int fd = grown_file_open(family, file, &file->state);
	if (fd < 0)
		return grown_file_not_read(family, file, fd, &none, ret_problem);
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

int log_match_by_identity(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		if (file->entry.kind != SCAN_FILE && file->entry.kind != SCAN_YOUNG) {
			family->is_unsure = true;
			continue;
		}
		if (file->entry.kind == SCAN_YOUNG)
			grown_file_waits(family, file);
		r = identify_log(family, file, ret_problem);
		/* A rotated file is what the listing found, or waits. */
		const bool is_version =
			file->is_live || (file->state.size == file->entry.size &&
						 file->state.mtime_ns == file->entry.mtime_ns);
		if (r == 0 && file->entry.kind == SCAN_FILE && !is_version)
			grown_file_waits(family, file);
		for (size_t k = 0; r == 0 && k < family->n_rows; k++)
			if (grown_file_had(file, &family->rows[k])) {
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
static bool has_log(const struct log_family *family, const struct grown_file *file,
	const struct log_row *row, uint64_t size)
{
	return size > row->end || row->was_live ||
	       family->states[row - family->rows] == LOG_TRUNCATED ||
	       log_seconds(file->state.mtime_ns) == log_seconds(row->file_mtime_ns);
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
	qsort(ret->rows, ret->n, sizeof(struct log_row *), compare_ends);
	for (size_t k = 0; k < ret->n; k++)
		ret->points[k].at = ret->rows[k]->end;
	return 0;
}

/* The longest log that the open file has, or NULL. */
static int find_log(struct log_family *family, const struct grown_file *file, int fd,
	struct candidates *candidates, struct log_row **ret, uint64_t *ret_size,
	struct problem *ret_why)
{
	*ret = NULL;
	if (!candidates->n)
		return 0;
	const int r = grown_file_points(
		family, file, fd, candidates->points, candidates->n, ret_size, ret_why);
	for (size_t k = candidates->n; r == 0 && !*ret && k-- > 0;)
		if (candidates->points[k].is_there &&
			log_is_same_id(candidates->points[k].id, candidates->rows[k]->until) &&
			has_log(family, file, candidates->rows[k], *ret_size))
			*ret = candidates->rows[k];
	return r;
}

static int match_open_file(
	struct log_family *family, struct grown_file *file, int fd, struct problem *ret_why)
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
	r = grown_file_range(family, file, fd, &range, &ids, ret_why);
	return r < 0 ? r : grown_file_take(family, file, row, size, &ids);
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
		struct grown_file *file = &family->files[i];
		struct problem why = {.text = ""};
		if (!grown_file_is_open(file) || file->is_live)
			continue;
		struct file_state state;
		const int fd = grown_file_open(family, file, &state);
		r = fd < 0 ? fd : match_open_file(family, file, fd, &why);
		if (fd >= 0)
			close(fd);
		if (r < 0)
			r = grown_file_not_read(family, file, r, &why, ret_problem);
	}
	return r;
}

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
	const int fd = grown_file_open(family, live, &now.state);
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
	struct file_state state;
	const int fd = grown_file_open(family, file, &state);
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
