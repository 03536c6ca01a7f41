/* What is to be uploaded where logs grow: of the files in the last listing, whole files or pieces
 * of them. */
#pragma once
#include "scan/rotated/log_rows.h"
#include "scan/rotated/rotation_table.h"
#include "scan/source.h"

/* Copies a piece of a log into a file that never changes, while the log grows, is renamed or
 * compressed. Returns as scan_open_piece(). */
int growing_logs_copy_piece(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem);

/* The files of one family whose log grows: which log each of them has, and what is new of it.
 *
 * First, a file of the family. Two files that have the same log share the row of the log, which has
 * the identity of one of them. */
struct grown_file {
	struct scan_entry entry; /* its relative and suffix are within `relative`; key is "" */
	char *relative;          /* owned */
	enum scan_kind found;    /* the kind that the listing gave it */
	bool is_live;            /* it has the family's own name */
	int64_t moment;          /* of its name, see family_moment() */
	struct file_identity identity; /* n: 0 if it has none */
	struct file_state state;       /* when it was opened */
	bool is_packed;                /* the file begins as a compressed one does */
	struct log_row *row; /* the log that the file has, or NULL; within the family's rows */
	bool is_whole;       /* the log's only piece is what the file contains */
	bool has_grown;      /* the log has grown beyond its last piece, and refuses_grown is set */
};

struct log_family {
	const struct scan_options *options;
	struct source *source;
	struct log_family_name name;
	struct grown_file *files; /* in order of their mtime */
	size_t n_files;
	/* The rows that were loaded, in rising order of `end`, and behind them the new ones. There
	 * is room for n_files new rows. */
	struct log_row *rows;
	size_t n_rows;
	bool is_unsure;        /* `files` may lack a file, or a file could not be judged */
	bool has_waiting;      /* the content of some rotated files is not known yet */
	struct problem notice; /* something to be told once, or "" */
};

/* Where the stream of families is. */
struct growing_logs {
	struct rotation_table *table; /* borrowed */
	struct source *sources;       /* borrowed */
	bool is_stable;               /* the listing has missed no file */
	struct log_family family;
	char *name;              /* of the family */
	struct scan_entry ahead; /* the first of the next family */
	bool has_ahead;
	size_t file, piece; /* what comes next of the family */
};
/* As rotation_table_next. The first three fields are set, and all others zero, before the first
 * call. */
int growing_logs_next(
	struct growing_logs *logs, struct scan_entry *ret, struct problem *ret_problem);
void growing_logs_clear(struct growing_logs *logs);

/* Finds out which log each file has: by its identity, else by its first bytes, else it gets a new
 * log. What is new of a log is cut. Files that cannot be judged become YOUNG, or a PROBLEM. Sets
 * state and change of the rows. Returns 0, or -errno with a sentence. */
int log_match(struct log_family *family, struct problem *ret_problem);
/* Whether the row has the identity of this file, whatever the file contains by now. */
bool log_row_is_of(const struct log_row *row, const struct grown_file *file);
