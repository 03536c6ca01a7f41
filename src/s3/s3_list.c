/* The calls that read what is stored: listings of objects, of uploads and of their parts, and
 * bytes of an object. */
#include "s3/s3.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A page of 1,000 rows with keys of 1,024 bytes, each byte as %XX. */
#define LIST_REPLY_MAX_BYTES (8 << 20)

static int read_page(void *page, const struct http_reply *reply)
{
	return s3_reply_page(text_string(&reply->body), reply->body.len, page);
}

/* Performs a request for a page, and reads it. */
static enum outcome list_page(
	struct s3_request *request, struct s3_page *page, struct problem *ret_problem)
{
	request->call.read_error = s3_reply_error_or_xml;
	request->call.reply_max_bytes = LIST_REPLY_MAX_BYTES;
	return s3_request_read(request, read_page, page, ret_problem);
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
		s3_request_begin(&request, conn, S3_LIST_PARTS, "GET", target->key, limits);
		if (page.next_part)
			s3_request_query(&request, "part-number-marker", number);
		s3_request_query(&request, "uploadId", upload_id);
		s3_request_target(&request, target);
		outcome = s3_outcome_of_upload(list_page(&request, &page, ret_problem));
	} while (outcome == OUTCOME_OK && page.next_part);
	return outcome;
}

enum outcome s3_list_uploads(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, int (*each)(void *arg, const struct s3_upload *upload),
	void *arg, struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_LIST_UPLOADS, "GET", NULL, limits);
	/* Elsewhere than at AWS it is not asked for: Ceph encodes without saying so. */
	if (conn->s3->settings->s3_is_aws)
		s3_request_query(&request, "encoding-type", "url");
	if (prefix && *prefix)
		s3_request_query(&request, "prefix", prefix);
	s3_request_query(&request, "uploads", "");
	return list_page(&request, &(struct s3_page){.upload = each, .arg = arg}, ret_problem);
}

enum outcome s3_list_objects(struct s3_conn *conn, const struct s3_listing *listing,
	const struct call_limits *limits, bool *ret_more, struct problem *ret_problem)
{
	struct s3_page page = {.object = listing->each, .arg = listing->arg};
	struct s3_request request;
	s3_request_begin(&request, conn, S3_LIST_OBJECTS, "GET", NULL, limits);
	s3_request_query(&request, "encoding-type", "url");
	s3_request_query(&request, "list-type", "2");
	if (*listing->prefix)
		s3_request_query(&request, "prefix", listing->prefix);
	if (*listing->after)
		s3_request_query(&request, "start-after", listing->after);
	const enum outcome outcome = list_page(&request, &page, ret_problem);
	if (outcome == OUTCOME_OK)
		*ret_more = page.has_more;
	return outcome;
}

/* Bytes that are asked for are no XML, whatever they look like. */
static int read_error(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	if (reply->status < 300) {
		ret_code[0] = ret_message[0] = ret_region[0] = '\0';
		return 0;
	}
	return s3_reply_error(reply, ret_code, ret_message, ret_region);
}

enum outcome s3_get_range(struct s3_conn *conn, const struct s3_target *target, uint64_t offset,
	size_t n, const struct call_limits *limits, struct http_reply *ret,
	char ret_etag[static S3_ETAG_MAX + 1], struct problem *ret_problem)
{
	struct s3_request request;
	s3_request_begin(&request, conn, S3_GET_OBJECT, "GET", target->key, limits);
	s3_request_version(&request, target);
	s3_request_headerf(&request, "range", "bytes=%" PRIu64 "-%" PRIu64, offset, offset + n - 1);
	s3_request_target(&request, target);
	request.call.read_error = read_error;
	request.call.reply_max_bytes = n > (1 << 20) ? n : 1 << 20;
	/* A body that grows step by step leaves as much freed memory behind in each thread. */
	ret->body.max = request.call.reply_max_bytes;
	text_reset(&ret->body);
	text_reserve(&ret->body, n);
	const enum outcome outcome = s3_request_perform(&request, ret, ret_problem);
	if (outcome != OUTCOME_OK)
		return outcome;
	const char *etag = http_reply_header(ret, "etag");
	s3_strip_etag(etag ? etag : "", ret_etag);
	if (ret->body.len == n && (ret->status == 206 || offset == 0))
		return OUTCOME_OK;
	problem_set(ret_problem,
		"S3 sent %zu bytes where %zu from byte %" PRIu64 " on were asked for",
		ret->body.len, n, offset);
	return OUTCOME_LOST;
}
