/* Lines reach a reader in their order, and one that stands still keeps nobody for longer than was
 * said. */
#include "../check.h"
#include "base/clock.h"
#include "cli/line_writer.h"
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_bool hurried;
static atomic_uint stalls;

static bool is_hurried(void)
{
	return hurried;
}

static void count_stall(int fd)
{
	stalls++;
}

static const struct output_queue_options patient = {.bytes_max = 1000,
	.stall_ms = 300,
	.end_ms = 600,
	.hurry_ms = 100,
	.is_hurried = is_hurried,
	.stalled = count_stall};

struct reader {
	int ends[2];
	struct output_queue *queue;
};

static struct reader open_reader(const struct output_queue_options *options)
{
	struct reader reader = {0};
	CHECK_INT(pipe2(reader.ends, O_CLOEXEC), 0);
	CHECK_INT(output_queue_start(options, &reader.queue), 0);
	return reader;
}

/* So that not even one byte more has room. */
static void fill(struct reader *reader)
{
	char byte = 'x';
	fcntl(reader->ends[1], F_SETFL, O_NONBLOCK);
	while (write(reader->ends[1], &byte, 1) == 1)
		;
	fcntl(reader->ends[1], F_SETFL, 0);
}

static void close_reader(struct reader *reader)
{
	close(reader->ends[0]);
	close(reader->ends[1]);
}

static void add(struct reader *reader, const char *bytes, size_t n, bool may_wait)
{
	const struct output_piece piece = {.fd = reader->ends[1], .bytes = bytes, .n = n};
	output_queue_add(reader->queue, &piece, may_wait);
}

static uint64_t ms_since(uint64_t begun_ns)
{
	return (clock_boot_ns() - begun_ns) / NS_PER_MS;
}

static void test_lines_in_their_order(void)
{
	char got[20] = {0};
	struct reader reader = open_reader(&patient);
	add(&reader, "one\n", 4, true);
	add(&reader, "two\n", 4, false);
	const struct output_fate fate = output_queue_finish(reader.queue);
	CHECK_INT(fate.error, 0);
	CHECK_INT(fate.lines_lost, 0);
	CHECK_INT(read(reader.ends[0], got, sizeof got - 1), 8);
	CHECK_STRING(got, "one\ntwo\n");
	close_reader(&reader);
}

static void test_a_reader_that_stands_still(void)
{
	static const char line[600];
	static char taken[1 << 20];
	struct reader reader = open_reader(&patient);
	fill(&reader);
	add(&reader, line, sizeof line, true);
	uint64_t begun_ns = clock_boot_ns();
	add(&reader, line, sizeof line, false);
	CHECK(ms_since(begun_ns) < 200); /* may not wait */
	add(&reader, line, sizeof line, true);
	CHECK(ms_since(begun_ns) >= 200);
	CHECK_INT(stalls, 1);
	begun_ns = clock_boot_ns();
	add(&reader, line, sizeof line, true);
	CHECK(ms_since(begun_ns) < 200); /* has waited once */
	CHECK(read(reader.ends[0], taken, sizeof taken) > 0);
	begun_ns = clock_boot_ns();
	while (!output_queue_is_empty(reader.queue) && ms_since(begun_ns) < 20000)
		usleep(1000);
	add(&reader, line, sizeof line, true);
	const struct output_fate fate = output_queue_finish(reader.queue);
	CHECK_INT(fate.lines_lost, 3);
	CHECK_INT(fate.error, 0);
	close_reader(&reader);
}

static void test_the_end_is_bounded(bool with_hurry)
{
	struct reader reader = open_reader(&patient);
	fill(&reader);
	hurried = with_hurry;
	add(&reader, "left\n", 5, true);
	add(&reader, "left\n", 5, true);
	CHECK(!output_queue_is_empty(reader.queue));
	const uint64_t begun_ns = clock_boot_ns();
	const struct output_fate fate = output_queue_finish(reader.queue);
	CHECK(ms_since(begun_ns) >= (with_hurry ? 50 : 500));
	CHECK_INT(fate.lines_lost, 2);
	hurried = false;
	close(reader.ends[0]); /* lets the writer go */
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_lines_in_their_order();
	test_a_reader_that_stands_still();
	test_the_end_is_bounded(false);
	test_the_end_is_bounded(true);
	return check_result();
}
