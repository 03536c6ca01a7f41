/* The S3 calls. Each function sends one request, with its retries, unless it says otherwise. The
 * source is the Amazon S3 API Reference.
 *
 * Arguments are borrowed for the call. One connection is used by one thread at a time; struct s3 is
 * shared by all. */
#pragma once
#include "aws/call.h"
#include "base/checksum.h"
#include "s3/s3_headers.h"

/* A bucket at an endpoint, shared by all threads. */
struct s3;
/* `bucket` may also be an access point's alias or ARN. 0, -ENOMEM, or -EINVAL if it cannot be
 * reached, with a sentence. The settings are borrowed until s3_close(). */
int s3_open(const struct aws_settings *settings, struct http_shared *http, const char *bucket,
	struct s3 **ret, struct problem *ret_problem);
void s3_close(struct s3 *s3);
/* Returns the service, which has the counters and the server's clock. Borrowed. */
struct service *s3_service(struct s3 *s3);
bool s3_is_aws(const struct s3 *s3);
/* Sets the terms of all requests. It is called before the first request. expected_owner is the
 * account of 12 digits that the bucket must belong to, borrowed until s3_close(); NULL: any
 * account. requester_pays: the requester accepts the costs. */
void s3_set_terms(struct s3 *s3, const char *expected_owner, bool requester_pays);

/* The features of S3 that other servers may lack. A run finds out which of them its server
 * supports; AWS supports all. Lock-free, and several threads may find out the same. */
enum s3_feature {
	/* Replies to writes have x-amz-checksum-*, so that no MD5 is needed as proof. */
	S3_ECHOES_CHECKSUM,
	/* If-None-Match on PutObject is honoured, so that no HEAD is needed first. */
	S3_PUT_CONDITION,
	/* Likewise on CompleteMultipartUpload. */
	S3_COMPLETE_CONDITION,
	/* If-Match on both is honoured as RFC 9110 writes it. */
	S3_IF_MATCH,
	/* The etag of If-Match has quotes. S3_NO: this server, like Ceph's gateway 16, compares
	 * etags without quotes, and they are sent without. Only the locks in S3 find that out. */
	S3_IF_MATCH_QUOTES,
	/* The etag is the MD5 of the content, or of the MD5s of the parts, unless the reply says
	 * that the object is encrypted. S3_NO also if this host's OpenSSL has no MD5. */
	S3_ETAG_IS_MD5,
	/* The etag of the reply to Complete is the one that the object has from then on. */
	S3_COMPLETE_RETURNS_ETAG,
	/* The parts of an upload may have different lengths. */
	S3_UNEQUAL_PARTS,
	/* The checksum of a body may follow it (x-amz-trailer). A server that does not know that
	 * stores the framing of the body as well, so that only a trial shows it. */
	S3_TRAILER,
	S3_FEATURES
};
/* Whether the server supports a feature. Zero is UNKNOWN. */
enum s3_support { S3_UNKNOWN, S3_YES, S3_NO };
enum s3_support s3_supports(const struct s3 *s3, enum s3_feature feature);
void s3_set_support(struct s3 *s3, enum s3_feature feature, enum s3_support support);
/* The Server header of the first reply, cut to S3_SERVER_MAX. It is "" if there was none, or no
 * reply yet. Valid until s3_close(). Thread-safe. */
#define S3_SERVER_MAX 63
const char *s3_server(const struct s3 *s3);
/* Returns the algorithm for checksums of sent bodies, according to the settings. */
enum checksum s3_checksum(const struct s3 *s3);
/* Returns the set of digests to compute for an upload with this checksum: always the checksum's,
 * SHA-256 if payloads are signed (over plain HTTP, or by the settings), and MD5 unless the server
 * is known to echo checksums. */
unsigned s3_wanted_digests(const struct s3 *s3, enum checksum checksum);

/* Whether a body with this checksum may be sent with it after it: over TLS, as AWS's SDKs do, and
 * if the server is known to take that. */
bool s3_may_trail(const struct s3 *s3, enum checksum checksum);

struct s3_conn;
int s3_conn_new(struct s3 *s3, struct s3_conn **ret);
void s3_conn_free(struct s3_conn *conn);

/* Whether an object was written under the bucket and key that it has now. A copy made in S3 keeps
 * the metadata, but has another bucket or key. */
enum s3_written_for {
	S3_WRITTEN_FOR_UNKNOWN, /* an earlier version of this program wrote it, without this
				   information */
	S3_WRITTEN_FOR_THIS,
	S3_WRITTEN_FOR_ANOTHER,
};

/* The user metadata that s3once gives an object: x-amz-meta-s3once-
 * {table,claim,key,ctime,part,content,offset,encoding,suffix,size,sums} and x-amz-meta-mtime. Times
 * are seconds with a fraction, as rclone reads and writes them. The value of "key" is s3_key_hash()
 * of the bucket and the key. Requests add it, and HEAD compares it. */
#define S3_ID_MAX       64
#define S3_CONTENT_MAX  64 /* hex digits */
#define S3_ENCODING_MAX 47
#define S3_SUFFIX_MAX   4
struct s3_meta {
	/* The id of the store of marks under which the object was written. "": s3once did not write
	 * it. */
	char table_id[S3_ID_MAX + 1];
	char claim_id[S3_ID_MAX + 1];
	/* Set by HEAD only. */
	enum s3_written_for written_for;
	/* The times of the sent file, in ns since 1970. 0: unknown. */
	int64_t mtime_ns, ctime_ns;
	/* Bytes of the file in each part of a multipart upload but the last one; 0: not in
	 * parts. */
	uint64_t part_bytes;
	/* The id of a rotated file's decompressed content, or "". */
	char content_id[S3_CONTENT_MAX + 1];
	/* In requests only: the number of bytes of the log before those of this object; or 0. */
	uint64_t log_offset;
	/* The encoding in which s3once sent the file; "": none. */
	char encoding[S3_ENCODING_MAX + 1];
	/* Only with an encoding: the suffix that it gives the key, and the size of the file. */
	char suffix[S3_SUFFIX_MAX + 1];
	uint64_t content_bytes;
	/* Set by HEAD only: the checksums of the bytes that PutObject sent. A multipart upload has
	 * none here, since its metadata are sent before its content is read. */
	struct sums sums;
};

/* The object of a request, and the settings with which it is stored. Borrowed during the call. */
struct s3_target {
	const char *key;
	/* Prepared. NULL: the server's defaults. */
	const struct s3_headers *headers;
	/* Sent if `headers` has no content type. NULL: none. */
	const char *content_type;
	const char *content_encoding;
	/* For HEAD and GET: the version. NULL or "": the current one. */
	const char *version_id;
};

#define S3_ETAG_MAX       128
#define S3_VERSION_ID_MAX 1024
#define S3_SUM_MAX        (CHECKSUM_BASE64_MAX + 6)
/* A checksum in a reply. */
struct s3_sum {
	enum checksum kind;
	/* In base64. "…-N" is the checksum of the checksums of N parts. "" if the reply has none.
	 */
	char text[S3_SUM_MAX + 1];
};
struct s3_object {
	uint64_t size;
	char etag[S3_ETAG_MAX + 1]; /* without quotes, "" if the reply has none */
	struct s3_sum sum;
	/* The etag is not an MD5, since the object is encrypted (SSE-KMS, SSE-C), or since this
	 * server does not use MD5. */
	bool etag_is_opaque;
	/* The target asks for an encryption that the reply to PUT or HEAD does not confirm. */
	bool lacks_encryption;
	/* Set by HEAD only. */
	struct s3_meta meta;
	/* Set by HEAD only: seconds since the object was written, by the server's own clock. -1:
	 * not known. */
	int64_t age_s;
	bool has_request_id; /* set by HEAD only: the reply has x-amz-request-id */
	/* Set by HEAD, PUT and Complete. "": the bucket has no versions. */
	char version_id[S3_VERSION_ID_MAX + 1];
};

/* At most one member is set. */
struct s3_condition {
	bool if_none_match;   /* If-None-Match: * */
	const char *if_match; /* an etag without quotes */
};

/* Digests to compute while a body is sent. */
struct s3_trailing {
	unsigned kinds;    /* digests to compute, among them that of s3_put.checksum */
	struct sums *sums; /* set once the whole body was read; kinds: 0 until then */
};

struct s3_put {
	struct s3_target target;
	/* It may be read several times, and must match `sums` each time, unless the checksum
	 * trails. */
	const struct http_body *body;
	/* If not NULL, the body is digested while it is sent, and the checksum follows it. `sums`
	 * then points to the sums that are set here. Requires s3_may_trail(). */
	const struct s3_trailing *trailing;
	/* If they were computed, MD5 is sent as Content-MD5, and SHA-256 may be sent as the hash of
	 * the payload. */
	const struct sums *sums;
	/* The kind of checksum to send as x-amz-checksum-…, out of `sums`. With CHECKSUM_MD5, no
	 * such header is sent. All parts of an upload use the kind with which the upload was
	 * created. */
	enum checksum checksum;
	/* For parts only. */
	const char *upload_id;
	unsigned part_number; /* from 1 */
	/* For whole objects only. */
	struct s3_condition condition;
	struct s3_meta meta;
	struct call_limits limits;
};
enum outcome s3_put_object(struct s3_conn *conn, const struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem);
/* As s3_put_object(), but if the server does not support If-None-Match, removes that condition from
 * *put and sends the object again. */
enum outcome s3_put_unless_there(struct s3_conn *conn, struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem);

/* Sends HEAD, and requests the checksum too (x-amz-checksum-mode). */
enum outcome s3_head_object(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct s3_object *ret, struct problem *ret_problem);

/* Sets of settings, as in s3_headers.h. */
struct s3_settings_check {
	enum outcome head;                 /* outcome of the HEAD: ABSENT if there is no object */
	unsigned missing;                  /* the checked settings that the object does not have */
	unsigned unknown;                  /* the checked settings that were not shown */
	char storage_class[S3_ID_MAX + 1]; /* storage class of the object, if HEAD succeeded */
};
/* Checks whether an object exists, and whether it has those of the target's settings that are in
 * the set `checked`, which may be empty. It sends HEAD, and GetObjectTagging if tags are in the set
 * and HEAD does not show their number.
 *
 * *ret is always set. Returns OK if nothing is unknown, and otherwise the outcome of the failed
 * request. */
enum outcome s3_check_settings(struct s3_conn *conn, const struct s3_target *target,
	unsigned checked, const struct call_limits *limits, struct s3_settings_check *ret,
	struct problem *ret_problem);

/* Gets the size of the object's first part (HEAD ?partNumber=1). A server that ignores partNumber
 * returns the size of the object. */
enum outcome s3_head_first_part(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, uint64_t *ret_bytes);

/* Requests the object's first byte after a HEAD was denied: unlike the reply to a HEAD, that to a
 * GET has a body with the reason. If the outcome is not OK, *ret_problem has the error code. */
enum outcome s3_get_first_byte(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct problem *ret_problem);
/* Sets the sentence for a key whose HEAD is denied (403), although GET is not. */
void s3_explain_refused_head(const char *key, struct problem *ret_problem);

struct s3_create {
	struct s3_target target;
	struct s3_meta meta;
	/* The checksum algorithm that the request declares for the object and its parts. For
	 * CHECKSUM_MD5 it declares none, since the parts have Content-MD5 instead. The object's
	 * checksum is of type FULL_OBJECT if those of the parts can be combined, otherwise
	 * COMPOSITE. */
	enum checksum checksum;
	struct call_limits limits;
};
/* A new multipart upload. The caller frees its id. */
struct s3_created {
	char *upload_id;
	bool lacks_encryption; /* as in struct s3_object */
};
enum outcome s3_create_upload(struct s3_conn *conn, const struct s3_create *create,
	struct s3_created *ret, struct problem *ret_problem);

/* A part as the server has it. */
struct s3_part {
	unsigned part_number;
	uint64_t size;
	char etag[S3_ETAG_MAX + 1];
	struct s3_sum sum;
	bool etag_is_opaque; /* as in struct s3_object; of the reply to UploadPart only */
};
enum outcome s3_upload_part(struct s3_conn *conn, const struct s3_put *put, struct s3_part *ret,
	struct problem *ret_problem);

/* Lists all parts page by page, in the order of their numbers. Any value of `each` but 0 ends the
 * listing with OUTCOME_LOCAL. */
enum outcome s3_list_parts(struct s3_conn *conn, const struct s3_target *target,
	const char *upload_id, const struct call_limits *limits,
	int (*each)(void *arg, const struct s3_part *part), void *arg, struct problem *ret_problem);

struct s3_complete {
	struct s3_target target;
	const char *upload_id;
	const struct s3_part *parts; /* in order of number */
	size_t n_parts;
	enum checksum checksum; /* the upload's */
	/* The sums of the whole object. Its size is sent as x-amz-mp-object-size. Its checksum is
	 * sent as x-amz-checksum-… if those of the parts can be combined. */
	const struct sums *whole;
	struct s3_condition condition;
	struct call_limits limits;
};
/* Completes an upload. A reply 200 whose body is <Error> is that error. Without an ETag in the
 * reply, ret->etag is "". */
enum outcome s3_complete_upload(struct s3_conn *conn, const struct s3_complete *complete,
	struct s3_object *ret, struct problem *ret_problem);
/* NO_UPLOAD if the upload no longer exists. The caller decides whether that is an error. */
enum outcome s3_abort_upload(struct s3_conn *conn, const char *key, const char *upload_id,
	const struct call_limits *limits, struct problem *ret_problem);

/* An unfinished multipart upload. Borrowed during the call of `each`. */
struct s3_upload {
	const char *key, *upload_id;
	int64_t initiated_s; /* seconds since 1970 */
};
/* Calls `each` for unfinished uploads, 1,000 of the bucket at most, below a prefix unless that is
 * NULL. Any value of `each` but 0 ends the listing with OUTCOME_LOCAL. */
enum outcome s3_list_uploads(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, int (*each)(void *arg, const struct s3_upload *upload),
	void *arg, struct problem *ret_problem);
/* Finds the fault of the bucket or of the credentials for which a HEAD was refused, since the reply
 * to a HEAD has no body that could name it. It sends ListMultipartUploads, to which the server
 * names a missing bucket, or wrong or expired credentials. Returns true with a sentence if the
 * server named such a fault. */
bool s3_find_bucket_fault(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem);
/* Sends HEAD for the bucket, and s3_find_bucket_fault() if it is refused. Returns OK; SETUP with
 * the reason if there is one; otherwise the outcome of the HEAD, such as ABSENT or DENIED. */
enum outcome s3_look_for_bucket(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem);

/* An object in a listing. Borrowed during the call of `each`. */
struct s3_listed {
	const char *key;
	uint64_t size;
	char etag[S3_ETAG_MAX + 1]; /* without quotes; "" if the listing has none */
	int64_t modified_s; /* time at which it was stored; negative if the listing has none */
};
struct s3_listing {
	const char *prefix; /* "" for all */
	const char *after;  /* only keys that come after this one; "": all */
	int (*each)(void *arg, const struct s3_listed *object);
	void *arg;
};
/* Lists one page, which is at most 1,000 objects in the byte order of their keys (ListObjectsV2).
 * *ret_more says whether there are more after the last one. Any value of `each` but 0 ends the
 * listing with OUTCOME_LOCAL. */
enum outcome s3_list_objects(struct s3_conn *conn, const struct s3_listing *listing,
	const struct call_limits *limits, bool *ret_more, struct problem *ret_problem);

/* Gets n bytes of an object from an offset on. n is greater than 0, and the object has these bytes.
 * If the outcome is OK, ret->body has them, and ret_etag is the etag of the object. The outcome is
 * also LOST if the server sent another number of bytes.
 *
 * *ret is zeroed, or is the reply of an earlier call, whose memory is reused. The caller clears
 * it. */
enum outcome s3_get_range(struct s3_conn *conn, const struct s3_target *target, uint64_t offset,
	size_t n, const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem);

/* Gets a whole object of at most max_bytes. If the outcome is OK, ret->body is its content, and
 * ret_etag is its etag. LOST if it is longer, or if the reply has no etag. *ret is zeroed. The
 * caller clears it. */
enum outcome s3_get_small(struct s3_conn *conn, const struct s3_target *target, size_t max_bytes,
	const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem);

/* Deletes an object. Returns OK even if there is no such object. */
enum outcome s3_delete_object(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, struct problem *ret_problem);

/* Sets *ret_days to the number of days after which the bucket's lifecycle rules abort an unfinished
 * multipart upload of keys below prefix; 0: never. */
enum outcome s3_get_abort_days(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, unsigned *ret_days, struct problem *ret_problem);
