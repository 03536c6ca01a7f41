/* What all checks of `s3once doctor` use. doctor_find() prints a finding, which is one line.
 * doctor_put() sends a small probe object, whose key comes from doctor_key(). doctor_race() lets
 * several writers write at once, which shows whether a server checks a condition and writes in one
 * step. */
#include "base/clock.h"
#include "base/must_have.h"
#include "base/pool.h"
#include "base/wait_until.h"
#include "cli/doctor/doctor.h"
#include "cli/json.h"
#include "cli/signals.h"
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TIDY_NS (5 * NS_PER_S) /* how long the clean-up may go on after a signal */

static const char *const names[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_FAILURE] = "failure"};

void doctor_find(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *format, ...)
{
	struct text text = TEXT(8192);
	va_list ap;
	if (signals_came() && !doctor->is_tidying)
		return;
	va_start(ap, format);
	text_addfv(&text, format, ap);
	va_end(ap);
	doctor->counts[finding]++;
	if (doctor->is_json)
		json_print(&doctor->frame->output,
			json_set(json_event("finding"), BYTES("finding", names[finding]),
				BYTES("check", what), BYTES("text", text_string(&text))));
	else
		output_tell(&doctor->frame->output, "%-8s %-21s %s", names[finding], what,
			text_string(&text));
	text_clear(&text);
}

void doctor_refused(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	if (outcome == OUTCOME_DENIED)
		doctor_find(doctor, finding, what, "these credentials need %s: %s", permission,
			sentence);
	else
		doctor_find(doctor, finding, what, "%s", sentence);
}

/* Whether the clean-up has to end: TIDY_NS have passed since a signal was noticed here, or a second
 * one came. */
static bool ends_tidying(void *arg)
{
	struct doctor *doctor = arg;
	const unsigned came = signals_came();
	const uint64_t now = clock_boot_ns();
	if (came && !doctor->tidy_until_ns)
		doctor->tidy_until_ns = now + TIDY_NS;
	return came > 1 || (came && now >= doctor->tidy_until_ns);
}

struct call_limits doctor_tidy_limits(struct doctor *doctor)
{
	return (struct call_limits){
		.attempts = DOCTOR_ATTEMPTS, .abandon = ends_tidying, .abandon_arg = doctor};
}

const char *doctor_key_of(struct doctor_bucket *bucket, const char *end)
{
	assert(bucket->n_keys < DOCTOR_KEYS_MAX);
	char *key = bucket->keys[bucket->n_keys++];
	snprintf(key, sizeof bucket->keys[0], "%s%s", bucket->prefix, end);
	return key;
}

const char *doctor_key(struct doctor_bucket *bucket)
{
	char end[16];
	snprintf(end, sizeof end, "-%u", bucket->n_keys);
	return doctor_key_of(bucket, end);
}

enum outcome doctor_put(struct s3_conn *conn, const struct doctor_bucket *bucket,
	const struct doctor_probe *probe, struct sums *ret_sums, struct s3_object *ret,
	struct problem *ret_problem)
{
	const struct http_body body = {.bytes = strlen(probe->content), .memory = probe->content};
	const enum checksum checksum = s3_checksum(bucket->s3);
	const unsigned kinds =
		probe->kinds ? probe->kinds : s3_wanted_digests(bucket->s3, checksum);
	struct sums ignored_sums, *sums = ret_sums ? ret_sums : &ignored_sums;
	struct s3_object ignored;
	const struct s3_put wanted = {.target = {.key = probe->key, .headers = probe->headers},
		.body = &body,
		.sums = sums,
		.checksum = checksum,
		.condition = {.if_match = probe->condition.if_match,
			.if_none_match =
				probe->condition.if_none_match ||
				(probe->is_new && s3_knows(bucket->s3, S3_PUT_CONDITION) != S3_NO)},
		/* A wrong digest is wrong in each attempt. */
		.limits = {.attempts = probe->spoil ? 1 : bucket->doctor->limits.attempts,
			.abandon = bucket->doctor->limits.abandon}};
	if (digest_bytes(kinds, body.memory, body.bytes, sums))
		return outcome_no_memory(ret_problem);
	/* Each digest that is to be wrong gets a wrong bit in its first byte. */
	for (unsigned kind = 0; kind < CHECKSUMS; kind++)
		if (probe->spoil & DIGEST_OF(kind))
			((unsigned char *)sums)[checksum_kinds[kind].at] ^= 1;
	return s3_put_object(conn, &wanted, ret ? ret : &ignored, ret_problem);
}

/* The writers of a race. In each round they wait for each other, and write once all are ready. */
struct contest {
	const struct race *race;
	struct pool pool; /* a thread for each writer */
	struct {
		uv_mutex_t mutex;
		uv_cond_t all_are_ready;
		unsigned ready; /* writers that are ready, or that could not be started */
	} locked;
	struct racer racers[DOCTOR_WRITERS];
};

void racer_ready(struct racer *racer)
{
	struct contest *contest = racer->contest;
	racer->is_ready = true;
	uv_mutex_lock(&contest->locked.mutex);
	if (++contest->locked.ready == DOCTOR_WRITERS)
		uv_cond_broadcast(&contest->locked.all_are_ready);
	wait_until(contest->locked.ready == DOCTOR_WRITERS, .told = &contest->locked.all_are_ready,
		.mutex = &contest->locked.mutex);
	uv_mutex_unlock(&contest->locked.mutex);
}

/* The thread of one writer in one round. */
static void write_once(void *arg)
{
	struct racer *racer = arg;
	const struct race *race = racer->contest->race;
	racer->outcome = race->write(race->arg, racer, &racer->problem);
	if (!racer->is_ready) /* the writer failed before its write, and the others wait for it */
		racer_ready(racer);
}

/* Runs one round, and returns how many writers have won. 0 with a sentence: nobody has, or one has
 * but not all got an answer, so that another one may have won as well. */
static unsigned run_round(struct contest *contest, struct problem *ret_problem)
{
	unsigned winners = 0;
	const struct racer *unanswered = NULL;
	/* The mutex keeps all writers from getting ready until each was started or has failed. */
	uv_mutex_lock(&contest->locked.mutex);
	contest->locked.ready = 0;
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		struct racer *racer = &contest->racers[i];
		racer->is_ready = false;
		racer->outcome = OUTCOME_LOCAL; /* stays if its thread cannot be started */
		racer->problem = (struct problem){0};
		if (pool_start(&contest->pool, write_once, racer))
			continue;
		problem_set(&racer->problem, PROBLEM_NO_DESCRIPTORS);
		contest->locked.ready++; /* the others must not wait for it */
	}
	uv_mutex_unlock(&contest->locked.mutex);
	pool_join(&contest->pool);
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		const struct racer *racer = &contest->racers[i];
		winners += racer->outcome == OUTCOME_OK;
		if (racer->outcome != OUTCOME_OK && racer->outcome != OUTCOME_REFUSED)
			unanswered = racer;
	}
	if (winners > 1 || (winners && !unanswered))
		return winners;
	if (unanswered)
		*ret_problem = unanswered->problem;
	else
		problem_set(ret_problem,
			"of %u writers at once all were refused, though nothing was in their way",
			DOCTOR_WRITERS);
	return 0;
}

unsigned doctor_race(const struct race *race, struct problem *ret_problem)
{
	struct contest *contest = must_have(calloc(1, sizeof *contest));
	const struct pool_options options = {.most = DOCTOR_WRITERS};
	bool is_open = true;
	unsigned winners = 1; /* of the last round; a round begins only if this is 1 */
	/* Ends the process if pool_init() has found no memory. */
	must_have(pool_init(&contest->pool, &options) ? NULL : contest);
	contest->race = race;
	uv_mutex_init(&contest->locked.mutex);
	uv_cond_init(&contest->locked.all_are_ready);
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		struct racer *racer = &contest->racers[i];
		*racer = (struct racer){.number = i, .contest = contest};
		is_open = is_open && (!race->s3 || !s3_conn_new(race->s3, &racer->s3)) &&
			  (!race->store || !store_conn_new(race->store, &racer->store));
	}
	if (!is_open) {
		problem_set(ret_problem, PROBLEM_NO_DESCRIPTORS);
		winners = 0;
	}
	for (unsigned round = 0; winners == 1 && round < DOCTOR_ROUNDS; round++)
		winners = race->prepare(race->arg, round, ret_problem) == OUTCOME_OK
				  ? run_round(contest, ret_problem)
				  : 0;
	pool_end(&contest->pool);
	for (unsigned i = 0; i < DOCTOR_WRITERS; i++) {
		s3_conn_free(contest->racers[i].s3);
		store_conn_free(contest->racers[i].store);
	}
	uv_cond_destroy(&contest->locked.all_are_ready);
	uv_mutex_destroy(&contest->locked.mutex);
	free(contest);
	return winners;
}
