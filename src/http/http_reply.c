#include "http/http_reply.h"
#include <stdbool.h>
#include <string.h>

#define HEADERS_MAX_BYTES   (64U << 10)
#define HEADERS_USUAL_BYTES 1000

void http_reply_drop_headers(struct http_reply *reply)
{
	text_reset(&reply->headers);
	reply->n_headers = 0;
}

void http_reply_begin(struct http_reply *reply, size_t max_bytes)
{
	text_reset(&reply->body);
	http_reply_drop_headers(reply);
	reply->body.max = max_bytes;
	reply->headers.max = HEADERS_MAX_BYTES;
	text_reserve(&reply->headers, HEADERS_USUAL_BYTES);
	reply->status = 0;
	reply->is_resent = false;
}

void http_reply_clear(struct http_reply *reply)
{
	text_clear(&reply->body);
	text_clear(&reply->headers);
	*reply = (struct http_reply){0};
}

const char *http_reply_header(const struct http_reply *reply, const char *name)
{
	const char *at = text_string(&reply->headers);
	for (size_t i = 0; i < reply->n_headers; i++) {
		const char *value = at + strlen(at) + 1;
		if (strcmp(at, name) == 0)
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void http_reply_add_header(struct http_reply *reply, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	if (!colon || reply->n_headers == HTTP_HEADERS_MAX || memchr(line, 0, n))
		return;
	struct text *t = &reply->headers;
	size_t name_at = t->len, name_bytes = (size_t)(colon - line);
	const char *value = colon + 1, *end = line + n;
	while (value < end && is_blank(*value))
		value++;
	while (end > value && is_blank(end[-1]))
		end--;
	if (name_bytes + (size_t)(end - value) + 2 > t->max - t->len)
		return;
	text_add_bytes(t, line, name_bytes);
	text_add_char(t, 0);
	text_add_bytes(t, value, (size_t)(end - value));
	text_add_char(t, 0);
	if (t->error)
		return;
	for (char *c = t->data + name_at; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
	reply->n_headers++;
}
