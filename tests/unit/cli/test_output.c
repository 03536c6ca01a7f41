/* Lines reach a reader in their order, and one that stands still keeps nobody for longer than was
 * said. */
#include "../check.h"
#include "base/clock.h"
#include "cli/output.h"
#include "cli/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#define LINE_BYTES 60000 /* 17 of them are less than what is kept, and 18 more */

static const struct output_options busy = {.stall_ms = 300, .end_ms = 600};
static char line[LINE_BYTES + 1];

/* Standard output is a pipe meanwhile. */
static int open_reader(struct output *output, const struct output_options *options)
{
	int ends[2];
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO);
	close(ends[1]);
	output_init(output, options);
	return ends[0];
}

/* So that not even one byte more has room. */
static void fill(void)
{
	char byte = 'x';
	fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDOUT_FILENO, &byte, 1) == 1)
		;
	fcntl(STDOUT_FILENO, F_SETFL, 0);
}

static uint64_t ms_since(uint64_t begun_ns)
{
	return (clock_boot_ns() - begun_ns) / NS_PER_MS;
}

static void test_lines_in_their_order(void)
{
	char got[20] = {0};
	struct output output;
	const int reader = open_reader(&output, &busy);
	output_result(&output, "one");
	output_result(&output, "two");
	CHECK_INT(output_finish(&output), 0);
	CHECK_INT(read(reader, got, sizeof got - 1), 8);
	CHECK_STRING(got, "one\ntwo\n");
	close(reader);
}

static void test_a_reader_that_stands_still(void)
{
	static char taken[1 << 16];
	struct output output;
	const int reader = open_reader(&output, &busy);
	fill();
	uint64_t begun_ns = clock_boot_ns();
	for (int i = 0; i < 18; i++) /* there is room for 17 */
		output_result(&output, line);
	CHECK(ms_since(begun_ns) >= 200);
	begun_ns = clock_boot_ns();
	for (int i = 0; i < 20; i++) /* it has waited once, and does not wait for each line */
		output_result(&output, line);
	CHECK(ms_since(begun_ns) < 20 * 200);
	CHECK(!output_has_failed(&output));
	fcntl(reader, F_SETFL, O_NONBLOCK);
	begun_ns = clock_boot_ns();
	for (size_t n = 0; n < 17 * LINE_BYTES && ms_since(begun_ns) < 20000;) {
		const ssize_t got = read(reader, taken, sizeof taken);
		n += got > 0 ? (size_t)got : 0;
		usleep(got > 0 ? 0 : 1000);
	}
	output_result(&output, "it reads again");
	CHECK_INT(output_finish(&output), -ETIMEDOUT); /* some lines are lost */
	const ssize_t got = read(reader, taken, sizeof taken - 1);
	taken[got > 0 ? got : 0] = 0;
	CHECK(strstr(taken, "it reads again\n") != NULL);
	close(reader);
}

/* A caller that asks now need not ask later. */
static void test_a_reader_that_is_gone(void)
{
	struct output output;
	const int reader = open_reader(&output, &(struct output_options){0});
	close(reader);
	CHECK(!output_has_failed(&output));
	output_result(&output, line);
	CHECK(output_has_failed(&output));
	CHECK_INT(output_finish(&output), -EPIPE);
}

/* Without limits, a signal is what ends the wait. */
static void test_the_end_is_bounded(const struct output_options *options, uint64_t least_ms)
{
	struct output output;
	const int reader = open_reader(&output, options);
	fill();
	output_result(&output, "left");
	output_result(&output, "left");
	const uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(output_finish(&output), -ETIMEDOUT);
	CHECK(ms_since(begun_ns) >= least_ms);
	close(reader); /* lets the writer go */
}

#define MANY 50

/* A line of one letter, again and again. */
static void say_many(void *arg)
{
	struct output *output = arg;
	static atomic_int letters;
	char own[LINE_BYTES + 1] = "";
	memset(own, 'a' + atomic_fetch_add(&letters, 1), LINE_BYTES);
	for (int i = 0; i < MANY; i++)
		output_result(output, own);
}

/* Reads all, and counts whole lines of one letter. */
static int count_whole_lines(int reader)
{
	static char buffer[2 * MANY * (LINE_BYTES + 1)];
	ssize_t got;
	size_t n = 0;
	int whole = 0;
	while (n < sizeof buffer && (got = read(reader, buffer + n, sizeof buffer - n)) > 0)
		n += (size_t)got;
	for (size_t at = 0; at + LINE_BYTES < n; at += LINE_BYTES + 1)
		whole += buffer[at + LINE_BYTES] == '\n' &&
			 memcmp(buffer + at, buffer + at + 1, LINE_BYTES - 1) == 0;
	return whole;
}

/* The output's thread cannot be started with a stack that is larger than all addresses. */
static void test_lines_stay_whole_without_a_thread(void)
{
	struct rlimit before, huge;
	struct output output;
	uv_thread_t speakers[2];
	CHECK_INT(getrlimit(RLIMIT_STACK, &before), 0);
	huge = before;
	huge.rlim_cur = (rlim_t)1 << 48;
	if (before.rlim_max < huge.rlim_cur || setrlimit(RLIMIT_STACK, &huge))
		return; /* the host does not allow it */
	const int reader = open_reader(&output, &(struct output_options){0});
	CHECK_INT(setrlimit(RLIMIT_STACK, &before), 0);
	CHECK(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(uv_thread_create(&speakers[i], say_many, &output), 0);
	CHECK_INT(count_whole_lines(reader), 2 * MANY);
	for (int i = 0; i < 2; i++)
		uv_thread_join(&speakers[i]);
	CHECK_INT(output_finish(&output), 0);
	close(reader);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	memset(line, 'l', LINE_BYTES);
	test_lines_in_their_order();
	test_lines_stay_whole_without_a_thread();
	test_a_reader_that_stands_still();
	test_a_reader_that_is_gone();
	test_the_end_is_bounded(&busy, 500);
	signals_count("");
	raise(SIGTERM);
	test_the_end_is_bounded(&(struct output_options){0}, 800);
	return check_result();
}
