/* Turns a reply that refuses a request into a sentence for people. */
#pragma once
#include "aws/outcome.h"
#include "base/problem.h"
#include "http/http.h"
#include <stdbool.h>

/* A reply whose outcome is not OK. All is borrowed for the call. */
struct refusal {
	enum outcome outcome;
	bool is_s3; /* otherwise it is DynamoDB */
	const char *method, *url;
	const char *request; /* the name of the request, such as PutObject */
	const struct http_reply *reply;
	const char *code, *message, *region; /* as the reply names them, or "" */
	bool body_is_unreadable;             /* as in struct attempt */
};

/* Sets the sentence, which begins with the cause and ends with the remedy, and the status, code and
 * request id. */
void refusal_explain(const struct refusal *refusal, struct problem *ret_problem);
