/* Items as JSON, for the requests and replies of DynamoDB, and for the objects of locks in S3. Most
 * items have a plain form, and these are read without building a tree. */
#include "store/item_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_MAX 32 /* the most attributes of an item that is read without a tree */
#define NOT_PLAIN 1  /* read_plain_item() cannot read the item, which may still be valid */

void json_add_string(struct text *ret, const char *s, size_t n)
{
	text_add_char(ret, '"');
	size_t done = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		text_add_bytes(ret, s + done, i - done);
		done = i + 1;
		if (c >= 0x20)
			text_addf(ret, "\\%c", c);
		else
			text_addf(ret, "\\u%04x", c);
	}
	text_add_bytes(ret, s + done, n - done);
	text_add_char(ret, '"');
}

void json_add_member(struct text *ret, const char *name)
{
	if (ret->len && ret->data[ret->len - 1] != '{')
		text_add_char(ret, ',');
	json_add_string(ret, name, strlen(name));
	text_add_char(ret, ':');
}

void json_add_text(struct text *ret, const char *name, const char *value)
{
	json_add_member(ret, name);
	json_add_string(ret, value, strlen(value));
}

void item_add_value(struct text *ret, enum value_type type, const char *value, size_t n)
{
	if (type == VALUE_OTHER) {
		text_add_bytes(ret, value, n);
		return;
	}
	text_add_bytes(ret, (char[]){'{', '"', (char)type, '"', ':'}, 5);
	if (type == VALUE_BYTES) {
		text_add_char(ret, '"');
		text_add_base64(ret, value, n);
		text_add_char(ret, '"');
	} else {
		json_add_string(ret, value, n);
	}
	text_add_char(ret, '}');
}

void item_add_attribute(struct text *ret, const struct attribute *attribute)
{
	json_add_member(ret, attribute->name);
	item_add_value(ret, attribute->type, attribute->value, attribute->n);
}

/* Sets an attribute from its value {"TYPE": …}. Returns 0, -EBADMSG or -ENOMEM. A value of a type
 * other than S, N and B is kept as its JSON. */
static int set_from_json(struct item *ret, const char *name, json_t *value)
{
	void *only = json_object_iter(value);
	if (!only || json_object_size(value) != 1)
		return -EBADMSG;
	const char *type = json_object_iter_key(only);
	const json_t *inner = json_object_iter_value(only);
	const char *string = json_string_value(inner);
	const bool is_bytes = strcmp(type, "B") == 0;
	if (!is_bytes && strcmp(type, "S") != 0 && strcmp(type, "N") != 0) {
		char *text = json_dumps(value, JSON_COMPACT);
		int error = text ? item_set(ret, name, VALUE_OTHER, text, strlen(text)) : -ENOMEM;
		free(text);
		return error;
	}
	if (!string)
		return -EBADMSG;
	if (!is_bytes)
		return item_set(ret, name, *type == 'S' ? VALUE_STRING : VALUE_NUMBER, string,
			json_string_length(inner));
	unsigned char *bytes = malloc(3 * (strlen(string) / 4) + 1);
	if (!bytes)
		return -ENOMEM;
	const int n = base64_decode(string, bytes);
	int error = n < 0 ? -EBADMSG : item_set(ret, name, VALUE_BYTES, bytes, (size_t)n);
	free(bytes);
	return error;
}

/* The state of json_read_some(): the bytes to hand out next, and the number of values so far. */
struct json_source {
	const char *bytes;
	size_t left, n_values;
	const struct call_limits *limits;
};

/* Implements json_load_callback_t: hands out the next bytes, at most n, and returns their number,
 * or -1 to end the reading with an error. Also counts the values, to refuse a page that has more
 * than JSON_VALUES_MAX. The count is of commas and opening brackets, one of which stands before
 * each value but the first. Those inside strings are counted too, so the count may be too high;
 * that matters only for a page that consists of little else. */
static size_t json_read_some(void *buffer, size_t n, void *arg)
{
	struct json_source *source = arg;
	const struct call_limits *limits = source->limits;
	const char *bytes = source->bytes;
	n = n < source->left ? n : source->left;
	for (size_t i = 0; i < n; i++)
		source->n_values += bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{';
	/* JSON has no NUL, and jansson would overlook one. */
	if (source->n_values > JSON_VALUES_MAX || memchr(bytes, '\0', n))
		return (size_t)-1;
	if (limits && limits->abandon && limits->abandon(limits->abandon_arg))
		return (size_t)-1;
	memcpy(buffer, bytes, n);
	source->bytes += n;
	source->left -= n;
	return n;
}

json_t *json_read(const struct text *text, const struct call_limits *limits)
{
	struct json_source source = {text_string(text), text->len, 0, limits};
	return json_load_callback(json_read_some, &source, JSON_ALLOW_NUL, NULL);
}

int item_from_json(const json_t *json, struct item *ret)
{
	if (!json_is_object(json) || json_object_size(json) > ITEM_ATTRIBUTES_MAX)
		return -EBADMSG;
	struct item item = {0};
	json_t *object = (json_t *)(uintptr_t)json;
	for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
		int error =
			set_from_json(&item, json_object_iter_key(i), json_object_iter_value(i));
		if (error < 0) {
			item_clear(&item);
			return error;
		}
	}
	*ret = item;
	return 0;
}

/* If the text at *at begins with `what`, moves *at past it. Returns whether it does. */
static bool skip_text(const char **at, const char *what)
{
	const size_t n = strlen(what);
	if (strncmp(*at, what, n) != 0)
		return false;
	*at += n;
	return true;
}

/* Returns a pointer to the string that begins at *at, in the text itself, and moves *at past it.
 * NULL if there is none, or if it has escapes or is not UTF-8. The string ends at its closing
 * quote. */
static char *take_string(const char **at, size_t *ret_n)
{
	const char *begin = *at + 1, *end = begin;
	unsigned char bits = 0; /* all bytes, or-ed: below 0x80 if all of them are ASCII */
	if (**at != '"')
		return NULL;
	for (; (unsigned char)*end >= 0x20 && *end != '"' && *end != '\\'; end++)
		bits |= (unsigned char)*end;
	*at = end;
	*ret_n = (size_t)(end - begin);
	const bool is_whole = skip_text(at, "\"") && (bits < 0x80 || utf8_valid(begin, *ret_n));
	return is_whole ? (char *)(uintptr_t)begin : NULL;
}

/* Reads one attribute, "name":{"S":"text"} or the same with N, and moves *at past it. Its strings
 * point into the text. Returns false if it is not plain. */
static bool read_plain_attribute(const char **at, struct attribute *ret, size_t *ret_name_bytes)
{
	*ret = (struct attribute){.name = take_string(at, ret_name_bytes), .is_in_block = true};
	if (!ret->name)
		return false;
	if (skip_text(at, ":{\"S\":"))
		ret->type = VALUE_STRING;
	else if (skip_text(at, ":{\"N\":"))
		ret->type = VALUE_NUMBER;
	else
		return false;
	ret->value = take_string(at, &ret->n);
	return ret->value && skip_text(at, "}");
}

/* Reads a plain item, as nearly all are: it has only strings and numbers without escapes, and no
 * space between them. The item points into a copy of its text, with a NUL in place of each closing
 * quote. Returns 0, -ENOMEM, or NOT_PLAIN, also if two attributes have one name. */
static int read_plain_item(const char *text, struct item *ret, size_t *ret_bytes)
{
	struct attribute attributes[PLAIN_MAX];
	struct item item = {0};
	const char *at = text;
	size_t name_bytes[PLAIN_MAX], n = 0;
	if (*at++ != '{')
		return NOT_PLAIN;
	do {
		if (n == PLAIN_MAX || !read_plain_attribute(&at, &attributes[n], &name_bytes[n]))
			return NOT_PLAIN;
		n++;
	} while (skip_text(&at, ","));
	if (!skip_text(&at, "}"))
		return NOT_PLAIN;
	*ret_bytes = (size_t)(at - text);
	item.block = malloc(*ret_bytes);
	int error = item.block ? item_reserve(&item, n) : -ENOMEM;
	if (!error)
		memcpy(item.block, text, *ret_bytes);
	for (size_t i = 0; i < n && !error; i++) {
		struct attribute *a = &item.attributes[i];
		/* its strings point into `text`; now they are moved to the copy */
		*a = attributes[i];
		a->name = item.block + (a->name - text);
		a->value = item.block + (a->value - text);
		a->name[name_bytes[i]] = a->value[a->n] = '\0';
		if (item_find(&item, a->name))
			error = NOT_PLAIN;
		else
			item.count++;
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
	size_t bytes;
	int error = read_plain_item(text, ret, &bytes);
	if (error == NOT_PLAIN) { /* jansson reads any item, or reports that it is none */
		struct json_source source = {text, n, 0, limits};
		json_error_t told;
		json_t *json = json_load_callback(
			json_read_some, &source, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &told);
		error = json ? item_from_json(json, ret) : -EBADMSG;
		/* With JSON_DISABLE_EOF_CHECK, `position` is the length of the object. */
		bytes = json ? (size_t)told.position : 0;
		json_decref(json);
	}
	if (!error)
		*ret_bytes = bytes;
	return error;
}

int item_to_doc(const struct item *item, struct text *ret)
{
	text_add_char(ret, '{');
	for (size_t i = 0; i < item->count && !ret->error; i++) {
		const struct attribute *attribute = &item->attributes[i];
		if (item_is_key(attribute->name))
			continue;
		if (attribute->type == VALUE_BYTES || utf8_valid(attribute->value, attribute->n))
			item_add_attribute(ret, attribute);
		else
			ret->error = -EILSEQ;
	}
	text_add_char(ret, '}');
	return ret->error;
}

int item_from_doc(struct item_key key, const char *doc, struct item *ret)
{
	const size_t n = strlen(doc);
	size_t bytes;
	int error = item_read(doc, n, NULL, ret, &bytes);
	if (!error && bytes != n) /* the text goes on after the item's object */
		error = -EBADMSG;
	if (!error)
		error = item_set_string(ret, "pk", key.pk);
	if (!error)
		error = item_set_string(ret, "sk", key.sk);
	if (error)
		item_clear(ret);
	return error;
}
