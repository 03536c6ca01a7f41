/* Builds an S3 request, sends it, and finds out the features of the server from its reply. The
 * calls themselves are in s3.c and s3_multipart.c. */
#include "s3/s3_request.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum s3_support s3_supports(const struct s3 *s3, enum s3_feature feature)
{
	return (enum s3_support)atomic_load_explicit(&s3->support[feature], memory_order_relaxed);
}

void s3_set_support(struct s3 *s3, enum s3_feature feature, enum s3_support support)
{
	atomic_store_explicit(&s3->support[feature], support, memory_order_relaxed);
}

const char *s3_server(const struct s3 *s3)
{
	return atomic_load(&s3->server_is) == S3_SERVER_KNOWN ? s3->server : "";
}

/* Remembers the Server header of the first reply. */
static void s3_note_server(struct s3 *s3, const struct http_reply *reply)
{
	int unknown = S3_SERVER_UNKNOWN;
	if (!reply->status) /* there was no reply */
		return;
	/* Only one of several threads notes the header. */
	if (!atomic_compare_exchange_strong(&s3->server_is, &unknown, S3_SERVER_BEING_NOTED))
		return;
	const char *name = http_reply_header(reply, "server");
	snprintf(s3->server, sizeof s3->server, "%s", name ? name : "");
	for (char *c = s3->server; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?'; /* a mark store accepts only text */
	atomic_store(&s3->server_is, S3_SERVER_KNOWN);
}

#define NS 1000000000

void s3_format_mtime(int64_t mtime_ns, char ret[static S3_MTIME_CHARS])
{
	/* The value is negated as an unsigned one, since -INT64_MIN would not fit. */
	uint64_t ns = mtime_ns < 0 ? 0 - (uint64_t)mtime_ns : (uint64_t)mtime_ns;
	int n = snprintf(ret, S3_MTIME_CHARS, "%s%" PRIu64 ".%09" PRIu64, mtime_ns < 0 ? "-" : "",
		ns / NS, ns % NS);
	while (ret[n - 1] == '0')
		n--;
	if (ret[n - 1] == '.')
		n--;
	ret[n] = '\0';
}

int64_t s3_parse_mtime(const char *s)
{
	if (!s)
		return 0;
	int sign = *s == '-' ? -1 : 1;
	s += sign < 0;
	size_t digits = strspn(s, "0123456789");
	/* In ns, an int64_t holds at most 9,223,372,036 s, which are 10 digits. */
	if (digits == 0 || digits > 10 || (s[digits] && s[digits] != '.'))
		return 0;
	const int64_t whole_s = (int64_t)strtoull(s, NULL, 10);
	if (whole_s >= INT64_MAX / NS)
		return 0;
	const char *fraction = s[digits] ? s + digits + 1 : "";
	int64_t ns = 0;
	/* Reads nine digits, and appends a 0 for each one that is missing. */
	for (int i = 0; i < 9; i++) {
		if (*fraction && (*fraction < '0' || *fraction > '9'))
			return 0;
		ns = ns * 10 + (*fraction ? *fraction++ - '0' : 0);
	}
	return sign * (whole_s * NS + ns);
}

int s3_key_hash(struct digest *digest, const char *bucket, const char *key,
	char ret[static S3_KEY_HASH_CHARS + 1])
{
	struct sums sums;
	char hex[2 * sizeof sums.sha256 + 1];
	if (digest_restart(digest, DIGEST_SHA256))
		return -ENOMEM;
	digest_update(digest, bucket, strlen(bucket));
	digest_update(digest, "/", 1);
	digest_update(digest, key, strlen(key));
	digest_finish(digest, &sums);
	hex_encode(sums.sha256, sizeof sums.sha256, hex);
	memcpy(ret, hex, S3_KEY_HASH_CHARS);
	ret[S3_KEY_HASH_CHARS] = '\0';
	return 0;
}

void s3_format_sums(const struct sums *sums, enum checksum checksum, char ret[static S3_SUMS_CHARS])
{
	const enum checksum kinds[2] = {checksum, CHECKSUM_MD5};
	char base64[CHECKSUM_BASE64_MAX + 1];
	size_t n = 0;
	ret[0] = '\0';
	/* If the checksum is itself the MD5, it is written only once. */
	for (int i = checksum == CHECKSUM_MD5 ? 1 : 0; i < 2; i++) {
		if (!(sums->kinds & DIGEST_OF(kinds[i])))
			continue;
		checksum_to_base64(kinds[i], sums_bytes(sums, kinds[i]), base64);
		n += (size_t)snprintf(ret + n, S3_SUMS_CHARS - n, "%s%s:%s", n ? " " : "",
			checksum_kinds[kinds[i]].name, base64);
	}
}

void s3_parse_sums(const char *s, struct sums *ret)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	*ret = (struct sums){0};
	for (; *s; s += strspn(s, " ")) {
		const char *end = s + strcspn(s, " "); /* the end of the word NAME:BASE64 */
		const size_t name_bytes = strcspn(s, ": ");
		const enum checksum kind = checksum_named(s, name_bytes);
		const char *base64 = s + name_bytes + 1;
		if (kind != CHECKSUMS && s[name_bytes] == ':' &&
			!checksum_from_base64(kind, base64, (size_t)(end - base64), bytes))
			sums_set(ret, kind, bytes);
		s = end;
	}
}

bool s3_reply_etag_is_opaque(const struct s3 *s3, const struct http_reply *reply)
{
	return s3_supports(s3, S3_ETAG_IS_MD5) == S3_NO || s3_reply_is_encrypted(reply);
}

/* Learns whether the server echoes checksums, since later requests then need no MD5. The reply to
 * PutObject shows it. The reply to UploadPart counts only while nothing is known yet, for a run
 * that has only large files. */
static void learn_echo(struct s3 *s3, enum s3_kind kind, bool is_echoed)
{
	if (kind == S3_PUT_OBJECT || s3_supports(s3, S3_ECHOES_CHECKSUM) == S3_UNKNOWN)
		s3_set_support(s3, S3_ECHOES_CHECKSUM, is_echoed ? S3_YES : S3_NO);
}

/* Learns whether etags are MD5s, from an etag that can show it. `sums` has the MD5 that was sent;
 * `sum` is the checksum in the reply. */
static void learn_etag_kind(
	struct s3 *s3, const struct sums *sums, const char *etag, const struct s3_sum *sum)
{
	char md5[33], base64[CHECKSUM_BASE64_MAX + 1];
	hex_encode(sums->md5, sizeof sums->md5, md5);
	if (strcasecmp(etag, md5) == 0) {
		s3_set_support(s3, S3_ETAG_IS_MD5, S3_YES);
		return;
	}
	/* The etag differs. If the checksum shows that the content is the same, the etags of this
	 * server are not MD5s. One such reply does not change a feature that is known already. */
	const bool can_compare = sum->text[0] && (sums->kinds & DIGEST_OF(sum->kind));
	if (!can_compare || s3_supports(s3, S3_ETAG_IS_MD5) != S3_UNKNOWN)
		return;
	checksum_to_base64(sum->kind, sums_bytes(sums, sum->kind), base64);
	if (strcmp(sum->text, base64) == 0)
		s3_set_support(s3, S3_ETAG_IS_MD5, S3_NO);
}

void s3_read_sum_and_learn(const struct s3_request *request, const struct s3_put *put,
	const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum)
{
	struct s3 *s3 = request->conn->s3;
	const struct sums *sums = put->sums;
	s3_read_sum(reply, ret_etag, ret_sum);
	const bool has_sent = request->checksum[0] || put->trailing;
	if (has_sent)
		learn_echo(s3, (enum s3_kind)request->call.kind,
			ret_sum->text[0] && ret_sum->kind == put->checksum);
	/* Only an etag with as many characters as an MD5 can be one, and none of an encrypted
	 * object is. */
	if ((sums->kinds & DIGEST_MD5) && !s3_reply_is_encrypted(reply) && strlen(ret_etag) == 32)
		learn_etag_kind(s3, sums, ret_etag, ret_sum);
}

/* Adds the headers of the object's settings: all of them to a request that stores it, to others
 * only those of a customer-provided key (SSE-C). */
static void add_settings(struct s3_request *request, const struct s3_target *target)
{
	const unsigned kind = request->call.kind;
	const bool stores = kind == S3_PUT_OBJECT || kind == S3_CREATE_UPLOAD;
	const struct call_header *headers;
	const size_t n = s3_headers_of(target->headers, stores, &headers);
	for (size_t i = 0; i < n; i++)
		s3_request_header(request, headers[i].name, headers[i].value);
	if (stores && target->content_type && !s3_headers_value(target->headers, "content-type"))
		s3_request_header(request, "content-type", target->content_type);
	/* A file whose settings name an encoding is not compressed, so this is the only one. */
	if (stores && target->content_encoding)
		s3_request_header(request, "content-encoding", target->content_encoding);
}

void s3_request_begin(struct s3_request *request, struct s3_conn *conn, enum s3_kind kind,
	const char *method, const struct s3_target *target, const struct call_limits *limits)
{
	const struct s3 *s3 = conn->s3;
	*request = (struct s3_request){
		.conn = conn,
		.call = {.kind = kind,
			.subject = s3->bucket,
			.method = method,
			.payload_hash = SHA256_OF_NOTHING,
			.is_write = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0,
			.limits = limits ? *limits : no_limits,
			.read_error = s3_reply_error},
	};
	text_reset(&conn->path);
	text_reset(&conn->query);
	text_reset(&conn->body);
	if (target) {
		text_add_char(&conn->path, '/');
		uri_encode_path(&conn->path, target->key, strlen(target->key));
		add_settings(request, target);
	}
	if (s3->expected_owner)
		s3_request_header(request, "x-amz-expected-bucket-owner", s3->expected_owner);
	if (s3->requester_pays && kind != S3_HEAD_BUCKET) /* HeadBucket knows no such header */
		s3_request_header(request, "x-amz-request-payer", "requester");
}

void s3_request_query(struct s3_request *request, const char *name, const char *value)
{
	struct text *query = &request->conn->query;
	assert(!request->last_parameter || strcmp(request->last_parameter, name) < 0);
	request->last_parameter = name;
	text_add(query, query->len ? "&" : "");
	text_add(query, name);
	text_add_char(query, '=');
	uri_encode(query, value, strlen(value));
}

void s3_request_upload_id(struct s3_request *request, const char *upload_id)
{
	s3_request_query(request, "uploadId", upload_id);
	request->is_of_upload = true;
}

void s3_request_header(struct s3_request *request, const char *name, const char *value)
{
	assert(request->call.n_headers < sizeof request->headers / sizeof *request->headers);
	request->headers[request->call.n_headers++] = (struct call_header){name, value};
}

void s3_request_headerf(struct s3_request *request, const char *name, const char *format, ...)
{
	char *value = request->values + request->n_values_bytes;
	const size_t room = sizeof request->values - request->n_values_bytes;
	va_list ap;
	va_start(ap, format);
	const int n = vsnprintf(value, room, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room) {
		/* A request has no error of its own. s3_request_perform() checks path.error. */
		request->conn->path.error = -EMSGSIZE;
		return;
	}
	request->n_values_bytes += (size_t)n + 1;
	s3_request_header(request, name, value);
}

/* Whether this is the checksum of the settings, and the server is known to refuse it. */
static bool is_refused_checksum(struct s3 *s3, enum checksum checksum)
{
	return checksum == s3->settings->checksum && atomic_load(&s3->refuses_checksum);
}

void s3_request_checksum(
	struct s3_request *request, const struct sums *sums, enum checksum checksum)
{
	const char *header = checksum_kinds[checksum].header;
	if (!header || !(sums->kinds & DIGEST_OF(checksum)) ||
		is_refused_checksum(request->conn->s3, checksum))
		return;
	checksum_to_base64(checksum, sums_bytes(sums, checksum), request->checksum);
	s3_request_header(request, header, request->checksum);
}

void s3_request_checksum_type(struct s3_request *request, enum checksum checksum)
{
	const struct checksum_kind *kind = &checksum_kinds[checksum];
	if (!kind->header || is_refused_checksum(request->conn->s3, checksum))
		return;
	if (request->call.kind == S3_CREATE_UPLOAD)
		s3_request_header(request, "x-amz-checksum-algorithm", kind->s3_name);
	s3_request_header(
		request, "x-amz-checksum-type", kind->combines ? "FULL_OBJECT" : "COMPOSITE");
}

/* Adds a body whose checksum follows it. */
static void add_trailing(struct s3_request *request, const struct s3_put *put)
{
	request->call.body = s3_trailer_begin(&request->trailer, put, &request->conn->digest);
	request->call.payload_hash = S3_TRAILER_SIGNED;
	s3_request_header(request, "content-encoding", "aws-chunked");
	s3_request_headerf(request, "x-amz-decoded-content-length", "%" PRIu64, put->body->bytes);
	s3_request_header(request, "x-amz-trailer", checksum_kinds[put->checksum].header);
}

void s3_request_body(struct s3_request *request, const struct s3_put *put)
{
	if (put->trailing) {
		add_trailing(request, put);
		return;
	}
	const struct s3 *s3 = request->conn->s3;
	const struct sums *sums = put->sums;
	char md5[25];
	request->call.body = *put->body;
	/* Over TLS the body cannot be changed on its way. So the checksum is enough, and the body
	 * is not signed, which saves the CPU time for SHA-256. Without TLS, or with the setting
	 * s3.payload_signing_enabled, s3_wanted_digests() asks for SHA-256, and it is signed with
	 * the request. */
	request->call.payload_hash = SIGV4_UNSIGNED;
	const bool is_signed = !s3->is_tls || s3->settings->signs_payload;
	if (is_signed && (sums->kinds & DIGEST_SHA256)) {
		hex_encode(sums->sha256, sizeof sums->sha256, request->sha256);
		request->call.payload_hash = request->sha256;
	}
	s3_request_checksum(request, sums, put->checksum);
	if (sums->kinds & DIGEST_MD5) {
		base64_encode(sums->md5, sizeof sums->md5, md5);
		s3_request_headerf(request, "content-md5", "%s", md5);
	}
}

void s3_request_condition(struct s3_request *request, const struct s3_condition *condition)
{
	const bool has_quotes = s3_supports(request->conn->s3, S3_IF_MATCH_QUOTES) != S3_NO;
	request->condition = condition;
	if (condition->if_none_match)
		s3_request_header(request, "if-none-match", "*");
	else if (condition->if_match)
		s3_request_headerf(
			request, "if-match", has_quotes ? "\"%s\"" : "%s", condition->if_match);
}

void s3_request_version(struct s3_request *request, const struct s3_target *target)
{
	if (!target->version_id || !*target->version_id)
		return;
	/* "null" names an object that was stored without versioning. Some servers refuse it. */
	const bool is_null = strcmp(target->version_id, "null") == 0;
	if (!is_null || request->conn->s3->settings->s3_is_aws)
		s3_request_query(request, "versionId", target->version_id);
}

void s3_request_meta(struct s3_request *request, const char *key, const struct s3_meta *meta)
{
	char time[S3_MTIME_CHARS], hash[S3_KEY_HASH_CHARS + 1] = "";
	/* Without a table no mark is about the object, and only its mtime is added, if known. */
	if (meta->table_id[0] || meta->mtime_ns) {
		s3_format_mtime(meta->mtime_ns, time);
		s3_request_headerf(request, "x-amz-meta-mtime", "%s", time);
	}
	if (!meta->table_id[0])
		return;
	s3_request_header(request, "x-amz-meta-s3once-table", meta->table_id);
	s3_request_header(request, "x-amz-meta-s3once-claim", meta->claim_id);
	if (s3_key_hash(&request->conn->digest, request->conn->s3->bucket, key, hash))
		request->conn->path.error = -ENOMEM; /* as in s3_request_headerf() */
	s3_request_headerf(request, "x-amz-meta-s3once-key", "%s", hash);
	if (meta->ctime_ns) {
		s3_format_mtime(meta->ctime_ns, time);
		s3_request_headerf(request, "x-amz-meta-s3once-ctime", "%s", time);
	}
	if (meta->content_id[0])
		s3_request_header(request, "x-amz-meta-s3once-content", meta->content_id);
	if (meta->part_bytes)
		s3_request_headerf(request, "x-amz-meta-s3once-part", "%" PRIu64, meta->part_bytes);
	if (meta->log_offset)
		s3_request_headerf(
			request, "x-amz-meta-s3once-offset", "%" PRIu64, meta->log_offset);
	if (!meta->encoding[0])
		return;
	s3_request_header(request, "x-amz-meta-s3once-encoding", meta->encoding);
	if (meta->suffix[0])
		s3_request_header(request, "x-amz-meta-s3once-suffix", meta->suffix);
	s3_request_headerf(request, "x-amz-meta-s3once-size", "%" PRIu64, meta->content_bytes);
}

/* Finds the bucket's region after a redirect that does not name it. S3 names the region in its
 * reply to a HEAD of the bucket, from which call_perform() learns it, if no other thread has done
 * so meanwhile. Returns false if the HEAD ends with SETUP, as the request has: then the region
 * stays unknown. */
static bool find_region(const struct s3_request *request)
{
	const struct call head = {.kind = S3_HEAD_BUCKET,
		.method = "HEAD",
		.path = "",
		.query = "",
		.payload_hash = SHA256_OF_NOTHING,
		.limits = request->call.limits,
		.read_error = s3_reply_error};
	struct http_reply reply = {0};
	const enum outcome outcome = call_perform(request->conn->service, &head, &reply, NULL);
	http_reply_clear(&reply);
	return outcome != OUTCOME_SETUP;
}

/* Removes the headers with the checksum. Returns false if the request had none. */
static bool drop_checksum(struct s3_request *request)
{
	size_t kept = 0;
	for (size_t i = 0; i < request->call.n_headers; i++) {
		const char *name = request->headers[i].name;
		/* This header asks for the checksum of an object, and has none itself. */
		const bool is_mode = strcmp(name, "x-amz-checksum-mode") == 0;
		if (is_mode || strncmp(name, "x-amz-checksum-", strlen("x-amz-checksum-")) != 0)
			request->headers[kept++] = request->headers[i];
	}
	const bool had_checksum = kept < request->call.n_headers;
	request->call.n_headers = kept;
	/* s3_read_sum_and_learn() then expects no echo of a checksum. */
	if (had_checksum)
		request->checksum[0] = '\0';
	return had_checksum;
}

/* Performs a refused request again without its checksum, if the user has not chosen the checksum
 * and the server may not know it. Servers refuse an unknown checksum in many ways, so only the same
 * request without it shows whether the checksum is the cause.
 *
 * Returns the new outcome. If that is the same as before, the checksum is not the cause, and the
 * first problem stays. */
static enum outcome try_without_checksum(struct s3_request *request, enum outcome outcome,
	struct http_reply *reply, struct problem *problem)
{
	struct s3 *s3 = request->conn->s3;
	struct problem second = {0};
	const bool may_be_cause = outcome == OUTCOME_INVALID || outcome == OUTCOME_UNSUPPORTED ||
				  outcome == OUTCOME_SETTING;
	const bool may_be_dropped = s3->settings->checksum_is_automatic &&
				    checksum_kinds[s3->settings->checksum].s3_name &&
				    s3_supports(s3, S3_ECHOES_CHECKSUM) != S3_YES;
	if (!may_be_cause || !may_be_dropped || !drop_checksum(request))
		return outcome;
	const enum outcome outcome_without =
		call_perform(request->conn->service, &request->call, reply, &second);
	if (outcome_without == outcome)
		return outcome;
	if (outcome_without == OUTCOME_OK) {
		s3_set_support(s3, S3_ECHOES_CHECKSUM, S3_NO); /* so that MD5s are computed */
		/* Several threads may find this out, and only the first one reports it. */
		if (!atomic_exchange(&s3->refuses_checksum, true))
			log_info("this server refuses %s; what is sent is protected by Content-MD5",
				checksum_kinds[s3->settings->checksum].s3_name);
	}
	*problem = second;
	return outcome_without;
}

/* Learns about the server from the outcome of the request. */
static void learn_from_outcome(
	const struct s3_request *request, enum outcome outcome, const struct http_reply *reply)
{
	const struct s3_condition *condition = request->condition;
	const bool is_put = request->call.kind == S3_PUT_OBJECT;
	s3_note_server(request->conn->s3, reply);
	/* Only PutObject and CompleteMultipartUpload have conditions. A server that does not know
	 * one answers 501, as S3 does for a header that it does not implement. */
	if (condition && condition->if_none_match && outcome == OUTCOME_UNSUPPORTED &&
		reply->status == 501)
		s3_set_support(request->conn->s3, is_put ? S3_PUT_CONDITION : S3_COMPLETE_CONDITION,
			S3_NO);
}

/* Whether ABSENT means that the upload of this request does not exist. A request about an upload
 * gets 404 for that. Only with If-Match it may also be the object that is missing. */
static bool absent_means_upload(const struct s3_request *request)
{
	const bool has_if_match = request->condition && request->condition->if_match;
	return request->is_of_upload && !has_if_match;
}

/* Implements both s3_request_perform() and s3_request_perform_and_read(); `document` is NULL for
 * the former. */
static enum outcome perform_and_learn(struct s3_request *request,
	const struct s3_document *document, void *arg, struct http_reply *ret_reply,
	struct problem *ret_problem)
{
	struct s3_conn *conn = request->conn;
	/* S3 ignores a parameter whose name begins with "x-", and no cache on the way has an answer
	 * to a URL that was never asked for before. */
	if (!request->call.is_write) {
		char once[ID_CHARS + 1];
		random_id(once);
		s3_request_query(request, "x-once", once);
	}
	if (conn->path.error || conn->query.error || conn->body.error)
		return outcome_error(ret_problem, OUTCOME_LOCAL,
			"the request would be too long, or memory ran out");
	request->call.path = text_string(&conn->path);
	request->call.query = text_string(&conn->query);
	request->call.headers = request->headers;
	if (document)
		request->call.reply_max_bytes = document->max_bytes;
	if (document && !document->may_be_other)
		request->call.read_error = s3_reply_error_or_xml;
	/* Not *ret_problem, which may be NULL: try_without_checksum() keeps or replaces this one.
	 */
	struct problem problem = {0};
	enum outcome outcome = call_perform(conn->service, &request->call, ret_reply, &problem);
	/* A redirect (301) that names the region was followed by call_perform() already. */
	if (outcome == OUTCOME_SETUP && ret_reply->status == 301 && find_region(request))
		outcome = call_perform(conn->service, &request->call, ret_reply, &problem);
	outcome = try_without_checksum(request, outcome, ret_reply, &problem);
	learn_from_outcome(request, outcome, ret_reply);
	if (outcome == OUTCOME_ABSENT && absent_means_upload(request))
		outcome = OUTCOME_NO_UPLOAD;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	if (outcome != OUTCOME_OK)
		return outcome;
	const struct text *body = &ret_reply->body;
	int r = document ? s3_reply_read(document, text_string(body), body->len, arg) : 0;
	/* S3 answers a DELETE without a body. The page of a proxy, which has a status of 200 as
	 * well, does not say that anything was deleted. */
	if (body->len && strcmp(request->call.method, "DELETE") == 0)
		r = -EBADMSG;
	if (r < 0)
		return s3_not_understood(request, r, ret_problem);
	/* 1: the caller's callback has ended the listing. It knows why, so no sentence is set. */
	return r == 1 ? OUTCOME_LOCAL : OUTCOME_OK;
}

enum outcome s3_request_perform(
	struct s3_request *request, struct http_reply *ret_reply, struct problem *ret_problem)
{
	return perform_and_learn(request, NULL, NULL, ret_reply, ret_problem);
}

enum outcome s3_request_perform_and_read(struct s3_request *request,
	const struct s3_document *document, void *arg, struct http_reply *ret_reply,
	struct problem *ret_problem)
{
	return perform_and_learn(request, document, arg, ret_reply, ret_problem);
}

enum outcome s3_not_understood(
	const struct s3_request *request, int error, struct problem *ret_problem)
{
	unsigned long unused_count;
	if (error == -ENOMEM)
		return outcome_no_memory(ret_problem);
	problem_set(ret_problem, "the reply to %s is not what S3 answers: check the endpoint",
		service_kind(request->conn->s3->service, request->call.kind, &unused_count));
	/* Only a reply of success is read, so its status was 2xx. The callers see by the status
	 * that the server did answer, and would answer the same again. */
	if (ret_problem)
		ret_problem->status = 200;
	return OUTCOME_LOST;
}

enum outcome s3_request_send(struct s3_request *request, struct problem *ret_problem)
{
	return s3_request_read(request, NULL, NULL, ret_problem);
}

enum outcome s3_request_read(struct s3_request *request, const struct s3_document *document,
	void *arg, struct problem *ret_problem)
{
	struct http_reply reply = {0};
	const enum outcome outcome = perform_and_learn(request, document, arg, &reply, ret_problem);
	http_reply_clear(&reply);
	return outcome;
}
