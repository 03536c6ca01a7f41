/* A race of several writers, which shows whether a server tests a condition and writes in one step.
 * doctor runs it with marks and with objects, and the store in S3 before its first write. */
#include "store/race.h"
#include "base/pool.h"
#include "base/wait_until.h"
#include <stdlib.h>
#include <string.h>

/* The writers of a race. In each round they wait for each other, and write once all are ready. */
struct contest {
	const struct race *race;
	struct pool pool; /* one thread for each writer */
	struct {
		uv_mutex_t mutex;
		uv_cond_t all_are_ready;
		unsigned ready; /* writers that are ready, or that could not be started */
	} locked;
	struct racer racers[RACE_WRITERS];
};

void racer_await_start(struct racer *racer)
{
	struct contest *contest = racer->contest;
	racer->is_ready = true;
	uv_mutex_lock(&contest->locked.mutex);
	if (++contest->locked.ready == RACE_WRITERS)
		uv_cond_broadcast(&contest->locked.all_are_ready);
	wait_until(contest->locked.ready == RACE_WRITERS, .cond = &contest->locked.all_are_ready,
		.mutex = &contest->locked.mutex);
	uv_mutex_unlock(&contest->locked.mutex);
}

/* The thread of one writer in one round. */
static void write_once(void *arg)
{
	struct racer *racer = arg;
	const struct race *race = racer->contest->race;
	racer->outcome = race->write(race->arg, racer, &racer->problem);
	if (!racer->is_ready) /* the writer failed before its write: the others still wait for it */
		racer_await_start(racer);
}

/* Runs one round, and returns how many writers have won. 0 with a sentence: none has, or one has
 * but not all got an answer, so that another one may have won as well. */
static unsigned run_round(struct contest *contest, struct problem *ret_problem)
{
	unsigned winners = 0;
	const struct racer *unanswered = NULL;
	/* The mutex keeps all writers from getting ready until each was started or has failed. */
	uv_mutex_lock(&contest->locked.mutex);
	contest->locked.ready = 0;
	for (unsigned i = 0; i < RACE_WRITERS; i++) {
		struct racer *racer = &contest->racers[i];
		racer->is_ready = false;
		racer->outcome = OUTCOME_LOCAL; /* the outcome if its thread cannot be started */
		racer->problem = (struct problem){0};
		if (pool_start(&contest->pool, write_once, racer))
			continue;
		problem_set(&racer->problem, PROBLEM_NO_DESCRIPTORS);
		contest->locked.ready++; /* the others must not wait for it */
	}
	uv_mutex_unlock(&contest->locked.mutex);
	pool_join(&contest->pool);
	for (unsigned i = 0; i < RACE_WRITERS; i++) {
		const struct racer *racer = &contest->racers[i];
		winners += racer->outcome == OUTCOME_OK;
		if (racer->outcome != OUTCOME_OK && racer->outcome != OUTCOME_REFUSED)
			unanswered = racer;
	}
	/* Two winners are too many, whatever the others would have been answered. */
	if (winners > 1 || (winners == 1 && !unanswered))
		return winners;
	if (unanswered)
		*ret_problem = unanswered->problem;
	else
		problem_set(ret_problem,
			"of %u writers at once all were refused, though nothing was in their way",
			RACE_WRITERS);
	return 0;
}

unsigned race_run(const struct race *race, struct problem *ret_problem)
{
	struct contest *contest = calloc(1, sizeof *contest);
	const struct pool_options options = {.max_threads = RACE_WRITERS};
	bool is_open = true;
	/* the winners of the last round; the next one begins only if this is 1 */
	unsigned winners = 1;
	if (!contest || pool_init(&contest->pool, &options)) {
		free(contest);
		outcome_no_memory(ret_problem);
		return 0;
	}
	contest->race = race;
	uv_mutex_init(&contest->locked.mutex);
	uv_cond_init(&contest->locked.all_are_ready);
	for (unsigned i = 0; i < RACE_WRITERS; i++) {
		struct racer *racer = &contest->racers[i];
		*racer = (struct racer){.number = i, .contest = contest};
		if (race->s3 && s3_conn_new(race->s3, &racer->s3))
			is_open = false;
		if (race->store && store_conn_new(race->store, &racer->store))
			is_open = false;
	}
	if (!is_open) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		winners = 0;
	}
	for (unsigned round = 0; winners == 1 && round < RACE_ROUNDS; round++)
		winners = race->prepare(race->arg, round, ret_problem) == OUTCOME_OK
				  ? run_round(contest, ret_problem)
				  : 0;
	pool_end(&contest->pool);
	for (unsigned i = 0; i < RACE_WRITERS; i++) {
		s3_conn_free(contest->racers[i].s3);
		store_conn_free(contest->racers[i].store);
	}
	uv_cond_destroy(&contest->locked.all_are_ready);
	uv_mutex_destroy(&contest->locked.mutex);
	free(contest);
	return winners;
}
