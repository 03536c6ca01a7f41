/* What the store knows of a rising sequence of keys, read before claiming at the least cost:
 * queries of the shards merged with the sorted scan, or batches of single reads where few of the
 * marks in between are asked for. */
#pragma once
#include "marks/mark.h"

struct known;
int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct known **ret);
void known_free(struct known *known);

/* The marks of n keys (rising, and above all asked before): ret[i] is filled, or absent. `last`
 * says that no more keys will come, which lets a short list be read in one batch. The caller clears
 * the marks. */
enum outcome known_read(struct known *known, const char *const *keys, size_t n, bool last,
	struct mark *ret, struct problem *ret_problem);

/* Reads any keys again, in one or a few batches, no matter their order: what did others take
 * meanwhile? */
enum outcome known_again(struct store_conn *conn, const struct mark_space *space,
	const char *const *keys, size_t n, const struct call_limits *limits, struct mark *ret,
	struct problem *ret_problem);
