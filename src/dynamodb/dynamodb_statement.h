/* Conditional writes as PartiQL statements, of which one BatchExecuteStatement carries up to 25.
 * Source: "PartiQL for DynamoDB" (Developer Guide) and BatchExecuteStatement (API Reference).
 *
 * HTTP 200 says nothing about the statements: each has an answer of its own. One that is refused
 * does not bring the item back, whatever ReturnValuesOnConditionCheckFailure asks for. */
#pragma once
#include "base/text.h"
#include "dynamodb/dynamodb.h"

#define STATEMENTS_MAX      25   /* in one request */
#define STATEMENT_CHARS_MAX 8192 /* of the statement, without its parameters */

/* How a server wants several changes in one UPDATE. */
enum dynamodb_dialect {
	DIALECT_CLAUSES, /* SET a=? SET b=? REMOVE c REMOVE d, as AWS documents it */
	DIALECT_LISTS,   /* SET a=?, b=? REMOVE c, d, as Dynoxide reads it */
};

/* Adds {"Statement":"…","Parameters":[…]} of a put if absent. False if a statement cannot say it:
 * then the text is of no use, and the write goes as a request of its own. All values travel as
 * parameters, and only plain names (letters, digits, "_", "-", ".") are written. */
bool statement_insert(
	struct text *ret, const struct table *table, struct item_key key, const struct item *item);
/* The same of an update, which never creates the item. The conditions of statements are EQUALS and
 * ABSENT. */
struct statement_update {
	const struct change *changes;
	size_t n_changes;
	const struct condition *conditions;
	size_t n_conditions;
};
bool statement_update(struct text *ret, enum dynamodb_dialect dialect, const struct table *table,
	struct item_key key, const struct statement_update *update);

/* Begins a request with the first statement, and adds the others; at most STATEMENTS_MAX, all about
 * the same table, no two about the same item. The texts are copied. */
void dynamodb_batch_begin(struct dynamodb_conn *conn, const char *table);
void dynamodb_batch_add(struct dynamodb_conn *conn, const struct text *statement);
/* Sends what was added, n statements. OK: ret_answers holds an outcome for each, in their order.
 * OK is applied, REFUSED is not (or it was, by an earlier try of ours), and any other says that the
 * statement should be repeated alone: LOST and TRANSIENT may have been applied. Otherwise
 * ret_answers is untouched and the outcome is that of each statement. */
enum outcome dynamodb_batch_execute(struct dynamodb_conn *conn, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem);
