#pragma once
#include "scenario.h"

/* Makes the scenario as small as it can be while the seed still breaks a promise. False: it breaks
 * none as it is. */
bool shrink(uint64_t seed, struct scenario *scenario);
