#include "http/http_exchange.h"
#include "base/clock.h"
#include "http/http_reply.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEADERS_MAX_BYTES                                                                          \
	(256U << 10) /* less than curl's own limit, which it calls a lost connection */
#define LOOK_NS (10 * NS_PER_MS)

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	exchange->header_bytes += n;
	if (exchange->header_bytes > HEADERS_MAX_BYTES) {
		exchange->error = -EMSGSIZE;
		return 0;
	}
	const bool is_status = n >= 5 && memcmp(line, "HTTP/", 5) == 0;
	http_watch_header(&exchange->watch, is_status, is_status && n > 9 && line[9] != '1');
	if (is_status) { /* perhaps after 100 Continue */
		http_reply_drop_headers(exchange->reply);
		exchange->headers_ended = false;
	} else if (line[0] == '\r' || line[0] == '\n') {
		exchange->headers_ended = true;
	} else {
		http_reply_add_header(exchange->reply, line, n);
	}
	return n;
}

static size_t on_reply_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	text_add_bytes(&exchange->reply->body, bytes, n);
	exchange->error = exchange->reply->body.error;
	return exchange->error ? 0 : n;
}

static size_t on_read(char *buf, size_t size, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	const struct http_body *body = &exchange->request->body;
	uint64_t rest = body->bytes - exchange->body_at;
	if (!rest)
		return 0;
	n = size * n < rest ? size * n : (size_t)rest;
	const uint64_t began_ns = clock_boot_ns();
	long got = body->read(body->arg, buf, n);
	http_watch_waited(&exchange->watch, clock_boot_ns() - began_ns);
	if (got <= 0 || (size_t)got > n) {
		exchange->error = exchange->is_resent ? -ECONNRESET : -EIO;
		return CURL_READFUNC_ABORT;
	}
	exchange->body_at += (uint64_t)got;
	return (size_t)got;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
	struct exchange *exchange = arg;
	const struct http_body *body = &exchange->request->body;
	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > body->bytes)
		return CURL_SEEKFUNC_FAIL;
	exchange->is_resent = true;
	if (body->rewind(body->arg, (uint64_t)offset)) {
		exchange->error = -ECONNRESET;
		return CURL_SEEKFUNC_FAIL;
	}
	exchange->body_at = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* Before each time that the request goes out. */
static int on_send(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct exchange *exchange = arg;
	exchange->is_resent = exchange->is_resent || exchange->is_sent;
	exchange->is_sent = true;
	return CURL_PREREQFUNC_OK;
}

/* Nonzero ends the request. curl calls it at every progress, which is ten times for a small
 * request, and about once a second. */
static int on_progress(void *arg, curl_off_t total_down, curl_off_t downloaded, curl_off_t total_up,
	curl_off_t uploaded)
{
	struct exchange *exchange = arg;
	const struct http_request *request = exchange->request;
	const uint64_t now_ns = clock_boot_ns();
	if (now_ns - exchange->looked_ns < LOOK_NS)
		return 0;
	exchange->looked_ns = now_ns;
	http_watch_look(&exchange->watch, now_ns, downloaded, uploaded);
	if ((request->abandon && request->abandon(request->abandon_arg)) ||
		(request->deadline_ns && now_ns >= request->deadline_ns))
		exchange->error = -ECANCELED;
	else if (http_watch_is_stalled(&exchange->watch, now_ns))
		exchange->error = -ETIMEDOUT;
	return exchange->error != 0;
}

void exchange_set_up(CURL *curl)
{
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_reply_body);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_send);
}

void exchange_attach(struct exchange *exchange, CURL *curl)
{
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, exchange);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_READDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_SEEKDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange);
}
