/* Items as the text of DynamoDB's JSON, written straight into a request: several times cheaper than
 * a tree. */
#pragma once
#include "aws/item.h"
#include "base/text.h"

/* Adds n bytes as a JSON string with its quotes. */
void json_add_string(struct text *ret, const char *s, size_t n);
/* Adds {"S":"text"}, or what the type asks for. */
void item_add_value(struct text *ret, enum value_type type, const char *value, size_t n);
/* Adds "name":{"S":"text"}. */
void item_add_attribute(struct text *ret, const struct attribute *attribute);
