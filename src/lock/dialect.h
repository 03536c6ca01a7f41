/* What the lock rows of a table look like: attributes by which its users know a lock, each dialect
 * as the client it is named after writes it. Pure. */
#pragma once
#include "dynamodb/item.h"
#include "s3once/lock.h"

/* Names of attributes are NULL where the dialect has none. Static. */
struct dialect {
	const char *pk_name, *sk_name; /* of the table's keys, unless its owner says otherwise */
	const char *sk_default;        /* the sort key of a lock that names none; NULL: "" */
	const char *owner, *version, *lease;
	const char *released, *data, *expires;
	uint64_t expires_after_s; /* least time from a write to `expires` */
	uint64_t expires_more_s;  /* than the lease: the store's time is read to a second, and up to
				     two behind */
	bool sk_is_slot;          /* the sort key is the slot's number */
	bool version_is_fixed;    /* stays from acquiring to releasing */
	bool by_wall_clock;       /* `expires` decides, not whether the version changes */
};
const struct dialect *dialect_of(enum s3once_lock_dialect kind); /* NULL: there is no such */

/* Whether an attribute of this name is the lock's own: of the dialect, or the token. */
bool dialect_owns(const struct dialect *dialect, const char *name);

#define DIALECT_TOKEN "fencingToken" /* ours: a number, in rows that carry it and in counters */

enum row_state {
	ROW_FREE, /* released */
	ROW_HELD,
	ROW_UNREADABLE, /* held, and never stale */
};
/* A row, as far as it can be read. Strings are borrowed from the item; "" where there are none. */
struct lock_row {
	enum row_state state;
	const char *owner, *version;
	uint64_t lease_ms; /* > 0 if HELD, but for dialects by the wall clock: 0 */
	int64_t expires_s; /* 0: unknown */
	uint64_t token;
	const struct attribute *data; /* or NULL */
	const char *why;              /* UNREADABLE: what is wrong, a clause. Static */
};
struct lock_row dialect_read(const struct dialect *dialect, const struct item *item);

/* What a holder writes. */
struct lock_write {
	const char *owner, *version;
	uint64_t lease_ms;
	int64_t now_s;    /* the store's time */
	const void *data; /* or NULL */
	size_t data_bytes;
};
/* The attributes, without keys, of a row that is acquired; of its heartbeat; of its release by
 * mark. Added to *ret. 0, -ENOMEM, or -EINVAL (data where the dialect has none). */
int dialect_acquire(
	const struct dialect *dialect, const struct lock_write *write, struct item *ret);
int dialect_renew(const struct dialect *dialect, const struct lock_write *write, struct item *ret);
int dialect_release(const struct dialect *dialect, struct item *ret);

/* "1m30s" as Go writes it; ret holds 40 bytes. */
void go_duration(uint64_t ms, char ret[static 40]);
/* The reverse, rounded up; any duration that Go reads and that is neither negative nor longer than
 * a hundred years, else -EINVAL. A number without a unit is none, but "0". */
int go_duration_parse(const char *s, uint64_t *ret_ms);
