/* The next file of a worker. It is opened, and its claim submitted, right before the mark of the
 * current file is set to done, so that the worker waits only once for both writes. */
#pragma once
#include "upload/file/file.h"

/* Takes the next file if it is a small one without a mark. worker.c continues it after the present
 * file, whose turn is not affected. Does nothing if there is no such file, if the run is stopping,
 * or if the present file may be removed, which can take seconds. */
void take_ahead(struct worker *worker);
