/* The limit of bandwidth by a clock of the test's own. */
#include "../check.h"
#include "base/clock.h"
#include "upload/progress/bandwidth.h"

#define RATE  1000000ULL /* bytes a second */
#define START (1000 * NS_PER_S)

/* One who always wants to send: what gets through in so many seconds. `late_ns`: it wakes up so
 * much later than it asked for. */
static uint64_t sent_in(double seconds, uint64_t piece, uint64_t late_ns)
{
	uint64_t free_ns = 0;
	const uint64_t end_ns = START + (uint64_t)(seconds * 1e9);
	uint64_t now_ns = START, bytes = 0;
	while (now_ns < end_ns) {
		const uint64_t wait_ns = token_bucket_take(&free_ns, now_ns, piece, RATE);
		if (!wait_ns)
			bytes += piece;
		else
			now_ns += wait_ns + late_ns;
	}
	return bytes;
}

static bool is_near(uint64_t bytes, double wanted, double share)
{
	const double off = (double)bytes - wanted;
	return (off < 0 ? -off : off) <= share * wanted;
}

static void test_the_rate_is_kept(void)
{
	CHECK(is_near(sent_in(30, 20000, 0), 30.0 * (double)RATE, 0.02));
	CHECK(is_near(sent_in(30, 2048, 0), 30.0 * (double)RATE, 0.02));
	CHECK(is_near(sent_in(30, 20000, 90 * NS_PER_MS), 30.0 * (double)RATE,
		0.02)); /* caught up with */
}

static void test_unused_bandwidth_expires(void)
{
	uint64_t free_ns = START;
	uint64_t bytes = 0;
	while (!token_bucket_take(&free_ns, START + 3600 * NS_PER_S, 1000, RATE))
		bytes += 1000;
	CHECK(is_near(bytes, (double)RATE * TOKEN_BUCKET_BURST_NS / 1e9, 0.02));
}

static void test_several_share_the_line(void)
{
	uint64_t free_ns = 0;
	uint64_t bytes[2] = {0, 0};
	for (uint64_t now_ns = START; now_ns < START + 30 * NS_PER_S; now_ns += NS_PER_MS)
		for (unsigned turn = 0; turn < 2; turn++) {
			const unsigned who = (unsigned)(now_ns / NS_PER_MS + turn) % 2U;
			if (!token_bucket_take(&free_ns, now_ns, 5000, RATE))
				bytes[who] += 5000;
		}
	CHECK(is_near(bytes[0] + bytes[1], 30.0 * (double)RATE, 0.02));
	CHECK(is_near(bytes[0], 15.0 * (double)RATE, 0.1));
}

/* One at twice the rate gets as much time, and both together never more than all of it. */
static void test_different_limits_share_the_time(void)
{
	uint64_t free_ns = 0;
	uint64_t slow = 0, fast = 0;
	for (uint64_t now_ns = START; now_ns < START + 30 * NS_PER_S; now_ns += NS_PER_MS) {
		if (!token_bucket_take(&free_ns, now_ns, 5000, RATE))
			slow += 5000;
		if (!token_bucket_take(&free_ns, now_ns, 5000, 2 * RATE))
			fast += 5000;
	}
	const double time = (double)slow / (double)RATE + (double)fast / (2 * (double)RATE);
	CHECK(time > 29.4 && time < 30.6);
}

static void test_a_number_of_another_boot_does_not_count(void)
{
	uint64_t free_ns = START + TOKEN_BUCKET_AHEAD_NS + 1;
	CHECK_INT(token_bucket_take(&free_ns, START, 1000, RATE), 0);
	CHECK(free_ns <= START);
	free_ns = START + 5;
	CHECK_INT(token_bucket_take(&free_ns, START, 1000, RATE), 5);
	CHECK_INT(free_ns, START + 5); /* nothing was taken */
}

static void test_pieces(void)
{
	CHECK_INT(token_bucket_chunk(20 << 20), 262144);
	CHECK_INT(token_bucket_chunk(1 << 20), (1 << 20) / 50);
	CHECK_INT(token_bucket_chunk(8192), 2048);
	CHECK_INT(token_bucket_chunk(1 << 30), 262144);
}

int main(void)
{
	test_the_rate_is_kept();
	test_unused_bandwidth_expires();
	test_several_share_the_line();
	test_different_limits_share_the_time();
	test_a_number_of_another_boot_does_not_count();
	test_pieces();
	return check_result();
}
