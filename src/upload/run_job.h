/* What a run says of itself in the row of its job (marks/job_row.h). A row that cannot be written
 * is a warning: no file depends on it. */
#pragma once
#include "upload/run.h"

/* The session of the run has begun. Bounded: the deadline of the limits is a few seconds from now,
 * whatever they say. */
void run_job_begin(struct run *run, struct store_conn *conn, struct call_limits limits);
/* The run has ended so, and its session has ended. Bounded likewise. session is the one that was
 * begun, or NULL. */
void run_job_end(
	struct run *run, struct store_conn *conn, const char *session, enum s3once_exit exit);
