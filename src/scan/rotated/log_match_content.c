#include "base/quote.h"
#include "scan/rotated/grown_file.h"
#include "scan/rotated/log_match.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		const int fd = grown_file_open(family, file);
		r = fd < 0 ? fd : match_open_file(family, file, fd, &why);
		if (fd >= 0)
			close(fd);
		if (r < 0)
			r = grown_file_not_read(family, file, r, &why, ret_problem);
	}
	return r;
}
