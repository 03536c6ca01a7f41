/* Decides for each object of a log which of its bytes are printed, and which bytes are missing
 * before it. */
#pragma once
#include "cat/read_ahead.h"

/* Sorts n objects whose HEADs were sent into the order in which they are printed, and sets the
 * range, gap_start and repeated_bytes of each. `known` has the logs of the objects before them.
 * Objects that may repeat another one are read. Returns 0, or -ENOMEM with a sentence. */
int log_plan(struct known_logs *known, struct read_ahead *ahead, struct log_object *objects,
	size_t n, struct problem *ret_problem);
