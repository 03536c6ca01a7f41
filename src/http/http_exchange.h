/* One request and its reply, as curl's callbacks see them. For the files of this room. */
#pragma once
#include "http/http.h"
#include <curl/curl.h>

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

/* One request and its reply, as curl's callbacks see them. For the files of this room. */
/* Lives as long as http_perform. Of the thread that performs. */
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

/* Once for a handle: the callbacks. */
void exchange_set_up(CURL *curl);
/* Before each request: the exchange that the callbacks of this handle are given. It is borrowed
 * until the request has ended. */
void exchange_attach(struct exchange *exchange, CURL *curl);

/* Filling a reply; reading it is in http.h. */
/* Empties it, keeping its memory, for a body of at most max_bytes. */
void http_reply_begin(struct http_reply *reply, size_t max_bytes);

/* Keeps the header in a line of n bytes. What is not a header, or too long, is ignored. */
void http_reply_add_header(struct http_reply *reply, const char *line, size_t n);
