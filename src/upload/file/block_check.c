#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/worker.h"
#include <stdlib.h>
#include <string.h>

/* Another running uploader holds the file, and this need not be reported now. */
static bool may_wait(struct worker *worker, struct candidate *c, uint64_t *ret_again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	bool over = true;
	return c->known.state == MARK_CLAIMED && !run->options.no_wait && !run->dry &&
	       strcmp(c->known.session, session_id(run->session)) != 0 &&
	       (candidate_was_just_seen_held(c) || c->said_held) &&
	       session_is_over(run->session, worker->marks, c->known.session, &over, ret_again_ns,
		       &problem) == OUTCOME_OK &&
	       !over;
}

/* Begins a shared block at a place where other uploaders are probably not at work. */
static void rotate(struct candidate **files, size_t n)
{
	struct candidate *copy[BLOCK_FILES];
	const size_t first = (size_t)random_below(n);
	memcpy(copy, files, n * sizeof(struct candidate *));
	for (size_t i = 0; i < n; i++)
		files[i] = copy[(first + i) % n];
}

/* What others have taken meanwhile: done is skipped, what somebody alive holds waits, the rest may
 * be begun. */
static void sort_block(struct worker *worker, struct block *block, const struct known_mark *known,
	struct version *const *versions)
{
	struct run *run = worker->run;
	struct candidate *ready[BLOCK_FILES], *later[BLOCK_FILES];
	size_t n_ready = 0, n_later = 0, n_done = 0;
	uint64_t again_ns = clock_boot_ns() + NS_PER_S / 2;
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i];
		c->known = known[i];
		const struct asked asked = candidate_asks(c);
		uint64_t at_ns = 0;
		if (!c->said_done && run_skips(run, &c->known, &asked)) {
			bucket_skip_done(run, worker->marks, c, versions[i]);
			n_done++;
		} else if (may_wait(worker, c, &at_ns)) {
			later[n_later++] = c;
			again_ns = at_ns > again_ns ? at_ns : again_ns;
		} else {
			ready[n_ready++] = c;
		}
	}
	queue_later(run->queue, later, n_later, again_ns);
	if (n_later + n_done && !block->last) { /* away from who is in it */
		queue_shared(run->queue, ready, n_ready);
		n_ready = 0;
	} else if (block->last) {
		rotate(ready, n_ready);
	}
	queue_ready(run->queue, ready, n_ready);
}

/* Files that come back from a shared block, or together with it, are in any order. */
static int compare_keys(const void *a, const void *b)
{
	const struct candidate *const *x = a, *const *y = b;
	return strcmp((*x)->key, (*y)->key);
}

void block_check(struct worker *worker, struct block *block)
{
	const char *keys[BLOCK_FILES];
	struct known_mark known[BLOCK_FILES];
	struct version *versions[BLOCK_FILES] = {0};
	struct problem problem = {0};
	const size_t n = block->n;
	const struct call_limits limits = run_limits(worker->run);
	qsort(block->files, block->n, sizeof(struct candidate *), compare_keys);
	for (size_t i = 0; i < block->n; i++)
		keys[i] = block->files[i]->key;
	enum outcome o = known_again(worker->marks, &worker->run->space, keys, n, &limits, known,
		worker->run->manifest ? versions : NULL, &problem);
	if (o == OUTCOME_OK) {
		sort_block(worker, block, known, versions);
	} else { /* a claim will tell */
		log_info("reading marks again: %s", problem.text);
		queue_ready(worker->run->queue, block->files, block->n);
	}
	for (size_t i = 0; i < n; i++)
		free(versions[i]);
	free(block);
}
