/* Growing logs: hands out the files of the last listing for upload, whole or in pieces. */
#pragma once
#include "scan/rotated/log_rows.h"
#include "scan/rotated/rotation_table.h"
#include "scan/source.h"

/* Copies a piece of a log into a file that never changes, while the log grows, is renamed or
 * compressed. Returns as scan_open_piece(). */
int growing_logs_copy_piece(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem);

/* A file of a family whose logs grow, and its log. Two files with the same log share its row, which
 * has the identity of one of them. */
struct grown_file {
	/* The entry of the listing, without key and path; relative and suffix are in `relative`. */
	struct scan_entry listed;
	char *relative; /* owned */
	bool is_live;   /* it may be written to; for now it ends at its last whole line */
	int64_t moment; /* moment of its name, see family_moment() */
	/* The members below belong to one attempt to match the files, and are reset by the next. */
	struct scan_entry entry;
	struct file_identity identity; /* n: 0 if it has none */
	struct file_state state;       /* state at the time it was opened */
	bool is_packed;                /* the file begins like a compressed one */
	bool has_own_time; /* its mtime was not copied from another file; false if the file system
			      does not record creation times */
	bool is_being_written; /* a program may be in the middle of a line; set only where such
				  files are uploaded at all */
	bool has_rest;         /* its last line is unfinished and was cut off */
	struct log_row *row;   /* the file's log, or NULL; in the family's rows */
	bool is_whole;         /* the log's only piece is the file's whole content */
};

/* The current family: its files, and the rows of its logs. */
struct log_family {
	const struct scan_options *options;
	struct source *source;
	struct log_family_name name;
	struct grown_file *files; /* in order of their mtime */
	size_t n_files;
	/* The rows that were loaded, in rising order of `end`, and after them the new ones. There
	 * is room for n_files new rows. */
	struct log_row *rows;
	size_t n_rows;
	bool may_lack_files; /* a file of the family was perhaps not seen or could not be judged; it
				may have any of the logs */
	struct problem notice; /* a sentence to be reported once, or "" */
};

/* The position in the stream of families. */
struct growing_logs {
	struct rotation_table *table; /* borrowed */
	struct source *sources;       /* borrowed */
	bool is_complete;             /* the listing is complete */
	struct log_family family;
	char *name;              /* name of the family */
	struct scan_entry ahead; /* the first entry of the next family */
	const char *ahead_name;  /* the name of that family; borrowed; NULL: there is none */
	size_t file, piece;      /* the next entry of the family */
};
/* Makes the next entry. Returns 1, 0 at the end, or -errno with a sentence. Before the first call,
 * the caller sets the first three fields, and all others are zero. */
int growing_logs_next(
	struct growing_logs *logs, struct scan_entry *ret, struct problem *ret_problem);
/* Empties the family. The entry ahead stays: it is borrowed from the table. */
void growing_logs_clear(struct growing_logs *logs);

/* Finds the log of each file: by its identity, else by its first bytes, else it gets a new log. New
 * bytes of a log are cut into a piece. Files that cannot be judged WAIT, or become a PROBLEM. Sets
 * state and change of the rows. Returns 0, or -errno with a sentence. */
int log_match(struct log_family *family, struct problem *ret_problem);
/* Whether the row has the identity of this file, regardless of the file's present content. */
bool log_row_is_of(const struct log_row *row, const struct grown_file *file);
