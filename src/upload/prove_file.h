/* Whether the content of one file is done, told as an event of the run. */
#pragma once
#include "upload/file/done_now.h"
#include "upload/queue/blocks.h"

/* Takes the candidate. Several workers may do so at once. */
enum done prove_candidate(struct worker *worker, struct candidate *candidate);
/* Tells that it cannot be known, and returns that. */
enum done prove_unknown(
	struct run *run, const char *path, const char *key, const struct problem *problem);
