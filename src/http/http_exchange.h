/* One request and its reply, as curl's callbacks see them. For the files of this room. */
#pragma once
#include "base/problem.h"
#include "http/http.h"
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <uv.h>

/* How far a request is: when a byte last moved in either direction, how much of its body the peer
 * has taken, and whether it has stalled. For one thread at a time. */
struct http_watch {
	const struct http_body *body;
	const curl_socket_t *socket; /* the one in use, CURL_SOCKET_BAD while there is none */
	uint64_t stall_timeout_ns;
	uint64_t active_ns;              /* when a byte last moved in either direction */
	curl_off_t uploaded, downloaded; /* the bytes that had moved then */
	uint64_t looked_ns;              /* when that was last looked at */
	uint64_t taken_ns;               /* when the peer last took something of the body */
	uint64_t told_bytes;             /* how much of the body was told to body.moved */
	bool looks_at_socket;            /* there was a socket to look at */
	bool has_header;                 /* a header line has come since the last look */
	bool answers;                    /* the reply has begun, and not with 100 Continue */
};
/* All arguments are borrowed until http_watch_end(). Times are those of clock_boot_ns(). */
struct http_watch http_watch_begin(
	const struct http_body *body, const curl_socket_t *socket, uint64_t stall_timeout_ns);

/* Notes that the body's bytes were not there to be sent for so long, which is not the peer's fault.
 */
void http_watch_waited(struct http_watch *watch, uint64_t ns);
/* Whether the peer is silent, or has what it was sent and takes too long to answer. A body that
 * moves never stalls. */
bool http_watch_is_stalled(const struct http_watch *watch, uint64_t now_ns);
/* Is called once the request has ended, with the bytes that curl has counted. If it broke off (not
 * is_whole), what was still in the socket has not left this host. Small bodies are not looked at.
 */
void http_watch_end(struct http_watch *watch, curl_off_t uploaded, bool is_whole);

/* One request and its reply, as curl's callbacks see them. For the files of this room.
 *
 * Of the handle, and of the thread that performs. */
struct exchange {
	const struct http_request *request;
	struct http_reply *reply;
	uint64_t body_at; /* the next byte to read */
	struct http_watch watch;
	uint64_t looked_ns;  /* when on_progress looked last; 0: never */
	size_t header_bytes; /* of all headers, those of interim replies too */
	bool headers_ended;
	bool is_sent;   /* once it was, some of its bytes may have left */
	bool is_resent; /* an earlier connection took the request, perhaps all of it */
	int error;      /* why a callback ended it, or 0 */
};

/* Once for a handle: the callbacks, and the exchange that they are given, which is that of the
 * request under way. */
void exchange_set_up(struct exchange *exchange, CURL *curl);

/* Filling a reply; reading it is in http.h.
 *
 * Empties it, keeping its memory, for a body of at most max_bytes. */
void http_reply_begin(struct http_reply *reply, size_t max_bytes);

/* Keeps the header in a line of n bytes. What is not a header, or too long, is ignored. */
void http_reply_add_header(struct http_reply *reply, const char *line, size_t n);

/* Why there is no reply, as an error number and as a sentence. */
struct http_failure {
	int error;             /* -errno if we ended it ourselves, else 0 */
	CURLcode code;         /* curl's verdict */
	const char *url;       /* of which only the host is told */
	const char *detail;    /* curl's own words, perhaps "" */
	const char *ca_bundle; /* in use, or NULL */
	int socket_error;      /* -errno why there was no socket or file of CAs, or 0 */
	long proxy_status;     /* the answer of a proxy to CONNECT, or 0 */
	bool was_sent;         /* some bytes of a request left, perhaps on an earlier connection */
	bool was_resolved;     /* the host's name was looked up, or nothing was tried */
	bool is_late;          /* the deadline has passed */
};

/* Returns the -errno of http_perform's contract and sets ret_problem to match. */
int http_explain(const struct http_failure *failure, struct problem *ret_problem);

/* The certificates that a server's is checked against. They are read once for all handles, at the
 * first connection that needs them. curl alone would read and keep them for each handle, which
 * takes 30 ms and 1 MB with a system's usual list. */
struct http_trust {
	char *ca_bundle; /* a PEM file, or NULL for the system's; owned */
	uv_mutex_t mutex;
	struct {
		X509_STORE *store; /* NULL until it was read */
	} locked;
};
/* Copies ca_bundle, which may be NULL. 0 or -ENOMEM; to be cleared in any case. */
int http_trust_init(struct http_trust *trust, const char *ca_bundle);
void http_trust_clear(struct http_trust *trust); /* after every handle */

/* Makes this handle use them. They are read in its first handshake, which ends with
 * CURLE_SSL_CACERT_BADFILE if that fails, or CURLE_COULDNT_CONNECT and *error
 * -EMFILE for want of a file descriptor. error is borrowed as long as the handle. Thread-safe. */
void http_trust_apply(struct http_trust *trust, CURL *curl, int *error);

/* The order in which the ciphers of TLS are offered to a server.
 *
 * Offers AES-128-GCM before AES-256-GCM, where keys are exchanged for one session. Servers that
 * leave the choice to the client then encrypt with a quarter less CPU time. Which ciphers are
 * offered does not change, so that what the system's policy forbids stays forbidden. Without enough
 * memory the order stays as it was. */
void http_ciphers_order(SSL_CTX *context);
