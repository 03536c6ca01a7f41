/* A pool of threads that do the same work on each of many marks or objects. A request to a service
 * takes some milliseconds, and a prefix may have millions of marks, so many requests are under way
 * at once, each on the connections of another thread. */
#pragma once
#include "base/pool.h"
#include "marks/mark_row.h"
#include "marks/mark_stream.h"
#include "s3/s3.h"
#include "scan/key/rotated_name.h"

/* The connections of one thread. */
struct audit_conns {
	struct store_conn *marks; /* NULL if the place has no store */
	struct s3_conn *s3;       /* NULL if the place has no s3 */
};

/* The marks and the objects that a command works on. All pointers are borrowed. */
struct audit_place {
	struct store *store; /* NULL: no marks are needed */
	const struct mark_space *space;
	struct s3 *s3; /* NULL: no objects are needed */
	/* For audit_check_bucket(): a list that ends in NULL. Each of its headers has a key of the
	 * caller's own that objects may be encrypted with. NULL: there is no such key. */
	const struct s3_headers *const *keys;
	struct call_limits limits; /* limits of each request */
	/* The caller's connections, with which it works on items if no thread can be started. */
	struct audit_conns own;
};

/* Returns a reference to the mark of a key. Session, source and suffix are "" in it, so a caller
 * that claims the mark has to set them. */
struct mark_ref audit_mark_ref(
	const struct audit_place *place, const struct audit_conns *conns, const char *key);
/* The mark of an object may have one of several keys: the key of the object or, if the file was
 * compressed during its upload, that key without its suffix of compression. This writes the key
 * without the suffix of this index, from 0 to AUDIT_MARK_KEYS - 1, and sets *ret_suffix to that
 * suffix ("" for 0). False: the object's key does not end in this suffix, is nothing but the
 * suffix, or is too long. */
#define AUDIT_MARK_KEYS (FAMILY_SUFFIXES + 1)
bool audit_mark_key(const char *object_key, size_t suffix_index,
	char ret[static KEY_BYTES_MAX + SUFFIX_MAX + 1], const char **ret_suffix);

/* Finds out whether this is the bucket of these marks (docs/protocol.md, "The bucket is the one
 * that the marks know"). In another bucket, every object would be missing. So a command calls this
 * before it draws conclusions from a missing object. space->generation has to be set. Nothing is
 * written.
 *
 * OK: it is that bucket. ABSENT: no mark is done, so there is no object to check. SETUP: it is
 * another bucket, or S3 does not show which one it is. ABANDONED: the limits of the place ended it.
 * Any other outcome is that of reading the row of the bucket. All but OK have a sentence. */
enum outcome audit_check_bucket(const struct audit_place *place, const struct audit_conns *conns,
	struct problem *ret_problem);

/* The work on each item, for audit_pool_init() and audit_pool_walk(). */
struct audit_pool_work {
	/* Works on an item, in any thread of the pool or in the thread of the caller. An outcome
	 * other than OK ends the pool. */
	enum outcome (*each)(void *arg, const struct audit_conns *conns, void *item,
		struct problem *ret_problem);
	/* Takes back an item that was not worked on before the pool ended. If this is NULL, the
	 * pool frees each item with free(), whether the item was worked on or not. */
	void (*leave)(void *arg, void *item);
	void *arg;
};
/* A pool must not be moved in memory. The pointers in its place are borrowed. */
struct audit_pool {
	struct audit_place place;
	struct audit_pool_work work;
	struct pool threads;
	struct {
		uv_mutex_t mutex;
		/* The first outcome of an item that is not OK, and the sentence of it. */
		enum outcome outcome;
		struct problem problem;
	} locked;
};
/* Prepares a pool of up to so many threads, which are started as items are given. False with a
 * sentence. Call audit_pool_end() in any case. */
bool audit_pool_init(struct audit_pool *pool, const struct audit_place *place,
	const struct audit_pool_work *work, unsigned threads, struct problem *ret_problem);
/* Adds an item, after waiting for room in the queue. False: the pool has ended, by an outcome or by
 * the limits of the place (ABANDONED); the item is taken all the same. Only one thread may call
 * this. Between two calls, that thread may use place.own. */
bool audit_pool_add(struct audit_pool *pool, void *item);
/* Ends the pool with an outcome other than OK. The first outcome counts. Thread-safe. */
void audit_pool_stop(struct audit_pool *pool, enum outcome outcome, const struct problem *problem);
/* Waits until each item was worked on or left, and frees the pool. `o` is the outcome of the
 * caller's part; if it is not OK, *ret_problem has its sentence. Returns `o` if it is not OK.
 * Otherwise it returns the outcome that ended the pool, or OK if none did. */
enum outcome audit_pool_end(struct audit_pool *pool, enum outcome o, struct problem *ret_problem);

/* Hands each mark of the range to work->each as a struct packed_mark, in no order. Up to 15 threads
 * work on the marks, while the caller's thread reads them. work->each may write the marks, and an
 * outcome other than OK ends the walk. work->leave has to be NULL, so that the pool frees the
 * marks. Memory: at most MARK_STREAM_ROWS marks, and the few in the queue. */
enum outcome audit_pool_walk(const struct audit_place *place, const struct mark_range *range,
	const struct audit_pool_work *work, struct problem *ret_problem);
