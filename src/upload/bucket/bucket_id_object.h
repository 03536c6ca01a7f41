/* The object that --bucket-id-object names: its metadata has a random id, by which this bucket is
 * told from every other one. */
#pragma once
#include "base/random.h"
#include "s3/s3.h"

/* The id; "" if there is no such object. False with a sentence: that cannot be found out, or the
 * object is somebody else's. */
bool bucket_id_object_read(struct s3_conn *conn, const char *key, const struct call_limits *limits,
	char ret_id[static ID_CHARS + 1], struct problem *ret_problem);
/* What it is made of. Borrowed. */
struct bucket_id_object {
	const char *key, *id, *table_id;
	enum checksum checksum; /* goes out with it */
	unsigned digests;       /* to compute of it, see s3_wanted_digests() */
};
/* Makes it, unless another uploader did first, and reads the id that it has. False with a sentence.
 */
bool bucket_id_object_make(struct s3_conn *conn, const struct bucket_id_object *wanted,
	const struct call_limits *limits, char ret_id[static ID_CHARS + 1],
	struct problem *ret_problem);
