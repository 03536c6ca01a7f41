#include "base/random.h"
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static void fill_random(void *ret, size_t n)
{
	unsigned char *at = ret;
	while (n) {
		ssize_t got = getrandom(at, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			abort();
		at += got;
		n -= (size_t)got;
	}
}

void random_id(char ret_id[static ID_CHARS + 1])
{
	unsigned char bytes[ID_CHARS / 2];
	fill_random(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, ret_id);
}

uint64_t random_below(uint64_t bound)
{
	if (bound < 2)
		return 0;
	/* The values above the last whole multiple of bound would favour the small results. */
	uint64_t uneven = (UINT64_MAX % bound + 1) % bound, value;
	do
		fill_random(&value, sizeof value);
	while (value > UINT64_MAX - uneven);
	return value % bound;
}
