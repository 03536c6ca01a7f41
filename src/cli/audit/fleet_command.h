/* The jobs of hosts, told to people or as JSON: by `s3once fleet`, and by `s3once status` of those
 * that upload what it was asked about. */
#pragma once
#include "audit/fleet.h"
#include "cli/output.h"

/* The sums over the jobs that were told. */
enum fleet_sum { FLEET_SUM_FINE, FLEET_SUMS = 6 };
struct fleet_view {
	struct output *output;
	bool json;
	bool only_wrong; /* what is fine is not told */
	/* What failed in the job's last run, line by line; NULL: only its last error is told. Set
	 * it before each job. */
	const char *failures;
	/* Counted as they are told; zero them to start. */
	uint64_t jobs, sums[FLEET_SUMS];
};
void fleet_tell_job(struct fleet_view *view, const struct fleet_job *job);
