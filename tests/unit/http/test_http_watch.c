/* What counts as the peer's silence. */
#include "../check.h"
#include "base/clock.h"
#include "http/http_exchange.h"

#define PATIENCE_NS (30 * NS_PER_S)

static void test_silence(void)
{
	const struct http_request request = {.body = {.bytes = 1 << 20}};
	struct http_shared shared = {.stall_timeout_ns = PATIENCE_NS};
	struct http http = {.shared = &shared, .exchange = {.request = &request}};
	const uint64_t began_ns = NS_PER_S;
	http.exchange.active_ns = http.exchange.taken_ns = began_ns;
	CHECK(!exchange_is_stalled(&http, began_ns + PATIENCE_NS - 1));
	CHECK(exchange_is_stalled(&http, began_ns + PATIENCE_NS));
	http.exchange.active_ns += 100 * NS_PER_S;
	CHECK(!exchange_is_stalled(&http, began_ns + 100 * NS_PER_S + PATIENCE_NS - 1));
	CHECK(exchange_is_stalled(&http, began_ns + 100 * NS_PER_S + PATIENCE_NS));
	http.exchange.answers = true; /* it is due since the peer took something last */
	CHECK(!exchange_is_stalled(&http, began_ns + PATIENCE_NS - 1));
	CHECK(exchange_is_stalled(&http, began_ns + PATIENCE_NS));
}

int main(void)
{
	test_silence();
	return check_result();
}
