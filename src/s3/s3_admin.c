#include "s3/s3_admin.h"
#include "s3/s3_reply.h"
#include "s3/s3_request.h"
#include <string.h>

enum outcome s3_delete_object(struct s3_conn *conn, const char *key,
	const struct call_limits *limits, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	s3_request_begin(&request, conn, S3_DELETE_OBJECT, "DELETE", key, limits);
	enum outcome outcome = s3_request_perform(&request, &reply, ret_problem);
	http_reply_clear(&reply);
	return outcome == OUTCOME_ABSENT ? OUTCOME_OK : outcome;
}

enum outcome s3_get_abort_days(struct s3_conn *conn, const char *prefix,
	const struct call_limits *limits, unsigned *ret_days, struct problem *ret_problem)
{
	struct s3_request request;
	struct http_reply reply = {0};
	struct problem problem = {0};
	s3_request_begin(&request, conn, S3_GET_LIFECYCLE, "GET", NULL, limits);
	s3_request_query(&request, "lifecycle", "");
	request.call.read_error = s3_reply_error_or_xml;
	enum outcome outcome = s3_request_perform(&request, &reply, &problem);
	if (outcome == OUTCOME_OK) {
		int error = s3_reply_abort_days(
			text_string(&reply.body), reply.body.len, prefix, ret_days);
		if (error < 0)
			outcome = s3_not_understood(&request, error, &problem);
	} else if (strcmp(problem.code, "NoSuchLifecycleConfiguration") == 0) {
		*ret_days = 0;
		outcome = OUTCOME_OK;
	}
	http_reply_clear(&reply);
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = problem;
	return outcome;
}
