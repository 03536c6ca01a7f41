/* Internal header of the files s3_store*.c. */
#pragma once
#include "base/text.h"
#include "s3/s3.h"
#include "store/store.h"
#include <stdatomic.h>

struct s3_store {
	struct store store;
	struct s3 *s3;
	char *bucket;
	char *prefix;          /* prefix of all keys: "" or "locks/" */
	atomic_bool is_proven; /* the server honours conditions, in a known form */
};
struct s3_store_conn {
	struct store_conn conn;
	struct s3_store *s3_store; /* the store that it belongs to */
	struct s3_conn *s3;
	struct text body; /* body of the object that is being put */
};

/* A key of the store as the key of an object: PREFIX/PK/SK. In PK and SK everything but ASCII
 * letters, digits, '-', '_', '~' and '.' is written as %XX, and so is a '.' that is the first
 * character. So no server takes a key for a path with "..", and none cuts it before a '#'. */
struct object_name {
	char text[KEY_BYTES_MAX + 1];
};
/* OK, or INVALID with a sentence if the key of the object would be too long. */
enum outcome s3_store_name(const struct s3_store *store, struct item_key key,
	struct object_name *ret, struct problem *ret_problem);

/* Adds the sort key that is the last part of a name, with its NUL; nothing if the name does not
 * belong to this store. 0 or -ENOMEM. */
int s3_store_add_key(const char *name, struct text *ret);

/* The most bytes of an object. The 256 KiB of data that a lock may have take 342 KiB as base64, and
 * its 64 KiB of attributes take up to 384 KiB, if each byte is written as \u00XX. */
#define S3_STORE_MAX_BYTES (1 << 20)
/* The result of a GET. Zeroed before, cleared by s3_store_row_clear(). */
struct s3_store_row {
	bool is_there;              /* there is an item; an empty object means a removed one */
	struct item item;           /* with its keys; empty if there is none */
	char etag[S3_ETAG_MAX + 1]; /* "": there is no object */
};
/* Also OK if there is no item. SETUP if the object is not an item's. */
enum outcome s3_store_read(struct s3_store_conn *conn, struct item_key key,
	const struct call_limits *limits, struct s3_store_row *ret, struct problem *ret_problem);
void s3_store_row_clear(struct s3_store_row *row);

/* Puts an object, whose content is conn->body. Only if_none_match or if_match of the condition may
 * be set. *ret is the object according to the reply. LOST also if the reply has no etag. */
enum outcome s3_store_put(struct s3_store_conn *conn, const char *name,
	struct s3_condition condition, const struct call_limits *limits, struct s3_object *ret,
	struct problem *ret_problem);

/* Implements store_ops.prepare(). */
enum outcome s3_store_prepare(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem);
