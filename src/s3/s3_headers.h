/* The settings of objects, as request headers. Settings have the names of the command line's
 * options ("storage-class", "metadata", …). Each is checked when it is set. Then all are prepared
 * once for any number of requests, of any thread. The source is PutObject and CreateMultipartUpload
 * (Amazon S3 API Reference). */
#pragma once
#include "aws/call.h"

#define S3_KEY_MD5_CHARS 24

/* Collected settings of objects, and the request headers made of them. It may hold a
 * customer-provided key (SSE-C). */
struct s3_headers;
int s3_headers_new(struct s3_headers **ret); /* 0 or -ENOMEM */
/* Frees the headers, and overwrites the values first. NULL is ignored. */
void s3_headers_free(struct s3_headers *headers);

/* Sets one setting, in place of its earlier value. "tag" and "metadata" replace only the value of
 * the same key, and "header" that of the same header: its value is "NAME: VALUE", of a header that
 * PutObject knows and no other setting has. The value "" removes all values of the setting. Returns
 * 0, -ENOMEM, or -EINVAL with a sentence for an unknown name or an invalid value. */
int s3_headers_set(struct s3_headers *headers, const char *name, const char *value,
	struct problem *ret_problem);
/* The value of a setting if that is the header Content-Encoding, and otherwise NULL. Borrowed. */
const char *s3_headers_content_encoding(const char *name, const char *value);
/* Makes the headers, once, after the last setting. 0, -ENOMEM, or -EINVAL with a sentence where
 * settings contradict each other or exceed S3's limits. */
int s3_headers_prepare(struct s3_headers *headers, struct problem *ret_problem);

/* Returns the number of headers for a request, and sets *ret to them, borrowed. If `stores` is
 * true, the request stores an object (PutObject or CreateMultipartUpload) and has all headers.
 * Otherwise it has only those of a customer-provided key (SSE-C). NULL headers: none. */
size_t s3_headers_of(const struct s3_headers *headers, bool stores, const struct call_header **ret);
/* Returns the value of a setting, for people. NULL if it was not set or `headers` is NULL, and ""
 * if it is secret or has several values. Borrowed. */
const char *s3_headers_value(const struct s3_headers *headers, const char *name);
/* Whether a reply confirms the requested encryption, if there was one. NULL headers: yes. */
bool s3_headers_encryption_is_confirmed(
	const struct s3_headers *headers, const struct http_reply *reply);
/* Returns the MD5 of a customer-provided key (SSE-C) in base64, as replies have it too, or ""
 * without such a key. NULL headers: "". Borrowed. */
const char *s3_headers_key_md5(const struct s3_headers *headers);

/* Sets of settings, to check those that a server has kept: some servers accept unknown settings and
 * ignore them. A set is a mask, where the bit 1 << i stands for the setting i. */
#define S3_SETTINGS    24
#define S3_SETTING_TAG 2
#define S3_STANDARD    "STANDARD" /* the storage class that replies do not name */
/* Two settings of all requests of a run. */
#define S3_PAYER "header x-amz-request-payer"
#define S3_OWNER "header x-amz-expected-bucket-owner"
const char *s3_setting_name(unsigned i); /* "tag", "header Expires", …; static */
/* Returns the set of the settings that were set and that a HEAD can show. NULL headers: none. */
unsigned s3_headers_checkable(const struct s3_headers *headers);
/* Returns the set of those settings that are missing or different in the reply to a HEAD. `tags` is
 * the number of tags that the object has. */
unsigned s3_headers_missing(
	const struct s3_headers *headers, const struct http_reply *reply, size_t tags);
