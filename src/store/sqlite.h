/* Internal header of the SQLite store: rows, and the operations on an SQLite connection. */
#pragma once
#include "store/store.h"
#include <sqlite3.h>

/* A row (pk, sk, doc) of an item. The doc is the packed item (item_pack.h). */
#define DOC_BYTES 400000 /* of one doc at most, as of an item in DynamoDB */
struct items_row {
	struct item_key key;
	const void *doc;
	size_t doc_bytes;
};
/* Returns the outcome of an error of reading, changing or writing an item: 0 or -errno. Unless it
 * is OK, with a sentence. */
enum outcome items_row_outcome(int r, struct item_key key, struct problem *ret_problem);
/* Unpacks a row into a zeroed item, with its keys. OK, or the fault with a sentence. */
enum outcome items_row_decode(
	const struct items_row *row, struct item *ret, struct problem *ret_problem);
/* Packs an item, without its keys. The caller clears *ret_doc. INVALID with a sentence if the doc
 * is longer than DOC_BYTES, or if a string is not UTF-8. */
enum outcome items_row_encode(struct item_key key, const struct item *item, struct text *ret_doc,
	struct problem *ret_problem);

enum items_kind {
	ITEMS_PUT,
	ITEMS_UPDATE,
	ITEMS_TAKE, /* an update that may create the item; if it is refused, it returns the item */
	ITEMS_DELETE,
	ITEMS_SYNC, /* a write that changes nothing, and is answered after a sync; the last of the
		       writes: see is_write() */
	ITEMS_GET,
	ITEMS_GET_MANY,
	ITEMS_QUERY,
	ITEMS_COMPACT
};
#define ITEMS_KINDS 9
#define ITEMS_BATCH 100 /* the most keys of one GET_MANY */
/* The bytes at which a page of QUERY ends. The marks of a page of each shard should stay in the
 * cache of a processor until a scan comes to them. */
#define ITEMS_PAGE ((size_t)1 << 17)

/* An operation, and its outcome. All pointers are borrowed. */
struct items_op {
	enum items_kind kind;
	struct item_key key;            /* for a write and for GET */
	const struct item_write *write; /* for a write, except SYNC */
	const struct item_key *keys;    /* for GET_MANY */
	size_t n_keys;
	const struct store_range *range; /* for QUERY */

	enum outcome outcome;
	struct problem problem; /* set for outcomes other than OK, ABSENT and REFUSED */
	/* Owned: the rows found, the present row after REFUSED, or the new row of a write that
	 * `returns_item`. */
	struct text rows;
	bool more; /* for QUERY and COMPACT: there is more to do */
};
/* Returns the row that begins at *at among the rows of an op, and moves *at past it. The row
 * borrows its bytes. */
struct items_row items_row_take(const char **at);

/* Prepared statements on a connection. */
struct items;
int items_new(sqlite3 *db, struct items **ret); /* Returns an SQLite result code. */
void items_free(struct items *items);

/* Performs the op. Returns SQLITE_OK with the outcome set, or the result code of an SQLite failure.
 * After a failure the op has no outcome: roll back an open transaction, and apply the op again if
 * wanted. */
int items_apply(struct items *items, struct items_op *op);
int items_begin(struct items *items);  /* BEGIN IMMEDIATE */
int items_commit(struct items *items); /* COMMIT, without a sync */
/* Syncs the log. All commits so far, of any process, then survive a power failure, unless an
 * earlier sync has failed. After a failure Linux counts the bytes that it could not write as
 * written, so that a later sync succeeds without them. */
int items_sync(struct items *items);
/* Writes each byte of SQLite's log (WAL) over itself, and syncs the log. So bytes that an earlier
 * sync failed to write reach the disk. Data that is read afterwards is on the disk, or was written
 * after this call. */
int items_write_anew(struct items *items);
void items_rollback(struct items *items);
/* Deletes sessions whose `expires` is before now_s, as DynamoDB's TTL would. A session that is open
 * and of this boot stays: it may live, and this host's clock may have stepped. */
int items_sweep_sessions(struct items *items, int64_t now_s, const char *boot);
