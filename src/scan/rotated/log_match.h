/* The files of one family whose log grows: which log each of them has, and what is new of it. */
#pragma once
#include "scan/rotated/log_rows.h"
#include "scan/source.h"

/* A file of the family. Two files that have the same log share its row, which has the identity of
 * one of them. */
struct grown_file {
	struct scan_entry entry; /* its relative and suffix are within `relative`; key is "" */
	char *relative;          /* owned */
	bool is_live;            /* it has the family's own name */
	bool has_identity;
	struct file_identity identity;
	struct file_state state; /* when it was opened */
	struct log_row *row;     /* the log that it has, or NULL; within the family's rows */
	bool is_whole;           /* the log's only piece is what the file contains */
	bool has_grown;          /* beyond the last piece, and that is refused */
	bool is_changed;         /* the row is to be kept */
};

enum log_state {
	LOG_LOOSE,     /* no file was found that has it */
	LOG_TRUNCATED, /* the file that had it is there, and contains something else */
	LOG_WAITS,     /* a file that has to wait has it */
	LOG_TAKEN,     /* one of the files has it */
};

struct log_family {
	const struct scan_options *options;
	struct source *source;
	struct log_family_name name;
	struct grown_file *files; /* in order of their mtime */
	size_t n_files;
	struct log_row *rows; /* what is known, and what is new; there is room for n_files more */
	enum log_state *states;
	size_t n_rows;
	bool is_unsure;        /* a file may be missing from the files */
	bool has_waiting;      /* the content of some rotated files is not known yet */
	struct problem notice; /* something to be told once, or "" */
};

/* Opens each file for its identity, and finds the logs that files with the same identity had. 0, or
 * -errno with a sentence, as below. */
int log_match_by_identity(struct log_family *family, struct problem *ret_problem);
/* Finds the logs that were copied or compressed to another file: by their first bytes. */
int log_match_by_content(struct log_family *family, struct problem *ret_problem);
/* A new log for each file that has none yet. */
int log_match_new(struct log_family *family, struct problem *ret_problem);
/* Whether the row is of this file, whatever the file contains by now. */
bool grown_file_had(const struct grown_file *file, const struct log_row *row);
