/* The S3 calls that an uploader does without: for who looks whether everything is in order. */
#pragma once
#include "s3/s3.h"

/* OK also if there is no such object. */
enum outcome s3_delete_object(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, struct problem *ret_problem);

/* After how many days the bucket's lifecycle rules abort an unfinished multipart upload of keys
 * below prefix; 0: never. */
enum outcome s3_get_abort_days(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, unsigned *ret_days, struct problem *ret_problem);
