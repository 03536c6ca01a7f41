/* The CRCs that S3 keeps: reflected, all ones before, inverted after. By isa-l where it was found
 * and has them, by zlib, and by PCLMULQDQ where the processor has it; each in portable C too. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum crc {
	CRC_32C,    /* Castagnoli; RFC 3720 */
	CRC_32,     /* of zip, PNG and Ethernet; RFC 1952 */
	CRC_64NVME, /* NVM Express NVM Command Set Specification, "64b CRC" */
	CRCS
};

/* The CRC of what `crc` was of (0: nothing) followed by n bytes. Any thread. */
uint64_t crc_add(enum crc kind, uint64_t crc, const void *bytes, size_t n);
/* The same in portable C, whatever there is. */
uint64_t crc_add_portable(enum crc kind, uint64_t crc, const void *bytes, size_t n);
/* The CRC of A followed by B, from the CRC of each and the length of B in bytes. */
uint64_t crc_combine(enum crc kind, uint64_t crc_a, uint64_t crc_b, uint64_t bytes_b);
