/* What log_rows.c and log_rows_load.c share. */
#pragma once
#include "scan/rotated/log_rows.h"

enum log_statement { LOAD, PIECES, DROP, DROP_PIECES, ADD, CHANGE, ADD_PIECE, TELL, STATEMENTS };

struct log_rows {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	char *scope;
	int64_t today;
	bool only_looks;
};

/* Sets the sentence that this SQLite error comes with. -ENOMEM or -EIO. */
int log_rows_failed(struct log_rows *rows, int rc, struct problem *ret_problem);
/* Binds the scope and the family to the first three parameters. Borrowed. */
void log_rows_bind_family(
	struct log_rows *rows, sqlite3_stmt *s, const struct log_family_name *family);
