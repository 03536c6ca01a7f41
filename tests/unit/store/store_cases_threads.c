#include "base/random.h"
#include "marks/store_settings.h"
#include "store_cases.h"
#include <pthread.h>
#include <stdlib.h>

#define THREADS 8
#define KEYS    500
#define ADDS    25

/* One thread's part, on a connection of its own. Checks are made after the threads have ended. */
struct part {
	const struct scene *scene;
	struct store_conn *conn;
	char id[ID_CHARS + 1];
	bool won[KEYS];
	char winner[KEYS][ID_CHARS + 1]; /* as a refusal showed it */
	unsigned wrong;                  /* outcomes that cannot be */
	struct store_settings settings;
};

static struct part *run_parts(const struct scene *scene, void *(*work)(void *))
{
	struct part *parts = calloc(THREADS, sizeof *parts);
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		parts[i].scene = scene;
		random_id(parts[i].id);
		CHECK(store_conn_new(scene->store, &parts[i].conn) == 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, &parts[i]) == 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		store_conn_free(parts[i].conn);
		CHECK_INT(parts[i].wrong, 0);
	}
	return parts;
}

static void note(struct part *part, size_t i, enum outcome outcome, const struct item *present)
{
	const char *winner = item_string(present, "claim");

	part->won[i] = outcome == OUTCOME_OK;
	if (outcome == OUTCOME_REFUSED && winner)
		snprintf(part->winner[i], sizeof part->winner[i], "%s", winner);
	else if (outcome != OUTCOME_OK)
		part->wrong++;
}

static void *claim_all(void *arg)
{
	const struct condition absent = {.name = "pk", .test = CONDITION_ABSENT};
	struct part *part = arg;
	struct item item = {0}, present = {0};
	struct problem problem;

	part->wrong += item_set_string(&item, "claim", part->id) < 0;
	for (size_t i = 0; i < KEYS; i++) {
		char sk[16];
		snprintf(sk, sizeof sk, "%zu", i);
		enum outcome o = part->conn->store->ops->write(part->conn, key_of(part->scene, sk),
			&(struct item_write){
				.item = &item, .conditions = &absent, .n_conditions = 1},
			&no_limits, &present, &problem);
		note(part, i, o, &present);
		item_clear(&present);
	}
	item_clear(&item);
	return NULL;
}

/* Each key has one winner, and every loser was shown that one. */
static void check_winners(struct part *parts)
{
	for (size_t i = 0; i < KEYS; i++) {
		struct part *winner = NULL;
		unsigned winners = 0;

		for (size_t t = 0; t < THREADS; t++)
			if (parts[t].won[i]) {
				winner = &parts[t];
				winners++;
			}
		if (!CHECK_INT(winners, 1))
			continue;
		for (size_t t = 0; t < THREADS; t++)
			if (!parts[t].won[i])
				CHECK_STRING(parts[t].winner[i], winner->id);
	}
}

static void one_winner(struct scene *scene)
{
	struct part *parts = run_parts(scene, claim_all);

	check_winners(parts);
	free(parts);
}

static void *take_all(void *arg)
{
	struct part *part = arg;
	const struct condition as_seen = {"claim", CONDITION_EQUALS, VALUE_STRING, "seen"};
	const struct change change = {"claim", VALUE_STRING, part->id};
	struct item present = {0};
	struct problem problem;

	for (size_t i = 0; i < KEYS; i++) {
		char sk[16];
		snprintf(sk, sizeof sk, "%zu", i);
		enum outcome o = part->conn->store->ops->write(part->conn, key_of(part->scene, sk),
			&(struct item_write){.changes = &change,
				.n_changes = 1,
				.conditions = &as_seen,
				.n_conditions = 1},
			&no_limits, &present, &problem);
		note(part, i, o, &present);
		item_clear(&present);
	}
	return NULL;
}

/* As take_all(), but each write of an even key is begun before that of the next key, and ended
 * after it. */
static void *take_pairs(void *arg)
{
	struct part *part = arg;
	const struct store_ops *ops = part->conn->store->ops;
	const struct condition as_seen = {"claim", CONDITION_EQUALS, VALUE_STRING, "seen"};
	const struct change change = {"claim", VALUE_STRING, part->id};
	const struct item_write take = {
		.changes = &change, .n_changes = 1, .conditions = &as_seen, .n_conditions = 1};
	struct item present = {0};
	struct problem problem;

	for (size_t i = 0; i + 1 < KEYS; i += 2) {
		char first[16], second[16];
		snprintf(first, sizeof first, "%zu", i);
		snprintf(second, sizeof second, "%zu", i + 1);
		ops->begin_write(part->conn, key_of(part->scene, first), &take, &no_limits);
		enum outcome o = ops->write(part->conn, key_of(part->scene, second), &take,
			&no_limits, &present, &problem);
		note(part, i + 1, o, &present);
		item_clear(&present);
		o = ops->end_write(part->conn, &present, &problem);
		note(part, i, o, &present);
		item_clear(&present);
	}
	return NULL;
}

static void takes_over(struct scene *scene, void *(*take)(void *arg))
{
	struct item item = item_of("claim", "seen"), present = {0};

	for (size_t i = 0; i < KEYS; i++) {
		char sk[16];
		snprintf(sk, sizeof sk, "%zu", i);
		CHECK_OUTCOME(put_absent(scene, sk, &item, &present), OUTCOME_OK);
	}
	struct part *parts = run_parts(scene, take);
	check_winners(parts);
	free(parts);
	item_clear(&item);
}

static void one_takes_over(struct scene *scene)
{
	takes_over(scene, take_all);
}

static void two_writes_and_one_wait(struct scene *scene)
{
	if (scene->store->ops->begin_write) /* a store with marks */
		takes_over(scene, take_pairs);
}

/* Adds one to "count" when it is still what was read. */
static enum outcome add_one(struct part *part)
{
	const struct store_ops *ops = part->conn->store->ops;
	struct item_key key = key_of(part->scene, "counter");
	struct item got = {0}, present = {0};
	struct problem problem;
	char before[24], after[24];
	int64_t count = 0;

	enum outcome o = ops->get(part->conn, key, READ_CONSISTENT, &no_limits, &got, &problem);
	if (o != OUTCOME_OK || item_number(&got, "count", &count) < 0)
		part->wrong++;
	snprintf(before, sizeof before, "%" PRId64, count);
	snprintf(after, sizeof after, "%" PRId64, count + 1);
	const struct condition same = {"count", CONDITION_EQUALS, VALUE_NUMBER, before};
	const struct change change = {"count", VALUE_NUMBER, after};
	o = ops->write(part->conn, key,
		&(struct item_write){
			.changes = &change, .n_changes = 1, .conditions = &same, .n_conditions = 1},
		&no_limits, &present, &problem);
	item_clear(&got);
	item_clear(&present);
	return o;
}

static void *add_many(void *arg)
{
	struct part *part = arg;

	for (unsigned i = 0; i < ADDS;) {
		enum outcome o = add_one(part);
		i += o == OUTCOME_OK;
		if (o != OUTCOME_OK && o != OUTCOME_REFUSED) {
			part->wrong++;
			break;
		}
	}
	return NULL;
}

static void no_lost_update(struct scene *scene)
{
	struct item item = {0}, got = {0};
	int64_t count = 0;

	CHECK(item_set_number(&item, "count", 0) == 0);
	CHECK_OUTCOME(put_absent(scene, "counter", &item, &got), OUTCOME_OK);
	free(run_parts(scene, add_many));
	CHECK_OUTCOME(get_item(scene, "counter", &got), OUTCOME_OK);
	CHECK(item_number(&got, "count", &count) == 0);
	CHECK_INT(count, THREADS * ADDS);
	item_clear(&got);
	item_clear(&item);
}

static void *load(void *arg)
{
	struct part *part = arg;
	struct problem problem;

	part->wrong +=
		settings_load_or_make(part->conn, 4, NULL, &part->settings, &problem) != OUTCOME_OK;
	return NULL;
}

static void settings_agree(struct scene *scene)
{
	struct part *parts = run_parts(scene, load);
	struct store_settings again;
	struct problem problem;

	CHECK_OUTCOME(settings_load(scene->conn, NULL, &again, &problem), OUTCOME_OK);
	CHECK_INT(strlen(again.table_id), ID_CHARS);
	CHECK(again.shards > 0);
	for (size_t i = 0; i < THREADS; i++) {
		CHECK_STRING(parts[i].settings.table_id, again.table_id);
		CHECK_INT(parts[i].settings.shards, again.shards);
	}
	free(parts);
}

const struct store_case thread_cases[] = {
	{"one_winner", one_winner},
	{"one_takes_over", one_takes_over},
	{"two_writes_and_one_wait", two_writes_and_one_wait},
	{"no_lost_update", no_lost_update},
	{"settings_agree", settings_agree},
	{0},
};
