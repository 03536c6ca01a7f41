/* The peer's silence, against a model: what a peer may take its time for, by the size of the body,
 * by what has left of it, and by what has come back. */
#include "../check.h"
#include "base/clock.h"
#include "http/http_exchange.h"

#define PATIENCE_NS (30 * NS_PER_S)
#define SMALL       HTTP_SMALL_BODY_BYTES

/* A body that is small counts as sent at once, so any byte in either direction is a sign of life. A
 * larger one may leave slowly, but once it has left, or the answer has begun, the whole answer is
 * due: it does not matter whether the answer moves. */
static bool model(const struct exchange *exchange, uint64_t bytes, uint64_t now_ns)
{
	const uint64_t last_moved_ns = now_ns - exchange->last_moved_ns;
	const uint64_t body_taken_ns = now_ns - exchange->body_taken_ns;
	if (bytes <= SMALL)
		return last_moved_ns >= PATIENCE_NS;
	if (exchange->reply_has_begun)
		return body_taken_ns >= PATIENCE_NS;
	return ((uint64_t)exchange->uploaded >= bytes ? body_taken_ns : last_moved_ns) >=
	       PATIENCE_NS;
}

static void test_silence(void)
{
	static const uint64_t sizes[] = {0, 1, SMALL - 1, SMALL, SMALL + 1, 1 << 20};
	static const uint64_t waits_ns[] = {
		0, 1, PATIENCE_NS - 1, PATIENCE_NS, PATIENCE_NS + 1, 10 * PATIENCE_NS};
	for (unsigned i = 0; i < 6 * 6 * 6 * 4 * 2; i++) {
		const uint64_t bytes = sizes[i % 6], now_ns = 1000 * NS_PER_S;
		const int64_t left[] = {0, (int64_t)bytes - 1, (int64_t)bytes, (int64_t)bytes + 99};
		const struct http_request request = {.body = {.bytes = bytes}};
		struct http_shared shared = {.stall_timeout_ns = PATIENCE_NS};
		const struct http http = {.shared = &shared,
			.exchange = {.request = &request,
				.last_moved_ns = now_ns - waits_ns[i / 6 % 6],
				.body_taken_ns = now_ns - waits_ns[i / 36 % 6],
				.uploaded = left[i / 216 % 4] < 0 ? 0 : left[i / 216 % 4],
				.reply_has_begun = i / 864 != 0}};
		if (!CHECK_INT(exchange_is_stalled(&http, now_ns),
			    model(&http.exchange, bytes, now_ns)))
			fprintf(stderr, "\tcase %u, a body of %" PRIu64 " bytes\n", i, bytes);
	}
}

struct moved {
	uint64_t total;
	unsigned calls;
};

static void note_moved(void *arg, uint64_t n)
{
	struct moved *moved = arg;
	CHECK(n > 0);
	moved->total += n;
	moved->calls++;
}

/* Bytes that are sent again count again, and none counts twice without that. */
static void test_moved(void)
{
	static const struct {
		uint64_t bytes, total;
		unsigned calls;
	} rows[] = {{0, 0, 0}, {5, 5, 1}, {5, 5, 1}, {6, 6, 2}, {2, 8, 3}, {9, 15, 4}, {0, 15, 4},
		{9, 24, 5}};
	struct moved moved = {0};
	const struct http_request request = {
		.body = {.bytes = 9, .moved = note_moved, .moved_arg = &moved}};
	struct exchange exchange = {.request = &request};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		exchange_report_moved(&exchange, rows[i].bytes);
		CHECK_INT(moved.total, rows[i].total);
		CHECK_INT(moved.calls, rows[i].calls);
	}
	const struct http_request silent = {.body = {.bytes = 9}};
	exchange = (struct exchange){.request = &silent};
	exchange_report_moved(&exchange, 9); /* nobody wants to know */
}

int main(void)
{
	test_silence();
	test_moved();
	return check_result();
}
