/* DynamoDB's languages: conditions, updates and PartiQL statements, over items as JSON. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

enum expression_result { EXPRESSION_FALSE, EXPRESSION_TRUE, EXPRESSION_INVALID };
/* A condition about an item (NULL: there is none). Names and values are those of the request. */
enum expression_result condition_holds(
	const char *text, const json_t *names, const json_t *values, const json_t *item);
/* Applies an update expression to an item. False: it is invalid. */
bool update_apply(const char *text, const json_t *names, const json_t *values, json_t *item);

/* A statement as DynamoDB reads it. */
struct statement {
	bool is_insert;
	char table[128];
	json_t *item;       /* of an insert: all of it; of an update: the key that WHERE names */
	json_t *sets;       /* of an update: name to value */
	json_t *removes;    /* of an update: array of names */
	json_t *conditions; /* of an update: array of [name, value or null: IS MISSING] */
	json_t *literals;   /* array of the values that are in its text */
};
/* `lists` is the other dialect: SET a=?, b=? REMOVE c, d. False: it is invalid. */
bool statement_read(const char *text, const json_t *parameters, bool lists, struct statement *ret);
void statement_clear(struct statement *statement);

/* Whether two values {"S": …} are equal, or -1, 0, 1 by their order if the types are the same. */
bool value_equals(const json_t *a, const json_t *b);
int value_compare(const json_t *a, const json_t *b);
