/* The types that both stores share. An item is a set of named, typed attributes under a key. A
 * write puts, changes or removes one item, if its conditions are met. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_type { VALUE_STRING = 'S', VALUE_NUMBER = 'N', VALUE_BYTES = 'B', VALUE_OTHER = '?' };

/* One attribute. Strings and numbers are NUL-terminated text. Bytes are raw. OTHER is the JSON text
 * of an attribute of any other type, kept so that it can be written back. */
struct attribute {
	char *name;
	char *value;
	size_t n; /* length of `value`, without the NUL */
	enum value_type type;
	/* The value is in the item's block, and the name there or in static memory. Otherwise both
	 * are in memory of their own. */
	bool is_in_block;
};
struct item {
	struct attribute *attributes;
	size_t count;
	char *block; /* NULL, or the names and values that were read at once */
};

/* The most attributes of an item that is read, since each is compared with all others. Ours have
 * about 20. */
#define ITEM_ATTRIBUTES_MAX 1000

/* Frees the attributes. The item is empty then, as a zeroed one is. */
void item_clear(struct item *item);
bool item_is_empty(const struct item *item);
/* Makes room for n attributes in all. 0 or -ENOMEM. */
int item_reserve(struct item *item, size_t n);
/* These set an attribute, or replace it. They copy the name and the value. Pointers to the name or
 * the value of an attribute that is replaced are no longer valid. 0 or -ENOMEM. */
int item_set(
	struct item *item, const char *name, enum value_type type, const void *value, size_t n);
int item_set_string(struct item *item, const char *name, const char *value);
int item_set_number(struct item *item, const char *name, int64_t value);
void item_unset(struct item *item, const char *name);
struct attribute *item_find(const struct item *item, const char *name);
/* Whether it is the name of one of the two attributes that are the key of a row, "pk" and "sk". */
bool item_is_key(const char *name);
/* The value of a string attribute, which is borrowed; NULL if it is absent or of another type. */
const char *item_string(const struct item *item, const char *name);
/* Reads the value of an attribute. 0, or -EINVAL if it is not a number that int64_t holds exactly.
 */
int attribute_number(const struct attribute *attribute, int64_t *ret);
/* Likewise, for the attribute with this name. -ENOENT if it is absent. */
int item_number(const struct item *item, const char *name, int64_t *ret);

/* A condition on one attribute. If a write has several, the item has to meet all of them. An absent
 * item is judged as one without attributes. */
enum condition_test { CONDITION_ABSENT, CONDITION_PRESENT, CONDITION_EQUALS, CONDITION_AT_MOST };
struct condition {
	const char *name;
	enum condition_test test;
	enum value_type type; /* for EQUALS: STRING or NUMBER; for AT_MOST: NUMBER */
	const char *value;
};
bool item_satisfies(const struct item *item, const struct condition *conditions, size_t n);

/* A change to one attribute. It is set, or removed if `value` is NULL. */
struct change {
	const char *name;
	enum value_type type; /* STRING, NUMBER or BYTES */
	const char *value;
	size_t n; /* length of a BYTES value; may be 0 for others (change_bytes()) */
};
/* Returns the length of the new value. */
size_t change_bytes(const struct change *change);
/* Applies n changes. Returns 0, or -ENOMEM with an item that may be half changed. */
int item_apply(struct item *item, const struct change *changes, size_t n);

/* The key of an item. sk is NULL if the table has no sort key. A numeric sort key is decimal
 * text. */
struct item_key {
	const char *pk, *sk;
};

/* One conditional write of one item. If `item` is set, it is a put. If `removes` is set, it is a
 * removal. Otherwise it is an update. All of it is borrowed during the call. */
struct item_write {
	const struct item *item; /* the whole item, without its keys */
	const struct change *changes;
	size_t n_changes;
	/* Conditions that the present item has to meet, all of them. */
	const struct condition *conditions;
	size_t n_conditions;
	/* Only for an update: the name of a number to which 1 is added, or NULL. An absent number
	 * counts as 0. */
	const char *increments;
	bool removes;
	/* Only for an update: it creates the item if it is absent, and its conditions are tested
	 * only if the item exists. Without conditions, an existing item refuses it
	 * (write_only_creates()). */
	bool or_absent;
	/* The caller gets the item even after OK: its new state. */
	bool returns_item;
	/* The write may be synced later, and until then a power failure may undo it (store.h). */
	bool may_sync_later;
};
/* Whether the write is an update that is refused if the item exists: one with or_absent and without
 * conditions. An update that has no changes, and only counts, is not: it is always applied. */
bool write_only_creates(const struct item_write *write);
/* For stores that test the conditions themselves: whether the present item, or its absence, meets
 * the conditions of the write. If `found` is false, `present` is empty. */
bool write_conditions_met(const struct item_write *write, const struct item *present, bool found);
/* Turns the present item into the one that an update leaves. 0, -ENOMEM, or -EBADMSG if the
 * attribute to be counted is not a number. After an error the item may be half changed. */
int write_update(const struct item_write *write, struct item *item);
/* Whether the write is a put whose only condition is that the item is absent. */
bool write_puts_if_absent(const struct item_write *write, const char *pk_name);

/* An eventually consistent read may miss the last writes, and costs half. */
enum consistency {
	READ_EVENTUAL,
	READ_CONSISTENT,
};

/* A range of the items of one partition. */
struct store_range {
	const char *pk;
	/* The first sort key; excluded if `after` is set. NULL: the range begins at the first
	 * item. */
	const char *from;
	bool after;
	/* The last sort key. NULL: the range ends at the last item. */
	const char *to;
	/* The most items. 0: a full page. */
	unsigned max_items;
	bool consistent;
};

/* An item that a reading call has found. A store that keeps its items packed hands out the packed
 * form, so that a reader of many rows takes from it what it needs. item_pack.h has the functions
 * that read either form. */
struct found_item {
	struct item_key key;
	const struct item *item; /* NULL: it is packed */
	const void *packed;
	size_t packed_bytes;
};
/* Called with one item at a time, which is borrowed during the call. Any result but 0 ends the
 * reading call, which then returns OUTCOME_LOCAL, or SETUP if the result is -EBADMSG: the item is
 * damaged. */
typedef int found_visitor(void *arg, const struct found_item *found);
