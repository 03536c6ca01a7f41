/* Random values from the kernel. The program has no other source of them, so that a simulation can
 * decide them here. */
#include "base/random.h"
#include "base/text.h"
#include <stdlib.h>
#include <uv.h>

/* Without randomness the process ends: an id that repeats would be worse than a crash. */
static void fill_random(void *ret, size_t n)
{
	if (uv_random(NULL, NULL, ret, n, 0, NULL))
		abort();
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
	/* The values above the last whole multiple of bound would favour the small results. There
	 * are 2^64 modulo bound of them, and they are thrown away. */
	uint64_t uneven = (UINT64_MAX % bound + 1) % bound, value;
	do
		fill_random(&value, sizeof value);
	while (value > UINT64_MAX - uneven);
	return value % bound;
}
