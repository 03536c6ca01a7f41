#include "store/store_sqlite_doc.h"
#include "dynamodb/item_json.h"
#include <errno.h>
#include <string.h>

#define NAME_BYTES 64 /* of an attribute that is read without a tree, with its NUL */

static bool skip(const char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* The n characters between two quotes, if they are ASCII without an escape. */
static bool read_string(const char **at, const char **ret, size_t *ret_n)
{
	if (!skip(at, '"'))
		return false;
	*ret = *at;
	while (**at >= 0x20 && **at < 0x7f && **at != '"' && **at != '\\')
		++*at;
	*ret_n = (size_t)(*at - *ret);
	return skip(at, '"');
}

/* "name":{"S":"text"}, or N. 1 if it was, 0 if it is written otherwise, -ENOMEM. */
static int read_attribute(const char **at, struct item *ret)
{
	const char *name, *type, *value;
	size_t name_bytes, type_bytes, n;
	char copy[NAME_BYTES];

	if (!read_string(at, &name, &name_bytes) || name_bytes >= sizeof copy || !skip(at, ':') ||
		!skip(at, '{') || !read_string(at, &type, &type_bytes) || type_bytes != 1 ||
		(*type != 'S' && *type != 'N') || !skip(at, ':') || !read_string(at, &value, &n) ||
		!skip(at, '}'))
		return 0;
	memcpy(copy, name, name_bytes);
	copy[name_bytes] = '\0';
	int r = item_set(ret, copy, *type == 'S' ? VALUE_STRING : VALUE_NUMBER, value, n);
	return r ? r : 1;
}

/* Reads a doc as doc_encode writes nearly all of them, at a fraction of the cost of a tree. Returns
 * as above; the item may be filled in part. */
static int read_plain(const char *doc, struct item *ret)
{
	const char *at = doc;
	int r = skip(&at, '{');

	while (r > 0 && (r = read_attribute(&at, ret)) > 0 && skip(&at, ','))
		r = ret->count < ITEM_ATTRIBUTES_MAX;
	return r > 0 ? skip(&at, '}') && !*at : r;
}

static int read_json(const char *doc, struct item *ret)
{
	json_t *json = json_loads(doc, JSON_ALLOW_NUL, NULL);
	int r = json ? item_from_json(json, ret) : -EBADMSG;

	json_decref(json);
	return r;
}

int doc_decode(struct item_key key, const char *doc, struct item *ret)
{
	int r = read_plain(doc, ret);

	if (!r)
		item_clear(ret);
	r = r > 0 ? 0 : r ? r : read_json(doc, ret);
	if (!r)
		r = item_set_string(ret, "pk", key.pk);
	if (!r)
		r = item_set_string(ret, "sk", key.sk);
	if (r)
		item_clear(ret);
	return r;
}

static bool is_key(const struct attribute *attribute)
{
	return strcmp(attribute->name, "pk") == 0 || strcmp(attribute->name, "sk") == 0;
}

static bool is_text(const struct attribute *attribute)
{
	return attribute->type == VALUE_BYTES || utf8_valid(attribute->value, attribute->n);
}

int doc_encode(const struct item *item, char **ret_doc)
{
	struct text doc = TEXT(DOC_BYTES);

	text_add_char(&doc, '{');
	for (size_t i = 0; i < item->count && !doc.error; i++) {
		const struct attribute *attribute = &item->attributes[i];
		if (is_key(attribute))
			continue;
		if (doc.len > 1)
			text_add_char(&doc, ',');
		if (is_text(attribute))
			item_add_attribute(&doc, attribute);
		else
			doc.error = -EILSEQ;
	}
	text_add_char(&doc, '}');
	int r = doc.error;
	if (r)
		text_clear(&doc);
	else
		*ret_doc = doc.data;
	return r;
}

static const char *reason_of_error(int r)
{
	switch (r) {
	case -EBADMSG:
		return "is not the JSON of an item: fix its row or delete it";
	case -EMSGSIZE:
		return "is larger than 400 KB";
	case -EILSEQ:
		return "holds text that is not UTF-8";
	default:
		return "out of memory";
	}
}

enum outcome doc_failure(struct item_key key, int r, struct problem *ret_problem)
{
	struct text sk = TEXT(200);

	text_add_escaped_string(&sk, key.sk);
	problem_set(ret_problem, "item \"%s\" of the mark store %s", text_string(&sk),
		reason_of_error(r));
	text_clear(&sk);
	return r == -ENOMEM ? OUTCOME_LOCAL : r == -EBADMSG ? OUTCOME_SETUP : OUTCOME_INVALID;
}
