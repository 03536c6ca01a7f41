/* How an S3 request is put together, and what the headers of its reply say: for this folder
 * only. */
#pragma once
#include "aws/sigv4.h"
#include "s3/s3_reply.h"
#include <stdatomic.h>

/* The values of our metadata: times as rclone writes them, in seconds with a fraction, the hash of
 * the bucket and key that an object is written under, and the sums of the bytes that were sent.
 * These functions do no I/O. */
#define S3_MTIME_CHARS 24
/* "1637000000.123456789", without trailing zeros. */
void s3_format_mtime(int64_t mtime_ns, char ret[static S3_MTIME_CHARS]);
/* The reverse. Digits beyond nanoseconds are ignored. 0 for what is not such a time, and of NULL.
 */
int64_t s3_parse_mtime(const char *s);

#define S3_KEY_HASH_CHARS 20
/* Hex digits of the SHA-256 of "BUCKET/KEY", computed with this digest, which is restarted. 0 or
 * -ENOMEM. */
int s3_key_hash(struct digest *digest, const char *bucket, const char *key,
	char ret[static S3_KEY_HASH_CHARS + 1]);

#define S3_SUMS_CHARS 96
/* "crc32c:BASE64 md5:BASE64": this checksum and the MD5, as far as they were computed. */
void s3_format_sums(
	const struct sums *sums, enum checksum checksum, char ret[static S3_SUMS_CHARS]);
/* The reverse, without the number of bytes. What is not understood is left out of ret->kinds. */
void s3_parse_sums(const char *s, struct sums *ret);

/* How an S3 request is put together: for this folder only. */
enum s3_kind {
	S3_PUT_OBJECT,
	S3_HEAD_OBJECT,
	S3_GET_OBJECT,
	S3_CREATE_UPLOAD,
	S3_UPLOAD_PART,
	S3_LIST_PARTS,
	S3_COMPLETE_UPLOAD,
	S3_ABORT_UPLOAD,
	S3_LIST_UPLOADS,
	S3_HEAD_BUCKET,
	S3_DELETE_OBJECT,
	S3_GET_LIFECYCLE,
	S3_GET_OBJECT_TAGGING,
	S3_LIST_OBJECTS,
};

struct s3 {
	struct service *service;
	char *bucket;
	const struct aws_settings *settings; /* borrowed */
	bool is_tls;
	bool has_md5; /* OpenSSL may forbid it */
	const char *expected_owner;
	bool requester_pays;
	atomic_bool refuses_checksum; /* the server refused it by its name, and gets Content-MD5 */
	atomic_int known[S3_ABILITIES]; /* enum s3_known */
	atomic_int server_is;           /* enum s3_server_is */
	char server[S3_SERVER_MAX + 1]; /* written once, while it is being noted */
};
enum s3_server_is { S3_SERVER_UNKNOWN, S3_SERVER_BEING_NOTED, S3_SERVER_KNOWN };

struct s3_conn {
	struct s3 *s3;
	struct service_conn *service;
	struct text path, query, body; /* of the request under way */
	struct digest digest;          /* for hashes of keys */
};

/* Ours are at most 18. The rest are an object's settings. */
#define S3_REQUEST_HEADERS_MAX  80
#define S3_REQUEST_VALUES_BYTES 800

/* A request that is being made. Its texts are the connection's, so there is one at a time. */
struct s3_request {
	struct s3_conn *conn;
	struct call call;
	struct call_header headers[S3_REQUEST_HEADERS_MAX];
	char checksum[CHECKSUM_BASE64_MAX + 1], sha256[65];
	/* The values of s3_request_headerf(), one after the other. */
	char values[S3_REQUEST_VALUES_BYTES];
	size_t n_values_bytes;
	const struct s3_condition *condition; /* NULL: none */
	bool is_of_upload;
};

/* Begins a request without a body on the target's key, or on the bucket if that is NULL, with the
 * settings of the object that belong to this kind of request. `method` is static. `limits` may be
 * NULL. */
void s3_request_begin(struct s3_request *request, struct s3_conn *conn, enum s3_kind kind,
	const char *method, const struct s3_target *target, const struct call_limits *limits);
/* Adds a parameter of the query. They are added in the order of their names. */
void s3_request_query(struct s3_request *request, const char *name, const char *value);
/* Names the upload that the request is about. Some servers answer NoSuchKey where S3 answers
 * NoSuchUpload, as Ceph's gateway does for ListParts: ABSENT becomes NO_UPLOAD. */
void s3_request_upload(struct s3_request *request, const char *upload_id);
/* Adds a header. `name` and `value` are borrowed until the request was performed. */
void s3_request_header(struct s3_request *request, const char *name, const char *value);
/* The same for a value that is made here, printf style, and kept with the request. */
void s3_request_headerf(struct s3_request *request, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void s3_request_body(struct s3_request *request, const struct s3_put *put);
/* Adds the header of this checksum if S3 keeps it and if it was computed. */
void s3_request_checksum(
	struct s3_request *request, const struct sums *sums, enum checksum checksum);
/* Adds x-amz-checksum-algorithm and x-amz-checksum-type where an upload is created, and only the
 * latter where it is completed. */
void s3_request_checksum_type(struct s3_request *request, enum checksum checksum);
/* If the server does not know If-None-Match, and says so by 501, that is learnt. That a condition
 * is honoured is never learnt from one reply: the server may look first and write then, so that
 * several writers win. */
void s3_request_condition(struct s3_request *request, const struct s3_condition *condition);
/* Asks for the version that the target names. Right after s3_request_begin(). */
void s3_request_version(struct s3_request *request, const struct s3_target *target);
/* Adds our metadata of an object under this key. */
void s3_request_meta(struct s3_request *request, const char *key, const struct s3_meta *meta);
/* Performs it, and has an OK reply read into `arg`, where `document` is not NULL. LOCAL also where
 * a visitor has ended the reading. The caller zeroes *ret_reply before, and clears it after. */
enum outcome s3_request_perform(struct s3_request *request, const struct s3_document *document,
	void *arg, struct http_reply *ret_reply, struct problem *ret_problem);
/* The same for a caller who needs no more of the reply. */
enum outcome s3_request_read(struct s3_request *request, const struct s3_document *document,
	void *arg, struct problem *ret_problem);

/* The outcome of a reply that was whole, but not what was expected, by -EBADMSG or -ENOMEM. What
 * the request did is unknown. */
enum outcome s3_not_understood(
	const struct s3_request *request, int error, struct problem *ret_problem);

/* What the headers of a reply say about an object: for this folder only.
 *
 * Whether the object's etag is not an MD5. The reply says so (Amazon S3 API Reference, "Object"),
 * or it is known of this server. */
bool s3_reply_etag_is_opaque(const struct s3 *s3, const struct http_reply *reply);
/* The etag, without quotes, and the checksum that the reply's headers show; "" where it has none.
 */
void s3_read_sum(const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum);
/* The same of the OK reply to a write. Learns by it whether etags are MD5s, and whether the server
 * echoes this checksum, if it was sent. */
void s3_read_proof(const struct s3_request *request, const struct s3_put *put,
	const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum);
/* The header's value, or "" where it is missing or does not fit. */
void s3_copy_header(const struct http_reply *reply, const char *name, char *ret, size_t size);
