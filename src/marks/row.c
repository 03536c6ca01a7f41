/* Rows by the tables of their fields: marks, sessions, buckets, jobs and settings are read and
 * written with these functions, and with no others. The meaning of a row is unknown here. */
#include "marks/row.h"
#include "base/checksum.h"
#include "store/item_pack.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 32 /* more than any word of a FIELD_WORD or FIELD_CHECKSUM has, with its NUL */

static bool is_number(const struct row_field *field)
{
	return field->kind == FIELD_NUMBER || field->kind == FIELD_SIZE ||
	       field->kind == FIELD_INT || field->kind == FIELD_FLAG;
}

static enum value_type type_of(const struct row_field *field)
{
	return is_number(field) ? VALUE_NUMBER : VALUE_STRING;
}

static bool is_text(const struct row_field *field)
{
	return field->kind == FIELD_TEXT || field->kind == FIELD_ID || field->kind == FIELD_COPY;
}

/* Reads a text, which may not have a NUL within it, into `ret` if there is room. Returns the number
 * of its bytes with the NUL at its end, also without room for them, or -EBADMSG. */
static int read_text(const struct row_field *field, const struct found_attribute *attribute,
	char *ret, size_t room)
{
	const size_t n = found_text(attribute, ret, 0); /* only its length */
	const bool is_too_long = field->kind != FIELD_COPY && n >= field->size;
	const bool lacks_id = field->kind == FIELD_ID && !n;
	/* The other shapes of a text are digits. */
	const bool has_nul = attribute->shape == SHAPE_STRING &&
			     memchr(attribute->bytes, '\0', attribute->n) != NULL;
	if (is_too_long || lacks_id || has_nul)
		return -EBADMSG;
	found_text(attribute, ret, room);
	return (int)n + 1;
}

/* Reads a text that should be a word. "" stands for one that is longer than any word. */
static void read_word(const struct found_attribute *attribute, char ret[static WORD_BYTES])
{
	if (found_text(attribute, ret, WORD_BYTES) >= WORD_BYTES)
		*ret = '\0';
}

/* Stores the value of a field that is no text, if there is room. Returns the number of its bytes.
 */
static int store_value(const struct row_field *field, const void *value, char *ret, size_t room)
{
	if (field->size <= room)
		memcpy(ret, value, field->size);
	return (int)field->size;
}

/* Reads the value of an attribute as its field has it, and stores it in `ret` if it has at most
 * `room` bytes. The value of a FIELD_COPY is its string. Returns the number of its bytes, even if
 * there was no room, or -EBADMSG. */
static int read_value(const struct row_field *field, const struct found_attribute *attribute,
	char *ret, size_t room)
{
	char word[WORD_BYTES];
	int64_t number = 0;
	if (attribute->type != type_of(field) ||
		(is_number(field) && found_number(attribute, &number)))
		return -EBADMSG;
	switch (field->kind) {
	case FIELD_TEXT:
	case FIELD_ID:
	case FIELD_COPY:
		return read_text(field, attribute, ret, room);
	case FIELD_NUMBER:
		return store_value(field, &number, ret, room);
	case FIELD_SIZE:
		return number < 0 ? -EBADMSG : store_value(field, &number, ret, room);
	case FIELD_INT: {
		const int value = (int)number;
		return value == number ? store_value(field, &value, ret, room) : -EBADMSG;
	}
	case FIELD_FLAG: {
		const bool value = number == 1;
		return store_value(field, &value, ret, room);
	}
	case FIELD_CHECKSUM: {
		read_word(attribute, word);
		const enum checksum value = checksum_named(word, strlen(word));
		return store_value(field, &value, ret, room);
	}
	case FIELD_WORD: {
		read_word(attribute, word);
		int value = 0;
		while (field->words[value] && strcmp(word, field->words[value]) != 0)
			value++;
		return field->words[value] ? store_value(field, &value, ret, room) : -EBADMSG;
	}
	}
	return -EBADMSG;
}

/* Returns the field of an attribute, or NULL. Rows have their attributes mostly in the order of the
 * table, so the search begins at *next, which becomes the place after the field. */
static const struct row_field *find_field(
	const struct row_table *table, const char *name, size_t *next)
{
	if (item_is_key(name))
		return NULL;
	for (size_t tried = 0; tried < table->n; tried++) {
		const struct row_field *field = &table->fields[*next];
		*next = *next + 1 < table->n ? *next + 1 : 0;
		if (*field->name == *name && strcmp(field->name, name) == 0)
			return field;
	}
	return NULL;
}

int row_read(const struct row_table *table, const struct item *item, void *ret)
{
	const struct found_item found = {.item = item};
	struct found_position position = {0};
	struct found_attribute attribute;
	size_t next = 0;
	int result = 0;
	while (found_next(&found, &position, &attribute) > 0) {
		const struct row_field *field = find_field(table, attribute.name, &next);
		if (!field)
			continue;
		char *at = (char *)ret + field->at;
		const bool is_copy = field->kind == FIELD_COPY;
		if (read_value(field, &attribute, at, is_copy ? 0 : field->size) < 0) {
			result = -EBADMSG;
		} else if (is_copy) {
			free(*(char **)at);
			*(char **)at = strndup(attribute.bytes, attribute.n);
			if (!*(char **)at)
				return -ENOMEM;
		}
	}
	return result;
}

/* A packed row has, for each field that the item has, one byte with the field's index + 1, and then
 * its value. A 0 byte ends the row. */
struct row_packed row_pack(
	const struct row_table *table, const struct found_item *found, char *ret, size_t room)
{
	struct row_packed packed = {0};
	struct found_position position = {0};
	struct found_attribute attribute;
	size_t n = 0, next = 0;
	int r;
	while ((r = found_next(found, &position, &attribute)) > 0) {
		const struct row_field *field = find_field(table, attribute.name, &next);
		if (!field)
			continue;
		/* Without room, the bytes are only counted: the caller packs again with more. */
		const bool has_room = n + 1 < room;
		const int bytes = read_value(field, &attribute, ret + (has_room ? n + 1 : 0),
			has_room ? room - n - 1 : 0);
		if (bytes < 0) {
			packed.is_damaged = true;
			continue;
		}
		if (has_room)
			ret[n] = (char)(field - table->fields + 1);
		n += 1 + (size_t)bytes;
		packed.groups |= field->groups;
	}
	if (n < room)
		ret[n] = '\0';
	packed.is_damaged |= r < 0;
	packed.bytes = n + 1;
	return packed;
}

void row_unpack(const struct row_table *table, const char *packed, void *ret)
{
	while (*packed) {
		const struct row_field *field = &table->fields[*packed++ - 1];
		const size_t bytes = is_text(field) ? strlen(packed) + 1 : field->size;
		char *at = (char *)ret + field->at;
		if (field->kind == FIELD_COPY) /* a char *, which is set to point into `packed` */
			memcpy(at, &packed, sizeof packed);
		else
			memcpy(at, packed, bytes);
		packed += bytes;
	}
}

/* Makes the text of a number in the write, and returns it. */
static const char *add_number(struct row_write *write, int64_t number)
{
	assert(write->n_numbers < sizeof write->numbers / sizeof *write->numbers);
	char *decimal = write->numbers[write->n_numbers++];
	snprintf(decimal, sizeof write->numbers[0], "%" PRId64, number);
	return decimal;
}

/* Returns the text of a field's value, or NULL if it has none. The text of a number is made in the
 * write. */
static const char *value_of(
	struct row_write *write, const struct row_field *field, const void *from)
{
	const char *at = (const char *)from + field->at, *text = at;
	if (is_number(field)) {
		const int64_t number = field->kind == FIELD_FLAG  ? *(const bool *)at
				       : field->kind == FIELD_INT ? *(const int *)at
								  : *(const int64_t *)at;
		return number || field->is_always ? add_number(write, number) : NULL;
	}
	if (field->kind == FIELD_CHECKSUM)
		text = checksum_kinds[*(const enum checksum *)at].name;
	else if (field->kind == FIELD_WORD)
		text = field->words[*(const int *)at];
	else if (field->kind == FIELD_COPY)
		text = *(const char *const *)at ? *(const char *const *)at : "";
	return *text || field->is_always ? text : NULL;
}

static void add_change(struct row_write *write, const struct row_field *field, const char *value)
{
	assert(write->n_changes < sizeof write->changes / sizeof *write->changes);
	write->changes[write->n_changes++] = (struct change){field->name, type_of(field), value, 0};
}

static void add_condition(struct row_write *write, const struct condition *condition)
{
	assert(write->n_conditions < sizeof write->conditions / sizeof *write->conditions);
	write->conditions[write->n_conditions++] = *condition;
}

void row_set(
	struct row_write *write, const struct row_table *table, unsigned groups, const void *from)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct row_field *field = &table->fields[i];
		if (!(field->groups & groups))
			continue;
		const char *value = value_of(write, field, from);
		if (value || !write->removes_nothing) /* NULL removes the attribute */
			add_change(write, field, value);
	}
}

void row_unset(struct row_write *write, const struct row_table *table, unsigned groups)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->fields[i].groups & groups)
			add_change(write, &table->fields[i], NULL);
}

void row_expect(
	struct row_write *write, const struct row_table *table, unsigned groups, const void *from)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct row_field *field = &table->fields[i];
		if (!(field->groups & groups))
			continue;
		const char *value = from ? value_of(write, field, from) : NULL;
		add_condition(write, &(struct condition){field->name,
					     value ? CONDITION_EQUALS : CONDITION_ABSENT,
					     type_of(field), value});
	}
}

void row_expect_test(struct row_write *write, const char *attribute, enum condition_test test)
{
	add_condition(write, &(struct condition){attribute, test, VALUE_STRING, NULL});
}

/* A put has an item in place of changes. The item borrows the values of the changes. A change
 * without a value is skipped there. */
static void make_request(const struct row_write *write, struct row_request *ret)
{
	const bool puts = write->kind == ROW_PUTS;
	_Static_assert(sizeof ret->attributes / sizeof *ret->attributes ==
			       sizeof write->changes / sizeof *write->changes,
		"a put has room for each change");
	ret->item = (struct item){.attributes = ret->attributes};
	for (size_t i = 0; puts && i < write->n_changes; i++) {
		const struct change *change = &write->changes[i];
		if (change->value)
			ret->attributes[ret->item.count++] =
				(struct attribute){.name = (char *)(uintptr_t)change->name,
					.value = (char *)(uintptr_t)change->value,
					.n = change_bytes(change),
					.type = change->type};
	}
	ret->write = (struct item_write){.item = puts ? &ret->item : NULL,
		.changes = write->changes,
		.n_changes = puts ? 0 : write->n_changes,
		.conditions = write->conditions,
		.n_conditions = write->n_conditions,
		.removes = write->kind == ROW_REMOVES,
		.or_absent = write->kind == ROW_MAKES,
		.may_sync_later = write->may_sync_later};
}

enum outcome row_perform(struct store_conn *conn, struct item_key key,
	const struct row_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	struct row_request request;
	make_request(write, &request);
	return conn->store->ops->write(conn, key, &request.write, limits, ret, ret_problem);
}

void row_begin(struct store_conn *conn, struct item_key key, const struct row_write *write,
	const struct call_limits *limits, struct row_request *ret_request)
{
	make_request(write, ret_request);
	conn->store->ops->begin_write(conn, key, &ret_request->write, limits);
}
