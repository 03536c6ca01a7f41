/* S3's XML replies, read without I/O: errors, uploads, and the listings of parts, uploads and
 * objects. */
#include "s3/s3_reply.h"
#include "base/clock.h"
#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a child's whole number, which is at most `most`. 0 or -EBADMSG. */
static int s3_child_number(const xmlNode *parent, const char *name, uint64_t most, uint64_t *ret)
{
	const char *text = xml_child_text(parent, name);
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || value > most)
		return -EBADMSG;
	*ret = value;
	return 0;
}

/* Copies the text, or makes it "" if it does not fit, since half a value would be a wrong one. */
static void s3_set_text(char *ret, size_t size, const char *text)
{
	if (snprintf(ret, size, "%s", text) >= (int)size)
		ret[0] = '\0';
}

/* Reads the checksum among the children. */
static void s3_child_sum(const xmlNode *parent, struct s3_sum *ret)
{
	*ret = (struct s3_sum){0};
	for (unsigned kind = 0; kind < CHECKSUMS && !ret->text[0]; kind++) {
		ret->kind = (enum checksum)kind;
		if (checksum_kinds[kind].element)
			s3_set_text(ret->text, sizeof ret->text,
				xml_child_text(parent, checksum_kinds[kind].element));
	}
}

static bool is_of_shape(const xmlNode *root, const struct s3_shape *shape)
{
	return xml_is(root, shape->root) ||
	       (!xml_is(root, "Error") && xml_child(root, shape->child));
}

/* Parses a reply. The caller frees *ret_document; *ret is its root. 0, -EBADMSG or -ENOMEM. */
static int s3_read_root(const char *xml, size_t n, const struct s3_shape *shape,
	xmlDoc **ret_document, const xmlNode **ret)
{
	xmlDoc *document;
	int error = xml_document_read(xml, n, &document);
	if (error < 0)
		return error;
	const xmlNode *root = xmlDocGetRootElement(document);
	if (!is_of_shape(root, shape)) {
		xmlFreeDoc(document);
		return -EBADMSG;
	}
	*ret_document = document;
	*ret = root;
	return 0;
}

void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1])
{
	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	size_t n = strlen(etag);
	if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
		etag++;
		n -= 2;
	}
	n = n > S3_ETAG_MAX ? 0 : n;
	memcpy(ret, etag, n);
	ret[n] = '\0';
}

static void set_region(char ret_region[static 64], const char *region)
{
	if (region && !region[strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		s3_set_text(ret_region, 64, region);
}

static int read_error(const struct http_reply *reply, bool xml_expected, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	ret_code[0] = ret_message[0] = ret_region[0] = '\0';
	set_region(ret_region, http_reply_header(reply, "x-amz-bucket-region"));
	bool must = xml_expected && reply->status >= 200 && reply->status < 300;
	xmlDoc *document;
	int error = xml_document_read(text_string(&reply->body), reply->body.len, &document);
	if (error < 0)
		return must || error == -ENOMEM ? error : 0;
	const xmlNode *root = xmlDocGetRootElement(document);
	bool is_error = xml_is(root, "Error");
	if (is_error) {
		s3_set_text(ret_code, 64, xml_child_text(root, "Code"));
		snprintf(ret_message, 256, "%s", xml_child_text(root, "Message"));
		if (!ret_region[0])
			set_region(ret_region, xml_child_text(root, "Region"));
	}
	xmlFreeDoc(document);
	return is_error;
}

int s3_reply_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	return read_error(reply, false, ret_code, ret_message, ret_region);
}

int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	return read_error(reply, true, ret_code, ret_message, ret_region);
}

int s3_reply_create(const char *xml, size_t n, char **ret_upload_id)
{
	xmlDoc *document;
	const xmlNode *root;
	static const struct s3_shape shape = {"InitiateMultipartUploadResult", "UploadId"};
	int error = s3_read_root(xml, n, &shape, &document, &root);
	if (error < 0)
		return error;
	const char *id = xml_child_text(root, "UploadId");
	char *copy = *id ? strdup(id) : NULL;
	error = copy ? 0 : *id ? -ENOMEM : -EBADMSG;
	if (copy)
		*ret_upload_id = copy;
	xmlFreeDoc(document);
	return error;
}

int s3_reply_complete(const char *xml, size_t n, struct s3_object *ret)
{
	xmlDoc *document;
	const xmlNode *root;
	static const struct s3_shape shape = {"CompleteMultipartUploadResult", "ETag"};
	int error = s3_read_root(xml, n, &shape, &document, &root);
	if (error < 0)
		return error;
	s3_strip_etag(xml_child_text(root, "ETag"), ret->etag);
	s3_child_sum(root, &ret->sum);
	xmlFreeDoc(document);
	return 0;
}

/* A rule for tagged objects or sizes is none for uploads; its prefix is its own, or its filter's.
 */
static unsigned abort_days_of(const xmlNode *rule, const char *prefix)
{
	const xmlNode *filter = xml_child(rule, "Filter"), *abort = NULL;
	const char *begins = xml_child_text(filter ? filter : rule, "Prefix");
	uint64_t days = 0;
	bool is_all = !filter || !filter->children || xml_child(filter, "Prefix");
	abort = xml_child(rule, "AbortIncompleteMultipartUpload");
	if (!abort || !is_all || strcmp(xml_child_text(rule, "Status"), "Enabled") != 0 ||
		strncmp(prefix, begins, strlen(begins)) != 0 ||
		s3_child_number(abort, "DaysAfterInitiation", 100000, &days) < 0)
		return 0;
	return (unsigned)days;
}

int s3_reply_abort_days(const char *xml, size_t n, const char *prefix, unsigned *ret_days)
{
	xmlDoc *document;
	unsigned fewest = 0;
	int error = xml_document_read(xml, n, &document);
	if (error < 0)
		return error;
	const xmlNode *root = xmlDocGetRootElement(document);
	error = xml_is(root, "LifecycleConfiguration") ? 0 : -EBADMSG;
	for (const xmlNode *node = root->children; error == 0 && node; node = node->next) {
		unsigned days = xml_is(node, "Rule") ? abort_days_of(node, prefix) : 0;
		if (days && (!fewest || days < fewest))
			fewest = days;
	}
	xmlFreeDoc(document);
	if (error == 0)
		*ret_days = fewest;
	return error;
}

/* A copy with encoding-type=url undone ('+' is a space there); NULL if out of memory. */
static char *decoded(const char *s, bool is_encoded)
{
	char *copy = strdup(s), *to = copy;
	if (!copy || !is_encoded)
		return copy;
	for (const char *from = copy; *from; from++) {
		int high = *from == '%' ? OPENSSL_hexchar2int((unsigned char)from[1]) : -1;
		int low = high >= 0 ? OPENSSL_hexchar2int((unsigned char)from[2]) : -1;
		if (low >= 0 && high + low > 0) {
			*to++ = (char)(high * 16 + low);
			from += 2;
		} else {
			*to++ = *from == '+' ? ' ' : *from;
		}
	}
	*to = '\0';
	return copy;
}

/* Who is given what a page lists. */
struct visitor {
	union {
		int (*part)(void *arg, const struct s3_part *part);
		int (*upload)(void *arg, const struct s3_upload *upload);
		int (*object)(void *arg, const struct s3_listed *object);
	};
	void *arg;
};

/* A page of a listing: what it is made of, and what reads one of those. */
struct listing {
	struct s3_shape shape;
	const char *element;
	bool has_keys; /* each of them has one */
	/* 0, 1 if the visitor has ended it, or -EBADMSG. */
	int (*read)(const xmlNode *node, const char *key, const struct visitor *visitor);
};

static int read_element(const xmlNode *node, const struct listing *listing, bool is_encoded,
	const struct visitor *visitor)
{
	if (!listing->has_keys)
		return listing->read(node, NULL, visitor);
	if (!xml_child(node, "Key"))
		return -EBADMSG;
	char *key = decoded(xml_child_text(node, "Key"), is_encoded);
	const int r = key ? listing->read(node, key, visitor) : -ENOMEM;
	free(key);
	return r;
}

/* *ret_next is the marker that the reply names for the next page, or NULL where that begins behind
 * the last element. */
static int read_listing(const char *xml, size_t n, const struct listing *listing,
	const struct visitor *visitor, bool *ret_more, uint64_t *ret_next)
{
	xmlDoc *document;
	const xmlNode *root;
	int error = s3_read_root(xml, n, &listing->shape, &document, &root);
	if (error < 0)
		return error;
	const bool is_encoded = strcmp(xml_child_text(root, "EncodingType"), "url") == 0;
	const bool is_truncated = strcmp(xml_child_text(root, "IsTruncated"), "true") == 0;
	size_t count = 0;
	for (const xmlNode *node = root->children; node && !error; node = node->next)
		if (xml_is(node, listing->element)) {
			error = read_element(node, listing, is_encoded, visitor);
			count++;
		}
	if (!error && is_truncated && ret_next)
		error = s3_child_number(root, "NextPartNumberMarker", 10000, ret_next);
	else if (!error && is_truncated && count == 0)
		error = -EBADMSG;
	if (!error)
		*ret_more = is_truncated;
	xmlFreeDoc(document);
	return error;
}

static int read_part(const xmlNode *node, const char *key, const struct visitor *visitor)
{
	struct s3_part part = {0};
	uint64_t number;
	if (s3_child_number(node, "PartNumber", 10000, &number) < 0 || number == 0 ||
		s3_child_number(node, "Size", UINT64_MAX, &part.size) < 0)
		return -EBADMSG;
	part.part_number = (unsigned)number;
	s3_strip_etag(xml_child_text(node, "ETag"), part.etag);
	s3_child_sum(node, &part.sum);
	return visitor->part(visitor->arg, &part) != 0;
}

int s3_reply_parts(const char *xml, size_t n, int (*each)(void *arg, const struct s3_part *part),
	void *arg, unsigned *ret_next)
{
	static const struct listing listing = {
		{"ListPartsResult", "UploadId"}, "Part", false, read_part};
	bool has_more;
	uint64_t next = 0;
	const int r = read_listing(
		xml, n, &listing, &(struct visitor){.part = each, .arg = arg}, &has_more, &next);
	if (!r)
		*ret_next = (unsigned)next;
	return r;
}

static int read_upload(const xmlNode *node, const char *key, const struct visitor *visitor)
{
	const struct s3_upload upload = {.key = key,
		.upload_id = xml_child_text(node, "UploadId"),
		.initiated_s = clock_parse_iso(xml_child_text(node, "Initiated"))};
	if (!*upload.upload_id || upload.initiated_s < 0)
		return -EBADMSG;
	return visitor->upload(visitor->arg, &upload) != 0;
}

int s3_reply_uploads(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_upload *upload), void *arg, bool *ret_more)
{
	static const struct listing listing = {
		{"ListMultipartUploadsResult", "IsTruncated"}, "Upload", true, read_upload};
	return read_listing(
		xml, n, &listing, &(struct visitor){.upload = each, .arg = arg}, ret_more, NULL);
}

static int read_object(const xmlNode *node, const char *key, const struct visitor *visitor)
{
	struct s3_listed object = {
		.key = key, .modified_s = clock_parse_iso(xml_child_text(node, "LastModified"))};
	if (s3_child_number(node, "Size", UINT64_MAX, &object.size) < 0)
		return -EBADMSG;
	s3_strip_etag(xml_child_text(node, "ETag"), object.etag);
	return visitor->object(visitor->arg, &object) != 0;
}

int s3_reply_objects(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_listed *object), void *arg, bool *ret_more)
{
	static const struct listing listing = {
		{"ListBucketResult", "IsTruncated"}, "Contents", true, read_object};
	return read_listing(
		xml, n, &listing, &(struct visitor){.object = each, .arg = arg}, ret_more, NULL);
}
