/* The S3 calls on objects and on the bucket. Uploads in parts are in s3_multipart.c. */
#include "s3/s3.h"
#include "base/clock.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum outcome s3_delete_object(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	const struct s3_target target = {.key = key};
	s3_request_begin(&request, conn, S3_DELETE_OBJECT, "DELETE", &target, limits);
	const enum outcome outcome = s3_request_send(&request, ret_problem);
	return outcome == OUTCOME_ABSENT ? OUTCOME_OK : outcome;
}

enum outcome s3_get_abort_days(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, unsigned *ret_days, struct problem *ret_problem)
{
	struct s3_request request;
	struct s3_abort_days found = {.prefix = prefix};
	struct problem problem = {0};
	s3_request_begin(&request, conn, S3_GET_LIFECYCLE, "GET", NULL, limits);
	s3_request_query(&request, "lifecycle", "");
	enum outcome outcome = s3_request_read(&request, &s3_reply_abort_days, &found, &problem);
	if (strcmp(problem.code, "NoSuchLifecycleConfiguration") == 0)
		outcome = OUTCOME_OK; /* no rule aborts uploads, and found.days is 0 */
	if (outcome == OUTCOME_OK)
		*ret_days = found.days;
	else if (ret_problem)
		*ret_problem = problem;
	return outcome;
}

/* Ends the listing of s3_find_bucket_fault(), which only needs to know whether it is answered. */
static int stop_at_first(void *arg, const struct s3_upload *upload)
{
	return 1;
}

bool s3_find_bucket_fault(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	/* *ret_problem is untouched unless the server names a reason. */
	struct problem why = {0};
	const enum outcome o = s3_list_uploads(conn, "", limits, stop_at_first, NULL, &why);
	if (o == OUTCOME_SETUP)
		*ret_problem = why;
	return o == OUTCOME_SETUP;
}

enum outcome s3_look_for_bucket(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_HEAD_BUCKET, "HEAD", NULL, limits);
	const enum outcome o = s3_request_send(&request, ret_problem);
	const bool lacks_reason =
		o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID;
	return (lacks_reason && s3_find_bucket_fault(conn, limits, ret_problem)) ? OUTCOME_SETUP
										 : o;
}

static const char *const kinds[] = {
	[S3_PUT_OBJECT] = "PutObject",
	[S3_HEAD_OBJECT] = "HeadObject",
	[S3_GET_OBJECT] = "GetObject",
	[S3_CREATE_UPLOAD] = "CreateMultipartUpload",
	[S3_UPLOAD_PART] = "UploadPart",
	[S3_LIST_PARTS] = "ListParts",
	[S3_COMPLETE_UPLOAD] = "CompleteMultipartUpload",
	[S3_ABORT_UPLOAD] = "AbortMultipartUpload",
	[S3_LIST_UPLOADS] = "ListMultipartUploads",
	[S3_HEAD_BUCKET] = "HeadBucket",
	[S3_DELETE_OBJECT] = "DeleteObject",
	[S3_GET_LIFECYCLE] = "GetBucketLifecycleConfiguration",
	[S3_GET_OBJECT_TAGGING] = "GetObjectTagging",
	[S3_LIST_OBJECTS] = "ListObjectsV2",
	NULL,
};

/* Notes that AWS has all features, but echoes a checksum only if the algorithm has a header. */
static void note_aws_features(struct s3 *s3)
{
	const bool has_header = checksum_kinds[s3->settings->checksum].header != NULL;
	for (enum s3_feature feature = 0; feature < S3_FEATURES; feature++)
		if (feature != S3_ECHOES_CHECKSUM || has_header)
			s3_set_support(s3, feature, S3_YES);
}

int s3_open(const struct aws_settings *settings, struct http_shared *http, const char *bucket,
	struct s3 **ret, struct problem *ret_problem)
{
	struct sums unused;
	struct s3 *s3 = calloc(1, sizeof *s3);
	if (!s3 || !(s3->bucket = strdup(bucket))) {
		problem_set(ret_problem, "out of memory");
		free(s3);
		return -ENOMEM;
	}
	const struct service_options options = {.settings = settings,
		.http = http,
		.is_s3 = true,
		.bucket = s3->bucket,
		.kinds = kinds};
	int error = service_new(&options, &s3->service, ret_problem);
	if (error < 0) {
		s3_close(s3);
		return error;
	}
	/* OpenSSL refuses MD5 in FIPS mode. */
	s3->has_md5 = digest_bytes(DIGEST_MD5, "", 0, &unused) == 0;
	s3->is_tls = strncmp(settings->s3_endpoint, "https:", 6) == 0;
	s3->settings = settings;
	if (settings->s3_is_aws)
		note_aws_features(s3);
	if (!s3->has_md5) /* without MD5 there is nothing to compare the etags with */
		s3_set_support(s3, S3_ETAG_IS_MD5, S3_NO);
	*ret = s3;
	return 0;
}

void s3_close(struct s3 *s3)
{
	if (!s3)
		return;
	service_free(s3->service);
	free(s3->bucket);
	free(s3);
}

struct service *s3_service(struct s3 *s3)
{
	return s3->service;
}

bool s3_is_aws(const struct s3 *s3)
{
	return s3->settings->s3_is_aws;
}

void s3_set_terms(struct s3 *s3, const char *expected_owner, bool requester_pays)
{
	s3->expected_owner = expected_owner;
	s3->requester_pays = requester_pays;
}

enum checksum s3_checksum(const struct s3 *s3)
{
	return s3->settings->checksum;
}

unsigned s3_wanted_digests(const struct s3 *s3, enum checksum checksum)
{
	unsigned kinds_wanted = DIGEST_OF(checksum);
	if (!s3->is_tls || s3->settings->signs_payload)
		kinds_wanted |= DIGEST_SHA256;
	if (s3->has_md5 && s3_supports(s3, S3_ECHOES_CHECKSUM) != S3_YES)
		kinds_wanted |= DIGEST_MD5;
	return kinds_wanted;
}

bool s3_may_trail(const struct s3 *s3, enum checksum checksum)
{
	const bool needs_signature = !s3->is_tls || s3->settings->signs_payload;
	const bool has_header = checksum_kinds[checksum].header != NULL;
	const bool takes_trailer =
		!atomic_load(&s3->refuses_checksum) && s3_supports(s3, S3_TRAILER) == S3_YES;
	return !needs_signature && has_header && takes_trailer;
}

/* The longest path has the longest key and bucket with every byte as %XX. The longest query has a
 * prefix and a key likewise. The longest body is Complete's list of 10,000 parts. */
#define PATH_MAX_BYTES  (8 << 10)
#define QUERY_MAX_BYTES (16 << 10)
#define BODY_MAX_BYTES  (4 << 20)

int s3_conn_new(struct s3 *s3, struct s3_conn **ret)
{
	struct s3_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return -ENOMEM;
	conn->s3 = s3;
	conn->path = TEXT(PATH_MAX_BYTES);
	conn->query = TEXT(QUERY_MAX_BYTES);
	conn->body = TEXT(BODY_MAX_BYTES);
	int error = digest_init(&conn->digest, 0); /* s3_key_hash() chooses the digest */
	if (!error)
		error = service_conn_new(s3->service, &conn->service);
	if (error) {
		s3_conn_free(conn);
		return error;
	}
	*ret = conn;
	return 0;
}

void s3_conn_free(struct s3_conn *conn)
{
	if (!conn)
		return;
	service_conn_free(conn->service);
	text_clear(&conn->path);
	text_clear(&conn->query);
	text_clear(&conn->body);
	digest_clear(&conn->digest);
	free(conn);
}

enum outcome s3_put_object(struct s3_conn *conn, const struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	char sums[S3_SUMS_CHARS];
	s3_request_begin(&request, conn, S3_PUT_OBJECT, "PUT", &put->target, &put->limits);
	s3_request_body(&request, put);
	s3_request_condition(&request, &put->condition);
	s3_request_meta(&request, put->target.key, &put->meta);
	s3_format_sums(put->sums, put->checksum, sums);
	if (put->meta.table_id[0] && sums[0]) /* without a table the object has no mark */
		s3_request_headerf(&request, "x-amz-meta-s3once-sums", "%s", sums);
	const enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		*ret = (struct s3_object){.size = put->body->bytes};
		s3_read_sum_and_learn(&request, put, &reply, ret->etag, &ret->sum);
		s3_copy_header(&reply, "x-amz-version-id", ret->version_id, sizeof ret->version_id);
		ret->etag_is_opaque = s3_reply_etag_is_opaque(conn->s3, &reply);
		ret->lacks_encryption =
			!s3_headers_encryption_is_confirmed(put->target.headers, &reply);
	}
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_put_unless_there(struct s3_conn *conn, struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem)
{
	const enum outcome o = s3_put_object(conn, put, ret, ret_problem);
	if (o != OUTCOME_UNSUPPORTED || !put->condition.if_none_match)
		return o;
	put->condition = (struct s3_condition){0};
	return s3_put_object(conn, put, ret, ret_problem);
}

/* Reads a header that is a number. Returns false, and leaves *ret as it is, if the header is
 * missing or something else. */
static bool read_number(const struct http_reply *reply, const char *name, uint64_t *ret)
{
	return decimal_read(http_reply_header(reply, name), UINT64_MAX, ret);
}

/* Reads the reply to a HEAD of the target. Metadata that the reply lacks stay 0 or "". Returns 0,
 * -ENOMEM, or -EBADMSG if the reply has no size or no etag. */
static int read_head(struct s3_conn *conn, const struct s3_target *target,
	const struct http_reply *reply, struct s3_object *ret)
{
	char hash[S3_KEY_HASH_CHARS + 1];
	const int64_t now_s = clock_parse_http_date(http_reply_header(reply, "date"));
	const int64_t then_s = clock_parse_http_date(http_reply_header(reply, "last-modified"));
	struct s3_object object = {.age_s = (then_s >= 0 && now_s >= then_s) ? now_s - then_s : -1,
		.has_request_id = http_reply_header(reply, "x-amz-request-id") != NULL,
		.etag_is_opaque = s3_reply_etag_is_opaque(conn->s3, reply),
		.lacks_encryption = !s3_headers_encryption_is_confirmed(target->headers, reply)};
	struct s3_meta *meta = &object.meta;
	s3_read_sum(reply, object.etag, &object.sum);
	s3_copy_header(reply, "x-amz-version-id", object.version_id, sizeof object.version_id);
	const char *key_hash = http_reply_header(reply, "x-amz-meta-s3once-key");
	const char *sums = http_reply_header(reply, "x-amz-meta-s3once-sums");
	if (s3_key_hash(&conn->digest, conn->s3->bucket, target->key, hash))
		return -ENOMEM;
	if (key_hash)
		meta->written_for =
			strcmp(key_hash, hash) == 0 ? S3_WRITTEN_FOR_THIS : S3_WRITTEN_FOR_ANOTHER;
	meta->mtime_ns = s3_parse_mtime(http_reply_header(reply, "x-amz-meta-mtime"));
	meta->ctime_ns = s3_parse_mtime(http_reply_header(reply, "x-amz-meta-s3once-ctime"));
	s3_copy_header(reply, "x-amz-meta-s3once-table", meta->table_id, sizeof meta->table_id);
	s3_copy_header(reply, "x-amz-meta-s3once-claim", meta->claim_id, sizeof meta->claim_id);
	s3_copy_header(
		reply, "x-amz-meta-s3once-content", meta->content_id, sizeof meta->content_id);
	read_number(reply, "x-amz-meta-s3once-part", &meta->part_bytes);
	s3_copy_header(reply, "x-amz-meta-s3once-encoding", meta->encoding, sizeof meta->encoding);
	s3_copy_header(reply, "x-amz-meta-s3once-suffix", meta->suffix, sizeof meta->suffix);
	read_number(reply, "x-amz-meta-s3once-size", &meta->content_bytes);
	s3_parse_sums(sums ? sums : "", &meta->sums);
	if (!read_number(reply, "content-length", &object.size) || !object.etag[0])
		return -EBADMSG;
	*ret = object;
	return 0;
}

#define LACKS_LENGTH                                                                               \
	"the reply to HeadObject has no Content-Length: a proxy on the way takes it out, perhaps " \
	"to compress: let it pass replies on as they are, or go around it (NO_PROXY)"

enum outcome s3_head_object(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct s3_object *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(&request, conn, S3_HEAD_OBJECT, "HEAD", target, limits);
	s3_request_version(&request, target);
	s3_request_header(&request, "x-amz-checksum-mode", "ENABLED");
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	const int error = outcome == OUTCOME_OK ? read_head(conn, target, &reply, ret) : 0;
	if (error)
		outcome = s3_not_understood(&request, error, ret_problem);
	if (error == -EBADMSG && ret_problem && http_reply_header(&reply, "etag") &&
		!http_reply_header(&reply, "content-length"))
		snprintf(ret_problem->text, sizeof ret_problem->text, "%s", LACKS_LENGTH);
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_head_first_part(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, uint64_t *ret_bytes)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(&request, conn, S3_HEAD_OBJECT, "HEAD", target, limits);
	s3_request_query(&request, "partNumber", "1");
	enum outcome outcome = s3_request_perform(&request, &reply, NULL);
	if (outcome == OUTCOME_OK && !read_number(&reply, "content-length", ret_bytes))
		outcome = OUTCOME_LOST;
	http_reply_clear(&reply);
	return outcome;
}

/* Sets *ret_count to the number of tags of an object. */
static enum outcome count_tags(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, size_t *ret_count, struct problem *ret_problem)
{
	/* GetObjectTagging takes no customer-provided key (SSE-C), so this target has no headers.
	 */
	const struct s3_target plain = {.key = key};
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT_TAGGING, "GET", &plain, limits);
	s3_request_query(&request, "tagging", "");
	return s3_request_read(&request, &s3_reply_tags, ret_count, ret_problem);
}

enum outcome s3_check_settings(struct s3_conn *conn, const struct s3_target *target,
	unsigned checked, const struct call_limits *limits, struct s3_settings_check *ret,
	struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	*ret = (struct s3_settings_check){.unknown = checked};
	s3_request_begin(&request, conn, S3_HEAD_OBJECT, "HEAD", target, limits);
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	ret->head = outcome;
	if (outcome == OUTCOME_OK) {
		const char *count = http_reply_header(&reply, "x-amz-tagging-count");
		/* As long as the number of tags is unknown, no tag counts as missing. */
		size_t tags = count ? strtoull(count, NULL, 10) : SIZE_MAX;
		s3_copy_header(&reply, "x-amz-storage-class", ret->storage_class,
			sizeof ret->storage_class);
		if (!ret->storage_class[0])
			strcpy(ret->storage_class, S3_STANDARD);
		ret->unknown = count ? 0 : (checked & (1U << S3_SETTING_TAG));
		if (ret->unknown) /* only the number of tags can be unknown here */
			outcome = count_tags(conn, target->key, limits, &tags, ret_problem);
		if (outcome == OUTCOME_OK)
			ret->unknown = 0;
		ret->missing = checked & s3_headers_missing(target->headers, &reply, tags);
	}
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_get_first_byte(struct s3_conn *conn, const struct s3_target *target,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT, "GET", target, limits);
	s3_request_header(&request, "range", "bytes=0-0");
	return s3_request_send(&request, ret_problem);
}

void s3_explain_refused_head(const char *key, struct problem *ret_problem)
{
	problem_set(ret_problem,
		"HEAD of the object %s is refused and GET is not: a cache or proxy on the way turns "
		"HEAD into GET, which breaks the signature, or forbids HEAD: exempt the host of S3 "
		"from it (nginx: proxy_cache_convert_head off)",
		quote(key).text);
}

enum outcome s3_list_objects(struct s3_conn *conn, const struct s3_listing *listing,
	const struct call_limits *limits, bool *ret_more, struct problem *ret_problem)
{
	struct s3_page page = {.object = listing->each, .arg = listing->arg};
	struct s3_request request;
	s3_request_begin(&request, conn, S3_LIST_OBJECTS, "GET", NULL, limits);
	s3_request_query(&request, "encoding-type", "url");
	s3_request_query(&request, "list-type", "2");
	if (*listing->prefix)
		s3_request_query(&request, "prefix", listing->prefix);
	if (*listing->after)
		s3_request_query(&request, "start-after", listing->after);
	const enum outcome outcome =
		s3_request_read(&request, &s3_reply_objects, &page, ret_problem);
	if (outcome == OUTCOME_OK)
		*ret_more = page.has_more;
	return outcome;
}

#define ERROR_MAX_BYTES (1U << 20) /* room for the reply that refuses a short range */

/* The call.read_error of the requests for an object's bytes. The body of a successful reply is the
 * object, and never an error, even if it looks like one. */
static int read_content_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	if (reply->status < 300) {
		ret_code[0] = ret_message[0] = ret_region[0] = '\0';
		return 0;
	}
	return s3_reply_error(reply, ret_code, ret_message, ret_region);
}

enum outcome s3_get_range(struct s3_conn *conn, const struct s3_target *target, uint64_t offset,
	size_t n, const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT, "GET", target, limits);
	s3_request_version(&request, target);
	s3_request_headerf(&request, "range", "bytes=%" PRIu64 "-%" PRIu64, offset, offset + n - 1);
	request.call.read_error = read_content_error;
	request.call.reply_max_bytes = n > ERROR_MAX_BYTES ? n : ERROR_MAX_BYTES;
	/* Reserves the memory at once. A body that grows step by step would leave about as much
	 * freed memory in each thread. */
	ret->body.max = request.call.reply_max_bytes;
	text_reset(&ret->body);
	text_reserve(&ret->body, n);
	const enum outcome outcome = s3_request_perform(&request, ret, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	s3_strip_etag(http_reply_header(ret, "etag"), ret_etag);
	/* A server that does not know ranges answers 200 with the whole object. That is right only
	 * if the range is the whole object. */
	if (ret->body.len == n && (ret->status == 206 || offset == 0))
		return OUTCOME_OK;
	return outcome_error(ret_problem, OUTCOME_LOST,
		"S3 sent %zu bytes where %zu from byte %" PRIu64 " on were asked for",
		ret->body.len, n, offset);
}

enum outcome s3_get_small(struct s3_conn *conn, const struct s3_target *target, size_t max_bytes,
	const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT, "GET", target, limits);
	request.call.read_error = read_content_error;
	request.call.reply_max_bytes = max_bytes;
	const enum outcome outcome = s3_request_perform(&request, ret, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	s3_strip_etag(http_reply_header(ret, "etag"), ret_etag);
	return *ret_etag ? OUTCOME_OK : s3_not_understood(&request, -EBADMSG, ret_problem);
}
