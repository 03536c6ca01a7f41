/* Where a run keeps how it has cut logs that grow: in the file of its marks. */
#pragma once
#include "upload/run.h"

/* Opens run->log_rows if the options ask for it. 0, -EINVAL with a sentence where the marks are in
 * no file, or -errno with a sentence. */
int cut_logs_open(struct run *run, struct problem *ret_problem);
