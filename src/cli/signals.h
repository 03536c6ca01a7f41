/* SIGINT, SIGTERM and SIGHUP ask a run to stop, or are counted for what has to tidy up first. A
 * second one ends its grace, and three seconds later the process, whatever stands still in it; a
 * third one ends the process at once. */
#pragma once
#include "s3once/push.h"
#include <stdbool.h>

/* From now on until signals_end_run(). A signal that was ignored when the process began stays
 * ignored (nohup, background jobs). SIGUSR2 lifts the run's limit of bandwidth, or brings it back,
 * also for the runs that follow. `message`, borrowed, goes to stderr at the first signal; ""
 * for none. */
void signals_stop_run(struct s3once_push *push, const char *message);
/* The run may be freed after this. Signals are only counted from here on. Returns the first that
 * came, or 0. */
int signals_end_run(void);

/* For a process that has runs until it is stopped, before the first one: from now on signals are
 * counted while there is no run, and a SIGHUP stops none but is kept for signals_take_reload(). */
void signals_serve(void);
/* Whether a SIGHUP came since this was asked last. */
bool signals_take_reload(void);

/* The same without a run: they are only counted, until signals_restore() gives them their effect
 * back. */
void signals_count(const char *message);
/* How many came so far. From any thread. */
unsigned signals_came(void);
/* Returns the first that came, or 0. */
int signals_restore(void);
