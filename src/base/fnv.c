#include "base/fnv.h"

uint64_t fnv_add(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ byte[i]) * 1099511628211ULL;
	return hash;
}
