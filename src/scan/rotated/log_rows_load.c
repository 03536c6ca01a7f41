#include "scan/rotated/log_rows_struct.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The columns of LOAD. */
enum { LOG, VERSION, FILE_ID, SIZE, MTIME, LIVE, SEEN, MISSING, END, UNTIL };

int log_row_add_piece(struct log_row *row, const struct log_piece *piece)
{
	struct log_piece *pieces =
		reallocarray(row->pieces, row->n_pieces + 1, sizeof *row->pieces);
	if (!pieces)
		return -ENOMEM;
	row->pieces = pieces;
	row->pieces[row->n_pieces++] = *piece;
	return 0;
}

void log_row_clear(struct log_row *row)
{
	free(row->pieces);
	*row = (struct log_row){0};
}

static void copy_id(sqlite3_stmt *s, int at, char ret[static CONTENT_ID_CHARS + 1])
{
	const char *id = (const char *)sqlite3_column_text(s, at);
	if (id && strlen(id) == CONTENT_ID_CHARS)
		memcpy(ret, id, CONTENT_ID_CHARS + 1);
}

static void read_row(sqlite3_stmt *s, struct log_row *ret)
{
	*ret = (struct log_row){
		.number = sqlite3_column_int64(s, LOG),
		.version = sqlite3_column_int64(s, VERSION),
		.file_size = (uint64_t)sqlite3_column_int64(s, SIZE),
		.file_mtime_ns = sqlite3_column_int64(s, MTIME),
		.was_live = sqlite3_column_int(s, LIVE) != 0,
		.seen = sqlite3_column_int64(s, SEEN),
		.missing = sqlite3_column_int64(s, MISSING),
		.end = (uint64_t)sqlite3_column_int64(s, END),
	};
	const size_t n = (size_t)sqlite3_column_bytes(s, FILE_ID);
	if (n && n <= FILE_IDENTITY_BYTES_MAX) {
		memcpy(ret->identity.bytes, sqlite3_column_blob(s, FILE_ID), n);
		ret->identity.n = n;
	}
	copy_id(s, UNTIL, ret->until);
}

static int load_pieces(struct log_rows *rows, struct log_row *row, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[PIECES];
	int error = 0;
	sqlite3_bind_int64(s, 1, row->number);
	while (!error && sqlite3_step(s) == SQLITE_ROW) {
		struct log_piece piece = {.start = (uint64_t)sqlite3_column_int64(s, 0),
			.end = (uint64_t)sqlite3_column_int64(s, 1),
			.mtime_ns = sqlite3_column_int64(s, 2)};
		copy_id(s, 3, piece.id);
		error = log_row_add_piece(row, &piece);
	}
	row->n_kept = row->n_pieces;
	const int rc = sqlite3_reset(s);
	return error || rc ? log_rows_failed(rows, error ? SQLITE_NOMEM : rc, ret_problem) : 0;
}

static int load_all(struct log_rows *rows, const struct log_family_name *family,
	struct log_row **ret, size_t *ret_n, struct problem *ret_problem)
{
	sqlite3_stmt *s = rows->statements[LOAD];
	struct log_row *all = NULL;
	size_t n = 0;
	int error = 0;
	log_rows_bind_family(rows, s, family);
	while (!error && sqlite3_step(s) == SQLITE_ROW) {
		struct log_row *more = reallocarray(all, n + 1, sizeof *all);
		if (!more) {
			error = log_rows_failed(rows, SQLITE_NOMEM, ret_problem);
			break;
		}
		all = more;
		read_row(s, &all[n++]);
	}
	const int rc = sqlite3_reset(s);
	if (!error && rc)
		error = log_rows_failed(rows, rc, ret_problem);
	for (size_t i = 0; !error && i < n; i++)
		error = load_pieces(rows, &all[i], ret_problem);
	*ret = all;
	*ret_n = n;
	return error;
}

int log_rows_load(struct log_rows *rows, const struct log_family_name *family, struct log_row **ret,
	size_t *ret_n, struct problem *ret_problem)
{
	*ret = NULL;
	*ret_n = 0;
	const int rc = sqlite3_exec(rows->db, "BEGIN", NULL, NULL, NULL);
	if (rc)
		return log_rows_failed(rows, rc, ret_problem);
	const int error = load_all(rows, family, ret, ret_n, ret_problem);
	log_rows_undo(rows);
	return error;
}
