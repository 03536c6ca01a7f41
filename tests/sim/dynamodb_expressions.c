#include "dynamodb_expressions.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct reader {
	const char *at;
	const json_t *names, *values, *item;
	bool is_invalid;
	char word[256]; /* the last word read */
};

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || strchr("_-.#:", c);
}

/* Returns the next word or sign without taking it. */
static const char *peek(struct reader *r)
{
	r->at += strspn(r->at, " ");
	size_t n = 0;
	while (r->at[n] && is_word_char(r->at[n]))
		n++;
	if (!n && *r->at)
		n = (r->at[0] == '<' && (r->at[1] == '=' || r->at[1] == '>')) ||
				    (r->at[0] == '>' && r->at[1] == '=')
			    ? 2
			    : 1;
	if (n >= sizeof r->word)
		n = sizeof r->word - 1;
	memcpy(r->word, r->at, n);
	r->word[n] = 0;
	return r->word;
}

static void take(struct reader *r)
{
	peek(r);
	r->at += strlen(r->word);
}

static bool takes(struct reader *r, const char *word)
{
	if (strcasecmp(peek(r), word) != 0)
		return false;
	take(r);
	return true;
}

static const char *name_of(struct reader *r, char *ret, size_t size)
{
	take(r);
	const char *name = r->word;
	if (*name == '#')
		name = json_string_value(json_object_get(r->names, name));
	if (!name || !*name)
		r->is_invalid = true;
	snprintf(ret, size, "%s", name ? name : "");
	return ret;
}

static const json_t *operand(struct reader *r)
{
	char name[256];
	if (*peek(r) == ':') {
		take(r);
		const json_t *value = json_object_get(r->values, r->word);
		r->is_invalid = r->is_invalid || !value;
		return value;
	}
	return json_object_get(r->item, name_of(r, name, sizeof name));
}

static const char *type_of(const json_t *value, const json_t **ret)
{
	void *only = json_object_iter((json_t *)(uintptr_t)value);
	*ret = json_object_iter_value(only);
	return only ? json_object_iter_key(only) : "";
}

int value_compare(const json_t *a, const json_t *b)
{
	const json_t *x, *y;
	const char *type = type_of(a, &x);
	type_of(b, &y);
	const char *s = json_string_value(x), *t = json_string_value(y);
	if (!s || !t)
		return 0;
	if (strcmp(type, "N") == 0) {
		const long double m = strtold(s, NULL), n = strtold(t, NULL);
		return m < n ? -1 : m > n;
	}
	const int order = strcmp(s, t);
	return order < 0 ? -1 : order > 0;
}

static bool is_same_type(const json_t *a, const json_t *b)
{
	const json_t *inner;
	return a && b && strcmp(type_of(a, &inner), type_of(b, &inner)) == 0;
}

bool value_equals(const json_t *a, const json_t *b)
{
	const json_t *x;
	if (!is_same_type(a, b))
		return false;
	const char *type = type_of(a, &x);
	if (strcmp(type, "N") == 0 || strcmp(type, "S") == 0)
		return value_compare(a, b) == 0;
	return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b);
}

static bool either(struct reader *r);

static bool compare(struct reader *r)
{
	const json_t *left = operand(r);
	if (takes(r, "BETWEEN")) {
		const json_t *low = operand(r);
		r->is_invalid = r->is_invalid || !takes(r, "AND");
		const json_t *high = operand(r);
		return is_same_type(left, low) && is_same_type(left, high) &&
		       value_compare(left, low) >= 0 && value_compare(left, high) <= 0;
	}
	take(r);
	char sign[3];
	snprintf(sign, sizeof sign, "%.2s", r->word);
	const json_t *right = operand(r);
	if (strcmp(sign, "=") == 0)
		return value_equals(left, right);
	if (strcmp(sign, "<>") == 0)
		return !value_equals(left, right);
	if (!strchr("<>", *sign) || !*sign)
		r->is_invalid = true;
	if (!is_same_type(left, right))
		return false;
	const int order = value_compare(left, right);
	return order == 0 ? sign[1] == '=' : (order < 0) == (*sign == '<');
}

static bool one(struct reader *r)
{
	char name[256];
	if (takes(r, "NOT"))
		return !one(r);
	if (takes(r, "(")) {
		const bool holds = either(r);
		r->is_invalid = r->is_invalid || !takes(r, ")");
		return holds;
	}
	const bool exists = strcasecmp(peek(r), "attribute_exists") == 0;
	if (exists || strcasecmp(peek(r), "attribute_not_exists") == 0) {
		take(r);
		r->is_invalid = r->is_invalid || !takes(r, "(");
		const bool is_there =
			json_object_get(r->item, name_of(r, name, sizeof name)) != NULL;
		r->is_invalid = r->is_invalid || !takes(r, ")");
		return is_there == exists;
	}
	return compare(r);
}

static bool both(struct reader *r)
{
	bool holds = one(r);
	while (!r->is_invalid && takes(r, "AND"))
		holds = one(r) && holds;
	return holds;
}

static bool either(struct reader *r)
{
	bool holds = both(r);
	while (!r->is_invalid && takes(r, "OR"))
		holds = both(r) || holds;
	return holds;
}

enum expression_result condition_holds(
	const char *text, const json_t *names, const json_t *values, const json_t *item)
{
	struct reader r = {.at = text, .names = names, .values = values, .item = item};
	const bool holds = either(&r);
	if (r.is_invalid || *peek(&r))
		return EXPRESSION_INVALID;
	return holds ? EXPRESSION_TRUE : EXPRESSION_FALSE;
}

static void set(json_t *item, const char *name, const json_t *value)
{
	json_object_set_new(item, name, json_deep_copy(value));
}

/* Returns false if one of the two is no number. Sets are not simulated. */
static bool add_number(json_t *item, const char *name, const json_t *value)
{
	const json_t *old = json_object_get(item, name);
	const char *more = json_string_value(json_object_get(value, "N"));
	const char *before = old ? json_string_value(json_object_get(old, "N")) : "0";
	char text[32];
	if (!more || !before)
		return false;
	snprintf(text, sizeof text, "%lld", strtoll(before, NULL, 10) + strtoll(more, NULL, 10));
	json_object_set_new(item, name, json_pack("{s:s}", "N", text));
	return true;
}

bool update_apply(const char *text, const json_t *names, const json_t *values, json_t *item)
{
	struct reader r = {.at = text, .names = names, .values = values, .item = item};
	char name[256];
	while (*peek(&r) && !r.is_invalid) {
		const char verb = (char)toupper((unsigned char)*peek(&r));
		if (!takes(&r, "SET") && !takes(&r, "REMOVE") && !takes(&r, "ADD"))
			return false;
		do {
			name_of(&r, name, sizeof name);
			if (verb == 'R') {
				json_object_del(item, name);
				continue;
			}
			if (verb == 'S' && !takes(&r, "="))
				return false;
			const json_t *value = operand(&r);
			if (!value)
				return false;
			if (verb == 'S')
				set(item, name, value);
			else if (!add_number(item, name, value))
				return false;
		} while (takes(&r, ","));
	}
	return !r.is_invalid;
}

/* --- PartiQL */

static bool quoted(struct reader *r, char quote, char *ret, size_t size)
{
	r->at += strspn(r->at, " ");
	if (*r->at != quote)
		return false;
	const char *end = strchr(r->at + 1, quote);
	if (!end)
		return false;
	snprintf(ret, size, "%.*s", (int)(end - r->at - 1), r->at + 1);
	r->at = end + 1;
	return true;
}

/* Reads a name with or without quotes. */
static bool plain_name(struct reader *r, char *ret, size_t size)
{
	if (*peek(r) == '"')
		return quoted(r, '"', ret, size);
	take(r);
	snprintf(ret, size, "%s", r->word);
	return is_word_char(*ret);
}

/* Reads a question mark, a quoted text, or a number. */
static const json_t *next_value(struct reader *r, size_t *next, struct statement *statement)
{
	char text[256];
	if (takes(r, "?")) {
		const json_t *value = json_array_get(r->values, (*next)++);
		r->is_invalid = r->is_invalid || !value;
		return value;
	}
	const bool is_text = quoted(r, '\'', text, sizeof text);
	if (!is_text) {
		take(r);
		snprintf(text, sizeof text, "%s", r->word);
		r->is_invalid = r->is_invalid || !isdigit((unsigned char)*text);
	}
	json_t *value = json_pack("{s:s}", is_text ? "S" : "N", text);
	json_array_append_new(statement->literals, value);
	return value;
}

static bool read_insert(struct reader *r, struct statement *ret)
{
	char name[256];
	size_t next = 0;
	if (!takes(r, "INTO") || !plain_name(r, ret->table, sizeof ret->table) ||
		!takes(r, "VALUE") || !takes(r, "{"))
		return false;
	do {
		if (!quoted(r, '\'', name, sizeof name))
			return false;
		/* The reader would take ":" for the beginning of the name of a value. */
		r->at += strspn(r->at, " ");
		if (*r->at++ != ':')
			return false;
		const json_t *value = next_value(r, &next, ret);
		if (r->is_invalid)
			return false;
		set(ret->item, name, value);
	} while (takes(r, ","));
	return takes(r, "}") && next == json_array_size(r->values);
}

static bool read_changes(struct reader *r, bool lists, size_t *next, struct statement *ret)
{
	char name[256];
	unsigned n = 0;
	bool in_removes = false;
	for (;;) {
		const bool sets = takes(r, "SET");
		if (!sets && !takes(r, "REMOVE"))
			return n > 0;
		if (lists && (sets ? n > 0 : in_removes))
			return false;
		in_removes = !sets;
		do {
			if (!plain_name(r, name, sizeof name))
				return false;
			if (!sets) {
				json_array_append_new(ret->removes, json_string(name));
				continue;
			}
			if (!takes(r, "="))
				return false;
			const json_t *value = next_value(r, next, ret);
			if (r->is_invalid)
				return false;
			set(ret->sets, name, value);
		} while (lists && takes(r, ","));
		n++;
	}
}

static bool read_where(struct reader *r, size_t *next, struct statement *ret)
{
	char name[256];
	if (!takes(r, "WHERE"))
		return false;
	do {
		if (!plain_name(r, name, sizeof name))
			return false;
		if (takes(r, "IS")) {
			if (!takes(r, "MISSING"))
				return false;
			json_array_append_new(ret->conditions, json_pack("[sn]", name));
			continue;
		}
		if (!takes(r, "="))
			return false;
		const json_t *value = next_value(r, next, ret);
		if (r->is_invalid)
			return false;
		if (strcmp(name, "pk") == 0 || strcmp(name, "sk") == 0)
			set(ret->item, name, value);
		else
			json_array_append_new(
				ret->conditions, json_pack("[so]", name, json_deep_copy(value)));
	} while (takes(r, "AND"));
	return !*peek(r);
}

bool statement_read(const char *text, const json_t *parameters, bool lists, struct statement *ret)
{
	struct reader r = {.at = text, .values = parameters};
	size_t next = 0;
	*ret = (struct statement){.item = json_object(),
		.sets = json_object(),
		.removes = json_array(),
		.conditions = json_array(),
		.literals = json_array()};
	ret->is_insert = takes(&r, "INSERT");
	if (ret->is_insert)
		return read_insert(&r, ret);
	return takes(&r, "UPDATE") && plain_name(&r, ret->table, sizeof ret->table) &&
	       read_changes(&r, lists, &next, ret) && read_where(&r, &next, ret) &&
	       next == json_array_size(parameters);
}

void statement_clear(struct statement *statement)
{
	json_decref(statement->item);
	json_decref(statement->sets);
	json_decref(statement->removes);
	json_decref(statement->conditions);
	json_decref(statement->literals);
}
