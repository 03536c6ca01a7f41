/* Items as DynamoDB's JSON, {"name":{"S":"text"},…}. They are written as text, straight into a
 * request, which costs a fraction of building a tree. A single item is read from the tree of its
 * reply; the many items of a page are read without one. */
#pragma once
#include "aws/call.h"
#include "base/text.h"
#include "store/item.h"
#include <jansson.h>

/* Adds n bytes as a JSON string with its quotes. */
void json_add_string(struct text *ret, const char *s, size_t n);
/* Adds the name of a member in quotes, and a colon. A comma comes first, unless the text so far
 * ends with the bracket that begins the object. */
void json_add_member(struct text *ret, const char *name);
/* Adds a member whose value is a string. */
void json_add_text(struct text *ret, const char *name, const char *value);
/* Adds {"S":"text"}, or the equivalent for another type. */
void item_add_value(struct text *ret, enum value_type type, const char *value, size_t n);
/* Adds "name":{"S":"text"} as a member of the object that is open in `ret`. */
void item_add_attribute(struct text *ret, const struct attribute *attribute);

/* The most values of one reply. A page of 1 MB has fewer, however small its items are. Each takes
 * about 100 bytes of memory. */
#define JSON_VALUES_MAX 1000000
/* Parses a reply. NULL if it is not JSON, if it has more values than that, or if the limits end the
 * call meanwhile. `limits` may be NULL. */
json_t *json_read(const struct text *text, const struct call_limits *limits);

/* Fills a zeroed item. 0, -EBADMSG or -ENOMEM. */
int item_from_json(const json_t *json, struct item *ret);
/* Fills a zeroed item from the JSON object at the beginning of n bytes, which a NUL follows.
 * *ret_bytes is the length of the object. Most items are read without building a tree. `limits` is
 * as in json_read(). 0, -EBADMSG or -ENOMEM. */
int item_read(const char *text, size_t n, const struct call_limits *limits, struct item *ret,
	size_t *ret_bytes);

/* A doc is the text of an item in S3: its JSON without the attributes pk and sk, which are its key.
 */

/* Adds the doc of an item. 0, -ENOMEM, -EMSGSIZE if the text's cap is too small, or -EILSEQ if a
 * string is not UTF-8. */
int item_to_doc(const struct item *item, struct text *ret);
/* Fills a zeroed item from a doc and its key. 0, -EBADMSG or -ENOMEM, with an empty item. */
int item_from_doc(struct item_key key, const char *doc, struct item *ret);
