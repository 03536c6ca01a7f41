/* Parts of what a file contains: ids of its first bytes and of a range, and a copy of a range. */
#pragma once
#include "scan/content/content_id.h"

/* The id of the first `at` bytes. */
struct content_point {
	uint64_t at;
	bool is_there; /* else the content is shorter */
	char id[CONTENT_ID_CHARS + 1];
};
/* Fills the points, which come in rising order of `at`, and sets *ret_size to how many bytes the
 * content has. Returns as content_read(). */
int content_points(const struct content *content, struct content_point *points, size_t n,
	uint64_t *ret_size, struct problem *ret_problem);

struct content_range {
	uint64_t from, to;
	int copy_fd; /* the bytes of the range are written to it; -1: they are not copied */
};
struct content_range_ids {
	char before[CONTENT_ID_CHARS + 1]; /* of the bytes before the range */
	char range[CONTENT_ID_CHARS + 1];
	char until[CONTENT_ID_CHARS + 1]; /* of all bytes up to the end of the range */
};
/* Computes the three ids, and copies the range, in one reading. Returns as content_read(), or
 * -ESTALE if the content ends within the range, or the error of writing. */
int content_range(const struct content *content, const struct content_range *range,
	struct content_range_ids *ret, struct problem *ret_problem);
