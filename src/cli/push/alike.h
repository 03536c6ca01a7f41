/* Errors that are alike: the first few are printed, the others are only counted. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALIKE_PRINTED 3
#define ALIKE_KINDS   32

struct alike_kind {
	uint64_t hash, count;
	char *sentence; /* of its first error, owned; NULL: out of memory */
};

/* Zero it to start. */
struct alike {
	struct alike_kind kinds[ALIKE_KINDS];
	size_t n;
};

/* Counts an error by its sentence. Digits in it do not matter, since a different part, size or time
 * is not a different kind. Returns whether it is to be printed. All errors of a kind that finds no
 * room are printed. */
bool alike_add(struct alike *alike, const char *sentence);
/* How many errors of the i-th kind were not printed. */
uint64_t alike_unprinted(const struct alike *alike, size_t i);
void alike_clear(struct alike *alike);
