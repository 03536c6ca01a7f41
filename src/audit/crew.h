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
	struct store_conn *marks; /* NULL where the place has none, as s3 */
	struct s3_conn *s3;
};

/* The marks and the objects that a command works on. All pointers are borrowed. */
struct audit_place {
	struct store *store; /* NULL: no mark is looked at */
	const struct mark_space *space;
	struct s3 *s3;             /* NULL: no object is looked at */
	struct call_limits limits; /* of each request */
	struct audit_hand own;     /* of the caller, who works where no thread can be started */
};

/* Names the mark of a key for a request that claims nothing. */
struct mark_ref audit_ref(
	const struct audit_place *place, const struct audit_hand *hand, const char *key);
/* Reads the mark of a key right now. OK also if there is none. Clear it in any case. */
enum outcome audit_read_mark(const struct audit_place *place, const struct audit_hand *hand,
	const char *key, struct mark *ret, struct problem *ret_problem);
/* The nth key that the mark of this object may have, from 0 on: its own, and those without a suffix
 * of compression, which is *ret_suffix then. False: it cannot be this one. */
#define AUDIT_MARK_KEYS (FAMILY_SUFFIXES + 1)
bool audit_mark_key(const char *object_key, size_t n,
	char ret[static KEY_BYTES_MAX + SUFFIX_MAX + 1], const char **ret_suffix);

/* Whether the bucket is the one that the marks are about, for commands that draw conclusions from
 * an object that is not there (docs/protocol.md, "The bucket is the one that the marks know").
 * Nothing is written. OK: it is. ABSENT: no mark says done, so that there is nothing to ask for.
 * SETUP: it is another bucket, or S3 does not show which one. ABANDONED: the limits of the place
 * ended it. All but OK come with a sentence. space->generation is set already. */
enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	struct problem *ret_problem);

/* What is done with an item, which both functions take. */
struct crew_work {
	/* What it returns other than OK ends all. In any thread of the crew, or the caller's. */
	enum outcome (*each)(
		void *arg, const struct audit_hand *hand, void *item, struct problem *ret_problem);
	/* Nobody works on it any more. NULL: items are freed with free(), worked on or not. */
	void (*leave)(void *arg, void *item);
	void *arg;
};
/* It is not moved. Its place is borrowed. */
struct crew {
	struct audit_place place;
	struct crew_work work;
	struct pool pool;
	struct {
		uv_mutex_t mutex;
		enum outcome outcome; /* the first that is not OK, with its sentence */
		struct problem problem;
	} locked;
};
/* False with a sentence. Call crew_end() in any case. */
bool crew_init(struct crew *crew, const struct audit_place *place, const struct crew_work *work,
	unsigned threads, struct problem *ret_problem);
/* Waits for room, and takes the item. False: all has ended, by an outcome or by the limits of the
 * place (ABANDONED). For one thread, which may use its own hand in between. */
bool crew_give(struct crew *crew, void *item);
/* Ends all with an outcome other than OK. Thread-safe. */
void crew_stop(struct crew *crew, enum outcome outcome, const struct problem *problem);
/* Waits until all that was given is done or left. `o` is how the giving ended, with *ret_problem if
 * it is not OK. Returns that, or what ended the crew. */
enum outcome crew_end(struct crew *crew, enum outcome o, struct problem *ret_problem);

/* Hands every mark of the range to `each`, a struct packed_mark, on up to 16 threads, in no order.
 * `each` may write the marks; what it returns other than OK ends all. There is nothing to leave.
 * Memory: at most MARK_STREAM_ROWS marks. */
enum outcome crew_walk(const struct audit_place *place, const struct mark_range *range,
	const struct crew_work *work, struct problem *ret_problem);
