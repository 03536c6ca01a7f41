/* A body that is followed by its checksum: it is digested while it is sent, and so is read only
 * once. Internal to src/s3.
 *
 * The body is cut into chunks, which the server joins again (aws-chunked):
 *
 *	100000\r\n       (the length of the chunk, in hex)
 *	BYTES\r\n
 *	1f\r\n
 *	BYTES\r\n
 *	0\r\n
 *	x-amz-checksum-crc32c:BASE64\r\n
 *	\r\n
 *
 * Source: Amazon S3 API Reference, "Signature calculations for the Authorization header: Including
 * trailing headers". */
#pragma once
#include "s3/s3.h"

#define S3_TRAILER_SIGNED "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

struct s3_trailer {
	struct http_body inner; /* the body itself */
	struct digest *digest;  /* borrowed */
	const struct s3_trailing *trailing;
	enum checksum checksum;
	uint64_t read_bytes;     /* bytes of the body that were read */
	uint64_t reported_bytes; /* bytes that were reported to body.moved() */
	uint64_t chunk_left;     /* bytes of the chunk that are still to be read */
	bool has_ended;          /* the frame is the last one */
	char frame[100];         /* the text between two chunks, or after the last one */
	size_t frame_bytes, frame_sent;
};
/* Makes the body that is sent in place of put->body. It borrows *ret, the digest and everything
 * that *put borrows. */
struct http_body s3_trailer_begin(
	struct s3_trailer *ret, const struct s3_put *put, struct digest *digest);
