/* Items as DynamoDB's JSON: {"name":{"S":"text"},…}. Written as text, straight into a request,
 * which costs a fraction of a tree; read from the tree of a reply. */
#pragma once
#include "base/text.h"
#include "dynamodb/item.h"
#include <jansson.h>

/* Adds n bytes as a JSON string with its quotes. */
void json_add_string(struct text *ret, const char *s, size_t n);
/* Adds {"S":"text"}, or what the type asks for. */
void item_add_value(struct text *ret, enum value_type type, const char *value, size_t n);
/* Adds "name":{"S":"text"}. */
void item_add_attribute(struct text *ret, const struct attribute *attribute);

/* Fills a zeroed item; 0, -EBADMSG or -ENOMEM. */
int item_from_json(const json_t *json, struct item *ret);
