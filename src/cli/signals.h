/* SIGINT, SIGTERM and SIGHUP ask a run to stop. Without a run they are counted, for commands that
 * have to clean up first. A second signal ends the grace of the run, and three seconds later the
 * process, whatever hangs in it. A third one ends the process at once. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>

/* Lets signals stop this run until signals_end_run(). A signal that was ignored when the process
 * began stays ignored, as for nohup and background jobs. SIGUSR2 lifts the run's limit of
 * bandwidth, or brings it back, also for the runs that follow. `message` is borrowed, and is
 * printed on stderr at the first signal; "" is for none. */
void signals_stop_run(struct s3once_push *push, const char *message);
/* Only counts signals from now on, so that the run may be freed. Returns the first signal that
 * came, or 0. */
int signals_end_run(void);

/* Writes to standard error, unless nobody reads it, since a handler that waits would not stop the
 * run. "" is nothing. It may be called from handlers and any thread. */
void signals_say_if_room(const char *message);

/* Is called before the first run of a process that has runs until it is stopped. From now on
 * signals are counted while there is no run. A SIGHUP stops no run, and is kept for
 * signals_take_reload(). */
void signals_serve(void);
/* Whether a SIGHUP came since the last call. */
bool signals_take_reload(void);

/* Whether the one signal that came is a SIGTERM, and since when. Then it does not stop the runs
 * that follow, and one more signal ends them without a grace. */
bool signals_begin_drain(uint64_t *ret_since_ns);

/* Only counts signals, without a run, until signals_restore() gives them their effect back. */
void signals_count(const char *message);
/* How many signals came so far. It may be called from any thread. */
unsigned signals_came(void);
/* Whether any came, for requests that a signal ends. */
bool signals_abandon(void *arg);
/* Returns the first signal that came, or 0. */
int signals_restore(void);
