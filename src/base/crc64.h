/* CRC-64/NVME by carry-less multiplication: for crc.c only. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#if defined __x86_64__
#define HAVE_CRC64_FOLD 1
#define CRC64_FOLD_MIN  64 /* bytes: four registers */

/* x^n modulo the polynomial, reflected, for the distances that the folding needs. */
struct crc64_fold {
	uint64_t by_4_low, by_4_high; /* x^(512+63), x^(512-1): on by four registers */
	uint64_t by_1_low, by_1_high; /* x^(128+63), x^(128-1): on by one */
};

/* Whether this processor can. */
int crc64_fold_is_there(void);
/* Reads n bytes, a multiple of 16 and at least CRC64_FOLD_MIN, after the raw state `crc` (already
 * inverted). Leaves 16 bytes in ret whose raw CRC from a state of 0 is that of all of them. */
void crc64_fold(const struct crc64_fold *by, uint64_t crc, const void *bytes, size_t n,
	unsigned char ret[static 16]);
#endif
