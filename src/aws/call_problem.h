/* A refusal of the cloud as a sentence with its remedy. Internal to call.c. */
#pragma once
#include "aws/call.h"

/* What a reply that is not OK said; strings as they came. */
struct refusal {
	const struct http_reply *reply;
	const char *operation;               /* the request's name */
	const char *code, *message, *region; /* each perhaps "" */
	bool is_s3;
	bool body_is_unreadable;
};
void call_explain(const struct refusal *refusal, struct problem *ret_problem);
