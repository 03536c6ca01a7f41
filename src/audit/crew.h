/* Threads that do the same to each of many marks or objects. A request to a service takes some
 * milliseconds, and a prefix may have millions of marks, so each thread has connections of its own.
 */
#pragma once
#include "base/pool.h"
#include "marks/mark_stream.h"
#include "s3/s3.h"
#include "scan/key/family.h"

/* What one thread works with. */
struct audit_hand {
	struct store_conn *marks; /* NULL if the place has no store */
	struct s3_conn *s3;       /* NULL if the place has no s3 */
};

/* The marks and the objects that a command works on. All pointers are borrowed. */
struct audit_place {
	struct store *store; /* NULL: no mark is looked at */
	const struct mark_space *space;
	struct s3 *s3;             /* NULL: no object is looked at */
	struct call_limits limits; /* of each request */
	struct audit_hand own; /* the caller's, who works on an item if no thread can be started */
};

/* Returns what a request about the mark of a key needs, if the request claims nothing. */
struct mark_ref audit_ref(
	const struct audit_place *place, const struct audit_hand *hand, const char *key);
/* Writes the nth key that the mark of an object may have, n from 0 to AUDIT_MARK_KEYS - 1. The
 * first is the key of the object. The others are that key without one of the suffixes of
 * compression, which *ret_suffix then is. False: the object's key does not end in the nth suffix,
 * or nothing would be left of it. */
#define AUDIT_MARK_KEYS (FAMILY_SUFFIXES + 1)
bool audit_mark_key(const char *object_key, size_t n,
	char ret[static KEY_BYTES_MAX + SUFFIX_MAX + 1], const char **ret_suffix);

/* Finds out whether the bucket is the one that the marks are about (docs/protocol.md, "The bucket
 * is the one that the marks know"). Commands that conclude something from an object that is not
 * there call it first, after space->generation was set. It writes nothing.
 *
 * OK: it is. ABSENT: no mark says done, so there is no object to ask for. SETUP: it is another
 * bucket, or S3 does not show which one. ABANDONED: the limits of the place ended it. Any other
 * outcome is that of reading the row of the bucket. All but OK have a sentence. */
enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	struct problem *ret_problem);

/* What crew_init() and crew_walk() need to know about the items. */
struct crew_work {
	/* Works on an item, in any thread of the crew or in the caller's. An outcome other than OK
	 * ends the crew. */
	enum outcome (*each)(
		void *arg, const struct audit_hand *hand, void *item, struct problem *ret_problem);
	/* Takes back an item that nobody works on, since the crew has ended. NULL: the crew frees
	 * each item with free(), whether it was worked on or not. */
	void (*leave)(void *arg, void *item);
	void *arg;
};
/* It must not be moved. The pointers in its place are borrowed. */
struct crew {
	struct audit_place place;
	struct crew_work work;
	struct pool pool;
	struct {
		uv_mutex_t mutex;
		enum outcome
			outcome; /* the first one that is not OK, whose sentence is `problem` */
		struct problem problem;
	} locked;
};
/* Prepares a crew of up to `threads`. False with a sentence. Call crew_end() in any case. */
bool crew_init(struct crew *crew, const struct audit_place *place, const struct crew_work *work,
	unsigned threads, struct problem *ret_problem);
/* Waits for room, and takes the item. False: the crew has ended, by an outcome or by the limits of
 * the place (ABANDONED). Only one thread calls this. It may use place.own between two calls. */
bool crew_give(struct crew *crew, void *item);
/* Ends the crew with an outcome other than OK. The first outcome counts. Thread-safe. */
void crew_stop(struct crew *crew, enum outcome outcome, const struct problem *problem);
/* Waits until every item that was given is worked on or left, and frees the crew. `o` says how the
 * caller's own part ended, with *ret_problem if it is not OK. Returns `o` unless it is OK, and then
 * the outcome that ended the crew, or OK. */
enum outcome crew_end(struct crew *crew, enum outcome o, struct problem *ret_problem);

/* Hands each mark of the range to work->each as a struct packed_mark, on up to 16 threads and in no
 * order. work->each may write the marks, and an outcome other than OK ends the walk. work->leave is
 * NULL. Memory: at most MARK_STREAM_ROWS marks. */
enum outcome crew_walk(const struct audit_place *place, const struct mark_range *range,
	const struct crew_work *work, struct problem *ret_problem);
