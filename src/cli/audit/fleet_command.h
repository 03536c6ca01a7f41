/* The jobs of hosts, told to people or as JSON: by `s3once fleet`, and by `s3once status` of those
 * that upload what it was asked about. */
#pragma once
#include "audit/fleet.h"
#include "cli/output.h"

struct fleet_view {
	struct output *output;
	bool json;
	bool only_wrong; /* what is fine is not told */
	int64_t now_s;   /* of the store; set it before each job */
	/* What failed in the job's last run, line by line; NULL: only its last error is told. Set
	 * it before each job. */
	const char *failures;
	/* Counted as they are told; zero them to start. */
	uint64_t jobs, fine, running, failed, overdue, silent, lost;
};
void fleet_tell_job(struct fleet_view *view, const struct fleet_job *job);
