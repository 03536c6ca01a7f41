/* HTTP over libcurl: one request at a time on one handle, blocking. Knows nothing of AWS. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Call once before the first thread starts (curl_global_init, SIGPIPE ignored); returns 0 or
 * -errno. Idempotent. */
int http_global_init(void);

/* What all handles of a process share: DNS answers and TLS sessions, never connections.
 * Thread-safe. */
struct http_shared;
struct http_options {
	const char *ca_bundle;       /* PEM file, or NULL for the system's; borrowed for the call */
	uint64_t connect_timeout_ms; /* 0: 10 s */
	/* No byte either way for so long ends a request, and so does a reply that takes longer
	 * once the peer has the body; 0: 30 s. What waits in this host's socket has not gone
	 * anywhere yet. */
	uint64_t stall_timeout_ms;
	size_t upload_buffer_bytes; /* curl's send buffer for bodies read from files; 0: 64 KiB */
};
int http_shared_new(const struct http_options *options, struct http_shared **ret);
void http_shared_free(struct http_shared *shared); /* after every handle */

/* One keep-alive handle. Not thread-safe: each thread has its own. */
struct http;
int http_new(struct http_shared *shared, struct http **ret);
void http_free(struct http *http);

/* Bytes to send. Either `memory`, or `read` (with `rewind`, since curl may send them again). */
struct http_body {
	uint64_t bytes;
	const void *memory; /* borrowed for the call; NULL if read is used or bytes is 0 */
	/* Puts up to n (> 0) bytes into buf; returns how many, or -errno, which ends the request
	 * unsent. 0 before `bytes` bytes ends it too; it is not asked for more than those. */
	long (*read)(void *arg, void *buf, size_t n);
	/* Goes back to byte `offset`; 0 or -errno. */
	int (*rewind)(void *arg, uint64_t offset);
	/* Told that n more bytes have left, about once in 100 ms and at the end; those that are
	 * sent again count again. May be NULL. */
	void (*moved)(void *arg, uint64_t n);
	void *arg;
};
/* A larger body is watched as it leaves: it may take any time as long as it moves. */
#define HTTP_SMALL_BODY_BYTES (8U << 10)

struct http_request {
	const char *method;
	const char *url;            /* absolute, already encoded; sent as it is */
	const char *const *headers; /* "Name: value" lines; borrowed for the call */
	size_t n_headers;
	struct http_body body;
	uint64_t deadline_ns; /* clock_boot_ns() by which it has ended; 0: none */
	/* Asked about once a second and at every progress; true ends the request. May be NULL. */
	bool (*abandon)(void *arg);
	void *abandon_arg;
	size_t reply_max_bytes; /* a longer reply body ends the request with -EMSGSIZE */
	bool no_proxy;          /* straight to the host, whatever the environment says */
	bool new_connection;    /* do not reuse the last one: after an error, meet another server */
};

#define HTTP_HEADERS_MAX 256 /* kept; more are ignored */
struct http_reply {
	int status;
	struct text body;    /* owned */
	struct text headers; /* owned; "name\0value\0" each: read it by http_reply_header */
	size_t n_headers;
	bool is_resent; /* curl sent the request again of its own accord, since a connection
			   that it used again was gone: the first one may have been applied */
};
void http_reply_clear(struct http_reply *reply);
/* The value (trimmed) of the first header of this lower-case name, or NULL. Borrowed. */
const char *http_reply_header(const struct http_reply *reply, const char *name);

/* Sends one request and reads the whole reply. Returns 0 when there is a reply of whatever status,
 * else why there is none: -ECANCELED abandoned or deadline passed, -ETIMEDOUT stalled, -EMSGSIZE
 * reply too long, -ENOENT name not resolved, -ECONNREFUSED not connected (or no TLS), -EMFILE
 * no descriptor is left for a connection, -EPROTO certificate not trusted or a proxy that wants a
 * password, -EINVAL the URL is none, -EIO body read failed or ended early, -ENOMEM, -ECONNRESET
 * anything else on the wire. After -ENOENT, -ECONNREFUSED, -EMFILE, -EPROTO, -EINVAL and -EIO it
 * was not applied; else it may have been. ret_problem gets a sentence. *ret_reply is zeroed, or one
 * of before, which is emptied first and keeps its memory; it is cleared by the caller in any case.
 */
int http_perform(struct http *http, const struct http_request *request,
	struct http_reply *ret_reply, struct problem *ret_problem);
