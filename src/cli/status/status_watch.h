/* `s3once status --watch`: the same look again and again, until a signal ends the process. */
#pragma once
#include "cli/status/status_tell.h"
#include "store/store.h"

struct status_watch {
	struct status_view *view;
	uint64_t interval_ms; /* between two looks */
	enum outcome (*look)(void *arg, struct problem *ret_problem);
	void *arg;
};
/* Draws each look over the one before on a terminal, with what has changed since; else prints one
 * after the other. Returns what ended it: the outcome of a look that failed, with a sentence, or OK
 * if standard output is broken. */
enum outcome status_watch(const struct status_watch *watch, struct problem *ret_problem);
