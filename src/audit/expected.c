#include "audit/expected.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX (KEY_BYTES_MAX + 2)

struct expected {
	struct mark_stream *marks;
	struct mark_row *next; /* read ahead; NULL: none */
	bool ended;
	struct mark_row *waiting[WAITING_MAX]; /* falling by the object's key: the last one
							is the next */
	size_t n;
};

static int wait_for_turn(struct expected *expected, struct mark_row *row)
{
	size_t at = expected->n;
	if (at == WAITING_MAX)
		return -EMSGSIZE;
	for (; at && strcmp(expected->waiting[at - 1]->object_key, row->object_key) < 0; at--)
		expected->waiting[at] = expected->waiting[at - 1];
	expected->waiting[at] = row;
	expected->n++;
	return 0;
}

/* Marks that the range leaves out although their objects are above `after`: their keys are
 * beginnings of it. */
struct beginnings {
	struct expected *expected;
	const char *after;
};

static int add_beginning(void *arg, const char *pk, const char *sk, const struct item *item)
{
	const struct beginnings *beginnings = arg;
	struct mark mark;
	(void)pk;
	int error = mark_from_item(item, &mark);
	if (error)
		return error;
	struct mark_row *row = mark_row_new(sk, &mark);
	mark_clear(&mark);
	if (!row)
		return -ENOMEM;
	if (strcmp(row->object_key, beginnings->after) > 0)
		error = wait_for_turn(beginnings->expected, row);
	else
		free(row);
	return error;
}

static enum outcome read_beginnings(struct expected *expected, struct store_conn *conn,
	const struct mark_space *space, const struct mark_range *range,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct beginnings beginnings = {expected, range->after};
	const size_t n = strlen(range->after);
	size_t least = strlen(range->prefix);
	char key[KEY_BYTES_MAX + 1], partition[PARTITION_MAX];
	if (n > KEY_BYTES_MAX || strncmp(range->after, range->prefix, least) != 0)
		return OUTCOME_OK;
	enum outcome o = OUTCOME_OK;
	for (size_t bytes = least ? least : 1; o == OUTCOME_OK && bytes <= n; bytes++) {
		if (!utf8_valid(range->after, bytes))
			continue;
		memcpy(key, range->after, bytes);
		key[bytes] = '\0';
		mark_partition(space, mark_shard(key, space->settings.shards), partition);
		const struct item_key one = {partition, key};
		o = conn->store->ops->get_many(
			conn, &one, 1, limits, add_beginning, &beginnings, ret_problem);
	}
	return o;
}

enum outcome expected_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct expected **ret,
	struct problem *ret_problem)
{
	struct expected *expected = calloc(1, sizeof *expected);
	enum outcome o = OUTCOME_OK;
	if (!expected || mark_stream_new(conn, space, range, limits, &expected->marks) < 0) {
		problem_set(ret_problem, "out of memory");
		o = OUTCOME_LOCAL;
	}
	if (o == OUTCOME_OK && range->after && *range->after)
		o = read_beginnings(expected, conn, space, range, limits, ret_problem);
	if (o == OUTCOME_OK)
		*ret = expected;
	else
		expected_free(expected);
	return o;
}

void expected_free(struct expected *expected)
{
	if (!expected)
		return;
	while (expected->n)
		free(expected->waiting[--expected->n]);
	free(expected->next);
	mark_stream_free(expected->marks);
	free(expected);
}

static enum outcome read_ahead(struct expected *expected, struct problem *ret_problem)
{
	if (expected->next || expected->ended)
		return OUTCOME_OK;
	const enum outcome o = mark_stream_next(expected->marks, &expected->next, ret_problem);
	expected->ended = o == OUTCOME_OK && !expected->next;
	return o;
}

/* The first that waits has its turn once no mark to come can have a smaller object: each has a
 * larger key than the one that was read ahead, and no object's key is below its mark's. */
static bool has_turn(const struct expected *expected)
{
	if (!expected->n)
		return false;
	const struct mark_row *first = expected->waiting[expected->n - 1];
	return expected->ended || strcmp(first->object_key, expected->next->key) <= 0;
}

enum outcome expected_next(
	struct expected *expected, struct mark_row **ret, struct problem *ret_problem)
{
	for (;;) {
		const enum outcome o = read_ahead(expected, ret_problem);
		if (o != OUTCOME_OK)
			return o;
		if (has_turn(expected)) {
			*ret = expected->waiting[--expected->n];
			return OUTCOME_OK;
		}
		struct mark_row *row = expected->next;
		expected->next = NULL;
		if (!row || !*row->suffix) {
			*ret = row;
			return OUTCOME_OK;
		}
		if (wait_for_turn(expected, row) < 0) {
			free(row);
			problem_set(ret_problem, "too many marks stand for one object");
			return OUTCOME_LOCAL;
		}
	}
}
