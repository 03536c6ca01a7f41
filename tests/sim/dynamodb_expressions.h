/* DynamoDB's languages: conditions, updates and PartiQL statements, over items as JSON. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

enum expression_result { EXPRESSION_FALSE, EXPRESSION_TRUE, EXPRESSION_INVALID };
/* Evaluates a condition on an item, or on no item (NULL). Names and values are those of the
 * request. */
enum expression_result condition_holds(
	const char *text, const json_t *names, const json_t *values, const json_t *item);
/* Applies an update expression to an item. Returns false if the expression is invalid. */
bool update_apply(const char *text, const json_t *names, const json_t *values, json_t *item);

/* A parsed statement. */
struct statement {
	bool is_insert;
	char table[128];
	json_t *item;       /* insert: the whole item; update: the key named by WHERE */
	json_t *sets;       /* update: an object of names and values */
	json_t *removes;    /* update: an array of names */
	json_t *conditions; /* update: an array of [name, value]; the value null is IS MISSING */
	json_t *literals;   /* an array of the literal values in its text */
};
/* Parses a statement. `lists` chooses the other dialect: SET a=?, b=? REMOVE c, d. Returns false if
 * the statement is invalid. */
bool statement_read(const char *text, const json_t *parameters, bool lists, struct statement *ret);
void statement_clear(struct statement *statement);

/* Compare two values such as {"S": …}. value_compare() returns -1, 0 or 1 if the types are the
 * same. */
bool value_equals(const json_t *a, const json_t *b);
int value_compare(const json_t *a, const json_t *b);
