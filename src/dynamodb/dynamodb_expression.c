#include "dynamodb/dynamodb_expression.h"
#include "dynamodb/dynamodb_request.h"
#include <string.h>

/* "#c7", ":u12": what stands for a name or a value. Not printed: it is most of what is written. */
struct placeholder {
	char text[24];
};

static struct placeholder placeholder(char sigil, char kind, size_t i)
{
	struct placeholder ret;
	char *at = ret.text + sizeof ret.text - 1;
	*at = 0;
	do
		*--at = (char)('0' + i % 10);
	while (i /= 10);
	*--at = kind;
	*--at = sigil;
	memmove(ret.text, at, strlen(at) + 1);
	return ret;
}

static void add_comparison(struct text *body, char kind, size_t i, const char *operator)
{
	text_add(body, placeholder('#', kind, i).text);
	text_add(body, operator);
	text_add(body, placeholder(':', kind, i).text);
}

static bool has_value(enum condition_test test)
{
	return test == CONDITION_EQUALS || test == CONDITION_AT_MOST;
}

static void add_conditions(struct text *body, const struct dynamodb_expression *e)
{
	const bool first = !e->must_exist;
	if (first && e->n_conditions == 0 && !e->may_be_absent)
		return;
	dynamodb_member(body, "ConditionExpression");
	text_add_char(body, '"');
	if (e->may_be_absent)
		text_addf(body, "attribute_not_exists(#k)%s", e->n_conditions ? " OR (" : "");
	text_add(body, e->must_exist ? "attribute_exists(#k)" : "");
	for (size_t i = 0; i < e->n_conditions; i++) {
		text_add(body, i || !first ? " AND " : "");
		const enum condition_test test = e->conditions[i].test;
		if (has_value(test)) {
			add_comparison(body, 'c', i, test == CONDITION_EQUALS ? " = " : " <= ");
			continue;
		}
		const bool absent = test == CONDITION_ABSENT;
		text_add(body, absent ? "attribute_not_exists(" : "attribute_exists(");
		text_add(body, placeholder('#', 'c', i).text);
		text_add_char(body, ')');
	}
	text_add(body, e->may_be_absent && e->n_conditions ? ")\"" : "\"");
	dynamodb_member(body, "ReturnValuesOnConditionCheckFailure");
	text_add(body, "\"ALL_OLD\"");
}

static void add_clause(struct text *body, const struct dynamodb_expression *e, bool sets)
{
	const char *before = sets ? "SET " : " REMOVE ";
	for (size_t i = 0; i < e->n_changes; i++) {
		if ((e->changes[i].value != NULL) != sets)
			continue;
		text_add(body, before);
		before = ", ";
		if (sets)
			add_comparison(body, 'u', i, " = ");
		else
			text_add(body, placeholder('#', 'u', i).text);
	}
}

static void add_changes(struct text *body, const struct dynamodb_expression *e)
{
	if (e->n_changes == 0 && !e->count)
		return;
	dynamodb_member(body, "UpdateExpression");
	text_add_char(body, '"');
	add_clause(body, e, true);
	add_clause(body, e, false);
	text_add(body, e->count ? " ADD #n :n\"" : "\"");
}

static void add_name(struct text *body, char kind, size_t i, const char *name)
{
	dynamodb_member(body, placeholder('#', kind, i).text);
	json_add_string(body, name, strlen(name));
}

static void add_names(struct text *body, const struct dynamodb_expression *e)
{
	const bool names_key = e->must_exist || e->may_be_absent;
	if (!names_key && !e->count && e->n_conditions + e->n_changes == 0)
		return;
	dynamodb_member(body, "ExpressionAttributeNames");
	text_add_char(body, '{');
	if (names_key) {
		dynamodb_member(body, "#k");
		json_add_string(body, e->pk_name, strlen(e->pk_name));
	}
	if (e->count) {
		dynamodb_member(body, "#n");
		json_add_string(body, e->count, strlen(e->count));
	}
	for (size_t i = 0; i < e->n_conditions; i++)
		add_name(body, 'c', i, e->conditions[i].name);
	for (size_t i = 0; i < e->n_changes; i++)
		add_name(body, 'u', i, e->changes[i].name);
	text_add_char(body, '}');
}

/* DynamoDB refuses an empty object here. */
static void add_attribute_value(struct text *body, bool *begun, const char *name,
	enum value_type type, const char *value, size_t n)
{
	if (!*begun) {
		dynamodb_member(body, "ExpressionAttributeValues");
		text_add_char(body, '{');
	}
	*begun = true;
	dynamodb_member(body, name);
	item_add_value(body, type, value, n);
}

static void add_values(struct text *body, const struct dynamodb_expression *e)
{
	bool begun = false;
	for (size_t i = 0; i < e->n_conditions; i++) {
		const struct condition *c = &e->conditions[i];
		if (has_value(c->test))
			add_attribute_value(body, &begun, placeholder(':', 'c', i).text, c->type,
				c->value, strlen(c->value));
	}
	for (size_t i = 0; i < e->n_changes; i++) {
		const struct change *change = &e->changes[i];
		if (change->value)
			add_attribute_value(body, &begun, placeholder(':', 'u', i).text,
				change->type, change->value, change_bytes(change));
	}
	if (e->count)
		add_attribute_value(body, &begun, ":n", VALUE_NUMBER, "1", 1);
	text_add(body, begun ? "}" : "");
}

void dynamodb_add_expression(struct text *body, const struct dynamodb_expression *e)
{
	add_changes(body, e);
	add_conditions(body, e);
	add_names(body, e);
	add_values(body, e);
}
