/* One request and its reply, as curl's callbacks see them. For the files of this room. */
#pragma once
#include "http/http.h"
#include "http/http_watch.h"
#include <curl/curl.h>

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
