/* The state of the runs of many hosts. It follows from the rows of jobs and the sessions that they
 * name. */
#pragma once
#include "marks/job_row.h"
#include "marks/session.h"

enum fleet_state {
	FLEET_IDLE,    /* no run is known to be at work */
	FLEET_RUNNING, /* its session was renewed within its lease */
	FLEET_SILENT,  /* its session is open, but was not renewed: who needs its files takes them
			  over */
	FLEET_LOST     /* its last run is over and did not say how it ended: it was killed, or could
			  not reach the marks */
};
const char *fleet_state_name(enum fleet_state state); /* "idle", …; static */

/* A job of a host. */
struct fleet_job {
	struct job_row row;
	bool has_session; /* its row was looked for and is still there */
	struct session_info session;
	enum fleet_state state;
	bool has_failed; /* the last run that ended has failed, by its files or its setup */
	bool is_overdue;
	bool is_fine;  /* neither of these, nor SILENT or LOST */
	int64_t now_s; /* the store's time by which all that was judged */
};

/* Whether a run with this exit status has failed. One that was stopped by a signal or a limit, or
 * left files to others, has not. */
bool fleet_is_failure(int exit);
/* Sets the state and what follows it, by the row, the session and now_s. Jobs without success for
 * expect_s are overdue; 0: none. Pure. */
void fleet_judge(uint64_t expect_s, struct fleet_job *job);

/* Hands all jobs to `each`, in the order of hosts and jobs. What it returns other than OK ends the
 * walk. Requests: one for each 500 rows, and one for each hundred sessions that have not said that
 * they ended. Memory does not grow with the rows. */
enum outcome fleet_walk(struct store_conn *conn, uint64_t expect_s,
	enum outcome (*each)(void *arg, const struct fleet_job *job, struct problem *ret_problem),
	void *arg, struct problem *ret_problem);
