/* The crew that forget and gc hand every mark below a prefix to: one thread reads the marks, and
 * those of a pool work on them, each with connections of its own. Besides, the question that comes
 * before all conclusions from an object that is not there: whether this is the bucket that the
 * marks know. What is done about a mark is the commands' own story. */
#include "audit/crew.h"
#include "aws/wait.h"
#include "base/pool.h"
#include "base/quote.h"
#include "marks/bucket_shown.h"
#include <stdlib.h>

#define WORKERS 15 /* and the caller, which reads the marks */
#define ROOM    64

struct walk {
	const struct audit_place *place;
	const struct crew_work *work;
	struct pool pool;
	struct {
		uv_mutex_t mutex;
		enum outcome outcome; /* the first that is not OK */
		struct problem problem;
	} locked;
};

int audit_hand_open(const struct audit_place *place, struct audit_hand *ret)
{
	*ret = (struct audit_hand){0};
	int error = store_conn_new(place->store, &ret->marks);
	if (!error && place->s3)
		error = s3_conn_new(place->s3, &ret->s3);
	return error;
}

void audit_hand_clear(struct audit_hand *hand)
{
	store_conn_free(hand->marks);
	s3_conn_free(hand->s3);
	*hand = (struct audit_hand){0};
}

enum outcome bucket_is_known(
	const struct audit_place *place, const struct audit_hand *hand, struct problem *ret_problem)
{
	struct bucket_row row;
	struct bucket_shown shown;
	const struct mark_space *space = place->space;
	const struct bucket_asking asking = {
		.marks = hand->marks, .s3 = hand->s3, .space = space, .limits = place->limits};
	const enum outcome o =
		bucket_row_read(hand->marks, space, &place->limits, &row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	switch (bucket_show(&asking, &row, &shown, ret_problem)) {
	case BUCKET_SHOWN:
		return OUTCOME_OK;
	case BUCKET_NOTHING:
		problem_set(ret_problem,
			"there are no marks of bucket %s at %s that say done: check the name, the "
			"endpoint and --marks",
			quote(space->bucket).text, quote(space->service).text);
		return OUTCOME_ABSENT;
	case BUCKET_REFUSED:
		problem_prefix(ret_problem,
			"nothing shows whether bucket %s is the one that the marks are about",
			quote(space->bucket).text);
		break;
	case BUCKET_NO_ANSWER:
		if (limits_are_over(&place->limits))
			return OUTCOME_ABANDONED;
		break;
	case BUCKET_GONE:
		break;
	}
	return OUTCOME_SETUP;
}

static void end_walk(struct walk *walk, enum outcome outcome, const struct problem *problem)
{
	uv_mutex_lock(&walk->locked.mutex);
	if (walk->locked.outcome == OUTCOME_OK) {
		walk->locked.outcome = outcome;
		walk->locked.problem = *problem;
	}
	uv_mutex_unlock(&walk->locked.mutex);
	pool_close(&walk->pool);
}

static bool goes_on(struct walk *walk)
{
	uv_mutex_lock(&walk->locked.mutex);
	const bool goes_on = walk->locked.outcome == OUTCOME_OK;
	uv_mutex_unlock(&walk->locked.mutex);
	return goes_on;
}

/* Takes the row. */
static void work_on_row(struct walk *walk, const struct audit_hand *hand, struct mark_row *row)
{
	struct problem problem = {0};
	enum outcome o = OUTCOME_OK;
	if (goes_on(walk))
		o = walk->work->each(walk->work->arg, hand, row, &problem);
	if (o != OUTCOME_OK)
		end_walk(walk, o, &problem);
	free(row);
}

static void work_on_rows(void *arg)
{
	struct walk *walk = arg;
	struct audit_hand hand;
	struct problem problem;
	struct mark_row *row;
	if (audit_hand_open(walk->place, &hand)) {
		problem_set(&problem, "out of memory");
		end_walk(walk, OUTCOME_LOCAL, &problem);
	}
	while ((row = pool_take(&walk->pool)))
		work_on_row(walk, &hand, row);
	audit_hand_clear(&hand);
}

/* Where no thread can be started, the caller's own does the work. */
static enum outcome feed_rows(struct walk *walk, const struct audit_hand *own,
	struct mark_stream *stream, struct problem *ret_problem)
{
	struct mark_row *row = NULL;
	enum outcome o;
	while ((o = mark_stream_next(stream, &row, ret_problem)) == OUTCOME_OK && row) {
		if (!pool_feed(&walk->pool, work_on_rows, walk, row))
			work_on_row(walk, own, row);
		if (!goes_on(walk))
			break;
	}
	return o;
}

enum outcome crew_walk(const struct audit_place *place, const struct mark_range *range,
	const struct crew_work *work, struct problem *ret_problem)
{
	struct walk walk = {.place = place, .work = work};
	struct audit_hand own;
	struct mark_stream *stream;
	const bool has_hand = !audit_hand_open(place, &own);
	if (!has_hand || mark_stream_new(own.marks, place->space, range, &place->limits, &stream)) {
		problem_set(ret_problem, "out of memory");
		audit_hand_clear(&own);
		return OUTCOME_LOCAL;
	}
	enum outcome o = OUTCOME_LOCAL;
	uv_mutex_init(&walk.locked.mutex);
	if (pool_init(&walk.pool, &(struct pool_options){.most = WORKERS, .room = ROOM})) {
		problem_set(ret_problem, "out of memory");
	} else {
		o = feed_rows(&walk, &own, stream, ret_problem);
		pool_end(&walk.pool);
	}
	if (o == OUTCOME_OK && walk.locked.outcome != OUTCOME_OK) {
		o = walk.locked.outcome;
		*ret_problem = walk.locked.problem;
	}
	uv_mutex_destroy(&walk.locked.mutex);
	mark_stream_free(stream);
	audit_hand_clear(&own);
	return o;
}
