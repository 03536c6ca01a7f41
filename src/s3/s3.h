/* The S3 calls an uploader needs, each one request (with its retries). Source: Amazon S3 API
 * Reference. */
#pragma once
#include "aws/call.h"
#include "base/checksum.h"
#include "s3/s3_headers.h"

/* A bucket at an endpoint, shared by all threads. */
struct s3;
/* bucket may be an access point's alias or ARN. 0, -ENOMEM, or -EINVAL if there is no way to it;
 * with a sentence. */
int s3_open(const struct aws_settings *settings, struct http_shared *http, const char *bucket,
	struct s3 **ret, struct problem *ret_problem);
void s3_close(struct s3 *s3);
struct service *s3_service(struct s3 *s3); /* borrowed: counters, clock */
bool s3_is_aws(const struct s3 *s3);
/* Before the first request, for all of them: the account that the bucket must belong to (12 digits,
 * borrowed until s3_close; NULL: any), and whether we pay for requests to another's bucket. */
void s3_set_terms(struct s3 *s3, const char *expected_owner, bool requester_pays);

/* What a run learns about a server, or knows of AWS from the start. Lock-free; several threads may
 * learn the same. */
enum s3_ability {
	S3_ECHOES_CHECKSUM, /* replies to writes carry x-amz-checksum-*: no MD5 is needed for proof
			     */
	S3_PUT_CONDITION,   /* If-None-Match on PutObject is honoured: no HEAD is needed before */
	S3_COMPLETE_CONDITION,
	S3_IF_MATCH,    /* If-Match on PutObject and Complete is honoured as RFC 9110 writes it */
	S3_ETAG_IS_MD5, /* of the content, or of the MD5s of the parts, where the reply does not say
			   that the object is encrypted. No also where OpenSSL has no MD5 */
	S3_ABILITIES
};
enum s3_known { S3_UNKNOWN, S3_YES, S3_NO };
enum s3_known s3_knows(const struct s3 *s3, enum s3_ability ability);
void s3_learn(struct s3 *s3, enum s3_ability ability, bool yes);
/* How the server names itself (the Server header of its first reply), cut to S3_SERVER_MAX; "" if
 * it does not, or has not answered yet. Valid until s3_close. Thread-safe. */
#define S3_SERVER_MAX 63
const char *s3_server(const struct s3 *s3);
/* The checksum of what is sent, as the settings say. */
enum checksum s3_checksum(const struct s3 *s3);
/* Which digests to compute of what is to be sent now with this checksum: that one always, SHA-256
 * over plain HTTP, MD5 unless the server is known to echo. */
unsigned s3_wanted_digests(const struct s3 *s3, enum checksum checksum);

struct s3_conn;
int s3_conn_new(struct s3 *s3, struct s3_conn **ret);
void s3_conn_free(struct s3_conn *conn);

/* Whether an object was written under the name that it has now: a copy keeps its metadata. */
enum s3_written_for {
	S3_WRITTEN_FOR_UNKNOWN, /* earlier versions of this program did not say it */
	S3_WRITTEN_FOR_THIS,
	S3_WRITTEN_FOR_ANOTHER,
};

/* Our own marks on an object: user metadata x-amz-meta-s3once-
 * {table,claim,key,ctime,part,content,encoding,suffix,size} and x-amz-meta-mtime. Times are seconds
 * with a fraction, as rclone reads and writes them. The key is s3_key_hash() of the bucket and the
 * key: requests add it, and HEAD compares it. */
#define S3_ID_MAX       64
#define S3_CONTENT_MAX  64 /* hex digits */
#define S3_ENCODING_MAX 47
#define S3_SUFFIX_MAX   4
struct s3_meta {
	char table[S3_ID_MAX + 1]; /* id of the mark store that the claim is in; "": not ours */
	char claim[S3_ID_MAX + 1];
	enum s3_written_for written_for;    /* of HEAD only */
	int64_t mtime_ns, ctime_ns;         /* of the file as it was sent; 0: unknown */
	uint64_t part_bytes;                /* of the file in each part of a multipart upload but
					       the last, else 0 */
	char content[S3_CONTENT_MAX + 1];   /* id of the content, whatever it is compressed with; or
					       "" */
	char encoding[S3_ENCODING_MAX + 1]; /* with what s3once compressed it; "": it did not */
	/* Only with an encoding: */
	char suffix[S3_SUFFIX_MAX + 1]; /* what the key has because of it */
	uint64_t content_bytes;         /* of the file */
};

/* An object that is or is to be: its key, and how it is stored. Borrowed during the call. */
struct s3_target {
	const char *key;
	const struct s3_headers *headers; /* prepared; NULL: as the server does by itself */
	const char *content_type;         /* where the headers name none; or NULL */
	const char *content_encoding;     /* likewise */
};

#define S3_ETAG_MAX       128
#define S3_VERSION_ID_MAX 1024
#define S3_SUM_MAX        (CHECKSUM_BASE64_MAX + 6)
/* A checksum as the server told it. */
struct s3_sum {
	enum checksum kind;
	char text[S3_SUM_MAX + 1]; /* base64, perhaps "…-N": of the checksums of N parts; "" if it
				      told none */
};
struct s3_object {
	uint64_t size;
	char etag[S3_ETAG_MAX + 1]; /* without quotes, "" if the reply has none */
	struct s3_sum sum;
	bool etag_is_opaque;   /* its etag is no MD5: it is encrypted such (SSE-KMS, SSE-C), or this
				  server's etags are none */
	bool lacks_encryption; /* its target asks for one, and the reply of PUT or HEAD does not
				  confirm it */
	struct s3_meta meta;   /* of HEAD only */
	char version_id[S3_VERSION_ID_MAX + 1]; /* of HEAD, PUT and Complete; "" where the bucket
						   has none */
};

/* At most one of the two; NULL/false for none. */
struct s3_condition {
	bool if_none_match;   /* If-None-Match: * */
	const char *if_match; /* an etag without quotes */
};

struct s3_put {
	struct s3_target target;
	const struct http_body *body; /* read twice or more: its bytes must match sums each time */
	const struct sums *sums;      /* MD5 (if there) goes out as Content-MD5, SHA-256 as payload
					 hash */
	enum checksum checksum; /* the one of them that goes out as x-amz-checksum-…; MD5: none */
	struct s3_condition condition;
	struct s3_meta meta;
	struct call_limits limits;
};
enum outcome s3_put_object(struct s3_conn *conn, const struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem);

/* HEAD with x-amz-checksum-mode: ENABLED. */
enum outcome s3_head_object(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct s3_object *ret, struct problem *ret_problem);

/* Asks for the object's first byte, where a HEAD was refused: that has no body to give a reason in.
 * An outcome and ret_problem with a code, or OK. */
enum outcome s3_ask_object(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct problem *ret_problem);

struct s3_create {
	struct s3_target target;
	struct s3_meta meta;
	enum checksum
		checksum; /* of the object and its parts; full-object if it combines; MD5: none */
	struct call_limits limits;
};
/* An upload that was begun; its id is the caller's to free. */
struct s3_created {
	char *upload_id;
	bool lacks_encryption; /* as of an object */
};
enum outcome s3_create_upload(struct s3_conn *conn, const struct s3_create *create,
	struct s3_created *ret, struct problem *ret_problem);

struct s3_part_put {
	struct s3_target target;
	const char *upload_id;
	unsigned part_number; /* from 1 */
	const struct http_body *body;
	const struct sums *sums;
	enum checksum checksum; /* the upload's */
	struct call_limits limits;
};
/* A part as the server has it. */
struct s3_part {
	unsigned part_number;
	uint64_t size;
	char etag[S3_ETAG_MAX + 1];
	struct s3_sum sum;
	bool etag_is_opaque; /* as of an object; of the reply to UploadPart only */
};
enum outcome s3_upload_part(struct s3_conn *conn, const struct s3_part_put *put,
	struct s3_part *ret, struct problem *ret_problem);

/* All parts, in order of number, page by page; `each` returning nonzero ends it with OUTCOME_LOCAL.
 */
enum outcome s3_list_parts(struct s3_conn *conn, const struct s3_target *target,
	const char *upload_id, const struct call_limits *limits,
	int (*each)(void *arg, const struct s3_part *part), void *arg, struct problem *ret_problem);

struct s3_complete {
	struct s3_target target;
	const char *upload_id;
	const struct s3_part *parts; /* in order of number */
	size_t n_parts;
	enum checksum checksum;   /* the upload's */
	const struct sums *whole; /* of the whole object: its size goes out as x-amz-mp-object-size,
				     its checksum, if it combines, as x-amz-checksum-… */
	struct s3_condition condition;
	struct call_limits limits;
};
/* A 200 with an <Error> body is that error. An empty ETag in the reply leaves ret->etag "". */
enum outcome s3_complete_upload(struct s3_conn *conn, const struct s3_complete *complete,
	struct s3_object *ret, struct problem *ret_problem);
/* NO_UPLOAD when there is no such upload any more: whether that is well is up to the caller. */
enum outcome s3_abort_upload(struct s3_conn *conn, const char *key, const char *upload_id,
	const struct call_limits *limits, struct problem *ret_problem);

struct s3_upload {
	const char *key, *upload_id;
	int64_t initiated_s;
}; /* borrowed during the call of each */
enum outcome s3_list_uploads(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, int (*each)(void *arg, const struct s3_upload *upload),
	void *arg, struct problem *ret_problem);
/* HEAD of the bucket: OK, ABSENT, DENIED, SETUP. */
enum outcome s3_head_bucket(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem);
