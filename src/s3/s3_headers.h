/* How an object is to be stored, as request headers: settings by the names they have on the command
 * line ("storage-class", "metadata", …), each checked as it is set, then prepared once for any
 * number of requests of any thread. Source: PutObject and CreateMultipartUpload (Amazon S3 API
 * Reference). */
#pragma once
#include "aws/call.h"

#define S3_KEY_MD5_CHARS 24

/* Settings as they are collected, and the headers they were prepared to. May hold a key. */
struct s3_headers;
int s3_headers_new(struct s3_headers **ret); /* 0 or -ENOMEM */
/* Overwrites what it frees. NULL is fine. */
void s3_headers_free(struct s3_headers *headers);

/* Sets one; what was set before under this name is replaced, but "tag" and "metadata" only for the
 * same key, and "grant" adds. "" takes back all of that name. 0, -ENOMEM, or -EINVAL with a
 * sentence for an unknown name or a wrong value. */
int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem);
/* Once, after the last set. 0, -ENOMEM, or -EINVAL with a sentence where settings contradict each
 * other or S3's limits. */
int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem);

/* Which requests a header goes with. */
enum s3_header_scope {
	S3_HEADERS_STORE,  /* PutObject, CreateMultipartUpload: all */
	S3_HEADERS_ACCESS, /* whatever reads or writes what is encrypted with the caller's key: that
			      key */
};
/* How many, and the array, borrowed from the prepared headers. NULL headers: none. */
size_t s3_headers_of(const struct s3_headers *headers, enum s3_header_scope scope,
	const struct call_header **ret);
/* Whether a content type was set; whether a key of the caller's own was (SSE-C). */
bool s3_headers_have_type(const struct s3_headers *headers);
bool s3_headers_have_key(const struct s3_headers *headers);
/* What a setting of this name was set to, for people to read: NULL if it was not, "" if its value
 * is secret or there are several. NULL headers: NULL. Borrowed. */
const char *s3_headers_value(const struct s3_headers *headers, const char *name);
/* Whether a reply confirms the encryption that was asked for, if any was. `sse`, `key_md5`: what it
 * says of the server's encryption and of the caller's key; NULL if nothing. NULL headers: yes. */
bool s3_headers_encryption_is(
	const struct s3_headers *headers, const char *sse, const char *key_md5);
/* The base64 of that key's MD5, as S3 tells it too; "" without one. NULL headers: "". Borrowed. */
const char *s3_headers_key_md5(const struct s3_headers *headers);
