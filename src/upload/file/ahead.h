/* The next file of a worker, which is opened and whose claim is handed in right before the mark of
 * the present file is set to done. So the worker waits once for both writes. */
#pragma once
#include "upload/file/file.h"

/* Takes the next file if it is a small one without a mark. worker.c continues it after the present
 * file, whose turn is not affected. Does nothing if there is no such file, if the run is stopping,
 * or if the present file may be removed, which can take seconds. */
void take_ahead(struct worker *worker);
