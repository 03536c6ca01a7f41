/* One lease against a row in memory whose answers are lost, late or refused as each case says. */
#include "../check.h"
#include "base/clock.h"
#include "base/wait_until.h"
#include "lease/lease.h"
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEASE_NS (60 * NS_PER_S)
#define LATE_NS  (1100 * NS_PER_MS)

enum answer {
	ANSWER,             /* as the row is */
	LOSE_BEFORE,        /* the request is lost */
	LOSE_AFTER,         /* it is applied, and the reply is lost */
	REFUSE_WITHOUT_ROW, /* the row is gone */
	REFUSE_AS_IT_WAS,   /* the row is as it was before, also when it is looked at */
	ANSWER_LATE         /* as the row is, after LATE_NS */
};

static struct row {
	char version[LEASE_VERSION_MAX];
	const char *owner;      /* NULL: ours */
	enum answer answers[8]; /* of the next tries, in order */
	unsigned tries;
	char sent[8][LEASE_VERSION_MAX]; /* the new versions that were sent */
	size_t changes[8];               /* how many changes were sent with each */
	uint64_t patience_ns[8];         /* how long each might take */
	uint64_t lease_ns[8];            /* the length of the lease that was sent with each */
	unsigned lost;                   /* LEASE_LOST events */
	uint64_t took_ns;                /* how long each answer takes */
	uint64_t arrived_ns;             /* when the last try did */
} row;

static enum outcome renew(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const unsigned i = row.tries++;
	if (!CHECK(i < 8))
		return OUTCOME_LOST;
	row.arrived_ns = clock_boot_ns();
	row.changes[i] = try->n_changes;
	row.lease_ns[i] = try->lease_ns;
	row.patience_ns[i] = try->limits->deadline_ns - row.arrived_ns;
	const uint64_t took_ns = row.answers[i] == ANSWER_LATE ? LATE_NS : row.took_ns;
	while (clock_boot_ns() < row.arrived_ns + took_ns)
		;
	snprintf(row.sent[i], sizeof row.sent[i], "%s", try->next);
	problem_set(ret_problem, "no answer");
	if (row.answers[i] == LOSE_BEFORE)
		return OUTCOME_LOST;
	if (row.answers[i] == REFUSE_WITHOUT_ROW || row.answers[i] == REFUSE_AS_IT_WAS ||
		row.owner || strcmp(row.version, try->version))
		return OUTCOME_REFUSED;
	snprintf(row.version, sizeof row.version, "%s", try->next);
	return row.answers[i] == LOSE_AFTER ? OUTCOME_LOST : OUTCOME_OK;
}

static const char *own_row_version(void *arg, const struct item *seen,
	char ret_why[static LEASE_TEXT_MAX], char ret_owner[static LEASE_TEXT_MAX])
{
	const bool is_gone = row.answers[row.tries - 1] == REFUSE_WITHOUT_ROW;
	if (!row.owner && !is_gone)
		return row.version;
	snprintf(ret_why, LEASE_TEXT_MAX, is_gone ? "its row is gone" : "another has it");
	snprintf(ret_owner, LEASE_TEXT_MAX, "%s", is_gone ? "" : row.owner);
	return NULL;
}

static void tell(void *arg, enum lease_event event, const char *text, const char *owner)
{
	row.lost += event == LEASE_LOST;
}

static const struct lease_ops ops = {
	.renew = renew, .row_version = own_row_version, .on_event = tell};
static struct lease_keeper *keeper;

static struct lease *begin(const struct row *as, uint64_t sent_ns)
{
	const struct lease_options options = {
		.ops = &ops, .lease_ns = LEASE_NS, .suspect_ns = LEASE_NS / 4};
	struct lease *lease = NULL;
	row = *as;
	snprintf(row.version, sizeof row.version, "first");
	if (lease_new(keeper, &options, &lease) || lease_start(lease, "first", sent_ns))
		abort();
	return lease;
}

static enum outcome renew_now(struct lease *lease)
{
	struct problem problem = {0};
	return lease_renew(lease, NULL, NULL, 0, &problem);
}

static void test_renewed(void)
{
	const uint64_t sent_ns = clock_boot_ns();
	struct lease *lease = begin(&(struct row){0}, sent_ns);
	CHECK_INT(lease_ends_ns(lease), sent_ns + LEASE_NS);
	const uint64_t before_ns = clock_boot_ns();
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK(lease_ends_ns(lease) >= before_ns + LEASE_NS);
	CHECK(lease_ends_ns(lease) <= clock_boot_ns() + LEASE_NS);
	CHECK_INT(row.tries, 1);
	CHECK(strcmp(row.version, "first") != 0);
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK(strcmp(row.sent[0], row.sent[1]) != 0);
	lease_free(lease);
}

/* Others count from when they see the row, which may be long before the reply is here. */
static void test_counted_from_before_it_is_sent(void)
{
	struct lease *lease = begin(&(struct row){.took_ns = 2 * NS_PER_MS}, clock_boot_ns());
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK(lease_ends_ns(lease) <= row.arrived_ns + LEASE_NS);
	lease_free(lease);
	/* The second try of a change whose first reply was lost finds it applied. */
	lease = begin(
		&(struct row){.answers = {LOSE_AFTER}, .took_ns = 2 * NS_PER_MS}, clock_boot_ns());
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_INT(row.tries, 2);
	CHECK(lease_ends_ns(lease) <= row.arrived_ns - row.took_ns + LEASE_NS);
	lease_free(lease);
}

/* The same change is sent until it is known what became of it. */
static void test_lost_replies(void)
{
	struct lease *lease =
		begin(&(struct row){.answers = {LOSE_BEFORE, LOSE_AFTER}}, clock_boot_ns());
	const uint64_t before_ns = clock_boot_ns();
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_INT(row.tries, 3);
	CHECK_STRING(row.sent[1], row.sent[0]);
	CHECK_STRING(row.sent[2], row.sent[0]);
	CHECK_STRING(row.version, row.sent[0]);
	CHECK(lease_ends_ns(lease) >= before_ns + LEASE_NS);
	CHECK(!lease_is_lost(lease));
	CHECK_INT(row.lost, 0);
	lease_free(lease);
}

/* No answer is no loss: the lease ends when it did before. */
static void test_no_answer(void)
{
	const uint64_t sent_ns = clock_boot_ns();
	struct lease *lease =
		begin(&(struct row){.answers = {LOSE_BEFORE, LOSE_BEFORE, LOSE_BEFORE}}, sent_ns);
	CHECK_INT(renew_now(lease), OUTCOME_LOST);
	CHECK_INT(lease_ends_ns(lease), sent_ns + LEASE_NS);
	CHECK(!lease_is_lost(lease));
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_STRING(row.sent[3], row.sent[0]);
	lease_free(lease);
}

/* A change that others are to see is sent with a version of its own: the one before may be there
 * without it. */
static void test_changes_after_a_lost_reply(void)
{
	const struct change change = {.name = "data"};
	const struct lease_more more = {.changes = &change, .n_changes = 1};
	struct problem problem = {0};
	struct lease *lease = begin(&(struct row){.answers = {LOSE_AFTER}}, clock_boot_ns());
	CHECK_INT(lease_renew(lease, NULL, &more, 0, &problem), OUTCOME_OK);
	CHECK_INT(row.tries, 3);
	CHECK_INT(row.changes[0], 1);
	CHECK_INT(row.changes[1], 0);
	CHECK_INT(row.changes[2], 1);
	CHECK_STRING(row.sent[1], row.sent[0]);
	CHECK(strcmp(row.sent[2], row.sent[0]) != 0);
	lease_free(lease);
}

/* A row that has our last version is ours, whatever it has refused a moment ago. */
static void test_refused_by_our_own_row(void)
{
	struct lease *lease = begin(&(struct row){.answers = {REFUSE_AS_IT_WAS}}, clock_boot_ns());
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_INT(row.tries, 2);
	CHECK(!lease_is_lost(lease));
	lease_free(lease);
}

/* A store that is slow gets more time with each failure, and no more than at first once it has
 * answered fast. */
static void test_patience_grows(void)
{
	static const unsigned shares[] = {10, 10, 4, 4, 2, 2, 10};
	struct lease *lease = begin(&(struct row){.answers = {LOSE_BEFORE, LOSE_BEFORE, LOSE_BEFORE,
							  LOSE_BEFORE, LOSE_BEFORE}},
		clock_boot_ns());
	for (unsigned i = 0; i < 3; i++) /* three tries each, until one succeeds */
		renew_now(lease);
	CHECK_INT(row.tries, 7);
	for (unsigned i = 0; i < 7; i++) {
		CHECK(row.patience_ns[i] <= LEASE_NS / shares[i]);
		CHECK(row.patience_ns[i] > LEASE_NS / shares[i] - LEASE_NS / 20);
	}
	lease_free(lease);
}

/* While a store answers, but slowly, heartbeats keep the longer time limit. */
static void test_patience_stays_with_a_slow_store(void)
{
	const uint64_t lease_ns = 10 * NS_PER_S; /* a tenth of it is less than LATE_NS */
	const struct lease_more more = {.lease_ns = lease_ns};
	static const unsigned shares[] = {10, 10, 4, 4, 10};
	struct problem problem = {0};
	struct lease *lease = begin(
		&(struct row){.answers = {ANSWER, LOSE_BEFORE, LOSE_BEFORE, ANSWER_LATE, ANSWER}},
		clock_boot_ns());
	CHECK_INT(lease_renew(lease, NULL, &more, 0, &problem), OUTCOME_OK);
	for (unsigned i = 0; i < 3;
		i++) /* the first of these is the two lost tries and the late answer */
		CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_INT(row.tries, 6);
	for (unsigned i = 0; i < 5; i++) {
		CHECK(row.patience_ns[i + 1] <= lease_ns / shares[i]);
		CHECK(row.patience_ns[i + 1] > lease_ns / shares[i] - lease_ns / 20);
	}
	lease_free(lease);
}

static void test_taken_by_another(void)
{
	struct lease *lease = begin(&(struct row){.owner = "other host"}, clock_boot_ns());
	CHECK_INT(renew_now(lease), OUTCOME_REFUSED);
	CHECK(lease_is_lost(lease));
	CHECK_STRING(lease_loss(lease), "another has it");
	CHECK_STRING(lease_new_owner(lease), "other host");
	CHECK_INT(row.lost, 1);
	row.owner = NULL; /* what is lost stays lost */
	CHECK_INT(renew_now(lease), OUTCOME_REFUSED);
	CHECK_INT(row.tries, 1);
	CHECK(!lease_await(lease, 1, NULL, NULL));
	lease_free(lease);
}

static bool at_once(void *arg)
{
	return true;
}

/* Before something begins, as much of the lease has to be left as it needs. */
static void test_enough_is_left(void)
{
	struct lease *lease = begin(&(struct row){0}, clock_boot_ns() - LEASE_NS / 4);
	CHECK(lease_await(lease, LEASE_NS / 2, at_once, NULL));
	lease_free(lease);
	lease = begin(&(struct row){0}, clock_boot_ns() - LEASE_NS * 3 / 4);
	CHECK(!lease_await(lease, LEASE_NS / 2, at_once, NULL));
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK(lease_await(lease, LEASE_NS / 2, at_once, NULL));
	lease_free(lease);
}

static void test_row_gone(void)
{
	struct lease *lease =
		begin(&(struct row){.answers = {REFUSE_WITHOUT_ROW}}, clock_boot_ns());
	CHECK_INT(renew_now(lease), OUTCOME_REFUSED);
	CHECK_STRING(lease_loss(lease), "its row is gone");
	lease_free(lease);
}

/* A longer lease counts once a renewal with it has got through, from when that was sent. */
static void test_longer(void)
{
	const struct lease_more more = {.lease_ns = 2 * LEASE_NS};
	struct problem problem = {0};
	struct lease *lease = begin(&(struct row){0}, clock_boot_ns());
	CHECK_INT(lease_renew(lease, NULL, &more, 0, &problem), OUTCOME_OK);
	CHECK_INT(row.lease_ns[0], 2 * LEASE_NS);
	CHECK_INT(lease_length_ns(lease), 2 * LEASE_NS);
	CHECK(lease_ends_ns(lease) > clock_boot_ns() + LEASE_NS * 3 / 2);
	CHECK(lease_ends_ns(lease) <= row.arrived_ns + 2 * LEASE_NS);
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK_INT(row.lease_ns[1], 2 * LEASE_NS);
	lease_free(lease);
	lease = begin(
		&(struct row){.answers = {LOSE_BEFORE, LOSE_BEFORE, LOSE_BEFORE}}, clock_boot_ns());
	CHECK_INT(lease_renew(lease, NULL, &more, 0, &problem), OUTCOME_LOST);
	CHECK_INT(lease_length_ns(lease), LEASE_NS);
	CHECK(lease_ends_ns(lease) <= clock_boot_ns() + LEASE_NS);
	lease_free(lease);
}

/* The caller may have less time than a heartbeat usually gets. */
static void test_until(void)
{
	struct problem problem = {0};
	struct lease *lease = begin(&(struct row){0}, clock_boot_ns());
	const uint64_t now_ns = clock_boot_ns();
	CHECK_INT(lease_renew(lease, NULL, NULL, now_ns + NS_PER_S, &problem), OUTCOME_OK);
	CHECK(row.patience_ns[0] <= NS_PER_S);
	CHECK_INT(lease_renew(lease, NULL, NULL, now_ns + LEASE_NS, &problem), OUTCOME_OK);
	CHECK(row.patience_ns[1] <= LEASE_NS / 10);
	lease_free(lease);
}

/* Half a second at least, but never more than half of a short lease. */
static void test_patience_with_short_leases(void)
{
	static const struct {
		uint64_t lease_ms, patience_ms;
	} cases[] = {{20000, 2000}, {4000, 500}, {800, 400}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct lease_options options = {
			.ops = &ops, .lease_ns = cases[i].lease_ms * NS_PER_MS};
		struct lease *lease;
		row = (struct row){.version = "first"};
		if (lease_new(keeper, &options, &lease) ||
			lease_start(lease, "first", clock_boot_ns()))
			abort();
		CHECK_INT(renew_now(lease), OUTCOME_OK);
		CHECK(row.patience_ns[0] <= cases[i].patience_ms * NS_PER_MS);
		CHECK(row.patience_ns[0] > cases[i].patience_ms * NS_PER_MS / 2);
		lease_free(lease);
	}
}

/* The caller that releases the row needs both versions that it may have. */
static void test_versions(void)
{
	const char *pending;
	struct lease *lease = begin(
		&(struct row){.answers = {LOSE_AFTER, LOSE_BEFORE, LOSE_BEFORE}}, clock_boot_ns());
	CHECK_STRING(lease_row_version(lease, &pending), "first");
	CHECK_STRING(pending, "");
	renew_now(lease);
	lease_stop(lease);
	CHECK_STRING(lease_row_version(lease, &pending), "first");
	CHECK_STRING(pending, row.sent[0]);
	lease_free(lease);
	struct lease_options options = {.ops = &ops, .id = "id", .lease_ns = LEASE_NS};
	char version[LEASE_VERSION_MAX], again[LEASE_VERSION_MAX];
	if (lease_new(keeper, &options, &lease))
		abort();
	lease_version(lease, version);
	lease_version(lease, again);
	CHECK(strncmp(version, "id.", 3) == 0 && strlen(version) > 10);
	CHECK(strcmp(version, again) != 0);
	lease_free(lease);
	options.version_is_fixed = true;
	if (lease_new(keeper, &options, &lease))
		abort();
	lease_version(lease, version);
	CHECK_STRING(version, "id");
	lease_free(lease);
}

/* It is not known when the row was written: nothing is left of the lease before it is renewed. */
static void test_lease_of_unknown_age(void)
{
	struct lease *lease = begin(&(struct row){0}, 0);
	CHECK_INT(lease_ends_ns(lease), 0);
	CHECK(!lease_await(lease, 1, at_once, NULL));
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	CHECK(lease_ends_ns(lease) > clock_boot_ns());
	lease_free(lease);
}

static void test_stopped(void)
{
	struct lease *lease = begin(&(struct row){0}, clock_boot_ns());
	lease_stop(lease);
	lease_stop(lease);
	CHECK_INT(renew_now(lease), OUTCOME_REFUSED);
	CHECK_INT(row.tries, 0);
	CHECK(!lease_is_lost(lease));
	lease_free(lease);
}

/* Leases of all lengths run out one after the other, whatever the order in which they began. */
#define MANY 20
static struct {
	uint64_t suspect_ns[MANY], expired_ns[MANY];
	atomic_uint expired;
} ended;

static void note_end(void *arg, enum lease_event event, const char *text, const char *owner)
{
	const size_t i = (size_t)((const char *)arg - (const char *)&ended);
	(event == LEASE_SUSPECT ? ended.suspect_ns : ended.expired_ns)[i] = clock_boot_ns();
	ended.expired += event == LEASE_EXPIRED;
}

static void test_each_ends_in_time(void)
{
	static const struct lease_ops noting = {
		.renew = renew, .row_version = own_row_version, .on_event = note_end};
	/* Long enough from now that all of them are known before the first one ends. */
	const uint64_t begin_ns = clock_boot_ns() + 2 * NS_PER_S;
	struct lease *leases[MANY];
	for (size_t i = 0; i < MANY; i++) {
		/* 7 and MANY have no common divisor, so that this is each length once. */
		const struct lease_options options = {.ops = &noting,
			.arg = (char *)&ended + i,
			.lease_ns = (50 + 10 * (7 * i % MANY)) * NS_PER_MS,
			.suspect_ns = 20 * NS_PER_MS};
		if (lease_new(keeper, &options, &leases[i]) ||
			lease_start(leases[i], "first", begin_ns))
			abort();
	}
	wait_until(ended.expired == MANY, .deadline_ns = begin_ns + 10 * NS_PER_S);
	CHECK_INT(ended.expired, MANY);
	for (size_t i = 0; i < MANY; i++) {
		const uint64_t ends_ns = lease_ends_ns(leases[i]);
		CHECK(ended.suspect_ns[i] >= ends_ns - 20 * NS_PER_MS);
		CHECK(ended.suspect_ns[i] <= ended.expired_ns[i]);
		CHECK(ended.expired_ns[i] >= ends_ns);
		for (size_t j = 0; j < MANY; j++)
			CHECK(ends_ns >= lease_ends_ns(leases[j]) ||
				ended.expired_ns[i] <= ended.expired_ns[j]);
	}
	for (size_t i = 0; i < MANY; i++)
		lease_free(leases[i]);
}

/* A lease that was renewed after its end ends once more. */
static void test_ends_twice(void)
{
	static const struct lease_ops noting = {
		.renew = renew, .row_version = own_row_version, .on_event = note_end};
	const struct lease_options options = {
		.ops = &noting, .arg = &ended, .lease_ns = 100 * NS_PER_MS};
	const uint64_t sent_ns = clock_boot_ns() - options.lease_ns;
	struct lease *lease;
	row = (struct row){.version = "first"};
	ended.expired = 0;
	if (lease_new(keeper, &options, &lease) || lease_start(lease, "first", sent_ns))
		abort();
	wait_until(ended.expired == 1, .deadline_ns = sent_ns + 60 * NS_PER_S);
	CHECK_INT(renew_now(lease), OUTCOME_OK);
	wait_until(ended.expired == 2, .deadline_ns = sent_ns + 60 * NS_PER_S);
	CHECK_INT(ended.expired, 2);
	lease_free(lease);
}

static struct {
	atomic_uint n, outages;
	uint64_t at_ns[4];
} beats;

static void count_outages(void *arg, enum lease_event event, const char *text, const char *owner)
{
	beats.outages += event == LEASE_OUTAGE;
}

static enum outcome fail_first(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const unsigned n = atomic_load(&beats.n);
	if (n < 4)
		beats.at_ns[n] = clock_boot_ns();
	atomic_fetch_add(&beats.n, 1);
	problem_set(ret_problem, "no answer");
	return n < 2 ? OUTCOME_TRANSIENT : OUTCOME_OK;
}

/* A heartbeat that has failed is sent again long before the next one would be due, so that there
 * are several in a lease. */
static void test_heartbeats_that_fail(void)
{
	enum { PERIOD_S = 4 };
	static const struct lease_ops failing = {
		.renew = fail_first, .row_version = own_row_version, .on_event = count_outages};
	const struct lease_options options = {
		.ops = &failing, .lease_ns = LEASE_NS, .heartbeat_ns = PERIOD_S * NS_PER_S};
	struct store *store;
	struct lease_keeper *beating;
	struct lease *lease;
	struct problem problem;
	const uint64_t sent_ns = clock_boot_ns() - PERIOD_S * NS_PER_S; /* the first one is due */
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) ||
		lease_keeper_new(store, 1, &beating) || lease_new(beating, &options, &lease) ||
		lease_start(lease, "first", sent_ns))
		abort();
	wait_until(atomic_load(&beats.n) >= 3, .deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
	for (size_t i = 0; i < 2; i++) {
		const uint64_t ns = beats.at_ns[i + 1] - beats.at_ns[i];
		CHECK(ns >= PERIOD_S * NS_PER_S / 8);
		CHECK(ns < PERIOD_S * NS_PER_S);
	}
	wait_until(lease_ends_ns(lease) > sent_ns + LEASE_NS,
		.deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
	CHECK(lease_ends_ns(lease) > sent_ns + LEASE_NS);
	CHECK(lease_ends_ns(lease) <= beats.at_ns[2] + LEASE_NS);
	CHECK_INT(beats.outages, 1); /* after the second one */
	lease_free(lease);
	lease_keeper_free(beating);
	store_close(store);
}

#define SLOW_PERIOD_NS (200 * NS_PER_MS)
#define SLOW_ANSWER_NS (100 * NS_PER_MS)

static struct {
	atomic_uint n;
	uint64_t at_ns[6];
} slow;

static enum outcome answer_slowly(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const uint64_t now_ns = clock_boot_ns();
	wait_until(false, .deadline_ns = now_ns + SLOW_ANSWER_NS);
	if (slow.n < 6)
		slow.at_ns[slow.n++] = now_ns;
	return OUTCOME_OK;
}

/* The time of an answer is no part of the period: the next heartbeat is due a period after the last
 * one was sent. */
static void test_heartbeats_with_slow_answers(void)
{
	static const struct lease_ops slowly = {
		.renew = answer_slowly, .row_version = own_row_version};
	const struct lease_options options = {
		.ops = &slowly, .lease_ns = LEASE_NS, .heartbeat_ns = SLOW_PERIOD_NS};
	struct store *store;
	struct lease_keeper *beating;
	struct lease *lease;
	struct problem problem;
	uint64_t least_ns = UINT64_MAX;
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) ||
		lease_keeper_new(store, 1, &beating) || lease_new(beating, &options, &lease) ||
		lease_start(lease, "first", clock_boot_ns()))
		abort();
	wait_until(slow.n == 6, .deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
	lease_free(lease);
	for (size_t i = 1; i < slow.n; i++)
		if (slow.at_ns[i] - slow.at_ns[i - 1] < least_ns)
			least_ns = slow.at_ns[i] - slow.at_ns[i - 1];
	CHECK(least_ns < SLOW_PERIOD_NS + SLOW_ANSWER_NS);
	lease_keeper_free(beating);
	store_close(store);
}

static struct {
	atomic_uint n;
	uint64_t at_ns[2];
} refusals;

static int refuse_conn(struct store *store, struct store_conn **ret)
{
	const unsigned n = atomic_load(&refusals.n);
	if (n < 2)
		refusals.at_ns[n] = clock_boot_ns();
	atomic_fetch_add(&refusals.n, 1);
	return -ENOMEM;
}

/* A heartbeat for which there is no connection has failed like any other. */
static void test_heartbeats_without_connection(void)
{
	static const struct store_ops ops_without = {.conn_new = refuse_conn};
	static const struct lease_ops counting = {
		.renew = renew, .row_version = own_row_version, .on_event = count_outages};
	const struct lease_options options = {
		.ops = &counting, .lease_ns = LEASE_NS, .heartbeat_ns = NS_PER_S};
	struct store without = {.ops = &ops_without};
	struct lease_keeper *beating;
	struct lease *lease;
	beats.outages = 0;
	if (lease_keeper_new(&without, 1, &beating) || lease_new(beating, &options, &lease) ||
		lease_start(lease, "first", clock_boot_ns() - NS_PER_S)) /* one is due */
		abort();
	wait_until(beats.outages, .deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
	lease_free(lease);
	CHECK(refusals.at_ns[1] - refusals.at_ns[0] >= NS_PER_S / 8);
	CHECK_INT(beats.outages, 1);
	lease_keeper_free(beating);
}

/* The answers to heartbeats in turn, O for OK, T for an error and R for a row that is another's,
 * and the events of their leases. */
static struct {
	const char *answers;
	atomic_uint n, n_events;
	char events[32];
} turns;

static enum outcome answer_in_turn(void *arg, struct store_conn *conn, const struct lease_try *try,
	struct item *ret_row, struct problem *ret_problem)
{
	const unsigned n = atomic_fetch_add(&turns.n, 1);
	const char answer = n < strlen(turns.answers) ? turns.answers[n] : 'O';
	problem_set(ret_problem, "no answer");
	return answer == 'T' ? OUTCOME_TRANSIENT : answer == 'R' ? OUTCOME_REFUSED : OUTCOME_OK;
}

static const char *other_row_version(void *arg, const struct item *seen,
	char ret_why[static LEASE_TEXT_MAX], char ret_owner[static LEASE_TEXT_MAX])
{
	snprintf(ret_why, LEASE_TEXT_MAX, "another has it");
	return NULL;
}

static void note_event(void *arg, enum lease_event event, const char *text, const char *owner)
{
	static const char letters[] = {[LEASE_SUSPECT] = 's',
		[LEASE_RECOVERED] = 'r',
		[LEASE_LOST] = 'l',
		[LEASE_EXPIRED] = 'e',
		[LEASE_OUTAGE] = 'o'};
	const size_t n = strlen(turns.events);
	CHECK(*text && !*owner);
	if (n < sizeof turns.events - 1)
		turns.events[n] = letters[event];
	turns.n_events++;
}

static const struct lease_ops in_turn = {
	.renew = answer_in_turn, .row_version = other_row_version, .on_event = note_event};

/* Two failures in a row, of any leases of the keeper, are an outage. It is reported once, and again
 * only after a heartbeat has got through. One that is refused has got through as well. */
static void test_outages(void)
{
	static const struct {
		const char *answers, *events;
	} rows[] = {
		{"TOTOTO", ""},
		{"TTTTO", "o"},
		{"TTOTTO", "oo"},
		{"TTTOTOTTTO", "oo"},
		{"TRTO", "l"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct lease_options options = {
			.ops = &in_turn, .lease_ns = LEASE_NS, .heartbeat_ns = 24 * NS_PER_MS};
		struct store *store;
		struct lease_keeper *beating;
		struct lease *leases[2];
		struct problem problem;
		memset(&turns, 0, sizeof turns);
		turns.answers = rows[i].answers;
		if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) ||
			lease_keeper_new(store, 1, &beating))
			abort();
		for (size_t k = 0; k < 2; k++)
			if (lease_new(beating, &options, &leases[k]) ||
				lease_start(leases[k], "first", clock_boot_ns()))
				abort();
		wait_until(atomic_load(&turns.n) > strlen(rows[i].answers),
			.deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
		for (size_t k = 0; k < 2; k++)
			lease_free(leases[k]);
		if (!CHECK_STRING(turns.events, rows[i].events))
			fprintf(stderr, "\trow %zu\n", i);
		lease_keeper_free(beating);
		store_close(store);
	}
}

/* A lease recovers once, whether it was suspect or had run out, and a stopped one says nothing. */
static void test_recovers(void)
{
	const struct lease_options options = {
		.ops = &in_turn, .lease_ns = LEASE_NS, .suspect_ns = LEASE_NS / 4};
	for (int has_expired = 0; has_expired < 2; has_expired++) {
		const uint64_t age_ns = has_expired ? LEASE_NS : LEASE_NS * 7 / 8;
		const char *ends = has_expired ? "se" : "s", *recovers = has_expired ? "ser" : "sr";
		struct lease *lease;
		memset(&turns, 0, sizeof turns);
		turns.answers = "TTTOO";
		if (lease_new(keeper, &options, &lease) ||
			lease_start(lease, "first", clock_boot_ns() - age_ns))
			abort();
		wait_until(turns.n_events == strlen(ends),
			.deadline_ns = clock_boot_ns() + 20 * NS_PER_S);
		CHECK_STRING(turns.events, ends);
		CHECK_INT(renew_now(lease), OUTCOME_TRANSIENT); /* three tries */
		CHECK_STRING(turns.events, ends);
		CHECK_INT(renew_now(lease), OUTCOME_OK);
		CHECK_STRING(turns.events, recovers);
		CHECK_INT(renew_now(lease), OUTCOME_OK);
		CHECK_STRING(turns.events, recovers);
		CHECK_INT(turns.n, 5);
		lease_free(lease);
	}
	struct lease *lease;
	memset(&turns, 0, sizeof turns);
	turns.answers = "";
	if (lease_new(keeper, &options, &lease) ||
		lease_start(lease, "first", clock_boot_ns() - LEASE_NS * 5 / 8))
		abort();
	lease_stop(lease);
	CHECK_STRING(turns.events, "");
	lease_free(lease);
}

static size_t count_threads(void)
{
	size_t n = 0;
	DIR *folder = opendir("/proc/self/task");
	for (const struct dirent *entry; folder && (entry = readdir(folder));)
		n += *entry->d_name != '.';
	closedir(folder);
	return n;
}

/* A row of unknown age gets no heartbeat before it was renewed, and gets them from then on. One
 * lease needs one worker, or two if its first heartbeat is due before the first one waits. */
static void test_heartbeats_of_unknown_age(void)
{
	const struct lease_options options = {
		.ops = &in_turn, .lease_ns = LEASE_NS, .heartbeat_ns = 10 * NS_PER_MS};
	struct store *store;
	struct lease_keeper *beating;
	struct lease *lease;
	struct problem problem;
	const size_t threads = count_threads();
	memset(&turns, 0, sizeof turns);
	turns.answers = "";
	if (store_sqlite_open(STORE_SQLITE_NOWHERE, STORE_WRITTEN, &store, &problem) ||
		lease_keeper_new(store, 8, &beating) || lease_new(beating, &options, &lease) ||
		lease_start(lease, "first", 0))
		abort();
	wait_until(atomic_load(&turns.n), .deadline_ns = clock_boot_ns() + 100 * NS_PER_MS);
	CHECK_INT(turns.n, 0);
	CHECK_INT(lease_renew(lease, NULL, NULL, 0, &problem), OUTCOME_OK);
	wait_until(turns.n > 10, .deadline_ns = clock_boot_ns() + 60 * NS_PER_S);
	CHECK(turns.n > 10);
	CHECK(count_threads() <= threads + 3); /* with the one that watches when they are due */
	CHECK_STRING(turns.events, "");
	lease_free(lease);
	lease_keeper_free(beating);
	store_close(store);
}

int main(void)
{
	if (lease_keeper_new(NULL, 1, &keeper))
		return 1;
	test_renewed();
	test_counted_from_before_it_is_sent();
	test_lost_replies();
	test_no_answer();
	test_changes_after_a_lost_reply();
	test_refused_by_our_own_row();
	test_patience_grows();
	test_patience_stays_with_a_slow_store();
	test_taken_by_another();
	test_enough_is_left();
	test_row_gone();
	test_longer();
	test_until();
	test_patience_with_short_leases();
	test_versions();
	test_lease_of_unknown_age();
	test_stopped();
	test_each_ends_in_time();
	test_ends_twice();
	test_heartbeats_that_fail();
	test_heartbeats_with_slow_answers();
	test_heartbeats_without_connection();
	test_outages();
	test_recovers();
	test_heartbeats_of_unknown_age();
	lease_keeper_free(keeper);
	return check_result();
}
