/* Time that a body was not there to be sent is not the peer's silence. */
#include "../check.h"
#include "base/clock.h"
#include "http/http_exchange.h"

#define PATIENCE_NS (30 * NS_PER_S)

static void test_waiting_is_no_silence(void)
{
	const struct http_body body = {.bytes = 1 << 20};
	const curl_socket_t socket = CURL_SOCKET_BAD;
	struct http_watch watch = http_watch_begin(&body, &socket, PATIENCE_NS);
	const uint64_t began_ns = watch.active_ns;
	CHECK(!http_watch_is_stalled(&watch, began_ns + PATIENCE_NS - 1));
	CHECK(http_watch_is_stalled(&watch, began_ns + PATIENCE_NS));
	http_watch_waited(&watch, 100 * NS_PER_S);
	CHECK(!http_watch_is_stalled(&watch, began_ns + 100 * NS_PER_S));
	CHECK(!http_watch_is_stalled(&watch, began_ns + 100 * NS_PER_S + PATIENCE_NS - 1));
	CHECK(http_watch_is_stalled(&watch, began_ns + 100 * NS_PER_S + PATIENCE_NS));
	watch.answers = true; /* then the answer is due since the peer took something last */
	CHECK(!http_watch_is_stalled(&watch, began_ns + 100 * NS_PER_S + PATIENCE_NS - 1));
}

int main(void)
{
	test_waiting_is_no_silence();
	return check_result();
}
