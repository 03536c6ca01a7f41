/* Puts an S3 request together, and finds out the features of the server from its reply. Internal to
 * src/s3. */
#pragma once
#include "aws/sigv4.h"
#include "s3/s3_reply.h"
#include "s3/s3_trailer.h"
#include <stdatomic.h>

/* The next functions write and read the values of our metadata. They do no I/O. */
#define S3_MTIME_CHARS 24
/* Writes a time as rclone does: "1637000000.123456789", in seconds, without trailing zeros. */
void s3_format_mtime(int64_t mtime_ns, char ret[static S3_MTIME_CHARS]);
/* Parses a time that s3_format_mtime() or rclone has written. Digits beyond nanoseconds are
 * ignored. Returns 0 if s is NULL or no such time. */
int64_t s3_parse_mtime(const char *s);

#define S3_KEY_HASH_CHARS 20
/* Writes the hash by which an object shows for which bucket and key it was written: the first
 * S3_KEY_HASH_CHARS hex digits of the SHA-256 of "BUCKET/KEY". It is computed with this digest,
 * which is restarted. Returns 0 or -ENOMEM. */
int s3_key_hash(struct digest *digest, const char *bucket, const char *key,
	char ret[static S3_KEY_HASH_CHARS + 1]);

#define S3_SUMS_CHARS 96
/* Writes this checksum and the MD5, as far as they were computed: "crc32c:BASE64 md5:BASE64". */
void s3_format_sums(
	const struct sums *sums, enum checksum checksum, char ret[static S3_SUMS_CHARS]);
/* Parses the output of s3_format_sums(). ret->bytes stays 0. A checksum that is not understood is
 * left out of ret->kinds. */
void s3_parse_sums(const char *s, struct sums *ret);

/* The operations, as the counters name them. */
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
	atomic_bool refuses_checksum;    /* the server refuses the automatic checksum, and gets
					    Content-MD5 */
	atomic_int support[S3_FEATURES]; /* enum s3_support */
	atomic_int server_is;            /* enum s3_server_is */
	char server[S3_SERVER_MAX + 1];  /* written once, in the state S3_SERVER_BEING_NOTED */
};
enum s3_server_is { S3_SERVER_UNKNOWN, S3_SERVER_BEING_NOTED, S3_SERVER_KNOWN };

struct s3_conn {
	struct s3 *s3;
	struct service_conn *service;
	struct text path, query, body; /* texts of the request under way */
	struct digest digest;          /* for hashes of keys */
};

/* At most 18 headers are ours. The rest are an object's settings. */
#define S3_REQUEST_HEADERS_MAX  80
#define S3_REQUEST_VALUES_BYTES 800

/* A request that is being put together. It uses the connection's texts, so a connection has one
 * request at a time. */
struct s3_request {
	struct s3_conn *conn;
	struct call call;
	struct call_header headers[S3_REQUEST_HEADERS_MAX];
	char checksum[CHECKSUM_BASE64_MAX + 1], sha256[65];
	struct s3_trailer trailer; /* of a body whose checksum follows it */
	/* The values of s3_request_headerf(), one after the other. */
	char values[S3_REQUEST_VALUES_BYTES];
	size_t n_values_bytes;
	const struct s3_condition *condition; /* NULL: none */
	const char *last_parameter; /* name of the parameter of the query that was added last, or
				       NULL */
	bool is_of_upload;          /* it names a multipart upload */
};

/* Begins a request without a body on the target's key, or, if target is NULL, on the bucket. Adds
 * the settings of the object that belong to this kind of request. `method` is static. `limits` may
 * be NULL. */
void s3_request_begin(struct s3_request *request, struct s3_conn *conn, enum s3_kind kind,
	const char *method, const struct s3_target *target, const struct call_limits *limits);
/* Adds a parameter of the query. The caller adds parameters in the order of their static names, in
 * which they are signed. */
void s3_request_query(struct s3_request *request, const char *name, const char *value);
/* Names the upload that the request is about, and makes the outcome NO_UPLOAD instead of ABSENT.
 * Some servers answer NoSuchKey where S3 answers NoSuchUpload, as Ceph's gateway does for
 * ListParts. */
void s3_request_upload_id(struct s3_request *request, const char *upload_id);
/* Adds a header. `name` and `value` are borrowed until the request was performed. */
void s3_request_header(struct s3_request *request, const char *name, const char *value);
/* The same for a value that is made here, printf style, and kept with the request. */
void s3_request_headerf(struct s3_request *request, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds the body, decides whether its SHA-256 is signed, and adds the headers of its checksum and,
 * if it was computed, of its MD5. A checksum that follows the body is announced instead. */
void s3_request_body(struct s3_request *request, const struct s3_put *put);
/* Adds the header of this checksum, if S3 has such a header, the checksum was computed, and the
 * server does not refuse it. */
void s3_request_checksum(
	struct s3_request *request, const struct sums *sums, enum checksum checksum);
/* Adds the headers for the kind of a multipart object's checksum: x-amz-checksum-algorithm and
 * x-amz-checksum-type where the upload is created, and only the latter where it is completed. Adds
 * nothing for MD5, or if the server refuses this checksum. */
void s3_request_checksum_type(struct s3_request *request, enum checksum checksum);
/* Adds a condition. If the server answers If-None-Match with 501, s3_request_perform() learns that
 * the server does not support it. No single reply shows that a server honours conditions, since a
 * server that first looks and then writes lets several writers win. */
void s3_request_condition(struct s3_request *request, const struct s3_condition *condition);
/* Asks for the version that the target names. Must come right after s3_request_begin(), since
 * "versionId" is the first parameter. */
void s3_request_version(struct s3_request *request, const struct s3_target *target);
/* Adds our metadata of an object under this key. */
void s3_request_meta(struct s3_request *request, const char *key, const struct s3_meta *meta);
/* Performs the request. The caller zeroes *ret_reply before, and clears it after. */
enum outcome s3_request_perform(
	struct s3_request *request, struct http_reply *ret_reply, struct problem *ret_problem);
/* Likewise, and reads an OK reply into `arg` by the document. The outcome is also LOCAL if a page's
 * function ended the reading. */
enum outcome s3_request_perform_and_read(struct s3_request *request,
	const struct s3_document *document, void *arg, struct http_reply *ret_reply,
	struct problem *ret_problem);
/* The same two for a caller who needs nothing else of the reply. */
enum outcome s3_request_send(struct s3_request *request, struct problem *ret_problem);
enum outcome s3_request_read(struct s3_request *request, const struct s3_document *document,
	void *arg, struct problem *ret_problem);

/* Returns the outcome of a reply of success that could not be read, by its -EBADMSG or -ENOMEM, and
 * sets the problem. The effect of the request is unknown. */
enum outcome s3_not_understood(
	const struct s3_request *request, int error, struct problem *ret_problem);

/* Whether the object's etag is not an MD5, because the reply shows an encryption (Amazon S3 API
 * Reference, "Object"), or because this server is known for such etags. */
bool s3_reply_etag_is_opaque(const struct s3 *s3, const struct http_reply *reply);
/* Reads the sum as s3_read_sum() does, from the OK reply to a write. Learns from it whether etags
 * are MD5s, and, if a checksum was sent, whether the server echoes it. */
void s3_read_sum_and_learn(const struct s3_request *request, const struct s3_put *put,
	const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum);
