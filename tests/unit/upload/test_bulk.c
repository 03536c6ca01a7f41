/* How many large bodies go at once, on lines that are computed. */
#include "../check.h"
#include "base/clock.h"
#include "upload/queue/bulk.h"

#define MIB  (1ULL << 20)
#define TICK (50 * NS_PER_MS)

/* A line of so many bytes a second, of which one connection gets at most so many. */
struct line {
	double whole, each;
	uint64_t now_ns;
	double moved;
};

static void pass(struct line *line, struct bulk *bulk, double seconds, unsigned *ret_most)
{
	const uint64_t end_ns = line->now_ns + (uint64_t)(seconds * NS_PER_S);
	for (; line->now_ns < end_ns; line->now_ns += TICK) {
		const double rate = line->each * bulk->at_once;
		line->moved += (rate < line->whole ? rate : line->whole) * TICK / NS_PER_S;
		bulk_look(bulk, line->now_ns, (uint64_t)line->moved, bulk->at_once);
		if (ret_most && bulk->at_once > *ret_most)
			*ret_most = bulk->at_once;
	}
}

static void begin(struct line *line, struct bulk *bulk)
{
	line->now_ns = 1000 * NS_PER_S;
	bulk_init(bulk, 64);
	bulk_look(bulk, line->now_ns, 0, 0);
}

/* One connection fills it: two go at once, and three are tried now and then. */
static void test_slow_line(void)
{
	struct bulk bulk;
	struct line line = {.whole = 0.5 * MIB, .each = 0.5 * MIB};
	unsigned most = 0;
	begin(&line, &bulk);
	pass(&line, &bulk, 2000, &most);
	CHECK_INT(most, 3);
	CHECK_INT(bulk.proven, 2);
}

/* Each connection has a limit of its own: as many as there may be, and soon. */
static void test_wide_line(void)
{
	struct bulk bulk;
	struct line line = {.whole = 10000 * MIB, .each = 50 * MIB};
	begin(&line, &bulk);
	pass(&line, &bulk, 4, NULL);
	CHECK_INT(bulk.proven, 64);
}

/* Ten connections fill it. */
static void test_line_between(void)
{
	struct bulk bulk;
	struct line line = {.whole = 100 * MIB, .each = 10 * MIB};
	begin(&line, &bulk);
	pass(&line, &bulk, 60, NULL);
	CHECK(bulk.proven >= 8 && bulk.proven <= 16);
	line.each = 100 * MIB; /* no more are needed than there are */
	pass(&line, &bulk, 600, NULL);
	CHECK(bulk.proven <= 16);
}

static void test_cuts(void)
{
	struct bulk bulk;
	struct line line = {.whole = 10000 * MIB, .each = 50 * MIB};
	begin(&line, &bulk);
	pass(&line, &bulk, 10, NULL);
	for (int i = 0; i < 20; i++) /* together */
		bulk_cut(&bulk, line.now_ns, (uint64_t)line.moved);
	CHECK_INT(bulk.at_once, 32);
	for (int i = 0; i < 10; i++) {
		line.now_ns += 3 * NS_PER_S;
		bulk_cut(&bulk, line.now_ns, (uint64_t)line.moved);
	}
	CHECK_INT(bulk.at_once, 1);
	pass(&line, &bulk, 20, NULL); /* it is fast still */
	CHECK_INT(bulk.proven, 64);
}

/* The last parts of a file are fewer than might go: a trial with them proves nothing, and the next
 * file does not wait for the pause after one that was in vain. */
static void test_too_few(void)
{
	struct bulk bulk;
	struct line line = {.whole = 10000 * MIB, .each = 10 * MIB};
	begin(&line, &bulk);
	for (int i = 0; i < 200; i++) {
		line.moved += line.each * TICK / NS_PER_S;
		line.now_ns += TICK;
		bulk_look(&bulk, line.now_ns, (uint64_t)line.moved, 1);
	}
	CHECK_INT(bulk.proven, 2);
	pass(&line, &bulk, 6, NULL);
	CHECK_INT(bulk.proven, 64);
}

int main(void)
{
	test_slow_line();
	test_wide_line();
	test_line_between();
	test_cuts();
	test_too_few();
	return check_result();
}
