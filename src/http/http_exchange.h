/* A handle and its request under way, as curl's callbacks see them. For the files of this room. */
#pragma once
#include "base/problem.h"
#include "http/http.h"
#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <uv.h>

struct http_shared {
	CURLSH *share;
	uv_mutex_t locks[CURL_LOCK_DATA_LAST];
	uint64_t connect_timeout_ms, stall_timeout_ns;
	size_t upload_buffer_bytes;
	char *ca_bundle; /* a PEM file, or NULL for the system's; owned */
	/* The certificates that a server's is checked against. They are read once for all handles,
	 * at the first connection that needs them. curl alone would read and keep them for each
	 * handle, which takes 30 ms and 1 MB with a system's usual list. */
	uv_mutex_t trust_mutex;
	X509_STORE *trust; /* NULL until it was read */
};

/* One request and its reply: how far it is, and whether it has stalled. Times are those of
 * clock_boot_ns(). */
struct exchange {
	const struct http_request *request;
	struct http_reply *reply;
	uint64_t body_at;                /* the next byte to read */
	uint64_t asked_ns;               /* when on_progress looked last; 0: never */
	uint64_t active_ns;              /* when a byte last moved in either direction */
	curl_off_t uploaded, downloaded; /* the bytes that had moved then */
	uint64_t looked_ns;              /* when that was last looked at */
	uint64_t taken_ns;               /* when the peer last took something of the body */
	uint64_t told_bytes;             /* how much of the body was told to body.moved */
	bool looks_at_socket;            /* there was a socket to look at */
	bool has_header;                 /* a header line has come since the last look */
	bool answers;                    /* the reply has begun, and not with 100 Continue */
	size_t header_bytes;             /* of all headers, those of interim replies too */
	bool headers_ended;
	bool is_sent;   /* once it was, some of its bytes may have left */
	bool is_resent; /* an earlier connection took the request, perhaps all of it */
	int error;      /* -errno why a callback ended it, or 0 */
};

struct http {
	struct http_shared *shared;
	CURL *curl;
	char error_text[CURL_ERROR_SIZE];
	curl_socket_t socket; /* the last one that was opened, until it is closed; curl's */
	int socket_error; /* -errno why the last request had no socket, or no file of CAs, or 0 */
	struct exchange exchange; /* of the last request */
};

/* Once for a handle: the callbacks. */
void exchange_set_up(struct http *http);
/* Whether the peer is silent, or has what it was sent and takes too long to answer. A body that
 * moves never stalls. */
bool exchange_is_stalled(const struct http *http, uint64_t now_ns);
/* Tells body.moved how far the body is. */
void exchange_tell_moved(struct exchange *exchange, uint64_t bytes);

/* Why there is no reply, by curl's verdict: returns the -errno of http_perform's contract and sets
 * ret_problem to match. */
int http_explain(const struct http *http, CURLcode code, struct problem *ret_problem);

/* Makes this handle use the certificates. They are read in its first handshake, which ends with
 * CURLE_SSL_CACERT_BADFILE if that fails, or CURLE_COULDNT_CONNECT and socket_error -EMFILE for
 * want of a file descriptor. Thread-safe. */
void http_trust_apply(struct http *http);

/* The order in which the ciphers of TLS are offered to a server.
 *
 * Offers AES-128-GCM before AES-256-GCM, where keys are exchanged for one session. Servers that
 * leave the choice to the client then encrypt with a quarter less CPU time. Which ciphers are
 * offered does not change, so that what the system's policy forbids stays forbidden. Without enough
 * memory the order stays as it was. */
void http_ciphers_order(SSL_CTX *context);
