/* A simulated DynamoDB: one table. A request goes in, the answer comes out, and nothing else
 * happens: delays, losses and duplicates are the wire's (net.h).
 *
 * What it knows: PutItem, UpdateItem, DeleteItem, GetItem, BatchGetItem, Query, Scan,
 * BatchExecuteStatement, DescribeTable, CreateTable, UpdateTimeToLive, DescribeTimeToLive. The key
 * of an item is pk and sk, which are strings. */
#pragma once
#include "chance.h"
#include "wire.h"
#include <jansson.h>

enum dynamodb_batches { BATCHES_CLAUSES, BATCHES_LISTS, BATCHES_NONE };
struct dynamodb_habits {
	enum dynamodb_batches batches; /* which PartiQL it reads */
	const char *ttl;               /* the attribute of TTL; NULL: it is off at first */
	bool hash_only;                /* the key is pk alone */
	bool returns_old;              /* ReturnValuesOnConditionCheckFailure is honoured */
	bool may_read_stale; /* reads that are not ConsistentRead may show what was before */
	size_t page_items;   /* of Query and Scan; 0: 1,000 */
	/* Of 1,000 statements and keys of a batch, so many are throttled, fail, or are left out. */
	unsigned partial_per_mille;
};

struct world_dynamodb;
/* Is told of each change of an item, before it is there. `now` or `old` is NULL if there is none.
 */
typedef void dynamodb_witness(void *arg, const struct wire_request *request, const char *pk,
	const char *sk, const json_t *old, const json_t *now);
struct world_dynamodb *world_dynamodb_new(uint64_t seed, const char *table,
	const struct dynamodb_habits *habits, dynamodb_witness *witness, void *arg);
void world_dynamodb_free(struct world_dynamodb *db);
/* From now on nothing of a batch is left out. */
void world_dynamodb_calm(struct world_dynamodb *db);
/* now_s: seconds since 1970, by which items expire. */
void world_dynamodb_answer(struct world_dynamodb *db, const struct wire_request *request,
	int64_t now_s, struct wire_reply *ret);
/* The item, or NULL; borrowed until the next request. */
const json_t *world_dynamodb_item(const struct world_dynamodb *db, const char *pk, const char *sk);
/* The i-th item in the order of the keys, or NULL. */
const json_t *world_dynamodb_at(const struct world_dynamodb *db, size_t i);
/* The string or number of an attribute, or "". */
const char *dynamodb_text(const json_t *item, const char *name);
/* What the requests so far have cost: half read units, since an eventually consistent read of up to
 * 4 KB costs half of one, and write units. */
struct dynamodb_bill {
	uint64_t half_reads, writes;
};
struct dynamodb_bill world_dynamodb_bill(const struct world_dynamodb *db);
/* People delete an item. */
void world_dynamodb_forget(struct world_dynamodb *db, const char *pk, const char *sk);
