/* The blocks that wait, as a heap by the time at which they are due. The queue puts in what the
 * scan found and what came back, and takes out what is begun next. It knows nothing of workers:
 * when a block is taken is the queue's matter. */
#include "upload/queue/blocks.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked candidate_asks(const struct candidate *candidate)
{
	return (struct asked){candidate->size, candidate->mtime_ns, candidate->content};
}

void candidate_note_mark(struct candidate *candidate, const struct mark *mark)
{
	candidate->mark = mark->state;
	memcpy(candidate->holder, mark->session, sizeof candidate->holder);
}

const char *candidate_suffix(const struct candidate *candidate)
{
	return candidate->object + strlen(candidate->key);
}

void candidate_set_suffix(struct candidate *candidate, const char *suffix)
{
	snprintf(candidate->object + strlen(candidate->key), SUFFIX_MAX + 1, "%s", suffix);
}

bool candidate_was_just_seen_held(struct candidate *candidate)
{
	const uint64_t now = clock_boot_ns();
	if (!candidate->held_since_ns)
		candidate->held_since_ns = now;
	return now - candidate->held_since_ns < 5 * NS_PER_S;
}

static bool is_before(const struct block *a, const struct block *b)
{
	return a->due_ns < b->due_ns;
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
	blocks->n_files += block->n;
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
	blocks->n_files -= first->n;
	return first;
}

int64_t block_oldest_ns(const struct block *block)
{
	int64_t oldest = INT64_MAX;
	for (size_t i = 0; i < block->n; i++)
		if (block->files[i]->mtime_ns < oldest)
			oldest = block->files[i]->mtime_ns;
	return oldest;
}

int64_t blocks_oldest_ns(const struct blocks *blocks)
{
	int64_t oldest = INT64_MAX;
	for (size_t i = 0; i < blocks->n; i++) {
		const int64_t each = block_oldest_ns(blocks->heap[i]);
		oldest = each < oldest ? each : oldest;
	}
	return oldest;
}

void block_free(struct block *block)
{
	for (size_t i = 0; i < block->n; i++)
		free(block->files[i]);
	free(block);
}

void blocks_clear(struct blocks *blocks)
{
	for (size_t i = 0; i < blocks->n; i++)
		block_free(blocks->heap[i]);
	free(blocks->heap);
}
