/* Internal header of the files dynamodb*.c: writing a request, reading its reply, and sending the
 * writes of several callers together as a batch. */
#pragma once
#include "base/text.h"
#include "http/http.h"
#include "store/dynamodb.h"
#include "store/item_json.h"
#include "store/tickets.h"
#include <stdatomic.h>

/* Conditional writes as PartiQL statements, of which one BatchExecuteStatement carries up to 25.
 * Source: "PartiQL for DynamoDB" (Developer Guide) and BatchExecuteStatement (API Reference).
 *
 * HTTP 200 does not mean that the statements succeeded: each has an answer of its own. The answer
 * of a refused statement does not contain the item, whatever ReturnValuesOnConditionCheckFailure
 * asks for. */
#define STATEMENTS_MAX 25 /* the most in one request */

/* Syntaxes of several changes in one UPDATE. */
enum dynamodb_dialect {
	DIALECT_NONE,    /* batches are off */
	DIALECT_CLAUSES, /* SET a=? SET b=? REMOVE c REMOVE d, as AWS documents it */
	DIALECT_LISTS,   /* SET a=?, b=? REMOVE c, d, as Dynoxide reads it */
};
#define DIALECTS 3
extern const char *const dynamodb_dialects[DIALECTS]; /* their names in the settings */

/* Adds {"Statement":"…","Parameters":[…]} for a put if absent. All values are parameters. Names of
 * attributes come from the tables of fields (marks/row.h), so that they need no escapes, and no
 * statement reaches the 8,192 characters that DynamoDB takes. */
void statement_insert(
	struct text *ret, const struct table *table, struct item_key key, const struct item *item);
/* Likewise for an update, which never creates the item. It has changes, and no conditions other
 * than EQUALS and ABSENT. */
void statement_update(struct text *ret, enum dynamodb_dialect dialect, const struct table *table,
	struct item_key key, const struct item_write *update);

/* Begins a request, or adds a statement to it. There are at most STATEMENTS_MAX, and no two about
 * the same item. The texts are copied. */
struct dynamodb_conn;
void dynamodb_batch_begin(struct dynamodb_conn *db);
void dynamodb_batch_add(struct dynamodb_conn *db, const struct text *statement);
/* Sends the n statements that were added.
 *
 * If the outcome is OK, ret_answers has one for each statement, in their order. OK means that the
 * statement was applied. REFUSED means that it was not, or that an earlier try of ours was. After
 * any other answer, repeat the statement alone; after LOST and TRANSIENT it may have been applied.
 *
 * If the outcome is not OK, it is that of each statement, and ret_answers is untouched. */
enum outcome dynamodb_batch_execute(struct dynamodb_conn *db, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem);

/* Implements store_ops.try_batches(). OK: *ret_how is STORE_BATCHES_NONE if a condition was ignored
 * or the server knows no statements. DENIED: the permissions dynamodb:PartiQLInsert and
 * dynamodb:PartiQLUpdate are missing. */
enum outcome dynamodb_try_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem);

/* Batches: writes of many callers are sent together. Each put if absent and each update becomes a
 * statement of one BatchExecuteStatement.
 *
 * A write is sent at once, as a request of its own, if no request is under way. Later writes wait
 * until that request has ended, until there are STATEMENTS_MAX of them, or for 50 ms at most. Then
 * the caller of one of them, the leader, sends all of them. A caller whose batch is not answered
 * within 5 s repeats its write alone, so that a connection that hangs stalls only the caller that
 * sent the batch. All of this happens in the callers' threads, and each caller's abandon() is
 * called in its own thread. */

/* One caller's write of an item. All of it is borrowed until the write has ended. */
struct batch_write {
	struct dynamodb_conn *db; /* the caller's own connection */
	struct item_key key;
	const struct item_write *what;
	const struct call_limits *limits; /* not NULL */
	struct item *ret;
	struct problem *ret_problem;
};

#define BATCH_MAX_BYTES (1U << 20) /* the most bytes of statements; a mark takes less than 3 KB */

/* A caller's place in the queue. */
struct batch_ticket {
	struct ticket ticket;
	/* Its caller has begun the write and does not wait for it yet (dynamodb_begin_write()). So
	 * the ticket cannot lead. Changed with the mutex held once the ticket is queued. */
	bool caller_is_away;
	/* Of a write that was begun: its ticket is in the queue. Otherwise dynamodb_end_write()
	 * sends the write. */
	bool is_queued;
	const struct batch_write *write;
	struct text statement; /* its memory is reused for the next write */
	size_t number;         /* index of the statement in the request */
	/* These are set once the ticket is ANSWERED. */
	enum outcome outcome;
	bool is_final;          /* otherwise the caller repeats the write alone */
	struct problem problem; /* set for a final outcome other than OK and REFUSED */
};

/* The batches of a store. They are off if all but the mutex is zeroed. */
struct batches {
	atomic_int dialect;
	uv_mutex_t mutex; /* never held during a request or a call of abandon() */
	struct {
		struct tickets waiting;
		size_t under_way; /* number of requests */
	} locked;
};
/* store_ops.use_batches(). */
void dynamodb_use_batches(struct store *store, const char *how);

/* Implements store_ops.write(): sends the write alone or in a batch. The outcome is that of
 * dynamodb_write_alone(): a statement that was throttled, failed or lost is repeated alone first.
 * But the item of a refusal may have been read right after the refusal. Writes that statements
 * cannot express, and writes that have a deadline (heartbeats), never wait. */
enum outcome dynamodb_write(struct store_conn *conn, struct item_key key,
	const struct item_write *what, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* Implement store_ops.begin_write() and end_write(). A write that may be batched waits from the
 * beginning, and any request takes it along. Otherwise only the end sends it. */
void dynamodb_begin_write(struct store_conn *conn, struct item_key key,
	const struct item_write *what, const struct call_limits *limits);
enum outcome dynamodb_end_write(
	struct store_conn *conn, struct item *ret, struct problem *ret_problem);

enum dynamodb_kind {
	DYNAMODB_PUT,
	DYNAMODB_UPDATE,
	DYNAMODB_DELETE,
	DYNAMODB_GET,
	DYNAMODB_GET_MANY,
	DYNAMODB_QUERY,
	DYNAMODB_SCAN,
	DYNAMODB_CREATE_TABLE,
	DYNAMODB_DESCRIBE_TABLE,
	DYNAMODB_ENABLE_TTL,
	DYNAMODB_DESCRIBE_TTL,
	DYNAMODB_BATCH_EXECUTE,
};
extern const char *const dynamodb_kinds[]; /* the names of the kinds, ended by NULL */

/* The store. */
struct dynamodb {
	struct store store;
	struct table table;
	struct batches batches;
};
/* The buffers in which a thread writes its requests. While a request is under way, it borrows a
 * connection of the service. */
struct dynamodb_conn {
	struct store_conn conn;
	struct dynamodb *db;
	const struct table *table;
	struct text body; /* body of the request under way */
	/* The members of ExpressionAttributeNames and ExpressionAttributeValues, one for each
	 * placeholder. Both objects are added at the end of the body. */
	struct text names, values;
	unsigned n_placeholders;
	struct batch_ticket ticket, begun; /* `begun` is for dynamodb_begin_write() */
	struct batch_write begun_write;
};
struct dynamodb_conn *dynamodb_conn_of(struct store_conn *conn);

/* Implements store_ops.write() without batches: PutItem, UpdateItem or DeleteItem. Attributes are
 * sent as expression attribute names, so that none is ever a reserved word. A put adds the key
 * attributes to the item, and every item in a reply has them among its attributes. An update that
 * must not create the item has one more condition: that the key is present.
 *
 * The item of a refusal comes with the reply (ReturnValuesOnConditionCheckFailure=ALL_OLD), or from
 * a server without that by a consistent GetItem. */
enum outcome dynamodb_write_alone(const struct batch_write *write);
/* Reads the item after a refusal whose reply did not contain it, by a consistent GetItem. REFUSED
 * with *write->ret, which is empty if the item is gone by now.
 *
 * A refusal may hide an earlier try of ours that was applied. So the outcome of a failed read never
 * means "not applied". */
enum outcome dynamodb_read_refused(const struct batch_write *write);

/* store_ops.get(). */
enum outcome dynamodb_get(struct store_conn *conn, struct item_key key,
	enum consistency consistency, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);

/* Begins the body with {"TableName":"…". Members are added by json_add_member(). */
struct text *dynamodb_begin(struct dynamodb_conn *db);
/* Begins the body with { alone, for requests that name the table elsewhere. */
struct text *dynamodb_begin_bare(struct dynamodb_conn *db);
/* Adds a placeholder for a name or a value to an expression in the body. dynamodb_send() adds the
 * names and values themselves. */
void dynamodb_add_name(struct dynamodb_conn *db, const char *name);
void dynamodb_add_value(
	struct dynamodb_conn *db, enum value_type type, const char *value, size_t n);
bool table_has_key(const struct table *table, const char *name);
/* Returns the number of attributes of a key, 1 or 2, and in *ret the changes that set them. */
size_t table_key_attributes(
	const struct table *table, struct item_key key, struct change ret[static 2]);
/* Adds {"pk":{"S":"…"},"sk":{"S":"…"}}, with the other attributes of an item unless that is NULL.
 */
void dynamodb_add_key(
	struct text *body, const struct table *table, struct item_key key, const struct item *item);

/* Closes the body, sends it and parses the reply. *ret_reply is set if the outcome is OK, or if it
 * is REFUSED and the reply could be read; otherwise it is NULL. The caller frees it with
 * json_decref(). An absent table is OUTCOME_SETUP. ret_problem is not NULL. */
enum outcome dynamodb_perform(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, json_t **ret_reply, struct problem *ret_problem);
/* Returns the outcome of a reply that is JSON, but not of the expected form. `error` is -EBADMSG or
 * -ENOMEM. */
enum outcome dynamodb_not_understood(int error, struct problem *ret_problem);
/* As dynamodb_perform(), without parsing the reply, which the caller clears in any case. */
enum outcome dynamodb_send(struct dynamodb_conn *db, enum dynamodb_kind kind,
	const struct call_limits *limits, struct http_reply *ret_reply,
	struct problem *ret_problem);

/* The visitor that gets the items of a reply, and the table of the items. */
struct item_visit {
	const struct table *table;
	found_visitor *each;
	void *arg;
	size_t n; /* the number of items so far */
};
/* Hands one item to the visitor and clears it. `error` is the result of reading the item: 0,
 * -EBADMSG or -ENOMEM. OUTCOME_LOCAL with a sentence if the visitor ends the visit. */
enum outcome dynamodb_hand_out(
	struct item_visit *visit, int error, struct item *item, struct problem *ret_problem);
