#include "marks/known_shard.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 100 /* keys of a BatchGetItem */

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
