#include "cli/startup.h"
#include "s3once/push.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* What this program changes of what it was given: soft limits, and whether signals were ignored. */
static struct {
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz;
} before;

/* A file that is opened later must not become standard output. Standard input that is not there
 * must not be an empty list of files, so reading it has to fail. */
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

/* Raises the soft limit to the hard one, and returns what the soft limit was. */
static unsigned long long set_soft_limit(unsigned which, unsigned long long wanted)
{
	struct rlimit limit;
	if (getrlimit(which, &limit))
		return 0;
	const rlim_t was = limit.rlim_cur;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (limit.rlim_cur != was)
		setrlimit(which, &limit);
	return was;
}

void startup_prepare(void)
{
	open_standard_descriptors();
	before.core = set_soft_limit(RLIMIT_CORE, 0);
	before.files = set_soft_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	before.ignored_pipe = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
	before.ignored_xfsz = signal(SIGXFSZ, SIG_IGN) == SIG_IGN;
}

void startup_before(char ret[static STARTUP_BEFORE_CHARS])
{
	snprintf(ret, STARTUP_BEFORE_CHARS, "%llu:%llu:%d:%d", before.core, before.files,
		before.ignored_pipe, before.ignored_xfsz);
}

void startup_restore(const char *word)
{
	unsigned long long core, files;
	int ignored_pipe, ignored_xfsz;
	if (sscanf(word, "%llu:%llu:%d:%d", &core, &files, &ignored_pipe, &ignored_xfsz) != 4)
		return;
	set_soft_limit(RLIMIT_CORE, core);
	set_soft_limit(RLIMIT_NOFILE, files);
	signal(SIGPIPE, ignored_pipe ? SIG_IGN : SIG_DFL);
	signal(SIGXFSZ, ignored_xfsz ? SIG_IGN : SIG_DFL);
}
