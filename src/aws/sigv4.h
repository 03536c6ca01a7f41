/* AWS Signature Version 4, pure. Source: "Create a signed AWS API request" (IAM User Guide) and
 * "Authenticating Requests: Using the Authorization Header" (Amazon S3 API Reference). */
#pragma once
#include "aws/credentials/credentials.h"
#include "base/checksum.h"
#include "base/text.h"
#include <openssl/evp.h>
#include <stddef.h>

#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

/* The signing key of one day, region and service, and contexts that are reused between requests.
 * Zero it to start, and wipe it at the end. Not thread-safe. */
struct sigv4_cache {
	char scope[128];
	char secret_id[132];   /* the secret that the key was derived from */
	EVP_MAC_CTX *mac;      /* HMAC-SHA256 with that key */
	struct digest sha256;  /* made once, since OpenSSL takes long to find an algorithm */
	struct text canonical; /* kept for its memory */
};
void sigv4_cache_wipe(struct sigv4_cache *cache);

/* The SHA-256 of n bytes in hex; 0 or -ENOMEM. */
int sigv4_sha256(struct sigv4_cache *cache, const void *bytes, size_t n, char ret_hex[static 65]);

/* A header of a request. */
struct call_header {
	const char *name, *value; /* the name is in lower case */
};

struct sigv4_request {
	const char *method;
	const char *path;  /* as sent, URI-encoded once */
	const char *query; /* as sent: encoded, sorted by name then value, "k=" for a bare key; ""
			      for none */
	/* All signed headers, including host and x-amz-*; in any order. */
	const struct call_header *headers;
	size_t n_headers;             /* at most SIGV4_HEADERS_MAX */
	const char *payload_hash;     /* 64 hex digits or SIGV4_UNSIGNED */
	const char *region, *service; /* service: "s3", "s3-object-lambda", "dynamodb" or "sts" */
	const char *date;             /* as x-amz-date has it */
};
#define SIGV4_HEADERS_MAX 96

/* Adds the value of the Authorization header to ret_authorization. The request must be sent with
 * exactly these headers. The caller adds those that a service requires, such as x-amz-date
 * (clock_format_amz), x-amz-content-sha256 and x-amz-security-token. Returns 0, -E2BIG for too many
 * headers, -EINVAL for a region or service that is too long, or -ENOMEM, -EMSGSIZE. */
int sigv4_sign(struct sigv4_cache *cache, const struct credentials *credentials,
	const struct sigv4_request *request, struct text *ret_authorization);
