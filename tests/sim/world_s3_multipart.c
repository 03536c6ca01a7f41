/* Implements the uploads in parts of world_s3.h. */
#include "base/clock.h"
#include "world_s3_struct.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_LEAST_BYTES (5U << 20)

static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void tell_step(
	const struct world_s3 *s3, const struct upload *upload, const char *what, unsigned part)
{
	const struct s3_upload_step step = {what, upload->key, upload->id, part};
	if (s3->witness.uploads)
		s3->witness.uploads(s3->witness.arg, &step);
}

static void free_upload(struct upload *upload)
{
	for (size_t i = 0; i < upload->n_parts; i++)
		free(upload->parts[i].bytes);
	free(upload->parts);
	free(upload->key);
	s3_free_kept(upload->kept, upload->n_kept);
}

void s3_free_uploads(struct world_s3 *s3)
{
	for (size_t i = 0; i < s3->n_uploads; i++)
		free_upload(&s3->uploads[i]);
	free(s3->uploads);
	s3->uploads = NULL;
	s3->n_uploads = 0;
}

static struct upload *find_upload(struct world_s3 *s3, const char *key, const char *id)
{
	for (size_t i = 0; i < s3->n_uploads; i++)
		if (strcmp(s3->uploads[i].id, id) == 0 && strcmp(s3->uploads[i].key, key) == 0)
			return &s3->uploads[i];
	return NULL;
}

void s3_overtake(struct world_s3 *s3, const char *key)
{
	for (size_t i = 0; i < s3->n_uploads; i++)
		if (strcmp(s3->uploads[i].key, key) == 0)
			s3->uploads[i].is_overtaken = true;
}

static void no_such_upload(struct wire_reply *ret)
{
	s3_refuse(ret, 404, "NoSuchUpload",
		"The specified upload does not exist. The upload ID may be invalid, or the upload may "
		"have been aborted or completed.");
}

static const char *type_of(const struct upload *upload)
{
	return upload->is_composite ? "COMPOSITE" : "FULL_OBJECT";
}

/* Whether the upload may have this checksum. AWS supports each in one or two types. */
static bool check_type(
	const struct world_s3 *s3, const char *algorithm, const char *type, struct wire_reply *ret)
{
	const enum checksum kind =
		algorithm ? checksum_named(algorithm, strlen(algorithm)) : CHECKSUMS;
	const bool is_known = kind < CHECKSUMS && checksum_kinds[kind].header;
	const bool is_whole = type && strcmp(type, "FULL_OBJECT") == 0;
	if (!s3->habits.keeps_checksums || (!algorithm && !type))
		return true;
	if (is_known && !(is_whole && !checksum_kinds[kind].combines) &&
		!(type && !is_whole && kind == CHECKSUM_CRC64NVME))
		return true;
	s3_refuse(ret, 400, "InvalidRequest", "This type of checksum cannot be used here");
	return false;
}

static void create(struct world_s3 *s3, const struct wire_request *request, const char *key,
	int64_t now_s, struct wire_reply *ret)
{
	const char *algorithm = wire_header(request, "x-amz-checksum-algorithm");
	const char *type = wire_header(request, "x-amz-checksum-type");
	if (!check_type(s3, algorithm, type, ret))
		return;
	s3->uploads = must(realloc(s3->uploads, (s3->n_uploads + 1) * sizeof *s3->uploads));
	struct upload *upload = &s3->uploads[s3->n_uploads++];
	*upload = (struct upload){
		.key = must(strdup(key)), .initiated_s = now_s, .writer = request->from};
	snprintf(upload->id, sizeof upload->id, "upload-%016" PRIx64, chance_next(&s3->chance));
	upload->kept = s3_kept_headers(request, &upload->n_kept);
	tell_step(s3, upload, "created", 0);
	if (algorithm && s3->habits.keeps_checksums) {
		const enum checksum kind = checksum_named(algorithm, strlen(algorithm));
		snprintf(upload->checksum_name, sizeof upload->checksum_name, "%s",
			checksum_kinds[kind].name);
		upload->is_composite =
			type ? strcmp(type, "COMPOSITE") == 0 : kind != CHECKSUM_CRC64NVME;
		wire_reply_header(ret, "x-amz-checksum-algorithm", algorithm);
		wire_reply_header(ret, "x-amz-checksum-type", type_of(upload));
	}
	ret->status = 200;
	text_addf(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<InitiateMultipartUploadResult><Bucket>%s"
		"</Bucket><UploadId>%s</UploadId></InitiateMultipartUploadResult>",
		s3->bucket, upload->id);
}

static void put_part(struct world_s3 *s3, const struct wire_request *request, struct upload *upload,
	unsigned number, struct wire_reply *ret)
{
	struct part part = {.number = number, .n = request->body_bytes};
	struct sums sums;
	enum checksum kind;
	char text[CHECKSUM_BASE64_MAX + 1], quoted[48];
	if (!s3_check_body(s3, request, &sums, &kind, text, ret))
		return;
	if (kind < CHECKSUMS && *upload->checksum_name &&
		strcmp(checksum_kinds[kind].name, upload->checksum_name) != 0) {
		s3_refuse(ret, 400, "InvalidRequest", "Checksum Type mismatch occurred");
		return;
	}
	part.bytes = must(malloc(part.n + 1));
	if (part.n)
		memcpy(part.bytes, request->body, part.n);
	memcpy(part.md5, sums.md5, 16);
	const struct s3_part_shown shown = {upload->id, number, part.md5};
	if (s3->witness.takes_part)
		s3->witness.takes_part(s3->witness.arg, request, &shown);
	if (s3->habits.etag_is_md5)
		s3_hex(sums.md5, 16, part.etag);
	else
		snprintf(part.etag, sizeof part.etag, "p%016" PRIx64, chance_next(&s3->chance));
	snprintf(part.checksum, sizeof part.checksum, "%s", text);
	size_t at = 0;
	while (at < upload->n_parts && upload->parts[at].number < number)
		at++;
	if (at < upload->n_parts && upload->parts[at].number == number) {
		free(upload->parts[at].bytes);
	} else {
		upload->parts =
			must(realloc(upload->parts, (upload->n_parts + 1) * sizeof *upload->parts));
		memmove(upload->parts + at + 1, upload->parts + at,
			(upload->n_parts - at) * sizeof *upload->parts);
		upload->n_parts++;
	}
	upload->parts[at] = part;
	tell_step(s3, upload, "part", number);
	snprintf(quoted, sizeof quoted, "\"%s\"", part.etag);
	wire_reply_header(ret, "etag", quoted);
	if (kind < CHECKSUMS)
		wire_reply_header(ret, checksum_kinds[kind].header, text);
	ret->status = 200;
}

static const char *element_of(const struct upload *upload)
{
	const enum checksum kind =
		checksum_named(upload->checksum_name, strlen(upload->checksum_name));
	return *upload->checksum_name && kind < CHECKSUMS ? checksum_kinds[kind].element : NULL;
}

/* Returns the number of entries on a page. `name` is the parameter by which a request limits it. */
static size_t page_of(
	const struct world_s3 *s3, const struct wire_request *request, const char *name)
{
	char *asked = wire_parameter(request, name);
	const size_t most = asked ? strtoul(asked, NULL, 10) : s3->habits.page;
	free(asked);
	return most ? most : 1000;
}

static void list_parts(struct world_s3 *s3, const struct wire_request *request,
	const struct upload *upload, struct wire_reply *ret)
{
	char *marker = wire_parameter(request, "part-number-marker");
	const unsigned long after = marker ? strtoul(marker, NULL, 10) : 0;
	const size_t most = page_of(s3, request, "max-parts");
	const char *element = element_of(upload);
	size_t told = 0, i = 0;
	unsigned last = 0;
	text_addf(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListPartsResult><UploadId>%s</UploadId>",
		upload->id);
	if (element)
		text_addf(&ret->body,
			"<ChecksumAlgorithm>%s</ChecksumAlgorithm><ChecksumType>%s</ChecksumType>",
			element + strlen("Checksum"), type_of(upload));
	for (; i < upload->n_parts && told < most; i++) {
		const struct part *part = &upload->parts[i];
		if (part->number <= after)
			continue;
		const struct s3_part_shown shown = {upload->id, part->number, part->md5};
		if (s3->witness.shows_part)
			s3->witness.shows_part(s3->witness.arg, request, &shown);
		text_addf(&ret->body,
			"<Part><PartNumber>%u</PartNumber><ETag>&quot;%s&quot;</ETag><Size>%zu</Size>",
			part->number, part->etag, part->n);
		if (element && *part->checksum)
			text_addf(&ret->body, "<%s>%s</%s>", element, part->checksum, element);
		text_add(&ret->body, "</Part>");
		last = part->number;
		told++;
	}
	if (i < upload->n_parts)
		text_addf(&ret->body,
			"<IsTruncated>true</IsTruncated><NextPartNumberMarker>%u</NextPartNumberMarker>",
			last);
	else
		text_add(&ret->body, "<IsTruncated>false</IsTruncated>");
	text_add(&ret->body, "</ListPartsResult>");
	ret->status = 200;
	free(marker);
}

/* Returns the fault of a part's checksum in a Complete, from `at` to `end`, or NULL. For a
 * composite checksum, Complete has to name the checksum of each part. */
static const char *fault_of_sum(
	const struct upload *upload, const struct part *part, const char *at, const char *end)
{
	const char *element = element_of(upload);
	struct text open = TEXT(64);
	if (!element)
		return NULL;
	text_addf(&open, "<%s>", element);
	const char *sum = strstr(at, text_string(&open));
	const size_t n = strlen(part->checksum);
	const bool is_there = sum && sum < end;
	const bool is_same = is_there && strncmp(sum + open.len, part->checksum, n) == 0 &&
			     sum[open.len + n] == '<';
	text_clear(&open);
	if (!is_there)
		return upload->is_composite ? "InvalidRequest" : NULL;
	return is_same ? NULL : "InvalidPart";
}

/* S3 accepts an etag with quotes, with XML-escaped quotes, and without any. */
static bool is_etag(const char *text, const char *etag)
{
	text += strncmp(text, "&quot;", 6) == 0 ? 6 : *text == '"';
	const size_t n = strlen(etag);
	return strncmp(text, etag, n) == 0 && text[n] && strchr("\"&<", text[n]);
}

/* Returns the parts that Complete names, in their order. If it names wrong parts, answers the
 * request and returns NULL. */
static const struct part **chosen_parts(const struct wire_request *request,
	const struct upload *upload, size_t *ret_n, struct wire_reply *ret)
{
	char *xml = must(strndup((const char *)request->body, request->body_bytes));
	const struct part **chosen = must(calloc(upload->n_parts + 1, sizeof *chosen));
	const char *why = NULL, *at = xml;
	size_t n = 0;
	while (!why && (at = strstr(at, "<Part>"))) {
		const char *end = strstr(at, "</Part>"), *number = strstr(at, "<PartNumber>");
		const char *etag = strstr(at, "<ETag>");
		const unsigned long wanted = number ? strtoul(number + 12, NULL, 10) : 0;
		size_t i = 0;
		while (i < upload->n_parts && upload->parts[i].number != wanted)
			i++;
		const struct part *part = i < upload->n_parts ? &upload->parts[i] : NULL;
		if (!end || !etag || !part || !is_etag(etag + strlen("<ETag>"), part->etag))
			why = "InvalidPart";
		else if (n && chosen[n - 1]->number >= part->number)
			why = "InvalidPartOrder";
		else if (n && chosen[n - 1]->n < PART_LEAST_BYTES)
			why = "EntityTooSmall";
		else if (!(why = fault_of_sum(upload, part, at, end)))
			chosen[n++] = part;
		at += 6;
	}
	free(xml);
	if (why || !n) {
		s3_refuse(ret, 400, why ? why : "MalformedXML", "The list of parts is not valid");
		free(chosen);
		return NULL;
	}
	*ret_n = n;
	return chosen;
}

/* Joins the bytes of all parts, and computes the etag and the checksum. */
static void join(struct world_s3 *s3, const struct upload *upload, const struct part **parts,
	size_t n, struct s3_stored *now)
{
	unsigned char *md5s = must(malloc(16 * n));
	struct sums sums;
	now->part_bytes = must(calloc(n, sizeof *now->part_bytes));
	now->n_parts = n;
	for (size_t i = 0; i < n; i++)
		now->n += parts[i]->n;
	now->bytes = must(malloc(now->n + 1));
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		memcpy(now->bytes + at, parts[i]->bytes, parts[i]->n);
		memcpy(md5s + 16 * i, parts[i]->md5, 16);
		at += now->part_bytes[i] = parts[i]->n;
	}
	s3_sum(md5s, 16 * n, DIGEST_MD5, &sums);
	free(md5s);
	if (s3->habits.etag_is_md5)
		s3_hex(sums.md5, 16, now->etag);
	else
		snprintf(now->etag, 17, "%016" PRIx64, chance_next(&s3->chance));
	snprintf(now->etag + strlen(now->etag), 24, "-%zu", n);
	const enum checksum kind =
		checksum_named(upload->checksum_name, strlen(upload->checksum_name));
	const bool has = *upload->checksum_name && kind < CHECKSUMS;
	s3_sum(now->bytes, now->n, DIGEST_MD5 | DIGEST_CRC32C | (has ? DIGEST_OF(kind) : 0),
		&now->sums);
	if (!has)
		return;
	snprintf(now->checksum_name, sizeof now->checksum_name, "%s", upload->checksum_name);
	if (!upload->is_composite) {
		checksum_to_base64(kind, sums_bytes(&now->sums, kind), now->checksum);
		return;
	}
	struct sums *each = must(calloc(n, sizeof *each));
	unsigned char composed[CHECKSUM_BYTES_MAX];
	for (size_t i = 0; i < n; i++)
		s3_sum(parts[i]->bytes, parts[i]->n, DIGEST_OF(kind), &each[i]);
	if (sums_compose(each, n, kind, composed))
		abort();
	free(each);
	checksum_to_base64(kind, composed, now->checksum);
	snprintf(now->checksum + strlen(now->checksum), 24, "-%zu", n);
}

static void tell_complete(const char *key, const char *etag, const struct s3_stored *now,
	const char *element, struct wire_reply *ret)
{
	ret->status = 200;
	text_add(&ret->body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			     "<CompleteMultipartUploadResult><Key>");
	wire_add_xml(&ret->body, key);
	text_addf(&ret->body, "</Key><ETag>&quot;%s&quot;</ETag>", etag);
	if (now && element && *now->checksum)
		text_addf(&ret->body, "<%s>%s</%s>", element, now->checksum, element);
	if (now && element)
		text_addf(&ret->body, "<ChecksumType>%s</ChecksumType>",
			strchr(now->checksum, '-') ? "COMPOSITE" : "FULL_OBJECT");
	text_add(&ret->body, "</CompleteMultipartUploadResult>");
}

static void forget_upload(struct world_s3 *s3, struct upload *upload)
{
	const size_t i = (size_t)(upload - s3->uploads);
	free_upload(upload);
	memmove(upload, upload + 1, (--s3->n_uploads - i) * sizeof *upload);
}

/* Answers a repeated Complete like the first one, as S3 does for a while. */
static bool complete_again(
	const struct world_s3 *s3, const char *key, const char *id, struct wire_reply *ret)
{
	for (size_t i = 0; i < s3->n_completed && !s3->habits.forgets_completed; i++)
		if (strcmp(s3->completed[i].id, id) == 0) {
			tell_complete(key, s3->completed[i].etag, NULL, NULL, ret);
			return true;
		}
	return false;
}

/* Checks the size and the checksum of the whole object against the request. */
static bool check_whole(const struct wire_request *request, const struct upload *upload,
	const struct s3_stored *now, struct wire_reply *ret)
{
	const char *size = wire_header(request, "x-amz-mp-object-size");
	const char *type = wire_header(request, "x-amz-checksum-type");
	if ((size && strtoull(size, NULL, 10) != now->n) ||
		(type && *upload->checksum_name && strcmp(type, type_of(upload)) != 0)) {
		s3_refuse(ret, 400, "InvalidRequest", "The size or the type is another one");
		return false;
	}
	for (unsigned kind = 0; kind < CHECKSUMS; kind++) {
		const char *header = checksum_kinds[kind].header;
		const char *told = header ? wire_header(request, header) : NULL;
		if (told && *upload->checksum_name && strcmp(told, now->checksum) != 0) {
			s3_refuse(ret, 400, "BadDigest", "The checksum did not match");
			return false;
		}
	}
	return true;
}

static void complete(struct world_s3 *s3, const struct wire_request *request, struct upload *upload,
	int64_t now_s, struct wire_reply *ret)
{
	struct s3_stored now = {.modified_s = now_s, .writer = request->from};
	size_t n;
	if (!s3_condition_holds(s3, request, world_s3_object(s3, upload->key), ret))
		return;
	if (s3->habits.conditions == S3_HONOURS && upload->is_overtaken &&
		(wire_header(request, "if-match") || wire_header(request, "if-none-match"))) {
		s3_refuse(ret, 409, "ConditionalRequestConflict",
			"The conditional request cannot succeed due to a conflicting operation");
		return;
	}
	const struct part **parts = chosen_parts(request, upload, &n, ret);
	if (!parts)
		return;
	join(s3, upload, parts, n, &now);
	free(parts);
	if (s3->habits.keeps_checksums && !check_whole(request, upload, &now, ret)) {
		free(now.bytes);
		free(now.part_bytes);
		return;
	}
	now.key = must(strdup(upload->key));
	now.kept = upload->kept;
	now.n_kept = upload->n_kept;
	tell_complete(now.key, now.etag, &now, element_of(upload), ret);
	upload->kept = NULL;
	upload->n_kept = 0;
	s3->completed = must(realloc(s3->completed, (s3->n_completed + 1) * sizeof *s3->completed));
	struct completed *done = &s3->completed[s3->n_completed++];
	snprintf(done->id, sizeof done->id, "%s", upload->id);
	snprintf(done->etag, sizeof done->etag, "%s", now.etag);
	tell_step(s3, upload, "completed", (unsigned)n);
	s3_store(s3, request, &now);
	if (*now.version_id)
		wire_reply_header(ret, "x-amz-version-id", now.version_id);
	forget_upload(s3, upload);
}

bool s3_answer_multipart(struct world_s3 *s3, const struct wire_request *request, const char *key,
	int64_t now_s, struct wire_reply *ret)
{
	char *uploads = wire_parameter(request, "uploads");
	char *id = wire_parameter(request, "uploadId");
	char *number = wire_parameter(request, "partNumber");
	const char method = *request->method; /* the first letter of GET, PUT, POST or DELETE */
	const bool is_post = strcmp(request->method, "POST") == 0;
	struct upload *upload = id ? find_upload(s3, key, id) : NULL;
	const bool is_ours = id || (uploads && is_post);
	if (uploads && is_post)
		create(s3, request, key, now_s, ret);
	else if (id && !upload && !(is_post && complete_again(s3, key, id, ret)))
		no_such_upload(ret);
	else if (upload && number && strcmp(request->method, "PUT") == 0)
		put_part(s3, request, upload, (unsigned)strtoul(number, NULL, 10), ret);
	else if (upload && is_post)
		complete(s3, request, upload, now_s, ret);
	else if (upload && method == 'G')
		list_parts(s3, request, upload, ret);
	else if (upload && method == 'D') {
		tell_step(s3, upload, "aborted", 0);
		forget_upload(s3, upload);
		ret->status = 204;
	}
	free(uploads);
	free(id);
	free(number);
	return is_ours;
}

/* Orders uploads by key, and those of one key by their beginning, as AWS lists them. */
static int compare_uploads(const void *a, const void *b)
{
	const struct upload *one = *(const struct upload *const *)a;
	const struct upload *other = *(const struct upload *const *)b;
	const int order = strcmp(one->key, other->key);
	return order ? order : (one > other) - (one < other);
}

static void tell_upload(struct text *body, const struct upload *upload)
{
	char iso[21];
	clock_format_iso(upload->initiated_s, iso);
	text_add(body, "<Upload><Key>");
	wire_add_xml(body, upload->key);
	text_addf(body, "</Key><UploadId>%s</UploadId><Initiated>%s</Initiated></Upload>",
		upload->id, iso);
}

static void tell_end(struct text *body, const struct upload *last, bool is_truncated)
{
	text_addf(body, "<IsTruncated>%s</IsTruncated>", is_truncated ? "true" : "false");
	if (is_truncated) {
		text_add(body, "<NextKeyMarker>");
		wire_add_xml(body, last->key);
		text_addf(body, "</NextKeyMarker><NextUploadIdMarker>%s</NextUploadIdMarker>",
			last->id);
	}
}

/* Lists the uploads after `key` and its upload `id`. Without an id, skips all uploads of the key.
 */
static void list_uploads(struct world_s3 *s3, const struct wire_request *request, const char *key,
	const char *id, struct wire_reply *ret)
{
	const size_t most = page_of(s3, request, "max-uploads");
	char *prefix = wire_parameter(request, "prefix");
	const struct upload **all = must(calloc(s3->n_uploads + 1, sizeof *all));
	const struct upload *marker = key && id ? find_upload(s3, key, id) : NULL, *last = NULL;
	size_t told = 0, i = 0;
	for (size_t k = 0; k < s3->n_uploads; k++)
		all[k] = &s3->uploads[k];
	qsort(all, s3->n_uploads, sizeof *all, compare_uploads);
	text_add(&ret->body,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListMultipartUploadsResult>");
	for (; i < s3->n_uploads; i++) {
		const int order = key ? strcmp(all[i]->key, key) : 1;
		if (prefix && strncmp(all[i]->key, prefix, strlen(prefix)) != 0)
			continue;
		if (order < 0 || (order == 0 && (!id || (marker && all[i] <= marker))))
			continue;
		if (told++ == most)
			break;
		last = all[i];
		tell_upload(&ret->body, last);
	}
	tell_end(&ret->body, last, i < s3->n_uploads);
	text_add(&ret->body, "</ListMultipartUploadsResult>");
	ret->status = 200;
	free(all);
	free(prefix);
}

void s3_answer_uploads(
	struct world_s3 *s3, const struct wire_request *request, struct wire_reply *ret)
{
	char *key = wire_parameter(request, "key-marker");
	char *id = wire_parameter(request, "upload-id-marker");
	bool is_of_another_key = false;
	for (size_t i = 0; i < s3->n_uploads && key && id; i++)
		if (strcmp(s3->uploads[i].id, id) == 0)
			is_of_another_key = strcmp(s3->uploads[i].key, key) != 0;
	if (is_of_another_key)
		s3_refuse(ret, 400, "InvalidArgument", "Invalid uploadId marker");
	else
		list_uploads(s3, request, key, id, ret);
	free(key);
	free(id);
}
