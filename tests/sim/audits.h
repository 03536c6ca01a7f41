/* Runs verify, gc and forget. */
#pragma once
#include "world.h"

/* Runs one of them in the calling process. Returns 0, or 3 if it could not do its work. */
int audit_run(const struct machine *machine, enum run_kind kind);
