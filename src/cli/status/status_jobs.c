#include "cli/status/status_jobs.h"
#include "audit/fleet.h"
#include "cli/audit/fleet_tell.h"
#include <string.h>

/* How many bytes of what failed a row has at most. */
#define FAILURES_MAX (64U << 10)

struct jobs {
	struct status_view *view;
	struct fleet_view fleet;
	struct text asked; /* "s3://BUCKET/KEY", escaped as in the rows */
};

/* Whether one of them is the other one, or below it. */
static bool is_beside(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	while (n && a[n - 1] == '/')
		n--;
	while (m && b[m - 1] == '/')
		m--;
	const size_t least = n < m ? n : m;
	const char *longer = n < m ? b : a;
	return strncmp(a, b, least) == 0 && (n == m || longer[least] == '/');
}

static enum outcome tell_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	struct jobs *jobs = arg;
	struct text failures = TEXT(FAILURES_MAX);
	if (!is_beside(text_string(&jobs->asked), job->row.target))
		return OUTCOME_OK;
	const enum outcome o =
		job_row_failures(jobs->view->conn, &job->row.key, NULL, &failures, ret_problem);
	jobs->fleet.now_s = store_time_s(jobs->view->conn->store);
	jobs->fleet.failures = text_string(&failures);
	if (o == OUTCOME_OK)
		fleet_tell_job(&jobs->fleet, job);
	text_clear(&failures);
	return o;
}

enum outcome status_jobs_tell(
	struct status_view *view, const char *key, struct problem *ret_problem)
{
	struct jobs jobs = {.view = view,
		.fleet = {.output = view->output, .json = view->json},
		.asked = TEXT(32U << 10)};
	const struct fleet_visitor visitor = {tell_job, &jobs};
	text_addf(&jobs.asked, "s3://%s/", view->space->bucket);
	text_add_escaped_string(&jobs.asked, key);
	const enum outcome o = fleet_walk(view->conn, 0, NULL, &visitor, ret_problem);
	text_clear(&jobs.asked);
	return o;
}
