/* The expressions of a conditional write. For dynamodb.c only. */
#pragma once
#include "base/text.h"
#include "dynamodb/dynamodb.h"

/* What a conditional write asks for. The names and values of its conditions are sent as #c0 and
 * :c0, those of its changes as #u0 and :u0. */
struct dynamodb_expression {
	const char *pk_name; /* of the attribute by which the two below are tested */
	bool must_exist, may_be_absent;
	const char *count; /* an attribute to add one to, or NULL */
	const struct change *changes;
	size_t n_changes;
	const struct condition *conditions;
	size_t n_conditions;
};

/* Adds the members UpdateExpression, ConditionExpression, ExpressionAttributeNames and
 * ExpressionAttributeValues, each only if there is something in it. */
void dynamodb_add_expression(struct text *body, const struct dynamodb_expression *e);
