/* The checks of the marks by `s3once doctor`: a table's shape and time to live, whether the table
 * keeps the conditions of writes, even with several concurrent writers, and whether marks can be
 * sent in batches.
 *
 * Two results are kept with the marks, for push: the way in which the table's server takes batches,
 * and the conditional requests (If-None-Match, If-Match) that the bucket honours. */
#include "base/clock.h"
#include "base/random.h"
#include "cli/doctor/doctor.h"
#include "cli/human_figures.h"
#include "marks/store_settings.h"
#include "store/dynamodb.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PROBE_LIVES_S (24 * 3600) /* for items that remove_item() could not remove */

/* A visitor that ignores the items, for reads that only have to succeed. It returns 0, so that they
 * continue. */
static int ignore_item(void *arg, const struct found_item *found)
{
	return 0;
}

/* Shared by the trials of operations on one item: the store, the item, and the number of
 * failures. */
struct tries {
	struct doctor *doctor;
	struct store_conn *conn;
	struct item_key key;
	unsigned failures;
};

/* Counts and reports an operation as failed unless it has the expected outcome: OK, or REFUSED if
 * its condition does not hold. */
static void check_outcome(struct tries *tries, const char *operation, enum outcome outcome,
	enum outcome wanted, const struct problem *problem)
{
	char permission[64];
	if (outcome == wanted)
		return;
	snprintf(permission, sizeof permission, "dynamodb:%s", operation);
	tries->failures++;
	if (outcome == OUTCOME_OK) /* REFUSED was wanted */
		doctor_report(tries->doctor, DOCTOR_FAILURE, "table access",
			"%s ignores its condition: two uploaders could claim the same file",
			operation);
	else
		doctor_report_error(tries->doctor, DOCTOR_FAILURE, "table access", permission,
			outcome, problem);
}

/* Claims an item for `owner`, in the two ways in which push claims a mark. If `seen` is NULL, the
 * item is put if it is absent. Otherwise it is updated if its owner is still `seen`. */
static enum outcome claim_item(struct store_conn *conn, struct item_key key, const char *seen,
	const char *owner, const struct call_limits *limits, struct problem *ret_problem)
{
	const struct condition as_seen = {
		"owner", seen ? CONDITION_EQUALS : CONDITION_ABSENT, VALUE_STRING, seen};
	const struct change change = {"owner", VALUE_STRING, owner, 0};
	struct item item = {0}, present = {0};
	struct item_write write = {.conditions = &as_seen, .n_conditions = 1};
	if (seen) {
		write.changes = &change;
		write.n_changes = 1;
	} else {
		item_set_string(&item, "owner", owner);
		item_set_number(&item, "expires", clock_wall_s() + PROBE_LIVES_S);
		write.item = &item;
	}
	const enum outcome outcome =
		conn->store->ops->write(conn, key, &write, limits, &present, ret_problem);
	item_clear(&present);
	item_clear(&item);
	return outcome;
}

/* Removes a probe item. A failure is not reported: push needs no permission to delete, and time to
 * live removes the item later. */
static void remove_item(struct doctor *doctor, struct store_conn *conn, struct item_key key)
{
	const struct call_limits tidy = doctor_tidy_limits(doctor);
	struct item present = {0};
	struct problem problem;
	conn->store->ops->write(
		conn, key, &(struct item_write){.removes = true}, &tidy, &present, &problem);
	item_clear(&present);
}

/* Tries each operation, even if another one has failed, since each has a permission of its own. If
 * the item cannot be put, only the operations that need it are skipped. */
static void try_operations(struct tries *tries)
{
	struct store_conn *conn = tries->conn;
	const struct store_ops *ops = conn->store->ops;
	const struct call_limits *limits = &tries->doctor->limits;
	const struct store_range range = {.pk = tries->key.pk};
	struct item item = {0};
	struct problem problem = {0};
	bool more; /* unused: whether the query has a next page */
	enum outcome o = claim_item(conn, tries->key, NULL, "doctor", limits, &problem);
	check_outcome(tries, "PutItem", o, OUTCOME_OK, &problem);
	if (o == OUTCOME_OK) { /* now that the item exists, neither condition is met */
		o = claim_item(conn, tries->key, NULL, "doctor", limits, &problem);
		check_outcome(tries, "PutItem", o, OUTCOME_REFUSED, &problem);
		o = claim_item(conn, tries->key, "nobody", "doctor", limits, &problem);
		check_outcome(tries, "UpdateItem", o, OUTCOME_REFUSED, &problem);
	}
	/* The item is absent if it could not be put. */
	o = ops->get(conn, tries->key, READ_CONSISTENT, limits, &item, &problem);
	item_clear(&item);
	check_outcome(tries, "GetItem", o == OUTCOME_ABSENT ? OUTCOME_OK : o, OUTCOME_OK, &problem);
	o = ops->get_many(conn, &tries->key, 1, limits, ignore_item, NULL, &problem);
	check_outcome(tries, "BatchGetItem", o, OUTCOME_OK, &problem);
	o = ops->query(conn, &range, limits, ignore_item, NULL, &more, &problem);
	check_outcome(tries, "Query", o, OUTCOME_OK, &problem);
}

/* The item that the writers of a round claim. Each round has an item of its own. */
struct claimed {
	const struct tries *tries;
	bool is_there; /* the item exists before they claim it, with the owner "nobody" */
	char sk[16];   /* its sort key; "": no round has begun */
};

/* Removes the item of the last round, if a round has begun. */
static void remove_claimed(const struct claimed *claimed)
{
	if (*claimed->sk)
		remove_item(claimed->tries->doctor, claimed->tries->conn,
			(struct item_key){claimed->tries->key.pk, claimed->sk});
}

/* The `prepare` of a race for a claim. It removes the previous round's item and chooses a new one.
 * If the claims are to update an existing item, it creates the new one, with the owner "nobody". */
static enum outcome prepare_claim(void *arg, unsigned round, struct problem *ret_problem)
{
	struct claimed *claimed = arg;
	const struct tries *tries = claimed->tries;
	remove_claimed(claimed);
	snprintf(claimed->sk, sizeof claimed->sk, "%s-%u", claimed->is_there ? "update" : "put",
		round);
	if (!claimed->is_there)
		return OUTCOME_OK;
	return claim_item(tries->conn, (struct item_key){tries->key.pk, claimed->sk}, NULL,
		"nobody", &tries->doctor->limits, ret_problem);
}

/* The `write` of a race for a claim: puts the item if it is absent, or updates it if its owner is
 * still "nobody". */
static enum outcome claim(void *arg, struct racer *racer, struct problem *ret_problem)
{
	const struct claimed *claimed = arg;
	const struct item_key key = {claimed->tries->key.pk, claimed->sk};
	char owner[32];
	snprintf(owner, sizeof owner, "writer %u", racer->number);
	racer_await_start(racer);
	return claim_item(racer->store, key, claimed->is_there ? "nobody" : NULL, owner,
		&claimed->tries->doctor->limits, ret_problem);
}

enum race_of { RACE_OF_PUTS, RACE_OF_UPDATES };

/* Checks that only one of several concurrent writers can claim an item: by an update if the item
 * exists, or else by a put. A server that tests and writes in two steps may let several of them
 * win, which a single writer cannot detect. If one writer wins each round, as it should, nothing is
 * reported here: try_access() reports once that all tries have succeeded. */
static void try_race(struct tries *tries, enum race_of race_of)
{
	const bool is_there = race_of == RACE_OF_UPDATES;
	const char *operation = is_there ? "UpdateItem" : "PutItem";
	struct claimed claimed = {.tries = tries, .is_there = is_there};
	const struct race race = {.store = tries->conn->store,
		.prepare = prepare_claim,
		.write = claim,
		.arg = &claimed};
	struct problem problem = {0};
	/* The winners of the last round: the first that did not have exactly one ends the race. 0:
	 * the race could not be run, or showed nothing. */
	const unsigned winners = race_run(&race, &problem);
	tries->failures += winners != 1;
	if (winners > 1)
		doctor_report(tries->doctor, DOCTOR_FAILURE, "table access",
			"of %u writers of one item that tried at once, %u were told by %s that "
			"they had won: two uploaders could claim the same file; if the service has "
			"a setting for conditional writes that are isolated, turn it on",
			RACE_WRITERS, winners, operation);
	else if (!winners)
		doctor_report(tries->doctor, DOCTOR_WARNING, "table access",
			"several writers of one item at once by %s could not be tried out: %s",
			operation, problem.text);
	remove_claimed(&claimed);
}

/* Tests the operations that push needs. The races use them all, and so come last. AWS guarantees
 * that only one of several writers wins, so there is no race on its servers. */
static void try_access(struct doctor *doctor, struct store_conn *conn, const char *pk)
{
	struct tries tries = {.doctor = doctor, .conn = conn, .key = {pk, "-"}};
	try_operations(&tries);
	if (!tries.failures && !doctor->frame->services.aws->dynamodb_is_aws) {
		try_race(&tries, RACE_OF_PUTS);
		try_race(&tries, RACE_OF_UPDATES);
	}
	remove_item(doctor, conn, tries.key);
	if (!tries.failures)
		doctor_report(doctor, DOCTOR_OK, "table access",
			"conditional writes, single and batch reads and queries work");
}

/* Tries out marks in batches, and keeps the result with the table's settings. push tries it itself
 * only if no result is kept there yet. */
static void try_batches(struct doctor *doctor, struct store_conn *conn, const char *pk,
	struct store_settings *settings)
{
	static const char what[] = "marks in batches";
	struct problem problem = {0};
	const struct item_key probes[] = {{pk, STORE_PROBE_FIRST}, {pk, STORE_PROBE_SECOND}};
	enum outcome outcome =
		settings_learn_batches(conn, pk, &doctor->limits, settings, &problem);
	for (size_t i = 0; i < 2; i++)
		remove_item(doctor, conn, probes[i]);
	if (outcome == OUTCOME_OK && strcmp(settings->batches, STORE_BATCHES_NONE) != 0)
		doctor_report(doctor, DOCTOR_OK, what,
			"conditions hold in BatchExecuteStatement: up to 25 marks in one request");
	else if (outcome == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"this server has no BatchExecuteStatement that keeps to conditions: each "
			"mark takes a request of its own");
	else
		doctor_report_error(doctor, DOCTOR_WARNING, what,
			"dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate; until then each mark "
			"takes a request of its own",
			outcome, &problem);
}

/* Checks whether the table removes rows that have expired. */
static void check_ttl(struct doctor *doctor, struct store_conn *conn)
{
	static const char what[] = "time to live";
	struct problem problem = {0};
	bool is_on = false;
	enum outcome outcome =
		dynamodb_describe_ttl(conn, "expires", &doctor->limits, &is_on, &problem);
	if (outcome == OUTCOME_OK && is_on)
		doctor_report(doctor, DOCTOR_OK, what, "on 'expires'");
	else if (outcome == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"is off, and rows of ended sessions stay: run s3once init to turn it on");
	else if (outcome == OUTCOME_UNSUPPORTED)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"this server has none: rows of ended sessions stay in the table");
	else
		doctor_report_error(doctor, DOCTOR_WARNING, what,
			"dynamodb:DescribeTimeToLive to see whether it is on", outcome, &problem);
}

/* Reports the replicas of the table, and whether they agree about claims. */
static void report_replicas(struct doctor *doctor, const struct dynamodb_shape *shape)
{
	if (shape->is_split)
		doctor_report(doctor, DOCTOR_WARNING, "replicas",
			"%s: each Region judges claims by its own, so that hosts of two Regions may "
			"send one file at once, of which S3 stores one; let all hosts use one "
			"Region, or make the replicas strongly consistent; no lock in this table "
			"excludes a host of another Region",
			shape->replicas);
	else if (*shape->replicas)
		doctor_report(
			doctor, DOCTOR_OK, "replicas", "%s, strongly consistent", shape->replicas);
}

/* Checks the keys of the table. False: the table cannot be used. */
static bool check_shape(struct doctor *doctor, struct store_conn *conn, const char *name)
{
	const struct table table = store_dynamodb_table(name);
	struct dynamodb_shape shape = {0};
	struct problem problem = {0};
	enum outcome outcome = dynamodb_describe_table(conn, &doctor->limits, &shape, &problem);
	if (outcome == OUTCOME_DENIED) { /* push does not need this permission */
		doctor_report_error(doctor, DOCTOR_WARNING, "table",
			"dynamodb:DescribeTable to see its shape", outcome, &problem);
		return true;
	}
	if (outcome == OUTCOME_ABSENT)
		problem_set(&problem, "there is no table %s: make it with s3once init", name);
	if (outcome == OUTCOME_OK)
		outcome = table_check_shape(&table, "marks", &shape, &problem);
	if (outcome != OUTCOME_OK) {
		doctor_report_error(doctor, DOCTOR_FAILURE, "table", "dynamodb:DescribeTable",
			outcome, &problem);
		return false;
	}
	doctor_report(doctor, DOCTOR_OK, "table", "%s has the shape of marks, %s", name,
		quote(shape.status).text);
	report_replicas(doctor, &shape);
	return true;
}

/* Writes the conditions that the bucket honours to its row, which was read as *seen. If another
 * uploader has written the row meanwhile (REFUSED), *seen becomes its row, and one more attempt is
 * made from that. */
static enum outcome write_conditions(struct doctor *doctor, struct store_conn *conn,
	const struct mark_space *space, struct bucket_row *seen, struct problem *ret_problem)
{
	const struct bucket_row *found = &doctor->conditions;
	enum outcome o = OUTCOME_REFUSED;
	for (int tries = 0; tries < 2 && o == OUTCOME_REFUSED; tries++) {
		struct bucket_row row = *seen;
		memcpy(row.honours, found->honours, sizeof row.honours);
		memcpy(row.honours_server, found->honours_server, sizeof row.honours_server);
		row.honours_at_s = store_time_s(conn->store);
		o = bucket_row_write(conn, space, &row, &doctor->limits, seen, ret_problem);
	}
	if (o == OUTCOME_REFUSED)
		problem_set(
			ret_problem, "other uploaders changed the row meanwhile; run doctor again");
	return o;
}

/* Records in the bucket's row which conditions the server honours, so that push need not send a
 * HEAD before each upload. */
static void keep_conditions(
	struct doctor *doctor, struct store_conn *conn, const struct store_settings *settings)
{
	static const char what[] = "conditions";
	const struct aws_settings *aws = doctor->frame->services.aws;
	struct mark_space space = {.settings = *settings};
	struct bucket_row seen;
	struct problem problem = {0};
	/* No bucket was tried out, or it is AWS's, which honours all conditions. */
	if (!*doctor->bucket || aws->s3_is_aws)
		return;
	snprintf(space.service, sizeof space.service, "%s", aws_settings_service(aws));
	snprintf(space.bucket, sizeof space.bucket, "%s", doctor->bucket);
	enum outcome o = bucket_row_read(conn, &space, &doctor->limits, &seen, &problem);
	if (o == OUTCOME_OK)
		o = write_conditions(doctor, conn, &space, &seen, &problem);
	if (o != OUTCOME_OK)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"what the server does with them cannot be kept with the marks: %s",
			problem.text);
	else
		doctor_report(doctor, DOCTOR_OK, what,
			"what the server does with them is kept with the marks for 30 days");
}

/* Tries out a table with items of its own, and keeps the results with the settings for push. */
static void try_table(
	struct doctor *doctor, struct store_conn *conn, struct store_settings *settings)
{
	char id[ID_CHARS + 1], pk[64]; /* the partition key of the probe items */
	random_id(id);
	snprintf(pk, sizeof pk, "doctor#%s", id);
	try_access(doctor, conn, pk);
	try_batches(doctor, conn, pk, settings);
}

/* Checks the marks that `conn` has opened. A table is also tried out. These results, and those
 * about the bucket, are kept with the marks for push. */
static void check_open_marks(
	struct doctor *doctor, const struct marks_place *place, struct store_conn *conn)
{
	static const char what[] = "marks";
	struct store_settings settings;
	struct problem problem = {0};
	/* check_shape() reports why a table cannot be used. */
	if (place->is_dynamodb && !check_shape(doctor, conn, place->table))
		return;
	if (place->is_dynamodb)
		check_ttl(doctor, conn);
	const enum outcome outcome = settings_load(conn, &doctor->limits, &settings, &problem);
	if (outcome == OUTCOME_ABSENT && !place->is_dynamodb) {
		doctor_report(doctor, DOCTOR_OK, what, "there are none in %s yet: push makes them",
			quote(place->path).text);
		return;
	}
	if (outcome == OUTCOME_ABSENT) {
		doctor_report(
			doctor, DOCTOR_FAILURE, what, "they were never set up: run s3once init");
		return;
	}
	if (outcome != OUTCOME_OK) {
		doctor_report_error(
			doctor, DOCTOR_FAILURE, what, "dynamodb:GetItem", outcome, &problem);
		return;
	}
	doctor_report(doctor, DOCTOR_OK, what, "%s: %s, for %s",
		quote(place->is_dynamodb ? place->table : place->path).text,
		human_things(settings.shards, "shard").text,
		place->is_dynamodb ? "any number of hosts" : "this host");
	if (place->is_dynamodb)
		try_table(doctor, conn, &settings);
	keep_conditions(doctor, conn, &settings);
}

/* Opens marks that exist, and checks them. */
static void check_store(struct doctor *doctor, const struct marks_place *place)
{
	struct open_marks marks = {0};
	struct problem problem = {0};
	if (marks_open(place, &doctor->frame->services, &marks, &problem) == 0)
		check_open_marks(doctor, place, marks.conn);
	else
		doctor_report_error(doctor, DOCTOR_FAILURE, "marks", "dynamodb:GetItem",
			OUTCOME_SETUP, &problem);
	marks_close(&marks);
}

void doctor_check_marks(struct doctor *doctor)
{
	const char *spec = doctor->frame->access.marks;
	struct marks_place place = {0};
	struct problem problem = {0};
	if (marks_place_parse(spec ? spec : "local", &place, &problem) < 0)
		doctor_report(doctor, DOCTOR_FAILURE, "marks", "%s", problem.text);
	else if (!place.is_dynamodb && access(place.path, F_OK) < 0 && errno == ENOENT)
		doctor_report(doctor, DOCTOR_OK, "marks", "%s is not there yet: push makes it%s",
			quote(place.path).text,
			spec ? "" : "; for several hosts name a table with --marks");
	else
		check_store(doctor, &place);
	marks_place_clear(&place);
}
