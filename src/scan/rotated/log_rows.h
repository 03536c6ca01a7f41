/* The objects that growing logs were cut into: rows in the SQLite file of this host's marks, so
 * that they are lost only together with the marks.
 *
 * A log is the content of one generation of a log file. Its pieces follow each other without a gap
 * from its first byte to `end`. A piece is kept before its upload begins, and is never changed, so
 * that every run uploads the same ranges under the same keys. The mark of a piece records whether
 * it is uploaded. docs/logs.md has the rules. */
#pragma once
#include "base/problem.h"
#include "scan/content/identity_cache.h"
#include <sqlite3.h>

/* The bytes from start to end of a log. */
struct log_piece {
	uint64_t start, end;
	int64_t mtime_ns; /* modification time of the file when the piece was cut */
	char id[CONTENT_ID_CHARS + 1];
};

#define LOG_SIZE_UNSETTLED UINT64_MAX

enum log_state {
	LOG_LOOSE,     /* no file with the log was found */
	LOG_TRUNCATED, /* the file of the log exists, but has other content now */
	LOG_WAITS,     /* a file that has to wait has the log, or may have it */
	LOG_TAKEN,     /* one of the files has the log */
};

enum log_change {
	LOG_UNCHANGED,
	LOG_LOST,    /* the row is to be dropped */
	LOG_CHANGED, /* the row is to be written */
};

struct log_row {
	int64_t number;                /* 0: the row is not in the database yet */
	int64_t version;               /* as it was read; each change of the row adds 1 */
	struct file_identity identity; /* identity of the file that has the log now */
	/* Size and modification time of that file when it was last compared with the row. The size
	 * is LOG_SIZE_UNSETTLED if the file may have been written to since without another
	 * modification time. */
	uint64_t file_size;
	int64_t file_mtime_ns;
	bool was_live;                    /* the file had the family's own name */
	bool was_packed;                  /* it was compressed */
	int64_t moment;                   /* family_moment() of the name that it had then */
	int64_t seen;                     /* log_rows_today() of the last day with the file */
	int64_t missing;                  /* the first day without it, or 0 */
	uint64_t end;                     /* the end of the last piece */
	char until[CONTENT_ID_CHARS + 1]; /* the id of the first `end` bytes */
	/* With these, the file of the log is recognised without reading most of it. `edges` is
	 * content_edges() of it up to `end`, or "" if that is not known. If it is known, sha256 is
	 * the state after the last whole block of these bytes. */
	char edges[CONTENT_ID_CHARS + 1];
	struct sha256_state sha256;
	struct log_piece *pieces; /* owned */
	size_t n_pieces, n_kept;  /* the first n_kept were in the database when it was read */
	enum log_state state;     /* state and change are not in the database */
	enum log_change change;
};
/* Adds a piece after the last one. 0 or -ENOMEM. */
int log_row_add_piece(struct log_row *row, const struct log_piece *piece);
void log_row_clear(struct log_row *row);

/* For one thread at a time. Other processes may use the same file. */
struct log_rows;
/* The functions below return 0, or -errno with a sentence, unless said otherwise.
 *
 * Takes db, which is closed with the rows, or at once if this fails. If db is NULL, no rows are
 * known, and none are kept. The scope, which is copied, is the target of the objects: uploads in
 * one scope are unknown in another. With read_only nothing is written, and db is closed as soon as
 * its rows were copied. now_s is the time of the wall clock. */
int log_rows_new(sqlite3 *db, const char *scope, bool read_only, int64_t now_s,
	struct log_rows **ret, struct problem *ret_problem);
void log_rows_free(struct log_rows *rows);
/* The day of this run for `seen` and `missing`. Only days with a run are counted. 0 with
 * read_only. */
int64_t log_rows_today(const struct log_rows *rows);

/* The name of a family of logs in the directory of one SOURCE. Borrowed. */
struct log_family_name {
	const char *directory;
	const char *family; /* its name, with the path of its folder in front, relative to
			       `directory` */
};
/* Reads the rows of a family, in rising order of `end`. They are read by one statement, since other
 * runs may change rows and pieces meanwhile. The caller clears each row and frees the array, even
 * after an error. */
int log_rows_load(struct log_rows *rows, const struct log_family_name *family, struct log_row **ret,
	size_t *ret_n, struct problem *ret_problem);

/* Writes the changed rows of one family, all or none. Rows that are lost are dropped first. Then
 * known rows are changed. New rows come last, since they may be of files that known rows had.
 * Returns -EAGAIN, without a sentence, if another run has changed a row, or has a row of one of the
 * files. */
int log_rows_keep(struct log_rows *rows, const struct log_family_name *family, struct log_row *all,
	size_t n, struct problem *ret_problem);
/* Whether the row of this file is in another family. If it is, the sentence names that family. */
bool log_rows_are_elsewhere(struct log_rows *rows, const struct log_family_name *family,
	const struct file_identity *file, struct problem *ret_problem);
/* Notes that the message `what` was reported for the family, and returns whether this is the first
 * time. If it cannot be noted, the result is false, and a later call reports it. With read_only
 * nothing is noted, and the result is true. */
bool log_rows_note_once(
	struct log_rows *rows, const struct log_family_name *family, const char *what);
