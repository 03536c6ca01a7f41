/* What `s3once status` found out, told to people or as JSON. */
#pragma once
#include "base/text.h"
#include "cli/output.h"
#include "marks/bucket_row.h"
#include "marks/session.h"

/* How many marks say what. */
enum status_count {
	STATUS_DONE,
	STATUS_CLAIMED,
	STATUS_FAILED,
	STATUS_CHANGED, /* of those done: files that have changed since, and were left alone */
	STATUS_UNREADABLE,
	STATUS_BYTES, /* of those done */
	STATUS_COUNTS
};
struct status_counts {
	uint64_t of[STATUS_COUNTS];
};

/* A screen of lines that is drawn anew as a whole, on a terminal at standard output. Its lines are
 * printed as one, with ERASE_BELOW behind them. Zero it to start, and clear its lines at the end.
 */
#define ERASE_BELOW "\033[J"
struct status_page {
	struct text lines;
	unsigned rows, columns;
	unsigned n, left_out; /* lines that are on it, and those that have no room */
};

/* Empties the page, and takes the size of the terminal. */
void status_page_begin(struct status_page *page);
/* One of the last lines, for which there is always room. */
void status_page_add(struct status_page *page, const char *line);

struct status_view {
	struct output *output;
	struct status_page *page; /* that lines are put on; NULL: they are printed */
	const char *marks;        /* "dynamodb:TABLE" or "sqlite:PATH" */
	struct store_conn *conn;  /* to them, once they are open */
	struct mark_space *space;
	int json;
	bool watches;      /* looks again and again */
	bool knows_bucket; /* the marks have a row of it */
	unsigned depth;    /* of the table; 0: there is none */
	unsigned verbose;
	struct status_counts sum;           /* set by who tells a sum */
	uint64_t failed_told, changed_told; /* marks that were listed; zero them to start */
};

/* Tells of the store itself, first of all. */
void status_tell_store(struct status_view *view, bool has_bucket);
/* Tells which bucket the marks are about. */
void status_tell_bucket(struct status_view *view, const struct bucket_row *row);
/* What the next run will do about a mark, a sentence. Pure: session is NULL unless the mark is
 * claimed and its row is there. Static. */
const char *status_outlook(const struct mark *mark, const struct session_info *session);
/* Tells all that is known of one mark, or that there is none. The session is as above. */
void status_tell_mark(struct status_view *view, const char *key, const struct mark *mark,
	const struct session_info *session);
/* Tells that there is no mark below the prefix, and where one might be instead. */
void status_tell_nothing(struct status_view *view, const char *prefix);
/* Tells of a mark below a prefix that is not done, or whose file has changed since. */
void status_tell_unfinished(struct status_view *view, const char *key, const struct mark *mark);
/* Tells how many of these were not listed. */
void status_tell_omitted(struct status_view *view, const struct status_counts *counts);
/* Tells of a session that holds claims; NULL: its row was swept. */
void status_tell_session(struct status_view *view, const char *id, uint64_t claims,
	const struct session_info *session);
/* Tells the head of the table of folders. */
void status_tell_head(struct status_view *view);
/* Sums up what is below a prefix, which is one of the folders or, `is_sum`, all that was asked for:
 * in the table if there is one. */
void status_tell_counts(struct status_view *view, const char *prefix,
	const struct status_counts *counts, bool is_sum);
