/* The state of the jobs of many hosts. It follows from the row of each job (marks/job_row.h), and
 * from the session that this row names. */
#pragma once
#include "marks/job_row.h"
#include "marks/session.h"

enum fleet_state {
	FLEET_IDLE,    /* no run is known to be at work */
	FLEET_RUNNING, /* the session of a run was renewed within its lease */
	FLEET_SILENT,  /* the session of a run is open, but was not renewed within its lease, or its
			  process is gone: another uploader may take its files over */
	FLEET_LOST /* the last run is over without having reported its end: it was killed, or could
		      not reach the marks */
};
const char *fleet_state_name(enum fleet_state state); /* "idle", …; static */

/* A job of a machine. */
struct fleet_job {
	struct job_row row;
	/* The row is history: no run of it is at work, and after its last run the same job began on
	 * another machine of this host name, and has succeeded there a day or more after that last
	 * run. So the host was installed again, or the job was moved. Of machines that take turns
	 * none has moved. */
	bool has_moved;
	bool has_namesake; /* the job has another row under this host name, and has not moved from
			      it to this one */
	bool has_session; /* the row names a session that has not reported its end, and whose row is
			     still there */
	struct session_info session;
	enum fleet_state state;
	bool has_failed; /* fleet_is_failure() of the exit status of the run that ended last */
	bool is_overdue; /* the job has not succeeded for expect_s */
	bool waits_long; /* a file waits for more than S3ONCE_WAITS_LONG_S */
	/* The last run ended with exit status 0 without reading its pipe, since an earlier run had
	 * stored the object, and the job has not succeeded for S3ONCE_REPEATS_LONG_S before that:
	 * its new output is probably not in S3. Such a job is fine. */
	bool repeats_long;
	bool is_fine; /* it has not failed, is not overdue, and is neither SILENT nor LOST */
	/* The job has no name, never succeeded, and failed by its setup, all within an hour, and
	 * the same files were uploaded to another target since: its target was mistyped. Such a job
	 * is fine. */
	bool is_replaced;
	int64_t now_s; /* the store's time at which the job is judged */
};

/* Returns whether a run with this exit status has failed. A run has not failed if a signal or a
 * limit stopped it, or if it left files to other uploaders. */
bool fleet_is_failure(int exit);
/* Sets the members from `state` to `is_fine` by the row, the session and now_s. A job that has not
 * succeeded for expect_s is overdue; 0: no job is. Pure. */
void fleet_judge(uint64_t expect_s, struct fleet_job *job);

/* Hands all jobs to `each`, in the order of hosts and jobs, also those that have moved. An outcome
 * of `each` other than OK ends the walk. It takes one request for 500 rows, and one for a hundred
 * sessions of jobs whose last run has not reported its end. A job that seems to be SILENT or LOST,
 * and was heard shortly before, takes two more. Memory does not grow with the rows. */
enum outcome fleet_walk(struct store_conn *conn, uint64_t expect_s,
	enum outcome (*each)(void *arg, const struct fleet_job *job, struct problem *ret_problem),
	void *arg, struct problem *ret_problem);
