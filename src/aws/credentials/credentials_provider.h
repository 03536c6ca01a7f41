/* Between the chain (credentials.c) and its providers. */
#pragma once
#include "aws/credentials/credentials.h"
#include "base/text.h"
#include "http/http.h"
#include <jansson.h>
#include <stdatomic.h>

/* What the providers share. Used by one thread at a time, but for `stopped`. */
struct credentials_loader {
	struct credentials_options options; /* borrowed strings; its profile is never NULL */
	struct http_shared *shared;         /* both made by the first request */
	struct http *http;
	atomic_bool stopped; /* end the load that is under way: nobody wants it any more */
};

/* A provider. Returns 0 and fills *ret, or -ENODATA if it is not configured, so that the next one
 * is asked, or another -errno. *ret_problem, which is not NULL, gets a sentence unless 0 is
 * returned. With -ENODATA it may be empty. */
typedef int credentials_load(
	struct credentials_loader *loader, struct credentials *ret, struct problem *ret_problem);
/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. */
credentials_load credentials_env;
/* The profile, in whichever way it yields them; its files are read at each load. */
credentials_load credentials_profile;
/* AWS_CONTAINER_CREDENTIALS_*: the agent of ECS, of EKS Pod Identity, and their like. */
credentials_load credentials_container;
/* The role of the EC2 instance, from its metadata service. */
credentials_load credentials_imds;

/* Every provider calls this with what it found. *ret gets copies. access_key and secret are
 * required, and session_token may be NULL. 0, -ENOMEM, or -EINVAL with a sentence that says what is
 * wrong with those of `where`. */
int credentials_set(struct credentials *ret, const char *access_key, const char *secret,
	const char *session_token, const char *where, struct problem *ret_problem);
/* The variable's value; NULL if it is not set or empty. */
const char *credentials_variable(const char *name);

/* Credentials as JSON, in the shape in which programs, containers and instances hand them out.
 *
 * The object that the bytes are, or NULL. Free it with json_free_secret, which overwrites its
 * strings. */
json_t *json_load_secret(const char *bytes, size_t n);
void json_free_secret(json_t *object);
/* The string of this name; NULL if there is none or it is empty. Borrowed. */
const char *json_word(const json_t *object, const char *name);

/* AccessKeyId, SecretAccessKey, the session token under token_name, and Expiration, which may be
 * missing. 0; -EBADMSG with a sentence about those of `where`; -EINVAL, -ENOMEM as credentials_set.
 */
int credentials_from_json(const json_t *object, const char *token_name, const char *where,
	struct credentials *ret, struct problem *ret_problem);

/* Requests of the providers: small, unsigned or signed by them, with a few tries. */
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

/* A token in a file.
 *
 * Adds the file's content to ret, which caps it, without the white space at its end. 0 or -errno as
 * named_file_read() returns it; an empty file is -EIO. Wipe ret in any case. */
int secret_file_read(const char *path, struct text *ret);
