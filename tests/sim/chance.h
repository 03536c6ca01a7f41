/* Random numbers of a simulated world. Each part of the world has a stream of its own, so that a
 * change in one part does not change the numbers of the others. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};
/* Returns the stream of this name in the world of this seed. */
struct chance chance_of(uint64_t seed, const char *name);
uint64_t chance_next(struct chance *chance);
/* From now on, chance_below() uses up two of these bytes for each number, as long as there are any.
 * They are borrowed. */
void chance_give(const void *bytes, uint64_t n);
/* Returns a number below the bound; 0 if the bound is 0. */
uint64_t chance_below(struct chance *chance, uint64_t bound);
/* From now on, the numbers of chance_below() are recorded here in the form that chance_give()
 * reads, as long as there is room. */
void chance_note(unsigned char *bytes, uint64_t n);
/* As chance_hits(), but returns `told` if `is_told`, and records that. */
bool chance_told(struct chance *chance, bool is_told, bool told, unsigned per_mille);
/* Returns a number from least to most, both included. */
uint64_t chance_between(struct chance *chance, uint64_t least, uint64_t most);
/* Returns true in `per_mille` of 1,000 cases. */
bool chance_hits(struct chance *chance, unsigned per_mille);
void chance_fill(struct chance *chance, void *ret, uint64_t n);
