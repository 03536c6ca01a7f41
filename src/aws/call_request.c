/* One attempt of a call as an HTTP request: the address, the headers and the signature. call.c
 * sends it. */
#include "aws/service.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "name: value" lines, one after the other in conn->lines, and the pointers to them. */
static int write_lines(struct service_conn *conn, const struct call_header *headers, size_t n,
	struct call_request *ret)
{
	struct text *lines = &conn->lines;
	text_reset(lines);
	for (size_t i = 0; i < n; i++) {
		const char *name = headers[i].name, *value = headers[i].value;
		if (strpbrk(value, "\r\n") || strpbrk(name, "\r\n: "))
			return -EINVAL;
		text_add(lines, name);
		/* What curl takes for an empty value has its own form there, or is not sent. */
		bool is_blank = !value[strspn(value, " \t")];
		text_add(lines, is_blank ? ";" : ": ");
		text_add(lines, is_blank ? "" : value);
		text_add_char(lines, 0);
	}
	if (lines->error)
		return lines->error;
	const char *line = lines->data;
	for (size_t i = 0; i < n; i++, line += strlen(line) + 1)
		ret->headers[i] = line;
	ret->n_headers = n;
	return 0;
}

int call_request_build(struct service_conn *conn, const struct call *call, struct call_request *ret)
{
	struct text *url = &conn->url, *line = &conn->authorization;
	struct call_header headers[SIGV4_HEADERS_MAX];
	char host[ENDPOINT_MAX + 1];
	size_t n = 0;
	/* "https://host:port/base", whose base may be missing. */
	const char *scheme_end = strstr(conn->endpoint.url, "://");
	if (call->n_headers + 4 > SIGV4_HEADERS_MAX || !scheme_end)
		return -EINVAL;
	const char *base = scheme_end + 3 + strcspn(scheme_end + 3, "/");
	snprintf(host, sizeof host, "%.*s", (int)(base - scheme_end - 3), scheme_end + 3);
	text_reset(url);
	text_add_bytes(url, conn->endpoint.url, (size_t)(base - conn->endpoint.url));
	const size_t path_at = url->len;
	text_add(url, base);
	text_add(url, call->path[0] || *base ? call->path : "/");
	int error = url->error;
	ret->signed_s =
		clock_wall_ns() / (int64_t)NS_PER_S + atomic_load(&conn->service->clock_offset_s);
	ret->signed_ns = clock_boot_ns();
	clock_format_amz(ret->signed_s, ret->date);
	if (!error && !call->payload_hash)
		error = sigv4_sha256(&conn->signing, call->body.memory ? call->body.memory : "",
			(size_t)call->body.bytes, ret->payload_hash);
	const char *payload_hash = call->payload_hash ? call->payload_hash : ret->payload_hash;
	headers[n++] = (struct call_header){"host", host};
	headers[n++] = (struct call_header){"x-amz-date", ret->date};
	if (conn->service->options.is_s3)
		headers[n++] = (struct call_header){"x-amz-content-sha256", payload_hash};
	if (conn->credentials.session_token)
		headers[n++] = (struct call_header){
			"x-amz-security-token", conn->credentials.session_token};
	for (size_t i = 0; i < call->n_headers; i++)
		headers[n++] = call->headers[i];
	if (!error)
		error = write_lines(conn, headers, n, ret);
	text_reset(line);
	text_add(line, "authorization: ");
	if (!error)
		error = sigv4_sign(&conn->signing, &conn->credentials,
			&(const struct sigv4_request){.method = call->method,
				.path = url->data + path_at,
				.query = call->query,
				.headers = headers,
				.n_headers = n,
				.payload_hash = payload_hash,
				.region = conn->endpoint.region,
				.service = conn->endpoint.signing_name,
				.date = ret->date},
			line);
	/* The path is signed without the query, which is signed by itself. */
	text_add(url, call->query[0] ? "?" : "");
	text_add(url, call->query);
	error = error ? error : url->error;
	ret->headers[ret->n_headers] = line->data;
	ret->n_headers += !error;
	return error == -ENOMEM ? -ENOMEM : error ? -EINVAL : 0;
}

bool call_request_clock_is_off(const struct call_request *request, int64_t date_s)
{
	int64_t now_s =
		request->signed_s + (int64_t)((clock_boot_ns() - request->signed_ns) / NS_PER_S);
	return date_s <= request->signed_s - CLOCK_IS_OFF_S || date_s >= now_s + CLOCK_IS_OFF_S;
}
