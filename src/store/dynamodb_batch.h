/* Writes of single items that leave together, as statements of PartiQL: what a write is as a
 * statement, and the batches. */
#pragma once
#include "base/text.h"
#include "store/dynamodb.h"
#include "store/tickets.h"
#include <stdatomic.h>

/* Conditional writes as PartiQL statements, of which one BatchExecuteStatement carries up to 25.
 * Source: "PartiQL for DynamoDB" (Developer Guide) and BatchExecuteStatement (API Reference).
 *
 * HTTP 200 says nothing about the statements: each has an answer of its own. One that is refused
 * does not bring the item back, whatever ReturnValuesOnConditionCheckFailure asks for. */
#define STATEMENTS_MAX      25   /* in one request */
#define STATEMENT_CHARS_MAX 8192 /* of the statement, without its parameters */

/* How a server wants several changes in one UPDATE. */
enum dynamodb_dialect {
	DIALECT_CLAUSES, /* SET a=? SET b=? REMOVE c REMOVE d, as AWS documents it */
	DIALECT_LISTS,   /* SET a=?, b=? REMOVE c, d, as Dynoxide reads it */
};

/* Adds {"Statement":"…","Parameters":[…]} for a put if absent. It returns false if a statement
 * cannot say it. The text is of no use then, and the write is sent as a request of its own. All
 * values are parameters, and names are written only if they have nothing but letters, digits, "_",
 * "-" and
 * ".". */
bool statement_insert(
	struct text *ret, const struct table *table, struct item_key key, const struct item *item);
/* The same for an update, which never creates the item. A statement can say the conditions EQUALS
 * and ABSENT. */
bool statement_update(struct text *ret, enum dynamodb_dialect dialect, const struct table *table,
	struct item_key key, const struct item_write *update);

/* Begin a request, and add its statements one by one. There are at most STATEMENTS_MAX, and no two
 * about the same item. The texts are copied. */
struct dynamodb_conn;
void dynamodb_batch_begin(struct dynamodb_conn *db);
void dynamodb_batch_add(struct dynamodb_conn *db, const struct text *statement);
/* Sends the n statements that were added.
 *
 * If the outcome is OK, ret_answers has one for each statement, in their order. OK means that it
 * was applied. REFUSED means that it was not, or that an earlier try of ours had been applied.
 * After any other answer the statement should be repeated alone; LOST and TRANSIENT may have been
 * applied.
 *
 * If the outcome is not OK, it is that of each statement, and ret_answers is untouched. */
enum outcome dynamodb_batch_execute(struct dynamodb_conn *db, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem);

/* try_batches of store.h. OK: *ret_how is STORE_BATCHES_NONE if a condition was ignored or the
 * server knows no statements. DENIED: it needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate.
 */
enum outcome dynamodb_try_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem);
/* The dialect that the word stands for; false if there are to be no batches. */
bool dynamodb_batches_dialect(const char *how, enum dynamodb_dialect *ret);

/* Writes of many callers that leave together: a put if absent or an update of each becomes a
 * statement of one BatchExecuteStatement.
 *
 * A write that comes while no other is under way leaves at once, as a request of its own. Those
 * that come meanwhile wait until it has ended, until they are STATEMENTS_MAX, or for 50 ms at most;
 * then one of the waiting callers takes all of them along. One that waits for 5 s for the answer to
 * its batch repeats its write alone: a connection that hangs stalls nobody but the caller that sent
 * it. There is no thread beside the callers', and each caller's abandon() is asked in its own. */
/* One caller's write of an item. All of it is borrowed until the write has ended. */
struct batch_write {
	struct dynamodb_conn *db; /* the caller's own */
	struct item_key key;
	const struct item_write *what;
	const struct call_limits *limits; /* not NULL */
	struct item *ret;
	struct problem *ret_problem;
};

/* A caller's place in the queue. */
struct batch_ticket {
	struct ticket ticket;
	const struct batch_write *write;
	struct text statement;  /* kept for its memory */
	unsigned number;        /* of its statement in the request */
	enum outcome outcome;   /* of an ANSWERED one, as the two below */
	bool is_final;          /* else it is repeated alone */
	struct problem problem; /* of a final outcome that is not OK or REFUSED */
};
int batch_ticket_init(struct batch_ticket *ticket); /* 0 or -errno */
void batch_ticket_clear(struct batch_ticket *ticket);

struct batches {
	atomic_bool is_on;
	atomic_int dialect;
	uv_mutex_t mutex; /* never held while a request is under way or an abandon() is asked */
	struct {
		struct tickets waiting;
		size_t under_way; /* requests */
	} locked;
};
int batches_init(struct batches *batches); /* off; 0 or -errno */
void batches_destroy(struct batches *batches);
/* store_ops.use_batches(). */
void dynamodb_use_batches(struct store *store, const char *how);

/* store_ops.write(): performs the write, alone or together with others. The outcome is the one that
 * dynamodb_write_alone() would have, with these differences: a statement that was throttled, failed
 * or lost is repeated alone before its outcome counts; the item of a refusal is read after it. What
 * statements cannot say, and what has a deadline (a heartbeat), never waits. */
enum outcome dynamodb_write(struct store_conn *conn, struct item_key key,
	const struct item_write *what, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);
