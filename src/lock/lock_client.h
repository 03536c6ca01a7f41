/* A client of locks and its handles, as the files lock*.c share them.
 *
 * lock_client.c opens a client. lock_acquire.c acquires a lock, by what
 * lock_observe.c remembers of its row. lock.c has the functions of a
 * handle, and closes a client. lock_row.c renews a row and releases it. lock_events.c reports
 * events to the user. lock_info.c reads rows, and passes a lock on to another process. */
#pragma once
#include "aws/settings.h"
#include "lease/lease.h"
#include "lease/observer.h"
#include "lock/dialect.h"
#include "s3once/lock.h"
#include "store/dynamodb.h"
#include "store/state_folder.h"
#include <stdatomic.h>
#include <uv.h>

#define LOCK_KEY_MAX 1000 /* the most bytes of a key, and of a sort key */
/* The most bytes of a row's data, and of the names and values of its further attributes: a row of
 * DynamoDB has at most 400 KB. */
#define LOCK_DATA_MAX       (256U << 10)
#define LOCK_ATTRIBUTES_MAX (64U << 10)
#define LOCK_COUNTER_PREFIX "s3once-token:" /* prefix of the keys of token counters in tables */
/* In a file and in a bucket, separates the key of a lock, which cannot have this byte there, from
 * its sort key: together they are one sort key of the store. */
#define LOCK_SORT_SEPARATOR "\x01"
#define LOCK_DAY_MS         (24ULL * 3600 * 1000) /* the longest lease */
#define LOCK_PLACE_MAX      1400                  /* the most bytes of s3://BUCKET/PREFIX */
#define LOCK_BEATS          32                    /* the most heartbeats at once */

struct lock_events {
	uv_mutex_t mutex;
	uv_cond_t came;
	int fd; /* an eventfd; -1 with a callback */
	s3once_lock_callback *callback;
	void *callback_arg;
	uv_thread_t thread; /* calls the callback */
	struct {
		struct lock_event *first, *last;
		bool stopping;
	} locked;
};
/* Makes the queue. Without a callback it has a descriptor, and with one a thread. 0 or -errno. */
int lock_events_init(
	struct lock_events *events, s3once_lock_callback *callback, void *callback_arg);
/* Ends the thread that calls the callback, after a call that is under way. No other call begins
 * after that. */
void lock_events_stop(struct lock_events *events);
/* Frees the events that still wait. It is called after lock_events_stop(). */
void lock_events_clear(struct lock_events *events);
/* Implements lease_ops.on_event for a struct s3once_lock: queues an event. Called from any
 * thread. */
void lock_events_add(void *lock, enum lease_event event, const char *text, const char *owner);
/* Sets the handle to NULL in the waiting events of a lock that is about to be freed. The events
 * stay. */
void lock_events_forget(struct lock_events *events, const struct s3once_lock *lock);

struct s3once_locks {
	const struct dialect *dialect;
	struct table table; /* its names point into this struct */
	char table_name[256], pk_name[256], sk_name[256], owner[256];
	char s3_place[LOCK_PLACE_MAX];               /* "s3://BUCKET/PREFIX"; "": it is not S3 */
	uint64_t lease_ns, heartbeat_ns, suspect_ns; /* heartbeat_ns 0: the user sends heartbeats */
	uint64_t poll_ms;
	bool may_acquire;      /* it was opened neither with read_only nor with must_exist */
	bool allows_replicas;  /* the user asserts that all holders use one Region */
	atomic_bool has_shape; /* the table is known not to be split among Regions */
	bool by_mark;          /* a released row stays, marked as free */
	/* In a file or a bucket only this program has rows, with the keys of lock_key_of(). In a
	 * table, other programs have theirs. */
	bool is_file_or_bucket;
	bool is_s3; /* it is a bucket */
	enum s3once_lock_tokens tokens;
	char observations[4096]; /* the folder for observations; "": they are not kept */
	/* They were to be kept, and cannot be: only a wait that is longer than the lease of a dead
	 * holder notices it. */
	_Atomic(bool) loses_observations;
	struct own_files files; /* the SQLite file, by its real path; empty for a service */
	struct aws_settings *aws;
	struct http_shared *http;
	struct store *store;
	struct lease_keeper *keeper;
	struct lock_events events;
	atomic_bool closed;
	uv_mutex_t mutex;
	uv_cond_t closing;
	struct {
		struct s3once_lock *first;
		struct observer observer;
	} locked;
};

/* The key of a lock's row, or of the counter beside it. The 40 bytes are for additions to the
 * user's keys: the number of a slot, a separator and LOCK_COUNTER_PREFIX. */
struct lock_key {
	char pk[LOCK_KEY_MAX + 40], sk[2 * LOCK_KEY_MAX + 40];
	struct item_key key; /* points to the two arrays above */
};

struct s3once_lock {
	struct s3once_locks *locks;
	struct s3once_lock *next;
	char id[ID_CHARS + 1]; /* id of this acquisition; all versions of its row begin with it */
	char key[LOCK_KEY_MAX + 1], sort[LOCK_KEY_MAX + 1], owner[256];
	unsigned slot;
	struct lock_key row_key;
	struct lease *lease;
	atomic_bool release_begun; /* released, or about to be */
	/* A release that was sent while the lock was ours may have been applied. */
	atomic_bool maybe_released;
	/* The row was released, or is no longer ours: no further release has to be tried. */
	atomic_bool release_done;
	enum s3once_lock_tokens tokens;
	uint64_t token;
	struct item row; /* as it was acquired, with the data that was set since */
	unsigned count;  /* acquisitions that were not released; guarded by the client's mutex */
};

/* Makes the key of the row that a slot of the lock `key` has. `sort` is the lock's sort key; "": it
 * has none. */
void lock_key_of(const struct s3once_locks *locks, const char *key, const char *sort, unsigned slot,
	struct lock_key *ret);
/* Checks whether a lock of this client can have these keys. 0, or -EINVAL with a sentence. */
int lock_key_check(const struct s3once_locks *locks, const char *key, const char *sort,
	struct s3once_lock_error *ret);

/* The limits of a request that ends at the deadline, or when the client is closed. */
struct call_limits lock_limits(struct s3once_locks *locks, uint64_t deadline_ns);

/* Reports in *ret that the table is split among Regions, and returns `error`. */
int lock_error_split_table(const struct s3once_locks *locks, const struct dynamodb_shape *shape,
	int error, struct s3once_lock_error *ret);
/* Both describe a failure in *ret, if `ret` is not NULL, and return r. lock_error() takes a format,
 * and lock_error_of() takes the problem of a request, with its code and request id. */
int lock_error(struct s3once_lock_error *ret, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int lock_error_of(const struct s3once_locks *locks, struct s3once_lock_error *ret, int r,
	const struct problem *problem);
/* Ends a call whose request has failed. -EIO as lock_error_of(), or -ECANCELED with a sentence if
 * the client was closed meanwhile, which ends its requests. */
int lock_request_failed(const struct s3once_locks *locks, struct s3once_lock_error *ret,
	const struct problem *problem);
/* As lock_error(), with a sentence that the lock `key` is held by the owner of this row. */
int lock_error_held(
	struct s3once_lock_error *ret, int r, const char *key, const struct lock_row *row);

/* Makes a handle, which is not in the client's list yet. NULL if there is no memory. */
struct s3once_lock *lock_new(struct s3once_locks *locks, const char *key, const char *sort,
	unsigned slot, const char *id, uint64_t lease_ns);
/* Begins to hold a row that is ours: starts the heartbeats, and adds the handle to the client's
 * list, so that closing the client releases the lock. The handle takes over the item. The lease
 * counts from sent_ns, when the request that wrote the row was sent; 0 is as in lease_start().
 *
 * 0, -ENOMEM, or -ECANCELED if the client is closed already. After an error the caller frees the
 * handle, which also ends the heartbeats. */
int lock_start(struct s3once_lock *lock, struct item *item, const char *version, uint64_t sent_ns,
	struct s3once_lock_error *ret);
/* Checks the data of a row. 0, or -EINVAL with a sentence. */
int lock_data_check(const struct s3once_locks *locks, size_t bytes, struct s3once_lock_error *ret);
/* Whether the attribute of this name is reserved: the lock itself writes it, so the user may
 * not. */
bool lock_reserves_attribute(const struct s3once_locks *locks, const char *name);

/* The requests on a row. */

#define LOCK_FILE_GONE "the file of its row was removed or replaced, or is no longer accessible"
/* The row that lock_row_release() releases. */
struct lock_release_target {
	struct s3once_locks *locks;
	struct item_key key;
	/* The row's version, and another one that it may have instead, or "". */
	const char *version, *or_version;
	/* The id of our acquisition. A free row with a version of this id was released by an
	 * earlier try of ours. NULL: another owner acquired the row. */
	const char *id;
	/* Our lease is over, so that another client may have held the lock since. Then
	 * limits->maybe_applied must not be NULL. */
	bool is_late;
};
/* Releases a row that has the given version, by deleting it or by marking it as free. Also OK if
 * the row is gone already, unless is_late is set and no try of ours may have removed it. REFUSED:
 * *ret_present is the present row. */
enum outcome lock_row_release(struct store_conn *conn, const struct lock_release_target *target,
	const struct call_limits *limits, struct item *ret_present, struct problem *ret_problem);
/* The operations by which a lease renews the row of a struct s3once_lock. */
extern const struct lease_ops lock_lease_ops;
/* Whether a version is one of the acquisition with this id. */
bool lock_version_is_of(const char *version, const char *id);

/* Notes the version of a row that a reply showed, which arrived at now_ns. Returns for how long the
 * row has not changed, in ns. */
uint64_t lock_observe(
	struct s3once_locks *locks, struct item_key key, const char *version, uint64_t now_ns);
/* Forgets the observation of a row that is ours now. */
void lock_observe_forget(struct s3once_locks *locks, struct item_key key);
/* Removes remembered observations that are a month old, at most once a day. */
void lock_observe_sweep(const struct s3once_locks *locks);
