/* How `s3once config` prints what it found. */
#pragma once
#include "aws/config.h"
#include "cli/job/job.h"
#include "cli/output.h"

struct config_view {
	struct output output;
	bool is_json;
	const struct job *job; /* borrowed; NULL: none was named */
};

/* A line for each row. With a job, also for what its file says, and for the options of push that
 * nobody says and that have a default. A row that has its value from an option which the file says
 * names the line. */
void config_view_tell(struct config_view *view, const struct config_rows *rows);
