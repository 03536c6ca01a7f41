/* One attempt of a call as an HTTP request: the address, the headers and the signature. call.c and
 * sts.c send it. */
#include "aws/service.h"
#include "base/clock.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define URL_MAX_BYTES   (16U << 10)
#define LINES_MAX_BYTES (64U << 10)

struct signer signer_new(void)
{
	return (struct signer){.url = TEXT(URL_MAX_BYTES),
		.lines = TEXT(LINES_MAX_BYTES),
		.authorization = TEXT(LINES_MAX_BYTES)};
}

void signer_wipe(struct signer *signer)
{
	sigv4_cache_wipe(&signer->cache);
	credentials_wipe(&signer->credentials);
	text_clear(&signer->url);
	text_wipe(&signer->lines);
	text_wipe(&signer->authorization);
}

/* Writes the headers one after the other into `lines`, each as "name: value" with a NUL at its end,
 * and points ret->headers at them. Returns 0, -EINVAL for a header that contains a line break, or
 * whose name contains a colon or a space, or the error of `lines`. */
static int write_lines(
	struct text *lines, const struct call_header *headers, size_t n, struct call_request *ret)
{
	text_reset(lines);
	for (size_t i = 0; i < n; i++) {
		const char *name = headers[i].name, *value = headers[i].value;
		if (strpbrk(value, "\r\n") || strpbrk(name, "\r\n: "))
			return -EINVAL;
		text_add(lines, name);
		/* curl sends a header with an empty value only if its line is "name;". */
		bool is_blank = !value[strspn(value, " \t")];
		text_add(lines, is_blank ? ";" : ": ");
		text_add(lines, is_blank ? "" : value);
		text_add_char(lines, 0);
	}
	if (lines->error)
		return lines->error;
	const char *line = lines->data; /* `data` no longer moves */
	for (size_t i = 0; i < n; i++, line += strlen(line) + 1)
		ret->headers[i] = line;
	ret->n_headers = n;
	return 0;
}

/* Splits the endpoint's URL, "https://host:port/base", whose base may be missing. Returns its base,
 * which begins with a slash or is "", and writes its host with the port. NULL: it is no URL. */
static const char *split_endpoint(
	const struct endpoint *endpoint, char ret_host[static ENDPOINT_MAX + 1])
{
	const char *scheme_end = strstr(endpoint->url, "://");
	if (!scheme_end)
		return NULL;
	const char *host = scheme_end + 3, *base = host + strcspn(host, "/");
	snprintf(ret_host, ENDPOINT_MAX + 1, "%.*s", (int)(base - host), host);
	return base;
}

#define OWN_HEADERS_MAX 4 /* the headers that call_request_build() adds before it signs */

int call_request_build(
	struct signer *signer, const struct call *call, int64_t time_s, struct call_request *ret)
{
	const struct endpoint *endpoint = &signer->endpoint;
	struct text *url = &signer->url, *authorization = &signer->authorization;
	struct call_header headers[SIGV4_HEADERS_MAX];
	char host[ENDPOINT_MAX + 1];
	size_t n = 0;
	const char *base = split_endpoint(endpoint, host);
	if (!base || call->n_headers + OWN_HEADERS_MAX > SIGV4_HEADERS_MAX)
		return -EINVAL;
	text_reset(url);
	text_add_bytes(url, endpoint->url, (size_t)(base - endpoint->url));
	const size_t path_at = url->len; /* the path that is signed includes the base */
	text_add(url, base);
	/* The path of a request is at least a slash. */
	text_add(url, (call->path[0] || *base) ? call->path : "/");
	int error = url->error;
	ret->signed_s = time_s;
	ret->signed_ns = clock_boot_ns();
	clock_format_amz(ret->signed_s, ret->date);
	if (!error && !call->payload_hash)
		error = sigv4_sha256(&signer->cache, call->body.memory ? call->body.memory : "",
			(size_t)call->body.bytes, ret->payload_hash);
	const char *payload_hash = call->payload_hash ? call->payload_hash : ret->payload_hash;
	headers[n++] = (struct call_header){"host", host};
	headers[n++] = (struct call_header){"x-amz-date", ret->date};
	/* S3 wants the hash as a header, and so does "s3-object-lambda". */
	if (strncmp(endpoint->signing_name, "s3", 2) == 0)
		headers[n++] = (struct call_header){"x-amz-content-sha256", payload_hash};
	if (signer->credentials.session_token)
		headers[n++] = (struct call_header){
			"x-amz-security-token", signer->credentials.session_token};
	for (size_t i = 0; i < call->n_headers; i++)
		headers[n++] = call->headers[i];
	if (!error)
		error = write_lines(&signer->lines, headers, n, ret);
	text_reset(authorization);
	text_add(authorization, "authorization: ");
	if (!error)
		error = sigv4_sign(&signer->cache, &signer->credentials,
			&(const struct sigv4_request){.method = call->method,
				.path = url->data + path_at,
				.query = call->query,
				.headers = headers,
				.n_headers = n,
				.payload_hash = payload_hash,
				.region = endpoint->region,
				.service = endpoint->signing_name,
				.date = ret->date},
			authorization);
	/* The query is appended only now: sigv4 was given the path as the end of this URL. */
	text_add(url, call->query[0] ? "?" : "");
	text_add(url, call->query);
	error = error ? error : url->error;
	if (!error)
		ret->headers[ret->n_headers++] = authorization->data;
	/* This header makes caches on the way forward a read. It is not signed, since proxies may
	 * change it. */
	if (!error && !call->is_write)
		ret->headers[ret->n_headers++] = "cache-control: no-cache";
	return (error && error != -ENOMEM) ? -EINVAL : error;
}

bool call_request_clock_is_off(const struct call_request *request, int64_t date_s)
{
	/* The present time by the clock that the request was signed with. */
	const int64_t now_s =
		request->signed_s + (int64_t)((clock_boot_ns() - request->signed_ns) / NS_PER_S);
	return date_s <= request->signed_s - CLOCK_IS_OFF_S || date_s >= now_s + CLOCK_IS_OFF_S;
}
