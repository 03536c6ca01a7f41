/* Types that all stores share. An item is a set of named, typed attributes under a key. A write
 * puts, updates or removes one item, if its conditions are met. */
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
	/* The value is in the item's block, and the name is there or static. Otherwise both are
	 * allocated separately. */
	bool is_in_block;
};
struct item {
	struct attribute *attributes;
	size_t count;
	char *block; /* NULL, or one allocation with names and values */
};

/* Limit of attributes when an item is read, since each is compared with all others. Our items have
 * about 20. */
#define ITEM_ATTRIBUTES_MAX 1000

/* Frees the attributes. The item is empty then, as a zeroed one is. */
void item_clear(struct item *item);
bool item_is_empty(const struct item *item);
/* Makes room for a total of n attributes. 0 or -ENOMEM. */
int item_reserve(struct item *item, size_t n);
/* Set or replace an attribute. They copy the name and the value. Pointers into a replaced attribute
 * become invalid. 0 or -ENOMEM. */
int item_set(
	struct item *item, const char *name, enum value_type type, const void *value, size_t n);
int item_set_string(struct item *item, const char *name, const char *value);
int item_set_number(struct item *item, const char *name, int64_t value);
void item_unset(struct item *item, const char *name);
struct attribute *item_find(const struct item *item, const char *name);
/* Whether this is the name of a key attribute, "pk" or "sk". */
bool item_is_key(const char *name);
/* The value of a string attribute, which is borrowed; NULL if it is absent or of another type. */
const char *item_string(const struct item *item, const char *name);
/* Reads the value of an attribute. 0, or -EINVAL if it is not a number that int64_t holds exactly.
 */
int attribute_number(const struct attribute *attribute, int64_t *ret);
/* Likewise, for the attribute with this name. -ENOENT if it is absent. */
int item_number(const struct item *item, const char *name, int64_t *ret);

/* A condition on one attribute. If a write has several, the item must meet all of them. An absent
 * item counts as one without attributes. */
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
	/* Only for an update. An absent item is created, without a test of the conditions. An
	 * existing item must meet the conditions; without conditions, the write is refused
	 * (write_only_creates()). */
	bool or_absent;
	/* After OK, the caller gets the new state of the item. */
	bool returns_item;
	/* The write may be synced later. Until then, a power failure may undo it (store.h). */
	bool may_sync_later;
};
/* Whether the write is an update that an existing item refuses: one with or_absent and without
 * conditions. An update that only increments a number is different: it is always applied. */
bool write_only_creates(const struct item_write *write);
/* For stores that test the conditions themselves: whether the present item, or its absence, meets
 * the conditions of the write. If `found` is false, `present` is empty. */
bool write_conditions_met(const struct item_write *write, const struct item *present, bool found);
/* Applies an update to the current item. 0, -ENOMEM, or -EBADMSG if the attribute to be counted is
 * not a number, or cannot become greater. After an error the item may be half changed. */
int write_update(const struct item_write *write, struct item *item);
/* Whether the write is a put whose only condition is that the item is absent. */
bool write_puts_if_absent(const struct item_write *write, const char *pk_name);

/* An eventually consistent read may miss the latest writes, and costs half as much. */
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

/* An item found by a read. A store with packed items passes the packed form, so that a reader of
 * many rows unpacks only the needed attributes. item_pack.h reads either form. */
struct found_item {
	struct item_key key;
	const struct item *item; /* NULL: it is packed */
	const void *packed;
	size_t packed_bytes;
};
/* Called with one item at a time, borrowed during the call. A result other than 0 ends the read,
 * which then returns OUTCOME_LOCAL, or SETUP for -EBADMSG (a damaged item). */
typedef int found_visitor(void *arg, const struct found_item *found);
