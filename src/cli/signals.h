/* SIGINT, SIGTERM and SIGHUP ask a run to stop; a second one ends its grace. */
#pragma once
#include "s3once/push.h"

/* From now on until signals_ignore_run(). A signal that was ignored when the process began stays
 * ignored (nohup, background jobs). `message`, borrowed, goes to stderr at the first signal; ""
 * for none. */
void signals_stop_run(struct s3once_push *push, const char *message);
/* The run may be freed after this. Returns the first signal that came, or 0. */
int signals_ignore_run(void);
