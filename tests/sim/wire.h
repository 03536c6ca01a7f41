/* A parsed request on the simulated network, and its reply. The servers world_s3.h and
 * world_dynamodb.h know nothing else about a client. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_HEADERS_MAX 120

struct wire_header {
	char *name; /* in lower case */
	char *value;
};

/* Owns everything that it points to, except `from`. */
struct wire_request {
	char *method;
	char *host;
	char *path;  /* as sent, before the ? */
	char *query; /* as sent, after it; or "" */
	struct wire_header headers[WIRE_HEADERS_MAX];
	size_t n_headers;
	unsigned char *body;
	size_t body_bytes;
	const void *from; /* the sender, for the judge; may be NULL */
	uint64_t number;  /* counts the world's requests; a copy has the same */
	uint64_t sent_ns; /* world time */
	bool is_late;     /* a late copy, whose reply is dropped */
};
/* Parses the URL and the headers, which are "Name: value" lines. Takes ownership of the body. */
struct wire_request *wire_request_new(const char *method, const char *url,
	const char *const *headers, size_t n_headers, unsigned char *body, size_t body_bytes);
void wire_request_free(struct wire_request *request);
/* Returns the value of a header by its lower-case name, or NULL. */
const char *wire_header(const struct wire_request *request, const char *name);
/* Returns the decoded value of a query parameter, or NULL if it is missing. The caller frees it. */
char *wire_parameter(const struct wire_request *request, const char *name);
/* Decodes %XX. The caller frees the result. */
char *wire_decode(const char *text, size_t n);

struct wire_reply {
	int status;
	struct text headers; /* "name\0value\0" each */
	size_t n_headers;
	struct text body;
	uint64_t content_length; /* for the reply to HEAD, which has no body */
};
void wire_reply_init(struct wire_reply *reply);
void wire_reply_clear(struct wire_reply *reply);
void wire_reply_header(struct wire_reply *reply, const char *name, const char *value);
/* Adds text to XML, with & and < escaped. */
void wire_add_xml(struct text *to, const char *value);
