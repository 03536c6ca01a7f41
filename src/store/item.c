/* Items in memory: their attributes, testing their conditions, and applying changes. Both stores
 * and the dialects of locks use them. No I/O. */
#include "store/item.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 16 /* capacity for attributes; a power of two */

static void free_attribute(struct attribute *attribute)
{
	if (!attribute->is_in_block)
		free(attribute->name);
}

void item_clear(struct item *item)
{
	for (size_t i = 0; i < item->count; i++)
		free_attribute(&item->attributes[i]);
	free(item->attributes);
	free(item->block);
	*item = (struct item){0};
}

bool item_is_empty(const struct item *item)
{
	return item->count == 0;
}

bool item_is_key(const char *name)
{
	return (name[0] == 'p' || name[0] == 's') && name[1] == 'k' && !name[2];
}

struct attribute *item_find(const struct item *item, const char *name)
{
	for (size_t i = 0; i < item->count; i++) {
		const char *other = item->attributes[i].name;
		/* Most names differ in their first byte, which avoids the call. */
		if (*other == *name && strcmp(other, name) == 0)
			return &item->attributes[i];
	}
	return NULL;
}

/* Returns the capacity of an item of n attributes, which is at least ROOM_MIN and a power of two.
 * Since it follows from n, no item stores its capacity. */
static size_t capacity_for(size_t n)
{
	size_t room = ROOM_MIN;
	while (room < n)
		room *= 2;
	return room;
}

int item_reserve(struct item *item, size_t n)
{
	void *grown = reallocarray(item->attributes, capacity_for(n), sizeof *item->attributes);
	if (!grown)
		return -ENOMEM;
	item->attributes = grown;
	return 0;
}

/* Makes room for one more attribute at the end of the item. NULL if there is no memory. */
static struct attribute *add_place(struct item *item)
{
	/* An item without attributes may have no memory yet. */
	const bool is_full = !item->count || item->count == capacity_for(item->count);
	if (is_full && item_reserve(item, item->count + 1) < 0)
		return NULL;
	return &item->attributes[item->count++];
}

/* The name and the value are in one piece of memory, the value after the name. They are copied
 * first, since they may be borrowed from the attribute that is replaced. */
int item_set(struct item *item, const char *name, enum value_type type, const void *value, size_t n)
{
	const size_t name_bytes = strlen(name) + 1;
	char *copy = malloc(name_bytes + n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, name, name_bytes);
	if (n)
		memcpy(copy + name_bytes, value, n);
	copy[name_bytes + n] = '\0';
	struct attribute *place = item_find(item, name);
	if (place)
		free_attribute(place);
	else
		place = add_place(item);
	if (!place) {
		free(copy);
		return -ENOMEM;
	}
	*place = (struct attribute){.name = copy, .value = copy + name_bytes, .n = n, .type = type};
	return 0;
}

int item_set_string(struct item *item, const char *name, const char *value)
{
	return item_set(item, name, VALUE_STRING, value, strlen(value));
}

int item_set_number(struct item *item, const char *name, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%" PRId64, value);
	return item_set(item, name, VALUE_NUMBER, text, (size_t)n);
}

void item_unset(struct item *item, const char *name)
{
	struct attribute *found = item_find(item, name);
	if (!found)
		return;
	free_attribute(found);
	size_t after = (size_t)(item->attributes + item->count - found) - 1;
	memmove(found, found + 1, after * sizeof *found);
	item->count--;
}

const char *item_string(const struct item *item, const char *name)
{
	const struct attribute *found = item_find(item, name);
	return found && found->type == VALUE_STRING ? found->value : NULL;
}

/* Reads a decimal number. Four of them are read of each mark, so this is not strtoll(), which takes
 * five times as long. */
static int parse_number(const char *s, size_t n, int64_t *ret)
{
	const char *const end = s + n;
	const bool is_negative = n && *s == '-';
	const char *digit = s + is_negative;
	int64_t value = 0;
	if (digit == end)
		return -EINVAL;
	for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
		const int64_t units = is_negative ? '0' - *digit : *digit - '0';
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, units, &value))
			return -EINVAL;
	}
	if (digit < end)
		return -EINVAL;
	*ret = value;
	return 0;
}

int attribute_number(const struct attribute *attribute, int64_t *ret)
{
	return attribute->type == VALUE_NUMBER ? parse_number(attribute->value, attribute->n, ret)
					       : -EINVAL;
}

int item_number(const struct item *item, const char *name, int64_t *ret)
{
	const struct attribute *found = item_find(item, name);
	return found ? attribute_number(found, ret) : -ENOENT;
}

/* Whether an attribute meets a condition. `found` is NULL if the item does not have it. */
static bool meets_condition(const struct attribute *found, const struct condition *c)
{
	int64_t a = 0, b = 0;
	if (!found)
		return c->test == CONDITION_ABSENT;
	if (c->test == CONDITION_ABSENT || c->test == CONDITION_PRESENT)
		return c->test == CONDITION_PRESENT;
	if (found->type != c->type)
		return false;
	/* Numbers are compared as numbers: "07" equals "7". A number that int64_t cannot hold is
	 * compared as text, and never meets AT_MOST. */
	const bool are_numbers = c->type == VALUE_NUMBER && attribute_number(found, &a) == 0 &&
				 parse_number(c->value, strlen(c->value), &b) == 0;
	if (c->test == CONDITION_AT_MOST)
		return are_numbers && a <= b;
	if (are_numbers)
		return a == b;
	return found->n == strlen(c->value) && memcmp(found->value, c->value, found->n) == 0;
}

bool item_satisfies(const struct item *item, const struct condition *conditions, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!meets_condition(item_find(item, conditions[i].name), &conditions[i]))
			return false;
	return true;
}

size_t change_bytes(const struct change *change)
{
	return change->type == VALUE_BYTES ? change->n : strlen(change->value);
}

int item_apply(struct item *item, const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct change *change = &changes[i];
		if (!change->value)
			item_unset(item, change->name);
		else if (item_set(item, change->name, change->type, change->value,
				 change_bytes(change)) < 0)
			return -ENOMEM;
	}
	return 0;
}

bool write_only_creates(const struct item_write *write)
{
	const bool only_counts = write->increments && !write->n_changes;
	return write->or_absent && !write->n_conditions && !only_counts;
}

bool write_puts_if_absent(const struct item_write *write, const char *pk_name)
{
	return write->item && write->n_conditions == 1 &&
	       write->conditions->test == CONDITION_ABSENT &&
	       strcmp(write->conditions->name, pk_name) == 0;
}

bool write_conditions_met(const struct item_write *write, const struct item *present, bool found)
{
	const bool is_update = !write->item && !write->removes;
	if (is_update && !found) /* the conditions of an update require an existing item */
		return write->or_absent;
	if (is_update && write_only_creates(write))
		return false;
	return item_satisfies(present, write->conditions, write->n_conditions);
}

int write_update(const struct item_write *write, struct item *item)
{
	int64_t n = 0; /* an absent number counts as 0 */
	const int error = item_apply(item, write->changes, write->n_changes);
	if (error || !write->increments)
		return error;
	if (item_number(item, write->increments, &n) == -EINVAL || n == INT64_MAX)
		return -EBADMSG;
	return item_set_number(item, write->increments, n + 1);
}
