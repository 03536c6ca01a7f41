#include "dynamodb/item_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_MAX 32 /* attributes */

/* A text without escapes, as it stands in the JSON. */
struct span {
	const char *at;
	size_t n;
};

struct plain_attribute {
	struct span name, value;
	enum value_type type;
};

static bool skip(const char **at, const char *what)
{
	const size_t n = strlen(what);
	if (strncmp(*at, what, n) != 0)
		return false;
	*at += n;
	return true;
}

static bool take_span(const char **at, struct span *ret)
{
	if (**at != '"')
		return false;
	const unsigned char *begin = (const unsigned char *)*at + 1, *c = begin;
	unsigned char all = 0;
	for (; *c >= 0x20 && *c != '"' && *c != '\\'; c++)
		all |= *c;
	*ret = (struct span){(const char *)begin, (size_t)(c - begin)};
	*at = (const char *)c;
	return skip(at, "\"") && (all < 0x80 || utf8_valid(ret->at, ret->n));
}

/* "name":{"S":"text"}, or N. */
static bool take_plain(const char **at, struct plain_attribute *ret)
{
	if (!take_span(at, &ret->name))
		return false;
	if (skip(at, ":{\"S\":"))
		ret->type = VALUE_STRING;
	else if (skip(at, ":{\"N\":"))
		ret->type = VALUE_NUMBER;
	else
		return false;
	return take_span(at, &ret->value) && skip(at, "}");
}

/* A usual item has strings and numbers only, and no space between them. Returns how many attributes
 * it has, or 0 if it is not usual. */
static size_t take_plain_item(
	const char *text, struct plain_attribute ret[static PLAIN_MAX], size_t *ret_bytes)
{
	const char *at = text;
	size_t n = 0;
	if (!skip(&at, "{"))
		return 0;
	do
		if (n == PLAIN_MAX || !take_plain(&at, &ret[n++]))
			return 0;
	while (skip(&at, ","));
	if (!skip(&at, "}"))
		return 0;
	*ret_bytes = (size_t)(at - text);
	return n;
}

/* The span in a copy of the text, with a NUL in place of its quote. */
static char *span_in(char *block, const char *text, struct span span)
{
	char *copy = block + (span.at - text);
	copy[span.n] = '\0';
	return copy;
}

/* 0, -ENOMEM, or -EEXIST if two attributes have one name. */
static int set_plain(struct item *ret, const char *text, size_t bytes,
	const struct plain_attribute *attributes, size_t n)
{
	struct item item = {.block = malloc(bytes)};
	int error = item.block ? item_reserve(&item, n) : -ENOMEM;
	if (!error)
		memcpy(item.block, text, bytes);
	for (size_t i = 0; i < n && !error; i++) {
		const struct plain_attribute *from = &attributes[i];
		const struct attribute attribute = {.name = span_in(item.block, text, from->name),
			.value = span_in(item.block, text, from->value),
			.n = from->value.n,
			.type = from->type,
			.is_in_block = true};
		if (item_find(&item, attribute.name))
			error = -EEXIST;
		else
			item.attributes[item.count++] = attribute;
	}
	if (error)
		item_clear(&item);
	else
		*ret = item;
	return error;
}

int item_read(const char *text, size_t n, const struct call_limits *limits, struct item *ret,
	size_t *ret_bytes)
{
	struct plain_attribute attributes[PLAIN_MAX];
	size_t bytes;
	const size_t count = take_plain_item(text, attributes, &bytes);
	int error = count ? set_plain(ret, text, bytes, attributes, count) : -EEXIST;
	if (error == -EEXIST) {
		json_t *json = json_read_first(text, n, limits, &bytes);
		error = json ? item_from_json(json, ret) : -EBADMSG;
		json_decref(json);
	}
	if (!error)
		*ret_bytes = bytes;
	return error;
}
