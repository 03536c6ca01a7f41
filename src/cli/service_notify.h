/* What the service manager is told, where there is one (sd_notify(3)): how far the run is, and that
 * it gets on. */
#pragma once
#include "cli/progress_line.h"

struct service_notify {
	const char *socket;          /* NOTIFY_SOCKET; NULL: nobody listens */
	double told_s;               /* of the run, when it was told last; before that -1 */
	uint64_t files, bytes, sent; /* of the progress then */
	bool feeds_watchdog;         /* set by the caller: that the run is alive is told, too */
};

/* Reads the environment. */
void service_notify_init(struct service_notify *notify);
/* "READY=1" and the like, lines with '\n' between them. */
void service_notify_say(const struct service_notify *notify, const char *lines);
/* How often the watchdog wants to be fed at most, in milliseconds, which is half of what
 * WATCHDOG_USEC says; 0: there is none. */
uint64_t service_notify_watchdog_ms(void);
/* At most once a second: `line` as STATUS, and, as long as files or bytes move, that the time
 * limits of the unit (TimeoutStartSec=, RuntimeMaxSec=) are at least a minute away from now. */
void service_notify_progress(
	struct service_notify *notify, const struct progress *progress, const char *line);
