/* A client of locks and its handles, shared by lock*.c: lock_client.c opens, lock_close.c closes,
 * lock_acquire.c acquires, lock.c is what a holder does, lock_row.c each request on a row,
 * lock_events.c tells, lock_info.c reads, lock_text.c passes a lock on. */
#pragma once
#include "aws/settings.h"
#include "lease/lease.h"
#include "lease/observer.h"
#include "lock/dialect.h"
#include "s3once/lock.h"
#include "store/own_files.h"
#include <pthread.h>
#include <stdatomic.h>

#define LOCK_KEY_MAX        1000                  /* bytes of a key, and of a sort key */
#define LOCK_COUNTER_PREFIX "s3once-token:"       /* of the keys of token counters in tables */
#define LOCK_DAY_MS         (24ULL * 3600 * 1000) /* the longest lease */
#define LOCK_CONNS          16                    /* idle connections that are kept */
#define LOCK_BEATS          32                    /* heartbeats at once, at most */

struct lock_events {
	pthread_mutex_t mutex;
	pthread_cond_t came;
	int fd; /* an eventfd; -1 with a callback */
	s3once_lock_callback *callback;
	void *callback_arg;
	pthread_t thread; /* of the callback */
	struct {
		struct lock_event *first, *last;
		bool stopping;
	} locked;
};
int lock_events_init(
	struct lock_events *events, s3once_lock_callback *callback, void *callback_arg);
void lock_events_stop(struct lock_events *events);  /* no callback from here on */
void lock_events_clear(struct lock_events *events); /* after it was stopped */
/* lease_ops.tell of a struct s3once_lock. */
void lock_events_tell(void *lock, enum lease_event event, const char *text, const char *owner);
/* No event that waits points to this handle any more. */
void lock_events_forget(struct lock_events *events, const struct s3once_lock *lock);

struct s3once_locks {
	const struct dialect *dialect;
	struct table table; /* its names point into this struct */
	char table_name[256], pk_name[256], sk_name[256], owner[256];
	uint64_t lease_ns, heartbeat_ns, suspect_ns; /* heartbeat 0: manual */
	uint64_t poll_ms;
	bool by_mark, is_sqlite;
	enum s3once_lock_tokens tokens;
	char observations[4096]; /* a directory, or "" */
	struct own_files files;  /* of SQLite, by its real path; else none */
	struct aws_settings *aws;
	struct http_shared *http;
	struct store *store;
	struct leases *leases;
	struct lock_events events;
	atomic_bool closed;
	pthread_mutex_t mutex;
	pthread_cond_t closing;
	struct {
		struct s3once_lock *first;
		struct store_conn *idle[LOCK_CONNS];
		unsigned n_idle;
		struct observer observer;
	} locked;
};

struct s3once_lock {
	struct s3once_locks *locks;
	struct s3once_lock *next;
	char id[ID_CHARS + 1]; /* of this acquisition: all its versions begin with it */
	char key[LOCK_KEY_MAX + 1], sort[LOCK_KEY_MAX + 1], owner[256];
	unsigned slot;
	struct lease *lease;
	atomic_bool given_up; /* released, or about to be */
	atomic_bool let_go;   /* while it was ours, a release was sent that may have been applied */
	atomic_bool settled;  /* nothing of it is left in the table that a release could change */
	enum s3once_lock_tokens tokens;
	uint64_t token;
	struct item row;
	void *data; /* or NULL */
	size_t data_bytes;
	unsigned count; /* times it was acquired; by the client's mutex */
};

/* The keys of a lock's row, of the counter beside it, or of any row by what its user calls it. */
struct lock_key {
	char pk[LOCK_KEY_MAX + 40], sk[2 * LOCK_KEY_MAX + 40];
	struct item_key key; /* points to both */
};
void lock_key_of(const struct s3once_locks *locks, const char *key, const char *sort, unsigned slot,
	struct lock_key *ret);
void lock_counter_of(
	const struct s3once_locks *locks, const char *key, const char *sort, struct lock_key *ret);
/* Whether these can be keys here; -EINVAL with a sentence. */
int lock_key_check(const struct s3once_locks *locks, const char *key, const char *sort,
	struct s3once_lock_error *ret);

/* A connection for one call. NULL: out of memory. */
struct store_conn *lock_conn_get(struct s3once_locks *locks);
void lock_conn_put(struct s3once_locks *locks, struct store_conn *conn);
/* Until the deadline, or until the client is closed. */
struct call_limits lock_limits(struct s3once_locks *locks, uint64_t deadline_ns);

/* Fills an error (NULL is fine) and returns r. */
int lock_error(struct s3once_lock_error *ret, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int lock_failed(struct s3once_lock_error *ret, int r, const struct problem *problem);
/* The same of a row that another holds. */
int lock_held(struct s3once_lock_error *ret, int r, const struct lock_row *row);

/* A new handle that the client does not know yet; NULL: out of memory. */
struct s3once_lock *lock_new(struct s3once_locks *locks, const char *key, const char *sort,
	unsigned slot, const char *id, uint64_t lease_ns);
/* The client knows it from now on, and ends it when it is closed; -ECANCELED if it was. */
int lock_link(struct s3once_lock *lock, struct s3once_lock_error *ret);
/* Releases its row, if it is still ours; as s3once_lock_release says. */
int lock_give_up(struct s3once_lock *lock, uint64_t deadline_ns, struct s3once_lock_error *ret);
int lock_keep_data(struct s3once_lock *lock, const void *data, size_t bytes);
/* The handle keeps the row that it was acquired as, and its data; takes the item. 0 or -ENOMEM. */
int lock_keep_row(struct s3once_lock *lock, struct item *item);
/* Whether an attribute of this name cannot be one more of a row. */
bool lock_owns(const struct s3once_locks *locks, const char *name);

/* Each request on a row. */

#define LOCK_FILE_GONE "the file of its row was removed or replaced"
struct lock_take {
	const struct s3once_lock *lock;
	const struct s3once_lock_request *request;
	const char *version;
	const char *seen; /* take over a row of this version; NULL: one that is absent or free */
};
/* OK: the row is ours, *ret is it. REFUSED: *ret is another's (or empty). */
enum outcome lock_row_take(struct store_conn *conn, const struct lock_take *take,
	const struct call_limits *limits, struct item *ret, struct problem *ret_problem);
enum outcome lock_row_count(struct store_conn *conn, const struct s3once_lock *lock,
	const struct call_limits *limits, uint64_t *ret_token, struct problem *ret_problem);
/* Gives a row of this version up, by delete or mark. OK also if it is gone already. */
struct lock_giving {
	struct s3once_locks *locks;
	struct item_key key;
	const char *version, *or_version; /* or_version: "" or one that it may have instead */
	const char *id;                   /* whose versions begin so; NULL: any */
};
enum outcome lock_row_give(struct store_conn *conn, const struct lock_giving *giving,
	const struct call_limits *limits, struct item *ret_present, struct problem *ret_problem);
extern const struct lease_ops lock_lease_ops; /* of a struct s3once_lock */
bool lock_version_is_of(const char *version, const char *id);

/* Notes what a reply that arrived at now_ns showed of a row; how long it has not changed, in ns. */
uint64_t lock_observe(
	struct s3once_locks *locks, struct item_key key, const char *version, uint64_t now_ns);
/* Once a day, removes kept observations that are a month old, so that they do not grow without end.
 */
void lock_observe_sweep(const struct s3once_locks *locks);
/* The row is ours, or gone: nothing is to be remembered of it. */
void lock_unobserve(struct s3once_locks *locks, struct item_key key);
