#include "scan/merge.h"
#include "scan/collision.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file that is left alone today would take the key tomorrow. */
static bool takes_key(const struct source *source)
{
	return source->head.kind == SCAN_FILE || source->head.kind == SCAN_YOUNG;
}

/* Files of one key are neighbours: what takes no key comes behind them. */
static bool before(const struct source *a, const struct source *b)
{
	int order = strcmp(a->head.key, b->head.key);
	if (order != 0)
		return order < 0;
	if (takes_key(a) != takes_key(b))
		return takes_key(a);
	return a->index < b->index;
}

static size_t smaller_child(const struct merge *merge, size_t i)
{
	size_t child = 2 * i + 1;
	if (child + 1 < merge->n && before(merge->heap[child + 1], merge->heap[child]))
		child++;
	return child;
}

static void sink(struct merge *merge, size_t i)
{
	for (size_t child; (child = smaller_child(merge, i)) < merge->n; i = child) {
		struct source *moved = merge->heap[i];
		if (!before(merge->heap[child], moved))
			return;
		merge->heap[i] = merge->heap[child];
		merge->heap[child] = moved;
	}
}

int merge_init(struct merge *merge, struct source *sources, size_t n, struct problem *ret_problem)
{
	*merge = (struct merge){.heap = calloc(n, sizeof(struct source *))};
	if (!merge->heap) {
		problem_set(ret_problem, "out of memory while the files were listed");
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		int r = source_next(&sources[i], ret_problem);
		if (r < 0)
			return r;
		if (r > 0)
			merge->heap[merge->n++] = &sources[i];
	}
	for (size_t i = merge->n; i-- > 0;)
		sink(merge, i);
	return 0;
}

void merge_clear(struct merge *merge)
{
	free(merge->heap);
	*merge = (struct merge){0};
}

static void refuse_both(struct source *a, struct source *b)
{
	const struct collision collision = {a->head.key, a->head.path, b->head.path,
		"exclude one, or upload them below different prefixes"};
	struct problem problem;
	collision_tell(&collision, &problem);
	if (!a->collides)
		a->head.problem = problem;
	b->head.problem = problem;
	a->collides = b->collides = true;
}

static int next_entry(struct merge *merge, struct problem *ret_problem)
{
	int r = source_next(merge->heap[0], ret_problem);
	if (r < 0)
		return r;
	if (r == 0)
		merge->heap[0] = merge->heap[--merge->n];
	sink(merge, 0);
	return 0;
}

int merge_next(struct merge *merge, struct scan_entry *ret, struct problem *ret_problem)
{
	int r = merge->started && merge->n ? next_entry(merge, ret_problem) : 0;
	if (r < 0)
		return r;
	merge->started = true;
	if (merge->n == 0)
		return 0;
	struct source *first = merge->heap[0];
	size_t second = smaller_child(merge, 0);
	if (second < merge->n && takes_key(first) && takes_key(merge->heap[second]) &&
		strcmp(first->head.key, merge->heap[second]->head.key) == 0)
		refuse_both(first, merge->heap[second]);
	*ret = first->head;
	if (first->collides)
		ret->kind = SCAN_PROBLEM;
	return 1;
}
