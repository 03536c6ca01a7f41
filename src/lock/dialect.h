/* Reads and writes the lock rows of a table. A dialect (enum s3once_lock_dialect) is the row format
 * of the lock client that it is named after. These functions do no I/O, and take the time as an
 * argument. */
#pragma once
#include "s3once/lock.h"
#include "store/item.h"

/* Notations of the length of a lease: milliseconds without a unit (java), a duration with units
 * such as "1m30s" (go), or a number of seconds, perhaps with a fraction (python). In a LEASE_AS_MS
 * row a duration with units can be read as well, since it is not ambiguous. */
enum lease_form { LEASE_AS_MS, LEASE_AS_GO, LEASE_AS_SECONDS };

/* A dialect. Its strings are static. The name of an attribute that the dialect does not have is
 * NULL. */
struct dialect {
	/* Its name for `s3once lock --dialect`. */
	const char *name;
	/* The default names of the table's key attributes. The options of a client may name others.
	 */
	const char *pk_name, *sk_name;
	/* The sort key of a lock whose request has none. "" if there is no default. */
	const char *sk_default;
	/* The names of the other attributes. */
	const char *owner, *version, *lease;
	const char *released, *data, *expires;
	/* `expires` is at least this many seconds after the write, even if the lease is shorter. */
	uint64_t expires_after_s;
	enum lease_form lease_form;
	/* The sort key is the number of the slot. */
	bool sk_is_slot;
	/* The version stays the same from acquiring to releasing. */
	bool version_is_fixed;
	/* A lock is stale once `expires` has passed, and not when its version has not changed for a
	 * whole lease. */
	bool by_wall_clock;
};
/* Returns the dialect of this kind, which is static, or NULL if there is none. */
const struct dialect *dialect_of(enum s3once_lock_dialect kind);

/* Whether an attribute of this name belongs to the dialect or is the token. */
bool dialect_owns(const struct dialect *dialect, const char *name);

/* The attribute that holds the fencing token, a number. The rows of token counters have it, and
 * lock rows if the tokens are kept there. No other client knows this attribute. */
#define DIALECT_TOKEN "fencingToken"

enum row_state {
	ROW_FREE, /* the row was released */
	ROW_HELD,
	ROW_UNREADABLE, /* counts as held, and never as stale */
};
/* The readable content of a row. Its strings are borrowed from the item, and are "" where the item
 * has none. */
struct lock_row {
	enum row_state state;
	const char *owner, *version;
	/* The length of the lease, which is more than 0 if the row is HELD. In a dialect that
	 * decides by the wall clock it is always 0. */
	uint64_t lease_ms;
	/* The expiry time in seconds since 1970. 0 if the row has none. */
	int64_t expires_s;
	uint64_t token;
	/* NULL if the row has none. */
	const struct attribute *data;
	/* For an UNREADABLE row: its fault, as a clause. Static. */
	const char *why;
};
struct lock_row dialect_read(const struct dialect *dialect, const struct item *item);

/* The values that a holder writes when it acquires a row, and at each heartbeat. At a heartbeat
 * `owner` and `data` are NULL. `data` is only for dialects that have an attribute for it. */
struct lock_write {
	const char *owner, *version;
	uint64_t lease_ms;
	/* The latest time that the store's clock may show now, in seconds since 1970; the store's
	 * time is known only roughly. `expires` is counted from it. The holder counts its lease
	 * from now, which is no later. So the holder's lease is over by the time that `expires` has
	 * passed. */
	int64_t now_s;
	const void *data; /* NULL: none */
	size_t data_bytes;
};
/* Room for the changes of the dialect, and for at most 20 attributes of the request. */
#define LOCK_CHANGES_MAX 40
/* The changes that one write makes. A value points into the struct lock_write, to the caller's
 * data, or to `lease` or `expires` below. So the struct must not be moved once it is filled. */
struct lock_changes {
	struct change list[LOCK_CHANGES_MAX];
	size_t n;
	char lease[40], expires[24];
};
/* Fill *ret with the changes of attributes, without the keys. dialect_hold_changes() is for a row
 * that is acquired or renewed. dialect_release_changes() is for a row that is released by mark, in
 * a dialect that has the attribute `released`. */
void dialect_hold_changes(
	const struct dialect *dialect, const struct lock_write *write, struct lock_changes *ret);
void dialect_release_changes(const struct dialect *dialect, struct lock_changes *ret);
/* Adds a change, or replaces the change of the same attribute. A value of NULL removes the
 * attribute. If `name` is NULL, the dialect does not have the attribute, and nothing is done. */
void lock_change(struct lock_changes *changes, const char *name, enum value_type type,
	const char *value, size_t n);

/* Writes a duration as Go does, such as "1m30s". */
void go_duration(uint64_t ms, char ret[static 40]);
/* Reads any duration that Go reads, and rounds it up to milliseconds. Returns -EINVAL for any other
 * string, and for a duration that is negative or longer than a hundred years. A number needs a unit
 * unless it is "0". */
int go_duration_parse(const char *s, uint64_t *ret_ms);
