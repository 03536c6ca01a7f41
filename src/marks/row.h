/* Keeps a struct as a row of the store, by a table of its fields. The table is used to read a row,
 * and to make the item of a put and the changes and conditions of an update. */
#pragma once
#include "store/store.h"

enum field_kind {
	FIELD_TEXT,     /* char[]: a string; "" means that there is none */
	FIELD_ID,       /* likewise, but a row in which it is "" is not understood */
	FIELD_COPY,     /* char *, owned, or NULL: a string */
	FIELD_NUMBER,   /* int64_t */
	FIELD_SIZE,     /* uint64_t: a number that is not below 0 */
	FIELD_INT,      /* int */
	FIELD_FLAG,     /* bool: the number 1, or absent */
	FIELD_WORD,     /* an enum: the word with its number in `words`, which end with NULL */
	FIELD_CHECKSUM, /* enum checksum: its name; CHECKSUMS for an algorithm that is not ours */
};
struct row_field {
	const char *name;
	enum field_kind kind;
	unsigned groups; /* bit mask of field groups */
	bool is_always;  /* 0 or "" is written as a value; in other fields it means no value */
	size_t at, size; /* offset and size in the struct */
	const char *const *words; /* for a FIELD_WORD, otherwise NULL */
};
#define ROW_FIELD(type, member, attribute, how, ...)                                               \
	{                                                                                          \
		.name = (attribute), .kind = (how), .at = offsetof(type, member),                  \
		.size = sizeof((type *)0)->member, __VA_ARGS__                                     \
	}
struct row_table {
	const struct row_field *fields;
	size_t n;
};
#define ROW_TABLE(fields_)                                                                         \
	{                                                                                          \
		.fields = (fields_), .n = sizeof(fields_) / sizeof *(fields_)                      \
	}
#define ROW_ALL (~0U)

/* Sets the fields of *ret that the item has. The other fields stay as they were. A field also stays
 * if its attribute is of another type or does not fit: then the result is -EBADMSG. Otherwise it is
 * 0, or -ENOMEM. Whatever the result is, the caller frees the strings of each FIELD_COPY. */
int row_read(const struct row_table *table, const struct item *item, void *ret);

/* A row that was packed. */
struct row_packed {
	size_t bytes;
	unsigned groups; /* those of its fields */
	bool is_damaged; /* so is the item, or it has an attribute of another type, or one that does
			    not fit */
};
/* Packs the fields that the item has into little memory. If the bytes are more than `room`, those
 * that were written are of no use. */
struct row_packed row_pack(
	const struct row_table *table, const struct found_item *found, char *ret, size_t room);
/* Unpacks the fields into a zeroed struct. Sets each FIELD_COPY to point into `packed`, without a
 * copy. */
void row_unpack(const struct row_table *table, const char *packed, void *ret);

enum row_write_kind {
	ROW_UPDATES, /* an existing row */
	ROW_MAKES,   /* an existing row, or makes one if there is none */
	ROW_PUTS,    /* the whole row */
	ROW_REMOVES,
};
/* A write of a row. Zero is an update without changes. It borrows its texts from the structs that
 * it was made of, and must not be copied, since it refers to the texts of its own numbers. */
struct row_write {
	enum row_write_kind kind;
	bool may_sync_later;  /* as in store.h */
	bool removes_nothing; /* row_set() skips fields without a value: the row has none of them */
	struct change changes[40]; /* room for all fields of a mark, which has the most */
	struct condition conditions[8];
	size_t n_changes, n_conditions, n_numbers;
	char numbers[16][24]; /* the numbers of changes and conditions, as decimal text */
};
/* Adds the fields of these groups. A field that has no value is removed from the row. */
void row_set(
	struct row_write *write, const struct row_table *table, unsigned groups, const void *from);
/* Removes the fields of these groups from the row. */
void row_unset(struct row_write *write, const struct row_table *table, unsigned groups);
/* Adds the conditions that the row has the fields of these groups as they are in *from, and does
 * not have those that have no value there. NULL: the row has none of them. */
void row_expect(
	struct row_write *write, const struct row_table *table, unsigned groups, const void *from);
/* Adds a condition on an attribute, which may be the key. */
void row_expect_test(struct row_write *write, const char *attribute, enum condition_test test);

/* Performs the write. *ret is as in store_ops.write(). */
enum outcome row_perform(struct store_conn *conn, struct item_key key,
	const struct row_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);
/* A write of a row in the terms of the store. It must not be copied. */
struct row_request {
	struct attribute attributes[40]; /* as many as row_write.changes */
	struct item item;
	struct item_write write;
};
/* Begins the write, as store_ops.begin_write() does. The request is borrowed until the end. */
void row_begin(struct store_conn *conn, struct item_key key, const struct row_write *write,
	const struct call_limits *limits, struct row_request *ret_request);
