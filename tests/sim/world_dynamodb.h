/* A simulated DynamoDB with one table. It takes a request and returns the reply, and does nothing
 * else: delays, losses and copies belong to the network (net.h).
 *
 * It knows PutItem, UpdateItem, DeleteItem, GetItem, BatchGetItem, Query, Scan,
 * BatchExecuteStatement, DescribeTable, CreateTable, UpdateTimeToLive, DescribeTimeToLive. The key
 * of an item is pk and sk, which are strings. */
#pragma once
#include "chance.h"
#include "wire.h"
#include <jansson.h>

enum dynamodb_batches { BATCHES_CLAUSES, BATCHES_LISTS, BATCHES_NONE };
struct dynamodb_habits {
	enum dynamodb_batches batches; /* the dialect of PartiQL */
	const char *ttl;               /* the attribute of TTL; NULL: off at first */
	bool hash_only;                /* the key is pk alone */
	bool returns_old;              /* ReturnValuesOnConditionCheckFailure is honoured */
	bool may_read_stale;           /* reads without ConsistentRead may return earlier items */
	size_t page_items;             /* of Query and Scan; 0: 1,000 */
	/* Of 1,000 statements and keys of batches, so many are throttled, fail, or stay
	 * unprocessed. */
	unsigned partial_per_mille;
};

struct world_dynamodb;
/* Called before each change of an item takes effect. `old` is NULL for a new item, and `now` for a
 * deleted one. */
typedef void dynamodb_witness(void *arg, const struct wire_request *request, const char *pk,
	const char *sk, const json_t *old, const json_t *now);
struct world_dynamodb *world_dynamodb_new(uint64_t seed, const char *table,
	const struct dynamodb_habits *habits, dynamodb_witness *witness, void *arg);
void world_dynamodb_free(struct world_dynamodb *db);
/* From now on, batches are processed completely. */
void world_dynamodb_calm(struct world_dynamodb *db);
/* Answers a request. now_s: the time in seconds since 1970, at which items may have expired. */
void world_dynamodb_answer(struct world_dynamodb *db, const struct wire_request *request,
	int64_t now_s, struct wire_reply *ret);
/* Returns an item, borrowed until the next request, or NULL. */
const json_t *world_dynamodb_item(const struct world_dynamodb *db, const char *pk, const char *sk);
/* Returns the i-th item in the order of the keys, or NULL. */
const json_t *world_dynamodb_at(const struct world_dynamodb *db, size_t i);
/* Returns the string or number of an attribute, or "". */
const char *dynamodb_text(const json_t *item, const char *name);
/* The cost of the requests so far: half read units, since an eventually consistent read of up to 4
 * KB costs half a unit, and write units. */
struct dynamodb_bill {
	uint64_t half_reads, writes;
};
struct dynamodb_bill world_dynamodb_bill(const struct world_dynamodb *db);
/* Deletes an item, as people may do. */
void world_dynamodb_forget(struct world_dynamodb *db, const char *pk, const char *sk);
