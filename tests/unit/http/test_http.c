#include "../script_server.h"
#include "base/clock.h"
#include "http/http.h"
#include "http/http_exchange.h"
#include <errno.h>
#include <sys/resource.h>

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static struct http_shared *shared;
static struct http *http;

static int perform(struct http_request request, struct http_reply *ret, struct problem *p)
{
	request.method = request.method ? request.method : "GET";
	request.reply_max_bytes = request.reply_max_bytes ? request.reply_max_bytes : 1000;
	return http_perform(http, &request, ret, p);
}

static void open_handle(uint64_t stall_ms)
{
	struct http_options options = {.stall_timeout_ms = stall_ms};
	CHECK_INT(http_shared_new(&options, &shared), 0);
	CHECK_INT(http_new(shared, &http), 0);
}

static void close_handle(void)
{
	http_free(http);
	http_shared_free(shared);
}

struct source {
	const char *bytes;
	size_t at, n;
	unsigned rewinds;
	int error;         /* of every read */
	int rewind_error;  /* of reads after a rewind */
	unsigned delay_us; /* before every read */
};

static long source_read(void *arg, void *buf, size_t n)
{
	struct source *source = arg;
	if (source->error || (source->rewinds && source->rewind_error))
		return source->error ? source->error : source->rewind_error;
	usleep(source->delay_us);
	n = n < source->n - source->at ? n : source->n - source->at;
	memcpy(buf, source->bytes + source->at, n);
	source->at += n;
	return (long)n;
}

static int source_rewind(void *arg, uint64_t offset)
{
	struct source *source = arg;
	source->at = offset;
	source->rewinds++;
	return 0;
}

static struct http_body body_of(struct source *source, uint64_t bytes)
{
	return (struct http_body){
		.bytes = bytes, .read = source_read, .rewind = source_rewind, .arg = source};
}

static bool has_line(const struct script_request *request, const char *line)
{
	return request->head && strcasestr(request->head, line);
}

/* The bytes on the wire, one request after the other on one connection. */
static void test_requests(void)
{
	struct script_step steps[] = {
		{"HTTP/1.1 200 OK\r\nETag:  \"x\" \r\nX-Empty:\r\nx-twice: 1\r\nX-Twice: 2\r\n"
		 "Content-Length: 5\r\n\r\nhello"},
		{OK_REPLY},
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 77\r\nX-B: 2\r\n\r\n"},
		{OK_REPLY},
		{"HTTP/1.1 204 No Content\r\n\r\n"},
		{OK_REPLY},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"},
	};
	struct script_server server;
	if (!script_start(&server, steps, 7))
		return;
	char url[200];
	snprintf(url, sizeof url, "%s/a/../b//c%%20d?x=1&y=", server.url);
	struct http_reply reply = {0};
	const char *const headers[] = {"X-One: 1", "Content-Type: text/x"};
	CHECK_INT(perform((struct http_request){.url = url, .headers = headers, .n_headers = 1},
			  &reply, NULL),
		0);
	CHECK_INT(reply.status, 200);
	CHECK_STRING(text_string(&reply.body), "hello");
	CHECK_STRING(http_reply_header(&reply, "etag"), "\"x\"");
	CHECK_STRING(http_reply_header(&reply, "x-empty"), "");
	CHECK_STRING(http_reply_header(&reply, "x-twice"), "1");
	CHECK_STRING(http_reply_header(&reply, "x-none"), NULL);

	struct http_body memory = {.bytes = 5, .memory = "data\n"};
	CHECK_INT(perform((struct http_request){.method = "PUT",
				  .url = url,
				  .headers = headers,
				  .n_headers = 2,
				  .body = memory},
			  &reply, NULL),
		0);
	CHECK_INT(reply.body.len, 0);
	CHECK_INT(perform((struct http_request){.method = "HEAD", .url = url}, &reply, NULL), 0);
	CHECK_INT(reply.status, 404);
	CHECK_STRING(http_reply_header(&reply, "x-b"), "2");
	struct source source = {.bytes = "from a file", .n = 11};
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = url, .body = body_of(&source, 8)},
			  &reply, NULL),
		0);
	CHECK_INT(perform((struct http_request){.method = "DELETE", .url = url}, &reply, NULL), 0);
	CHECK_INT(reply.status, 204);
	CHECK_INT(perform((struct http_request){.method = "POST", .url = url}, &reply, NULL), 0);
	CHECK_INT(perform((struct http_request){.url = url}, &reply, NULL), 0);
	CHECK_STRING(text_string(&reply.body), "abcde");
	http_reply_clear(&reply);
	script_stop(&server);

	CHECK_INT(server.n_requests, 7);
	CHECK_INT(server.connections, 1);
	static const char *const lines[] = {"GET", "PUT", "HEAD", "PUT", "DELETE", "POST", "GET"};
	for (size_t i = 0; i < 7; i++) {
		char line[300];
		snprintf(line, sizeof line, "%s /a/../b//c%%20d?x=1&y= HTTP/1.1\r\n", lines[i]);
		CHECK(server.requests[i].head &&
			strncmp(server.requests[i].head, line, strlen(line)) == 0);
		CHECK(!has_line(&server.requests[i], "\r\nAccept:"));
		CHECK(!has_line(&server.requests[i], "\r\nExpect:"));
		CHECK(!has_line(&server.requests[i], "\r\nUser-Agent:"));
		CHECK_INT(has_line(&server.requests[i], "\r\nContent-Type: text/x\r\n"), i == 1);
		CHECK_INT(has_line(&server.requests[i], "\r\nContent-Type:"), i == 1);
		CHECK_INT(has_line(&server.requests[i], "\r\nX-One: 1\r\n"), i < 2);
		CHECK(!has_line(&server.requests[i], "\r\nTransfer-Encoding:"));
	}
	CHECK_STRING(server.requests[1].body, "data\n");
	CHECK_STRING(server.requests[3].body, "from a f"); /* the file grew: not a byte more */
	CHECK(has_line(&server.requests[5], "\r\nContent-Length: 0\r\n"));
	CHECK(!has_line(&server.requests[6], "\r\nContent-Length:"));
	script_clear(&server);
}

/* Replies of a cache, and those that have only passed one. */
static void test_caches(void)
{
	static const struct {
		const char *line, *by;
	} rows[] = {
		{"Age: 1", "age"},
		{"Age: 0", NULL},
		{"X-Cache: HIT from proxy.example", "x-cache"},
		{"X-Cache: MISS, HIT", "x-cache"},
		{"X-Cache: TCP_MEM_HIT from a.example", "x-cache"},
		{"X-Cache: Miss from cloudfront", NULL},
		{"X-Cache: RefreshHit from cloudfront", NULL},
		{"X-Cache-Lookup: HIT from proxy.example:3128", NULL},
		{"X-Cache-Status: HIT", "x-cache-status"},
		{"X-Cache-Status: STALE", "x-cache-status"},
		{"X-Cache-Status: BYPASS", NULL},
		{"X-Proxy-Cache: HIT", "x-proxy-cache"},
		{"CF-Cache-Status: HIT", "cf-cache-status"},
		{"CF-Cache-Status: DYNAMIC", NULL},
		{"Cache-Status: squid.example;hit;detail=match", "cache-status"},
		{"Cache-Status: squid.example;fwd=stale;detail=match", NULL},
		{"Server: nginx", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_reply reply = {0};
		http_reply_begin(&reply, 0);
		http_reply_add_header(&reply, rows[i].line, strlen(rows[i].line));
		CHECK_STRING(http_reply_cached_by(&reply), rows[i].by);
		http_reply_clear(&reply);
	}
}

/* Servers may send what is needed after all metadata. */
static void test_many_headers(void)
{
	char text[4000];
	struct script_step step = {text};
	struct script_server server;
	size_t at = (size_t)snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\n");
	for (size_t i = 0; i < 100; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "x-amz-meta-%zu: v\r\n", i);
	snprintf(text + at, sizeof text - at, "Content-Length: 7\r\n\r\n");
	if (!script_start(&server, &step, 1))
		return;
	struct http_reply reply = {0};
	CHECK_INT(perform((struct http_request){.method = "HEAD", .url = server.url}, &reply, NULL),
		0);
	CHECK_STRING(http_reply_header(&reply, "content-length"), "7");
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
}

/* As many and as long as the server likes: the reply is too long, and no connection was lost. */
static void test_endless_headers(void)
{
	static const struct {
		int lines, bytes;
		const char *between; /* what ends each line */
	} replies[] = {{20000, 1, "\r\n"}, {200, 4000, "\r\n"}, {1, 300000, "\r\n"},
		{70, 4000, "\r\n\r\nHTTP/1.1 103 Early Hints\r\n"}};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		struct text text = TEXT(2U << 20);
		text_addf(&text, "HTTP/1.1 %s\r\n", i < 3 ? "200 OK" : "103 Early Hints");
		for (int n = 0; n < replies[i].lines; n++)
			text_addf(&text, "x-amz-meta-endless: %0*d%s", replies[i].bytes, 0,
				replies[i].between);
		struct script_step step = {text_string(&text), .close = true};
		struct script_server server;
		struct http_reply reply = {0};
		struct problem p = {0};
		if (script_start(&server, &step, 1)) {
			CHECK_INT(perform((struct http_request){.url = server.url}, &reply, &p),
				-EMSGSIZE);
			CHECK(strstr(p.text, "is too long"));
			script_stop(&server);
			script_clear(&server);
		}
		http_reply_clear(&reply);
		text_clear(&text);
	}
}

static void test_large_bodies(void)
{
	struct script_step steps[] = {{OK_REPLY}, {OK_REPLY}};
	struct script_server server;
	if (!script_start(&server, steps, 2))
		return;
	size_t n = (2U << 20) + 17;
	char *bytes = malloc(n);
	if (!CHECK(bytes))
		return;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7 + (i >> 9));
	struct http_reply reply = {0};
	struct http_body memory = {.bytes = n, .memory = bytes};
	CHECK_INT(perform((struct http_request){.method = "PUT", .url = server.url, .body = memory},
			  &reply, NULL),
		0);
	CHECK_STRING(http_reply_header(&reply, "x-interim"), NULL);
	struct source source = {.bytes = bytes, .n = n};
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&source, n)},
			  &reply, NULL),
		0);
	http_reply_clear(&reply);
	script_stop(&server);
	for (size_t i = 0; i < 2; i++) {
		CHECK(has_line(&server.requests[i], "\r\nExpect: 100-continue\r\n"));
		CHECK(server.requests[i].body_bytes == n &&
			memcmp(server.requests[i].body, bytes, n) == 0);
	}
	free(bytes);
	script_clear(&server);
}

/* A kept connection that the server closes: curl sends the request again by itself, body and all.
 */
static void test_silent_resend(void)
{
	struct script_step steps[] = {{OK_REPLY}, {NULL, .close = true}, {OK_REPLY}};
	struct script_server server;
	if (!script_start(&server, steps, 3))
		return;
	struct http_reply reply = {0};
	struct source source = {.bytes = "again", .n = 5};
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, NULL), 0);
	CHECK(!reply.is_resent);
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&source, 5)},
			  &reply, NULL),
		0);
	CHECK(reply.is_resent);
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 3);
	CHECK_STRING(server.requests[1].body, "again");
	CHECK_STRING(server.requests[2].body, "again");
	CHECK_INT(source.rewinds, 1);
	script_clear(&server);
}

/* As above, but the body cannot be read again: the first sending may have been applied. */
static void test_resend_unreadable(void)
{
	struct script_step steps[] = {{OK_REPLY}, {NULL, .close = true}, {OK_REPLY}};
	struct script_server server;
	if (!script_start(&server, steps, 3))
		return;
	struct http_reply reply = {0};
	struct source source = {.bytes = "again", .n = 5, .rewind_error = -EIO};
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, NULL), 0);
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&source, 5)},
			  &reply, NULL),
		-ECONNRESET);
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 2);
	CHECK_INT(source.rewinds, 1);
	script_clear(&server);
}

/* As above, but nobody listens any more: it was sent all the same, so it must not count as "not
 * connected". */
static void test_resend_without_server(void)
{
	struct script_step steps[] = {{OK_REPLY}, {NULL, .close = true, .gone = true}};
	struct script_server server;
	if (!script_start(&server, steps, 2))
		return;
	struct http_reply reply = {0};
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, NULL), 0);
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, NULL), -ECONNRESET);
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, NULL), -ECONNREFUSED);
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 2);
	script_clear(&server);
}

/* A new connection is for one request. When curl finds that the server has closed the one before
 * it, and closes its socket, the handle keeps the socket of the other one. */
static void test_two_connections(void)
{
	struct script_step steps[] = {{OK_REPLY}, {OK_REPLY}, {OK_REPLY}};
	struct script_server server;
	struct http_reply reply = {0};
	if (!script_start(&server, steps, 3))
		return;
	for (size_t i = 0; i < 3; i++)
		CHECK_INT(
			perform((struct http_request){.url = server.url, .new_connection = i == 1},
				&reply, NULL),
			0);
	struct sockaddr_in peer = {0};
	socklen_t size = sizeof peer;
	CHECK_INT(getpeername(exchange_socket(http), (struct sockaddr *)&peer, &size), 0);
	CHECK_INT(ntohs(peer.sin_port), strtol(strrchr(server.url, ':') + 1, NULL, 10));
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.connections, 2);
	CHECK_INT(server.requests[2].connection, 2);
	script_clear(&server);
}

/* Listens at ::1 and at 127.0.0.1, on one port, where one connection fills each queue. False if
 * this host has not got both. */
static bool listen_twice(int listeners[static 2], int fillers[static 2])
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof six;
	bool ready = true;
	for (int i = 0; i < 2; i++) {
		struct sockaddr *address = i ? (void *)&four : (void *)&six;
		const socklen_t bytes = i ? sizeof four : sizeof six;
		listeners[i] = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		fillers[i] = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ready = ready && !bind(listeners[i], address, bytes) && !listen(listeners[i], 0);
		ready = ready && !getsockname(listeners[0], (void *)&six, &size);
		four.sin_port = six.sin6_port;
		ready = ready && !connect(fillers[i], address, bytes);
	}
	return ready;
}

/* Empties the queues, and answers at the address that connects first. */
static void *answer_late(void *arg)
{
	const int *listeners = arg;
	char buf[4096];
	usleep(500000); /* curl tries the second address after 200 ms, and the kernel after 1 s */
	for (int i = 0; i < 2; i++)
		close(accept(listeners[i], NULL, NULL));
	struct pollfd fds[] = {
		{.fd = listeners[0], .events = POLLIN}, {.fd = listeners[1], .events = POLLIN}};
	if (poll(fds, 2, 10000) <= 0)
		return NULL;
	const int fd = accept(listeners[fds[0].revents ? 0 : 1], NULL, NULL);
	if (recv(fd, buf, sizeof buf, 0) > 0)
		send(fd, OK_REPLY, strlen(OK_REPLY), MSG_NOSIGNAL);
	recv(fd, buf, sizeof buf, 0); /* until the handle is freed */
	close(fd);
	return NULL;
}

/* curl connects to both addresses of a slow host, and takes the first one after it has opened a
 * socket for the second one. */
static void test_two_addresses(void)
{
	int listeners[2], fillers[2];
	struct sockaddr_in6 own = {0};
	socklen_t size = sizeof own;
	char url[64];
	pthread_t thread;
	struct http_reply reply = {0};
	open_handle(0);
	if (listen_twice(listeners, fillers)) {
		getsockname(listeners[0], (void *)&own, &size);
		snprintf(url, sizeof url, "http://localhost:%d/", ntohs(own.sin6_port));
		pthread_create(&thread, NULL, answer_late, listeners);
		CHECK_INT(perform((struct http_request){.url = url}, &reply, NULL), 0);
		size = sizeof own;
		CHECK_INT(getpeername(exchange_socket(http), (void *)&own, &size), 0);
		close_handle();
		pthread_join(thread, NULL);
	} else {
		close_handle();
	}
	for (int i = 0; i < 2; i++) {
		close(listeners[i]);
		close(fillers[i]);
	}
	http_reply_clear(&reply);
}

static void add_moved(void *arg, uint64_t n)
{
	*(uint64_t *)arg += n;
}

/* Whatever the reply, the bytes of a small body have left. */
static void test_broken_replies(void)
{
	static const struct {
		struct script_step step;
		int want;
		const char *text; /* begins with, after the host */
	} rows[] = {
		{{NULL, .close = true}, -ECONNRESET, "the connection to 127.0.0.1:"},
		{{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", .close = true}, -ECONNRESET,
			"the connection to 127.0.0.1:"},
		{{"HTTP/1.1 200 OK\r\nContent-", .close = true}, -ECONNRESET,
			"the connection to 127.0.0.1:"},
		{{"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-", .close = true},
			-ECONNRESET, "the connection to 127.0.0.1:"},
		{{"garbage garbage\r\n\r\n", .close = true}, -ECONNRESET,
			"the connection to 127.0.0.1:"},
		{{"HTTP/1.1 20x what\r\n\r\n", .close = true}, -ECONNRESET,
			"the connection to 127.0.0.1:"},
		{{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", .close = true},
			-ECONNRESET, "the connection to 127.0.0.1:"},
		{{"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n0123456789ab", .close = true},
			-EMSGSIZE, "the reply of 127.0.0.1:"},
		{{NULL}, -ETIMEDOUT, "the transfer with 127.0.0.1:"}, /* never answers */
		{{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"}, -ETIMEDOUT,
			"the transfer with 127.0.0.1:"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_server server;
		if (!script_start(&server, &rows[i].step, 1))
			return;
		struct http_reply reply = {0};
		struct problem p = {0};
		uint64_t moved = 0;
		const struct http_body body = {
			.bytes = 5, .memory = "data\n", .moved = add_moved, .moved_arg = &moved};
		int error = perform((struct http_request){.method = "PUT",
					    .url = server.url,
					    .body = body,
					    .reply_max_bytes = 11},
			&reply, &p);
		if (!CHECK_INT(error, rows[i].want) || !CHECK_INT(moved, 5) ||
			!CHECK(strncmp(p.text, rows[i].text, strlen(rows[i].text)) == 0))
			fprintf(stderr, "\trow %zu: %s\n", i, p.text);
		http_reply_clear(&reply);
		script_stop(&server);
		script_clear(&server);
	}
}

/* curl ends it early: the handle must be fit for the next request. */
static void test_body_errors(void)
{
	struct script_step steps[] = {{OK_REPLY}, {OK_REPLY}, {OK_REPLY}};
	struct script_server server;
	if (!script_start(&server, steps, 3))
		return;
	struct http_reply reply = {0};
	struct problem p = {0};
	struct source broken = {.error = -EBADF}, small = {.bytes = "abc", .n = 3};
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&broken, 5)},
			  &reply, &p),
		-EIO);
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&small, 5)},
			  &reply, &p),
		-EIO);
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, &p), 0);
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 1); /* neither of the two was a whole request */
	script_clear(&server);
}

/* Time that a body was not there to be sent is not the peer's silence, which is 100 ms. */
static void test_slow_body(void)
{
	struct script_step steps[] = {{OK_REPLY}};
	struct script_server server;
	if (!script_start(&server, steps, 1))
		return;
	struct http_reply reply = {0};
	struct problem p = {0};
	struct source slow = {.bytes = "abc", .n = 3, .delay_us = 300000};
	CHECK_INT(perform(
			  (struct http_request){
				  .method = "PUT", .url = server.url, .body = body_of(&slow, 3)},
			  &reply, &p),
		0);
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
}

static bool yes(void *arg)
{
	return ++*(unsigned *)arg > 1;
}

static void test_limits(void)
{
	struct script_step steps[] = {{NULL}, {OK_REPLY}}, silent = {NULL};
	struct script_server server;
	if (!script_start(&server, steps, 2))
		return;
	struct http_reply reply = {0};
	struct problem p = {0};
	uint64_t start_ns = clock_boot_ns();
	struct http_request request = {
		.url = server.url, .deadline_ns = start_ns + 500 * NS_PER_MS};
	CHECK_INT(perform(request, &reply, &p), -ECANCELED);
	uint64_t took_ns = clock_boot_ns() - start_ns;
	CHECK(took_ns >= 500 * NS_PER_MS && took_ns < 20 * NS_PER_S);
	CHECK(strstr(p.text, "did not answer in time"));
	/* Already over: nothing is sent. */
	CHECK_INT(perform(request, &reply, &p), -ECANCELED);
	CHECK_INT(perform((struct http_request){.url = server.url, .new_connection = true}, &reply,
			  &p),
		0);
	script_stop(&server);
	CHECK_INT(server.n_requests, 2);
	script_clear(&server);

	if (!script_start(&server, &silent, 1))
		return;
	unsigned asked = 0;
	request = (struct http_request){.url = server.url, .abandon = yes, .abandon_arg = &asked};
	CHECK_INT(perform(request, &reply, &p), -ECANCELED);
	CHECK(strstr(p.text, "given up"));
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
}

static void test_unreachable(void)
{
	static const struct {
		const char *url;
		int want;
		const char *text;
	} rows[] = {
		{"http://user:secret@127.0.0.1:1/k?sig=secret", -ECONNREFUSED,
			"cannot connect to 127.0.0.1:1 ("},
		{"http://no-such-host.invalid/", -ENOENT,
			"cannot resolve the name of no-such-host.invalid"},
		{"file:///etc/passwd", -EINVAL, "cannot send a request to "},
		{"http://127.0.0.1:99999/", -EINVAL, "cannot send a request to "},
		{"http://ho\x1bst/", -EINVAL, "cannot send a request to ho\\x1bst"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_reply reply = {0};
		struct problem p = {0};
		CHECK_INT(perform((struct http_request){.url = rows[i].url}, &reply, &p),
			rows[i].want);
		if (!CHECK(strncmp(p.text, rows[i].text, strlen(rows[i].text)) == 0) ||
			!CHECK(!strstr(p.text, "secret")))
			fprintf(stderr, "\trow %zu: %s\n", i, p.text);
		http_reply_clear(&reply);
	}
}

/* A server that speaks no TLS, and a CA bundle that is none. */
static void test_tls_errors(void)
{
	struct script_step steps[] = {{"HTTP/1.1 400 Bad Request\r\n\r\n", .close = true}};
	struct script_server server;
	if (!script_start(&server, steps, 1))
		return;
	char url[100];
	snprintf(url, sizeof url, "https%s/", server.url + 4);
	struct http_reply reply = {0};
	struct problem p = {0};
	/* The server waits for the end of a ClientHello's headers. */
	struct http_request request = {
		.url = url, .deadline_ns = clock_boot_ns() + 500 * NS_PER_MS};
	CHECK_INT(perform(request, &reply, &p), -ECANCELED);
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
	close_handle();

	struct http_options options = {.ca_bundle = "/dev/null"};
	CHECK_INT(http_shared_new(&options, &shared), 0);
	CHECK_INT(http_new(shared, &http), 0);
	if (!script_start(&server, steps, 1))
		return;
	snprintf(url, sizeof url, "https%s/", server.url + 4);
	CHECK_INT(perform((struct http_request){.url = url}, &reply, &p), -EPROTO);
	CHECK_STRING(p.text, "the CA bundle /dev/null cannot be used: it must be a readable file "
			     "of certificates in PEM form");
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
}

/* A connection took the last file descriptor, and the CA bundle is to be opened. Once there are
 * some again, this is forgotten. */
static void test_no_descriptor_for_trust(void)
{
	struct script_server server;
	struct rlimit limit;
	struct http_reply reply = {0};
	struct problem p = {0};
	char url[100];
	int fds[200];
	size_t n = 0;
	if (!script_start(&server, NULL, 0))
		return;
	snprintf(url, sizeof url, "https%s/", server.url + 4);
	perform((struct http_request){.url = "http://127.0.0.1:1/"}, &reply, &p); /* curl's own */
	getrlimit(RLIMIT_NOFILE, &limit);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, limit.rlim_max});
	while (n < 200 && (fds[n] = dup(0)) >= 0)
		n++;
	close(fds[--n]);
	CHECK_INT(perform((struct http_request){.url = url}, &reply, &p), -EMFILE);
	CHECK(strstr(p.text, "no file descriptor is left"));
	while (n)
		close(fds[--n]);
	setrlimit(RLIMIT_NOFILE, &limit);
	/* The next request has a reason of its own. */
	CHECK_INT(perform((struct http_request){.url = "http://127.0.0.1:1/"}, &reply, &p),
		-ECONNREFUSED);
	CHECK(!strstr(p.text, "descriptor"));
	http_reply_clear(&reply);
	script_stop(&server);
	script_clear(&server);
}

static void test_no_list_of_certificates(void)
{
	const struct http_request request = {.url = "https://h/"};
	struct problem p = {0};
	http->exchange = (struct exchange){.request = &request};
	CHECK_INT(http_explain(http, CURLE_SSL_CACERT_BADFILE, &p), -EPROTO);
	CHECK(strstr(p.text, "this host's list of CA certificates"));
	CHECK(strstr(p.text, "install ca-certificates"));
}

/* A proxy that wants a password has seen a CONNECT, the server nothing. */
static void test_proxy_refuses(void)
{
	struct script_step steps[] = {
		{"HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n", .close = true},
		{"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", .close = true}};
	struct script_server server;
	if (!script_start(&server, steps, 2))
		return;
	struct http_reply reply = {0};
	struct problem p = {0};
	struct http_body body = {.bytes = 5, .memory = "data\n"};
	struct http_request request = {.method = "PUT", .url = "https://s3.test/k", .body = body};
	setenv("https_proxy", server.url, 1);
	CHECK_INT(perform(request, &reply, &p), -EPROTO);
	CHECK(strstr(p.text, "the proxy for s3.test requires a user and a password"));
	CHECK_INT(perform(request, &reply, &p), -ECONNREFUSED);
	unsetenv("https_proxy");
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 2);
	script_clear(&server);
}

/* Requests to the host's own services, such as for the credentials of its instance, use no proxy.
 */
static void test_without_proxy(void)
{
	struct script_step steps[] = {{OK_REPLY, .close = true}};
	struct script_server server;
	struct http_reply reply = {0};
	struct problem p = {0};
	if (!script_start(&server, steps, 1))
		return;
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, &p), -ECONNREFUSED);
	CHECK_INT(
		perform((struct http_request){.url = server.url, .no_proxy = true}, &reply, &p), 0);
	CHECK_INT(reply.status, 200);
	/* The next request asks the proxy again. */
	CHECK_INT(perform((struct http_request){.url = server.url}, &reply, &p), -ECONNREFUSED);
	unsetenv("http_proxy");
	http_reply_clear(&reply);
	script_stop(&server);
	CHECK_INT(server.n_requests, 1);
	script_clear(&server);
}

int main(void)
{
	static const char *const proxies[] = {
		"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy"};
	for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++)
		unsetenv(proxies[i]);
	CHECK_INT(http_global_init(), 0);
	CHECK_INT(http_global_init(), 0);
	open_handle(100);
	test_broken_replies();
	test_slow_body();
	close_handle();
	test_two_addresses();
	open_handle(0);
	test_requests();
	test_caches();
	test_many_headers();
	test_endless_headers();
	test_large_bodies();
	test_silent_resend();
	test_resend_unreadable();
	test_resend_without_server();
	test_two_connections();
	test_body_errors();
	test_limits();
	test_unreachable();
	test_no_list_of_certificates();
	test_tls_errors();
	test_proxy_refuses();
	test_without_proxy();
	test_no_descriptor_for_trust();
	close_handle();
	return check_result();
}
