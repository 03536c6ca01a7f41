/* How an object is to be stored, as request headers. Settings have the names of the command line's
 * options ("storage-class", "metadata", …). Each is checked when it is set. Then all are prepared
 * once for any number of requests, of any thread. The source is PutObject and CreateMultipartUpload
 * (Amazon S3 API Reference). */
#pragma once
#include "aws/call.h"

#define S3_KEY_MD5_CHARS 24

/* Settings as they are collected, and the headers that were made of them. It may hold a key. */
struct s3_headers;
int s3_headers_new(struct s3_headers **ret); /* 0 or -ENOMEM */
/* Overwrites what it frees. NULL is ignored. */
void s3_headers_free(struct s3_headers *headers);

/* Sets one. It replaces what was set before under this name. "tag" and "metadata" replace only the
 * same key, and "grant" adds. "" takes back everything of that name. 0, -ENOMEM, or -EINVAL with a
 * sentence for an unknown name or an invalid value. */
int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem);
/* Makes the headers, once, after the last setting. 0, -ENOMEM, or -EINVAL with a sentence where
 * settings contradict each other or exceed S3's limits. */
int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem);

/* Which requests a header goes with. */
enum s3_header_scope {
	/* PutObject and CreateMultipartUpload, which carry all of them. */
	S3_HEADERS_STORE,
	/* Requests that read or write what is encrypted with the caller's key, which carry that
	   key. */
	S3_HEADERS_ACCESS,
};
/* The headers of a scope and their number, borrowed from the prepared headers. NULL headers: none.
 */
size_t s3_headers_of(const struct s3_headers *headers, enum s3_header_scope scope,
	const struct call_header **ret);
/* Whether a key of the caller's own was set (SSE-C). */
bool s3_headers_have_key(const struct s3_headers *headers);
/* What a setting was set to, for people to read. NULL if it was not set, and "" if its value is
 * secret or there are several. NULL headers: NULL. Borrowed. */
const char *s3_headers_value(const struct s3_headers *headers, const char *name);
/* Whether a reply confirms the encryption that was asked for, if any was. NULL headers: yes. */
bool s3_headers_encryption_is(const struct s3_headers *headers, const struct http_reply *reply);
/* The MD5 of that key in base64, as replies have it too; "" without a key. NULL headers: "".
 * Borrowed. */
const char *s3_headers_key_md5(const struct s3_headers *headers);
