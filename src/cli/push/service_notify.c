/* Notifies systemd of a run or of `s3once watch`, by datagrams to NOTIFY_SOCKET. push_command.c
 * calls it on progress, and watch while it waits. Nothing here blocks or fails: a message that
 * cannot be sent is lost. */
#include "cli/push/service_notify.h"
#include "base/text.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE_BYTES_MAX 2048
#define INTERVAL_S        0.9 /* a little less than a second: ticks are not exact */

void service_notify_init(struct service_notify *notify)
{
	const char *socket = getenv("NOTIFY_SOCKET");
	const bool is_one = socket && (*socket == '/' || *socket == '@') && socket[1];
	*notify = (struct service_notify){.socket = is_one ? socket : NULL, .told_s = -1};
}

/* Sends without waiting. Errors are ignored, since there is no way to report a lost message. */
void service_notify_say(const struct service_notify *notify, const char *format, ...)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const size_t n = notify->socket ? strlen(notify->socket) : 0;
	if (!n || n >= sizeof address.sun_path)
		return;
	memcpy(address.sun_path, notify->socket, n);
	if (*address.sun_path == '@') /* represents the NUL of an abstract address */
		*address.sun_path = 0;
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	struct text message = TEXT(MESSAGE_BYTES_MAX);
	va_list ap;
	va_start(ap, format);
	text_addfv(&message, format, ap);
	va_end(ap);
	sendto(fd, text_string(&message), message.len, MSG_NOSIGNAL, (struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
	text_clear(&message);
}

uint64_t service_notify_watchdog_ms(void)
{
	const char *pid = getenv("WATCHDOG_PID"), *usec = getenv("WATCHDOG_USEC");
	/* The watchdog may be that of the process that has started this one. */
	if (!usec || (pid && strtoll(pid, NULL, 10) != getpid()))
		return 0;
	const unsigned long long timeout_us = strtoull(usec, NULL, 10);
	/* Half of it, in milliseconds, but at least 1, since 0 means no watchdog. */
	return (timeout_us && timeout_us < 2000) ? 1 : timeout_us / 2000;
}

void service_notify_progress(
	struct service_notify *notify, const struct s3once_counts *counts, const char *line)
{
	const uint64_t files = s3once_counts_settled(counts);
	const uint64_t bytes = counts->bytes_settled + counts->bytes_under_way;
	const bool is_first = notify->told_s < 0;
	const bool is_due = is_first || counts->seconds - notify->told_s >= INTERVAL_S;
	if (!notify->socket || !is_due)
		return;
	const bool moves = is_first || files != notify->files || bytes != notify->bytes ||
			   counts->bytes_sent != notify->sent;
	service_notify_say(
		notify, "STATUS=%s\n%s", line, moves ? "EXTEND_TIMEOUT_USEC=60000000\n" : "");
	notify->told_s = counts->seconds;
	notify->files = files;
	notify->bytes = bytes;
	notify->sent = counts->bytes_sent;
}
