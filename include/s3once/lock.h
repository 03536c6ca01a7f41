/* Locks in a DynamoDB table, for many hosts, or in an SQLite file, for all who use that file on
 * one.
 *
 * A lock is a row with a lease. Its holder renews the row before the lease runs out; whoever has
 * seen the row unchanged for a whole lease may take it over. Only elapsed time that counts suspend
 * decides (no clock of any host, but for S3ONCE_LOCK_DLM): the holder counts from before it sent
 * its last write, others from after they read it. A lock protects what checks it: ask
 * s3once_lock_remaining_ms() before each step that others can see, and give the fencing token to
 * what is changed, so that it can refuse an older holder.
 *
 * Every function may be called from any thread, unless said otherwise; one handle is used by one
 * thread at a time, but for s3once_lock_remaining_ms(), s3once_lock_token() and
 * s3once_lock_is_lost(). Functions that can fail return 0 or -errno and describe a failure in *ret,
 * which may be NULL:
 *   -EINVAL  the arguments make no sense, or the dialect has no such thing
 *   -EBUSY   another holds the lock; ret->holder says who
 *   -ESTALE  this handle's lock is lost: another has it, or its lease ran out
 *   -ENOENT  there is no such row
 *   -EAGAIN  the row is not the one that was meant
 *   -EIO     the service (ret->code and ret->request_id are its own), a setting of it, or the file
 *   -ECANCELED  the client was closed meanwhile
 *   -ENOMEM
 * Strings are NUL-terminated UTF-8. Arguments are borrowed for the call; a ret_* other than `ret`
 * is never NULL. While a client is open no thread of the process may fork, unless the child execs
 * at once. */
#ifndef S3ONCE_LOCK_H
#define S3ONCE_LOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef S3ONCE_PUBLIC
#define S3ONCE_PUBLIC __attribute__((visibility("default")))
#endif

/* What the rows of a table look like: one dialect a table, whoever writes it. */
enum s3once_lock_dialect {
	S3ONCE_LOCK_JAVA = 0, /* awslabs amazon-dynamodb-lock-client; key "key", no sort key */
	S3ONCE_LOCK_GO,       /* cirello.io/dynamolock; the same keys */
	S3ONCE_LOCK_PYTHON, /* python_dynamodb_lock; "lock_key" and "sort_key", whose default is "-"
			     */
	S3ONCE_LOCK_DLM,    /* dynamo-dlm; "resource_id" and the slot's number in "concurrency_id".
			       Its leases end by the wall clock, as its users expect: ours is the
			       service's own, theirs their host's */
};

/* What is left when a lock is released. */
enum s3once_lock_release_by {
	S3ONCE_LOCK_BY_DEFAULT = 0, /* go and SQLite: mark; all others: delete */
	S3ONCE_LOCK_BY_DELETE,
	S3ONCE_LOCK_BY_MARK, /* the row stays, marked released, with its data; java and go */
};

/* Where fencing tokens come from. */
enum s3once_lock_tokens {
	S3ONCE_LOCK_TOKENS_DEFAULT = 0, /* COUNTER */
	S3ONCE_LOCK_TOKENS_ROW,     /* an attribute of the row, in the write that acquires. For rows
				       that are released by mark, are written by this program alone
				       and have one slot. ROW and COUNTER count apart: all users of a
				       key stay with one */
	S3ONCE_LOCK_TOKENS_COUNTER, /* an item beside the lock, a write of its own: grows whatever
				       becomes of the row */
	S3ONCE_LOCK_TOKENS_NONE,    /* no tokens: s3once_lock_token() is 0 */
};

/* What went wrong. Fixed sizes, no ownership. */
struct s3once_lock_error {
	char text[1000];     /* a sentence without full stop */
	char code[64];       /* of the service ("AccessDeniedException"), or "" */
	char request_id[96]; /* of the service, or "" */
	char holder[256];    /* -EBUSY, -ESTALE: who has the lock, as far as its row says */
};

struct s3once_lock;

enum s3once_lock_event_type {
	S3ONCE_LOCK_SUSPECT,   /* less than suspect_ms is left: heartbeats do not get through */
	S3ONCE_LOCK_RECOVERED, /* renewed after SUSPECT or EXPIRED: it was ours all the time */
	S3ONCE_LOCK_LOST,      /* the row is another's, or gone: for good. text says why, owner
				  whose it is now, if anybody's */
	S3ONCE_LOCK_EXPIRED,   /* the lease ran out: others may take it from now on. Always after a
				  SUSPECT */
	S3ONCE_LOCK_OUTAGE,    /* of the whole client: heartbeats fail one after the other; lock is
				  NULL, text says why. Again only after one has got through */
};

/* One thing that happened; each once. The lock's key and sort key, text and owner are never NULL
 * and valid only during the callback. Do not use `lock` if another thread may have freed it. */
struct s3once_lock_event {
	enum s3once_lock_event_type type;
	struct s3once_lock *lock;
	const char *key, *sort_key;
	const char *text;  /* a sentence without full stop */
	const char *owner; /* the new owner, "" if unknown */
};
/* Called from a thread of the client, one call at a time; s3once_locks_free() waits for one that is
 * under way, and no other begins then. It may call anything but s3once_locks_free(). */
typedef void s3once_lock_callback(void *arg, const struct s3once_lock_event *event);

/* Zero it, set what you need. */
struct s3once_locks_options {
	const char *place; /* "dynamodb:TABLE", "sqlite:PATH", or "local" (NULL: that), a file of
			      this user: users, and units with a STATE_DIRECTORY, each have their
			      own; to exclude them use a table or sqlite:PATH */
	enum s3once_lock_dialect dialect; /* of a DynamoDB table; SQLite: JAVA */
	const char *key_name, *sort_name; /* of the table's key attributes; NULL: the dialect's. A
					     sort_name gives java and go rows a sort key */
	const char *owner;     /* at most 200 bytes; NULL: host, process id and a random number */
	uint64_t lease_ms;     /* 0: 20 s; at least 1 s, at most a day */
	uint64_t heartbeat_ms; /* 0: a quarter of the lease; at most half of it */
	int manual; /* no heartbeats but s3once_lock_heartbeat(): a lock never outlives the progress
		       that its holder makes */
	uint64_t suspect_ms; /* 0: half of lease - heartbeat_ms; else less than that whole, or with
				`manual` at most the lease */
	enum s3once_lock_release_by release_by;
	enum s3once_lock_tokens tokens;
	uint64_t poll_ms; /* the longest pause between two looks at a lock that is waited for; 0: 1
			     s */
	const char *observations; /* directory that remembers how long others' rows have not
				     changed, so that a dead lock can be taken over by programs that
				     run only for a moment; made if need be, but for its parents.
				     NULL: not remembered; "": with this user's own state */
	/* Access: NULL leaves it to the environment and the profile. */
	const char *dynamodb_endpoint_url, *region, *profile, *ca_bundle;
	uint64_t request_timeout_ms; /* 0: a quarter of the lease */
	/* Being told. Without a callback events wait for s3once_locks_next_event(), however many:
	 * fetch them. */
	s3once_lock_callback *callback;
	void *callback_arg;
};

/* A client: one store, its connections, heartbeats and locks. */
struct s3once_locks;

/* Opens a client. Sends nothing; an SQLite file is made if need be. Starts threads with all signals
 * blocked; ignores SIGPIPE for the process. */
S3ONCE_PUBLIC int s3once_locks_open(const struct s3once_locks_options *options,
	struct s3once_locks **ret_locks, struct s3once_lock_error *ret);
/* Ends every wait, and releases all locks, several at once; with `keep` only their heartbeats end:
 * they run out, or are resumed. At most about timeout_ms; what could not be released by then runs
 * out. Callable again, also to release what a first call kept; by one thread at a time, and no
 * handle is freed meanwhile. -EIO if a lock could not be released. */
S3ONCE_PUBLIC int s3once_locks_close(
	struct s3once_locks *locks, int keep, uint64_t timeout_ms, struct s3once_lock_error *ret);
/* Closes (keeping) if that was not done, and frees the client with all its handles. Once, when no
 * other call is under way. NULL is fine. */
S3ONCE_PUBLIC void s3once_locks_free(struct s3once_locks *locks);

/* Makes the table and waits until it can be used; fine if it is there already with these keys. */
struct s3once_locks_table {
	uint64_t read_units, write_units; /* provisioned, the other 1 if it is 0; both 0: on demand
					   */
	const char *ttl_name; /* attribute to turn time to live on for (python: "expiry_time"), or
				 NULL. Not for go, which copies unknown attributes unrefreshed */
	const char *const *tags; /* name, value, name, value, …, NULL; or NULL */
	uint64_t timeout_ms;     /* 0: 5 min */
};
/* *ret_created says whether this call made it. SQLite needs none of this: nothing is done. A server
 * without time to live is not a failure; ret->text says so then. */
S3ONCE_PUBLIC int s3once_locks_init(struct s3once_locks *locks,
	const struct s3once_locks_table *table, int *ret_created, struct s3once_lock_error *ret);

/* Readable (poll) while events wait; -1 with a callback. Valid until s3once_locks_free(). */
S3ONCE_PUBLIC int s3once_locks_event_fd(const struct s3once_locks *locks);
/* Hands the oldest waiting event to `callback` and returns 1; 0 if there is none. */
S3ONCE_PUBLIC int s3once_locks_next_event(
	struct s3once_locks *locks, s3once_lock_callback *callback, void *arg);

/* Requests by kind, as sent ("UpdateItem", …); NULL past the last. Static string. */
S3ONCE_PUBLIC const char *s3once_locks_requests(
	const struct s3once_locks *locks, size_t i, uint64_t *ret_count);

struct s3once_lock_attribute {
	const char *name, *value; /* written as a string */
};

/* What to acquire. Zero it, set the key. */
struct s3once_lock_request {
	const char *key; /* 1 to 1,000 bytes; of a table, none that begins with "s3once-token:" */
	const char *sort_key; /* NULL: none (python: "-") */
	uint64_t wait_ms;     /* for the lock to come free; 0: try once; UINT64_MAX: for ever */
	uint64_t lease_ms;    /* 0: the client's */
	const void *data; /* replaces the row's data; NULL keeps what the last holder left (java and
			     go) */
	size_t data_bytes;
	const struct s3once_lock_attribute *attributes; /* more of them, also written */
	size_t n_attributes;                            /* at most 20 */
	unsigned slots; /* how many may hold it at once, up to 1,000; 0: 1. All users of a key say
			   the same. The row of slot N > 0 is that of "KEY#N" (dlm: of the number);
			   their tokens are from one counter */
	int reentrant;  /* if this client holds it already: the same handle, once more */
};
/* Acquires. Waits by looking again after a random pause that grows to poll_ms, and when the
 * holder's lease will have run out. A request that fails is sent again until wait_ms is over, at
 * least for 5 s and at most for the lease; so long beyond wait_ms it can take. *ret_lock belongs to
 * the client; see s3once_lock_free(). */
S3ONCE_PUBLIC int s3once_lock_acquire(struct s3once_locks *locks,
	const struct s3once_lock_request *request, struct s3once_lock **ret_lock,
	struct s3once_lock_error *ret);
/* Releases, once for each time it was acquired; the last one gives the lock up: no heartbeats any
 * more, whatever is returned. -ESTALE: it had been lost. -EIO: it is not known to be released, and
 * runs out; may be called again. */
S3ONCE_PUBLIC int s3once_lock_release(struct s3once_lock *lock, struct s3once_lock_error *ret);
/* Ends the heartbeats and frees the handle; does not release. Once, when no other call on it is
 * under way; of a lock acquired several times when the last one is done with it. NULL is fine. */
S3ONCE_PUBLIC void s3once_lock_free(struct s3once_lock *lock);

/* How long the lock is surely held from now on, in ms; 0 if it is lost, expired or released.
 * Lock-free. */
S3ONCE_PUBLIC uint64_t s3once_lock_remaining_ms(const struct s3once_lock *lock);
/* Whether it is lost for good. Lock-free. */
S3ONCE_PUBLIC int s3once_lock_is_lost(const struct s3once_lock *lock);
/* The fencing token: greater than that of every earlier holder of this key whose tokens came from
 * the same (enum s3once_lock_tokens). */
S3ONCE_PUBLIC uint64_t s3once_lock_token(const struct s3once_lock *lock);
/* Borrowed until s3once_lock_free(). */
S3ONCE_PUBLIC const char *s3once_lock_key(const struct s3once_lock *lock);
S3ONCE_PUBLIC const char *s3once_lock_owner(const struct s3once_lock *lock);
S3ONCE_PUBLIC unsigned s3once_lock_slot(const struct s3once_lock *lock); /* from 0 */
/* The row's data as acquired or last set; NULL if there is none. Borrowed until set or freed. */
S3ONCE_PUBLIC const void *s3once_lock_data(const struct s3once_lock *lock, size_t *ret_bytes);

/* One more attribute of the row as it was acquired, written by this holder or left by one before;
 * NULL if there is none, or if it is no string. Borrowed until s3once_lock_free(). */
S3ONCE_PUBLIC const char *s3once_lock_extra(const struct s3once_lock *lock, const char *name);

/* Renews now. */
S3ONCE_PUBLIC int s3once_lock_heartbeat(struct s3once_lock *lock, struct s3once_lock_error *ret);
/* Makes sure that at least `ms` are left, at most 21 hours: renews if there is less; for longer
 * than its lease the lock's lease becomes an eighth and a second longer than that. */
S3ONCE_PUBLIC int s3once_lock_ensure(
	struct s3once_lock *lock, uint64_t ms, struct s3once_lock_error *ret);
/* Replaces the data, or deletes it (NULL), and renews. Java and go. */
S3ONCE_PUBLIC int s3once_lock_set_data(
	struct s3once_lock *lock, const void *data, size_t bytes, struct s3once_lock_error *ret);

/* A text by which any process can go on with this lock: letters, digits, '-' and '_' only. Writes
 * at most `size` bytes, always terminated; -ENOSPC if that is too small (3,200 is enough). */
S3ONCE_PUBLIC int s3once_lock_handle(const struct s3once_lock *lock, char *ret, size_t size);
/* A lock from its text: looks at the row (one read) and is -ESTALE if it is another's. Nothing is
 * known to be left of the lease until it is renewed; heartbeats begin with the first
 * s3once_lock_heartbeat(). */
S3ONCE_PUBLIC int s3once_lock_resume(struct s3once_locks *locks, const char *handle,
	struct s3once_lock **ret_lock, struct s3once_lock_error *ret);

/* A row as it is. Strings and data are valid only as long as said below; never NULL but data. */
struct s3once_lock_info {
	const char *key, *sort_key, *owner, *version;
	int held;       /* a row that cannot be understood is held */
	int understood; /* else `why` says what is wrong with it, and it never counts as stale */
	const char *why;
	uint64_t lease_ms; /* 0 if unknown */
	uint64_t
		unchanged_ms; /* how long this client (or its observations) has seen this version */
	uint64_t token;       /* of a row that carries one, else 0 */
	int64_t expires_s;    /* of the row, seconds since the epoch, or 0 */
	const void *data;
	size_t data_bytes;
	const struct s3once_lock_attribute *attributes; /* more of them: those that are strings */
	size_t n_attributes;
};
typedef int s3once_lock_visitor(void *arg, const struct s3once_lock_info *info);
/* Looks at one row, consistently (of slot N > 0: key "KEY#N", of dlm sort_key "N"); its visitor is
 * called once. -ENOENT: nobody holds it and no row is left. Nonzero from a visitor is returned. */
S3ONCE_PUBLIC int s3once_lock_get(struct s3once_locks *locks, const char *key, const char *sort_key,
	s3once_lock_visitor *visitor, void *arg, struct s3once_lock_error *ret);
/* All rows whose key begins with prefix (NULL: all), in no order, by a scan of the table. */
S3ONCE_PUBLIC int s3once_lock_list(struct s3once_locks *locks, const char *prefix,
	s3once_lock_visitor *visitor, void *arg, struct s3once_lock_error *ret);
/* Takes a lock away from whoever holds it, if its row still has this version: as released by its
 * owner. -EAGAIN: it has another. */
S3ONCE_PUBLIC int s3once_lock_break(struct s3once_locks *locks, const char *key,
	const char *sort_key, const char *if_version, struct s3once_lock_error *ret);

#ifdef __cplusplus
}
#endif
#endif
