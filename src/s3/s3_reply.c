/* S3's replies, read without I/O: the headers of an object, and the XML of errors, uploads, and the
 * listings of parts, uploads and objects. */
#include "s3/s3_reply.h"
#include "base/clock.h"
#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text, of which NULL counts as "". The copy is "" if the text does not fit, since half a
 * value would be a wrong value. */
static void copy_if_fits(char *ret, size_t size, const char *text)
{
	if (snprintf(ret, size, "%s", text ? text : "") >= (int)size)
		ret[0] = '\0';
}

void s3_copy_header(const struct http_reply *reply, const char *name, char *ret, size_t size)
{
	copy_if_fits(ret, size, http_reply_header(reply, name));
}

void s3_read_sum(const struct http_reply *reply, char ret_etag[static S3_ETAG_MAX + 1],
	struct s3_sum *ret_sum)
{
	s3_strip_etag(http_reply_header(reply, "etag"), ret_etag);
	*ret_sum = (struct s3_sum){0};
	for (enum checksum kind = 0; kind < CHECKSUMS && !ret_sum->text[0]; kind++) {
		ret_sum->kind = kind;
		if (checksum_kinds[kind].header)
			s3_copy_header(reply, checksum_kinds[kind].header, ret_sum->text,
				sizeof ret_sum->text);
	}
}

bool s3_reply_is_encrypted(const struct http_reply *reply)
{
	const char *sse = http_reply_header(reply, "x-amz-server-side-encryption");
	return (sse && strncmp(sse, "aws:kms", 7) == 0) ||
	       http_reply_header(reply, "x-amz-server-side-encryption-customer-algorithm");
}

/* Reads the checksum among the children of an element, or the first one in the order of enum
 * checksum. If there is none, the text is "". */
static void read_child_sum(const xmlNode *parent, struct s3_sum *ret)
{
	*ret = (struct s3_sum){0};
	for (enum checksum kind = 0; kind < CHECKSUMS && !ret->text[0]; kind++) {
		ret->kind = kind;
		if (checksum_kinds[kind].element)
			copy_if_fits(ret->text, sizeof ret->text,
				xml_child_text(parent, checksum_kinds[kind].element));
	}
}

int s3_reply_read(const struct s3_document *document, const char *xml, size_t n, void *arg)
{
	xmlDoc *parsed;
	int error = xml_document_read(xml, n, &parsed);
	if (error < 0)
		return error;
	const xmlNode *root = xmlDocGetRootElement(parsed);
	/* A root of another name is accepted by its child; see struct s3_document. */
	const bool has_child =
		document->child && !xml_is(root, "Error") && xml_child(root, document->child);
	error = (xml_is(root, document->name) || has_child) ? document->read(arg, root) : -EBADMSG;
	xmlFreeDoc(parsed);
	return error;
}

void s3_strip_etag(const char *etag, char ret[static S3_ETAG_MAX + 1])
{
	if (!etag)
		etag = "";
	if (strncmp(etag, "W/", 2) == 0)
		etag += 2;
	size_t n = strlen(etag);
	if (n >= 2 && etag[0] == '"' && etag[n - 1] == '"') {
		etag++;
		n -= 2;
	}
	n = n > S3_ETAG_MAX ? 0 : n; /* half an etag would be a wrong etag */
	memcpy(ret, etag, n);
	ret[n] = '\0';
}

/* Sets ret_region, or leaves it as it is if the reply's region is missing or cannot be a region. */
static void set_region(char ret_region[static 64], const char *region)
{
	if (region && !region[strspn(region, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		copy_if_fits(ret_region, 64, region);
}

int s3_reply_error_or_xml(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	ret_code[0] = ret_message[0] = ret_region[0] = '\0';
	set_region(ret_region, http_reply_header(reply, "x-amz-bucket-region"));
	/* The body of a refusal may be anything, such as a proxy's page, since its status says
	 * enough. A success counts only if its XML can be read, and may even be an <Error>. */
	const bool must_be_xml = reply->status >= 200 && reply->status < 300;
	xmlDoc *document;
	int error = xml_document_read(text_string(&reply->body), reply->body.len, &document);
	if (error < 0)
		return (must_be_xml || error == -ENOMEM) ? error : 0;
	const xmlNode *root = xmlDocGetRootElement(document);
	bool is_error = xml_is(root, "Error");
	if (is_error) {
		copy_if_fits(ret_code, 64, xml_child_text(root, "Code"));
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
	const int r = s3_reply_error_or_xml(reply, ret_code, ret_message, ret_region);
	return r == -EBADMSG ? 0 : r;
}

static int read_created(void *ret_upload_id, const xmlNode *root)
{
	const char *id = xml_child_text(root, "UploadId");
	char **ret = ret_upload_id;
	if (!*id)
		return -EBADMSG;
	*ret = strdup(id);
	return *ret ? 0 : -ENOMEM;
}

const struct s3_document s3_reply_create = {
	.name = "InitiateMultipartUploadResult", .child = "UploadId", .read = read_created};

static int read_completed(void *arg, const xmlNode *root)
{
	struct s3_object *ret = arg;
	s3_strip_etag(xml_child_text(root, "ETag"), ret->etag);
	read_child_sum(root, &ret->sum);
	return 0;
}

const struct s3_document s3_reply_complete = {
	.name = "CompleteMultipartUploadResult", .child = "ETag", .read = read_completed};

#define DAYS_MAX 100000 /* a rule that waits for longer counts as one that never aborts */

/* Returns the number of days after which a rule aborts uploads of all keys below this prefix, or 0
 * if it never does. The rule has a prefix of its own, in its filter or in the rule itself. A rule
 * that is limited to tags or sizes does not apply to uploads. */
static unsigned abort_days_of(const xmlNode *rule, const char *prefix)
{
	const xmlNode *filter = xml_child(rule, "Filter");
	const xmlNode *abort = xml_child(rule, "AbortIncompleteMultipartUpload");
	const char *rule_prefix = xml_child_text(filter ? filter : rule, "Prefix");
	uint64_t days = 0;
	/* A filter by tags or sizes has no Prefix as a child of its own. */
	const bool is_by_prefix = !filter || !filter->children || xml_child(filter, "Prefix");
	const bool covers_prefix = strncmp(prefix, rule_prefix, strlen(rule_prefix)) == 0;
	const bool is_enabled = strcmp(xml_child_text(rule, "Status"), "Enabled") == 0;
	if (!abort || !is_enabled || !is_by_prefix || !covers_prefix)
		return 0;
	if (!decimal_read(xml_child_text(abort, "DaysAfterInitiation"), DAYS_MAX, &days))
		return 0;
	return (unsigned)days;
}

static int read_rules(void *arg, const xmlNode *root)
{
	struct s3_abort_days *ret = arg;
	ret->days = 0;
	for (const xmlNode *node = root->children; node; node = node->next) {
		unsigned days = xml_is(node, "Rule") ? abort_days_of(node, ret->prefix) : 0;
		if (days && (!ret->days || days < ret->days))
			ret->days = days;
	}
	return 0;
}

const struct s3_document s3_reply_abort_days = {
	.name = "LifecycleConfiguration", .read = read_rules};

static int read_tags(void *ret, const xmlNode *root)
{
	const xmlNode *set = xml_child(root, "TagSet");
	size_t count = 0;
	if (!set)
		return -EBADMSG;
	for (const xmlNode *tag = set->children; tag; tag = tag->next) {
		const xmlNode *key = xml_is(tag, "Tag") ? xml_child(tag, "Key") : NULL;
		count += key && key->children; /* some servers send an empty <Tag> for no tags */
	}
	*(size_t *)ret = count;
	return 0;
}

const struct s3_document s3_reply_tags = {
	.name = "Tagging", .child = "TagSet", .read = read_tags, .may_be_other = true};

/* Returns a copy of s. If is_encoded, the copy is decoded from encoding-type=url, in which '+' is a
 * space. NULL if out of memory. */
static char *copy_decoded(const char *s, bool is_encoded)
{
	char *copy = strdup(s), *to = copy;
	if (!copy || !is_encoded)
		return copy;
	for (const char *from = copy; *from; from++) {
		/* Both are -1 unless this is %XX. */
		const int high = *from == '%' ? OPENSSL_hexchar2int((unsigned char)from[1]) : -1;
		const int low = high >= 0 ? OPENSSL_hexchar2int((unsigned char)from[2]) : -1;
		const bool is_nul = high == 0 && low == 0; /* %00 stays: it would end the key */
		if (low >= 0 && !is_nul) {
			*to++ = (char)(high * 16 + low);
			from += 2;
		} else {
			*to++ = *from == '+' ? ' ' : *from;
		}
	}
	*to = '\0';
	return copy;
}

/* Each of the next three functions gives one element of a listing to the page's function. Returns
 * 0, 1 if that function ends the reading, or -EBADMSG. */
static int read_part(const xmlNode *node, const struct s3_page *page)
{
	struct s3_part part = {0};
	uint64_t number; /* from 1 to 10,000 */
	if (!decimal_read(xml_child_text(node, "PartNumber"), 10000, &number) || number == 0 ||
		!decimal_read(xml_child_text(node, "Size"), UINT64_MAX, &part.size))
		return -EBADMSG;
	part.part_number = (unsigned)number;
	s3_strip_etag(xml_child_text(node, "ETag"), part.etag);
	read_child_sum(node, &part.sum);
	return page->part(page->arg, &part) != 0;
}

static int read_upload(const xmlNode *node, const char *key, const struct s3_page *page)
{
	const struct s3_upload upload = {.key = key,
		.upload_id = xml_child_text(node, "UploadId"),
		.initiated_s = clock_parse_iso(xml_child_text(node, "Initiated"))};
	if (!*upload.upload_id || upload.initiated_s < 0)
		return -EBADMSG;
	return page->upload(page->arg, &upload) != 0;
}

static int read_object(const xmlNode *node, const char *key, const struct s3_page *page)
{
	struct s3_listed object = {
		.key = key, .modified_s = clock_parse_iso(xml_child_text(node, "LastModified"))};
	if (!decimal_read(xml_child_text(node, "Size"), UINT64_MAX, &object.size))
		return -EBADMSG;
	s3_strip_etag(xml_child_text(node, "ETag"), object.etag);
	return page->object(page->arg, &object) != 0;
}

/* Gives one element of a listing to the page's function. Returns 0, 1 if that function ends the
 * reading, or -errno. */
static int read_element(const xmlNode *node, bool is_encoded, const struct s3_page *page)
{
	if (page->part)
		return read_part(node, page);
	if (!xml_child(node, "Key"))
		return -EBADMSG;
	char *key = copy_decoded(xml_child_text(node, "Key"), is_encoded);
	const int r = !key           ? -ENOMEM
		      : page->upload ? read_upload(node, key, page)
				     : read_object(node, key, page);
	free(key);
	return r;
}

/* Gives each element of the listing to the page's function, and finds out if there is another page.
 * Returns 0, 1 if that function ends the reading, or -errno. */
static int read_page(void *arg, const xmlNode *root)
{
	struct s3_page *page = arg;
	const char *element = page->part ? "Part" : page->upload ? "Upload" : "Contents";
	uint64_t next = 0; /* the part-number-marker of the next page, if this is one of parts */
	size_t count = 0;
	int r = 0;
	const bool is_encoded = strcmp(xml_child_text(root, "EncodingType"), "url") == 0;
	const bool is_truncated = strcmp(xml_child_text(root, "IsTruncated"), "true") == 0;
	for (const xmlNode *node = root->children; node && !r; node = node->next)
		if (xml_is(node, element)) {
			r = read_element(node, is_encoded, page);
			count++;
		}
	if (r)
		return r;
	/* A page that is not the last one must continue the listing, or that would never end: at a
	 * higher part number, or after its last key. */
	const char *marker = xml_child_text(root, "NextPartNumberMarker");
	const bool continues =
		page->part ? (decimal_read(marker, 10000, &next) && next > page->next_part)
			   : count > 0;
	if (is_truncated && !continues)
		return -EBADMSG;
	page->has_more = is_truncated;
	page->next_part = is_truncated ? (unsigned)next : 0;
	return 0;
}

#define LIST_MAX_BYTES (8 << 20) /* 1,000 rows with keys of 1,024 bytes, each byte as %XX */

const struct s3_document s3_reply_parts = {
	"ListPartsResult", "UploadId", read_page, LIST_MAX_BYTES};
const struct s3_document s3_reply_uploads = {
	"ListMultipartUploadsResult", "IsTruncated", read_page, LIST_MAX_BYTES};
const struct s3_document s3_reply_objects = {
	"ListBucketResult", "IsTruncated", read_page, LIST_MAX_BYTES};
