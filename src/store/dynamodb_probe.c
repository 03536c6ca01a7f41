/* Finds out whether a server honours the conditions of statements in a batch, and in which dialect.
 * An answer alone is not enough: some servers overwrite an item with INSERT, or ignore the
 * conditions of WHERE beyond the key. doctor sends this probe, and so does the first run that
 * writes to a table. */
#include "base/clock.h"
#include "store/dynamodb_request.h"
#include <inttypes.h>
#include <stdio.h>

#define PROBE_LIVES_S  (24 * 3600)
#define PROBE_ATTEMPTS 3 /* few, since some servers answer 500 to an unknown operation */

struct probe {
	struct dynamodb_conn *db;
	struct call_limits limits;
	struct item_key keys[2];
	struct text statement;
	struct problem *problem;
	enum dynamodb_dialect dialect;
};

/* One request of the probe. It has `inserts` INSERT statements, one for each of the first items. If
 * that is 0, it has one UPDATE of the first item under these conditions. Every statement must be
 * refused, except for the last one of a trial with last_may_apply. */
struct trial {
	size_t inserts;
	struct condition conditions[2];
	size_t n_conditions;
	bool last_may_apply;
};
static const struct trial trials[] = {
	/* The second request inserts the first item again, which must be refused, and another item,
	 * which may be applied. */
	{.inserts = 1, .last_may_apply = true},
	{.inserts = 2, .last_may_apply = true},
	/* The first item's state is not "other", and it has the attribute "gone": the first two
	 * updates must be refused. Only the third one has conditions that the item meets. */
	{.conditions = {{"state", CONDITION_EQUALS, VALUE_STRING, "other"}}, .n_conditions = 1},
	{.conditions = {{"state", CONDITION_EQUALS, VALUE_STRING, "first"},
		 {"gone", CONDITION_ABSENT}},
		.n_conditions = 2},
	{.conditions = {{"state", CONDITION_EQUALS, VALUE_STRING, "first"},
		 {"never", CONDITION_ABSENT}},
		.n_conditions = 2,
		.last_may_apply = true},
};
#define INSERTS 2 /* the number of trials that insert, which come first */
#define TRIALS  (sizeof trials / sizeof *trials)

/* Sends one request of the probe. OK if the answers are those of a server that honours the
 * conditions, INVALID if they are not. Any other outcome is inconclusive. A refusal of the last
 * statement is never wrong, even with last_may_apply: if the request was sent twice, the first one
 * was applied, and the second one was refused. */
static enum outcome try_one(struct probe *probe, const struct trial *trial)
{
	/* Two attributes are set and two, which have no value here, are removed: the dialects
	 * differ in writing several changes. */
	static const struct change changes[] = {{"gone"}, {"state", VALUE_STRING, "second"},
		{"also-gone"}, {"at", VALUE_NUMBER, "1"}};
	const struct item_write update = {.changes = changes,
		.n_changes = 4,
		.conditions = trial->conditions,
		.n_conditions = trial->n_conditions};
	char expires[24];
	/* The attributes of an INSERT. "kept" is the one that no update changes. */
	const struct change fresh[] = {{"expires", VALUE_NUMBER, expires},
		{"state", VALUE_STRING, "first"}, {"gone", VALUE_STRING, "1"},
		{"also-gone", VALUE_STRING, "1"}, {"kept", VALUE_STRING, "1"}};
	const struct table *table = probe->db->table;
	const size_t n = trial->inserts ? trial->inserts : 1;
	enum outcome answers[STATEMENTS_MAX], outcome;
	struct item item = {0};

	snprintf(expires, sizeof expires, "%" PRId64, clock_wall_s() + PROBE_LIVES_S);
	const bool has_item = item_apply(&item, fresh, sizeof fresh / sizeof *fresh) == 0;
	dynamodb_batch_begin(probe->db);
	for (size_t i = 0; i < n; i++) {
		text_reset(&probe->statement);
		if (trial->inserts)
			statement_insert(&probe->statement, table, probe->keys[i], &item);
		else
			statement_update(
				&probe->statement, probe->dialect, table, probe->keys[i], &update);
		dynamodb_batch_add(probe->db, &probe->statement);
	}
	item_clear(&item);
	if (!has_item)
		return outcome_no_memory(probe->problem);
	outcome = dynamodb_batch_execute(probe->db, n, &probe->limits, answers, probe->problem);
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i++) {
		const bool may_apply = trial->last_may_apply && i + 1 == n;
		const bool was_wrongly_applied = answers[i] == OUTCOME_OK && !may_apply;
		if (was_wrongly_applied)
			outcome = OUTCOME_INVALID;
		else if (answers[i] != OUTCOME_REFUSED)
			outcome = answers[i];
	}
	return outcome;
}

/* Sends the trials that are updates, in this dialect, and then reads the item. Only the last update
 * may be applied, so the outcome is INVALID unless the item is in the state after that update. */
static enum outcome try_updates(struct probe *probe, enum dynamodb_dialect dialect)
{
	static const struct condition changed[] = {
		{"state", CONDITION_EQUALS, VALUE_STRING, "second"}, {"kept", CONDITION_PRESENT},
		{"gone", CONDITION_ABSENT}, {"also-gone", CONDITION_ABSENT},
		{"at", CONDITION_EQUALS, VALUE_NUMBER, "1"}};
	struct item item = {0};
	enum outcome outcome = OUTCOME_OK;

	probe->dialect = dialect;
	for (size_t i = INSERTS; i < TRIALS && outcome == OUTCOME_OK; i++)
		outcome = try_one(probe, &trials[i]);
	if (outcome == OUTCOME_OK)
		outcome = dynamodb_get(&probe->db->conn, probe->keys[0], READ_CONSISTENT,
			&probe->limits, &item, probe->problem);
	const size_t n = sizeof changed / sizeof *changed;
	const bool is_wrong = outcome == OUTCOME_OK && !item_satisfies(&item, changed, n);
	if (is_wrong || outcome == OUTCOME_ABSENT)
		outcome = OUTCOME_INVALID;
	item_clear(&item);
	return outcome;
}

/* INSERT is the same in all dialects. UPDATE is tried in one dialect after the other: INVALID may
 * mean that the server does not read the first one. */
enum outcome dynamodb_try_batches(struct store_conn *conn, const char *pk,
	const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
	struct problem *ret_problem)
{
	struct probe probe = {.db = dynamodb_conn_of(conn),
		.limits = limits ? *limits : no_limits,
		.keys = {{pk, STORE_PROBE_FIRST}, {pk, STORE_PROBE_SECOND}},
		.statement = TEXT(1 << 16),
		.problem = ret_problem};

	probe.limits.attempts = PROBE_ATTEMPTS;
	enum outcome outcome = OUTCOME_OK;
	for (size_t i = 0; i < INSERTS && outcome == OUTCOME_OK; i++)
		outcome = try_one(&probe, &trials[i]);
	if (outcome == OUTCOME_OK) {
		outcome = try_updates(&probe, DIALECT_CLAUSES);
		if (outcome == OUTCOME_INVALID)
			outcome = try_updates(&probe, DIALECT_LISTS);
	}
	text_clear(&probe.statement);
	if (outcome == OUTCOME_INVALID || outcome == OUTCOME_UNSUPPORTED)
		probe.dialect = DIALECT_NONE;
	else if (outcome != OUTCOME_OK)
		return outcome;
	snprintf(ret_how, STORE_BATCHES_MAX, "%s", dynamodb_dialects[probe.dialect]);
	return OUTCOME_OK;
}
