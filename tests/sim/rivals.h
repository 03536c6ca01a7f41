/* Writes of two processes to one row, or one object, that meet: one that is on its way waits at the
 * server's door until the other writer has written once more. Seeds alone hardly ever meet these
 * moments. */
#pragma once
#include "wire.h"
#include <stdbool.h>

struct rival;
void rivals_begin(uint64_t seed, unsigned per_mille);
/* From now on nobody waits, and who waits goes on. */
void rivals_calm(void);
/* A request comes to the door. It is to wait there if this is not NULL: until rivals_have_met(), or
 * for RIVALS_MOST_NS. Both wake whoever waits for the result, which rivals_let_in() takes. */
#define RIVALS_MOST_NS (40 * 1000000000ULL)
struct rival *rivals_hold(const struct wire_request *request);
bool rivals_have_met(const struct rival *rival);
void rivals_let_in(struct rival *rival);
/* A request has been applied. */
void rivals_wrote(const struct wire_request *request);
