/* The cheap read of marks before claiming: the pages of each shard, joined with the sorted keys of
 * the scan, or single reads where few of them are wanted. The scan's thread asks, and a worker that
 * opens a block that others may be in. Nothing is decided by it but that a file is done already. */
#include "marks/known.h"
#include "base/pool.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8   /* pages asked for, with the caller's */
#define BATCH   100 /* keys of a BatchGetItem */

struct known_row {
	char *key; /* owned */
	struct known_mark mark;
	struct version *version; /* owned; NULL unless it is done and versions are kept */
};

/* Where the query stands: rows[at..n) are the rest of its page, all above the last key asked for.
 * Zero is one that was not read yet. */
struct known_shard {
	struct known_row *rows;
	size_t n, at, cap;
	bool keeps_versions;
	bool started, more;
};

/* How shards are read. Borrowed. */
struct known_reading {
	struct store_conn *conn;
	const struct mark_space *space;
	struct call_limits limits;
	bool keeps_versions;
};
/* Keys from..to; `to` may be NULL. */
struct known_range {
	const char *from, *to;
};

/* Sets what is needed of a mark. ret_version is NULL if the version is not; else it is set for one
 * that is done, for the caller to free. 0 or -ENOMEM. */
static int known_condense(
	const struct item *item, struct known_mark *ret, struct version **ret_version)
{
	struct mark mark;
	int error = mark_from_item(item, &mark);
	if (error)
		return error;
	*ret = (struct known_mark){.state = mark.state, .at_s = mark.at_s};
	if (mark.state == MARK_DONE) {
		ret->size = mark.done.size;
		ret->mtime_ns = mark.done.mtime_ns;
		ret->mtime_is_shared = mark.done.mtime_is_shared;
		ret->has_newer = mark.has_newer;
		memcpy(ret->content, mark.done.content, sizeof ret->content);
	}
	memcpy(ret->session, mark.session, sizeof ret->session);
	if (ret_version && mark.state == MARK_DONE) {
		*ret_version = malloc(sizeof **ret_version);
		if (*ret_version)
			**ret_version = mark.done;
		else
			error = -ENOMEM;
	}
	mark_clear(&mark);
	return error;
}

static void empty_shard(struct known_shard *shard)
{
	for (size_t i = 0; i < shard->n; i++) {
		free(shard->rows[i].key);
		free(shard->rows[i].version);
	}
	shard->n = shard->at = 0;
}

static void known_shard_clear(struct known_shard *shard)
{
	empty_shard(shard);
	free(shard->rows);
}

static int add_known_row(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct known_shard *shard = arg;
	(void)pk;
	if (shard->n == shard->cap) {
		size_t cap = shard->cap ? 2 * shard->cap : 64;
		struct known_row *rows = realloc(shard->rows, cap * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		shard->rows = rows;
		shard->cap = cap;
	}
	struct known_row *row = &shard->rows[shard->n];
	*row = (struct known_row){.key = strdup(sk)};
	int error = row->key ? known_condense(item, &row->mark,
				       shard->keeps_versions ? &row->version : NULL)
			     : -ENOMEM;
	if (error)
		free(row->key);
	else
		shard->n++;
	return error;
}

/* The next page of the shard with this number, in place of the one before: marks below range->from
 * are of no interest any more. */
static enum outcome known_shard_load(const struct known_reading *reading, struct known_shard *shard,
	unsigned number, const struct known_range *range, struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	mark_partition(reading->space, number, partition);
	const struct store_range rows = {.pk = partition, .from = range->from, .to = range->to};
	bool more = false;
	empty_shard(shard);
	shard->keeps_versions = reading->keeps_versions;
	enum outcome o = reading->conn->store->ops->query(
		reading->conn, &rows, &reading->limits, add_known_row, shard, &more, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	shard->started = true;
	shard->more = more && shard->n;
	return OUTCOME_OK;
}

/* What the threads share that read the first pages. */
struct beginning {
	const struct known_reading *reading;
	struct known_shard *shards;
	const struct known_range *range;
	atomic_uint next; /* shard to be read */
	atomic_bool has_failed;
};

/* One of them. */
struct reader_of_pages {
	struct beginning *beginning;
	enum outcome outcome;
	struct problem problem;
};

static void read_first_pages(struct reader_of_pages *reader, struct store_conn *conn)
{
	struct beginning *beginning = reader->beginning;
	struct known_reading reading = *beginning->reading;
	const unsigned shards = reading.space->settings.shards;
	unsigned number;
	reading.conn = conn;
	while (!atomic_load(&beginning->has_failed) &&
		(number = atomic_fetch_add(&beginning->next, 1)) < shards) {
		reader->outcome = known_shard_load(&reading, &beginning->shards[number], number,
			beginning->range, &reader->problem);
		if (reader->outcome != OUTCOME_OK)
			atomic_store(&beginning->has_failed, true);
	}
}

/* Without a connection it leaves all shards to the others. */
static void help_to_read(void *arg)
{
	struct reader_of_pages *reader = arg;
	struct store_conn *conn;
	if (store_conn_new(reader->beginning->reading->conn->store, &conn))
		return;
	read_first_pages(reader, conn);
	store_conn_free(conn);
}

/* The first page of every shard, of several at the same time: where a request takes 20 ms, sixteen
 * shards one after the other would take a third of a second. It uses threads and connections of its
 * own beside the caller's, as far as there are any to be had. OK: all are started. Else the first
 * error, and no more pages are asked for. */
static enum outcome known_shards_begin(const struct known_reading *reading,
	struct known_shard *shards, const struct known_range *range, struct problem *ret_problem)
{
	struct beginning beginning = {.reading = reading, .shards = shards, .range = range};
	struct reader_of_pages readers[AT_ONCE] = {{.beginning = &beginning}};
	const unsigned most = reading->space->settings.shards;
	const struct pool_options options = {.most = AT_ONCE - 1};
	struct pool pool;
	const bool has_pool = !pool_init(&pool, &options);
	for (unsigned i = 1; i < AT_ONCE && i < most && has_pool; i++) {
		readers[i].beginning = &beginning;
		if (!pool_start(&pool, help_to_read, &readers[i]))
			break;
	}
	read_first_pages(&readers[0], reading->conn);
	if (has_pool)
		pool_end(&pool);
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (readers[i].outcome != OUTCOME_OK) {
			*ret_problem = readers[i].problem;
			return readers[i].outcome;
		}
	return OUTCOME_OK;
}

/* A mark in a page costs 1/20 of a single read. Below this share of wanted marks, single reads are
 * cheaper. */
#define WORTH_ONE_IN     20
#define ROWS_TO_JUDGE_BY 2000

struct known {
	struct known_reading reading;
	size_t rows_passed, rows_wanted; /* by the cursors, so far */
	bool asked;
	bool sparse; /* single reads from here on */
	struct known_shard shards[];
};

bool known_is_done(const struct known_mark *mark, const struct asked *file)
{
	if (mark->state != MARK_DONE || mark->has_newer)
		return false;
	if (*file->content && *mark->content)
		return strcmp(file->content, mark->content) == 0;
	return mark->size == file->size && mark->mtime_ns == file->mtime_ns &&
	       !mark->mtime_is_shared;
}

int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, bool keeps_versions, struct known **ret)
{
	struct known *known =
		calloc(1, sizeof *known + space->settings.shards * sizeof *known->shards);
	if (!known)
		return -ENOMEM;
	known->reading = (struct known_reading){conn, space, *limits, keeps_versions};
	*ret = known;
	return 0;
}

void known_free(struct known *known)
{
	if (!known)
		return;
	for (unsigned i = 0; i < known->reading.space->settings.shards; i++)
		known_shard_clear(&known->shards[i]);
	free(known);
}

static enum outcome find_known(struct known *known, const char *key, const char *to,
	struct known_mark *ret, struct version **ret_version, struct problem *ret_problem)
{
	unsigned number = mark_shard(key, known->reading.space->settings.shards);
	struct known_shard *shard = &known->shards[number];
	*ret = (struct known_mark){0};
	int order = -1;
	for (;;) {
		while (shard->at < shard->n &&
			(order = strcmp(shard->rows[shard->at].key, key)) < 0)
			shard->at++, known->rows_passed++;
		if (shard->at < shard->n || (shard->started && !shard->more))
			break;
		enum outcome o = known_shard_load(&known->reading, shard, number,
			&(struct known_range){key, to}, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
	if (shard->at < shard->n && order == 0) {
		*ret = shard->rows[shard->at].mark;
		if (ret_version) {
			*ret_version = shard->rows[shard->at].version;
			shard->rows[shard->at].version = NULL;
		}
		known->rows_wanted++;
	}
	return OUTCOME_OK;
}

static void forget_versions(struct version **versions, size_t n, bool are_set)
{
	for (size_t i = 0; versions && i < n; i++) {
		if (are_set)
			free(versions[i]);
		versions[i] = NULL;
	}
}

enum outcome known_read(struct known *known, const char *const *keys, size_t n, bool last,
	struct known_mark *ret, struct version **ret_versions, struct problem *ret_problem)
{
	if (!n)
		return OUTCOME_OK;
	const struct known_reading *reading = &known->reading;
	const bool is_first = !known->asked;
	known->asked = true;
	if (known->sparse || (last && n <= BATCH && is_first))
		return known_again(reading->conn, reading->space, keys, n, &reading->limits, ret,
			ret_versions, ret_problem);
	forget_versions(ret_versions, n, false);
	const struct known_range range = {keys[0], last ? keys[n - 1] : NULL};
	if (is_first && n > reading->space->settings.shards) {
		enum outcome o = known_shards_begin(reading, known->shards, &range, ret_problem);
		if (o != OUTCOME_OK)
			return o;
	}
	for (size_t i = 0; i < n; i++) {
		enum outcome o = find_known(known, keys[i], range.to, &ret[i],
			ret_versions ? &ret_versions[i] : NULL, ret_problem);
		if (o != OUTCOME_OK) {
			forget_versions(ret_versions, i, true);
			return o;
		}
	}
	known->sparse = known->rows_passed >= ROWS_TO_JUDGE_BY &&
			known->rows_wanted * WORTH_ONE_IN < known->rows_passed;
	return OUTCOME_OK;
}

struct batch {
	const char *const *keys; /* rising */
	size_t n;
	struct known_mark *ret;
	struct version **ret_versions; /* NULL: they are not wanted */
};

static int compare_key(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static int found(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct batch *batch = arg;
	(void)pk;
	const char *const *at =
		bsearch(sk, batch->keys, batch->n, sizeof *batch->keys, compare_key);
	if (!at)
		return 0;
	const size_t i = (size_t)(at - batch->keys);
	struct version *version = NULL;
	const int error =
		known_condense(item, &batch->ret[i], batch->ret_versions ? &version : NULL);
	if (batch->ret_versions) {
		free(batch->ret_versions[i]); /* of a reply that is read once more */
		batch->ret_versions[i] = version;
	}
	return error;
}

static enum outcome read_batch(struct store_conn *conn, const struct mark_space *space,
	struct batch *batch, const struct call_limits *limits, struct problem *ret_problem)
{
	struct item_key keys[BATCH];
	char(*partitions)[PARTITION_MAX] = malloc(batch->n * sizeof *partitions);
	if (!partitions) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	for (size_t i = 0; i < batch->n; i++) {
		unsigned shard = mark_shard(batch->keys[i], space->settings.shards);
		mark_partition(space, shard, partitions[i]);
		keys[i] = (struct item_key){partitions[i], batch->keys[i]};
		batch->ret[i] = (struct known_mark){0};
	}
	enum outcome o =
		conn->store->ops->get_many(conn, keys, batch->n, limits, found, batch, ret_problem);
	free(partitions);
	return o;
}

enum outcome known_again(struct store_conn *conn, const struct mark_space *space,
	const char *const *keys, size_t n, const struct call_limits *limits, struct known_mark *ret,
	struct version **ret_versions, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	forget_versions(ret_versions, n, false);
	for (size_t at = 0; o == OUTCOME_OK && at < n; at += BATCH) {
		struct batch batch = {keys + at, n - at < BATCH ? n - at : BATCH, ret + at,
			ret_versions ? ret_versions + at : NULL};
		o = read_batch(conn, space, &batch, limits, ret_problem);
	}
	if (o != OUTCOME_OK)
		forget_versions(ret_versions, n, true);
	return o;
}
