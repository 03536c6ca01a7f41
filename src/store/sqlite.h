/* What the files of the SQLite store share: how an item is kept in its row, and the operations on
 * an SQLite connection. */
#pragma once
#include "store/store.h"
#include <sqlite3.h>

/* How an item is kept in its row (pk, sk, doc): doc is the text of DynamoDB's JSON, without its
 * keys, so that json_extract reads it. */
#define DOC_BYTES 400000 /* of one item at most, as DynamoDB's */
/* Decodes a row's doc into a zeroed item, with its keys. OK, or what is wrong with a sentence. */
enum outcome doc_decode(
	struct item_key key, const char *doc, struct item *ret, struct problem *ret_problem);
/* The reverse, without the keys; the caller frees *ret_doc. INVALID with a sentence if it is longer
 * than DOC_BYTES, or if a string is not UTF-8. */
enum outcome doc_encode(
	struct item_key key, const struct item *item, char **ret_doc, struct problem *ret_problem);

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
	const struct item_key *keys;    /* GET_MANY */
	size_t n_keys;
	const struct store_range *range; /* QUERY */

	enum outcome outcome;
	struct problem problem; /* set unless the outcome is OK, ABSENT or REFUSED */
	struct text rows; /* owned: what was found, or what is present when REFUSED or to be shown:
			     for each row pk, sk, doc, each with its NUL */
	bool more;        /* QUERY, COMPACT */
};
/* The row that begins at a pk among the rows of an op. */
struct items_row {
	struct item_key key;
	const char *doc;
};
struct items_row items_row_at(const char *pk);

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
