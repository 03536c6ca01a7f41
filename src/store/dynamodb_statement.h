/* Conditional writes as PartiQL statements, of which one BatchExecuteStatement carries up to 25.
 * Source: "PartiQL for DynamoDB" (Developer Guide) and BatchExecuteStatement (API Reference).
 *
 * HTTP 200 says nothing about the statements: each has an answer of its own. One that is refused
 * does not bring the item back, whatever ReturnValuesOnConditionCheckFailure asks for. */
#pragma once
#include "base/text.h"
#include "store/dynamodb.h"

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

/* Begin a request, and add its statements one by one. There are at most STATEMENTS_MAX, all about
 * the same table, and no two about the same item. The texts are copied. */
void dynamodb_batch_begin(struct dynamodb_conn *conn, const char *table);
void dynamodb_batch_add(struct dynamodb_conn *conn, const struct text *statement);
/* Sends the n statements that were added.
 *
 * If the outcome is OK, ret_answers has one for each statement, in their order. OK means that it
 * was applied. REFUSED means that it was not, or that an earlier try of ours had been applied.
 * After any other answer the statement should be repeated alone; LOST and TRANSIENT may have been
 * applied.
 *
 * If the outcome is not OK, it is that of each statement, and ret_answers is untouched. */
enum outcome dynamodb_batch_execute(struct dynamodb_conn *conn, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem);

/* Tries it on two new items in this partition, as try_batches of store.h says. OK: *ret_how is a
 * word for dynamodb_batches_dialect, STORE_BATCHES_NONE if a condition was ignored or the server
 * knows no statements. DENIED: it needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate. Any
 * other outcome: nothing was learnt. limits may be NULL. */
enum outcome dynamodb_batches_probe(struct dynamodb_conn *conn, const struct table *table,
	const char *pk, const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem);
/* The dialect that the word stands for; false if there are to be no batches. */
bool dynamodb_batches_dialect(const char *how, enum dynamodb_dialect *ret);
