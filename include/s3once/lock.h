/* Locks for many hosts in a DynamoDB table or in an S3 bucket, or for the processes of one user on
 * one host in an SQLite file.
 *
 * A lock is a row with a lease. Its holder renews the row before the lease runs out. A client that
 * has seen the row unchanged for a whole lease may take it over. Only elapsed time decides, and
 * time in which a host is suspended counts. The holder counts from before it sent its last write,
 * and others count from after they read the row. No clock of any host matters, except with
 * S3ONCE_LOCK_DLM.
 *
 * A lock protects a resource only if the lock is checked. Call s3once_lock_remaining_ms() before
 * each step that others can see, and pass the fencing token to the resource, so that it can refuse
 * an earlier holder.
 *
 * A function may be called from any thread unless it says otherwise. One handle is used by one
 * thread at a time, except by s3once_lock_remaining_ms(), s3once_lock_token() and
 * s3once_lock_is_lost(), which may be called at any time.
 *
 * Functions that can fail return 0 or -errno, and describe a failure in *ret, which may be NULL:
 *   -EINVAL     the arguments are invalid, or the dialect does not have what was asked for
 *   -EBUSY      another owner holds the lock, and the time to wait for it is over; ret->holder
 *               names that owner
 *   -ESTALE     the lock of this handle was released, or is lost: another owner has it, or its
 *               row was released or deleted
 *   -ENOENT     there is no such row
 *   -EAGAIN     the row is not the one that was meant
 *   -EIO        the service, one of its settings, or the file failed; ret->code and
 *               ret->request_id are the service's own
 *   -ECANCELED  the client was closed meanwhile
 *   -ENOMEM     there is not enough memory
 * After a success *ret has no meaning, unless a function says otherwise. Sentences about access to
 * the services name an option by its form on the command line: --ca-bundle is `ca_bundle`.
 *
 * Strings are NUL-terminated UTF-8. Arguments are borrowed for the call. Other than `ret`, a ret_*
 * is never NULL.
 *
 * A client affects the whole process. While it is open, it reads environment variables, so no
 * thread may change them, and no thread may fork, unless the child execs at once. It ignores
 * SIGPIPE unless the program handles it. Credentials may come from a child process
 * (credential_process). If the program ignores SIGCHLD, or waits for any child, the exit status of
 * that child is lost and counts as success. Warnings that do not belong to a lock, for example
 * about credentials that cannot be renewed, go to standard error, or to the function of
 * s3once_set_log() (log.h).
 *
 * A program keeps working with later versions of the library with the same soname. They add members
 * at the end of the structs that they pass to the program, and values to the enums, so ignore
 * events of unknown types. New options take the place of `reserved` members. */
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

/* The format of the rows of a table. All clients of a table use the same dialect. */
enum s3once_lock_dialect {
	/* awslabs amazon-dynamodb-lock-client. The key is "key", and there is no sort key. */
	S3ONCE_LOCK_JAVA = 0,
	/* cirello.io/dynamolock. It has the same keys. */
	S3ONCE_LOCK_GO,
	/* python_dynamodb_lock. The keys are "lock_key" and "sort_key", whose default is "-". */
	S3ONCE_LOCK_PYTHON,
	/* dynamo-dlm. The keys are "resource_id" and "concurrency_id", the number of the slot. Its
	 * leases end by the wall clock, as its users expect: in this library by the service's
	 * clock, in dynamo-dlm by that of its host. */
	S3ONCE_LOCK_DLM,
};

/* The state of a row after its lock was released. */
enum s3once_lock_release_by {
	/* As BY_MARK for go, SQLite and S3, and as BY_DELETE for all others. */
	S3ONCE_LOCK_BY_DEFAULT = 0,
	/* The row is deleted. */
	S3ONCE_LOCK_BY_DELETE,
	/* The row stays with its data, marked as released. Of the tables, only those of java and go
	 * support this. In S3, it is the only way. */
	S3ONCE_LOCK_BY_MARK,
};

/* The source of fencing tokens. ROW and COUNTER count separately, so all users of a key have to use
 * the same one. */
enum s3once_lock_tokens {
	/* As COUNTER. */
	S3ONCE_LOCK_TOKENS_DEFAULT = 0,
	/* An attribute of the row, in the write that acquires it. It is for locks with one slot,
	 * whose rows are released by mark and written by this program alone. */
	S3ONCE_LOCK_TOKENS_ROW,
	/* An item beside the lock, which costs one more write. Its count survives the deletion of
	 * the row. The row has no token, so `token` of struct s3once_lock_info is 0. The java
	 * client cannot read the item, so its getAllLocksFromDynamoDB() fails. */
	S3ONCE_LOCK_TOKENS_COUNTER,
	/* No tokens: s3once_lock_token() is 0. */
	S3ONCE_LOCK_TOKENS_NONE,
};

/* Description of a failure. It contains its strings, and is owned by the caller. */
struct s3once_lock_error {
	/* A sentence without a full stop, which is cut if it is too long. */
	char text[1000];
	/* The error code ("AccessDeniedException") and the request id of the service, or "". */
	char code[64];
	char request_id[96];
	/* For -EBUSY and -ESTALE: the holder's name, if the row has one. */
	char holder[256];
};

/* The handle of one lock. */
struct s3once_lock;

enum s3once_lock_event_type {
	/* Less than suspect_ms of the lease is left, since heartbeats failed or were not sent. */
	S3ONCE_LOCK_SUSPECT,
	/* The lock was renewed after SUSPECT or EXPIRED. No other client had it meanwhile. */
	S3ONCE_LOCK_RECOVERED,
	/* Another owner has the row, or it is gone. The lock is lost for good. `text` is the
	 * reason, and `owner` the new owner. */
	S3ONCE_LOCK_LOST,
	/* The lease has expired, and other clients may take the lock. SUSPECT was reported
	 * before. */
	S3ONCE_LOCK_EXPIRED,
	/* Two consecutive heartbeats of any locks of the client have failed. `lock` is NULL, and
	 * `text` is the reason. The event is not reported again before a heartbeat has succeeded.
	 * Renewals by the functions below do not count, since they return their failure. */
	S3ONCE_LOCK_OUTAGE,
};

/* An event, which is reported once. The strings are never NULL, and are valid only during the
 * callback. Do not use `lock` if another thread may have freed it. */
struct s3once_lock_event {
	enum s3once_lock_event_type type;
	struct s3once_lock *lock;
	const char *key, *sort_key;
	/* A sentence without a full stop. */
	const char *text;
	/* The new owner, or "" if unknown. */
	const char *owner;
};
/* Called by a thread of the client, one call at a time. s3once_locks_free() waits for the call
 * under way, and prevents further ones. A callback may call any function of this interface except
 * s3once_locks_free(). */
typedef void s3once_lock_callback(void *arg, const struct s3once_lock_event *event);

/* Options of a client. Zero the struct, and set the members that differ from the default. Times
 * have no other limits than those given here: UINT64_MAX is forever. */
struct s3once_locks_options {
	/* "dynamodb:TABLE", "s3://BUCKET/PREFIX", "sqlite:PATH" or "local". NULL: "local", which is
	 * a file of this user. Each user, and each unit with a STATE_DIRECTORY, has its own. Units
	 * of the same user share locks by "sqlite:PATH". Only the owner of that file can use it, so
	 * several users need a table or a bucket.
	 *
	 * Locks in S3 need a service that honours conditional writes. The first call that acquires
	 * a lock tests this, which may take some seconds, and the result is kept in the bucket. On
	 * a service that does not honour them, acquiring fails with -EIO. */
	const char *place;
	/* The dialect of a DynamoDB table. With SQLite and S3 it must be S3ONCE_LOCK_JAVA, the
	 * default. */
	enum s3once_lock_dialect dialect;
	/* The names of the table's key attributes. NULL: those of the dialect. A sort_name gives
	 * rows of java and go a sort key. */
	const char *key_name, *sort_name;
	/* The owner's name in the rows, of at most 200 bytes. NULL: the host's name, the process id
	 * and a random number. */
	const char *owner;
	/* The length of a lease, from 1 s to one day. 0: 20 s. */
	uint64_t lease_ms;
	/* The interval between heartbeats, at most half of the lease. 0: a quarter of the lease.
	 */
	uint64_t heartbeat_ms;
	/* Send heartbeats only by s3once_lock_heartbeat(), so that a holder without progress loses
	 * its lock. */
	int manual;
	/* S3ONCE_LOCK_SUSPECT is reported when less than this is left of a lease. It is less than
	 * lease_ms - heartbeat_ms, or with `manual` at most the lease. 0: half of lease_ms -
	 * heartbeat_ms. */
	uint64_t suspect_ms;
	enum s3once_lock_release_by release_by;
	enum s3once_lock_tokens tokens;
	/* Accept a global table whose replicas are not strongly consistent. Each Region checks
	 * conditions against its own replica, so a lock excludes only clients of the same Region.
	 * Without this option, such a table is refused (-EIO), if dynamodb:DescribeTable is
	 * allowed. */
	int allow_replicas;
	/* While waiting for a lock, the longest pause between two reads of its row. 0: 1 s. */
	uint64_t poll_ms;
	/* A directory for recording how long the rows of other owners have not changed. With it,
	 * even a program that runs only briefly can take over the lock of a dead holder. A missing
	 * directory is created, but not its parents. NULL: nothing is recorded. "": a directory in
	 * this user's own state. */
	const char *observations;
	/* Access to the services; endpoint_url is that of S3. NULL leaves each to the environment
	 * and the profile. */
	const char *dynamodb_endpoint_url, *endpoint_url, *region, *profile, *ca_bundle;
	/* Time limit of one attempt at a request. 0: a quarter of the lease. */
	uint64_t request_timeout_ms;
	/* The program changes no lock: it calls only s3once_lock_get() and s3once_lock_list(), and
	 * s3once_lock_acquire() returns -EINVAL. An SQLite file is read even if its file system is
	 * full or read-only, and is never created. If it is missing, s3once_locks_open() returns
	 * -EIO, except that a missing file of "local" counts as empty. */
	int read_only;
	/* For a program that only renews, releases or breaks existing locks. A missing SQLite file
	 * and s3once_lock_acquire() are treated as with read_only. */
	int must_exist;
	/* NULL: events are queued for s3once_locks_next_event(). The queue has no limit, so fetch
	 * them. */
	s3once_lock_callback *callback;
	void *callback_arg;
	/* For options of later versions; all 0. A library that does not know an option returns
	 * -EINVAL. The structs below have such members, too. */
	uint64_t reserved[16];
};

/* A client: one store with its connections, its heartbeats and its locks. */
struct s3once_locks;

/* Opens a client. Free it with s3once_locks_free(). It sends nothing, creates a missing SQLite file
 * (see read_only and must_exist), and starts threads, which block all signals. */
S3ONCE_PUBLIC int s3once_locks_open(const struct s3once_locks_options *options,
	struct s3once_locks **ret_locks, struct s3once_lock_error *ret);
/* Ends every wait and releases all locks, several at once. With `keep`, only their heartbeats end,
 * and the locks expire or are resumed. It takes at most about timeout_ms. Locks that could not be
 * released by then expire, and -EIO is returned.
 *
 * It may be called again, for example to release locks that the first call kept. Only one thread
 * may call it at a time, and no handle may be freed meanwhile. */
S3ONCE_PUBLIC int s3once_locks_close(
	struct s3once_locks *locks, int keep, uint64_t timeout_ms, struct s3once_lock_error *ret);
/* Closes the client with `keep`, unless it was closed before, and frees it with all of its handles.
 * Call it once, when no other call is under way. NULL is ignored. */
S3ONCE_PUBLIC void s3once_locks_free(struct s3once_locks *locks);

/* Options for making a table. Zero the struct, and set the members that differ from the default. */
struct s3once_locks_table {
	/* Provisioned capacity. If only one of them is 0, it becomes 1. If both are 0, the table is
	 * on demand. */
	uint64_t read_units, write_units;
	/* The attribute for which time to live is turned on (python: "expiry_time"). NULL: none.
	 * Not for go, whose client copies unknown attributes without renewing them. */
	const char *ttl_name;
	/* Name, value, name, value, …, NULL. NULL: no tags. */
	const char *const *tags;
	/* Time limit for the table to become usable. 0: 5 min. */
	uint64_t timeout_ms;
	uint64_t reserved[16];
};
/* Creates the table and waits until it can be used. *ret_created is 0 if it already existed with
 * these keys, which is not a failure. Neither is a server without time to live; ret->text mentions
 * it. For S3, tests whether the bucket honours conditional writes, and *ret_created stays 0. For
 * SQLite, does nothing. */
S3ONCE_PUBLIC int s3once_locks_init(struct s3once_locks *locks,
	const struct s3once_locks_table *table, int *ret_created, struct s3once_lock_error *ret);

/* A descriptor that is readable for poll() while events are queued, or -1 if there is a callback.
 * It is valid until s3once_locks_free(). */
S3ONCE_PUBLIC int s3once_locks_event_fd(const struct s3once_locks *locks);
/* Passes the oldest queued event to `callback` and returns 1, or returns 0 if there is none. */
S3ONCE_PUBLIC int s3once_locks_next_event(
	struct s3once_locks *locks, s3once_lock_callback *callback, void *arg);

/* Counts the sent requests by kind. Returns the name of kind i (from 0), such as "UpdateItem", and
 * its count in *ret_count; NULL after the last kind. The string is static. */
S3ONCE_PUBLIC const char *s3once_locks_requests(
	const struct s3once_locks *locks, size_t i, uint64_t *ret_count);

/* An additional attribute of a row. It is written as a string. */
struct s3once_lock_attribute {
	const char *name, *value;
};

/* A request for a lock. Zero the struct, set the key, and the members that differ from the
 * default. */
struct s3once_lock_request {
	/* 1 to 1,000 bytes. In a table it must not begin with "s3once-token:"; in an SQLite file
	 * and in S3 it must not contain a byte 1. In S3 the object's key has at most 1,024 bytes,
	 * and each special character takes three of them. */
	const char *key;
	/* NULL: none (python: "-"). */
	const char *sort_key;
	/* Time limit for waiting. 0: try once. UINT64_MAX: wait forever, without -EBUSY. */
	uint64_t wait_ms;
	/* The length of this lock's lease. 0: the client's. If it is not the client's, heartbeats
	 * come after a quarter of it, and S3ONCE_LOCK_SUSPECT when three eighths are left. */
	uint64_t lease_ms;
	/* New data of the row, of at most 256 KiB. NULL keeps the data of the last holder (java and
	 * go). */
	const void *data;
	size_t data_bytes;
	/* At most 20 additional attributes for the row, with a total of 64 KiB for names and
	 * values. A row that is released by mark keeps them, and those of earlier holders. A row
	 * has at most 400 KB and 1,000 attributes, so do not invent new names each time. */
	const struct s3once_lock_attribute *attributes;
	size_t n_attributes;
	/* The number of owners that may hold the lock at once, up to 1,000. 0: one. All users of a
	 * key have to pass the same number. The row of slot N > 0 has the key "KEY#N" (dlm: the
	 * number), so no other lock may have such a key. The tokens of all slots come from one
	 * counter. */
	unsigned slots;
	/* If this client already holds the lock, return the same handle again. Without this option,
	 * a client waits for its own lock as for that of another owner. */
	int reentrant;
	uint64_t reserved[16];
};
/* Acquires a lock. While another owner holds it, the row is read after random pauses, which grow to
 * poll_ms, and at the time at which the holder's lease must have expired. A failed request is
 * retried until wait_ms is over, but for at least 5 s and at most the lease, so the call may take
 * that much longer than wait_ms. If a request is retried for longer than 6 s, a warning reports its
 * failure.
 *
 * Free *ret_lock with s3once_lock_free(), or with the client. */
S3ONCE_PUBLIC int s3once_lock_acquire(struct s3once_locks *locks,
	const struct s3once_lock_request *request, struct s3once_lock **ret_lock,
	struct s3once_lock_error *ret);
/* Releases a lock. Call it once for each time the lock was acquired. The last call ends the
 * heartbeats, regardless of its result. -ESTALE means that the lock had been lost. -EIO means that
 * it is unknown whether the lock was released: repeat the call, or let the lease expire. */
S3ONCE_PUBLIC int s3once_lock_release(struct s3once_lock *lock, struct s3once_lock_error *ret);
/* Ends the heartbeats and frees the handle, without releasing the lock. Call it once, when no other
 * call on the handle is under way. All users of a lock that was acquired several times
 * (`reentrant`) share a handle, and only the last of them may free it. NULL is ignored. */
S3ONCE_PUBLIC void s3once_lock_free(struct s3once_lock *lock);

/* The time in ms for which the lock is certainly still held; 0 if it is lost, expired or released.
 * Lock-free. */
S3ONCE_PUBLIC uint64_t s3once_lock_remaining_ms(const struct s3once_lock *lock);
/* Whether the lock is lost for good. Lock-free. */
S3ONCE_PUBLIC int s3once_lock_is_lost(const struct s3once_lock *lock);
/* The fencing token, which is greater than that of every earlier holder of this key whose tokens
 * came from the same place (enum s3once_lock_tokens). It is 0 only with S3ONCE_LOCK_TOKENS_NONE. */
S3ONCE_PUBLIC uint64_t s3once_lock_token(const struct s3once_lock *lock);
/* The strings are borrowed until s3once_lock_free(). Slots are counted from 0. */
S3ONCE_PUBLIC const char *s3once_lock_key(const struct s3once_lock *lock);
S3ONCE_PUBLIC const char *s3once_lock_owner(const struct s3once_lock *lock);
S3ONCE_PUBLIC unsigned s3once_lock_slot(const struct s3once_lock *lock);
/* The row's data, as acquired or last set; NULL if there is none. Borrowed until it is set again or
 * the handle is freed. */
S3ONCE_PUBLIC const void *s3once_lock_data(const struct s3once_lock *lock, size_t *ret_bytes);

/* An additional attribute of the acquired row, from this holder or an earlier one. NULL if there is
 * none, or if it is not a string. Borrowed until s3once_lock_free(). */
S3ONCE_PUBLIC const char *s3once_lock_extra(const struct s3once_lock *lock, const char *name);

/* Renews the lease now. This takes at most about half of the lease. -ESTALE means that the lock is
 * lost. -EIO means that it is unknown whether the lease was renewed: the old lease stays valid, and
 * the call may be repeated. The two functions below fail in the same ways. */
S3ONCE_PUBLIC int s3once_lock_heartbeat(struct s3once_lock *lock, struct s3once_lock_error *ret);
/* Renews the lease if less than `ms` are left. If `ms`, which is at most 21 hours, is more than
 * nine tenths of the lock's lease, the lease becomes ms + ms / 8 + 1 s. */
S3ONCE_PUBLIC int s3once_lock_ensure(
	struct s3once_lock *lock, uint64_t ms, struct s3once_lock_error *ret);
/* Replaces the data, or deletes it if NULL, and renews the lease. The data has at most 256 KiB.
 * Only java and go support data. */
S3ONCE_PUBLIC int s3once_lock_set_data(
	struct s3once_lock *lock, const void *data, size_t bytes, struct s3once_lock_error *ret);

/* Writes a text from which any process can make a handle of this lock (s3once_lock_resume()). It
 * consists of letters, digits, '-' and '_'. Writes at most `size` bytes, always with a NUL. -ENOSPC
 * means that `size` is too small; 3,200 is enough. */
S3ONCE_PUBLIC int s3once_lock_handle(const struct s3once_lock *lock, char *ret, size_t size);
/* Makes a handle from that text. Reads the row once, and returns -ESTALE if another owner has it.
 * Until the lease is renewed, its remaining time is unknown, and s3once_lock_remaining_ms() is 0.
 * Heartbeats begin with the first s3once_lock_heartbeat(). */
S3ONCE_PUBLIC int s3once_lock_resume(struct s3once_locks *locks, const char *handle,
	struct s3once_lock **ret_lock, struct s3once_lock_error *ret);

/* The content of a row. Its strings are never NULL; `data` may be. All are valid only during the
 * call of the visitor. */
struct s3once_lock_info {
	const char *key, *sort_key, *owner, *version;
	/* 0 if the row is marked as released. A row that cannot be understood counts as held. */
	int held;
	/* Whether the row can be understood. If not, `why` is the reason, and the row never counts
	 * as stale. */
	int understood;
	const char *why;
	/* The length of the lease, or 0 if unknown. */
	uint64_t lease_ms;
	/* The time since this client, or one with the same observations, first saw this version.
	 * Only s3once_lock_get() sets it, and only for a row that is held and understood. Otherwise
	 * it is 0. */
	uint64_t unchanged_ms;
	/* The fencing token in the row (S3ONCE_LOCK_TOKENS_ROW), or 0 if there is none. */
	uint64_t token;
	/* The row's own time of expiry, in seconds since 1970, or 0 if it has none. */
	int64_t expires_s;
	const void *data;
	size_t data_bytes;
	/* Additional attributes; only strings are listed. */
	const struct s3once_lock_attribute *attributes;
	size_t n_attributes;
};
/* Returns 0 to continue. Any other value ends s3once_lock_get() or s3once_lock_list(), and becomes
 * its result. */
typedef int s3once_lock_visitor(void *arg, const struct s3once_lock_info *info);
/* Reads one row consistently, and calls the visitor once. The row of slot N > 0 has the key
 * "KEY#N", or for dlm the sort_key "N". -ENOENT means that the lock is free and has no row. */
S3ONCE_PUBLIC int s3once_lock_get(struct s3once_locks *locks, const char *key, const char *sort_key,
	s3once_lock_visitor *visitor, void *arg, struct s3once_lock_error *ret);
/* Visits all rows whose key begins with `prefix`, in no order, by a scan of the table. NULL: all
 * rows. */
S3ONCE_PUBLIC int s3once_lock_list(struct s3once_locks *locks, const char *prefix,
	s3once_lock_visitor *visitor, void *arg, struct s3once_lock_error *ret);
/* Releases the lock of another owner, provided that its row still has this version. -EAGAIN means
 * that it has another version, and -ENOENT that the lock is not held, so that nothing was done. */
S3ONCE_PUBLIC int s3once_lock_break(struct s3once_locks *locks, const char *key,
	const char *sort_key, const char *if_version, struct s3once_lock_error *ret);

#ifdef __cplusplus
}
#endif
#endif
