/* The messages to systemd: when a STATUS is sent, which of them extends the time limits, and how
 * often the watchdog is fed. */
#include "../check.h"
#include "cli/push/service_notify.h"
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EXTENDS "EXTEND_TIMEOUT_USEC=60000000\n"

/* Binds a socket to the path, or to the abstract address after an '@'. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	memcpy(address.sun_path, path, strlen(path));
	if (*path == '@')
		*address.sun_path = 0;
	CHECK_INT(bind(fd, (struct sockaddr *)&address,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
		0);
	return fd;
}

/* Checks the message that has come; "": none. */
static bool check_came(int fd, const char *want)
{
	char got[4096] = "";
	const ssize_t n = recv(fd, got, sizeof got - 1, 0);
	const bool good = CHECK_STRING(got, want);
	return CHECK_INT(n > 0, *want != 0) && good;
}

static void test_sockets(const char *folder)
{
	struct service_notify notify;
	char path[64], abstract[64];
	snprintf(path, sizeof path, "%s/socket", folder);
	snprintf(abstract, sizeof abstract, "@%s", folder);
	const char *const good[] = {path, abstract};
	for (size_t i = 0; i < 2; i++) {
		const int fd = listen_at(good[i]);
		CHECK_INT(setenv("NOTIFY_SOCKET", good[i], 1), 0);
		service_notify_init(&notify);
		service_notify_say(&notify, "READY=%d\nSTATUS=%s\n", 1, "all");
		check_came(fd, "READY=1\nSTATUS=all\n");
		check_came(fd, "");
		close(fd);
		service_notify_say(&notify, "READY=1"); /* nobody listens any more */
	}
	static const char *const none[] = {"", "/", "@", "relative", "vsock:2:1"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		CHECK_INT(setenv("NOTIFY_SOCKET", none[i], 1), 0);
		service_notify_init(&notify);
		CHECK(!notify.socket);
	}
	CHECK_INT(unsetenv("NOTIFY_SOCKET"), 0);
	service_notify_init(&notify);
	CHECK(!notify.socket);
	service_notify_say(&notify, "READY=1");
	CHECK_INT(unlink(path), 0);
}

/* One run, as its counts go on. */
static void test_progress(const char *folder)
{
	static const struct {
		struct s3once_counts counts;
		const char *line, *came;
	} rows[] = {
		{{.seconds = 0}, "a", "STATUS=a\n" EXTENDS},
		{{.seconds = 0.5, .uploaded = 1}, "b", ""},
		{{.seconds = 1, .uploaded = 1}, "c", "STATUS=c\n" EXTENDS},
		{{.seconds = 1.8, .uploaded = 1, .bytes_sent = 9}, "d", ""},
		{{.seconds = 2, .uploaded = 1, .bytes_sent = 9}, "e", "STATUS=e\n" EXTENDS},
		/* Nothing moves: the run is alive, and its limits of time hold. */
		{{.seconds = 3, .uploaded = 1, .bytes_sent = 9}, "f", "STATUS=f\n"},
		{{.seconds = 4, .uploaded = 1, .bytes_sent = 9, .found = 5, .in_flight = 3}, "g",
			"STATUS=g\n"},
		{{.seconds = 5, .skipped = 1, .uploaded = 1, .bytes_sent = 9}, "h",
			"STATUS=h\n" EXTENDS},
		{{.seconds = 6, .failed = 1, .skipped = 1, .uploaded = 1, .bytes_sent = 9}, "i",
			"STATUS=i\n" EXTENDS},
		{{.seconds = 7,
			 .failed = 1,
			 .skipped = 1,
			 .uploaded = 1,
			 .bytes_sent = 9,
			 .bytes_settled = 1},
			"j", "STATUS=j\n" EXTENDS},
		{{.seconds = 8,
			 .failed = 1,
			 .skipped = 1,
			 .uploaded = 1,
			 .bytes_sent = 9,
			 .bytes_settled = 1,
			 .bytes_under_way = 1},
			"k", "STATUS=k\n" EXTENDS},
		{{.seconds = 9,
			 .failed = 1,
			 .skipped = 1,
			 .uploaded = 1,
			 .bytes_sent = 9,
			 .bytes_settled = 2},
			"l", "STATUS=l\n"}, /* what was under way is settled */
		{{.seconds = 9.8, .uploaded = 9}, "m", ""},
		{{.seconds = 9.95,
			 .failed = 1,
			 .skipped = 1,
			 .uploaded = 1,
			 .bytes_sent = 9,
			 .bytes_settled = 2},
			"n", "STATUS=n\n"},
	};
	struct service_notify notify;
	char path[64];
	snprintf(path, sizeof path, "%s/socket", folder);
	const int fd = listen_at(path);
	CHECK_INT(setenv("NOTIFY_SOCKET", path, 1), 0);
	service_notify_init(&notify);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		service_notify_progress(&notify, &rows[i].counts, rows[i].line);
		if (!check_came(fd, rows[i].came))
			fprintf(stderr, "\trow %zu\n", i);
	}
	close(fd);
	unlink(path);
}

static void test_watchdog(void)
{
	char mine[20];
	snprintf(mine, sizeof mine, "%d", (int)getpid());
	const struct {
		const char *usec, *pid;
		uint64_t ms;
	} rows[] = {
		{NULL, NULL, 0},
		{NULL, mine, 0},
		{"30000000", NULL, 15000},
		{"30000000", mine, 15000},
		{"30000000", "1", 0},
		{"2000", NULL, 1},
		{"1999", NULL, 1},
		{"1", NULL, 1},
		{"0", NULL, 0},
		{"4000", NULL, 2},
		{"", NULL, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsetenv("WATCHDOG_USEC");
		unsetenv("WATCHDOG_PID");
		if (rows[i].usec)
			setenv("WATCHDOG_USEC", rows[i].usec, 1);
		if (rows[i].pid)
			setenv("WATCHDOG_PID", rows[i].pid, 1);
		if (!CHECK_INT(service_notify_watchdog_ms(), rows[i].ms))
			fprintf(stderr, "\trow %zu\n", i);
	}
}

int main(void)
{
	char folder[] = "/tmp/test_notify.XXXXXX";
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	test_sockets(folder);
	test_progress(folder);
	test_watchdog();
	CHECK_INT(rmdir(folder), 0);
	return check_result();
}
