/* What makes gzip members: zlib, or isa-l. For gzip.c alone. */
#pragma once
#include "upload/body/gzip.h"

struct gzip_maker {
	const char *name;
	size_t (*state_bytes)(int level);
	/* Sets up the state of an encoder, which is not moved from then on. Returns 0 or -ENOMEM.
	 */
	int (*init)(void *state, int level);
	void (*clear)(void *state);
	/* Begins a member. What it becomes does not depend on members before. */
	int (*begin)(void *state, int level);
	/* As gzip_run(). */
	long (*run)(void *state, const struct gzip_buffers *buffers, size_t *ret_used,
		bool *ret_has_ended);
};

#ifdef HAVE_ISAL
extern const struct gzip_maker gzip_isal; /* at the levels 1 to GZIP_ISAL_LEVELS */
#define GZIP_ISAL_LEVELS 3
#endif
