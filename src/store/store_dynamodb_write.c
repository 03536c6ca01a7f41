#include "store/store_dynamodb_write.h"
#include <string.h>

const struct call_limits *batch_write_limits(const struct batch_write *write)
{
	static const struct call_limits none;

	return write->limits ? write->limits : &none;
}

enum outcome batch_write_alone(const struct batch_write *w)
{
	if (w->what.item)
		return dynamodb_put(w->db, w->table, w->key, &w->what, w->limits, w->ret_present,
			w->ret_problem);
	return dynamodb_update(
		w->db, w->table, w->key, &w->what, w->limits, w->ret_present, w->ret_problem);
}

/* INSERT can express only one kind of put, which is a put if the item is absent. */
static bool is_put_if_absent(const struct batch_write *w)
{
	const struct condition *only = w->what.conditions;
	return w->what.item && w->what.n_conditions == 1 && only->test == CONDITION_ABSENT &&
	       strcmp(only->name, w->table->pk_name) == 0;
}

bool batch_write_may_wait(const struct batch_write *w)
{
	return !batch_write_limits(w)->deadline_ns && (!w->what.item || is_put_if_absent(w));
}

bool batch_write_statement(
	const struct batch_write *w, enum dynamodb_dialect dialect, struct text *statement)
{
	text_reset(statement);
	if (w->what.item)
		return statement_insert(statement, w->table, w->key, w->what.item);
	return statement_update(statement, dialect, w->table, w->key, &w->what);
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

bool batch_write_is_of(const struct batch_write *write, const struct item_key *key)
{
	return same_text(write->key.sk, key->sk) && strcmp(write->key.pk, key->pk) == 0;
}

enum outcome batch_write_give_up(const struct batch_write *write)
{
	problem_set(write->ret_problem, "it was given up before the table had answered");
	return OUTCOME_ABANDONED;
}
