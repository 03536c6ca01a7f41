/* Reads many marks of a bucket: as pages of its shards, or as one stream in the order of their
 * keys. Marks are eventually consistent unless is_consistent is set. So a mark is read again before
 * any action that depends on it. */
#pragma once
#include "marks/packed_mark.h"

/* Holds one page of marks of each shard. Several threads may load pages, each of other shards and
 * by a connection of its own. All other calls are made by one thread. */
struct mark_pages;
struct mark_pages_options {
	const struct mark_space *space; /* borrowed */
	struct call_limits limits;
	unsigned page_rows; /* the most marks of a page; 0: as many as the store returns at once */
	bool is_consistent;
};
/* 0 or -ENOMEM. */
int mark_pages_new(const struct mark_pages_options *options, struct mark_pages **ret);
void mark_pages_free(struct mark_pages *pages); /* NULL is fine */
/* Reads the next page of a shard, in place of the one that was read before. The new page begins
 * after the last mark of the old one, or at the key `from` if that is further on. `to` is the last
 * key that is wanted; NULL: all are. */
enum outcome mark_pages_load(struct mark_pages *pages, struct store_conn *conn, unsigned shard,
	const char *from, const char *to, struct problem *ret_problem);
/* Sets *ret to the first mark of a shard whose key is `from` or above, or to NULL if there is none.
 * The marks before it are passed, and freed. The mark itself stays where it is. */
enum outcome mark_pages_seek(struct mark_pages *pages, struct store_conn *conn, unsigned shard,
	const char *from, const char *to, const struct packed_mark **ret,
	struct problem *ret_problem);
/* Takes the mark that mark_pages_seek() has found. It is the caller's to free(). */
struct packed_mark *mark_pages_take(struct mark_pages *pages, unsigned shard);
/* Returns the number of marks passed or taken so far. */
size_t mark_pages_passed(const struct mark_pages *pages);

/* The marks to read. The stream borrows all of it until mark_stream_free. */
struct mark_range {
	const char *prefix; /* "" for all */
	const char *after;  /* only keys above this one; NULL or "": from the first */
	/* The order is that of the objects' keys, and `after` is the key of an object. An object's
	 * key is its mark's key with the suffix of its compression, if it has one. So the order of
	 * the marks differs.
	 *
	 * A mark waits until all marks with smaller objects were returned. The key of each mark
	 * that waits is a beginning of the key that was read last, so no more marks wait than that
	 * key has bytes. */
	bool by_object;
};

/* conn and space are borrowed until mark_stream_free. Memory: about MARK_STREAM_ROWS marks.
 * 0 or -ENOMEM. */
#define MARK_STREAM_ROWS 20000
struct mark_stream;
int mark_stream_new(struct store_conn *conn, const struct mark_space *space,
	const struct mark_range *range, const struct call_limits *limits, struct mark_stream **ret);
void mark_stream_free(struct mark_stream *stream); /* NULL is fine */

/* OK sets *ret to the next mark, the caller's to free(), or to NULL after the last one. Two marks
 * may belong to the same object. */
enum outcome mark_stream_next(
	struct mark_stream *stream, struct packed_mark **ret, struct problem *ret_problem);
