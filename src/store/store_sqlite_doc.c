#include "store/store_sqlite_doc.h"
#include "dynamodb/item_json.h"
#include <errno.h>
#include <string.h>

int doc_decode(struct item_key key, const char *doc, struct item *ret)
{
	const size_t n = strlen(doc);
	size_t bytes;
	int r = item_read(doc, n, NULL, ret, &bytes);

	if (!r && bytes != n)
		r = -EBADMSG;
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
