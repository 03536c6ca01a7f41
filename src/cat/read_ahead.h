/* Reads objects in order, while their next ranges are fetched ahead by several threads. Memory: at
 * most READ_AHEAD ranges of READ_BYTES. For one thread at a time. */
#pragma once
#include "cat/log_object.h"

#define READ_AHEAD 16
#define READ_BYTES (4U << 20)

/* The bucket of the objects. Borrowed. */
struct read_place {
	struct s3 *s3;
	struct s3_conn *conn; /* the caller's connection, used if no thread can be started */
	const struct s3_headers *headers; /* with the key for SSE-C; NULL: none */
	struct call_limits limits;        /* without `abandon` */
};

struct read_ahead;
/* Returns 0, or -ENOMEM with a sentence. */
int read_ahead_new(
	const struct read_place *place, struct read_ahead **ret, struct problem *ret_problem);
/* Ends the requests that are under way. Nothing is read after it. */
void read_ahead_stop(struct read_ahead *ahead);
/* Stops, and frees the memory. NULL is fine. */
void read_ahead_free(struct read_ahead *ahead);

/* Sends a HEAD of each of n objects, and waits for the answers. */
void read_ahead_heads(struct read_ahead *ahead, struct log_object *objects, size_t n);

/* Begins to read n objects, which are borrowed until the next call or read_ahead_end(). Objects
 * that are not log_object_is_read() are skipped. */
void read_ahead_begin(struct read_ahead *ahead, const struct log_object *objects, size_t n);
/* A range of an object. Borrowed until the next call. */
struct read_range {
	const unsigned char *bytes;
	size_t n; /* 0 at the end of the object */
};
/* Gets the next range of this object. Unread ranges of the objects before it are dropped. An
 * outcome other than OK has a sentence; the next call then has to be for another object.
 * OUTCOME_REFUSED: the object was replaced since its HEAD. */
enum outcome read_ahead_next(struct read_ahead *ahead, const struct log_object *object,
	struct read_range *ret, struct problem *ret_problem);
/* Drops the ranges that were not read. Waits for the requests that are under way. The objects are
 * no longer borrowed then. */
void read_ahead_end(struct read_ahead *ahead);
