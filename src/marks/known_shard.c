#include "marks/known_shard.h"
#include "base/pool.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8 /* pages asked for, with the caller's */

int known_condense(const struct item *item, struct known_mark *ret, struct version **ret_version)
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

void known_shard_clear(struct known_shard *shard)
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

enum outcome known_shard_load(const struct known_reading *reading, struct known_shard *shard,
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

enum outcome known_shards_begin(const struct known_reading *reading, struct known_shard *shards,
	const struct known_range *range, struct problem *ret_problem)
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
