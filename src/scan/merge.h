/* Several sources as one stream in byte order of the keys. */
#pragma once
#include "scan/source.h"

struct merge {
	struct source **heap; /* heap[0] has the smallest key of the n heads */
	size_t n;
	bool started; /* heap[0] was handed out and is to be moved on */
};

/* Moves each source to its first entry. The sources stay where they are until merge_clear. 0, or
 * -errno with a sentence; merge_clear in any case. */
int merge_init(struct merge *merge, struct source *sources, size_t n, struct problem *ret_problem);
/* As scan_next. */
int merge_next(struct merge *merge, struct scan_entry *ret, struct problem *ret_problem);
void merge_clear(struct merge *merge);
