/* What the files of the SQLite store share: how an item is kept in its row, the operations on an
 * SQLite connection, and the one thread that uses it. */
#pragma once
#include "store/store.h"
#include "store/tickets.h"
#include <sqlite3.h>

/* How an item is kept in its row (pk, sk, doc): doc is the text of DynamoDB's JSON, without its
 * keys, so that json_extract reads it. */
#define DOC_BYTES 400000 /* of one item at most, as DynamoDB's */
/* Decodes a row's doc into a zeroed item, with its keys. 0, -EBADMSG, -ENOMEM. */
int doc_decode(struct item_key key, const char *doc, struct item *ret);
/* The reverse, without the keys; the caller frees *ret_doc. -EMSGSIZE if it is longer than
 * DOC_BYTES, -EILSEQ if a string is not UTF-8, -ENOMEM. */
int doc_encode(const struct item *item, char **ret_doc);
/* The sentence and outcome for either's error. */
enum outcome doc_failure(struct item_key key, int r, struct problem *ret_problem);

enum items_kind {
	ITEMS_PUT,
	ITEMS_UPDATE,
	ITEMS_TAKE, /* an update that may create the item, or shows it */
	ITEMS_DELETE,
	ITEMS_SYNC, /* a write that changes nothing */
	ITEMS_GET,
	ITEMS_GET_MANY,
	ITEMS_QUERY,
	ITEMS_COMPACT
};
#define ITEMS_KINDS 9
#define ITEMS_BATCH 100               /* keys of one GET_MANY at most */
#define ITEMS_PAGE  ((size_t)1 << 20) /* bytes at which a QUERY ends, as DynamoDB's */

/* What is to be done, and what came of it. All pointers borrowed. */
struct items_op {
	enum items_kind kind;
	struct item_key key;            /* of a write, GET */
	const struct item_write *write; /* of a write but SYNC */
	const char *doc;                /* PUT: of its item */
	const struct item_key *keys;    /* GET_MANY */
	size_t n_keys;
	const struct store_range *range; /* QUERY */

	enum outcome outcome;
	struct problem problem; /* set unless the outcome is OK, ABSENT or REFUSED */
	struct text rows; /* owned: what was found, or what is present when REFUSED or to be shown:
			     for each row pk, sk, doc, each with its NUL */
	bool more;        /* QUERY, COMPACT */
};

/* Prepared statements on a connection. */
struct items;
int items_new(sqlite3 *db, struct items **ret); /* an SQLite result code */
void items_free(struct items *items);

/* Does it. Returns SQLITE_OK with the outcome set, or the result code of an SQLite failure: then
 * nothing is decided, the transaction, if one is open, is to be rolled back, and the op may be
 * applied again. */
int items_apply(struct items *items, struct items_op *op);
int items_begin(struct items *items);  /* BEGIN IMMEDIATE */
int items_commit(struct items *items); /* without a sync */
/* What was committed so far outlives a failure of power, whoever did it, unless an earlier sync has
 * failed: Linux then takes what it could not write for written, and a later sync succeeds. */
int items_sync(struct items *items);
/* The same whatever syncs have failed before: the log is first written over itself. Whatever is
 * read from then on has been synced or was written later. */
int items_write_anew(struct items *items);
void items_rollback(struct items *items);
/* Deletes sessions whose `expires` is before now_s, as DynamoDB's TTL would; but none that is open
 * and of this boot: it may live, and this host's clock may have stepped. */
int items_sweep(struct items *items, int64_t now_s, const char *boot);

/* One operation of a connection on its way through the queue. */
struct sqlite_ticket {
	struct ticket ticket;
	struct items_op op;
};
/* The one thread that uses an SQLite connection, and the queue before it. All writes that are
 * queued become one transaction: a single sync acknowledges them all. Those that may_sync_later are
 * acknowledged before the sync, which follows within a second. */
struct sqlite_queue;
/* Takes the connection over and starts the thread. `name` names the file in messages; both must
 * live until sqlite_queue_free, which does not close the connection. 0 or -errno with a sentence.
 */
int sqlite_queue_new(
	sqlite3 *db, const char *name, struct sqlite_queue **ret, struct problem *ret_problem);
void sqlite_queue_free(struct sqlite_queue *queue); /* when no ticket is under way; NULL is fine */
/* Queues ticket->op and waits for its outcome, in op. ABANDONED, with nothing applied, if the
 * limits end it before the thread has begun with it; one that is begun is waited for. */
void sqlite_queue_perform(
	struct sqlite_queue *queue, struct sqlite_ticket *ticket, const struct call_limits *limits);
