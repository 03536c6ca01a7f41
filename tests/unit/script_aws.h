/* Settings that lead to a scripted server, with credentials of their own. */
#pragma once
#include "aws/settings.h"
#include "http/http.h"
#include "script_server.h"

struct script_aws {
	struct script_server server;
	struct aws_settings settings;
	struct http_shared *http;
	struct problem problem; /* of the last call */
};

#define SCRIPT_REPLY(status, headers, body)                                                        \
	"HTTP/1.1 " status " X\r\n" headers "Connection: close\r\n\r\n" body

/* One attempt at each request, unless the test sets settings.attempts. */
static inline bool script_aws_start(
	struct script_aws *aws, const struct script_step *steps, size_t n)
{
	*aws = (struct script_aws){0};
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	const struct credentials_options credentials = {.profile = "default"};
	const struct http_options http = {0};
	if (!script_start(&aws->server, steps, n))
		return false;
	aws->settings = (struct aws_settings){.region = "us-east-1",
		.s3_endpoint = aws->server.url,
		.dynamodb_endpoint = aws->server.url,
		.attempts = 1,
		.request_timeout_ms = 5000};
	return CHECK_INT(credentials_chain_new(&credentials, &aws->settings.credentials), 0) &&
	       CHECK_INT(http_shared_new(&http, &aws->http), 0);
}

/* Likewise, with the given replies, which end with NULL. Each one ends its connection. */
static inline bool script_aws_reply(struct script_aws *aws, const char *const *replies)
{
	struct script_step steps[SCRIPT_STEPS_MAX];
	size_t n = 0;
	for (; replies[n]; n++)
		steps[n] = (struct script_step){.reply = replies[n], .close = true};
	return script_aws_start(aws, steps, n);
}

static inline void script_aws_end(struct script_aws *aws)
{
	http_shared_free(aws->http);
	credentials_chain_free(aws->settings.credentials);
	script_clear(&aws->server);
}

/* The value of a header as it was sent, or NULL. Valid until the next call. */
static inline const char *script_sent(const struct script_request *request, const char *name)
{
	static char value[600];
	char line[100];
	snprintf(line, sizeof line, "\r\n%s:", name);
	const char *at = request->head ? strcasestr(request->head, line) : NULL;
	if (!at)
		return NULL;
	at += strlen(line);
	at += strspn(at, " ");
	snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
	return value;
}

/* Whether the request begins with this method and target. A read has "x-once" behind that. */
static inline bool script_is_to(const struct script_request *request, const char *method_target)
{
	static const char once[] = "x-once=", end[] = " HTTP/1.1\r\n";
	const size_t n = strlen(method_target);
	bool same = request->head && strncmp(request->head, method_target, n) == 0;
	const char *at = same ? request->head + n : "";
	if ((*at == '?' || *at == '&') && strncmp(at + 1, once, strlen(once)) == 0)
		at += strcspn(at, " ");
	same = same && strncmp(at, end, strlen(end)) == 0;
	if (!same)
		fprintf(stderr, "\tgot %.*s\n",
			(int)strcspn(request->head ? request->head : "", "\r"),
			request->head ? request->head : "");
	return same;
}
