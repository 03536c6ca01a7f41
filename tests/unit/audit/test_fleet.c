/* The state of a job, as derived from its row, the session in the row, and the time. */
#include "audit.h"
#include "audit/fleet.h"
#include "base/clock.h"
#include "s3once/push.h"

#define NOW 1000000

static const struct session_info
	alive = {.is_open = true, .heard_s = NOW - 5, .lease_ns = 30 * NS_PER_S},
	just_in_time = {.is_open = true, .heard_s = NOW - 32, .lease_ns = 30 * NS_PER_S},
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
	{"called wrongly", "", "", NULL, 0, 50, 500, 2, 3600, FLEET_IDLE, true, false, false},
	{"fenced", "s", "s", NULL, 60, 50, 500, 5, 0, FLEET_IDLE, true, false, false},
	{"held", "s", "s", NULL, 60, 50, 500, 4, 3600, FLEET_IDLE, false, false, true},
	{"at a limit", "s", "s", NULL, 60, 50, 500, 6, 3600, FLEET_IDLE, false, false, true},
	{"stopped", "s", "s", NULL, 60, 50, 500, 128, 3600, FLEET_IDLE, false, false, true},
	{"stopped for long", "s", "s", NULL, 60, 50, 3601, 128, 3600, FLEET_IDLE, false, true,
		false},
	{"just in time", "s", "s", NULL, 60, 50, 3600, 128, 3600, FLEET_IDLE, false, false, true},
	{"never succeeded", "s", "s", NULL, 60, 50, 0, 4, 3600, FLEET_IDLE, false, true, false},
	{"succeeded before the clock was set back", "s", "s", NULL, 60, 50, -100, 0, 50, FLEET_IDLE,
		false, false, true},
	{"never succeeded, and runs again", "s", "r", &alive, 60, 90, 0, 1, 3600, FLEET_RUNNING,
		true, true, false},
	{"nothing expected", "s", "s", NULL, 60, 50, 0, 4, 0, FLEET_IDLE, false, false, true},
	{"first run", "s", "", &alive, 9000, 0, 0, -1, 3600, FLEET_RUNNING, false, false, true},
	{"running after a failure", "s", "r", &alive, 60, 90, 500, 1, 3600, FLEET_RUNNING, true,
		false, false},
	{"running for long", "s", "r", &alive, 9000, 9100, 9100, 0, 3600, FLEET_RUNNING, false,
		true, false},
	{"heard of in a lease and the error of the times", "s", "r", &just_in_time, 60, 90, 90, 0,
		3600, FLEET_RUNNING, false, false, true},
	{"silent", "s", "r", &late, 60, 90, 90, 0, 3600, FLEET_SILENT, false, false, false},
	{"its process is gone", "s", "r", &gone, 60, 90, 90, 0, 3600, FLEET_SILENT, false, false,
		false},
	{"silent, and another run ended since", "s", "r", &late, 60, 50, 50, 0, 3600, FLEET_IDLE,
		false, false, true},
	{"silent, and another run ended as it began", "s", "r", &late, 60, 60, 60, 0, 3600,
		FLEET_SILENT, false, false, false},
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

static void test_states(void)
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
}

/* Files that wait are worth a word once the oldest of them waits for more than a day, though the
 * job is fine. */
static void test_waiting(void)
{
	static const struct {
		uint64_t waiting;
		int64_t since_s; /* ago; 0: not known */
		bool waits_long;
	} rows[] = {{1, S3ONCE_WAITS_LONG_S + 1, true}, {1, S3ONCE_WAITS_LONG_S, false},
		{0, S3ONCE_WAITS_LONG_S + 1, false}, {1, 0, false}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fleet_job job = {.row = {.waiting = rows[i].waiting,
						.waiting_since_s = ago(rows[i].since_s)},
			.now_s = NOW};
		fleet_judge(0, &job);
		CHECK_INT(job.waits_long, rows[i].waits_long);
		CHECK(job.is_fine);
	}
}

static void put_job(struct audit *audit, const char *host, const char *job, const char *session,
	const char *ended_session, int exit)
{
	struct job_key key;
	job_key_make(&(struct job_name){.host = host, .job = job, .machine = ""}, &key);
	const struct job_begin begun = {.session = session, .target = "s3://b"};
	const struct job_end result = {.target = "s3://b",
		.session = ended_session,
		.error = "",
		.failures = "",
		.exit = exit};
	/* The end of another run comes first, so that it never is a second later than the beginning
	 * of this one. */
	const bool ended_before = ended_session && strcmp(session, ended_session) != 0;
	if (exit >= 0 && ended_before)
		CHECK_INT(job_row_end(audit->conn, &key, &result, &no_limits, &audit->problem),
			OUTCOME_OK);
	if (*session)
		CHECK_INT(job_row_begin(audit->conn, &key, &begun, &no_limits, &audit->problem),
			OUTCOME_OK);
	if (exit >= 0 && !ended_before)
		CHECK_INT(job_row_end(audit->conn, &key, &result, &no_limits, &audit->problem),
			OUTCOME_OK);
}

static enum outcome note_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	char *said = arg;
	snprintf(said + strlen(said), 2000, "%s/%s %s%s%s%s\n", job->row.host, job->row.job,
		fleet_state_name(job->state), job->has_failed ? " failed" : "",
		job->is_replaced ? " replaced" : "", job->is_fine ? "" : " !");
	return strstr(said, "z/") ? OUTCOME_LOCAL : OUTCOME_OK;
}

/* All jobs, with the sessions of those that have not reported their end. Two jobs may name the same
 * session. A mistyped target is replaced by the same sources with another one. */
static void test_walk(void)
{
	struct audit audit;
	char said[6000] = "";
	if (!audit_begin(&audit, NULL, 0))
		return;
	audit_put_session(&audit, "open", "open");
	audit_put_session(&audit, "over", "ended");
	put_job(&audit, "a", "ended", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "a", "failed", "s", "s", S3ONCE_EXIT_FILES);
	put_job(&audit, "b", "lost", "over", NULL, -1);
	put_job(&audit, "b", "swept", "swept", NULL, -1);
	put_job(&audit, "c", "one", "open", NULL, -1);
	put_job(&audit, "c", "two", "open", NULL, -1);
	put_job(&audit, "d", "/x s3://mistyped", "", NULL, S3ONCE_EXIT_SETUP);
	put_job(&audit, "d", "/x s3://right", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "e", "/x s3://mistyped", "", NULL, S3ONCE_EXIT_SETUP);
	put_job(&audit, "e", "/y s3://right", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "f", "/x s3://failed", "s", "s", S3ONCE_EXIT_FILES);
	put_job(&audit, "f", "/x s3://right", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "g", "/x s3://mistyped", "", NULL, S3ONCE_EXIT_SETUP);
	put_job(&audit, "g", "/x/y s3://right", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "g", "/z s3://broken", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "g", "/z s3://broken", "", NULL, S3ONCE_EXIT_SETUP);
	put_job(&audit, "g", "/z s3://right", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "g", "named", "", NULL, S3ONCE_EXIT_SETUP);
	put_job(&audit, "g", "named2", "s", "s", S3ONCE_EXIT_OK);
	CHECK_INT(fleet_walk(audit.conn, 0, note_job, said, &audit.problem), OUTCOME_OK);
	CHECK_STRING(said, "a/ended idle\na/failed idle failed !\nb/lost lost !\n"
			   "b/swept lost !\nc/one running\nc/two running\n"
			   "d//x s3://mistyped idle failed replaced\nd//x s3://right idle\n"
			   "e//x s3://mistyped idle failed !\ne//y s3://right idle\n"
			   "f//x s3://failed idle failed !\nf//x s3://right idle\n"
			   "g//x s3://mistyped idle failed !\ng//x/y s3://right idle\n"
			   "g//z s3://broken idle failed !\ng//z s3://right idle\n"
			   "g/named idle failed !\ng/named2 idle\n");
	put_job(&audit, "z", "1", "s", "s", S3ONCE_EXIT_OK);
	put_job(&audit, "z", "2", "s", "s", S3ONCE_EXIT_OK);
	said[0] = '\0';
	CHECK_INT(fleet_walk(audit.conn, 0, note_job, said, &audit.problem), OUTCOME_LOCAL);
	CHECK(strstr(said, "z/1 ") && !strstr(said, "z/2 "));
	audit_asked(&audit, "");
	audit_end(&audit);
}

static enum outcome count_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	unsigned *counts = arg;
	counts[job->state]++;
	return OUTCOME_OK;
}

/* Several pages of jobs, each with a session of its own. */
static void test_many(void)
{
	enum { JOBS = 1100 };
	struct audit audit;
	unsigned counts[FLEET_LOST + 1] = {0};
	if (!audit_begin(&audit, NULL, 0))
		return;
	for (unsigned i = 0; i < JOBS; i++) {
		char name[20];
		snprintf(name, sizeof name, "%04u", i);
		put_job(&audit, "h", name, name, NULL, -1);
		if (i != 3 && i != JOBS - 1)
			audit_put_session(&audit, name, "open");
	}
	CHECK_INT(fleet_walk(audit.conn, 0, count_job, counts, &audit.problem), OUTCOME_OK);
	CHECK_INT(counts[FLEET_LOST], 2);
	CHECK_INT(counts[FLEET_RUNNING], JOBS - 2);
	audit_end(&audit);
}

static void put_row(
	struct audit *audit, const char *key, int exit, int64_t ended_s, int64_t succeeded_s)
{
	struct item item = {0}, present = {0};
	item_set_number(&item, "exit", exit);
	item_set_number(&item, "ended", ended_s);
	if (succeeded_s)
		item_set_number(&item, "succeeded", succeeded_s);
	CHECK_INT(
		audit->real->write(audit->conn, (struct item_key){"jobs", key},
			&(struct item_write){.item = &item}, &no_limits, &present, &audit->problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

/* Only what has succeeded since replaces a job that could not begin: a target that was right
 * before it is no correction. A job that has failed for more than an hour, here since 0, is
 * replaced by none. */
static void test_row_that_replaces_another(void)
{
	struct audit audit;
	char said[2000] = "";
	if (!audit_begin(&audit, NULL, 0))
		return;
	put_row(&audit, "a///x s3://before", 0, 99, 99);
	put_row(&audit, "a///x s3://wrong", S3ONCE_EXIT_SETUP, 100, 0);
	put_row(&audit, "b///x s3://same", 0, 100, 100);
	put_row(&audit, "b///x s3://wrong", S3ONCE_EXIT_SETUP, 100, 0);
	put_row(&audit, "c///x s3://later", 4, 200, 101);
	put_row(&audit, "c///x s3://wrong", S3ONCE_EXIT_SETUP, 100, 0);
	put_row(&audit, "d///x s3://held", 4, 200, 0);
	put_row(&audit, "d///x s3://wrong", S3ONCE_EXIT_SETUP, 100, 0);
	put_row(&audit, "e///x s3://y s3://wrong", S3ONCE_EXIT_SETUP, 100, 0);
	put_row(&audit, "e///x s3://right", 0, 200, 200);
	put_row(&audit, "f///x s3://right", 0, 3700, 3700);
	put_row(&audit, "f///x s3://wrong", S3ONCE_EXIT_SETUP, 3601, 0);
	CHECK_INT(fleet_walk(audit.conn, 0, note_job, said, &audit.problem), OUTCOME_OK);
	CHECK_STRING(said, "a//x s3://before idle\na//x s3://wrong idle failed !\n"
			   "b//x s3://same idle\nb//x s3://wrong idle failed replaced\n"
			   "c//x s3://later idle\nc//x s3://wrong idle failed replaced\n"
			   "d//x s3://held idle\nd//x s3://wrong idle failed !\n"
			   "e//x s3://right idle\ne//x s3://y s3://wrong idle failed !\n"
			   "f//x s3://right idle\nf//x s3://wrong idle failed !\n");
	audit_asked(&audit, "");
	audit_end(&audit);
}

/* A job of a machine: the hours at which it began there, ended last and succeeded last. */
static void put_machine(struct audit *audit, const char *key, int64_t first_h, int64_t ended_h,
	int64_t succeeded_h, const char *session)
{
	struct item item = {0};
	item_set_number(&item, "exit", succeeded_h == ended_h ? 0 : 1);
	item_set_number(&item, "ended", ended_h * 3600);
	item_set_number(&item, "succeeded", succeeded_h * 3600);
	item_set_number(&item, "first", first_h * 3600);
	item_set_number(&item, "began", ended_h * 3600 - 1);
	item_set_string(&item, "session", session);
	CHECK_INT(audit->real->write(audit->conn, (struct item_key){"jobs", key},
			  &(struct item_write){.item = &item}, &no_limits, NULL, &audit->problem),
		OUTCOME_OK);
	item_clear(&item);
}

static enum outcome note_machine(void *arg, const struct fleet_job *job, struct problem *problem)
{
	char *said = arg;
	snprintf(said + strlen(said), 2000, "%s@%s/%s%s%s\n", job->row.host, job->row.machine,
		job->row.job, job->has_moved ? " moved" : "", job->has_namesake ? " namesake" : "");
	return OUTCOME_OK;
}

/* Which rows of machines that share a host name are history. */
static void test_machines(void)
{
	struct audit audit;
	char said[2000] = "";
	if (!audit_begin(&audit, NULL, 0))
		return;
	audit_put_session(&audit, "open", "open");
	/* Hosts that take turns, however their runs end. */
	put_machine(&audit, "a/1/j", 100, 300, 299, "");
	put_machine(&audit, "a/2/j", 200, 400, 400, "");
	/* Installed again, twice. */
	put_machine(&audit, "b/1/j", 300, 400, 400, "");
	put_machine(&audit, "b/2/j", 100, 200, 100, "");
	put_machine(&audit, "b/3/j", 201, 299, 299, "");
	/* It never succeeded there, began in the same second, or did not succeed for a day. */
	put_machine(&audit, "c/1/j", 100, 200, 100, "");
	put_machine(&audit, "c/2/j", 300, 400, 200, "");
	put_machine(&audit, "d/1/j", 200, 200, 200, "");
	put_machine(&audit, "d/2/j", 200, 200, 200, "");
	put_machine(&audit, "d2/1/j", 100, 200, 100, "");
	put_machine(&audit, "d2/2/j", 201, 223, 223, "");
	/* Another job, or a run that is still at work. */
	put_machine(&audit, "e/1/j", 100, 200, 100, "");
	put_machine(&audit, "e/2/k", 300, 400, 400, "");
	put_machine(&audit, "f/1/j", 100, 200, 100, "open");
	put_machine(&audit, "f/2/j", 300, 400, 400, "");
	/* The machine is unknown. */
	put_machine(&audit, "g//j", 100, 200, 100, "");
	put_machine(&audit, "g/2/j", 300, 400, 400, "");
	CHECK_INT(fleet_walk(audit.conn, 0, note_machine, said, &audit.problem), OUTCOME_OK);
	CHECK_STRING(said, "a@1/j namesake\na@2/j namesake\n"
			   "b@1/j\nb@2/j moved namesake\nb@3/j moved namesake\n"
			   "c@1/j namesake\nc@2/j namesake\nd@1/j namesake\nd@2/j namesake\n"
			   "d2@1/j namesake\nd2@2/j namesake\n"
			   "e@1/j\ne@2/k\n"
			   "f@1/j namesake\nf@2/j\n"
			   "g@/j moved namesake\ng@2/j\n");
	audit_asked(&audit, "");
	audit_end(&audit);
}

/* The rows of one host name are judged together, though a page ends between them. */
static void test_machines_at_the_end_of_a_page(void)
{
	struct audit audit;
	static char said[80000];
	if (!audit_begin(&audit, NULL, 0))
		return;
	for (unsigned i = 0; i < 499; i++) {
		char key[20];
		snprintf(key, sizeof key, "h%04u//j", i);
		put_machine(&audit, key, 100, 200, 200, "");
	}
	put_machine(&audit, "i/1/j", 100, 200, 100, "");
	put_machine(&audit, "i/2/j", 300, 400, 400, "");
	said[0] = '\0';
	CHECK_INT(fleet_walk(audit.conn, 0, note_machine, said, &audit.problem), OUTCOME_OK);
	unsigned lines = 0;
	for (const char *c = said; (c = strchr(c, '\n')); c++)
		lines++;
	CHECK_INT(lines, 501);
	CHECK(strstr(said, "i@1/j moved namesake\ni@2/j\n") != NULL);
	audit_end(&audit);
}

/* More jobs than are read at once. The first ones have sessions of their own. */
static void test_many_jobs(void)
{
	struct audit audit;
	static char said[80000];
	if (!audit_begin(&audit, NULL, 0))
		return;
	for (unsigned i = 0; i < 1001; i++) {
		char job[20];
		snprintf(job, sizeof job, "%04u", i);
		put_job(&audit, "h", job,
			i < 500    ? job
			: i == 700 ? "swept"
				   : "s",
			"s", S3ONCE_EXIT_OK);
	}
	said[0] = '\0';
	CHECK_INT(fleet_walk(audit.conn, 0, note_job, said, &audit.problem), OUTCOME_OK);
	unsigned lines = 0;
	for (const char *c = said; (c = strchr(c, '\n')); c++)
		lines++;
	CHECK_INT(lines, 1001);
	CHECK(strstr(said, "h/0000 lost") && strstr(said, "h/0499 lost"));
	CHECK(strstr(said, "h/0699 idle") && strstr(said, "h/0700 lost") &&
		strstr(said, "h/1000 idle"));
	audit_asked(&audit, "");
	audit_end(&audit);
}

int main(void)
{
	test_states();
	test_waiting();
	test_machines();
	test_machines_at_the_end_of_a_page();
	test_walk();
	test_many();
	test_row_that_replaces_another();
	test_many_jobs();
	return check_result();
}
