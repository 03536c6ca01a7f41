#include "marks/known.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 100 /* keys of a BatchGetItem */

/* A mark in a page costs 1/20 of a single read. Below this share of wanted marks, single reads are
 * cheaper. */
#define WORTH_ONE_IN     20
#define ROWS_TO_JUDGE_BY 2000

struct row {
	char *key; /* owned */
	struct known_mark mark;
	struct version *version; /* owned; NULL unless it is done and versions are kept */
};

/* Where the query of a shard stands: rows[at..n) are the rest of its page, all above the last key
 * asked for. */
struct shard {
	struct row *rows;
	size_t n, at, cap;
	bool keeps_versions; /* as the whole */
	bool started, more;
};

struct known {
	struct store_conn *conn;
	const struct mark_space *space;
	struct call_limits limits;
	size_t rows_passed, rows_wanted; /* by the cursors, so far */
	bool keeps_versions;
	bool asked;
	bool sparse; /* single reads from here on */
	struct shard shards[];
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

/* ret_version is NULL if the version is not needed. */
static int condense(const struct item *item, struct known_mark *ret, struct version **ret_version)
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

int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, bool keeps_versions, struct known **ret)
{
	struct known *known =
		calloc(1, sizeof *known + space->settings.shards * sizeof *known->shards);
	if (!known)
		return -ENOMEM;
	known->conn = conn;
	known->space = space;
	known->limits = *limits;
	known->keeps_versions = keeps_versions;
	*ret = known;
	return 0;
}

static void empty_shard(struct shard *shard)
{
	for (size_t i = 0; i < shard->n; i++) {
		free(shard->rows[i].key);
		free(shard->rows[i].version);
	}
	shard->n = shard->at = 0;
}

void known_free(struct known *known)
{
	if (!known)
		return;
	for (unsigned i = 0; i < known->space->settings.shards; i++) {
		empty_shard(&known->shards[i]);
		free(known->shards[i].rows);
	}
	free(known);
}

static int add_known_row(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct shard *shard = arg;
	(void)pk;
	if (shard->n == shard->cap) {
		size_t cap = shard->cap ? 2 * shard->cap : 64;
		struct row *rows = realloc(shard->rows, cap * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		shard->rows = rows;
		shard->cap = cap;
	}
	struct row *row = &shard->rows[shard->n];
	*row = (struct row){.key = strdup(sk)};
	int error =
		row->key ? condense(item, &row->mark, shard->keeps_versions ? &row->version : NULL)
			 : -ENOMEM;
	if (error)
		free(row->key);
	else
		shard->n++;
	return error;
}

/* The next page of a shard, from a key on: marks below it are of no interest any more. */
static enum outcome load_known_page(struct known *known, unsigned number, const char *key,
	const char *to, struct problem *ret_problem)
{
	struct shard *shard = &known->shards[number];
	char partition[PARTITION_MAX];
	mark_partition(known->space, number, partition);
	const struct dynamodb_range range = {.pk = partition, .from = key, .to = to};
	bool more = false;
	empty_shard(shard);
	shard->keeps_versions = known->keeps_versions;
	enum outcome o = known->conn->store->ops->query(
		known->conn, &range, &known->limits, add_known_row, shard, &more, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	shard->started = true;
	shard->more = more && shard->n;
	return OUTCOME_OK;
}

static enum outcome find_known(struct known *known, const char *key, const char *to,
	struct known_mark *ret, struct version **ret_version, struct problem *ret_problem)
{
	unsigned number = mark_shard(key, known->space->settings.shards);
	struct shard *shard = &known->shards[number];
	*ret = (struct known_mark){0};
	int order = -1;
	for (;;) {
		while (shard->at < shard->n &&
			(order = strcmp(shard->rows[shard->at].key, key)) < 0)
			shard->at++, known->rows_passed++;
		if (shard->at < shard->n || (shard->started && !shard->more))
			break;
		enum outcome o = load_known_page(known, number, key, to, ret_problem);
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
	const bool few = last && n <= BATCH && !known->asked;
	known->asked = true;
	if (known->sparse || few)
		return known_again(known->conn, known->space, keys, n, &known->limits, ret,
			ret_versions, ret_problem);
	forget_versions(ret_versions, n, false);
	for (size_t i = 0; i < n; i++) {
		enum outcome o = find_known(known, keys[i], last ? keys[n - 1] : NULL, &ret[i],
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
	const int error = condense(item, &batch->ret[i], batch->ret_versions ? &version : NULL);
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
