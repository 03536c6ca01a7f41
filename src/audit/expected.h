/* The marks below a prefix in byte order of their objects' keys. An object's key is its mark's key
 * with a suffix of compression behind it, so that the two orders differ. Marks that wait here for
 * their turn all have keys that the last key begins with, so there are at most as many as it has
 * bytes. */
#pragma once
#include "audit/mark_stream.h"

/* As mark_stream_new, with `after` being the key of an object. OK, or why marks cannot be read. */
struct expected;
enum outcome expected_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct expected **ret,
	struct problem *ret_problem);
void expected_free(struct expected *expected); /* NULL is fine */

/* OK sets *ret to the next mark, the caller's to free(), or to NULL after the last one. Two marks
 * may stand for the same object. */
enum outcome expected_next(
	struct expected *expected, struct mark_row **ret, struct problem *ret_problem);
