#include "upload/queue/blocks.h"
#include "base/clock.h"
#include "base/random.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked candidate_asks(const struct candidate *candidate)
{
	return (struct asked){candidate->size, candidate->mtime_ns, candidate->content};
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

static struct block *new_block(struct blocks *blocks)
{
	const size_t cap = 2 * blocks->cap + 16;
	if (blocks->n == blocks->cap) {
		struct block **more = realloc(blocks->blocks, cap * sizeof(struct block *));
		if (!more)
			return NULL;
		blocks->blocks = more;
		blocks->cap = cap;
	}
	return malloc(sizeof(struct block));
}

int blocks_add(
	struct blocks *blocks, struct candidate *const *files, size_t n, const struct block *how)
{
	struct block *block = new_block(blocks);
	if (!block)
		return -ENOMEM;
	*block = *how;
	memcpy(block->files, files, n * sizeof(struct candidate *));
	block->n = n;
	blocks->blocks[blocks->n++] = block;
	return 0;
}

static struct block *take_out(struct blocks *blocks, size_t at)
{
	struct block *block = blocks->blocks[at];
	blocks->blocks[at] = blocks->blocks[--blocks->n];
	return block;
}

struct block *blocks_remove(struct blocks *blocks, unsigned serial)
{
	for (size_t i = 0; i < blocks->n; i++)
		if (blocks->blocks[i]->files[0]->block == serial)
			return take_out(blocks, i);
	return NULL;
}

struct block *blocks_take(struct blocks *blocks, uint64_t *ret_wait_ns)
{
	const size_t n = blocks->n;
	const uint64_t now = clock_boot_ns();
	const size_t first = (size_t)random_below(n);
	size_t chosen = n;
	for (size_t i = 0; i < n && (chosen == n || blocks->blocks[chosen]->last); i++) {
		size_t at = (first + i) % n;
		const struct block *block = blocks->blocks[at];
		if (block->not_before_ns > now) {
			uint64_t wait = block->not_before_ns - now;
			*ret_wait_ns = wait < *ret_wait_ns ? wait : *ret_wait_ns;
		} else if (chosen == n || !block->last) {
			chosen = at;
		}
	}
	return chosen < n ? take_out(blocks, chosen) : NULL;
}

int64_t blocks_oldest_ns(const struct blocks *blocks)
{
	int64_t oldest = INT64_MAX;
	for (size_t i = 0; i < blocks->n; i++)
		for (size_t j = 0; j < blocks->blocks[i]->n; j++)
			if (blocks->blocks[i]->files[j]->mtime_ns < oldest)
				oldest = blocks->blocks[i]->files[j]->mtime_ns;
	return oldest;
}

void blocks_clear(struct blocks *blocks)
{
	for (size_t i = 0; i < blocks->n; i++) {
		for (size_t j = 0; j < blocks->blocks[i]->n; j++)
			free(blocks->blocks[i]->files[j]);
		free(blocks->blocks[i]);
	}
	free(blocks->blocks);
}
