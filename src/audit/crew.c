#include "audit/crew.h"
#include "base/thread.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define ROWS_AT_ONCE 4096

struct crew {
	const struct audit_place *place;
	struct audit_hand hands[CREW_HANDS];
	struct mark_row *rows[ROWS_AT_ONCE]; /* n of them, each owned */
	size_t n;
};

/* One pass over the rows that are loaded. */
struct pass {
	struct crew *crew;
	const struct crew_work *work;
	atomic_size_t next;
	struct {
		uv_mutex_t mutex;
		enum outcome outcome; /* the first that is not OK */
		struct problem problem;
	} locked;
};
struct member {
	struct pass *pass;
	const struct audit_hand *hand;
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

int crew_new(const struct audit_place *place, struct crew **ret)
{
	struct crew *crew = calloc(1, sizeof *crew);
	int error = crew ? 0 : -ENOMEM;
	if (!error)
		crew->place = place;
	for (size_t i = 0; i < CREW_HANDS && !error; i++)
		error = audit_hand_open(place, &crew->hands[i]);
	if (error)
		crew_free(crew);
	else
		*ret = crew;
	return error;
}

static void drop_rows(struct crew *crew)
{
	while (crew->n)
		free(crew->rows[--crew->n]);
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	drop_rows(crew);
	for (size_t i = 0; i < CREW_HANDS; i++)
		audit_hand_clear(&crew->hands[i]);
	free(crew);
}

static void end_pass(struct pass *pass, enum outcome outcome, const struct problem *problem)
{
	uv_mutex_lock(&pass->locked.mutex);
	if (pass->locked.outcome == OUTCOME_OK) {
		pass->locked.outcome = outcome;
		pass->locked.problem = *problem;
	}
	uv_mutex_unlock(&pass->locked.mutex);
	atomic_store(&pass->next, pass->crew->n);
}

static void work_through(void *arg)
{
	const struct member *member = arg;
	struct pass *pass = member->pass;
	struct problem problem = {0};
	for (size_t i; (i = atomic_fetch_add(&pass->next, 1)) < pass->crew->n;) {
		const enum outcome o = pass->work->each(
			pass->work->arg, member->hand, pass->crew->rows[i], &problem);
		if (o != OUTCOME_OK)
			end_pass(pass, o, &problem);
	}
}

/* The caller's thread is one of them, so that it also goes on where no thread can be started. */
static enum outcome pass_rows(
	struct crew *crew, const struct crew_work *work, struct problem *ret_problem)
{
	struct pass pass = {.crew = crew, .work = work};
	struct member members[CREW_HANDS];
	uv_thread_t threads[CREW_HANDS];
	size_t n = 0;
	uv_mutex_init(&pass.locked.mutex);
	for (size_t i = 0; i < CREW_HANDS; i++)
		members[i] = (struct member){&pass, &crew->hands[i]};
	while (n + 1 < CREW_HANDS && n + 1 < crew->n &&
		!thread_start(&threads[n], work_through, &members[n]))
		n++;
	work_through(&members[n]);
	while (n)
		uv_thread_join(&threads[--n]);
	uv_mutex_destroy(&pass.locked.mutex);
	if (pass.locked.outcome != OUTCOME_OK)
		*ret_problem = pass.locked.problem;
	return pass.locked.outcome;
}

static enum outcome load_rows(
	struct crew *crew, struct mark_stream *stream, struct problem *ret_problem)
{
	enum outcome o = OUTCOME_OK;
	struct mark_row *row = NULL;
	drop_rows(crew);
	while (crew->n < ROWS_AT_ONCE && o == OUTCOME_OK) {
		o = mark_stream_next(stream, &row, ret_problem);
		if (o != OUTCOME_OK || !row)
			break;
		crew->rows[crew->n++] = row;
	}
	return o;
}

enum outcome crew_walk(struct crew *crew, const struct mark_range *range,
	const struct crew_work *work, struct problem *ret_problem)
{
	struct mark_stream *stream;
	if (mark_stream_new(crew->hands[CREW_HANDS - 1].marks, crew->place->space, range,
		    &crew->place->limits, &stream)) {
		problem_set(ret_problem, "out of memory");
		return OUTCOME_LOCAL;
	}
	enum outcome o;
	do {
		o = load_rows(crew, stream, ret_problem);
		if (o == OUTCOME_OK && crew->n)
			o = pass_rows(crew, work, ret_problem);
	} while (o == OUTCOME_OK && crew->n == ROWS_AT_ONCE);
	drop_rows(crew);
	mark_stream_free(stream);
	return o;
}
