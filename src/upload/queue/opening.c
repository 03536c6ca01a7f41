#include "upload/queue/opening.h"
#include "base/clock.h"
#include <stdlib.h>

/* Marks read less than this ago need no second look, unless other uploaders were seen. */
#define FRESH_NS NS_PER_S

/* The rest of a block waits no longer for a claim: the request for it may hang. */
#define OPENING_NS (NS_PER_S / 2)

/* Uploaders that begin together have seen nothing of each other before so many blocks. */
#define BLOCKS_FIRST 8

void openings_init(struct openings *openings, struct turns *turns)
{
	*openings = (struct openings){.turns = turns};
}

void openings_clear(struct openings *openings)
{
	blocks_clear(&openings->waiting);
	blocks_clear(&openings->rests);
}

void openings_add(struct openings *openings, struct candidate *const *files, size_t n,
	const struct block *how)
{
	const bool added = !blocks_add(&openings->waiting, files, n, how);
	openings->serial++;
	for (size_t i = 0; i < n; i++) {
		files[i]->block = openings->serial;
		files[i]->leads = false;
		if (!added)
			turns_add_file(openings->turns, files[i]);
	}
	if (added)
		openings->n_waiting += n;
}

/* Where there may be other uploaders, one small file goes ahead, always the first one: a large one
 * might have to wait for its turn. Of several uploaders it is claimed by one. */
void openings_begin(struct openings *openings, struct candidate *const *files, size_t n)
{
	struct candidate *rest[BLOCK_FILES];
	size_t first = 0;
	while (first < n && files[first]->size > SMALL_BYTES_MAX)
		first++;
	const bool is_early = openings->begun < BLOCKS_FIRST;
	openings->begun += is_early;
	const bool has_first = (openings->has_company || is_early) && n > 1 && first < n;
	for (size_t i = 0; has_first && i + 1 < n; i++)
		rest[i] = files[i < first ? i : i + 1];
	if (has_first && !blocks_add(&openings->rests, rest, n - 1,
				 &(struct block){.not_before_ns = clock_boot_ns() + OPENING_NS})) {
		openings->n_rests += n - 1;
		files[first]->leads = true;
		turns_add_first(openings->turns, files[first]);
		return;
	}
	for (size_t i = 0; i < n; i++)
		turns_add_file(openings->turns, files[i]);
}

/* What waits for the claim of one of its files, or NULL. */
static struct block *take_rest(struct openings *openings, unsigned serial)
{
	struct block *rest = blocks_remove(&openings->rests, serial);
	openings->n_rests -= rest ? rest->n : 0;
	return rest;
}

bool openings_finish(struct openings *openings, unsigned serial)
{
	struct block *rest = take_rest(openings, serial);
	for (size_t i = 0; rest && i < rest->n; i++)
		turns_add_file(openings->turns, rest->files[i]);
	free(rest);
	return rest != NULL;
}

/* The claims that they wait for take too long. */
static void finish_late(struct openings *openings)
{
	const struct blocks *rests = &openings->rests;
	const uint64_t now_ns = rests->n ? clock_boot_ns() : 0;
	for (size_t i = rests->n; i-- > 0;)
		if (rests->blocks[i]->not_before_ns <= now_ns)
			openings_finish(openings, rests->blocks[i]->files[0]->block);
}

bool openings_want_block(const struct openings *openings)
{
	const struct turns *turns = openings->turns;
	return turns->small.n + openings->n_rests + (size_t)openings->checking * BLOCK_FILES <
	       BLOCK_FILES / 2 + turns->workers / 2;
}

bool openings_take(struct openings *openings, struct task *ret, uint64_t *ret_wait_ns)
{
	finish_late(openings);
	while (openings_want_block(openings)) {
		struct block *block = blocks_take(&openings->waiting, ret_wait_ns);
		if (!block)
			return false;
		openings->n_waiting -= block->n;
		if (openings->has_company || clock_boot_ns() - block->read_ns >= FRESH_NS) {
			openings->checking++;
			*ret = (struct task){.kind = TASK_CHECK, .block = block};
			return true;
		}
		openings_begin(openings, block->files, block->n);
		free(block);
	}
	return false;
}

void openings_put_back(struct openings *openings, unsigned serial)
{
	struct candidate *back[BLOCK_FILES];
	size_t n = turns_remove_block(openings->turns, serial, back);
	struct block *rest = take_rest(openings, serial);
	for (size_t i = 0; rest && i < rest->n && n < BLOCK_FILES; i++)
		back[n++] = rest->files[i];
	free(rest);
	if (n)
		openings_add(openings, back, n, &(struct block){.last = true});
}

size_t openings_files(const struct openings *openings)
{
	return openings->n_waiting + openings->n_rests;
}

int64_t openings_oldest_ns(const struct openings *openings)
{
	const int64_t waiting = blocks_oldest_ns(&openings->waiting),
		      rests = blocks_oldest_ns(&openings->rests);
	return waiting < rests ? waiting : rests;
}
