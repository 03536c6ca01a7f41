/* The item operations on an SQLite connection: SQL and JSON, no threads. A row is (pk, sk, doc);
 * doc is DynamoDB's JSON of the item without its keys, so that json_extract reads it. */
#pragma once
#include "base/text.h"
#include "store/store_sqlite_doc.h"
#include <sqlite3.h>

enum items_kind {
	ITEMS_PUT,
	ITEMS_UPDATE,
	ITEMS_TAKE,
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
	struct item_key key;          /* PUT, UPDATE, DELETE, GET */
	const char *doc;              /* PUT */
	const struct taking *taking;  /* TAKE: instead of changes and conditions */
	const struct change *changes; /* UPDATE */
	size_t n_changes;
	const struct condition *conditions;
	size_t n_conditions;
	const struct item_key *keys; /* GET_MANY */
	size_t n_keys;
	const struct dynamodb_range *range; /* QUERY */
	bool may_sync_later;                /* PUT, UPDATE */

	enum outcome outcome;
	struct problem problem; /* set unless the outcome is OK, ABSENT or REFUSED */
	struct text rows; /* owned: what was found, or what is present when REFUSED or taken: for
			     each row pk, sk, doc, each with its NUL */
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
