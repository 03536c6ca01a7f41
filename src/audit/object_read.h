/* Reads the content of one object, range by range, for verify and for manifest_fetch.c. */
#pragma once
#include "s3/s3.h"

/* Reads the content of an object whose HEAD was sent before. All bytes are added to the digest and,
 * if a file is given, written to it. LOCAL with *ret_is_replaced and a sentence: the etag is no
 * longer the one that HEAD has shown, so the object was replaced meanwhile. */
struct object_reading {
	struct s3_conn *conn;
	const struct s3_target *target;
	const struct s3_object *object; /* as HEAD has shown it */
	const struct call_limits *limits;
	struct digest *digest; /* initialized by the caller */
	int fd;                /* from manifest_temporary_file(); -1: no file is written */
};
enum outcome object_read(
	const struct object_reading *reading, bool *ret_is_replaced, struct problem *ret_problem);
