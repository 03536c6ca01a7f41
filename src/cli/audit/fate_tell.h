/* What `forget` and `gc` did about marks, told to people or as JSON, and counted. */
#pragma once
#include "audit/mark_fate.h"
#include "cli/output.h"
#include <stdatomic.h>
#include <stdint.h>

struct fate_view {
	struct output *output;
	const char *bucket;
	bool json;
	atomic_ulong counts[FATES];
};

/* For struct mark_teller; arg is the view. Thread-safe. */
void fate_tell(void *arg, const struct mark_told *told);
/* How many marks had this fate. */
uint64_t fate_count(const struct fate_view *view, enum mark_fate fate);
