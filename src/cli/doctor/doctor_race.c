/* Whether a server decides a condition and writes in one step: several writers try at once. */
#include "base/thread.h"
#include "base/wait_until.h"
#include "cli/doctor/doctor.h"
#include <stdlib.h>
#include <uv.h>

struct writer {
	struct racer racer;
	const struct race *race;
	uv_thread_t thread;
	bool is_started;
	enum outcome outcome;
	struct problem problem;
};

/* The writers of one round. They pass once all of them are ready. */
struct contest {
	struct {
		uv_mutex_t mutex;
		uv_cond_t all_are_ready;
		unsigned expected, ready;
	} locked;
	struct writer writers[DOCTOR_WRITERS];
};

void racer_ready(struct racer *racer)
{
	struct contest *contest = racer->contest;
	racer->is_ready = true;
	uv_mutex_lock(&contest->locked.mutex);
	if (++contest->locked.ready >= contest->locked.expected)
		uv_cond_broadcast(&contest->locked.all_are_ready);
	wait_until(contest->locked.ready >= contest->locked.expected,
		.told = &contest->locked.all_are_ready, .mutex = &contest->locked.mutex);
	uv_mutex_unlock(&contest->locked.mutex);
}

static void write_once(void *arg)
{
	struct writer *writer = arg;
	writer->outcome = writer->race->write(writer->race->arg, &writer->racer, &writer->problem);
	if (!writer->racer.is_ready) /* it failed before, and the others wait */
		racer_ready(&writer->racer);
}

/* A thread that cannot be started is not waited for. */
static void start_writer(struct contest *contest, struct writer *writer)
{
	writer->racer.is_ready = false;
	writer->problem = (struct problem){0};
	writer->is_started = thread_start(&writer->thread, write_once, writer) == 0;
	if (writer->is_started)
		return;
	writer->outcome = OUTCOME_LOCAL;
	problem_set(&writer->problem, PROBLEM_NO_DESCRIPTORS);
	uv_mutex_lock(&contest->locked.mutex);
	contest->locked.expected--;
	uv_cond_broadcast(&contest->locked.all_are_ready);
	uv_mutex_unlock(&contest->locked.mutex);
}

/* How many have won. 0 with a sentence: nobody, or not all have got an answer. */
static unsigned run_round(struct contest *contest, struct problem *ret_problem)
{
	unsigned winners = 0;
	const struct writer *unanswered = NULL;
	contest->locked.expected = DOCTOR_WRITERS;
	contest->locked.ready = 0;
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++)
		start_writer(contest, &contest->writers[i]);
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		struct writer *writer = &contest->writers[i];
		if (writer->is_started)
			uv_thread_join(&writer->thread);
		winners += writer->outcome == OUTCOME_OK;
		if (writer->outcome != OUTCOME_OK && writer->outcome != OUTCOME_REFUSED)
			unanswered = writer;
	}
	if (winners > 1 || (winners && !unanswered))
		return winners;
	if (unanswered)
		*ret_problem = unanswered->problem;
	else
		problem_set(ret_problem,
			"of %u writers that tried at once all were refused, although nothing was "
			"in their way",
			DOCTOR_WRITERS);
	return 0;
}

static bool open_contest(struct contest *contest, const struct race *race)
{
	bool is_open = true;
	uv_mutex_init(&contest->locked.mutex);
	uv_cond_init(&contest->locked.all_are_ready);
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		struct writer *writer = &contest->writers[i];
		*writer = (struct writer){.race = race, .racer = {.number = i, .contest = contest}};
		is_open = is_open && (!race->s3 || !s3_conn_new(race->s3, &writer->racer.s3)) &&
			  (!race->store || !store_conn_new(race->store, &writer->racer.store));
	}
	return is_open;
}

static void close_contest(struct contest *contest)
{
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		s3_conn_free(contest->writers[i].racer.s3);
		store_conn_free(contest->writers[i].racer.store);
	}
	uv_cond_destroy(&contest->locked.all_are_ready);
	uv_mutex_destroy(&contest->locked.mutex);
	free(contest);
}

unsigned doctor_race(const struct race *race, struct problem *ret_problem)
{
	struct contest *contest = calloc(1, sizeof *contest);
	unsigned winners = 1;
	if (!contest) {
		problem_set(ret_problem, "out of memory");
		return 0;
	}
	if (!open_contest(contest, race)) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		winners = 0;
	}
	for (unsigned round = 0; winners == 1 && round < DOCTOR_ROUNDS; round++)
		winners = race->prepare(race->arg, round, ret_problem) == OUTCOME_OK
				  ? run_round(contest, ret_problem)
				  : 0;
	close_contest(contest);
	return winners;
}
