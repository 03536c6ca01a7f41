#include "s3/s3_identity.h"
#include "aws/xml_document.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Source: s3api/controllers/service.py of OpenStack Swift, which knows no creation dates. */
#define SWIFT_CREATED "2009-02-03T16:45:09.000Z"

/* A page of AWS's holds what begins with the bucket's name; other servers list all buckets. */
#define LISTED_MAX_BYTES (8U << 20)
#define PAGE_BUCKETS     "100"

/* The text of a child element; "" if there is none or it does not fit. */
static void copy_text(const xmlNode *parent, const char *name, char *ret, size_t size)
{
	if (snprintf(ret, size, "%s", xml_child_text(parent, name)) >= (int)size)
		ret[0] = '\0';
}

static const xmlNode *bucket_named(const xmlNode *root, const char *bucket)
{
	const xmlNode *buckets = xml_child(root, "Buckets");
	const xmlNode *node = buckets ? buckets->children : NULL;
	while (node && strcmp(xml_child_text(node, "Name"), bucket) != 0)
		node = node->next;
	return node;
}

/* These two leave *ret as it is where a reply shows nothing. They return 0 or -ENOMEM. */
static int read_listed(const char *xml, size_t n, const char *bucket, struct s3_identity *ret)
{
	xmlDoc *document;
	int error = xml_document_read(xml, n, &document);
	if (error)
		return error == -ENOMEM ? error : 0;
	const xmlNode *root = xmlDocGetRootElement(document);
	const xmlNode *listed = bucket_named(root, bucket);
	if (listed) {
		copy_text(listed, "CreationDate", ret->created, sizeof ret->created);
		copy_text(xml_child(root, "Owner"), "ID", ret->owner, sizeof ret->owner);
	}
	if (strcmp(ret->created, SWIFT_CREATED) == 0)
		ret->created[0] = '\0';
	xmlFreeDoc(document);
	return 0;
}

static int read_owner(const char *xml, size_t n, struct s3_identity *ret)
{
	xmlDoc *document;
	int error = xml_document_read(xml, n, &document);
	if (error)
		return error == -ENOMEM ? error : 0;
	copy_text(xml_child(xmlDocGetRootElement(document), "Owner"), "ID", ret->owner,
		sizeof ret->owner);
	xmlFreeDoc(document);
	return 0;
}

static enum outcome out_of_memory(struct problem *ret_problem)
{
	problem_set(ret_problem, "out of memory");
	return OUTCOME_LOCAL;
}

enum outcome s3_identify_by_listing(struct s3_conn *conn, const struct call_limits *limits,
	struct s3_identity *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(&request, conn, S3_LIST_BUCKETS, "GET", NULL, limits);
	s3_request_query(&request, "max-buckets", PAGE_BUCKETS);
	s3_request_query(&request, "prefix", conn->s3->bucket);
	request.call.is_above_buckets = true;
	request.call.reply_max_bytes = LISTED_MAX_BYTES;
	*ret = (struct s3_identity){0};
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK &&
		read_listed(text_string(&reply.body), reply.body.len, conn->s3->bucket, ret))
		outcome = out_of_memory(ret_problem);
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_identify_by_acl(struct s3_conn *conn, const struct call_limits *limits,
	struct s3_identity *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(&request, conn, S3_GET_BUCKET_ACL, "GET", NULL, limits);
	s3_request_query(&request, "acl", "");
	*ret = (struct s3_identity){0};
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK && read_owner(text_string(&reply.body), reply.body.len, ret))
		outcome = out_of_memory(ret_problem);
	http_reply_clear(&reply);
	return outcome;
}
