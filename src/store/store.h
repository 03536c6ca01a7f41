/* The conditional item store that keeps marks, sessions and locks. It has three implementations,
 * which one conformance suite tests: DynamoDB, SQLite and, for locks alone, S3.
 *
 * Every write is one atomic step on one item. If a condition is not met, the outcome is
 * OUTCOME_REFUSED, and the caller gets the present item. Since a request may be sent twice, the
 * first try may have changed the item and caused the refusal. The caller recognises this by the
 * unique values that it has written. After an ambiguous outcome (outcome_is_ambiguous()) the same
 * write may be repeated, except one that counts, which would count twice. Keys are compared as
 * bytes (memcmp).
 *
 * A write survives a crash of the process and a power failure. A write with may_sync_later survives
 * a power failure only once it is synced: by the next write without may_sync_later, by
 * store_sync(), after a second, or when the store is closed. A power failure undoes the last
 * writes: if one write is lost, so are all later ones.
 *
 * Opening a store for writing puts its content on the disk. Later writes of other processes are
 * surely on the disk only after store_sync(). Once a sync has failed, all later writes and syncs of
 * the store fail. */
#pragma once
#include "aws/call.h"
#include "store/item.h"

#define STORE_BATCHES_MAX 16 /* size of the word for the dialect of batches, with its NUL */
/* The word for no batches: the server ignores their conditions, or has none. */
#define STORE_BATCHES_NONE "none"
/* The sort keys of the two items of try_batches(). */
#define STORE_PROBE_FIRST  "1"
#define STORE_PROBE_SECOND "2"

struct store;
struct store_conn; /* a connection, used by one thread at a time */

struct store_ops {
	/* No write that was sent before a removal can arrive after it and bring the row back. This
	 * holds where there is no network between the caller and the store. */
	bool removes_for_good;
	int (*conn_new)(struct store *store, struct store_conn **ret);
	void (*conn_free)(struct store_conn *conn);
	/* Finds out whether the service honours the conditions of writes, unless that is known
	 * already or recorded beside the items. Each write does this first. But a caller that
	 * counts time from its write calls this before, since a trial may take some seconds. The
	 * limits are those of reading the record; a trial ends after five minutes. SETUP with a
	 * sentence if the service does not honour conditions. NULL in a store whose service surely
	 * does. */
	enum outcome (*prepare)(struct store_conn *conn, const struct call_limits *limits,
		struct problem *ret_problem);
	/* One write of one item. REFUSED fills *ret, which the caller has zeroed, with the present
	 * item, or leaves it empty if there is none. ret may be NULL. */
	enum outcome (*write)(struct store_conn *conn, struct item_key key,
		const struct item_write *write, const struct call_limits *limits, struct item *ret,
		struct problem *ret_problem);
	/* Two halves of `write`: begin_write() hands the write in, and end_write() waits for its
	 * outcome. Between them all arguments are borrowed, and the connection may do anything but
	 * begin a second write. If it performs another write, both are sent together, so that the
	 * caller waits only once. NULL in a store without marks. */
	void (*begin_write)(struct store_conn *conn, struct item_key key,
		const struct item_write *write, const struct call_limits *limits);
	enum outcome (*end_write)(
		struct store_conn *conn, struct item *ret, struct problem *ret_problem);
	/* ABSENT if there is no such item. */
	enum outcome (*get)(struct store_conn *conn, struct item_key key,
		enum consistency consistency, const struct call_limits *limits, struct item *ret,
		struct problem *ret_problem);
	/* Eventually consistent. Items are visited in any order. Missing items are skipped. */
	enum outcome (*get_many)(struct store_conn *conn, const struct item_key *keys, size_t n,
		const struct call_limits *limits, found_visitor *each, void *arg,
		struct problem *ret_problem);
	/* One page, in the order of sort keys. *ret_more says whether there may be items after the
	 * last one that was visited. */
	enum outcome (*query)(struct store_conn *conn, const struct store_range *range,
		const struct call_limits *limits, found_visitor *each, void *arg, bool *ret_more,
		struct problem *ret_problem);
	/* Reads every item of a table that belongs to the caller alone. NULL if the store does not
	 * have such tables: then the caller uses query. */
	enum outcome (*scan)(struct store_conn *conn, const struct call_limits *limits,
		found_visitor *each, void *arg, struct problem *ret_problem);
	/* Finds out whether writes of several connections may be sent together. It tries this with
	 * two items in a partition of their own: (pk, STORE_PROBE_FIRST) and (pk,
	 * STORE_PROBE_SECOND). The items stay there, and expire after a day.
	 *
	 * OK: *ret_how is the argument for use_batches, in this store or another one of the same
	 * table. Any other outcome is inconclusive. try_batches and use_batches are NULL in a store
	 * that always groups its writes. */
	enum outcome (*try_batches)(struct store_conn *conn, const char *pk,
		const struct call_limits *limits, char ret_how[static STORE_BATCHES_MAX],
		struct problem *ret_problem);
	/* From now on, puts and updates of several callers are sent together, in the dialect named
	 * `how`. An unknown word changes nothing. The names of all attributes must consist of
	 * letters, digits and '_', as those of the tables of fields do. Callers notice one
	 * difference: the item of a refusal may have been read right after the refusal.
	 * Thread-safe. */
	void (*use_batches)(struct store *store, const char *how);
	/* Returns the space of removed items to the file system, a piece at a time, so that other
	 * users need not wait long. *ret_more is set if there is more. NULL if the service does
	 * this by itself. */
	enum outcome (*compact)(struct store_conn *conn, const struct call_limits *limits,
		bool *ret_more, struct problem *ret_problem);
	/* Syncs all data that was read or written before, so that it survives a power failure. NULL
	 * in a store whose writes survive one anyway. */
	enum outcome (*sync)(struct store_conn *conn, const struct call_limits *limits,
		struct problem *ret_problem);
	/* The store's own time in seconds since 1970. NULL: this host's. */
	int64_t (*time_s)(const struct store *store);
	/* Returns the name of the i-th kind of operation, or NULL if there are no more kinds. Sets
	 * *ret_count to the number of times that it was performed so far. */
	const char *(*kind)(const struct store *store, size_t i, unsigned long *ret_count);
	void (*close)(struct store *store);
};
struct store {
	const struct store_ops *ops;
	/* the service behind the store, owned; NULL: the store is on this host */
	struct service *service;
};
struct store_conn {
	struct store *store;
};

int store_conn_new(struct store *store, struct store_conn **ret);
void store_conn_free(struct store_conn *conn); /* NULL is fine */
void store_close(struct store *store);         /* after every connection; NULL is fine */
/* As ops->sync; limits may be NULL. */
enum outcome store_sync(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem);
int64_t store_time_s(const struct store *store); /* as ops->time_s */
/* The latest time that the store's clock may show now. It is known only roughly, since a reply
 * takes a while (see service_time_s()); store_time_s() is the earliest. */
int64_t store_latest_time_s(const struct store *store);

/* Opens a store for many hosts. The table exists already (see store_settings.h). Limits and retries
 * are those of dynamodb.h. */
int store_dynamodb_open(const struct aws_settings *settings, struct http_shared *http,
	const char *table, struct store **ret, struct problem *ret_problem);

/* Opens a store for the locks of many hosts in S3. The place is STORE_S3_BEGIN with BUCKET[/PREFIX]
 * after it; the bucket exists already. Each item is an object PREFIX/PK/SK, and a removed item
 * leaves an empty object behind. Every key has a partition and a sort key.
 *
 * A write takes two requests or more: it reads the object, and replaces it if its etag is still the
 * same. query() lists the whole partition for each page, unless both ends of the range begin alike,
 * and sends a request for each item. */
#define STORE_S3_BEGIN "s3://"
int store_s3_open(const struct aws_settings *settings, struct http_shared *http, const char *place,
	struct store **ret, struct problem *ret_problem);

/* Opens a store for one host, which is an SQLite file (WAL). A missing file is made, with mode 0600
 * whatever the umask is. Its directory has to exist. Only in the state folder (state_folder.h) are
 * missing directories made, with mode 0700.
 *
 * Refused with a sentence: a symbolic link, a file of another owner, one that its group or others
 * may write, one on a network file system, one that is not a store, has a newer layout, is damaged,
 * or is locked for longer than 30 s.
 *
 * STORE_ONLY_READ is for a command that writes nothing. A missing file is then an error (-ENOENT),
 * and an empty one is an empty store. The file is read even if its file system is full or read
 * only, see open_file() in sqlite_file.c. Every write fails. Root may read a file of another user
 * if its directory is that user's or root's. Such a file is opened read only, and its owner may
 * write meanwhile.
 *
 * STORE_SQLITE_NOWHERE is an empty store that is gone when it is closed, for dry runs and tests. */
#define STORE_SQLITE_NOWHERE ":memory:"
enum store_use { STORE_WRITTEN, STORE_ONLY_READ };
int store_sqlite_open(
	const char *path, enum store_use use, struct store **ret, struct problem *ret_problem);

/* The path of marks.db in the folder of state_folder.h. The caller frees it. 0, -ENOENT if the
 * environment names no place for the folder, or another -errno. */
int store_sqlite_default_path(char **ret);

/* The place of marks, by its name in the options: dynamodb:TABLE, sqlite:PATH or local, which is
 * the file marks.db in the folder of state_folder.h. */
struct marks_place {
	bool is_dynamodb;
	const char *table; /* for dynamodb:TABLE; borrowed */
	char *path;        /* for sqlite:PATH and local; owned */
	bool only_read; /* opens the store for reading only; marks_place_parse() sets it to false */
};

/* Reads the name. 0, -EINVAL with a sentence, or -errno with one if there is no place for local
 * marks. */
int marks_place_parse(const char *spec, struct marks_place *ret, struct problem *ret_problem);
void marks_place_clear(struct marks_place *place);

/* Makes the sentence that this table is not there, or has no settings yet. */
void marks_place_explain_unset(const struct marks_place *place, const struct aws_settings *aws,
	struct problem *ret_problem);
/* Opens the store there. A missing SQLite file is made, unless it is only read. aws and http are
 * borrowed until the store is closed. 0, or -errno with a sentence. */
int marks_place_open(const struct marks_place *place, const struct aws_settings *aws,
	struct http_shared *http, struct store **ret, struct problem *ret_problem);
