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
	/* For audit_check_bucket(), forget and gc: NULL, or a NULL-terminated list of headers, each
	 * with a customer's key (SSE-C) with which objects may be encrypted. forget and gc use the
	 * first. */
	const struct s3_headers *const *keys;
	struct call_limits limits; /* limits of each request */
	/* The caller's connections, for working on items itself if no thread can be started. */
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

/* Checks whether this is the bucket of these marks (docs/protocol.md, "The bucket is the one that
 * the marks know"). In a different bucket, every object would be missing, so a command calls this
 * before it draws conclusions from a missing object. space->generation must be set. Nothing is
 * written.
 *
 * OK: it is that bucket. ABSENT: no mark is done, so there is no object to check. SETUP: it is
 * another bucket, or S3 does not show which one it is. ABANDONED: the limits of the place ended it.
 * Any other outcome is an error of reading the bucket's row. All but OK have a sentence. */
enum outcome audit_check_bucket(const struct audit_place *place, const struct audit_conns *conns,
	struct problem *ret_problem);

/* The work on each item, for audit_pool_init() and audit_pool_walk(). */
struct audit_pool_work {
	/* Works on an item, in any thread of the pool or in the thread of the caller. An outcome
	 * other than OK ends the pool. */
	enum outcome (*each)(void *arg, const struct audit_conns *conns, void *item,
		struct problem *ret_problem);
	/* Gets back an item that was not begun before the pool ended. NULL: the pool frees each
	 * item with free(), whether it was begun or not. */
	void (*leave)(void *arg, void *item);
	void *arg;
};
/* Must not be moved in memory. The pointers in `place` are borrowed. */
struct audit_pool {
	struct audit_place place;
	struct audit_pool_work work;
	struct pool threads;
	struct {
		uv_mutex_t mutex;
		/* The first outcome other than OK, and its sentence. */
		enum outcome outcome;
		struct problem problem;
	} locked;
};
/* Prepares a pool of up to `threads` threads, which are started as items are added. Returns false
 * with a sentence. Always call audit_pool_end(). */
bool audit_pool_init(struct audit_pool *pool, const struct audit_place *place,
	const struct audit_pool_work *work, unsigned threads, struct problem *ret_problem);
/* Waits for room in the queue, and adds an item. Returns false if the pool has ended, by an outcome
 * or by the limits of the place (ABANDONED); the item is taken nevertheless. Only one thread may
 * call this. Between two calls, that thread may use place.own. */
bool audit_pool_add(struct audit_pool *pool, void *item);
/* Ends the pool with an outcome other than OK; only the first one counts. Thread-safe. */
void audit_pool_stop(struct audit_pool *pool, enum outcome outcome, const struct problem *problem);
/* Waits for the items under way, and frees the pool. `o` is the outcome of the caller's part; if it
 * is not OK, *ret_problem has its sentence, and it is returned. Otherwise returns the outcome that
 * ended the pool, or OK. */
enum outcome audit_pool_end(struct audit_pool *pool, enum outcome o, struct problem *ret_problem);

/* Hands each mark of the range to work->each as a struct packed_mark, in no order. Up to 15 threads
 * work on the marks, while the caller's thread reads them. work->each may write the marks, and an
 * outcome other than OK ends the walk. work->leave has to be NULL, so that the pool frees the
 * marks. Memory: at most MARK_STREAM_ROWS marks, and the few in the queue. */
enum outcome audit_pool_walk(const struct audit_place *place, const struct mark_range *range,
	const struct audit_pool_work *work, struct problem *ret_problem);
