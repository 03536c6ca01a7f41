/* The blocks that wait, as a heap by the time at which they are due. The queue puts in what the
 * scan found and what came back, and takes out what is begun next. It knows nothing of workers:
 * when a block is taken is the queue's matter. */
#include "base/clock.h"
#include "upload/queue/queue.h"
#include <errno.h>
#include <stdlib.h>

bool candidate_was_just_seen_held(struct candidate *candidate)
{
	const uint64_t now = clock_boot_ns();
	if (!candidate->held_since_ns)
		candidate->held_since_ns = now;
	return now - candidate->held_since_ns < 5 * NS_PER_S;
}

uint64_t candidate_rank(const struct candidate *candidate)
{
	const uint64_t first_large = UINT64_C(1) << 63;
	if (candidate->size > SMALL_BYTES_MAX)
		return first_large | candidate->size;
	return candidate->mtime_ns > 0 ? (uint64_t)candidate->mtime_ns : 0;
}

static bool is_before(const struct block *a, const struct block *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->rank < b->rank;
}

int blocks_add(struct blocks *blocks, struct block *block)
{
	if (blocks->n == blocks->cap) {
		const size_t cap = 2 * blocks->cap + 16;
		struct block **more = realloc(blocks->heap, cap * sizeof(struct block *));
		if (!more)
			return -ENOMEM;
		blocks->heap = more;
		blocks->cap = cap;
	}
	size_t at = blocks->n++;
	for (; at && is_before(block, blocks->heap[(at - 1) / 2]); at = (at - 1) / 2)
		blocks->heap[at] = blocks->heap[(at - 1) / 2];
	blocks->heap[at] = block;
	return 0;
}

bool blocks_have_due(const struct blocks *blocks, uint64_t now_ns)
{
	return blocks->n && blocks->heap[0]->due_ns <= now_ns;
}

struct block *blocks_take(struct blocks *blocks, uint64_t now_ns)
{
	if (!blocks_have_due(blocks, now_ns))
		return NULL;
	struct block *first = blocks->heap[0], *moved = blocks->heap[--blocks->n];
	size_t at = 0, below;
	while ((below = 2 * at + 1) < blocks->n) {
		below += below + 1 < blocks->n &&
			 is_before(blocks->heap[below + 1], blocks->heap[below]);
		if (!is_before(blocks->heap[below], moved))
			break;
		blocks->heap[at] = blocks->heap[below];
		at = below;
	}
	blocks->heap[at] = moved;
	return first;
}
