/* Finds out whether a bucket honours the conditions of writes, before the first write to it. Each
 * condition is tried by one writer, and then by several at the same time. The result is kept in an
 * item beside the locks, (STORE, CONDITIONS), so that each bucket is tried once. AWS is not tried:
 * its documentation promises that only one of several writers wins. */
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "store/item_json.h"
#include "store/race.h"
#include "store/s3_store.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STORE      "store"
#define CONDITIONS "conditions"
#define PROBES     "probe" /* the partition of the probe's objects */
/* The lifetime of the result. A server may be upgraded, or its name may point to a different
 * one. */
#define HOLDS_FOR_S (30 * 24 * 3600)
#define TRY_NS      (300 * NS_PER_S)
#define TIDY_NS     (10 * NS_PER_S)
#define ATTEMPTS    3
/* The most objects of a trial: one for the single writer, and one for each round of both races. */
#define OBJECTS_MAX (1 + 2 * RACE_ROUNDS)

static const struct item_key kept_key = {STORE, CONDITIONS};

/* The trial of a bucket. */
struct trial {
	struct s3_store_conn *conn;
	struct call_limits limits;
	char id[ID_CHARS + 1];
	struct object_name names[OBJECTS_MAX]; /* objects that may exist, to be removed */
	unsigned n;
	bool is_race;               /* several writers at once */
	bool replaces;              /* the race is about If-Match, otherwise about If-None-Match */
	char etag[S3_ETAG_MAX + 1]; /* etag of the object to be replaced */
};

/* Makes the name of the next object of the trial: names[n - 1] from now on. */
static enum outcome name_next_object(struct trial *trial, struct problem *ret_problem)
{
	char sk[ID_CHARS + 16];
	snprintf(sk, sizeof sk, "%s-%u", trial->id, trial->n);
	const enum outcome o = s3_store_name(trial->conn->s3_store, (struct item_key){PROBES, sk},
		&trial->names[trial->n], ret_problem);
	trial->n += o == OUTCOME_OK;
	return o;
}

/* Puts content that is unique within the trial, since an etag changes only with the content. An
 * etag of NULL means If-None-Match. */
static enum outcome put_probe(const struct trial *trial, struct s3_store_conn *conn,
	const char *etag, const char *who, unsigned number, char *ret_etag,
	struct problem *ret_problem)
{
	struct s3_object object;
	const char *name = trial->names[trial->n - 1].text;
	const struct s3_condition condition = {.if_none_match = !etag, .if_match = etag};
	text_reset(&conn->body);
	text_addf(&conn->body, "%s %u of %s tries out conditions\n", who, number, trial->id);
	bool maybe_applied = false;
	struct call_limits limits = trial->limits;
	limits.maybe_applied = &maybe_applied;
	const enum outcome o = s3_store_put(conn, name, condition, &limits, &object, ret_problem);
	/* An earlier try of ours may have caused the refusal, so it is inconclusive. In a race this
	 * shows by itself, since no writer wins then. */
	if (o == OUTCOME_REFUSED && maybe_applied && !trial->is_race)
		return OUTCOME_TRANSIENT;
	if (o == OUTCOME_OK && ret_etag)
		snprintf(ret_etag, S3_ETAG_MAX + 1, "%s", object.etag);
	/* The object is gone, or changed at this moment: the put counts as refused. */
	return (o == OUTCOME_ABSENT || o == OUTCOME_CONFLICT) ? OUTCOME_REFUSED : o;
}

static enum outcome prepare_round(void *arg, unsigned round, struct problem *ret_problem)
{
	struct trial *trial = arg;
	enum outcome o = name_next_object(trial, ret_problem);
	if (o == OUTCOME_OK && trial->replaces)
		o = put_probe(trial, trial->conn, NULL, "round", round, trial->etag, ret_problem);
	return o;
}

static enum outcome write_round(void *arg, struct racer *racer, struct problem *ret_problem)
{
	const struct trial *trial = arg;
	racer_await_start(racer);
	return put_probe(trial, (struct s3_store_conn *)racer->store,
		trial->replaces ? trial->etag : NULL, "writer", racer->number, NULL, ret_problem);
}

/* Sets a sentence about the fault of the server, and an alternative. */
static enum outcome blame_server(const struct trial *trial, struct problem *ret_problem,
	const char *format, ...) __attribute__((format(printf, 3, 4)));
static enum outcome blame_server(
	const struct trial *trial, struct problem *ret_problem, const char *format, ...)
{
	char wrong[200];
	const char *name = s3_server(trial->conn->s3_store->s3);
	va_list ap;
	va_start(ap, format);
	vsnprintf(wrong, sizeof wrong, format, ap);
	va_end(ap);
	return outcome_error(ret_problem, OUTCOME_SETUP,
		"the server of s3://%s%s%s%s %s, so two hosts could hold one lock at once: keep the "
		"locks in dynamodb:TABLE, or in a bucket of a service that honours conditional "
		"writes (docs/services.md)",
		trial->conn->s3_store->bucket, *name ? " (" : "", quote(name).text,
		*name ? ")" : "", wrong);
}

/* Judges the outcome of a put whose condition is not met. Returns OK if the put was refused, as it
 * has to be. If it was applied, or if the server does not support the header, returns SETUP with a
 * sentence that blames the server. Returns any other outcome as it is. */
static enum outcome expect_refusal(
	const struct trial *trial, enum outcome o, const char *header, struct problem *ret_problem)
{
	if (o == OUTCOME_REFUSED)
		return OUTCOME_OK;
	if (o != OUTCOME_OK && o != OUTCOME_UNSUPPORTED)
		return o;
	return blame_server(
		trial, ret_problem, "%s %s", o == OUTCOME_OK ? "ignores" : "refuses", header);
}

enum race_of { RACE_OF_NEW, RACE_OF_REPLACEMENTS };

/* Runs a race of several writers, each of which makes or replaces the same object. */
static enum outcome try_race(struct trial *trial, enum race_of race_of, struct problem *ret_problem)
{
	const bool replaces = race_of == RACE_OF_REPLACEMENTS;
	const char *header = replaces ? "If-Match" : "If-None-Match";
	const struct race race = {.store = &trial->conn->s3_store->store,
		.prepare = prepare_round,
		.write = write_round,
		.arg = trial};
	trial->is_race = true;
	trial->replaces = replaces;
	const unsigned winners = race_run(&race, ret_problem);
	if (winners == 1)
		return OUTCOME_OK;
	if (!winners) {
		problem_prefix(ret_problem,
			"it could not be tried out whether s3://%s honours %s: try again",
			trial->conn->s3_store->bucket, header);
		return OUTCOME_TRANSIENT;
	}
	return blame_server(trial, ret_problem,
		"honours %s only when one writes after another (of %u that wrote at once, %u were told "
		"that they had won)",
		header, RACE_WRITERS, winners);
}

/* Tries both conditions by one writer. Learns whether etags have quotes in If-Match. */
static enum outcome try_alone(struct trial *trial, struct problem *ret_problem)
{
	struct s3_store_conn *conn = trial->conn;
	struct s3 *s3 = conn->s3_store->s3;
	char first[S3_ETAG_MAX + 1] = "";
	/* The object does not exist yet, so the server must accept this first PUT. */
	enum outcome o = name_next_object(trial, ret_problem);
	if (o == OUTCOME_OK)
		o = put_probe(trial, conn, NULL, "put", 1, first, ret_problem);
	if (o == OUTCOME_UNSUPPORTED) /* the server refuses the header itself */
		return expect_refusal(trial, o, "If-None-Match", ret_problem);
	if (o != OUTCOME_OK) /* no other client knows the name, so REFUSED proves nothing */
		return o == OUTCOME_REFUSED ? OUTCOME_TRANSIENT : o;
	/* It exists now, so the server must refuse another PUT that is to create it. */
	o = expect_refusal(trial, put_probe(trial, conn, NULL, "put", 2, NULL, ret_problem),
		"If-None-Match", ret_problem);
	if (o != OUTCOME_OK)
		return o;
	/* It has this etag, so the server must accept a PUT that replaces it. A server that refuses
	 * may want the etag without quotes. */
	o = put_probe(trial, conn, first, "put", 3, NULL, ret_problem);
	if (o == OUTCOME_REFUSED) {
		s3_set_support(s3, S3_IF_MATCH_QUOTES, S3_NO);
		o = put_probe(trial, conn, first, "put", 3, NULL, ret_problem);
	}
	if (o == OUTCOME_REFUSED)
		o = OUTCOME_UNSUPPORTED;
	if (o == OUTCOME_UNSUPPORTED)
		return expect_refusal(trial, o, "If-Match", ret_problem);
	if (o != OUTCOME_OK)
		return o;
	/* By now it has another etag, so the server must refuse to replace it. */
	return expect_refusal(trial, put_probe(trial, conn, first, "put", 4, NULL, ret_problem),
		"If-Match", ret_problem);
}

/* Tries out the bucket, and removes the objects, whatever the result. The trial has its own time,
 * since it takes many requests. */
static enum outcome try_conditions(
	struct s3_store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	struct trial trial = {.conn = conn, .limits = limits ? *limits : no_limits};
	trial.limits.deadline_ns = clock_boot_ns() + TRY_NS;
	trial.limits.attempts = ATTEMPTS;
	struct problem ignored;
	random_id(trial.id);
	enum outcome o = try_alone(&trial, ret_problem);
	if (o == OUTCOME_OK)
		o = try_race(&trial, RACE_OF_NEW, ret_problem);
	if (o == OUTCOME_OK)
		o = try_race(&trial, RACE_OF_REPLACEMENTS, ret_problem);
	const struct call_limits tidy = {
		.deadline_ns = clock_boot_ns() + TIDY_NS, .attempts = ATTEMPTS};
	for (unsigned i = 0; i < trial.n; i++)
		s3_delete_object(conn->s3, trial.names[i].text, &tidy, &ignored);
	return o;
}

/* Whether the item says that this server honours conditions. Learns how it compares etags. */
static bool load_result(struct s3 *s3, const struct item *item)
{
	const char *server = item_string(item, "server"), *etags = item_string(item, "etags");
	const int64_t now_s = service_time_s(s3_service(s3));
	int64_t at_s = 0;
	const bool is_whole = server && etags && !item_number(item, "at", &at_s);
	if (!is_whole || strcmp(server, s3_server(s3)) != 0)
		return false;
	if (now_s < at_s || now_s - at_s >= HOLDS_FOR_S)
		return false;
	s3_set_support(s3, S3_IF_MATCH_QUOTES, strcmp(etags, "bare") != 0 ? S3_YES : S3_NO);
	return true;
}

/* Saves the result. An error is no failure: the next client tries again. */
static void save_result(struct s3_store_conn *conn, const struct call_limits *limits)
{
	struct s3 *s3 = conn->s3_store->s3;
	struct s3_object object;
	struct object_name name;
	struct problem problem = {0};
	struct item item = {0};
	const bool is_bare = s3_supports(s3, S3_IF_MATCH_QUOTES) == S3_NO;
	text_reset(&conn->body);
	int error = item_set_string(&item, "server", s3_server(s3));
	if (!error)
		error = item_set_string(&item, "etags", is_bare ? "bare" : "quoted");
	if (!error)
		error = item_set_number(&item, "at", service_time_s(s3_service(s3)));
	if (!error)
		error = item_to_doc(&item, &conn->body);
	item_clear(&item);
	enum outcome o = error ? outcome_no_memory(&problem)
			       : s3_store_name(conn->s3_store, kept_key, &name, &problem);
	if (o == OUTCOME_OK)
		o = s3_store_put(
			conn, name.text, (struct s3_condition){0}, limits, &object, &problem);
	if (o != OUTCOME_OK)
		log_info("what was found out about s3://%s is not kept: %s", conn->s3_store->bucket,
			problem.text);
}

enum outcome s3_store_prepare(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_store_conn *own = (struct s3_store_conn *)conn;
	struct s3_store *store = own->s3_store;
	struct s3_store_row row = {0};
	if (s3_is_aws(store->s3) || atomic_load(&store->is_proven))
		return OUTCOME_OK;
	enum outcome o = s3_store_read(own, kept_key, limits, &row, ret_problem);
	const bool is_kept = o == OUTCOME_OK && load_result(store->s3, &row.item);
	s3_store_row_clear(&row);
	if (o == OUTCOME_OK && !is_kept) {
		o = try_conditions(own, limits, ret_problem);
		if (o == OUTCOME_OK)
			save_result(own, limits);
	}
	if (o == OUTCOME_OK)
		atomic_store(&store->is_proven, true);
	return o;
}
