/* A handle and its request under way, for curl's callbacks. Internal to src/http. */
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
	uint64_t stall_timeout_ns;
	size_t upload_buffer_bytes;
	char *ca_bundle; /* a PEM file, or NULL for the system's; owned */
	/* The CA certificates that a server's certificate is checked against. They are read once
	 * for all handles, at the first connection that needs them. curl alone would read and keep
	 * them for each handle, which takes 30 ms and 1 MB with a system's usual list. */
	uv_mutex_t trust_mutex;
	X509_STORE *trust; /* NULL until it was read */
};

/* One request and its reply: its progress, and whether it has stalled. Times are those of
 * clock_boot_ns(). */
struct exchange {
	const struct http_request *request;
	struct http_reply *reply;
	uint64_t body_at;                /* the next byte to read */
	uint64_t checked_ns;             /* time of the last checks of on_progress(); 0: none */
	uint64_t last_moved_ns;          /* time at which a byte last moved in either direction */
	curl_off_t uploaded, downloaded; /* the bytes that had moved at noted_ns */
	uint64_t noted_ns;       /* time at which `uploaded` and `downloaded` were last noted */
	uint64_t body_taken_ns;  /* time at which the peer last took some of the body */
	uint64_t reported_bytes; /* bytes of the body that were reported to body.moved() */
	bool had_socket;         /* count_waiting_bytes() has found a socket of this request */
	bool has_header;         /* a header line has come since the last check */
	bool reply_has_begun;    /* a status line other than that of an interim reply has come */
	size_t header_bytes;     /* bytes of all header lines, including those of interim replies */
	bool headers_ended;
	bool is_sent;   /* set if some bytes of the request may have left */
	bool is_resent; /* the request was sent before, perhaps as a whole */
	int error;      /* the -errno with which we, not curl, ended the request, or 0 */
};

#define HTTP_SOCKETS 4
struct http {
	struct http_shared *shared;
	CURL *curl;
	char error_text[CURL_ERROR_SIZE];
	/* The last sockets that curl has opened. It may have closed some of them. */
	curl_socket_t sockets[HTTP_SOCKETS];
	unsigned n_sockets; /* the number opened so far */
	/* The -errno for which the last request got no socket, or could not open the file of CA
	 * certificates. 0 if neither has happened. */
	int socket_error;
	struct exchange exchange; /* the exchange of the last request */
};

/* Returns the socket of the request's connection. CURL_SOCKET_BAD if there is none yet, or none any
 * more. */
curl_socket_t exchange_socket(const struct http *http);
/* Sets curl's callbacks, once for each handle. */
void exchange_set_up(struct http *http);
/* Whether the peer has been silent for too long, or has the whole body and takes too long to
 * answer. A large body that moves never stalls. */
bool exchange_is_stalled(const struct http *http, uint64_t now_ns);
/* Calls body.moved() with the bytes that have left since the last call. `bytes` is the total so
 * far. */
void exchange_report_moved(struct exchange *exchange, uint64_t bytes);

/* Explains a missing reply, by curl's result code. Returns the -errno that http_perform()
 * documents, and sets *ret_problem to match. */
int http_explain(const struct http *http, CURLcode code, struct problem *ret_problem);

/* Makes this handle check servers by the certificates of http_shared, which the first handshake of
 * any handle reads. If they cannot be read, the handshake ends with CURLE_SSL_CACERT_BADFILE. If
 * only a file descriptor is missing for that, it ends with CURLE_COULDNT_CONNECT and the
 * socket_error is -EMFILE, so that the request is tried again. Thread-safe. */
void http_trust_apply(struct http *http);

/* Sets the order in which TLS ciphers are offered: AES-128-GCM before AES-256-GCM, where keys are
 * exchanged for one session. Servers that leave the choice to the client then encrypt with a
 * quarter less CPU time.
 *
 * Which ciphers are offered does not change, so that ciphers that the system's policy forbids stay
 * forbidden. Without enough memory the order stays as it was. */
void http_ciphers_order(SSL_CTX *context);
