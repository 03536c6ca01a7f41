/* Turns conditional writes into PartiQL statements, in the dialect that the server reads.
 * dynamodb_batch.c sends them, and dynamodb_probe.c finds out the dialect. */
#include "store/dynamodb_request.h"
#include <string.h>

/* A statement is text inside of JSON, so its own quotes are escaped. */
#define QUOTE "\\\""

static void add_name(struct text *ret, const char *name)
{
	text_add(ret, QUOTE);
	text_add(ret, name);
	text_add(ret, QUOTE);
}

static void add_parameter(
	struct text *parameters, enum value_type type, const char *value, size_t n)
{
	if (parameters->len)
		text_add_char(parameters, ',');
	item_add_value(parameters, type, value, n);
}

/* Ends a statement with its parameters, which are in the order of their question marks, and frees
 * them. */
static void end_statement(struct text *ret, struct text *parameters)
{
	text_add(ret, "\",\"Parameters\":[");
	text_add(ret, text_string(parameters));
	text_add(ret, "]}");
	if (parameters->error)
		ret->error = parameters->error;
	text_clear(parameters);
}

void statement_insert(
	struct text *ret, const struct table *table, struct item_key key, const struct item *item)
{
	struct text parameters = TEXT(ret->max);
	struct change of_key[2];
	const size_t n = table_key_attributes(table, key, of_key);
	/* INSERT fails if the item is there. The name is quoted, since it may have a '-' or a '.'.
	 */
	text_addf(ret, "{\"Statement\":\"INSERT INTO " QUOTE "%s" QUOTE " VALUE {", table->name);
	for (size_t i = 0; i < n; i++) {
		text_addf(ret, "%s'%s':?", i ? "," : "", of_key[i].name);
		add_parameter(&parameters, of_key[i].type, of_key[i].value, of_key[i].n);
	}
	for (size_t i = 0; i < item->count; i++) {
		const struct attribute *a = &item->attributes[i];
		if (table_has_key(table, a->name))
			continue;
		text_addf(ret, ",'%s':?", a->name);
		add_parameter(&parameters, a->type, a->value, a->n);
	}
	text_add_char(ret, '}');
	end_statement(ret, &parameters);
}

enum clause { CLAUSE_SET, CLAUSE_REMOVE };

/* Adds the changes that set attributes, or those that remove attributes. In DIALECT_LISTS the verb
 * is before the first of them only, and in DIALECT_CLAUSES before each. */
static void add_changes(struct text *ret, struct text *parameters, enum dynamodb_dialect dialect,
	const struct item_write *update, enum clause clause)
{
	const bool sets = clause == CLAUSE_SET;
	const char *const verb = sets ? " SET " : " REMOVE ", *before = verb;
	for (size_t i = 0; i < update->n_changes; i++) {
		const struct change *change = &update->changes[i];
		if ((change->value != NULL) != sets)
			continue;
		text_add(ret, before);
		before = dialect == DIALECT_LISTS ? "," : verb;
		add_name(ret, change->name);
		if (sets) {
			text_add(ret, "=?");
			add_parameter(
				parameters, change->type, change->value, change_bytes(change));
		}
	}
}

void statement_update(struct text *ret, enum dynamodb_dialect dialect, const struct table *table,
	struct item_key key, const struct item_write *update)
{
	struct text parameters = TEXT(ret->max);
	struct change of_key[2];
	const size_t n = table_key_attributes(table, key, of_key);
	text_addf(ret, "{\"Statement\":\"UPDATE " QUOTE "%s" QUOTE, table->name);
	add_changes(ret, &parameters, dialect, update, CLAUSE_SET);
	add_changes(ret, &parameters, dialect, update, CLAUSE_REMOVE);
	for (size_t i = 0; i < n; i++) {
		text_add(ret, i ? " AND " : " WHERE ");
		add_name(ret, of_key[i].name);
		text_add(ret, "=?");
		add_parameter(&parameters, of_key[i].type, of_key[i].value, of_key[i].n);
	}
	for (size_t i = 0; i < update->n_conditions; i++) {
		const struct condition *condition = &update->conditions[i];
		text_add(ret, " AND ");
		add_name(ret, condition->name);
		if (condition->test == CONDITION_EQUALS) {
			text_add(ret, "=?");
			add_parameter(&parameters, condition->type, condition->value,
				strlen(condition->value));
		} else { /* CONDITION_ABSENT: no others come here (see may_be_batched()) */
			text_add(ret, " IS MISSING");
		}
	}
	end_statement(ret, &parameters);
}

const char *const dynamodb_dialects[DIALECTS] = {
	[DIALECT_NONE] = STORE_BATCHES_NONE,
	[DIALECT_CLAUSES] = "clauses",
	[DIALECT_LISTS] = "lists",
};
