/* Reads the marks of a rising sequence of keys, before files are claimed, at the least cost. It
 * queries the shards and merges their marks with the sorted scan. If few of the marks are wanted,
 * it reads single ones in batches. It is eventually consistent: only a claim decides. */
#pragma once
#include "marks/packed_mark.h"

/* conn and space are borrowed until known_free. A page of a shard has at most page_rows marks, or
 * as many as the store gives at once if that is 0. Memory: at most such a page for each shard. */
struct known;
int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, unsigned page_rows, struct known **ret);
void known_free(struct known *known);

/* Reads the marks of n keys. The keys rise, and are above all earlier ones. `is_last`: no more keys
 * will come, so that a short list can be read in one batch. OK sets all of ret: each mark is the
 * caller's to free(), or NULL where there is none. */
enum outcome known_read(struct known *known, const char *const *keys, size_t n, bool is_last,
	struct packed_mark **ret, struct problem *ret_problem);

/* Reads the marks of n rising keys in batches of single reads, to find files that other uploaders
 * have claimed meanwhile. *ret is as above. */
enum outcome known_read_again(struct store_conn *conn, const struct mark_space *space,
	const char *const *keys, size_t n, const struct call_limits *limits,
	struct packed_mark **ret, struct problem *ret_problem);
