/* How far a request is: when a byte last moved in either direction, how much of its body the peer
 * has taken, and whether it has stalled. For one thread at a time. */
#pragma once
#include "http/http.h"
#include <curl/curl.h>

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
/* Notes that a line of the reply's headers has come. is_final_status says that it is a status line
 * other than 100 Continue and the like. */
void http_watch_header(struct http_watch *watch, bool is_status, bool is_final_status);
/* Notes what has moved since the last look, by curl's counts. */
void http_watch_look(
	struct http_watch *watch, uint64_t now_ns, curl_off_t downloaded, curl_off_t uploaded);
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
