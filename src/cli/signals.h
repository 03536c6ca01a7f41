/* SIGINT, SIGTERM and SIGHUP ask a run to stop, or are counted for what has to tidy up first; a
 * second one ends its grace. */
#pragma once
#include "s3once/push.h"

/* From now on until signals_ignore_run(). A signal that was ignored when the process began stays
 * ignored (nohup, background jobs). `message`, borrowed, goes to stderr at the first signal; ""
 * for none. */
void signals_stop_run(struct s3once_push *push, const char *message);
/* The run may be freed after this. Returns the first signal that came, or 0. */
int signals_ignore_run(void);

/* The same without a run: they are only counted, until signals_restore() gives them their effect
 * back. */
void signals_count(const char *message);
/* How many came so far. From any thread. */
unsigned signals_came(void);
/* Returns the first that came, or 0. */
int signals_restore(void);
