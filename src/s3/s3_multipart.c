/* The calls of uploads in parts: create, send a part, complete, abort. Listings of uploads and
 * parts are in s3_list.c. */
#include "s3/s3_reply.h"
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
		&request, conn, S3_CREATE_UPLOAD, "POST", create->target.key, &create->limits);
	s3_request_query(&request, "uploads", "");
	s3_request_checksum_type(&request, create->checksum);
	s3_request_meta(&request, create->target.key, &create->meta);
	s3_request_target(&request, &create->target);
	request.call.read_error = s3_reply_error_or_xml;
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (outcome == OUTCOME_OK) {
		const int error =
			s3_reply_create(text_string(&reply.body), reply.body.len, &ret->upload_id);
		ret->lacks_encryption = !s3_headers_encryption_is(create->target.headers, &reply);
		if (error)
			outcome = s3_not_understood(&request, error, ret_problem);
	}
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_upload_part(struct s3_conn *conn, const struct s3_part_put *put,
	struct s3_part *ret, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	char number[16];
	snprintf(number, sizeof number, "%u", put->part_number);
	s3_request_begin(&request, conn, S3_UPLOAD_PART, "PUT", put->target.key, &put->limits);
	s3_request_query(&request, "partNumber", number);
	s3_request_query(&request, "uploadId", put->upload_id);
	s3_request_body(&request, put->body, put->sums, put->checksum);
	s3_request_target(&request, &put->target);
	enum outcome outcome =
		s3_outcome_of_upload(s3_request_perform(&request, &reply, ret_problem));
	if (outcome == OUTCOME_OK) {
		*ret = (struct s3_part){.part_number = put->part_number, .size = put->body->bytes};
		s3_read_proof(&reply, ret->etag, &ret->sum);
		s3_learn_proof(&request, put->sums, put->checksum, &reply, ret->etag, &ret->sum);
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
	s3_request_begin(&request, conn, S3_COMPLETE_UPLOAD, "POST", complete->target.key,
		&complete->limits);
	s3_request_query(&request, "uploadId", complete->upload_id);
	add_part_list(&conn->body, complete);
	request.call.body =
		(struct http_body){.bytes = conn->body.len, .memory = text_string(&conn->body)};
	request.call.payload_hash = NULL;
	request.call.read_error = s3_reply_error_or_xml;
	s3_request_header(&request, "content-type", "application/xml");
	s3_request_condition(&request, &complete->condition);
	s3_request_target(&request, &complete->target);
	if (checksum_kinds[complete->checksum].combines)
		s3_request_checksum(&request, complete->whole, complete->checksum);
	s3_request_checksum_type(&request, complete->checksum);
	s3_request_headerf(&request, "x-amz-mp-object-size", "%" PRIu64, complete->whole->bytes);
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	if (!complete->condition.if_match) /* else it may be the object that is not there */
		outcome = s3_outcome_of_upload(outcome);
	s3_learn_refusal(
		conn->s3, S3_COMPLETE_CONDITION, &complete->condition, outcome, reply.status);
	if (outcome == OUTCOME_OK) {
		struct s3_object object = {.size = complete->whole->bytes,
			.etag_is_opaque = s3_reply_etag_is_opaque(conn->s3, &reply)};
		int error = s3_reply_complete(text_string(&reply.body), reply.body.len, &object);
		s3_copy_header(
			&reply, "x-amz-version-id", object.version_id, sizeof(object.version_id));
		if (error < 0)
			outcome = s3_not_understood(&request, error, ret_problem);
		else
			*ret = object;
	}
	http_reply_clear(&reply);
	return outcome;
}

enum outcome s3_abort_upload(struct s3_conn *conn, const char *key, const char *upload_id,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_ABORT_UPLOAD, "DELETE", key, limits);
	s3_request_query(&request, "uploadId", upload_id);
	return s3_outcome_of_upload(s3_request_read(&request, NULL, NULL, ret_problem));
}
