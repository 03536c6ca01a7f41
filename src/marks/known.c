/* Reads marks before files are claimed, as cheaply as possible: the pages of each shard, merged
 * with the sorted keys of the scan, or single marks where few of them are wanted. The scan's thread
 * calls it, and so does a worker that opens a block which other uploaders may have begun. Nothing
 * is written or decided here: run_skips_by_mark() in src/upload/run.c decides whether a file is
 * done by its mark. */
#include "marks/known.h"
#include "base/pool.h"
#include "marks/mark_stream.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define READERS        8   /* threads that read pages at once, with that of the caller */
#define BATCH_KEYS_MAX 100 /* the most keys of one BatchGetItem */

/* A mark in a page costs 1/20 of a single read. If fewer of the marks in the pages are wanted than
 * 1 in 20, single reads are cheaper. */
#define PAGES_WORTH_ONE_IN 20
/* number of marks that have to be passed before their share counts */
#define ROWS_TO_JUDGE_BY 2000

struct known {
	struct store_conn *conn;
	struct mark_pages_options options;
	struct mark_pages *pages;
	size_t rows_wanted; /* number of wanted ones among the marks passed in the pages */
	bool was_read;      /* known_read() was called before */
	bool is_sparse;     /* the wanted marks are so sparse that single reads are cheaper */
};

/* The state that the threads share that read the first pages. */
struct beginning {
	struct known *known;
	const char *from, *to;
	atomic_uint next; /* shard to be read */
	atomic_bool has_failed;
	enum outcome outcome; /* outcome of the first read that failed, like `problem` */
	struct problem problem;
};

/* Reads first pages, each of a shard that no other thread has begun with. Ends after the last
 * shard, or once a read has failed in any thread. */
static void read_untaken_shards(struct beginning *beginning, struct store_conn *conn)
{
	struct known *known = beginning->known;
	const unsigned shards = known->options.space->settings.shards;
	struct problem problem = {0};
	while (!atomic_load(&beginning->has_failed)) {
		const unsigned number = atomic_fetch_add(&beginning->next, 1);
		if (number >= shards)
			return;
		const enum outcome o = mark_pages_load(
			known->pages, conn, number, beginning->from, beginning->to, &problem);
		/* Only the first thread that fails writes the outcome. */
		if (o != OUTCOME_OK && !atomic_exchange(&beginning->has_failed, true)) {
			beginning->outcome = o;
			beginning->problem = problem;
		}
	}
}

/* The thread of a helper. Without a connection it leaves all shards to the other threads. */
static void help_to_read(void *arg)
{
	struct beginning *beginning = arg;
	struct store_conn *conn;
	if (store_conn_new(beginning->known->conn->store, &conn))
		return;
	read_untaken_shards(beginning, conn);
	store_conn_free(conn);
}

/* Reads the first page of every shard, several at a time. Where a request takes 20 ms, sixteen
 * shards one after the other would take a third of a second. Further threads help, each by a
 * connection of its own. If there are none, the caller's thread reads all pages.
 *
 * OK if all pages were read. Otherwise the outcome is the first error, and no more pages are
 * requested. */
static enum outcome read_first_pages(
	struct known *known, const char *from, const char *to, struct problem *ret_problem)
{
	struct beginning beginning = {.known = known, .from = from, .to = to};
	const struct pool_options options = {.max_threads = READERS - 1};
	const unsigned shards = known->options.space->settings.shards;
	const unsigned readers = shards < READERS ? shards : READERS; /* with that of the caller */
	struct pool pool;
	const bool has_pool = !pool_init(&pool, &options);
	for (unsigned i = 1; i < readers && has_pool; i++)
		if (!pool_start(&pool, help_to_read, &beginning))
			break;
	read_untaken_shards(&beginning, known->conn);
	if (has_pool)
		pool_end(&pool);
	if (beginning.outcome != OUTCOME_OK)
		*ret_problem = beginning.problem;
	return beginning.outcome;
}

int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, unsigned page_rows, struct known **ret)
{
	const struct mark_pages_options options = {
		.space = space, .limits = *limits, .page_rows = page_rows};
	struct known *known = calloc(1, sizeof *known);
	if (!known || mark_pages_new(&options, &known->pages)) {
		free(known);
		return -ENOMEM;
	}
	known->conn = conn;
	known->options = options;
	*ret = known;
	return 0;
}

void known_free(struct known *known)
{
	if (!known)
		return;
	mark_pages_free(known->pages);
	free(known);
}

static void free_marks(struct packed_mark **marks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(marks[i]);
		marks[i] = NULL;
	}
}

/* Reads the marks of n rising keys from the pages of their shards. Pages are read up to the key
 * `to`; NULL: without an end. The caller fills `ret` with n NULLs; each whose key has a mark is
 * replaced by that mark. */
static enum outcome read_from_pages(struct known *known, const char *const *keys, size_t n,
	const char *to, struct packed_mark **ret, struct problem *ret_problem)
{
	const unsigned shards = known->options.space->settings.shards;
	enum outcome o = OUTCOME_OK;
	for (size_t i = 0; i < n && o == OUTCOME_OK; i++) {
		const unsigned shard = mark_shard(keys[i], shards);
		const struct packed_mark *row = NULL;
		o = mark_pages_seek(
			known->pages, known->conn, shard, keys[i], to, &row, ret_problem);
		if (o == OUTCOME_OK && row && strcmp(row->key, keys[i]) == 0) {
			ret[i] = mark_pages_take(known->pages, shard);
			known->rows_wanted++;
		}
	}
	if (o != OUTCOME_OK)
		free_marks(ret, n);
	return o;
}

enum outcome known_read(struct known *known, const char *const *keys, size_t n, bool is_last,
	struct packed_mark **ret, struct problem *ret_problem)
{
	const struct mark_space *space = known->options.space;
	const bool is_first = !known->was_read;
	if (!n)
		return OUTCOME_OK;
	known->was_read = true;
	/* A list that is the only one is read in one batch if it is short. */
	const bool fits_a_batch = is_first && is_last && n <= BATCH_KEYS_MAX;
	if (known->is_sparse || fits_a_batch)
		return known_read_again(
			known->conn, space, keys, n, &known->options.limits, ret, ret_problem);
	memset(ret, 0, n * sizeof(void *));
	const char *to = is_last ? keys[n - 1] : NULL;
	enum outcome o = OUTCOME_OK;
	/* Few keys do not need every shard. mark_pages_seek() reads those that are needed. */
	if (is_first && n > space->settings.shards)
		o = read_first_pages(known, keys[0], to, ret_problem);
	if (o == OUTCOME_OK)
		o = read_from_pages(known, keys, n, to, ret, ret_problem);
	const size_t passed = mark_pages_passed(known->pages);
	known->is_sparse =
		passed >= ROWS_TO_JUDGE_BY && known->rows_wanted * PAGES_WORTH_ONE_IN < passed;
	return o;
}

/* Single reads of the marks of these keys, and the places of their results. */
struct single_reads {
	const char *const *keys; /* rising */
	size_t n;
	struct packed_mark **ret;
};

static int compare_key(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

/* Puts a mark that was read to the place of its key. 0 or -ENOMEM. */
static int place_mark(void *arg, const struct found_item *found)
{
	struct single_reads *reads = arg;
	const char *const *key =
		bsearch(found->key.sk, reads->keys, reads->n, sizeof *reads->keys, compare_key);
	if (!key)
		return 0;
	struct packed_mark **mark = &reads->ret[key - reads->keys];
	free(*mark); /* the same mark may come twice */
	*mark = mark_pack(found);
	return *mark ? 0 : -ENOMEM;
}

enum outcome known_read_again(struct store_conn *conn, const struct mark_space *space,
	const char *const *keys, size_t n, const struct call_limits *limits,
	struct packed_mark **ret, struct problem *ret_problem)
{
	struct single_reads reads = {.keys = keys, .n = n, .ret = ret};
	/* One more than n, so that NULL always means that memory ran out, even if n is 0. */
	struct item_key *items = calloc(n + 1, sizeof *items);
	char(*partitions)[PARTITION_MAX] = malloc((n + 1) * sizeof *partitions);
	enum outcome o;
	memset(ret, 0, n * sizeof(void *));
	if (items && partitions) {
		for (size_t i = 0; i < n; i++)
			items[i] = mark_key(space, keys[i], partitions[i]);
		o = conn->store->ops->get_many(
			conn, items, n, limits, place_mark, &reads, ret_problem);
	} else {
		o = outcome_no_memory(ret_problem);
	}
	free(items);
	free(partitions);
	if (o != OUTCOME_OK)
		free_marks(ret, n);
	return o;
}
