/* One request on the simulated wire, parsed, and the answer to it. The servers world_s3.h and
 * world_dynamodb.h know nothing else of a client. */
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

/* Owns all that it points to, but `from`. */
struct wire_request {
	char *method;
	char *host;
	char *path;  /* as sent, before the ? */
	char *query; /* as sent, after it; or "" */
	struct wire_header headers[WIRE_HEADERS_MAX];
	size_t n_headers;
	unsigned char *body;
	size_t body_bytes;
	const void *from; /* who sent it, for whoever looks on; may be NULL */
	uint64_t number;  /* of the world's requests; a duplicate has the same */
	uint64_t sent_ns; /* world time */
	bool is_late;     /* a duplicate that nobody waits for */
};
/* Splits the URL; headers are "Name: value" lines. */
struct wire_request *wire_request_new(const char *method, const char *url,
	const char *const *headers, size_t n_headers, unsigned char *body, size_t body_bytes);
void wire_request_free(struct wire_request *request);
/* The value of a header by its lower-case name, or NULL. */
const char *wire_header(const struct wire_request *request, const char *name);
/* The decoded value of a parameter of the query, or NULL if it is not there. The caller frees it.
 */
char *wire_parameter(const struct wire_request *request, const char *name);
/* Undoes %XX. The caller frees it. */
char *wire_decode(const char *text, size_t n);

struct wire_reply {
	int status;
	struct text headers; /* "name\0value\0" each */
	size_t n_headers;
	struct text body;
	uint64_t content_length; /* of the answer to HEAD, which has no body */
};
void wire_reply_init(struct wire_reply *reply);
void wire_reply_clear(struct wire_reply *reply);
void wire_reply_header(struct wire_reply *reply, const char *name, const char *value);
/* Text as XML has it, with & and < escaped. */
void wire_add_xml(struct text *to, const char *value);
