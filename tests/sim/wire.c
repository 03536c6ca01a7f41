#include "wire.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_MAX_BYTES (1U << 30)

static char *copy(const char *s, size_t n)
{
	char *ret = strndup(s, n);
	if (!ret)
		abort();
	return ret;
}

static void add_header(struct wire_request *request, const char *line)
{
	const char *colon = strchr(line, ':');
	if (!colon || request->n_headers == WIRE_HEADERS_MAX)
		return;
	struct wire_header *header = &request->headers[request->n_headers++];
	header->name = copy(line, (size_t)(colon - line));
	for (char *c = header->name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	colon += 1 + strspn(colon + 1, " ");
	header->value = copy(colon, strlen(colon));
}

/* Joins the chunks of an aws-chunked body, and adds the header that follows them. Any other body
 * stays as it is. */
static void join_chunks(struct wire_request *request)
{
	const char *hash = wire_header(request, "x-amz-content-sha256");
	if (!hash || strcmp(hash, "STREAMING-UNSIGNED-PAYLOAD-TRAILER") != 0)
		return;
	const char *at = (const char *)request->body, *end = at + request->body_bytes, *line;
	struct text whole = TEXT(REPLY_MAX_BYTES);
	size_t n;
	while ((line = memmem(at, (size_t)(end - at), "\r\n", 2)) && (n = strtoul(at, NULL, 16)) &&
		n + 4 <= (size_t)(end - line) && memcmp(line + 2 + n, "\r\n", 2) == 0) {
		text_add_bytes(&whole, line + 2, n);
		at = line + 2 + n + 2;
	}
	const char *last = line ? memmem(line + 2, (size_t)(end - line) - 2, "\r\n\r\n", 4) : NULL;
	const char *length = wire_header(request, "x-amz-decoded-content-length");
	if (last && last + 4 == end && length && strtoul(length, NULL, 10) == whole.len) {
		char *trailer = copy(line + 2, (size_t)(last - line) - 2);
		add_header(request, trailer);
		free(trailer);
		for (size_t i = 0; i < request->n_headers; i++)
			if (strcmp(request->headers[i].value, "aws-chunked") == 0)
				*request->headers[i].name = '\0';
		free(request->body);
		request->body_bytes = whole.len;
		request->body = malloc(whole.len + 1);
		if (!request->body)
			abort();
		memcpy(request->body, text_string(&whole), whole.len);
	}
	text_clear(&whole);
}

struct wire_request *wire_request_new(const char *method, const char *url,
	const char *const *headers, size_t n_headers, unsigned char *body, size_t body_bytes)
{
	struct wire_request *request = calloc(1, sizeof *request);
	if (!request)
		abort();
	const char *host = strstr(url, "://");
	host = host ? host + 3 : url;
	const size_t host_chars = strcspn(host, "/?");
	const char *path = host + host_chars;
	const size_t path_chars = strcspn(path, "?");
	request->method = copy(method, strlen(method));
	request->host = copy(host, host_chars);
	request->path = path_chars ? copy(path, path_chars) : copy("/", 1);
	path += path_chars;
	request->query = copy(*path ? path + 1 : "", *path ? strlen(path + 1) : 0);
	request->body = body;
	request->body_bytes = body_bytes;
	for (size_t i = 0; i < n_headers; i++)
		add_header(request, headers[i]);
	join_chunks(request);
	return request;
}

void wire_request_free(struct wire_request *request)
{
	if (!request)
		return;
	for (size_t i = 0; i < request->n_headers; i++) {
		free(request->headers[i].name);
		free(request->headers[i].value);
	}
	free(request->method);
	free(request->host);
	free(request->path);
	free(request->query);
	free(request->body);
	free(request);
}

const char *wire_header(const struct wire_request *request, const char *name)
{
	for (size_t i = 0; i < request->n_headers; i++)
		if (strcmp(request->headers[i].name, name) == 0)
			return request->headers[i].value;
	return NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

char *wire_decode(const char *text, size_t n)
{
	char *ret = copy(text, n), *to = ret;
	for (size_t i = 0; i < n; i++) {
		const int high = text[i] == '%' && i + 2 < n ? hex_digit(text[i + 1]) : -1;
		const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
		if (low >= 0) {
			*to++ = (char)(high * 16 + low);
			i += 2;
		} else {
			*to++ = text[i];
		}
	}
	*to = 0;
	return ret;
}

char *wire_parameter(const struct wire_request *request, const char *name)
{
	const size_t n = strlen(name);
	for (const char *at = request->query; *at; at += *at == '&') {
		const size_t chars = strcspn(at, "&");
		if (strncmp(at, name, n) == 0 && (chars == n || at[n] == '='))
			return wire_decode(at + n + (chars > n), chars > n ? chars - n - 1 : 0);
		at += chars;
	}
	return NULL;
}

void wire_reply_init(struct wire_reply *reply)
{
	*reply = (struct wire_reply){.headers = TEXT(64U << 10), .body = TEXT(REPLY_MAX_BYTES)};
}

void wire_reply_clear(struct wire_reply *reply)
{
	text_clear(&reply->headers);
	text_clear(&reply->body);
}

void wire_reply_header(struct wire_reply *reply, const char *name, const char *value)
{
	text_add(&reply->headers, name);
	text_add_char(&reply->headers, 0);
	text_add(&reply->headers, value);
	text_add_char(&reply->headers, 0);
	reply->n_headers++;
}

void wire_add_xml(struct text *to, const char *value)
{
	for (; *value; value++)
		if (*value == '&')
			text_add(to, "&amp;");
		else if (*value == '<')
			text_add(to, "&lt;");
		else if (*value == '>')
			text_add(to, "&gt;");
		else if (*value == '"')
			text_add(to, "&quot;");
		else
			text_add_char(to, *value);
}
