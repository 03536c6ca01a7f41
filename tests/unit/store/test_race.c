/* The result of a race by the answers that its writers got: only one winner, in every round, and an
 * answer for all others, show that a server honours conditions. */
#include "../check.h"
#include "store/race.h"

/* The answers in the last round; in those before it, the first writer alone wins. */
struct row {
	enum outcome outcomes[RACE_WRITERS];
	unsigned winners, last_round;
	const char *problem;
};

#define W OUTCOME_OK
#define R OUTCOME_REFUSED
static const struct row rows[] = {
	{{W, R, R, R, R, R, R, R}, 1, 4, ""},
	{{R, R, R, R, R, R, R, W}, 1, 4, ""},
	/* Two have won: nobody needs to hear of the others. */
	{{W, W, R, R, R, R, R, R}, 2, 4, ""},
	{{W, R, R, R, R, R, R, W}, 2, 0, ""},
	{{W, W, W, W, W, W, W, W}, 8, 1, ""},
	{{W, W, R, OUTCOME_TRANSIENT, R, R, R, R}, 2, 0, ""},
	/* One that got no answer may have won as well. */
	{{W, R, R, OUTCOME_LOST, R, R, R, R}, 0, 0, "writer 3 failed"},
	{{W, R, R, R, R, R, R, OUTCOME_THROTTLED}, 0, 4, "writer 7 failed"},
	{{R, R, OUTCOME_SETUP, R, R, R, R, R}, 0, 0, "writer 2 failed"},
	{{R, R, R, R, R, R, R, R}, 0, 0, "all were refused"},
};

struct scene {
	const struct row *row;
	unsigned round, rounds;
	atomic_uint ready, written;
	bool fails_early; /* a writer that has no answer fails before it is ready */
	enum outcome prepared;
};

static enum outcome prepare(void *arg, unsigned round, struct problem *ret_problem)
{
	struct scene *scene = arg;
	scene->round = round;
	scene->rounds++;
	scene->ready = scene->written = 0;
	return round ? scene->prepared : OUTCOME_OK;
}

static enum outcome write_once(void *arg, struct racer *racer, struct problem *ret_problem)
{
	struct scene *scene = arg;
	const bool is_last = scene->round == scene->row->last_round;
	const enum outcome o = is_last         ? scene->row->outcomes[racer->number]
			       : racer->number ? R
					       : W;
	CHECK(!racer->s3 && !racer->store);
	if (o != W && o != R)
		problem_set(ret_problem, "writer %u failed", racer->number);
	scene->ready++;
	if (scene->fails_early && o != W && o != R)
		return o;
	racer_await_start(racer);
	CHECK_INT(scene->ready, RACE_WRITERS); /* none writes before all are ready */
	return o;
}

static unsigned run(struct scene *scene, struct problem *ret_problem)
{
	const struct race race = {.prepare = prepare, .write = write_once, .arg = scene};
	*ret_problem = (struct problem){0};
	return race_run(&race, ret_problem);
}

static void test_rows(void)
{
	for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
		const struct row *row = &rows[i / 2];
		struct scene scene = {.row = row, .fails_early = i % 2};
		struct problem problem;
		bool ok = CHECK_INT(run(&scene, &problem), row->winners);
		ok = CHECK_INT(scene.rounds, row->last_round + 1) && ok;
		ok = CHECK(strstr(problem.text, row->problem) != NULL) && ok;
		ok = CHECK(*row->problem || !*problem.text) && ok;
		if (!ok)
			fprintf(stderr, "\trow %zu: %s\n", i / 2, problem.text);
	}
}

static void test_a_round_that_cannot_be_prepared(void)
{
	struct scene scene = {.row = &rows[0], .prepared = OUTCOME_TRANSIENT};
	struct problem problem;
	CHECK_INT(run(&scene, &problem), 0);
	CHECK_INT(scene.rounds, 2);
}

int main(void)
{
	test_rows();
	test_a_round_that_cannot_be_prepared();
	return check_result();
}
