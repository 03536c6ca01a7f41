/* How a request gets on: when a byte last went either way, how much of its body the peer has taken,
 * and whether it has stalled. */
#pragma once
#include "http/http.h"
#include <curl/curl.h>

struct http_watch {
	const struct http_body *body;
	const curl_socket_t *socket; /* the one in use, CURL_SOCKET_BAD while there is none */
	uint64_t stall_timeout_ns;
	uint64_t active_ns;              /* when a byte last went either way */
	curl_off_t uploaded, downloaded; /* then; bytes of the body that the peer has taken */
	uint64_t looked_ns;              /* when that was looked at last */
	uint64_t taken_ns;               /* when the peer last took something of the body */
	uint64_t told_bytes;             /* of the body, to body.moved */
	bool looks_at_socket;            /* there was one to look at */
	bool answers;                    /* the reply has begun, and not with 100 Continue */
};
/* All is borrowed until the end. */
struct http_watch http_watch_begin(
	const struct http_body *body, const curl_socket_t *socket, uint64_t stall_timeout_ns);
/* A line of the reply's headers has come. is_final_status: it begins one other than 100 Continue
 * and the like. */
void http_watch_header(struct http_watch *watch, bool is_status, bool is_final_status);
/* Notes what has gone either way since the last look, by curl's counts. */
void http_watch_look(struct http_watch *watch, curl_off_t downloaded, curl_off_t uploaded);
/* For so long the body's bytes were not there to be sent: the peer is not to blame. */
void http_watch_waited(struct http_watch *watch, uint64_t ns);
/* The peer is silent, or it has what it was sent and takes too long to answer. A body that moves
 * has no such end. */
bool http_watch_is_stalled(const struct http_watch *watch, uint64_t now_ns);
/* Once it has ended, with `uploaded` bytes by curl's count. What was still in the socket of one
 * that broke (not is_whole) has not left this host; of a small body nobody looked. */
void http_watch_end(struct http_watch *watch, curl_off_t uploaded, bool is_whole);
