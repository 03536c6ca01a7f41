/* Filling a reply; reading it is in http.h. */
#pragma once
#include "http/http.h"

/* Empties it, keeping its memory, for a body of at most max_bytes. */
void http_reply_begin(struct http_reply *reply, size_t max_bytes);
/* Drops the headers that came so far, since they were those of an interim reply. */
void http_reply_drop_headers(struct http_reply *reply);
/* Keeps the header in a line of n bytes. What is not a header, or too long, is ignored. */
void http_reply_add_header(struct http_reply *reply, const char *line, size_t n);
