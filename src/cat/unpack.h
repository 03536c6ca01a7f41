/* Turns the ranges of an object into its content: decompressed, or as it is. */
#pragma once
#include "cat/read_ahead.h"
#include "scan/content/decompress.h"

/* Takes the next n bytes of the content. Any value but 0 ends unpack() with it. */
typedef int unpack_take(void *arg, const unsigned char *bytes, size_t n);

/* Zero it to start, and set `take` and `arg`. Call unpack_clear() in any case. */
struct unpack {
	unpack_take *take;
	void *arg;
	bool has_begun;
	struct decompress decompress;
	unsigned char *out; /* owned */
};
/* Unpacks the next range of an object, or its end (n is 0). Returns 0, the value with which `take`
 * has ended it, or an error of decompress() with a sentence. */
int unpack(struct unpack *u, const struct read_range *range, struct problem *ret_problem);
void unpack_clear(struct unpack *u);
