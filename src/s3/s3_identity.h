/* What a service shows of a bucket that distinguishes it from another bucket of the same name. */
#pragma once
#include "s3/s3.h"

#define S3_CREATED_MAX 40
#define S3_OWNER_MAX   200

/* A field is "" where the service does not tell it. */
struct s3_identity {
	char created[S3_CREATED_MAX + 1]; /* the time as the service writes it */
	char owner[S3_OWNER_MAX + 1];     /* an id; of a bucket of ours, it is our own */
};

/* Asks ListBuckets. It fills both fields for a bucket of the caller's account. For any other
 * bucket, and where the reply is not one of ListBuckets, the outcome is OK and both are "". So is a
 * creation date that the service makes up, as Swift does. Other outcomes are as of any call. */
enum outcome s3_identify_by_listing(struct s3_conn *conn, const struct call_limits *limits,
	struct s3_identity *ret, struct problem *ret_problem);
/* Asks GetBucketAcl for the owner of any bucket. SETUP also if there is no such bucket. */
enum outcome s3_identify_by_acl(struct s3_conn *conn, const struct call_limits *limits,
	struct s3_identity *ret, struct problem *ret_problem);
