/* A part of the keys, to be looked at more closely than the rest. */
#pragma once
#include "audit/mark_stream.h"

/* Keys whose hash modulo `of` is from..to-1: the same keys each time. of 0: all keys. */
struct verify_subset {
	uint64_t from, to, of;
	uint64_t bytes; /* not 0: as many keys as have so many bytes in total; from..to are set by
			   verify_subset_share() then */
};
bool verify_subset_has(const struct verify_subset *subset, const char *key);
/* Chooses as many keys as have subset->bytes of `total` bytes. At least one part in a thousand
 * million is chosen. */
void verify_subset_share(struct verify_subset *subset, uint64_t total);

/* The sizes of the objects of all done marks of the range, in total. */
enum outcome verify_bytes_of_marks(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, uint64_t *ret,
	struct problem *ret_problem);
