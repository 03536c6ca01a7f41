/* HTTP over libcurl. A handle sends one request at a time, and blocks until it ends. Nothing here
 * knows of AWS. */
#pragma once
#include "base/problem.h"
#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls curl_global_init(), and ignores SIGPIPE unless the program handles it, once for the
 * process. 0 or -errno. Thread-safe. */
int http_global_init(void);

/* The state that all handles of a process share: DNS answers, TLS sessions and the trusted
 * certificates, but never connections. Thread-safe. */
struct http_shared;
struct http_options {
	const char *ca_bundle; /* PEM file, or NULL for the system's; borrowed for the call */
	/* A request ends with -ETIMEDOUT if no byte moves in either direction for this long. A
	 * request with a large body also ends if the peer has the body and takes longer than this
	 * for the whole reply. Bytes of a large body that wait in this host's socket have not moved
	 * yet. 0: 30 s. */
	uint64_t stall_timeout_ms;
	size_t upload_buffer_bytes; /* curl's send buffer for bodies read from files; 0: 64 KiB */
};
int http_shared_new(const struct http_options *options, struct http_shared **ret);
void http_shared_free(struct http_shared *shared); /* after every handle */

/* One keep-alive handle. Not thread-safe: each thread has its own. */
struct http;
int http_new(struct http_shared *shared, struct http **ret);
void http_free(struct http *http);

/* The bytes to send, in `memory` or from `read`. With `read`, `rewind` is needed too, since curl
 * may send the bytes again. */
struct http_body {
	uint64_t bytes;
	const void *memory; /* borrowed for the call; NULL if read is used or bytes is 0 */
	/* Writes up to n (> 0) bytes into buf, and returns their number. -errno ends the request,
	 * and so does 0 before `bytes` bytes were read. No more than `bytes` bytes are
	 * requested. */
	long (*read)(void *arg, void *buf, size_t n);
	/* Seeks to byte `offset`; 0 or -errno. */
	int (*rewind)(void *arg, uint64_t offset);
	/* Called before a repeated request sends the body again. Waits until the body may be sent,
	 * and returns false if the request must not be repeated. May be NULL. */
	bool (*may_send_again)(void *arg);
	void *arg;
	/* Called with the number of bytes that have left since the last call, about every 100 ms
	 * and at the end. Bytes that are sent again count again. May be NULL. */
	void (*moved)(void *moved_arg, uint64_t n);
	void *moved_arg;
};
/* A body of up to this size is small, any other is large. A large body is watched as it leaves, and
 * may take any time as long as it moves. */
#define HTTP_SMALL_BODY_BYTES (8U << 10)

struct http_request {
	const char *method;
	const char *url;            /* absolute, already encoded; sent as it is */
	const char *const *headers; /* "Name: value" lines; borrowed for the call */
	size_t n_headers;
	struct http_body body;
	/* The clock_boot_ns() by which the request ends. 0: none. */
	uint64_t deadline_ns;
	/* Called when bytes have moved, but at most once in 10 ms, and in any case about once a
	 * second. Returns true to end the request. May be NULL. */
	bool (*abandon)(void *arg);
	void *abandon_arg;
	size_t reply_max_bytes; /* a longer reply body ends the request with -EMSGSIZE */
	/* Connect to the host itself, whatever proxy the environment names. */
	bool no_proxy;
	/* Do not reuse the last connection, so that another server may answer after an error. */
	bool new_connection;
};

#define HTTP_HEADERS_MAX 256 /* the most headers kept; further ones are ignored */
struct http_reply {
	int status;
	struct text body;    /* owned */
	struct text headers; /* owned; "name\0value\0" each: read it by http_reply_header */
	size_t n_headers;
	/* curl has sent the request again by itself, since a connection that it used again was
	 * gone. The first request may have been applied. */
	bool is_resent;
	/* How long the request and the reply were on the wire. This excludes the time from the
	 * arrival of the last bytes until this process noticed them, since the thread may have
	 * waited for a processor. */
	uint64_t wire_ns;
};
/* Frees the reply, and overwrites its body, which may hold secrets. */
void http_reply_clear(struct http_reply *reply);
/* Empties the reply, but keeps its memory, for a body of at most max_bytes. */
void http_reply_begin(struct http_reply *reply, size_t max_bytes);
/* Keeps the header in a line of n bytes. A line that is no header, or is too long, is ignored. */
void http_reply_add_header(struct http_reply *reply, const char *line, size_t n);
/* The value (trimmed) of the first header of this lower-case name, or NULL. Borrowed. */
const char *http_reply_header(const struct http_reply *reply, const char *name);
/* If a header of the reply shows that a cache has answered without contacting the server, returns
 * the header's lower-case name, otherwise NULL. Static. */
const char *http_reply_cached_by(const struct http_reply *reply);

/* Sends one request and reads the whole reply. Returns 0 if there is a reply, whatever its status
 * is. Otherwise *ret_problem gets a sentence, and the error is the reason.
 *
 * These say that the request was not applied:
 *   -ENOENT        the host's name could not be resolved
 *   -ECONNREFUSED  there is no connection, or no TLS
 *   -EMFILE        no descriptor is left for a connection
 *   -EPROTO        the certificate is not accepted, or a proxy refuses
 *   -EINVAL        the URL is invalid
 *   -EIO           the body could not be read, or ended early
 * After these it may have been applied:
 *   -ECANCELED     it was abandoned, or the deadline has passed
 *   -ETIMEDOUT     it stalled
 *   -EMSGSIZE      the reply is too long
 *   -ENOMEM        there is not enough memory
 *   -ECONNRESET    anything else on the wire
 *
 * *ret_reply is zeroed, or is that of an earlier call, which is emptied first and keeps its memory.
 * The caller clears it in any case. */
int http_perform(struct http *http, const struct http_request *request,
	struct http_reply *ret_reply, struct problem *ret_problem);
