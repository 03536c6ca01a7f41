/* What the headers of a reply say about an object: for this folder only. */
#pragma once
#include "s3/s3_request.h"

/* Whether the object's etag is not an MD5. The reply says so (Amazon S3 API Reference, "Object"),
 * or it is known of this server. */
bool s3_reply_etag_is_opaque(const struct s3 *s3, const struct http_reply *reply);
/* Whether the target asks for an encryption that the reply does not confirm. */
bool s3_reply_lacks_encryption(const struct s3_target *target, const struct http_reply *reply);
/* Learns from the reply to a write whether etags are MD5s. `sum` is the checksum that the reply
 * shows. */
void s3_learn_etag(struct s3 *s3, const struct sums *sums, const struct http_reply *reply,
	const struct s3_sum *sum);
/* The checksum that the reply's headers show. */
void s3_read_sum(const struct http_reply *reply, struct s3_sum *ret);
/* The header's value, or "" where it is missing or does not fit. */
void s3_copy_header(const struct http_reply *reply, const char *name, char *ret, size_t size);
