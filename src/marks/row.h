/* How a struct is kept as a row of the store: one table of its fields. Reading a row, the item of a
 * put, and the changes and conditions of an update are made from it. */
#pragma once
#include "store/store.h"

enum field_kind {
	FIELD_TEXT,     /* char[]: a string; "" is one that is not there */
	FIELD_ID,       /* the same; a row that has "" is not understood */
	FIELD_COPY,     /* char *, owned, or NULL: a string */
	FIELD_NUMBER,   /* int64_t */
	FIELD_SIZE,     /* uint64_t: a number that is not below 0 */
	FIELD_INT,      /* int */
	FIELD_FLAG,     /* bool: the number 1, or not there */
	FIELD_WORD,     /* an enum: the word with its number in `words`, which end with NULL */
	FIELD_CHECKSUM, /* enum checksum: its name; CHECKSUMS for an algorithm that is not ours */
};
struct row_field {
	const char *name;
	enum field_kind kind;
	unsigned groups; /* bits, by which the functions below are told which fields are meant */
	bool is_always;  /* written also if it is 0 or "", which is not there otherwise */
	size_t at, size; /* in the struct */
	const char *const *words;
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

/* Sets in *ret what the item has. The rest stays as it was, and so does what is of another type, or
 * does not fit: then the result is -EBADMSG. 0, or -ENOMEM. Copies that were set are the caller's
 * in any case. */
int row_read(const struct row_table *table, const struct item *item, void *ret);

/* What *from has, in little memory: the fields that are neither 0 nor "". Returns how many bytes it
 * takes; these are written unless ret is NULL. Fields without a name of an attribute are packed,
 * too. */
size_t row_pack(const struct row_table *table, const void *from, char *ret);
/* The reverse, into a zeroed struct. A copy that it sets (FIELD_COPY) is borrowed from the bytes.
 */
void row_unpack(const struct row_table *table, const char *packed, void *ret);

enum row_write_kind {
	ROW_UPDATES, /* a row that is there */
	ROW_MAKES,   /* the same, or makes it if it is not there */
	ROW_PUTS,    /* the whole row */
	ROW_REMOVES,
};
/* A write of a row. Zero is an update without changes. Texts are borrowed from the structs until it
 * was performed. */
struct row_write {
	enum row_write_kind kind;
	bool may_sync_later; /* of store.h */
	struct change changes[32];
	struct condition conditions[8];
	size_t n_changes, n_conditions, n_numbers;
	char numbers[16][24];
};
/* Adds the fields of these groups. A field that has no value is removed from the row, unless
 * `is_new` says that it cannot be there. */
void row_set(struct row_write *write, const struct row_table *table, unsigned groups,
	const void *from, bool is_new);
void row_unset(struct row_write *write, const struct row_table *table, unsigned groups);
/* The row must have the fields of these groups as they are in *from, or not have them. NULL: it
 * must have none of them. */
void row_expect(
	struct row_write *write, const struct row_table *table, unsigned groups, const void *from);
/* A condition on an attribute that may be the key. */
void row_expect_test(struct row_write *write, const char *attribute, enum condition_test test);

/* *ret is as of store_ops.write(). */
enum outcome row_perform(struct store_conn *conn, struct item_key key,
	const struct row_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem);
