#include "aws/credentials/credentials_providers.h"
#include "base/clock.h"
#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct result {
	int error, status;
	char out[40], err[40];
};

static struct result run(const char *script, uint64_t ms, bool is_stopped)
{
	char shell[] = "sh", option[] = "-c", text[200];
	char *const argv[] = {shell, option, text, NULL};
	const atomic_bool stopped = is_stopped;
	struct process_output output = {.out = TEXT(30), .err = TEXT(10)};
	snprintf(text, sizeof text, "%s", script);
	struct result result = {
		process_output(argv, clock_boot_ns() + ms * NS_PER_MS, &stopped, &output)};
	result.status = output.status;
	snprintf(result.out, sizeof result.out, "%s", text_string(&output.out));
	snprintf(result.err, sizeof result.err, "%s", text_string(&output.err));
	text_wipe(&output.out);
	text_wipe(&output.err);
	return result;
}

int main(void)
{
	struct rlimit files;
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &files), 0);
	CHECK(files.rlim_max > 1024);
	files.rlim_cur = files.rlim_max;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &files), 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	struct result result = run("cat; echo out; echo error >&2; exit 3", 20000, false);
	CHECK_INT(result.error, 0);
	CHECK_INT(WEXITSTATUS(result.status), 3);
	CHECK_STRING(result.out, "out\n");
	CHECK_STRING(result.err, "error\n");
	CHECK(WIFSIGNALED(run("kill -PIPE $$", 20000, false).status));
	CHECK(WIFSIGNALED(run("kill -XFSZ $$", 20000, false).status));
	CHECK_STRING(run("ulimit -S -n", 20000, false).out, "1024\n");
	CHECK_INT(run("yes", 20000, false).error, -EMSGSIZE);
	CHECK_INT(run("yes error >&2 & echo out; sleep 0.2; kill $!", 20000, false).error, 0);
	/* Messages without a pause, by more writers than we can keep up with. */
	uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(run("for i in 1 2 3 4 5 6 7 8; do timeout 15 yes >&2 & done; wait", 500, false)
			  .error,
		-ETIMEDOUT);
	CHECK(clock_boot_ns() - begun_ns < 10 * NS_PER_S);
	/* Of messages that are too long, the beginning is kept. */
	CHECK_STRING(run("echo a long message >&2; exit 1", 20000, false).err, "a long mes");
	CHECK_INT(run("exec sleep 60", 200, false).error, -ETIMEDOUT);
	CHECK_INT(run("exec sleep 60", 20000, true).error, -ECANCELED);
	/* Processes that it leaves behind do not delay us. */
	begun_ns = clock_boot_ns();
	CHECK_STRING(run("sleep 15 & echo out", 20000, false).out, "out\n");
	CHECK(clock_boot_ns() - begun_ns < 10 * NS_PER_S);
	char missing[] = "no-such-program-anywhere";
	char *const argv[] = {missing, NULL};
	const atomic_bool stopped = false;
	struct process_output output = {.out = TEXT(30), .err = TEXT(10)};
	CHECK_INT(process_output(argv, UINT64_MAX, &stopped, &output), -ENOENT);
	signal(SIGCHLD, SIG_IGN);
	CHECK_STRING(run("echo out", 20000, false).out, "out\n");
	return check_result();
}
