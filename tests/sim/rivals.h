/* Makes writes of two processes to one row or object collide: a request that is on its way is held
 * at the server until the other process has written once more. Random delays alone hardly ever
 * produce these moments. */
#pragma once
#include "wire.h"
#include <stdbool.h>

struct rival;
void rivals_begin(uint64_t seed, unsigned per_mille);
/* Lets all held requests continue, and holds no more. */
void rivals_calm(void);
/* Call it when a request arrives at the server. If the result is not NULL, the request has to wait
 * on it, by task_wait(), until rivals_have_met() or for RIVALS_MOST_NS. rivals_let_in() frees it.
 */
#define RIVALS_MOST_NS (40 * 1000000000ULL)
struct rival *rivals_hold(const struct wire_request *request);
bool rivals_have_met(const struct rival *rival);
void rivals_let_in(struct rival *rival);
/* Notes that a request has been applied. */
void rivals_wrote(const struct wire_request *request);
