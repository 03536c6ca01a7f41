#include "audit/verify_subset.h"
#include "base/fnv.h"
#include <stdlib.h>
#include <string.h>

/* How finely a share is cut. */
#define SHARES 1000000000U

bool verify_subset_has(const struct verify_subset *subset, const char *key)
{
	if (!subset->of)
		return true;
	uint64_t hash = fnv_add(FNV_EMPTY, key, strlen(key));
	/* The low bits of this hash say too little of the first characters. */
	hash ^= hash >> 32;
	hash *= 0xD6E8FEB86659FD93ULL;
	hash ^= hash >> 32;
	hash %= subset->of;
	return hash >= subset->from && hash < subset->to;
}

void verify_subset_share(struct verify_subset *subset, uint64_t total)
{
	const bool is_all = subset->bytes >= total;
	const double share = is_all ? 1 : (double)subset->bytes / (double)total;
	subset->from = 0;
	subset->to = is_all ? SHARES : (uint64_t)(share * SHARES) + 1;
	subset->of = SHARES;
}

enum outcome verify_bytes_of_marks(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, uint64_t *ret,
	struct problem *ret_problem)
{
	struct mark_stream *stream;
	struct mark_row *row = NULL;
	if (mark_stream_new(conn, space, range, limits, &stream) < 0) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	enum outcome o;
	*ret = 0;
	do {
		free(row);
		row = NULL;
		o = mark_stream_next(stream, &row, ret_problem);
		if (row && row->state == MARK_DONE)
			*ret += row->size;
	} while (o == OUTCOME_OK && row);
	mark_stream_free(stream);
	return o;
}
