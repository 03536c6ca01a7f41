/* Files that were put back into the queue. Rereads their marks, drops those that are done, and
 * returns the others to the queue, at once or for later. worker.c calls came_back_check() for the
 * blocks that are due. Nothing is claimed here. */
#include "upload/file/came_back.h"
#include "base/clock.h"
#include "base/log.h"
#include "marks/known.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/worker.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_CHUNK   1000 /* number of keys for known_read() at once */
#define PAGE_ROWS_MIN 50

/* The rest of a block in which another uploader was met is left to it at least that long. */
#define LEFT_ALONE_NS (5 * NS_PER_S)

/* Whether the file waits without a turn in which a worker handles it: another uploader, still
 * running, holds it, and that need not be reported now. Then *ret_again_ns is the time of the next
 * check. Ends the holder's session if that is over. */
static bool waits_for_holder(struct worker *worker, struct candidate *c, uint64_t *ret_again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	bool over;
	if (run->options.no_wait || run->dry) /* such a run does not wait */
		return false;
	const bool is_ours = strcmp(c->mark_session, session_id(run->session)) == 0;
	if (c->mark_state != MARK_CLAIMED || is_ours)
		return false;
	candidate_note_held(c);
	if (candidate_held_report_is_due(c)) /* in a turn: by handle_claimed() in claim.c */
		return false;
	return session_end_if_over(run->session, worker->marks, c->mark_session, &over,
		       ret_again_ns, &problem) == OUTCOME_OK &&
	       !over;
}

/* known_read() needs rising keys, but the blocks are in any order. */
static int compare_keys(const void *a, const void *b)
{
	struct candidate *const *const *x = a, *const *const *y = b;
	return strcmp((**x)->key, (**y)->key);
}

/* Reads the marks of n files into ret[n]. places[i] points to the place of a file in its block, and
 * the keys of the files rise. Returns false if the marks cannot be read. */
static bool read_marks_again(
	struct worker *worker, struct candidate **const *places, size_t n, struct packed_mark **ret)
{
	const char *keys[CHECK_CHUNK];
	const struct mark_space *space = &worker->run->space;
	/* The keys are spread evenly over the shards, so a page that is twice as large as the share
	 * of one shard mostly has all of them. If far more marks lie between the wanted ones,
	 * known_read() reads single marks. */
	const unsigned page_rows = PAGE_ROWS_MIN + 2 * (unsigned)n / space->settings.shards;
	struct problem problem = {.text = "out of memory"};
	struct known *known = NULL;
	bool is_read = !known_new(worker->marks, space, &worker->limits, page_rows, &known);
	for (size_t first = 0, chunk; first < n && is_read; first += chunk) {
		chunk = n - first < CHECK_CHUNK ? n - first : CHECK_CHUNK;
		for (size_t i = 0; i < chunk; i++)
			keys[i] = (*places[first + i])->key;
		const bool is_last = first + chunk == n;
		is_read = known_read(known, keys, chunk, is_last, ret + first, &problem) ==
			  OUTCOME_OK;
	}
	if (!is_read) /* each claim will read the mark of its file */
		log_info("reading marks again: %s", problem.text);
	known_free(known);
	return is_read;
}

/* Drops the files that are done, and puts NULL in their places in the blocks. If the marks cannot
 * be read, no file is dropped, and all count as free. `places` and `marks` are working memory, with
 * room for all files of the blocks. */
static void drop_done(struct worker *worker, struct block *blocks, struct candidate ***places,
	struct packed_mark **marks)
{
	size_t n = 0;
	for (struct block *block = blocks; block; block = block->next)
		for (size_t i = 0; i < block->n; i++)
			places[n++] = &block->files[i];
	qsort(places, n, sizeof *places, compare_keys);
	const bool is_read = read_marks_again(worker, places, n, marks);
	for (size_t i = 0; i < n; i++) {
		struct candidate *c = *places[i];
		/* mark_unpack(NULL) is an absent mark */
		const struct mark mark = mark_unpack(marks[i]);
		candidate_note_mark(c, &mark);
		/* An earlier turn may have written this done mark without getting the reply, and
		 * then put the file back (was_marked_done). Such a file is not skipped: its next
		 * turn reports it as uploaded or adopted. */
		const bool is_done =
			is_read && !c->was_marked_done && run_skips_by_mark(worker->run, c, &mark);
		if (is_done && bucket_skip_done(worker->run, worker->marks, c, &mark.done))
			*places[i] = NULL;
		free(marks[i]);
	}
}

/* Whether this file shows that another uploader works on its block, and so will soon claim the
 * other small files there. `c` is NULL for a file that was dropped as done: that uploader has
 * uploaded it since the block was put back. */
static bool shows_other_uploader(const struct candidate *c, bool is_held, uint64_t now_ns)
{
	if (!c)
		return true;
	if (is_held && !c->held_was_reported) /* that uploader has claimed it only recently */
		return true;
	return c->contested_ns && now_ns - c->contested_ns < LEFT_ALONE_NS;
}

/* Returns the pause for the files of a block that have to wait. It is as long as the time since
 * another uploader was met there, from CAME_BACK_AGAIN_NS to LEFT_ALONE_NS. So without a
 * further meeting, each pause is about twice as long as the one before. */
static uint64_t pause_of(const struct block *block, uint64_t now_ns)
{
	uint64_t pause_ns = CAME_BACK_AGAIN_NS;
	for (size_t i = 0; i < block->n; i++) {
		const struct candidate *c = block->files[i];
		const uint64_t since_met_ns = c && c->contested_ns ? now_ns - c->contested_ns : 0;
		if (since_met_ns > pause_ns)
			pause_ns = since_met_ns;
	}
	return pause_ns < LEFT_ALONE_NS ? pause_ns : LEFT_ALONE_NS;
}

/* Puts the files of a block back into the queue. Those that a running uploader holds have to wait.
 * So do the other small ones where that uploader is at work. Frees the block. */
static void put_back(struct worker *worker, struct block *block)
{
	const uint64_t now_ns = clock_boot_ns();
	struct candidate *ready[BLOCK_FILES], *later[BLOCK_FILES];
	size_t n_ready = 0, n_later = 0;
	bool is_held[BLOCK_FILES] = {false}, leaves_small = false;
	/* The end of the pause, or the latest time at which a holder of a file is checked again. */
	uint64_t again_ns = now_ns + pause_of(block, now_ns);
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i]; /* NULL: it is done */
		uint64_t check_ns;
		is_held[i] = c && waits_for_holder(worker, c, &check_ns);
		leaves_small |= shows_other_uploader(c, is_held[i], now_ns);
		if (is_held[i] && check_ns > again_ns)
			again_ns = check_ns;
	}
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i];
		if (!c)
			continue;
		const bool is_left = leaves_small && c->size <= S3ONCE_SMALL_BYTES_MAX;
		if (is_held[i] || is_left)
			later[n_later++] = c;
		else
			ready[n_ready++] = c;
	}
	queue_put_back_later(worker->run->queue, later, n_later, again_ns);
	queue_put_back_checked(worker->run->queue, ready, n_ready);
	free(block);
}

void came_back_check(struct worker *worker, struct block *blocks)
{
	size_t n = 0;
	for (const struct block *block = blocks; block; block = block->next)
		n += block->n;
	assert(n); /* a block has files */
	struct candidate ***places = calloc(n, sizeof(struct candidate **));
	struct packed_mark **marks = calloc(n, sizeof(struct packed_mark *));
	if (places && marks)
		drop_done(worker, blocks, places, marks);
	else
		run_fail(worker->run, PROBLEM("out of memory"));
	free(places);
	free(marks);
	for (struct block *next; blocks; blocks = next) {
		next = blocks->next;
		put_back(worker, blocks);
	}
}
