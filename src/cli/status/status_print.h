/* Prints the findings of `s3once status`, for people or as JSON. */
#pragma once
#include "base/text.h"
#include "cli/commands.h"
#include "marks/bucket_row.h"
#include "marks/session.h"

/* The sums over marks. */
enum status_count {
	STATUS_DONE,
	STATUS_CLAIMED,
	STATUS_FAILED,
	STATUS_CHANGED, /* done marks whose files have changed since and were not uploaded */
	STATUS_UNREADABLE,
	STATUS_BYTES, /* total size of the files whose marks are done */
	STATUS_COUNTS
};
struct status_counts {
	uint64_t of[STATUS_COUNTS];
};

/* A page of lines, which --watch redraws as a whole if standard output is a terminal. All lines are
 * printed at once, with ERASE_BELOW after them. Zero the page to start, and clear `lines` at the
 * end. */
#define ERASE_BELOW "\033[J"
struct status_page {
	struct text lines;
	unsigned rows, columns;
	unsigned n, left_out; /* number of lines on it, and of omitted lines */
};

/* Empties the page, and sets rows and columns to the size that the terminal has now. */
void status_page_begin(struct status_page *page);
/* Adds a line to the page even if it is full. It is for the last lines, for which status_put()
 * leaves room. */
void status_page_add(struct status_page *page, const char *line);

/* The form and destination of the output, and its state. */
struct status_view {
	struct command_frame *frame;
	struct status_page *page; /* the page that gets the lines; NULL: they are printed */
	struct mark_space *space;
	uint64_t watch_ms; /* interval of --watch; 0: its default; UINT64_MAX: without --watch */
	bool knows_bucket; /* the marks have a row of the bucket */
	unsigned depth;    /* levels of the table of folders; 0: no table */
	unsigned verbose;
	struct status_counts sum; /* the last counts that were shown as COUNTS_OF_SUM */
	/* Numbers of failed and changed files listed. Zero both before each reading. */
	uint64_t printed_failed, printed_changed;
};

/* Prints a line to people, or adds it to the page if there is room. `arg` is the view. */
void status_put(void *arg, const char *line);
/* Prints the store. Call it first. */
void status_print_store(struct status_view *view, bool has_bucket);
/* Prints the bucket of the marks. */
void status_print_bucket(struct status_view *view, const struct bucket_row *row);
/* Returns a static clause about the next run's action for a mark. `session` is NULL unless the mark
 * is claimed and its session has a row. Pure. */
const char *status_outlook(const struct mark *mark, const struct session_info *session);
/* Prints all details of a mark, or a line if there is none. `session` is as in status_outlook(). */
void status_print_mark(struct status_view *view, const char *key, const struct mark *mark,
	const struct session_info *session);
/* Prints for people, with advice, that there is no mark below the prefix. Resets the last sum to
 * zero. */
void status_print_nothing(struct status_view *view, const char *prefix);
/* Prints a mark below a prefix that is not done, or whose file has changed since. */
void status_print_unfinished(struct status_view *view, const char *key, const struct mark *mark);
/* Prints the number of failed and changed files that status_print_unfinished() has not listed. */
void status_print_omitted(struct status_view *view, const struct status_counts *counts);
/* Prints a session that holds claims. `session` is NULL if its row was removed. */
void status_print_session(struct status_view *view, const char *id, uint64_t claims,
	const struct session_info *session);
/* Prints the head of the table of folders. */
void status_print_head(struct status_view *view);
/* The prefix that counts belong to: a folder of the table, or the user's argument (SUM). */
enum counts_of { COUNTS_OF_FOLDER, COUNTS_OF_SUM };
/* Prints the counts below a prefix: as a row of the table of folders, or as a sentence if there is
 * no such table. */
void status_print_counts(struct status_view *view, const char *prefix,
	const struct status_counts *counts, enum counts_of which);
