/* The S3 calls of multipart uploads: create, upload a part, list, complete, abort. */
#include "s3/s3_request.h"
#include <errno.h>
#include <inttypes.h>
#include <libxml/entities.h>
#include <stdio.h>

enum outcome s3_create_upload(struct s3_conn *conn, const struct s3_create *create,
	struct s3_created *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(
		&request, conn, S3_CREATE_UPLOAD, "POST", &create->target, &create->limits);
	s3_request_query(&request, "uploads", "");
	s3_request_checksum_type(&request, create->checksum);
	s3_request_meta(&request, create->target.key, &create->meta);
	const enum outcome outcome = s3_request_perform_and_read(
		&request, &s3_reply_create, &ret->upload_id, &reply, ret_problem);
	if (outcome == OUTCOME_OK)
		ret->lacks_encryption =
			!s3_headers_encryption_is_confirmed(create->target.headers, &reply);
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_upload_part(struct s3_conn *conn, const struct s3_put *put, struct s3_part *ret,
	struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	char number[16];
	snprintf(number, sizeof number, "%u", put->part_number);
	s3_request_begin(&request, conn, S3_UPLOAD_PART, "PUT", &put->target, &put->limits);
	s3_request_query(&request, "partNumber", number);
	s3_request_upload_id(&request, put->upload_id);
	s3_request_body(&request, put);
	const enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		*ret = (struct s3_part){.part_number = put->part_number, .size = put->body->bytes};
		s3_read_sum_and_learn(&request, put, &reply, ret->etag, &ret->sum);
		ret->etag_is_opaque = s3_reply_etag_is_opaque(conn->s3, &reply);
	}
	http_reply_clear(&reply);
	return outcome;
}

static void add_xml_text(struct text *ret, const char *s)
{
	xmlChar *escaped = xmlEncodeSpecialChars(NULL, (const xmlChar *)s);
	if (!escaped)
		ret->error = -ENOMEM;
	text_add(ret, escaped ? (const char *)escaped : "");
	xmlFree(escaped);
}

/* Writes the body of CompleteMultipartUpload. A part's checksum is included if it is of the kind
 * with which the upload was created. */
static void add_part_list(struct text *ret, const struct s3_complete *complete)
{
	text_add(ret, "<CompleteMultipartUpload "
		      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	for (size_t i = 0; i < complete->n_parts; i++) {
		const struct s3_part *part = &complete->parts[i];
		const char *element = checksum_kinds[complete->checksum].element;
		text_add(ret, "<Part><ETag>\"");
		add_xml_text(ret, part->etag);
		text_add(ret, "\"</ETag>");
		if (element && part->sum.text[0] && part->sum.kind == complete->checksum) {
			text_addf(ret, "<%s>", element);
			add_xml_text(ret, part->sum.text);
			text_addf(ret, "</%s>", element);
		}
		text_addf(ret, "<PartNumber>%u</PartNumber></Part>", part->part_number);
	}
	text_add(ret, "</CompleteMultipartUpload>");
}

enum outcome s3_complete_upload(struct s3_conn *conn, const struct s3_complete *complete,
	struct s3_object *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	struct s3_object object = {.size = complete->whole->bytes};
	s3_request_begin(
		&request, conn, S3_COMPLETE_UPLOAD, "POST", &complete->target, &complete->limits);
	s3_request_upload_id(&request, complete->upload_id);
	add_part_list(&conn->body, complete);
	request.call.body =
		(struct http_body){.bytes = conn->body.len, .memory = text_string(&conn->body)};
	request.call.payload_hash = NULL; /* so it is computed of the body */
	s3_request_header(&request, "content-type", "application/xml");
	s3_request_condition(&request, &complete->condition);
	if (checksum_kinds[complete->checksum].combines)
		s3_request_checksum(&request, complete->whole, complete->checksum);
	s3_request_checksum_type(&request, complete->checksum);
	s3_request_headerf(&request, "x-amz-mp-object-size", "%" PRIu64, complete->whole->bytes);
	const enum outcome outcome = s3_request_perform_and_read(
		&request, &s3_reply_complete, &object, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		*ret = object;
		ret->etag_is_opaque = s3_reply_etag_is_opaque(conn->s3, &reply);
		s3_copy_header(&reply, "x-amz-version-id", ret->version_id, sizeof ret->version_id);
	}
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_abort_upload(struct s3_conn *conn, const char *key, const char *upload_id,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	const struct s3_target target = {.key = key};
	s3_request_begin(&request, conn, S3_ABORT_UPLOAD, "DELETE", &target, limits);
	s3_request_upload_id(&request, upload_id);
	return s3_request_send(&request, ret_problem);
}

enum outcome s3_list_parts(struct s3_conn *conn, const struct s3_target *target,
	const char *upload_id, const struct call_limits *limits,
	int (*each)(void *arg, const struct s3_part *part), void *arg, struct problem *ret_problem)
{
	struct s3_page page = {.part = each, .arg = arg};
	enum outcome outcome;
	do {
		struct s3_request request;
		char number[16];
		snprintf(number, sizeof number, "%u", page.next_part);
		s3_request_begin(&request, conn, S3_LIST_PARTS, "GET", target, limits);
		if (page.next_part)
			s3_request_query(&request, "part-number-marker", number);
		s3_request_upload_id(&request, upload_id);
		outcome = s3_request_read(&request, &s3_reply_parts, &page, ret_problem);
	} while (outcome == OUTCOME_OK && page.next_part); /* 0: that was the last page */
	return outcome;
}

enum outcome s3_list_uploads(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, int (*each)(void *arg, const struct s3_upload *upload),
	void *arg, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_LIST_UPLOADS, "GET", NULL, limits);
	/* Requests encoded keys only at AWS, since in this listing Ceph encodes them without
	 * declaring it in its reply. */
	if (conn->s3->settings->s3_is_aws)
		s3_request_query(&request, "encoding-type", "url");
	if (prefix && *prefix)
		s3_request_query(&request, "prefix", prefix);
	s3_request_query(&request, "uploads", "");
	return s3_request_read(&request, &s3_reply_uploads,
		&(struct s3_page){.upload = each, .arg = arg}, ret_problem);
}
