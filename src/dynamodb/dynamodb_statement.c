#include "dynamodb/dynamodb_statement.h"
#include "aws/retry.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/quote.h"
#include "dynamodb/dynamodb_request.h"
#include <string.h>

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

/* A statement is text inside of JSON, so its own quotes are escaped. */
#define QUOTE "\\\""

static bool is_plain(const char *name, const char *more)
{
	for (; *name; name++)
		if (!strchr(PLAIN, *name) && !strchr(more, *name))
			return false;
	return true;
}

static void add_name(struct text *ret, const char *name)
{
	text_add(ret, QUOTE);
	text_add(ret, name);
	text_add(ret, QUOTE);
}

/* Begins a statement and returns where its own text does. The table may be named by its ARN. */
static size_t begin_statement(struct text *ret, const char *verb, const struct table *table)
{
	text_add(ret, "{\"Statement\":\"");
	const size_t at = ret->len;
	text_add(ret, verb);
	add_name(ret, table->name);
	return at;
}

/* Whether the statement that began there is valid, with all its parameters after it. */
static bool end_statement(struct text *ret, const struct table *table, size_t statement_chars)
{
	text_add(ret, "]}");
	return !ret->error && statement_chars <= STATEMENT_CHARS_MAX &&
	       is_plain(table->name, ":/") && is_plain(table->pk_name, "") &&
	       (!table->sk_name || is_plain(table->sk_name, ""));
}

static void add_key_values(struct text *ret, const struct table *table, struct item_key key)
{
	item_add_value(ret, VALUE_STRING, key.pk, strlen(key.pk));
	if (!table->sk_name)
		return;
	text_add_char(ret, ',');
	item_add_value(
		ret, table->sk_is_number ? VALUE_NUMBER : VALUE_STRING, key.sk, strlen(key.sk));
}

static bool is_key(const struct table *table, const char *name)
{
	return strcmp(name, table->pk_name) == 0 ||
	       (table->sk_name && strcmp(name, table->sk_name) == 0);
}

bool statement_insert(
	struct text *ret, const struct table *table, struct item_key key, const struct item *item)
{
	bool is_possible = true;
	const size_t at = begin_statement(ret, "INSERT INTO ", table);
	text_addf(ret, " VALUE {'%s':?", table->pk_name);
	if (table->sk_name)
		text_addf(ret, ",'%s':?", table->sk_name);
	for (size_t i = 0; i < item->count; i++) {
		const char *name = item->attributes[i].name;
		if (is_key(table, name))
			continue;
		is_possible = is_possible && is_plain(name, "");
		text_addf(ret, ",'%s':?", name);
	}
	text_add_char(ret, '}');
	const size_t chars = ret->len - at;
	text_add(ret, "\",\"Parameters\":[");
	add_key_values(ret, table, key);
	for (size_t i = 0; i < item->count; i++) {
		const struct attribute *attribute = &item->attributes[i];
		if (is_key(table, attribute->name))
			continue;
		text_add_char(ret, ',');
		item_add_value(ret, attribute->type, attribute->value, attribute->n);
	}
	return end_statement(ret, table, chars) && is_possible;
}

static bool add_changes(
	struct text *ret, enum dynamodb_dialect dialect, const struct item_write *update, bool sets)
{
	const char *const verb = sets ? " SET " : " REMOVE ";
	const char *before = verb;
	bool is_possible = true;
	for (size_t i = 0; i < update->n_changes; i++) {
		const struct change *change = &update->changes[i];
		if ((change->value != NULL) != sets)
			continue;
		is_possible = is_possible && is_plain(change->name, "");
		text_add(ret, before);
		before = dialect == DIALECT_LISTS ? "," : verb;
		add_name(ret, change->name);
		text_add(ret, sets ? "=?" : "");
	}
	return is_possible;
}

static bool add_conditions(struct text *ret, const struct item_write *update)
{
	bool is_possible = true;
	for (size_t i = 0; i < update->n_conditions; i++) {
		const struct condition *condition = &update->conditions[i];
		const bool equals = condition->test == CONDITION_EQUALS;
		is_possible = is_possible && is_plain(condition->name, "") &&
			      (equals || condition->test == CONDITION_ABSENT);
		text_add(ret, " AND ");
		add_name(ret, condition->name);
		text_add(ret, equals ? "=?" : " IS MISSING");
	}
	return is_possible;
}

/* In the order of their question marks: the new values, the key, the values compared with. */
static void add_update_values(struct text *ret, const struct table *table, struct item_key key,
	const struct item_write *update)
{
	text_add(ret, "\",\"Parameters\":[");
	for (size_t i = 0; i < update->n_changes; i++) {
		const struct change *change = &update->changes[i];
		if (!change->value)
			continue;
		item_add_value(ret, change->type, change->value, change_bytes(change));
		text_add_char(ret, ',');
	}
	add_key_values(ret, table, key);
	for (size_t i = 0; i < update->n_conditions; i++) {
		const struct condition *condition = &update->conditions[i];
		if (condition->test != CONDITION_EQUALS)
			continue;
		text_add_char(ret, ',');
		item_add_value(ret, condition->type, condition->value, strlen(condition->value));
	}
}

bool statement_update(struct text *ret, enum dynamodb_dialect dialect, const struct table *table,
	struct item_key key, const struct item_write *update)
{
	const size_t at = begin_statement(ret, "UPDATE ", table);
	bool is_possible = update->n_changes && add_changes(ret, dialect, update, true);
	is_possible = add_changes(ret, dialect, update, false) && is_possible;
	text_add(ret, " WHERE ");
	add_name(ret, table->pk_name);
	text_add(ret, "=?");
	if (table->sk_name) {
		text_add(ret, " AND ");
		add_name(ret, table->sk_name);
		text_add(ret, "=?");
	}
	is_possible = add_conditions(ret, update) && is_possible;
	const size_t chars = ret->len - at;
	add_update_values(ret, table, key, update);
	return end_statement(ret, table, chars) && is_possible;
}

void dynamodb_batch_begin(struct dynamodb_conn *conn, const char *table)
{
	struct text *body = dynamodb_begin_bare(conn, table);
	dynamodb_member(body, "Statements");
	text_add_char(body, '[');
}

void dynamodb_batch_add(struct dynamodb_conn *conn, const struct text *statement)
{
	struct text *body = &conn->body;
	if (body->len && body->data[body->len - 1] != '[')
		text_add_char(body, ',');
	text_add_bytes(body, text_string(statement), statement->len);
}

/* An answer is {"TableName":"…"} or {"Error":{"Code":"…","Message":"…"},…}. What anything else
 * means is not known. */
static enum outcome answer_of(const json_t *response)
{
	const json_t *error = json_object_get(response, "Error");
	const unsigned has_table = json_object_get(response, "TableName") != NULL;
	const unsigned has_item = json_object_get(response, "Item") != NULL;
	if (!json_is_object(response) ||
		(!error && json_object_size(response) != has_table + has_item))
		return OUTCOME_LOST;
	if (!error)
		return OUTCOME_OK;
	const char *code = json_text(error, "Code");
	if (!*code)
		return OUTCOME_LOST;
	const struct attempt attempt = {.status = 400, .code = code, .is_write = true};
	const enum outcome outcome = classify(&attempt).outcome;
	if (outcome != OUTCOME_REFUSED)
		log_debug("a statement of a batch: %s, it is repeated alone", quote(code).text);
	return outcome;
}

enum outcome dynamodb_batch_execute(struct dynamodb_conn *conn, size_t n,
	const struct call_limits *limits, enum outcome ret_answers[static STATEMENTS_MAX],
	struct problem *ret_problem)
{
	json_t *reply;
	text_add_char(&conn->body, ']');
	enum outcome outcome =
		dynamodb_perform(conn, DYNAMODB_BATCH_EXECUTE, limits, &reply, ret_problem);
	const json_t *responses = json_object_get(reply, "Responses");
	/* Unless there is one answer for each statement, nothing shows which answer is whose. */
	const bool is_whole = json_array_size(responses) == n;
	for (size_t i = 0; i < n && outcome == OUTCOME_OK; i++)
		ret_answers[i] = is_whole ? answer_of(json_array_get(responses, i)) : OUTCOME_LOST;
	json_decref(reply);
	return outcome;
}
