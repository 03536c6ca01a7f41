/* Replies that list something. */
#include "base/clock.h"
#include "s3/s3_reply.h"
#include "s3/s3_xml.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_part(const xmlNode *node, struct s3_part *ret)
{
	struct s3_part part = {0};
	uint64_t number;
	if (s3_child_number(node, "PartNumber", 10000, &number) < 0 || number == 0 ||
		s3_child_number(node, "Size", UINT64_MAX, &part.size) < 0)
		return -EBADMSG;
	part.part_number = (unsigned)number;
	s3_strip_etag(xml_child_text(node, "ETag"), part.etag);
	s3_child_sum(node, &part.sum);
	*ret = part;
	return 0;
}

static bool is_truncated(const xmlNode *root)
{
	return strcmp(xml_child_text(root, "IsTruncated"), "true") == 0;
}

int s3_reply_parts(const char *xml, size_t n, int (*each)(void *arg, const struct s3_part *part),
	void *arg, unsigned *ret_next)
{
	xmlDoc *document;
	const xmlNode *root;
	static const struct s3_shape shape = {"ListPartsResult", "UploadId"};
	int error = s3_read_root(xml, n, &shape, &document, &root);
	if (error < 0)
		return error;
	struct s3_part part;
	for (const xmlNode *node = root->children; node && !error; node = node->next) {
		if (!xml_is(node, "Part"))
			continue;
		error = read_part(node, &part);
		if (!error)
			error = each(arg, &part);
	}
	uint64_t next = 0;
	if (!error && is_truncated(root))
		error = s3_child_number(root, "NextPartNumberMarker", 10000, &next);
	if (!error)
		*ret_next = (unsigned)next;
	xmlFreeDoc(document);
	return error;
}

static int hex_value(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A copy with encoding-type=url undone ('+' is a space there); NULL if out of memory. */
static char *decoded(const char *s, bool is_encoded)
{
	char *copy = strdup(s), *to = copy;
	if (!copy || !is_encoded)
		return copy;
	for (const char *from = copy; *from; from++) {
		int high = *from == '%' ? hex_value(from[1]) : -1;
		int low = high >= 0 ? hex_value(from[2]) : -1;
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

/* A page of a listing: what it is made of, and who takes one of those. */
struct listing {
	struct s3_shape shape;
	const char *element;
	int (*visit)(const xmlNode *node, bool is_encoded, const void *to);
};

static int read_listing(
	const char *xml, size_t n, const struct listing *listing, const void *to, bool *ret_more)
{
	xmlDoc *document;
	const xmlNode *root;
	int error = s3_read_root(xml, n, &listing->shape, &document, &root);
	if (error < 0)
		return error;
	const bool is_encoded = strcmp(xml_child_text(root, "EncodingType"), "url") == 0;
	size_t count = 0;
	for (const xmlNode *node = root->children; node && !error; node = node->next) {
		if (!xml_is(node, listing->element))
			continue;
		error = listing->visit(node, is_encoded, to);
		count++;
	}
	if (!error && is_truncated(root) && count == 0)
		error = -EBADMSG;
	if (!error)
		*ret_more = is_truncated(root);
	xmlFreeDoc(document);
	return error;
}

struct uploads_to {
	int (*each)(void *arg, const struct s3_upload *upload);
	void *arg;
};

static int visit_upload(const xmlNode *node, bool is_encoded, const void *to)
{
	const struct uploads_to *uploads = to;
	const char *id = xml_child_text(node, "UploadId");
	int64_t initiated_s = clock_parse_iso(xml_child_text(node, "Initiated"));
	if (!*id || !xml_child(node, "Key") || initiated_s < 0)
		return -EBADMSG;
	char *key = decoded(xml_child_text(node, "Key"), is_encoded);
	if (!key)
		return -ENOMEM;
	int error = uploads->each(uploads->arg,
		&(struct s3_upload){.key = key, .upload_id = id, .initiated_s = initiated_s});
	free(key);
	return error;
}

int s3_reply_uploads(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_upload *upload), void *arg, bool *ret_more)
{
	static const struct listing listing = {
		{"ListMultipartUploadsResult", "IsTruncated"}, "Upload", visit_upload};
	return read_listing(xml, n, &listing, &(struct uploads_to){each, arg}, ret_more);
}

struct objects_to {
	int (*each)(void *arg, const struct s3_listed *object);
	void *arg;
};

static int visit_object(const xmlNode *node, bool is_encoded, const void *to)
{
	const struct objects_to *objects = to;
	struct s3_listed object = {0};
	if (!xml_child(node, "Key") || s3_child_number(node, "Size", UINT64_MAX, &object.size) < 0)
		return -EBADMSG;
	char *key = decoded(xml_child_text(node, "Key"), is_encoded);
	if (!key)
		return -ENOMEM;
	object.key = key;
	s3_strip_etag(xml_child_text(node, "ETag"), object.etag);
	object.modified_s = clock_parse_iso(xml_child_text(node, "LastModified"));
	const int error = objects->each(objects->arg, &object);
	free(key);
	return error;
}

int s3_reply_objects(const char *xml, size_t n,
	int (*each)(void *arg, const struct s3_listed *object), void *arg, bool *ret_more)
{
	static const struct listing listing = {
		{"ListBucketResult", "IsTruncated"}, "Contents", visit_object};
	return read_listing(xml, n, &listing, &(struct objects_to){each, arg}, ret_more);
}
