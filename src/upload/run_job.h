/* What a run says of itself in the row of its job (marks/job_row.h). A row that cannot be written
 * is a warning: no file depends on it. A run that looks only at some folders says nothing, since
 * how it ends is not how the job is. */
#pragma once
#include "upload/run.h"

/* Records that the session of the run has begun. It takes a few seconds at most, whatever the
 * limits say. */
void run_job_begin(struct run *run, struct store_conn *conn, struct call_limits limits);
/* Records how the run ended, after its session has ended. It takes a few seconds at most, too.
 * session is the one that was begun, or NULL. */
void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit);
