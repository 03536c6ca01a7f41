/* A piece of a log as a file that never changes, while the log grows, is renamed or compressed. */
#pragma once
#include "scan/source.h"

/* As scan_open_piece. */
int piece_copy(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem);
