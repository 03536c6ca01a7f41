/* The members that the structs of the public headers reserve for options of later versions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESERVED_MEMBERS 16
/* Whether one of them is set: the program was compiled for a later version and wants an option that
 * this one does not have, or it has not zeroed the struct. Pure. */
static inline bool reserved_is_set(const uint64_t reserved[static RESERVED_MEMBERS])
{
	uint64_t all = 0;
	for (size_t i = 0; i < RESERVED_MEMBERS; i++)
		all |= reserved[i];
	return all != 0;
}
/* The sentence about it. */
#define RESERVED_IS_SET                                                                            \
	"version " S3ONCE_VERSION                                                                  \
	" of the library lacks an option that the program sets: install the version that the "     \
	"program was compiled for, or zero the struct"
