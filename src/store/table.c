#include "store/table.h"
#include "aws/wait.h"
#include "base/clock.h"
#include <stdio.h>
#include <string.h>

#define NAP_FIRST_MS 20
#define NAP_MOST_MS  2000

/* One `init` under way. */
struct creation {
	struct dynamodb_conn *db;
	struct table table;
	const struct table_making *making;
	struct call_limits limits;
	uint64_t nap_ms;
	bool created;
};

static void format_key(char *ret, size_t size, const char *name, char type, const char *kind)
{
	if (*name)
		snprintf(ret, size, "%s \"%.100s\" (%c)", kind, name, type);
	else
		snprintf(ret, size, "no %s", kind);
}

enum outcome table_check_shape(const struct table *table, const char *what,
	const struct dynamodb_shape *shape, struct problem *ret_problem)
{
	const char *sk_name = table->sk_name ? table->sk_name : "";
	const char sk_type = !table->sk_name ? '\0' : table->sk_is_number ? 'N' : 'S';
	char hash[160], range[160], needed[160];

	if (strcmp(shape->pk_name, table->pk_name) == 0 && shape->pk_type == 'S' &&
		strcmp(shape->sk_name, sk_name) == 0 && shape->sk_type == sk_type)
		return OUTCOME_OK;
	format_key(hash, sizeof hash, shape->pk_name, shape->pk_type, "partition key");
	format_key(range, sizeof range, shape->sk_name, shape->sk_type, "sort key");
	format_key(needed, sizeof needed, sk_name, sk_type, "sort key");
	problem_set(ret_problem,
		"table %s is not one for %s: it has %s and %s, %s need partition key \"%s\" (S) "
		"and %s; give another table name",
		table->name, what, hash, range, what, table->pk_name, needed);
	return OUTCOME_SETUP;
}

/* Waits a little longer each time, until the deadline. */
static enum outcome wait_while(
	struct creation *creation, const char *status, struct problem *ret_problem)
{
	enum outcome outcome = wait_within(&creation->limits, creation->nap_ms, ret_problem);

	if (outcome != OUTCOME_OK) {
		problem_set(ret_problem, "table %s is still %s after %llu s: run init again later",
			creation->table.name, status,
			(unsigned long long)creation->making->timeout_ms / 1000);
		return OUTCOME_SETUP;
	}
	creation->nap_ms = creation->nap_ms * 2 < NAP_MOST_MS ? creation->nap_ms * 2 : NAP_MOST_MS;
	return OUTCOME_OK;
}

/* Also waits for a table that is being deleted. Afterwards it is absent. */
static enum outcome judge_table(struct creation *creation, const struct dynamodb_shape *shape,
	bool *ret_ready, struct problem *ret_problem)
{
	const char *status = shape->status;
	enum outcome outcome = OUTCOME_OK;

	if (strcmp(status, "DELETING") != 0)
		outcome = table_check_shape(
			&creation->table, creation->making->what, shape, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	*ret_ready = strcmp(status, "ACTIVE") == 0 || strcmp(status, "UPDATING") == 0;
	if (*ret_ready)
		return OUTCOME_OK;
	if (strcmp(status, "CREATING") == 0 || strcmp(status, "DELETING") == 0)
		return wait_while(creation, status, ret_problem);
	problem_set(ret_problem, "table %s cannot be used: it is %s", creation->table.name, status);
	return OUTCOME_SETUP;
}

/* REFUSED: another one makes it, or a table just made is not shown yet. */
static enum outcome create_table(struct creation *creation, struct problem *ret_problem)
{
	enum outcome outcome = dynamodb_create_table(creation->db, &creation->table,
		&creation->making->terms, &creation->limits, ret_problem);

	if (outcome == OUTCOME_OK)
		creation->created = true;
	return outcome == OUTCOME_OK || outcome == OUTCOME_REFUSED
		       ? wait_while(creation, "not visible", ret_problem)
		       : outcome;
}

static enum outcome make_ready(struct creation *creation, struct problem *ret_problem)
{
	enum outcome outcome = OUTCOME_OK;
	bool ready = false;

	while (outcome == OUTCOME_OK && !ready) {
		struct dynamodb_shape shape;
		outcome = dynamodb_describe_table(
			creation->db, creation->table.name, &creation->limits, &shape, ret_problem);
		if (outcome == OUTCOME_OK)
			outcome = judge_table(creation, &shape, &ready, ret_problem);
		else if (outcome == OUTCOME_ABSENT)
			outcome = create_table(creation, ret_problem);
	}
	return outcome;
}

static enum outcome enable_ttl(
	struct creation *creation, bool *ret_ttl, struct problem *ret_problem)
{
	enum outcome outcome = dynamodb_enable_ttl(creation->db, creation->table.name,
		creation->making->ttl_name, &creation->limits, ret_problem);

	*ret_ttl = outcome == OUTCOME_OK;
	return outcome == OUTCOME_UNSUPPORTED ? OUTCOME_OK : outcome;
}

enum outcome table_make(const struct aws_settings *aws, struct http_shared *http,
	const struct table_making *making, bool *ret_created, bool *ret_ttl,
	struct problem *ret_problem)
{
	struct creation creation = {
		.table = making->table,
		.making = making,
		.limits = {.deadline_ns = clock_boot_ns() + making->timeout_ms * NS_PER_MS},
		.nap_ms = NAP_FIRST_MS,
	};
	struct dynamodb *db = NULL;
	enum outcome outcome = OUTCOME_LOCAL;
	int r = dynamodb_open(aws, http, &db);

	if (!r)
		r = dynamodb_conn_new(db, &creation.db);
	if (r)
		problem_set(ret_problem, "table %s: %s", making->table.name, strerror(-r));
	else
		outcome = make_ready(&creation, ret_problem);
	*ret_ttl = false;
	if (outcome == OUTCOME_OK && making->ttl_name)
		outcome = enable_ttl(&creation, ret_ttl, ret_problem);
	if (outcome == OUTCOME_OK)
		*ret_created = creation.created;
	dynamodb_conn_free(creation.db);
	dynamodb_close(db);
	return outcome;
}
