/* The prepared statements behind store_sqlite_items.h. Internal to store_sqlite_items.c. */
#pragma once
#include "store/store_sqlite_items.h"

enum items_statement {
	ITEMS_SQL_BEGIN,
	ITEMS_SQL_SNAPSHOT,
	ITEMS_SQL_COMMIT,
	ITEMS_SQL_ROLLBACK,
	ITEMS_SQL_SELECT,
	ITEMS_SQL_INSERT,
	ITEMS_SQL_UPSERT,
	ITEMS_SQL_UPDATE,
	ITEMS_SQL_DELETE,
	ITEMS_SQL_RANGE,
	ITEMS_SQL_SWEEP,
	ITEMS_SQL_STATEMENTS
};

struct items {
	sqlite3 *db;
	sqlite3_stmt *statements[ITEMS_SQL_STATEMENTS];
};

/* Runs a statement that yields no rows. An SQLite result code. */
int items_run(struct items *items, enum items_statement which);
/* The statement with the key as its first two parameters, which are borrowed until it is reset. */
sqlite3_stmt *items_bound(struct items *items, enum items_statement which, struct item_key key);
