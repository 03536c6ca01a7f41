#include "cli/startup.h"
#include "s3once/push.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A file that is opened later must not become standard output; and standard input that is not there
 * is no empty list of files: reading it fails. */
static void open_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDWR) != fd) {
			dprintf(STDERR_FILENO,
				"s3once: error: standard input, output or error is closed, and "
				"/dev/null cannot stand for it: %s\n",
				strerror(errno));
			_exit(S3ONCE_EXIT_SETUP);
		}
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

void startup_prepare(void)
{
	open_standard_descriptors();
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	raise_descriptor_limit();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}
