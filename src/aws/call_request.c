/* One attempt of a call as an HTTP request: the address, the headers and the signature. call.c
 * sends it. */
#include "aws/service.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "https://host:port/base" in its pieces; borrowed from the endpoint. */
struct address {
	const char *host, *base; /* base begins with '/' or is "" */
	size_t scheme_bytes, host_bytes;
};

static int split_endpoint(const char *endpoint, struct address *ret)
{
	const char *host = strstr(endpoint, "://");
	if (!host)
		return -EINVAL;
	host += 3;
	size_t n = strcspn(host, "/");
	*ret = (struct address){host, host + n, (size_t)(host - endpoint), n};
	return 0;
}

/* The URL into conn->url, such that its path begins at *ret_path_at, and the host into ret_host. */
static int build_url(struct service_conn *conn, const struct call *call, struct text *ret_host,
	size_t *ret_path_at)
{
	struct address address;
	struct text *url = &conn->url;
	const char *endpoint = conn->endpoint.url;
	int error = split_endpoint(endpoint, &address);
	if (error)
		return error;
	text_add_bytes(ret_host, address.host, address.host_bytes);
	text_reset(url);
	text_add_bytes(url, endpoint, address.scheme_bytes + address.host_bytes);
	*ret_path_at = url->len;
	text_add(url, address.base);
	text_add(url, call->path[0] || address.base[0] ? call->path : "/");
	if (call->query[0]) {
		text_add_char(url, '?');
		text_add(url, call->query);
	}
	return ret_host->error ? ret_host->error : url->error;
}

/* "name: value" lines, one after the other in conn->lines, and the pointers to them. */
static int write_lines(struct service_conn *conn, const struct sigv4_header *headers, size_t n,
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

static int sign_call(struct service_conn *conn, const struct call *call, const char *path,
	const struct sigv4_header *headers, size_t n, struct call_request *ret)
{
	struct text signed_path = TEXT(conn->url.max), *line = &conn->authorization;
	text_add_bytes(&signed_path, path, strcspn(path, "?"));
	struct sigv4_request request = {.method = call->method,
		.path = text_string(&signed_path),
		.query = call->query,
		.headers = headers,
		.n_headers = n,
		.payload_hash = call->payload_hash ? call->payload_hash : ret->payload_hash,
		.region = conn->endpoint.region,
		.service = conn->endpoint.signing_name,
		.date = ret->date};
	text_reset(line);
	text_add(line, "authorization: ");
	int error = signed_path.error;
	if (!error)
		error = sigv4_sign(&conn->signing, &conn->credentials, &request, line);
	text_clear(&signed_path);
	return error;
}

int call_request_build(struct service_conn *conn, const struct call *call, struct call_request *ret)
{
	struct text host = TEXT(ENDPOINT_MAX);
	struct sigv4_header headers[SIGV4_HEADERS_MAX];
	size_t n = 0, path_at = 0;
	if (call->n_headers + 4 > SIGV4_HEADERS_MAX)
		return -EINVAL;
	ret->signed_s = service_wall_s(conn->service);
	ret->signed_ns = clock_boot_ns();
	clock_format_amz(ret->signed_s, ret->date);
	int error = build_url(conn, call, &host, &path_at);
	if (!error && !call->payload_hash)
		error = sigv4_sha256(&conn->signing, call->body.memory ? call->body.memory : "",
			(size_t)call->body.bytes, ret->payload_hash);
	headers[n++] = (struct sigv4_header){"host", text_string(&host)};
	headers[n++] = (struct sigv4_header){"x-amz-date", ret->date};
	if (conn->service->options.is_s3)
		headers[n++] = (struct sigv4_header){"x-amz-content-sha256",
			call->payload_hash ? call->payload_hash : ret->payload_hash};
	if (conn->credentials.session_token)
		headers[n++] = (struct sigv4_header){
			"x-amz-security-token", conn->credentials.session_token};
	for (size_t i = 0; i < call->n_headers; i++)
		headers[n++] = (struct sigv4_header){call->headers[i].name, call->headers[i].value};
	if (!error)
		error = write_lines(conn, headers, n, ret);
	if (!error)
		error = sign_call(conn, call, conn->url.data + path_at, headers, n, ret);
	if (!error)
		ret->headers[ret->n_headers++] = conn->authorization.data;
	text_clear(&host);
	return error == -ENOMEM ? -ENOMEM : error ? -EINVAL : 0;
}

bool call_request_clock_is_off(const struct call_request *request, int64_t date_s)
{
	int64_t now_s =
		request->signed_s + (int64_t)((clock_boot_ns() - request->signed_ns) / NS_PER_S);
	return date_s <= request->signed_s - CLOCK_IS_OFF_S || date_s >= now_s + CLOCK_IS_OFF_S;
}
