/* The session that holds the claim of a mark, for commands that report on one file to people. */
#pragma once
#include "marks/mark_row.h"
#include "marks/session.h"

struct claimant {
	bool is_known; /* the mark is claimed, and the row of its session is there */
	struct session_info session;
	bool is_over; /* the mark is claimed, and its run is not at work any more, as
			 session_is_at_work() says: the next run continues the file */
};
/* Reads a mark as mark_get() does, and the session of its claim. If that run is over, the mark is
 * read again: the run may have finished the file, and ended, after the mark was read. So a mark
 * whose claimant is over is left as it is until another run takes it over. */
enum outcome mark_get_with_claimant(const struct mark_ref *ref, struct mark *ret,
	struct claimant *ret_claimant, struct problem *ret_problem);
