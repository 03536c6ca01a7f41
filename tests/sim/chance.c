#include "chance.h"
#include <string.h>

uint64_t chance_next(struct chance *chance)
{
	/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
	uint64_t z = chance->state += 0x9e3779b97f4a7c15U;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

struct chance chance_of(uint64_t seed, const char *name)
{
	struct chance chance = {.state = seed};
	for (; *name; name++)
		chance.state = chance_next(&chance) ^ (unsigned char)*name;
	chance_next(&chance);
	return chance;
}

static struct {
	const unsigned char *at;
	uint64_t n;
} given;

static struct {
	unsigned char *at;
	uint64_t n;
} noted;

void chance_note(unsigned char *bytes, uint64_t n)
{
	noted.at = bytes;
	noted.n = n;
}

static uint64_t note(uint64_t choice)
{
	const uint64_t bits = choice < UINT16_MAX ? choice : UINT16_MAX;
	if (noted.n >= 2) {
		*noted.at++ = bits & 0xff;
		*noted.at++ = (unsigned char)(bits >> 8);
		noted.n -= 2;
	}
	return choice;
}

void chance_give(const void *bytes, uint64_t n)
{
	given.at = bytes;
	given.n = n;
}

uint64_t chance_below(struct chance *chance, uint64_t bound)
{
	if (bound < 2)
		return 0;
	uint64_t bits = chance_next(chance);
	if (given.n >= 2) {
		bits = given.at[0] | (uint64_t)given.at[1] << 8;
		given.at += 2;
		given.n -= 2;
	}
	return note(bits % bound);
}

bool chance_told(struct chance *chance, bool is_told, bool told, unsigned per_mille)
{
	if (!is_told)
		return chance_hits(chance, per_mille);
	note(told ? 0 : 999);
	return told;
}

uint64_t chance_between(struct chance *chance, uint64_t least, uint64_t most)
{
	return least + chance_below(chance, most - least + 1);
}

bool chance_hits(struct chance *chance, unsigned per_mille)
{
	return per_mille && chance_below(chance, 1000) < per_mille;
}

void chance_fill(struct chance *chance, void *ret, uint64_t n)
{
	unsigned char *at = ret;
	for (uint64_t left = n, chunk; left; left -= chunk, at += chunk) {
		const uint64_t bits = chance_next(
			chance); /* the simulation runs on little-endian machines only */
		chunk = left < sizeof bits ? left : sizeof bits;
		memcpy(at, &bits, chunk);
	}
}
