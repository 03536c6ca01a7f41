/* HTTP over libcurl: the shared state of all handles, one handle, and one request. The callbacks of
 * curl are in http_exchange.c, and http_problem.c explains a missing reply. */
#include "http/http.h"
#include "base/clock.h"
#include "http/http_exchange.h"
#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

static bool is_curl_ready;

static void make_curl_ready(void)
{
	struct sigaction now;
	/* With CURLOPT_NOSIGNAL curl does not do this itself. */
	if (!sigaction(SIGPIPE, NULL, &now) && now.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
	is_curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

int http_global_init(void)
{
	static uv_once_t once = UV_ONCE_INIT;
	uv_once(&once, make_curl_ready);
	return is_curl_ready ? 0 : -ENOTSUP;
}

/* curl calls lock() and unlock() to guard the shared state. Each kind of data has a mutex of its
 * own, whether the access is to read or to write. */
static void lock(CURL *curl, curl_lock_data data, curl_lock_access access, void *arg)
{
	uv_mutex_lock(&((struct http_shared *)arg)->locks[data]);
}

static void unlock(CURL *curl, curl_lock_data data, void *arg)
{
	uv_mutex_unlock(&((struct http_shared *)arg)->locks[data]);
}

int http_shared_new(const struct http_options *options, struct http_shared **ret)
{
	struct http_shared *shared = calloc(1, sizeof *shared);
	if (!shared)
		return -ENOMEM;
	for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++)
		uv_mutex_init(&shared->locks[i]);
	uv_mutex_init(&shared->trust_mutex);
	uint64_t stall_ms = options->stall_timeout_ms;
	shared->stall_timeout_ns = (stall_ms ? stall_ms : 30000) * NS_PER_MS;
	shared->upload_buffer_bytes =
		options->upload_buffer_bytes ? options->upload_buffer_bytes : 64U << 10;
	shared->share = curl_share_init();
	shared->ca_bundle = options->ca_bundle ? strdup(options->ca_bundle) : NULL;
	if ((options->ca_bundle && !shared->ca_bundle) || !shared->share) {
		http_shared_free(shared);
		return -ENOMEM;
	}
	curl_share_setopt(shared->share, CURLSHOPT_LOCKFUNC, lock);
	curl_share_setopt(shared->share, CURLSHOPT_UNLOCKFUNC, unlock);
	curl_share_setopt(shared->share, CURLSHOPT_USERDATA, shared);
	curl_share_setopt(shared->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_DNS);
	curl_share_setopt(shared->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	*ret = shared;
	return 0;
}

void http_shared_free(struct http_shared *shared)
{
	if (!shared)
		return;
	curl_share_cleanup(shared->share);
	for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++)
		uv_mutex_destroy(&shared->locks[i]);
	uv_mutex_destroy(&shared->trust_mutex);
	X509_STORE_free(shared->trust);
	free(shared->ca_bundle);
	free(shared);
}

#define REQUEST_HEADERS_MAX 100
/* Each of these lines stops curl from adding a header of this name by itself. "Expect:" is the last
 * one, since list_headers() omits it before a large body. */
static const char *const unwanted_headers[] = {"Accept:", "Content-Type:", "Expect:"};
enum { UNWANTED_HEADERS = sizeof unwanted_headers / sizeof *unwanted_headers };
#define HEADER_LINES_MAX (UNWANTED_HEADERS + REQUEST_HEADERS_MAX)
/* curl sends "Expect: 100-continue" before a body of this size, so that the server can refuse the
 * request before the body is on its way. */
#define EXPECT_MIN_BYTES (1U << 20)
#define HEADERS_BYTES    (8U << 10)  /* room for the headers in the send buffer */
#define BUFFER_MIN_BYTES (16U << 10) /* the least size of curl's buffers */
/* After a request with a body of this size or more, curl's send buffer is freed. */
#define DROP_BUFFER_BYTES (1U << 20)

/* Opens a socket as curl itself does, except that child processes do not inherit it. Notes it for
 * exchange_socket(), and an error for http_explain(). */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http *http = arg;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd < 0)
		http->socket_error = -errno;
	else
		http->sockets[http->n_sockets++ % HTTP_SOCKETS] = fd;
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

int http_new(struct http_shared *shared, struct http **ret)
{
	struct http *http = calloc(1, sizeof *http);
	CURL *curl = http ? curl_easy_init() : NULL;
	if (!curl) {
		free(http);
		return -ENOMEM;
	}
	*http = (struct http){.shared = shared, .curl = curl};
	/* The options that are the same for every request. */
	curl_easy_setopt(curl, CURLOPT_SHARE, shared->share);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error_text);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	/* A key may contain "/../", which curl would remove after the path was signed. */
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	/* Keeps the headers of a proxy's answer to CONNECT out of the server's reply. */
	curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, 30L);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, 15L);
	/* Spreads our connections over the addresses of S3's name: each takes any of them, and
	 * after 5 s the name is resolved again. */
	curl_easy_setopt(curl, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
	curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, 5L);
	/* A deadline or a stop does not wait for a name server: curl abandons its resolver thread,
	 * which cannot be ended. */
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 10L); /* for the name, TCP and TLS */
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, http);
	http_trust_apply(http);
	exchange_set_up(http);
	*ret = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	free(http);
}

/* Returns the size of curl's send buffer for a body in memory. curl allocates the buffer for each
 * request, so it is no larger than the headers and the body need. */
static size_t send_buffer_bytes(const struct http_body *body, size_t max_bytes)
{
	const uint64_t needed_bytes = HEADERS_BYTES + body->bytes;
	if (needed_bytes > max_bytes)
		return max_bytes;
	return needed_bytes > BUFFER_MIN_BYTES ? (size_t)needed_bytes : BUFFER_MIN_BYTES;
}

/* Sets the options for sending this body, and resets those of the previous request. A body in
 * memory is given to curl as "post fields", since curl then sends headers and body in one
 * send(). */
static void set_body(
	CURL *curl, const char *method, const struct http_body *body, size_t buffer_max_bytes)
{
	const bool is_read = body->bytes && !body->memory; /* the body comes from body->read() */
	/* A PUT or POST has a Content-Length even without a body. */
	bool has_length = body->bytes || strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0;
	/* As long as old post fields are set, curl 7.88 does not rewind an upload before it sends
	 * the body again. HTTPGET undoes NOBODY and UPLOAD. */
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	if (strcmp(method, "HEAD") == 0) {
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	} else if (is_read) {
		curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)body->bytes);
	} else if (has_length) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->bytes);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->bytes ? body->memory : "");
	}
	/* The options above also set a method; this one counts. */
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
	const size_t buffer_bytes =
		is_read ? buffer_max_bytes : send_buffer_bytes(body, buffer_max_bytes);
	curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)buffer_bytes);
}

/* Links ret_nodes to curl's list of the header lines, without copying the lines. First come the
 * unwanted_headers; the request may have a header of the same name after them. Returns 0, or
 * -EINVAL if the request has too many headers. */
static int list_headers(
	const struct http_request *request, struct curl_slist ret_nodes[static HEADER_LINES_MAX])
{
	const bool wants_expect = request->body.bytes >= EXPECT_MIN_BYTES;
	const size_t n_unwanted = wants_expect ? UNWANTED_HEADERS - 1 : UNWANTED_HEADERS;
	const size_t n = n_unwanted + request->n_headers;
	if (request->n_headers > REQUEST_HEADERS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		const char *line =
			i < n_unwanted ? unwanted_headers[i] : request->headers[i - n_unwanted];
		ret_nodes[i].data = (char *)(uintptr_t)line; /* curl does not change it */
		ret_nodes[i].next = i + 1 < n ? &ret_nodes[i + 1] : NULL;
	}
	return 0;
}

/* Sends the request and receives the reply. Sets all options that may differ from request to
 * request; the others are set once for the handle. Returns curl's verdict. */
static CURLcode transfer(struct http *http, long timeout_ms, const struct curl_slist *headers)
{
	CURL *curl = http->curl;
	const struct http_request *request = http->exchange.request;
	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, request->new_connection ? 1L : 0L);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, request->no_proxy ? "*" : NULL);
	set_body(curl, request->method, &request->body, http->shared->upload_buffer_bytes);
	http->error_text[0] = 0;
	http->socket_error = 0;
	const CURLcode code = curl_easy_perform(curl);
	/* When this size is set, curl 7.88 frees its send buffer. It would keep a large one until
	 * the next request otherwise. */
	if (request->body.bytes >= DROP_BUFFER_BYTES)
		curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)BUFFER_MIN_BYTES);
	return code;
}

/* Returns http_reply.wire_ns of the request that has just ended: the time from sending it until the
 * kernel received the last bytes of the reply. The kernel knows the latter only to a few
 * milliseconds, so a short time may come out as 0, but the average is right. */
static uint64_t measure_wire_ns(const struct http *http)
{
	curl_off_t sent_us = 0, ended_us = 0;
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	curl_easy_getinfo(http->curl, CURLINFO_PRETRANSFER_TIME_T, &sent_us);
	curl_easy_getinfo(http->curl, CURLINFO_TOTAL_TIME_T, &ended_us);
	if (getsockopt(exchange_socket(http), IPPROTO_TCP, TCP_INFO, &info, &size))
		info.tcpi_last_data_recv = 0; /* ms since the last bytes came */
	const curl_off_t noticed_late_us = (curl_off_t)info.tcpi_last_data_recv * 1000;
	const curl_off_t wire_us = ended_us - sent_us - noticed_late_us;
	return wire_us > 0 ? (uint64_t)wire_us * 1000 : 0;
}

/* Returns the time limit that curl gets, or 0 for none. It is 0.1 % and 2 ms longer than our
 * deadline, since curl's clock (MONOTONIC_RAW) may go faster than ours. */
static long curl_timeout_ms(uint64_t now_ns, uint64_t deadline_ns)
{
	if (!deadline_ns)
		return 0;
	const uint64_t left_ms = (deadline_ns - now_ns) / NS_PER_MS, max_ms = LONG_MAX / 2;
	const long ms = (long)(left_ms < max_ms ? left_ms : max_ms);
	return ms + ms / 1000 + 2;
}

/* Reports the bytes of the body that have left since the last report. After a failure, bytes of a
 * large body that were still in the socket have not left this host, so they are not reported. Small
 * bodies are always reported. */
static void report_last_bytes(struct http *http, CURLcode code)
{
	const bool is_small = http->exchange.request->body.bytes <= HTTP_SMALL_BODY_BYTES;
	curl_off_t uploaded = 0;
	curl_easy_getinfo(http->curl, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	if (code == CURLE_OK || is_small)
		exchange_report_moved(&http->exchange, (uint64_t)uploaded);
}

/* Returns 0 if the reply of a transfer that curl calls OK is whole. Otherwise the connection ended
 * amid the headers, which curl treats as a whole reply (-ECONNRESET), or there was no memory for a
 * header (-ENOMEM). */
static int check_reply_is_whole(const struct exchange *exchange)
{
	if (!exchange->headers_ended)
		return -ECONNRESET;
	return exchange->reply->headers.error ? -ENOMEM : 0;
}

int http_perform(struct http *http, const struct http_request *request,
	struct http_reply *ret_reply, struct problem *ret_problem)
{
	struct curl_slist headers[HEADER_LINES_MAX];
	const uint64_t now_ns = clock_boot_ns(), deadline_ns = request->deadline_ns;
	struct exchange *exchange = &http->exchange;
	*exchange = (struct exchange){.request = request,
		.reply = ret_reply,
		.last_moved_ns = now_ns,
		.noted_ns = now_ns,
		.body_taken_ns = now_ns};
	http_reply_begin(ret_reply, request->reply_max_bytes);
	CURLcode code = CURLE_BAD_FUNCTION_ARGUMENT; /* the code if no request is sent */
	exchange->error = list_headers(request, headers);
	if (!exchange->error && deadline_ns && now_ns >= deadline_ns)
		exchange->error = -ECANCELED;
	if (!exchange->error) {
		code = transfer(http, curl_timeout_ms(now_ns, deadline_ns), headers);
		report_last_bytes(http, code);
	}
	long status = 0; /* meaningless after an error */
	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	ret_reply->status = (int)status;
	ret_reply->is_resent = exchange->is_resent;
	ret_reply->wire_ns = code == CURLE_OK ? measure_wire_ns(http) : 0;
	if (code == CURLE_OK && !exchange->error) {
		exchange->error = check_reply_is_whole(exchange);
		if (!exchange->error)
			return 0;
	}
	return http_explain(http, code, ret_problem);
}
