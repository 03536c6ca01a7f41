/* Which log a file has. */
#pragma once
#include "scan/rotated/log_family.h"

/* Opens each file for its identity, and finds the logs that files with the same identity had. 0, or
 * -errno with a sentence, as below. */
int log_match_by_identity(struct log_family *family, struct problem *ret_problem);
/* Finds the logs that were copied or compressed to another file: by their first bytes. */
int log_match_by_content(struct log_family *family, struct problem *ret_problem);
/* A new log for each file that has none yet. */
int log_match_new(struct log_family *family, struct problem *ret_problem);
