#include "s3/s3.h"

static int stop_at_first(void *arg, const struct s3_upload *upload)
{
	return 1;
}

bool s3_ask_why(struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	struct problem why = {0};
	const enum outcome o = s3_list_uploads(conn, "", limits, stop_at_first, NULL, &why);
	if (o == OUTCOME_SETUP)
		*ret_problem = why;
	return o == OUTCOME_SETUP;
}

enum outcome s3_look_for_bucket(
	struct s3_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	const enum outcome o = s3_head_bucket(conn, limits, ret_problem);
	const bool lacks_reason =
		o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID;
	return lacks_reason && s3_ask_why(conn, limits, ret_problem) ? OUTCOME_SETUP : o;
}
