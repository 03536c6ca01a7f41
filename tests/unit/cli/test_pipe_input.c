#include "../check.h"
#include "cli/push/pipe_input.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A command of which nobody can say how it ended may have failed: its output is not whole. */
static void test_unknown_end(void)
{
	char why[200] = "", byte;
	struct pipe_input input = {.has_begun = true, .fd = -1, .process = getppid()};
	CHECK_INT(pipe_input_read(&input, &byte, 1, why, sizeof why), -ECHILD);
	CHECK_STRING(
		why, "ended, and nobody can say how (No child processes); nothing of it is in S3");
	CHECK_INT(input.process, 0);
}

/* The bytes of all reads count. Standard input stays open at its end, and a pipe of our own is
 * closed. */
static void test_reads(void)
{
	static char name[] = "dump", *command[] = {name, NULL};
	for (int is_command = 0; is_command < 2; is_command++) {
		char why[200] = "", bytes[2];
		int ends[2];
		if (!CHECK_INT(pipe(ends), 0))
			return;
		struct pipe_input input = {
			.has_begun = true, .fd = ends[0], .command = is_command ? command : NULL};
		CHECK_INT(write(ends[1], "abc", 3), 3);
		CHECK_INT(pipe_input_read(&input, bytes, 2, why, sizeof why), 2);
		CHECK_INT(pipe_input_read(&input, bytes, 2, why, sizeof why), 1);
		CHECK_INT(input.bytes, 3);
		close(ends[1]);
		/* The end comes again if it is asked for again. */
		for (int i = 0; i < 2; i++)
			CHECK_INT(pipe_input_read(&input, bytes, 2, why, sizeof why), 0);
		CHECK_STRING(why, "");
		CHECK_INT(fcntl(ends[0], F_GETFD) < 0, is_command);
		if (!is_command)
			close(ends[0]);
	}
}

int main(void)
{
	test_unknown_end();
	test_reads();
	return check_result();
}
