#include "../check.h"
#include "cli/push/pipe_input.h"
#include <errno.h>
#include <unistd.h>

/* A command of which nobody can say how it ended may have failed: its output is not whole. */
int main(void)
{
	char why[200] = "", byte;
	struct pipe_input input = {.has_begun = true, .fd = -1, .process = getppid()};
	CHECK_INT(pipe_input_read(&input, &byte, 1, why, sizeof why), -ECHILD);
	CHECK_STRING(
		why, "ended, and nobody can say how (No child processes); nothing of it is in S3");
	CHECK_INT(input.process, 0);
	return check_result();
}
