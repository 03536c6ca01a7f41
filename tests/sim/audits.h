/* verify, gc and forget of a simulated process. */
#pragma once
#include "world.h"

/* Runs in the process that calls. 0, or 3: it could not do its work. */
int audit_run(const struct machine *machine, enum run_kind kind);
