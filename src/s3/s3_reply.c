#include "s3/s3_reply.h"
#include "s3/s3_xml.h"
#include <errno.h>
#include <libxml/parser.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
