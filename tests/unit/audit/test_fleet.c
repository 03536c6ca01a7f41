/* What is said of a job, by its row, the session that it names, and the time. */
#include "../check.h"
#include "audit/fleet.h"
#include "base/clock.h"

#define NOW 1000000

static const struct session_info
	alive = {.is_open = true, .heard_s = NOW - 5, .lease_ns = 30 * NS_PER_S},
	late = {.is_open = true, .heard_s = NOW - 33, .lease_ns = 30 * NS_PER_S},
	gone = {.is_open = true, .is_gone = true, .heard_s = NOW, .lease_ns = 30 * NS_PER_S},
	ended = {.heard_s = NOW - 5, .lease_ns = 30 * NS_PER_S};

static const struct {
	const char *what;
	const char *session, *ended_session;
	const struct session_info *info; /* NULL: its row is gone */
	int64_t began, ended, succeeded; /* seconds ago; 0: never */
	int exit;
	uint64_t expect_s;
	enum fleet_state state;
	bool has_failed, is_overdue, is_fine;
} cases[] = {
	{"succeeded", "s", "s", NULL, 60, 50, 50, 0, 3600, FLEET_IDLE, false, false, true},
	{"nothing to upload", "", "", NULL, 0, 50, 50, 0, 3600, FLEET_IDLE, false, false, true},
	{"failed", "s", "s", NULL, 60, 50, 500, 1, 3600, FLEET_IDLE, true, false, false},
	{"setup", "", "", NULL, 0, 50, 0, 3, 0, FLEET_IDLE, true, false, false},
	{"fenced", "s", "s", NULL, 60, 50, 500, 5, 0, FLEET_IDLE, true, false, false},
	{"held", "s", "s", NULL, 60, 50, 500, 4, 3600, FLEET_IDLE, false, false, true},
	{"at a limit", "s", "s", NULL, 60, 50, 500, 6, 3600, FLEET_IDLE, false, false, true},
	{"stopped", "s", "s", NULL, 60, 50, 500, 128, 3600, FLEET_IDLE, false, false, true},
	{"stopped for long", "s", "s", NULL, 60, 50, 3601, 128, 3600, FLEET_IDLE, false, true,
		false},
	{"just in time", "s", "s", NULL, 60, 50, 3600, 128, 3600, FLEET_IDLE, false, false, true},
	{"never succeeded", "s", "s", NULL, 60, 50, 0, 4, 3600, FLEET_IDLE, false, true, false},
	{"nothing expected", "s", "s", NULL, 60, 50, 0, 4, 0, FLEET_IDLE, false, false, true},
	{"first run", "s", "", &alive, 9000, 0, 0, -1, 3600, FLEET_RUNNING, false, false, true},
	{"running after a failure", "s", "r", &alive, 60, 90, 500, 1, 3600, FLEET_RUNNING, true,
		false, false},
	{"running for long", "s", "r", &alive, 9000, 9100, 9100, 0, 3600, FLEET_RUNNING, false,
		true, false},
	{"silent", "s", "r", &late, 60, 90, 90, 0, 3600, FLEET_SILENT, false, false, false},
	{"its process is gone", "s", "r", &gone, 60, 90, 90, 0, 3600, FLEET_SILENT, false, false,
		false},
	{"silent, and another run ended since", "s", "r", &late, 60, 50, 50, 0, 3600, FLEET_IDLE,
		false, false, true},
	{"ended by others", "s", "r", &ended, 60, 90, 90, 0, 3600, FLEET_LOST, false, false, false},
	{"swept", "s", "r", NULL, 60, 90, 90, 0, 3600, FLEET_LOST, false, false, false},
	{"first run was killed", "s", "", NULL, 60, 0, 0, -1, 3600, FLEET_LOST, false, true, false},
	{"swept, and another run ended since", "s", "r", NULL, 60, 50, 50, 0, 3600, FLEET_IDLE,
		false, false, true},
};

static int64_t ago(int64_t seconds)
{
	return seconds ? NOW - seconds : 0;
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct fleet_job job = {.row = {.began_s = ago(cases[i].began),
						.ended_s = ago(cases[i].ended),
						.succeeded_s = ago(cases[i].succeeded),
						.exit = cases[i].exit},
			.has_session = cases[i].info != NULL,
			.now_s = NOW};
		strcpy(job.row.session, cases[i].session);
		strcpy(job.row.ended_session, cases[i].ended_session);
		if (cases[i].info)
			job.session = *cases[i].info;
		fleet_judge(cases[i].expect_s, &job);
		if (!CHECK(job.state == cases[i].state && job.has_failed == cases[i].has_failed &&
			    job.is_overdue == cases[i].is_overdue &&
			    job.is_fine == cases[i].is_fine))
			fprintf(stderr, "\t%s: %s\n", cases[i].what, fleet_state_name(job.state));
	}
	return check_result();
}
