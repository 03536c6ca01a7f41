#include "http/http_watch.h"
#include "base/clock.h"
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define LOOK_NS (100 * NS_PER_MS) /* between two looks at how a body gets on */

struct http_watch http_watch_begin(
	const struct http_body *body, const curl_socket_t *socket, uint64_t stall_timeout_ns)
{
	const uint64_t now_ns = clock_boot_ns();
	return (struct http_watch){.body = body,
		.socket = socket,
		.stall_timeout_ns = stall_timeout_ns,
		.active_ns = now_ns,
		.looked_ns = now_ns,
		.taken_ns = now_ns};
}

void http_watch_header(struct http_watch *watch, bool is_status, bool is_final_status)
{
	watch->has_header = true;
	if (is_status)
		watch->answers = is_final_status;
}

/* Bytes that curl has handed over and that wait in this host's socket still. Many connections over
 * a slow line hold more there than the line takes in the time that counts as silence. False: the
 * connection is gone, and nobody knows what arrived. */
static bool bytes_waiting(struct http_watch *watch, curl_off_t *ret)
{
	const curl_socket_t fd = *watch->socket;
	struct tcp_info info = {0};
	socklen_t size = sizeof info;
	int waiting = 0;
	*ret = 0;
	if (fd == CURL_SOCKET_BAD)
		return !watch->looks_at_socket;
	watch->looks_at_socket = true;
	if (!ioctl(fd, SIOCOUTQ, &waiting) && waiting > 0)
		*ret = waiting;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) || info.tcpi_state != TCP_CLOSE;
}

/* Tells how far the body is. curl counts from 0 again when it sends it again. */
static void tell_moved(struct http_watch *watch, uint64_t bytes)
{
	const struct http_body *body = watch->body;
	const uint64_t before = bytes < watch->told_bytes ? 0 : watch->told_bytes;
	watch->told_bytes = bytes;
	if (body->moved && bytes > before)
		body->moved(body->arg, bytes - before);
}

void http_watch_look(
	struct http_watch *watch, uint64_t now_ns, curl_off_t downloaded, curl_off_t uploaded)
{
	if (watch->has_header)
		watch->active_ns = now_ns;
	watch->has_header = false;
	if (watch->body->bytes > HTTP_SMALL_BODY_BYTES) {
		if (now_ns - watch->looked_ns < LOOK_NS)
			return;
		curl_off_t waiting;
		if (!bytes_waiting(watch, &waiting))
			return;
		uploaded = uploaded > waiting ? uploaded - waiting : 0;
		tell_moved(watch, (uint64_t)uploaded);
	}
	if (uploaded != watch->uploaded)
		watch->taken_ns = now_ns;
	if (uploaded != watch->uploaded || downloaded != watch->downloaded)
		watch->active_ns = now_ns;
	watch->uploaded = uploaded;
	watch->downloaded = downloaded;
	watch->looked_ns = now_ns;
}

void http_watch_waited(struct http_watch *watch, uint64_t ns)
{
	watch->active_ns += ns;
	watch->taken_ns += ns;
}

bool http_watch_is_stalled(const struct http_watch *watch, uint64_t now_ns)
{
	const uint64_t bytes = watch->body->bytes;
	const bool is_answer_due = bytes > HTTP_SMALL_BODY_BYTES &&
				   (watch->answers || (uint64_t)watch->uploaded >= bytes);
	const uint64_t since_ns = is_answer_due ? watch->taken_ns : watch->active_ns;
	return now_ns - since_ns >= watch->stall_timeout_ns;
}

void http_watch_end(struct http_watch *watch, curl_off_t uploaded, bool is_whole)
{
	if (is_whole || watch->body->bytes <= HTTP_SMALL_BODY_BYTES)
		tell_moved(watch, (uint64_t)uploaded);
}
