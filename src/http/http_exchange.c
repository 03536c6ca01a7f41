/* One request and its reply in curl's callbacks: the bytes that have moved, a stalled peer, and the
 * incoming reply. http.c begins and ends an exchange. */
#include "http/http_exchange.h"
#include "base/clock.h"
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define KEPT_HEADERS_MAX_BYTES (64U << 10)
#define HEADERS_USUAL_BYTES    1000 /* room for the headers of most replies */
#define BLANKS                 " \t\r\n"

void http_reply_begin(struct http_reply *reply, size_t max_bytes)
{
	text_reset(&reply->body);
	text_reset(&reply->headers);
	reply->n_headers = 0;
	reply->body.max = max_bytes;
	reply->headers.max = KEPT_HEADERS_MAX_BYTES;
	text_reserve(&reply->headers, HEADERS_USUAL_BYTES);
	reply->status = 0;
	reply->is_resent = false;
}

void http_reply_clear(struct http_reply *reply)
{
	text_wipe(&reply->body);
	text_clear(&reply->headers);
	*reply = (struct http_reply){0};
}

const char *http_reply_header(const struct http_reply *reply, const char *name)
{
	const char *kept_name = text_string(&reply->headers);
	for (size_t i = 0; i < reply->n_headers; i++) {
		const char *value = kept_name + strlen(kept_name) + 1;
		if (strcmp(kept_name, name) == 0)
			return value;
		kept_name = value + strlen(value) + 1;
	}
	return NULL;
}

/* Headers by which a cache reports that it has answered without contacting the server: the value
 * contains `hit`, such as "Hit from cloudfront". A value that also contains `unless` says that the
 * cache has contacted the server after all: "RefreshHit from cloudfront", or "example; hit;
 * fwd=stale" in Cache-Status (RFC 9211). */
static const struct {
	const char *header, *hit, *unless;
} caches[] = {
	{"x-cache", "hit", "refresh"},
	{"x-cache-status", "hit", "refresh"},
	{"x-cache-status", "stale", "refresh"},
	{"x-proxy-cache", "hit", "refresh"},
	{"cf-cache-status", "hit", "refresh"},
	{"cache-status", "hit", "fwd="},
};

const char *http_reply_cached_by(const struct http_reply *reply)
{
	uint64_t age_s;
	/* Some caches add "Age: 0" to a reply that they have just fetched. */
	if (decimal_read(http_reply_header(reply, "age"), UINT64_MAX, &age_s) && age_s)
		return "age";
	for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
		const char *value = http_reply_header(reply, caches[i].header);
		if (value && strcasestr(value, caches[i].hit) &&
			!strcasestr(value, caches[i].unless))
			return caches[i].header;
	}
	return NULL;
}

void http_reply_add_header(struct http_reply *reply, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	if (!colon || reply->n_headers == HTTP_HEADERS_MAX || memchr(line, 0, n))
		return;
	struct text *kept = &reply->headers;
	const size_t name_at = kept->len, name_bytes = (size_t)(colon - line);
	const char *value = colon + 1, *end = line + n;
	while (value < end && strchr(BLANKS, *value))
		value++;
	while (end > value && strchr(BLANKS, end[-1]))
		end--;
	const size_t value_bytes = (size_t)(end - value);
	/* A NUL ends the name, and another one the value. */
	if (name_bytes + 1 + value_bytes + 1 > kept->max - kept->len)
		return;
	text_add_bytes(kept, line, name_bytes);
	text_add_char(kept, 0);
	text_add_bytes(kept, value, value_bytes);
	text_add_char(kept, 0);
	if (kept->error) /* http_perform() checks it */
		return;
	for (char *c = kept->data + name_at; *c; c++)
		*c = (*c >= 'A' && *c <= 'Z') ? (char)(*c - 'A' + 'a') : *c;
	reply->n_headers++;
}

curl_socket_t exchange_socket(const struct http *http)
{
	/* curl tries two addresses of a host at once, and either may answer. It says which socket
	 * it uses only after the request, but the port at once. Another file that has got the
	 * number of a closed socket has not got its port. */
	long port = 0;
	curl_easy_getinfo(http->curl, CURLINFO_LOCAL_PORT, &port);
	for (unsigned i = 0; port && i < HTTP_SOCKETS && i < http->n_sockets; i++) {
		union {
			struct sockaddr any;
			struct sockaddr_in four;
			struct sockaddr_in6 six;
		} local = {0};
		socklen_t size = sizeof local;
		if (getsockname(http->sockets[i], &local.any, &size))
			continue;
		const bool is_six = local.any.sa_family == AF_INET6;
		if (ntohs(is_six ? local.six.sin6_port : local.four.sin_port) == port)
			return http->sockets[i];
	}
	return CURL_SOCKET_BAD;
}

/* the time between two checks of the progress of a large body */
#define BODY_CHECK_NS (100 * NS_PER_MS)

/* Sets *ret_bytes to the number of bytes that curl has written and that still wait in this host's
 * socket. curl counts them as sent, but over a slow line that many connections share, the socket
 * may need longer to send them than the stall timeout.
 *
 * Returns false if the connection is gone, so that it is unknown how much arrived. */
static bool count_waiting_bytes(struct http *http, curl_off_t *ret_bytes)
{
	const curl_socket_t fd = exchange_socket(http);
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	int waiting = 0;
	*ret_bytes = 0;
	if (fd == CURL_SOCKET_BAD)
		/* Before there is a socket, no bytes are waiting. If the socket is gone, the
		 * connection is, too. */
		return !http->exchange.had_socket;
	http->exchange.had_socket = true;
	if (!ioctl(fd, SIOCOUTQ, &waiting) && waiting > 0)
		*ret_bytes = waiting;
	/* If the state cannot be read, the connection counts as alive. */
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) || info.tcpi_state != TCP_CLOSE;
}

void exchange_report_moved(struct exchange *exchange, uint64_t bytes)
{
	const struct http_body *body = &exchange->request->body;
	/* curl counts from 0 again when it sends the body again. */
	const uint64_t before = bytes < exchange->reported_bytes ? 0 : exchange->reported_bytes;
	exchange->reported_bytes = bytes;
	if (body->moved && bytes > before)
		body->moved(body->moved_arg, bytes - before);
}

/* Notes the progress since the last check, by curl's counts. A large body is checked only every
 * BODY_CHECK_NS, since that takes system calls, and the check also calls body.moved(). */
static void note_progress(
	struct http *http, uint64_t now_ns, curl_off_t downloaded, curl_off_t uploaded)
{
	struct exchange *exchange = &http->exchange;
	if (exchange->has_header)
		exchange->last_moved_ns = now_ns;
	exchange->has_header = false;
	if (exchange->request->body.bytes > HTTP_SMALL_BODY_BYTES) {
		curl_off_t waiting;
		if (now_ns - exchange->noted_ns < BODY_CHECK_NS)
			return;
		/* If the connection is gone, the bytes that curl has counted may never have left,
		 * so nothing is noted. */
		if (!count_waiting_bytes(http, &waiting))
			return;
		uploaded = uploaded > waiting ? uploaded - waiting : 0;
		exchange_report_moved(exchange, (uint64_t)uploaded);
	}
	if (uploaded != exchange->uploaded)
		exchange->body_taken_ns = now_ns;
	if (uploaded != exchange->uploaded || downloaded != exchange->downloaded)
		exchange->last_moved_ns = now_ns;
	exchange->uploaded = uploaded;
	exchange->downloaded = downloaded;
	exchange->noted_ns = now_ns;
}

bool exchange_is_stalled(const struct http *http, uint64_t now_ns)
{
	const struct exchange *exchange = &http->exchange;
	const uint64_t body_bytes = exchange->request->body.bytes;
	const bool has_large_body = body_bytes > HTTP_SMALL_BODY_BYTES;
	const bool has_taken_all = (uint64_t)exchange->uploaded >= body_bytes;
	/* Once the peer has taken a large body, or has begun to reply before that, the whole reply
	 * must come within the timeout. Progress of the reply does not extend it. */
	const bool is_reply_due = has_large_body && (has_taken_all || exchange->reply_has_begun);
	const uint64_t since_ns = is_reply_due ? exchange->body_taken_ns : exchange->last_moved_ns;
	return now_ns - since_ns >= http->shared->stall_timeout_ns;
}

/* This limit is lower than curl's own, since curl reports longer headers as a lost connection. */
#define HEADERS_MAX_BYTES (256U << 10)
#define CHECK_NS          (10 * NS_PER_MS) /* the time between two checks of on_progress() */

/* curl calls this for each line of the headers, which has n bytes, and for the empty line at their
 * end. `size` is always 1. If on_header() or on_reply_body() returns less than n, the request ends.
 */
static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	exchange->header_bytes += n;
	if (exchange->header_bytes > HEADERS_MAX_BYTES) {
		exchange->error = -EMSGSIZE;
		return 0;
	}
	exchange->has_header = true;
	if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		/* A status line begins a reply, so the headers of an interim reply before it, such
		 * as 100 Continue, are dropped. line[9] is the first digit of the status. */
		exchange->reply_has_begun = n > 9 && line[9] != '1';
		text_reset(&exchange->reply->headers);
		exchange->reply->n_headers = 0;
		exchange->headers_ended = false;
	} else if (line[0] == '\r' || line[0] == '\n') {
		exchange->headers_ended = true;
	} else {
		http_reply_add_header(exchange->reply, line, n);
	}
	return n;
}

/* Keeps n more bytes of the reply's body. */
static size_t on_reply_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct exchange *exchange = arg;
	text_add_bytes(&exchange->reply->body, bytes, n);
	exchange->error = exchange->reply->body.error; /* 0, or -EMSGSIZE or -ENOMEM */
	return exchange->error ? 0 : n;
}

/* Gives curl the next bytes of the body, and 0 after its end. Only used for a body with
 * body.read(). */
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
	/* The time that the read took does not count as silence, since it is not the peer's fault.
	 * So both times from which exchange_is_stalled() counts are moved forward by it. */
	const uint64_t waited_ns = clock_boot_ns() - began_ns;
	exchange->last_moved_ns += waited_ns;
	exchange->body_taken_ns += waited_ns;
	if (got <= 0 || (size_t)got > n) {
		/* -EIO would mean that the request was not applied, which is unknown if it was sent
		 * before. */
		exchange->error = exchange->is_resent ? -ECONNRESET : -EIO;
		return CURL_READFUNC_ABORT;
	}
	exchange->body_at += (uint64_t)got;
	return (size_t)got;
}

/* curl calls this before it sends the body, or some of it, again. Never for a body in memory. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
	struct exchange *exchange = arg;
	const struct http_body *body = &exchange->request->body;
	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > body->bytes)
		return CURL_SEEKFUNC_FAIL;
	if (body->rewind(body->arg, (uint64_t)offset)) {
		/* Not -EIO, since the request was sent before and may have been applied. */
		exchange->error = -ECONNRESET;
		return CURL_SEEKFUNC_FAIL;
	}
	exchange->body_at = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* curl calls this right before it sends the request, each time that it sends it. */
static int on_send(void *arg, char *ip, char *local_ip, int port, int local_port)
{
	struct exchange *exchange = arg;
	exchange->is_resent = exchange->is_resent || exchange->is_sent;
	exchange->is_sent = true;
	return CURL_PREREQFUNC_OK;
}

/* Ends the request, by returning nonzero, if it is abandoned, late or stalled. curl calls this some
 * ten times for a small request, and at least about once a second, but a check every CHECK_NS is
 * enough. */
static int on_progress(void *arg, curl_off_t total_down, curl_off_t downloaded, curl_off_t total_up,
	curl_off_t uploaded)
{
	struct http *http = arg;
	struct exchange *exchange = &http->exchange;
	const struct http_request *request = exchange->request;
	const uint64_t now_ns = clock_boot_ns();
	if (now_ns - exchange->checked_ns < CHECK_NS)
		return 0;
	exchange->checked_ns = now_ns;
	note_progress(http, now_ns, downloaded, uploaded);
	const bool is_abandoned = request->abandon && request->abandon(request->abandon_arg);
	const bool is_late = request->deadline_ns && now_ns >= request->deadline_ns;
	if (is_abandoned || is_late)
		exchange->error = -ECANCELED;
	else if (exchange_is_stalled(http, now_ns))
		exchange->error = -ETIMEDOUT;
	return exchange->error != 0;
}

void exchange_set_up(struct http *http)
{
	CURL *curl = http->curl;
	struct exchange *exchange = &http->exchange;
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, http);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_reply_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(curl, CURLOPT_READDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(curl, CURLOPT_SEEKDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_send);
	curl_easy_setopt(curl, CURLOPT_PREREQDATA, exchange);
}
