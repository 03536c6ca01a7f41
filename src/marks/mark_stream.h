/* The marks of a bucket in the order of their keys, from pages of all its shards. Whoever reads
 * many marks reads them here. Eventually consistent: what is to be acted upon is read again. */
#pragma once
#include "marks/mark.h"

/* The pages of the shards, one of each at a time. Memory: these. Several threads may load pages,
 * each of other shards and by a connection of its own. Otherwise they are used by one thread. */
struct mark_pages;
struct mark_pages_of {
	const struct mark_space *space; /* borrowed */
	struct call_limits limits;
	unsigned page_rows; /* the most of a page; 0: as many as the store gives at once */
	bool is_consistent;
};
/* 0 or -ENOMEM. */
int mark_pages_new(const struct mark_pages_of *of, struct mark_pages **ret);
void mark_pages_free(struct mark_pages *pages); /* NULL is fine */
/* Reads a page of a shard in place of the one before: the marks from a key on, which follow those
 * of the page before. `to` is the last key that is wanted; NULL: all are. */
enum outcome mark_pages_load(struct mark_pages *pages, struct store_conn *conn, unsigned shard,
	const char *from, const char *to, struct problem *ret_problem);
/* *ret is the first mark of a shard from a key on, after those that were taken, or NULL if there is
 * none. It stays where it is. Those before it are passed. */
enum outcome mark_pages_seek(struct mark_pages *pages, struct store_conn *conn, unsigned shard,
	const char *from, const char *to, const struct packed_mark **ret,
	struct problem *ret_problem);
/* That mark, which is the caller's to free(). */
struct packed_mark *mark_pages_take(struct mark_pages *pages, unsigned shard);
/* How many marks were passed or taken so far. */
size_t mark_pages_passed(const struct mark_pages *pages);

/* The marks to read. The stream borrows all of it until mark_stream_free. */
struct mark_range {
	const char *prefix; /* "" for all */
	const char *after;  /* only keys above this one; NULL or "": from the first */
	/* In the order of the objects' keys, of which `after` is one then. An object's key is its
	 * mark's key with a suffix of compression behind it, so that the two orders differ. Marks
	 * that wait for their turn all have keys that the last key begins with, so there are at
	 * most as many as it has bytes. */
	bool by_object;
};

/* conn and space are borrowed until mark_stream_free. Memory: at most MARK_STREAM_ROWS marks.
 * 0 or -ENOMEM. */
#define MARK_STREAM_ROWS 20000
struct mark_stream;
int mark_stream_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct mark_stream **ret);
void mark_stream_free(struct mark_stream *stream); /* NULL is fine */

/* OK sets *ret to the next mark, the caller's to free(), or to NULL after the last one. Two marks
 * may stand for the same object. */
enum outcome mark_stream_next(
	struct mark_stream *stream, struct packed_mark **ret, struct problem *ret_problem);
