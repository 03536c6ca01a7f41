/* Requests of the providers: small, unsigned or signed by them, with a few tries. */
#pragma once
#include "aws/credentials/credentials_provider.h"

struct credentials_request {
	const char *method, *url;
	const char *const *headers; /* "Name: value" */
	size_t n_headers;
	const struct text *body; /* or NULL */
	uint64_t timeout_ms;     /* of each attempt */
	unsigned attempts;
	bool no_proxy;
};

/* 0: *ret is a reply of whatever status, the last one if all attempts were answered with 429,
 * 5xx or what STS has for them. Else http_perform's -errno (a timeout is -ETIMEDOUT), with a
 * sentence. Clear *ret with credentials_reply_clear in any case. */
int credentials_http(struct credentials_loader *loader, const struct credentials_request *request,
	struct http_reply *ret, struct problem *ret_problem);
/* How far the clock of who answered is ahead of ours, by the reply's Date; 0: less than minutes, or
 * it has none. */
int64_t credentials_clock_offset_s(const struct http_reply *reply);
/* As http_reply_clear, but overwrites the body. */
void credentials_reply_clear(struct http_reply *reply);
