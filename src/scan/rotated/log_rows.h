/* How logs that grow were cut into objects: rows in the SQLite file of this host's marks, so that
 * they are lost only together with these.
 *
 * A log is what one generation of a log file contains. Its pieces follow each other without a gap
 * from its first byte to `end`. A piece is kept before its upload begins, and is never changed, so
 * that every run uploads the same ranges under the same keys. Whether it is uploaded is for its
 * mark to say. docs/logs.md has the rules. */
#pragma once
#include "base/problem.h"
#include "scan/content/identity_cache.h"
#include <sqlite3.h>

/* The bytes from start to end of a log. */
struct log_piece {
	uint64_t start, end;
	int64_t mtime_ns; /* of the file when the piece was cut */
	char id[CONTENT_ID_CHARS + 1];
};

#define LOG_SIZE_UNSETTLED UINT64_MAX

enum log_state {
	LOG_LOOSE,     /* no file was found that has it */
	LOG_TRUNCATED, /* the file that had it is there, and contains something else */
	LOG_WAITS,     /* a file that has to wait has it */
	LOG_TAKEN,     /* one of the files has it */
};

enum log_change {
	LOG_UNCHANGED,
	LOG_LOST,    /* the row is to be dropped */
	LOG_CHANGED, /* it is to be kept */
};

struct log_row {
	int64_t number;                /* 0: it is not kept yet */
	int64_t version;               /* as it was read; each change adds 1 */
	struct file_identity identity; /* of the file that has it now */
	/* Of that file when it was compared with the row last; the size is LOG_SIZE_UNSETTLED where
	 * it may have been written to since without another modification time. */
	uint64_t file_size;
	int64_t file_mtime_ns;
	bool was_live;                    /* the file had the family's own name */
	int64_t moment;                   /* what its name said then, see family_moment() */
	int64_t seen;                     /* the day when the file was there last */
	int64_t missing;                  /* the first day when it was not, 0 if it was */
	uint64_t end;                     /* where the last piece ends */
	char until[CONTENT_ID_CHARS + 1]; /* the id of the first `end` bytes */
	struct log_piece *pieces;         /* owned */
	size_t n_pieces, n_kept;          /* the first n_kept are in the file */
	enum log_state state;             /* which are not kept */
	enum log_change change;
};
/* Adds a piece behind the last one. 0 or -ENOMEM. */
int log_row_add_piece(struct log_row *row, const struct log_piece *piece);
void log_row_clear(struct log_row *row);

/* For one thread at a time. Other processes may use the same file. */
struct log_rows;
/* All below return 0, or -errno with a sentence, unless said otherwise.
 *
 * db is taken, and closed with the rows or if this fails; NULL: none are known or kept. The scope,
 * which is copied, says where the objects go: what another scope has uploaded is not uploaded in
 * this one. With only_looks nothing is kept. now_s is of the wall clock. */
int log_rows_new(sqlite3 *db, const char *scope, bool only_looks, int64_t now_s,
	struct log_rows **ret, struct problem *ret_problem);
void log_rows_free(struct log_rows *rows);

/* Which logs are meant: those of one family in the directory of one SOURCE. Borrowed. */
struct log_family_name {
	const char *directory;
	const char *family; /* its name behind its path in that directory */
};
/* Reads them as they are at one moment, since other runs may change rows and pieces; by rising
 * ends. The caller clears each row and frees the array, also after an error. */
int log_rows_load(struct log_rows *rows, const struct log_family_name *family, struct log_row **ret,
	size_t *ret_n, struct problem *ret_problem);

/* Keeps what has changed of the rows of one family, all of it or nothing: first what is lost, then
 * the rows that were known, then the new ones, which may be of files that known ones had. -EAGAIN,
 * without a sentence: another run has changed a row, or keeps one of the files already. */
int log_rows_keep(struct log_rows *rows, const struct log_family_name *family, struct log_row *all,
	size_t n, struct problem *ret_problem);
/* Whether this is the first time that this is told of the family. */
bool log_rows_tells(struct log_rows *rows, const struct log_family_name *family, const char *what);
