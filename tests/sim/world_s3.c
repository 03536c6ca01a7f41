/* Implements world_s3.h: objects, conditions and listings. Uploads in parts are in
 * world_s3_multipart.c. */
#include "base/clock.h"
#include "world_s3_struct.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

struct world_s3 *world_s3_new(uint64_t seed, const char *bucket, const struct s3_habits *habits,
	const struct s3_witness *witness)
{
	struct world_s3 *s3 = must(calloc(1, sizeof *s3));
	s3->chance = chance_of(seed, "s3");
	snprintf(s3->bucket, sizeof s3->bucket, "%s", bucket);
	s3->habits = *habits;
	s3->witness = *witness;
	return s3;
}

void s3_free_kept(struct wire_header *kept, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(kept[i].name);
		free(kept[i].value);
	}
	free(kept);
}

static void clear(struct s3_stored *object)
{
	free(object->key);
	free(object->bytes);
	free(object->part_bytes);
	s3_free_kept(object->kept, object->n_kept);
}

static void remove_all(struct world_s3 *s3)
{
	for (size_t i = 0; i < s3->n; i++)
		clear(&s3->objects[i]);
	s3->n = 0;
	s3_free_uploads(s3);
}

void world_s3_free(struct world_s3 *s3)
{
	if (!s3)
		return;
	remove_all(s3);
	free(s3->objects);
	free(s3->completed);
	free(s3);
}

static size_t place_of(const struct world_s3 *s3, const char *key, bool *found)
{
	size_t i = 0;
	while (i < s3->n && strcmp(s3->objects[i].key, key) < 0)
		i++;
	*found = i < s3->n && strcmp(s3->objects[i].key, key) == 0;
	return i;
}

const struct s3_stored *world_s3_object(const struct world_s3 *s3, const char *key)
{
	bool found;
	const size_t i = place_of(s3, key, &found);
	return found ? &s3->objects[i] : NULL;
}

const struct s3_stored *world_s3_at(const struct world_s3 *s3, size_t i)
{
	return i < s3->n ? &s3->objects[i] : NULL;
}

const char *s3_stored_header(const struct s3_stored *object, const char *name)
{
	for (size_t i = 0; i < object->n_kept; i++)
		if (strcmp(object->kept[i].name, name) == 0)
			return object->kept[i].value;
	return NULL;
}

void s3_hex(const unsigned char *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		sprintf(ret + 2 * i, "%02x", bytes[i]);
}

void s3_sum(const void *bytes, size_t n, unsigned kinds, struct sums *ret)
{
	struct digest digest;
	if (digest_init(&digest, kinds))
		abort();
	digest_update(&digest, bytes, n);
	digest_finish(&digest, ret);
	digest_clear(&digest);
}

void s3_refuse(struct wire_reply *ret, int status, const char *code, const char *message)
{
	ret->status = status;
	wire_reply_header(ret, "content-type", "application/xml");
	text_addf(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s"
		"</Message><RequestId>SIM</RequestId></Error>",
		code, message);
}

static bool names_etag(const char *list, const char *etag)
{
	const size_t n = strlen(etag);
	const char *at = strstr(list, etag);
	return at && at > list && at[-1] == '"' && at[n] == '"';
}

bool s3_condition_holds(struct world_s3 *s3, const struct wire_request *request,
	const struct s3_stored *there, struct wire_reply *ret)
{
	const char *none = wire_header(request, "if-none-match");
	const char *match = wire_header(request, "if-match");
	const char *etag = there ? there->etag : "";
	if (s3->habits.conditions == S3_IGNORES)
		return true;
	if ((none && match) || (match && strcmp(match, "*") == 0) ||
		(none && strcmp(none, "*") != 0)) {
		s3_refuse(ret, 501, "NotImplemented",
			"A header you provided implies functionality that is not implemented");
		return false;
	}
	if (s3->habits.conditions == S3_LOOKS_FIRST && there && !request->is_late &&
		there->stored_ns > request->sent_ns)
		etag = there->etag_before;
	if (none && *etag) {
		s3_refuse(ret, 412, "PreconditionFailed",
			"At least one of the pre-conditions you specified did not hold");
		return false;
	}
	if (match && !*etag) {
		s3_refuse(ret, 404, "NoSuchKey", "The specified key does not exist.");
		return false;
	}
	if (match && !names_etag(match, etag)) {
		s3_refuse(ret, 412, "PreconditionFailed",
			"At least one of the pre-conditions you specified did not hold");
		return false;
	}
	return true;
}

static bool is_kept(const char *name)
{
	static const char *const names[] = {"content-type", "content-encoding", "content-language",
		"content-disposition", "cache-control", "expires", "x-amz-storage-class"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

struct wire_header *s3_kept_headers(const struct wire_request *request, size_t *ret_n)
{
	struct wire_header *kept = must(calloc(request->n_headers + 1, sizeof *kept));
	size_t n = 0;
	for (size_t i = 0; i < request->n_headers; i++) {
		const struct wire_header *header = &request->headers[i];
		if (strncmp(header->name, "x-amz-meta-", 11) == 0 || is_kept(header->name))
			kept[n++] = (struct wire_header){
				must(strdup(header->name)), must(strdup(header->value))};
	}
	*ret_n = n;
	return kept;
}

bool s3_check_body(struct world_s3 *s3, const struct wire_request *request, struct sums *ret_sums,
	enum checksum *ret_kind, char ret_text[static CHECKSUM_BASE64_MAX + 1],
	struct wire_reply *ret)
{
	const char *told = NULL, *md5 = wire_header(request, "content-md5");
	char text[CHECKSUM_BASE64_MAX + 1];
	unsigned kind = 0;
	for (; kind < CHECKSUMS && !told; kind++)
		if (checksum_kinds[kind].header)
			told = wire_header(request, checksum_kinds[kind].header);
	kind -= told != NULL;
	if (!told || !s3->habits.keeps_checksums)
		kind = CHECKSUMS;
	*ret_kind = (enum checksum)kind;
	s3_sum(request->body, request->body_bytes,
		DIGEST_MD5 | DIGEST_CRC32C | (kind < CHECKSUMS ? DIGEST_OF(kind) : 0), ret_sums);
	if (md5) {
		checksum_to_base64(CHECKSUM_MD5, ret_sums->md5, text);
		if (strcmp(md5, text) != 0) {
			s3_refuse(ret, 400, "BadDigest",
				"The Content-MD5 you specified did not match");
			return false;
		}
	}
	*ret_text = 0;
	if (kind == CHECKSUMS)
		return true;
	checksum_to_base64(
		(enum checksum)kind, sums_bytes(ret_sums, (enum checksum)kind), ret_text);
	if (strcmp(told, ret_text) == 0)
		return true;
	const bool has_length = strlen(told) == strlen(ret_text);
	s3_refuse(ret, 400, has_length ? "BadDigest" : "InvalidRequest",
		"The checksum you specified did not match");
	return false;
}

void world_s3_tell_time(struct world_s3 *s3, uint64_t now_ns)
{
	s3->now_ns = now_ns;
}

void s3_store(struct world_s3 *s3, const struct wire_request *request, struct s3_stored *now)
{
	bool found;
	size_t i = place_of(s3, now->key, &found);
	s3_overtake(s3, now->key);
	if (s3->habits.has_versions)
		snprintf(now->version_id, sizeof now->version_id, "v%016" PRIx64,
			chance_next(&s3->chance));
	now->stored_ns = s3->now_ns;
	snprintf(now->etag_before, sizeof now->etag_before, "%s", found ? s3->objects[i].etag : "");
	if (s3->witness.stores)
		s3->witness.stores(s3->witness.arg, request, found ? &s3->objects[i] : NULL, now);
	if (found) {
		clear(&s3->objects[i]);
		s3->objects[i] = *now;
		return;
	}
	if (s3->n == s3->cap) {
		s3->cap = 2 * s3->cap + 32;
		s3->objects = must(realloc(s3->objects, s3->cap * sizeof *s3->objects));
	}
	memmove(s3->objects + i + 1, s3->objects + i, (s3->n - i) * sizeof *s3->objects);
	s3->n++;
	s3->objects[i] = *now;
}

static void put_object(struct world_s3 *s3, const struct wire_request *request, const char *key,
	int64_t now_s, struct wire_reply *ret)
{
	struct s3_stored now = {
		.n = request->body_bytes, .modified_s = now_s, .writer = request->from};
	enum checksum kind;
	char text[CHECKSUM_BASE64_MAX + 1], quoted[84];
	const struct s3_stored *there = world_s3_object(s3, key);
	if (!s3_check_body(s3, request, &now.sums, &kind, text, ret))
		return;
	if (!s3_condition_holds(s3, request, there, ret)) {
		if (there && s3->witness.refuses)
			s3->witness.refuses(s3->witness.arg, request, there);
		return;
	}
	now.key = must(strdup(key));
	now.bytes = must(malloc(now.n + 1));
	if (now.n)
		memcpy(now.bytes, request->body, now.n);
	now.kept = s3_kept_headers(request, &now.n_kept);
	if (s3->habits.etag_is_md5)
		s3_hex(now.sums.md5, 16, now.etag);
	else
		snprintf(now.etag, sizeof now.etag, "%016" PRIx64, chance_next(&s3->chance));
	if (kind < CHECKSUMS) {
		snprintf(now.checksum_name, sizeof now.checksum_name, "%s",
			checksum_kinds[kind].name);
		snprintf(now.checksum, sizeof now.checksum, "%s", text);
		wire_reply_header(ret, checksum_kinds[kind].header, text);
		wire_reply_header(ret, "x-amz-checksum-type", "FULL_OBJECT");
	}
	s3_store(s3, request, &now);
	snprintf(quoted, sizeof quoted, "\"%s\"", now.etag);
	wire_reply_header(ret, "etag", quoted);
	if (*now.version_id)
		wire_reply_header(ret, "x-amz-version-id", now.version_id);
	ret->status = 200;
}

static void tell_headers(
	const struct s3_stored *object, bool tells_checksum, struct wire_reply *ret)
{
	char text[84], date[CLOCK_HTTP_DATE_CHARS];
	snprintf(text, sizeof text, "\"%s\"", object->etag);
	wire_reply_header(ret, "etag", text);
	clock_format_http_date(object->modified_s, date);
	wire_reply_header(ret, "last-modified", date);
	for (size_t i = 0; i < object->n_kept; i++)
		wire_reply_header(ret, object->kept[i].name, object->kept[i].value);
	if (!s3_stored_header(object, "content-type"))
		wire_reply_header(ret, "content-type", "binary/octet-stream");
	if (*object->version_id)
		wire_reply_header(ret, "x-amz-version-id", object->version_id);
	if (tells_checksum && *object->checksum) {
		snprintf(text, sizeof text, "x-amz-checksum-%s", object->checksum_name);
		wire_reply_header(ret, text, object->checksum);
		wire_reply_header(ret, "x-amz-checksum-type",
			strchr(object->checksum, '-') ? "COMPOSITE" : "FULL_OBJECT");
	}
}

/* Whether the object is the requested version, if the request names one. Earlier versions are not
 * kept. */
static bool is_version(const struct world_s3 *s3, const struct wire_request *request,
	const struct s3_stored *object, struct wire_reply *ret)
{
	char *wanted = wire_parameter(request, "versionId");
	const bool is =
		!wanted || strcmp(wanted, *object->version_id ? object->version_id : "null") == 0;
	if (!is && s3->habits.has_versions)
		s3_refuse(ret, 404, "NoSuchVersion", "The specified version does not exist.");
	else if (!is)
		s3_refuse(ret, 400, "InvalidArgument", "Invalid version id specified");
	free(wanted);
	return is;
}

static void get_object(struct world_s3 *s3, const struct wire_request *request, const char *key,
	struct wire_reply *ret)
{
	const bool is_head = strcmp(request->method, "HEAD") == 0;
	const struct s3_stored *object = world_s3_object(s3, key);
	const char *range = wire_header(request, "range"), *mode;
	uint64_t from = 0, to;
	if (!object) {
		if (is_head)
			ret->status = 404;
		else
			s3_refuse(ret, 404, "NoSuchKey", "The specified key does not exist.");
		return;
	}
	if (!is_version(s3, request, object, ret))
		return;
	mode = wire_header(request, "x-amz-checksum-mode");
	to = object->n;
	ret->status = 200;
	if (range && sscanf(range, "bytes=%" SCNu64 "-%" SCNu64, &from, &to) == 2) {
		if (from >= object->n) {
			s3_refuse(ret, 416, "InvalidRange",
				"The requested range cannot be satisfied.");
			return;
		}
		to = to + 1 < object->n ? to + 1 : object->n;
		char text[80];
		snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%zu", from, to - 1,
			object->n);
		wire_reply_header(ret, "content-range", text);
		ret->status = 206;
	}
	tell_headers(object, mode && strcasecmp(mode, "ENABLED") == 0, ret);
	ret->content_length = to - from;
	if (!is_head)
		text_add_bytes(&ret->body, object->bytes + from, (size_t)(to - from));
	else if (s3->witness.shows)
		s3->witness.shows(s3->witness.arg, request, object);
}

static void delete_object(struct world_s3 *s3, const struct wire_request *request, const char *key,
	struct wire_reply *ret)
{
	bool found;
	const size_t i = place_of(s3, key, &found);
	ret->status = 204;
	if (!found)
		return;
	if (s3->witness.removes)
		s3->witness.removes(s3->witness.arg, request, &s3->objects[i]);
	world_s3_delete(s3, key);
}

static void uri_text(struct text *to, const char *s, bool encodes)
{
	if (!encodes) {
		wire_add_xml(to, s);
		return;
	}
	for (; *s; s++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/",
			    *s))
			text_add_char(to, *s);
		else
			text_addf(to, "%%%02X", (unsigned char)*s);
}

static void list_objects(
	struct world_s3 *s3, const struct wire_request *request, struct wire_reply *ret)
{
	char *prefix = wire_parameter(request, "prefix");
	/* The token is the last key of the previous page. */
	char *after = wire_parameter(request, "continuation-token");
	if (!after)
		after = wire_parameter(request, "start-after");
	char *encoding = wire_parameter(request, "encoding-type"), iso[21];
	const size_t most = s3->habits.page ? s3->habits.page : 1000;
	const char *last = NULL;
	size_t told = 0, i = 0;
	text_addf(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult><Name>%s"
		"</Name>",
		s3->bucket);
	for (; i < s3->n && told < most; i++) {
		const struct s3_stored *object = &s3->objects[i];
		if ((prefix && strncmp(object->key, prefix, strlen(prefix)) != 0) ||
			(after && strcmp(object->key, after) <= 0))
			continue;
		clock_format_iso(object->modified_s, iso);
		text_add(&ret->body, "<Contents><Key>");
		uri_text(&ret->body, object->key, encoding != NULL);
		text_addf(&ret->body,
			"</Key><LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag><Size>%zu"
			"</Size></Contents>",
			iso, object->etag, object->n);
		last = object->key;
		told++;
	}
	bool more = false;
	for (; i < s3->n; i++)
		more = more || !prefix || strncmp(s3->objects[i].key, prefix, strlen(prefix)) == 0;
	if (more && last) {
		text_add(&ret->body, "<NextContinuationToken>");
		wire_add_xml(&ret->body, last);
		text_add(&ret->body, "</NextContinuationToken>");
	}
	text_addf(&ret->body, "%s<IsTruncated>%s</IsTruncated></ListBucketResult>",
		encoding ? "<EncodingType>url</EncodingType>" : "", more ? "true" : "false");
	ret->status = 200;
	free(prefix);
	free(after);
	free(encoding);
}

static void answer_bucket(
	struct world_s3 *s3, const struct wire_request *request, struct wire_reply *ret)
{
	char *list_type = wire_parameter(request, "list-type");
	char *uploads = wire_parameter(request, "uploads");
	if (strcmp(request->method, "HEAD") == 0) {
		ret->status = 200;
	} else if (list_type) {
		list_objects(s3, request, ret);
	} else if (uploads) {
		s3_answer_uploads(s3, request, ret);
	} else {
		s3_refuse(ret, 501, "NotImplemented", "This is not simulated");
	}
	free(list_type);
	free(uploads);
}

/* Returns the key in the path, "" for the bucket, or NULL for any other path. The caller frees it.
 */
static char *key_of(const struct world_s3 *s3, const struct wire_request *request)
{
	const char *path = request->path + 1;
	const size_t n = strlen(s3->bucket);
	const bool is_virtual =
		strncmp(request->host, s3->bucket, n) == 0 && request->host[n] == '.';
	if (!is_virtual) {
		if (strncmp(path, s3->bucket, n) != 0 || (path[n] && path[n] != '/'))
			return NULL;
		path += n + (path[n] == '/');
	}
	return wire_decode(path, strlen(path));
}

void world_s3_answer(struct world_s3 *s3, const struct wire_request *request, int64_t now_s,
	struct wire_reply *ret)
{
	char *key = key_of(s3, request);
	wire_reply_header(ret, "server", "AmazonS3");
	wire_reply_header(ret, "x-amz-request-id", "SIM");
	if (!key)
		s3_refuse(ret, 501, "NotImplemented", "This is not simulated");
	else if (!*key)
		answer_bucket(s3, request, ret);
	else if (s3_answer_multipart(s3, request, key, now_s, ret))
		;
	else if (strcmp(request->method, "PUT") == 0)
		put_object(s3, request, key, now_s, ret);
	else if (strcmp(request->method, "DELETE") == 0)
		delete_object(s3, request, key, ret);
	else
		get_object(s3, request, key, ret);
	free(key);
}

void world_s3_put(struct world_s3 *s3, const char *key, const void *bytes, size_t n, int64_t now_s)
{
	struct s3_stored now = {
		.key = must(strdup(key)), .n = n, .modified_s = now_s, .is_foreign = true};
	now.bytes = must(malloc(n + 1));
	memcpy(now.bytes, bytes, n);
	s3_sum(bytes, n, DIGEST_MD5 | DIGEST_CRC32C, &now.sums);
	s3_hex(now.sums.md5, 16, now.etag);
	now.kept = must(calloc(1, sizeof *now.kept));
	s3_store(s3, NULL, &now);
}

void world_s3_delete(struct world_s3 *s3, const char *key)
{
	bool found;
	const size_t i = place_of(s3, key, &found);
	if (!found)
		return;
	s3_overtake(s3, key);
	clear(&s3->objects[i]);
	memmove(s3->objects + i, s3->objects + i + 1, (--s3->n - i) * sizeof *s3->objects);
}

const char *world_s3_upload_at(const struct world_s3 *s3, size_t i, size_t *ret_parts)
{
	if (i >= s3->n_uploads)
		return NULL;
	*ret_parts = s3->uploads[i].n_parts;
	return s3->uploads[i].id;
}

void world_s3_make_anew(struct world_s3 *s3)
{
	remove_all(s3);
}
