/* What the lock rows of a table look like. A dialect is how the client that it is named after
 * writes them (enum s3once_lock_dialect). These functions do no I/O, and take the time as an
 * argument. */
#pragma once
#include "s3once/lock.h"
#include "store/item.h"

/* How a lease is written. A bare number counts only as ms, since the client of java writes nothing
 * else; go's carries its unit. */
enum lease_form { LEASE_AS_MS, LEASE_AS_GO, LEASE_AS_SECONDS };

/* Names of attributes are NULL where the dialect has none. Static. */
struct dialect {
	/* The table's keys, unless its owner has named them differently. */
	const char *pk_name, *sk_name;
	/* The sort key of a lock that names none, or "". */
	const char *sk_default;
	const char *owner, *version, *lease;
	const char *released, *data, *expires;
	/* `expires` is at least so long after the write. */
	uint64_t expires_after_s;
	/* `expires` is so much later than the lease, since the store's time is known to a second
	 * and may be two seconds old. */
	uint64_t expires_more_s;
	enum lease_form lease_form;
	/* The sort key is the number of the slot. */
	bool sk_is_slot;
	/* The version stays the same from acquiring to releasing. */
	bool version_is_fixed;
	/* `expires` decides whether a lock is stale, and not whether its version changes. */
	bool by_wall_clock;
};
/* Static. NULL if there is no such dialect. */
const struct dialect *dialect_of(enum s3once_lock_dialect kind);

/* Whether an attribute of this name belongs to the dialect or is the token. */
bool dialect_owns(const struct dialect *dialect, const char *name);

/* The attribute with the fencing token, a number, in rows that carry one and in counters. No other
 * client knows it. */
#define DIALECT_TOKEN "fencingToken"

enum row_state {
	ROW_FREE, /* it was released */
	ROW_HELD,
	ROW_UNREADABLE, /* it counts as held, and never as stale */
};
/* A row, as far as it can be read. Its strings are borrowed from the item, and are "" where the
 * item has none. */
struct lock_row {
	enum row_state state;
	const char *owner, *version;
	/* More than 0 if the row is HELD. 0 in dialects by the wall clock. */
	uint64_t lease_ms;
	/* In seconds since 1970. 0: not known. */
	int64_t expires_s;
	uint64_t token;
	/* NULL if the row has none. */
	const struct attribute *data;
	/* Of an UNREADABLE row: a clause that says what is wrong with it. Static. */
	const char *why;
};
struct lock_row dialect_read(const struct dialect *dialect, const struct item *item);

/* What a holder writes when it acquires a row and at each heartbeat, and a heartbeat has neither
 * owner nor data. Data is only for dialects that have it. */
struct lock_write {
	const char *owner, *version;
	uint64_t lease_ms;
	int64_t now_s;    /* the store's time, in seconds since 1970 */
	const void *data; /* NULL: none */
	size_t data_bytes;
};
/* What a write changes. The values are borrowed from the struct lock_write and from here. */
#define LOCK_CHANGES_MAX 40
struct lock_changes {
	struct change list[LOCK_CHANGES_MAX];
	size_t n;
	char lease[40], expires[24];
};
/* These fill *ret with the attributes of a row without its keys: when it is held, and when it is
 * released by mark, for dialects that have that. */
void dialect_hold(
	const struct dialect *dialect, const struct lock_write *write, struct lock_changes *ret);
void dialect_release(const struct dialect *dialect, struct lock_changes *ret);
/* Adds a change, or replaces that of the same attribute, whose name is NULL if the dialect has
 * none. A value of NULL removes it. */
void lock_change(struct lock_changes *changes, const char *name, enum value_type type,
	const char *value, size_t n);

/* Reads decimal digits alone. False if it is something else, or more than `most`. */
bool decimal_read(const char *s, uint64_t most, uint64_t *ret);
/* Writes a duration as Go does, such as "1m30s". */
void go_duration(uint64_t ms, char ret[static 40]);
/* Reads any duration that Go reads, rounded up. -EINVAL for what is not one, is negative, or is
 * longer than a hundred years. A number needs a unit unless it is "0". */
int go_duration_parse(const char *s, uint64_t *ret_ms);
