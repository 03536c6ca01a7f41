/* Threads that do the same to each of many marks. A request to a service takes some milliseconds,
 * and a prefix may have millions of marks, so each thread has connections of its own. */
#pragma once
#include "audit/mark_stream.h"
#include "s3/s3.h"

/* The marks and the objects that a command works on. All pointers are borrowed. */
struct audit_place {
	struct store *store;
	const struct mark_space *space;
	struct s3 *s3;             /* NULL: no object is looked at */
	struct call_limits limits; /* of each request */
};

/* What one thread works with. */
struct audit_hand {
	struct store_conn *marks;
	struct s3_conn *s3; /* NULL where the place has none */
};
/* Returns 0 or -ENOMEM. The caller clears it in both cases. */
int audit_hand_open(const struct audit_place *place, struct audit_hand *ret);
void audit_hand_clear(struct audit_hand *hand);

/* Whether the bucket is the one that the marks are about, for commands that draw conclusions from
 * an object that is not there (docs/protocol.md, "The bucket is the one that the marks know").
 * Nothing is written. OK: it is. ABSENT: no mark says done, so that there is nothing to ask for.
 * SETUP: it is another bucket, or S3 does not show which one. ABANDONED: the limits of the place
 * ended it. All but OK come with a sentence. space->generation is set already. */
enum outcome bucket_is_known(const struct audit_place *place, const struct audit_hand *hand,
	struct problem *ret_problem);

/* Hands every mark of the range to `each`, on up to 16 threads, in no order. `each` may write the
 * marks; what it returns other than OK ends all. The rows are borrowed during the call. Memory: at
 * most MARK_STREAM_ROWS marks. */
struct crew_work {
	enum outcome (*each)(void *arg, const struct audit_hand *hand, const struct mark_row *row,
		struct problem *ret_problem);
	void *arg;
};
enum outcome crew_walk(const struct audit_place *place, const struct mark_range *range,
	const struct crew_work *work, struct problem *ret_problem);
