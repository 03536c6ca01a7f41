#include "marks/done_samples.h"
#include <errno.h>
#include <stdio.h>

#define NEWEST    (DONE_SAMPLES / 2) /* list[0..NEWEST) */
#define MARKS_MAX 20000              /* read of all shards, once one of them says done */

struct sampling {
	struct done_samples *samples;
	uint64_t n_done, n_in_shard; /* seen so far */
	char last[BUCKET_KEY_MAX + 1];
};

static void keep_sample(struct done_sample *at, const char *key, const struct mark *mark)
{
	const int n = snprintf(at->key, sizeof at->key, "%s%s", key, mark->done.suffix);
	snprintf(at->etag, sizeof at->etag, "%s", mark->done.etag);
	at->at_s = mark->at_s;
	if (n >= (int)sizeof at->key) /* no key of S3's */
		at->key[0] = '\0';
}

static void consider(struct sampling *sampling, const char *key, const struct mark *mark)
{
	struct done_samples *samples = sampling->samples;
	const uint64_t nth = sampling->n_done++;
	if (nth < DONE_SAMPLES) {
		keep_sample(&samples->list[samples->n++], key, mark);
		return;
	}
	struct done_sample *oldest = &samples->list[0];
	for (unsigned i = 1; i < NEWEST; i++)
		if (samples->list[i].at_s < oldest->at_s)
			oldest = &samples->list[i];
	if (mark->at_s > oldest->at_s)
		keep_sample(oldest, key, mark);
	const uint64_t place = random_below(nth + 1);
	if (place < DONE_SAMPLES - NEWEST)
		keep_sample(&samples->list[NEWEST + place], key, mark);
}

static int visit(void *arg, const char *pk, const char *sk, const struct item *item)
{
	struct sampling *sampling = arg;
	struct mark mark;
	(void)pk;
	if (mark_from_item(item, &mark))
		return -ENOMEM;
	if (mark.state == MARK_DONE)
		consider(sampling, sk, &mark);
	mark_clear(&mark);
	sampling->n_in_shard++;
	snprintf(sampling->last, sizeof sampling->last, "%s", sk);
	return 0;
}

static enum outcome read_shard(struct store_conn *conn, const struct mark_space *space,
	unsigned shard, const struct call_limits *limits, struct sampling *sampling,
	struct problem *ret_problem)
{
	char partition[PARTITION_MAX];
	bool more = true;
	enum outcome o = OUTCOME_OK;
	mark_partition(space, shard, partition);
	sampling->n_in_shard = 0;
	while (o == OUTCOME_OK && more &&
		(!sampling->n_done || sampling->n_in_shard < MARKS_MAX / space->settings.shards)) {
		char from[BUCKET_KEY_MAX + 1];
		snprintf(from, sizeof from, "%s", sampling->last);
		const struct store_range range = {.pk = partition,
			.from = sampling->n_in_shard ? from : NULL,
			.after = true,
			.consistent = true};
		o = conn->store->ops->query(
			conn, &range, limits, visit, sampling, &more, ret_problem);
	}
	return o;
}

enum outcome done_samples_take(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct done_samples *ret, struct problem *ret_problem)
{
	struct sampling sampling = {.samples = ret};
	enum outcome o = OUTCOME_OK;
	ret->n = 0;
	for (unsigned i = 0; i < space->settings.shards && o == OUTCOME_OK; i++)
		o = read_shard(conn, space, i, limits, &sampling, ret_problem);
	return o;
}
