/* SIGINT, SIGTERM and SIGHUP request a run to stop. A second signal ends the grace of the run, and
 * three seconds later the process, whatever hangs in it. A third one ends the process at once.
 * Without a run, signals are only counted, for commands that have to clean up first. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>

/* Lets signals stop this run until signals_end_run(). A signal that was ignored when the process
 * began stays ignored, as for nohup and background jobs. SIGUSR2 lifts the run's limit of
 * bandwidth, or restores it, also for later runs. `message` is borrowed, and is printed on stderr
 * at the first signal; "" is for none. */
void signals_stop_run(struct s3once_push *push, const char *message);
/* Only counts signals from now on, so that the run may be freed. Returns the first signal that
 * came, or 0. */
int signals_end_run(void);

/* Writes the message to standard error if that does not have to wait: a handler that waits would
 * not stop the run. "" writes nothing. It may be called from handlers and any thread. */
void signals_print_if_room(const char *message);

/* Prepares a process that performs run after run until it is stopped. Call it before the first run.
 * From now on signals are counted while there is no run. A SIGHUP stops no run, and is kept for
 * signals_take_reload(). */
void signals_serve(void);
/* Whether a SIGHUP came since the last call. */
bool signals_take_reload(void);

/* Returns whether exactly one signal came so far, which was a SIGTERM. *ret_since_ns is the time of
 * the first signal. After true, that SIGTERM does not stop later runs, and one more signal ends
 * them without a grace. */
bool signals_begin_drain(uint64_t *ret_since_ns);

/* Only counts signals, without a run, until signals_restore(). `message` is as in
 * signals_stop_run(). */
void signals_count(const char *message);
/* Returns the number of signals so far. It may be called from any thread. */
unsigned signals_came(void);
/* Whether any signal came: the `abandon` of requests that a signal ends. */
bool signals_abandon(void *arg);
/* Restores the actions of signals before signals_count(). Returns the first signal that came, or
 * 0. */
int signals_restore(void);
