/* Notifies the service manager, if there is one, of the run's progress, and that it is alive
 * (sd_notify(3)). */
#pragma once
#include "cli/push/progress_line.h"

struct service_notify {
	const char *socket; /* NOTIFY_SOCKET; NULL: nobody listens */
	double told_s; /* the second of the run in which the last STATUS was sent; -1: none was */
	uint64_t files, bytes, sent; /* how far the run was then */
};

/* Reads the environment. */
void service_notify_init(struct service_notify *notify);
/* Sends lines such as "READY=1", with '\n' between them; printf style. */
void service_notify_say(const struct service_notify *notify, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The longest time in milliseconds between two feeds of the watchdog, which is half of
 * WATCHDOG_USEC. 0: there is no watchdog. */
uint64_t service_notify_watchdog_ms(void);
/* Sends `line` as STATUS, at most once a second. As long as files or bytes move, it also extends
 * the time limits of the unit (TimeoutStartSec=, RuntimeMaxSec=) to at least a minute from now. */
void service_notify_progress(
	struct service_notify *notify, const struct s3once_counts *counts, const char *line);
