/* The one source of chance of a simulated world. Each part of the world has a stream of its own, so
 * that a change of one part does not move what happens in the others. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};
/* The stream of this name in the world of this seed. */
struct chance chance_of(uint64_t seed, const char *name);
uint64_t chance_next(struct chance *chance);
/* From now on, chance_below() takes two of these bytes for each number while there are any.
 * Borrowed. */
void chance_give(const void *bytes, uint64_t n);
/* Below the bound; 0 if the bound is 0 or 1. */
uint64_t chance_below(struct chance *chance, uint64_t bound);
/* From now on, what chance_below() says is noted here in the same way, as long as there is room. */
void chance_note(unsigned char *bytes, uint64_t n);
/* As chance_hits(), but if `is_told`, it is what is told; what is noted is that. */
bool chance_told(struct chance *chance, bool is_told, bool told, unsigned per_mille);
/* From least to most, both included. */
uint64_t chance_between(struct chance *chance, uint64_t least, uint64_t most);
/* True in `per_mille` of 1,000 cases. */
bool chance_hits(struct chance *chance, unsigned per_mille);
void chance_fill(struct chance *chance, void *ret, uint64_t n);
