/* How the last runs of the jobs ended whose target is asked about. Not every failure has a mark: a
 * file that cannot be read is never claimed. */
#pragma once
#include "cli/status/status_tell.h"

/* Tells of the jobs whose target has the key, or is below it. */
enum outcome status_jobs_tell(
	struct status_view *view, const char *key, struct problem *ret_problem);
