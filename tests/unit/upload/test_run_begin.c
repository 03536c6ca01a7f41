/* The steps before the first claim of a run and after its end: the check of the bucket, the row of
 * the session, and the row of the job. */
#include "base/clock.h"
#include "lease/process.h"
#include "marks/job_row.h"
#include "steps.h"

/* As steps_begin_run(), but nothing has begun. */
static bool set_up(struct steps *steps, const struct script_step *script, size_t n)
{
	char text[400] = "";
	if (!script_start(&steps->server, script, n))
		return false;
	for (size_t i = n; i < SCRIPT_STEPS_MAX; i++)
		steps->server.steps[i].close = true;
	steps->options.endpoint_url = steps->server.url;
	if (!CHECK_INT(s3once_push_new(&steps->options, &steps->push, text, sizeof text), 0)) {
		fprintf(stderr, "\t%s\n", text);
		return false;
	}
	steps->run = &steps->push->run;
	return CHECK(push_set_up(steps->push));
}

static bool has_session_row(struct steps *steps)
{
	struct session_info info;
	return session_describe(steps->push->conn, session_id(steps->run->session), &info,
		       &steps->problem) == OUTCOME_OK;
}

/* The key of a job of this machine. */
static struct job_key key_of(const char *job)
{
	struct process self;
	char machine[MACHINE_CHARS + 1];
	struct job_key key;
	process_self(&self);
	machine_id(machine);
	job_key_make(&(struct job_name){.host = self.host, .job = job, .machine = machine}, &key);
	return key;
}

/* Reads the only row of a job. Returns whether there is one. */
static bool read_job(struct steps *steps, struct job_row *ret)
{
	struct job_row rows[2];
	size_t n = 0;
	CHECK_INT(job_rows_read(steps->push->conn, NULL, 2, &no_limits, rows, &n, &steps->problem),
		OUTCOME_OK);
	CHECK(n < 2);
	*ret = rows[0];
	return n == 1;
}

#define HEAD_OK           STEPS_REPLY("200", "", "")
#define HEAD_ABSENT       STEPS_REPLY("404", "", "")
#define HEAD_DENIED       STEPS_REPLY("403", "", "")
#define WHY(status, code) STEPS_REPLY(status, "", "<Error><Code>" code "</Code></Error>")
#define FAILURE           STEPS_REPLY("500", "", "<Error><Code>InternalError</Code></Error>")

static const struct {
	const char *answers[3];
	bool is_dry, only_folders;
	/* of the first call */
	bool begins, is_known, fails;
	unsigned asks; /* how many requests all calls send */
} rows[] = {
	{{HEAD_OK}, false, false, true, true, false, 1},
	{{HEAD_OK}, true, false, true, true, false, 1},
	{{HEAD_OK}, false, true, true, true, false, 1},
	{{HEAD_DENIED, WHY("403", "AccessDenied")}, false, false, true, true, false, 2},
	{{HEAD_DENIED, WHY("403", "InvalidAccessKeyId")}, false, false, false, false, true, 2},
	{{HEAD_ABSENT, WHY("404", "NoSuchBucket")}, false, false, false, false, true, 2},
	{{HEAD_ABSENT, WHY("404", "NoSuchBucket")}, true, false, false, false, true, 2},
	{{FAILURE, HEAD_OK}, false, false, true, false, false, 2},
};

static void test_begin(bool asks_first)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_step script[3];
		struct steps steps;
		struct job_row job, again;
		size_t n = 0;
		if (!steps_make(&steps, "x", 1))
			return;
		for (; n < 3 && rows[i].answers[n]; n++)
			script[n] = (struct script_step){rows[i].answers[n], .close = true};
		steps.options.dry_run = rows[i].is_dry;
		steps.options.attempts = 1;
		const char *const folders[] = {steps.tree};
		steps.options.folders = rows[i].only_folders ? folders : NULL;
		steps.options.n_folders = rows[i].only_folders;
		if (!set_up(&steps, script, n))
			return;
		struct run *run = steps.run;
		bool good = true;
		if (asks_first)
			run_ensure_bucket_exists(run);
		else
			good &= CHECK_INT(run_ensure_begun(run, steps.push->conn), rows[i].begins);
		good &= CHECK_INT(run->locked.begun, rows[i].begins && !asks_first);
		good &= CHECK_INT(atomic_load(&run->bucket_answers), rows[i].is_known);
		good &= CHECK_INT(run->locked.head_bucket_answered, rows[i].is_known);
		good &= CHECK_INT(atomic_load(&run->end.failed_setup), rows[i].fails);
		good &= CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], rows[i].fails);
		good &= rows[i].is_known || CHECK(rows[i].fails || *run->locked.no_answer.text);
		if (rows[i].fails && strstr(rows[i].answers[1], "NoSuchBucket"))
			good &= steps_say(&steps, "the bucket does not exist");
		else if (rows[i].fails)
			good &= CHECK(!strstr(steps.said, "does not exist"));
		/* Later calls do nothing. */
		if (asks_first)
			good &= CHECK_INT(run_ensure_begun(run, steps.push->conn), rows[i].begins);
		const bool has_job = read_job(&steps, &job);
		good &= CHECK_INT(run_ensure_begun(run, steps.push->conn), rows[i].begins);
		good &= CHECK_INT(read_job(&steps, &again), has_job);
		good &= !has_job || CHECK_STRING(again.version, job.version);
		run_ensure_bucket_exists(run);
		good &= CHECK_INT(atomic_load(&run->bucket_answers), !rows[i].fails);
		run_ensure_bucket_exists(run);
		const bool writes = rows[i].begins && !rows[i].is_dry;
		good &= CHECK_INT(has_session_row(&steps), writes);
		good &= CHECK_INT(read_job(&steps, &job), writes && !rows[i].only_folders);
		if (good && writes && !rows[i].only_folders) {
			good &= CHECK_STRING(job.session, session_id(run->session));
			good &= CHECK_STRING(job.target, "s3://b");
			good &= CHECK_INT(job.exit, -1);
			good &= CHECK(job.began_s > 0);
		}
		script_stop(&steps.server);
		good &= CHECK_INT(steps.server.n_requests, rows[i].asks);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, steps.said);
		steps_end(&steps);
	}
}

/* A run that is over, or that stops, asks for nothing. */
static void test_too_late(void)
{
	for (int fails = 0; fails < 2; fails++) {
		struct steps steps;
		if (!steps_make(&steps, "x", 1) || !set_up(&steps, NULL, 0))
			return;
		if (fails)
			run_fail(steps.run, PROBLEM("over"));
		else
			run_ask_to_stop(steps.run);
		run_ensure_bucket_exists(steps.run);
		CHECK(!atomic_load(&steps.run->bucket_answers));
		CHECK(!fails || !run_ensure_begun(steps.run, steps.push->conn));
		CHECK(!steps.run->locked.begun && !has_session_row(&steps));
		script_stop(&steps.server);
		CHECK_INT(steps.server.n_requests, 0);
		CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], fails);
		steps_end(&steps);
	}
}

/* The row of the job after each kind of end. */
static const struct {
	enum s3once_exit exit;
	bool has_session, is_whole, repeats, waits;
} ends[] = {
	{S3ONCE_EXIT_OK, true, true, false, true},
	{S3ONCE_EXIT_OK, false, true, false, false},
	{S3ONCE_EXIT_OK, true, true, true, false},
	{S3ONCE_EXIT_FILES, true, true, false, true},
	{S3ONCE_EXIT_SETUP, false, false, false, true},
	{S3ONCE_EXIT_LIMIT, true, false, false, true},
	{S3ONCE_EXIT_STOPPED, true, true, false, false},
};

static void test_end(void)
{
	static const char session[] = "0123456789abcdef0123456789abcdef";
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct steps steps;
		struct job_row job = {0};
		struct text failures = TEXT(REPORT_FAILURES_MAX);
		if (!steps_make(&steps, "x", 1))
			return;
		steps.options.prefix = "p/q";
		if (!set_up(&steps, NULL, 0))
			return;
		struct run *run = steps.run;
		const struct report_file file = {.path = "f", .key = "k", .bytes = 5};
		report_file(&run->report, S3ONCE_EVENT_UPLOADED, &file, NULL);
		report_file(&run->report, S3ONCE_EVENT_UPLOADED, &file, NULL);
		report_file(&run->report, S3ONCE_EVENT_FAILED, &file, PROBLEM("why"));
		report_file(&run->report, S3ONCE_EVENT_CHANGED, &file, PROBLEM("why"));
		report_file(&run->report, S3ONCE_EVENT_NOT_REMOVED, &file, PROBLEM("why"));
		if (ends[i].waits)
			report_file(&run->report, S3ONCE_EVENT_WAITING,
				&(struct report_file){.bytes = 1,
					.wait = S3ONCE_WAIT_LIVE,
					.mtime_ns = INT64_C(77999999999)},
				NULL);
		atomic_store(&run->report.scan_complete, ends[i].is_whole);
		atomic_store(&run->report.repeats_s, ends[i].repeats ? 1000 : 0);
		run_job_end(
			run, steps.push->conn, ends[i].has_session ? session : NULL, ends[i].exit);
		const bool is_good = ends[i].exit == S3ONCE_EXIT_OK;
		bool good = CHECK(read_job(&steps, &job));
		good &= CHECK_INT(job.exit, ends[i].exit);
		good &= CHECK_STRING(job.target, "s3://b/p/q");
		good &= CHECK_STRING(job.ended_session, ends[i].has_session ? session : "");
		good &= CHECK_STRING(job.error, is_good ? "" : "f: why");
		good &= CHECK_INT(job.uploaded, 2);
		good &= CHECK_INT(job.failed, 3);
		good &= CHECK_INT(job.bytes, 10);
		good &= CHECK_INT(job.succeeded_s != 0, is_good && !ends[i].repeats);
		good &= CHECK_INT(job.shipped_s != 0, 1);
		good &= CHECK_INT(job.waiting, ends[i].is_whole && ends[i].waits);
		good &= CHECK_INT(job.waiting_since_s, ends[i].is_whole && ends[i].waits ? 77 : 0);
		CHECK_INT(job_row_failures(steps.push->conn, &job.key, &no_limits, &failures,
				  &steps.problem),
			OUTCOME_OK);
		good &= CHECK_STRING(
			text_string(&failures), is_good ? "" : "f: why\nf: why\nf: why");
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		text_clear(&failures);
		steps_end(&steps);
	}
}

/* A row that cannot be written is a warning, and not even that if the reason is told already. A run
 * of some folders writes none. */
static enum outcome refuse(struct store_conn *conn, struct item_key key,
	const struct item_write *write, const struct call_limits *limits, struct item *ret,
	struct problem *ret_problem)
{
	(void)conn, (void)key, (void)write, (void)ret;
	CHECK(limits->deadline_ns > clock_boot_ns());
	CHECK(limits->deadline_ns <= clock_boot_ns() + 3 * NS_PER_S);
	return outcome_error(ret_problem, OUTCOME_TRANSIENT, "no marks");
}

static void test_row_that_cannot_be_written(void)
{
	for (unsigned k = 0; k < 4; k++) {
		const bool is_setup = k & 1, only_folders = k & 2;
		struct steps steps;
		struct job_row job;
		if (!steps_make(&steps, "x", 1))
			return;
		const char *const folders[] = {steps.tree};
		steps.options.folders = only_folders ? folders : NULL;
		steps.options.n_folders = only_folders;
		if (!set_up(&steps, NULL, 0))
			return;
		const struct store_ops *real = steps.run->store->ops;
		struct store_ops ops = *real;
		ops.write = refuse;
		steps.run->store->ops = &ops;
		run_job_end(steps.run, steps.push->conn, NULL,
			is_setup ? S3ONCE_EXIT_SETUP : S3ONCE_EXIT_FILES);
		CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], !is_setup && !only_folders);
		steps.run->store->ops = real;
		CHECK(!read_job(&steps, &job));
		steps_end(&steps);
	}
}

/* A job without a name is known by its sources and its target. */
static void test_names_of_jobs(void)
{
	static const struct {
		const char *sources[4];               /* "/" at the beginning stands for the tree */
		const char *prefix, *as, *job, *name; /* "@" in the name is the tree */
	} names[] = {
		{{"/"}, NULL, NULL, NULL, "@ s3://b"},
		{{"/"}, "p", NULL, NULL, "@ s3://b/p"},
		{{"/"}, "p", NULL, "nightly", "nightly"},
		{{"/k"}, NULL, NULL, NULL, "@/* s3://b"},
		{{"/k"}, NULL, "x/y/z", NULL, "@/* s3://b/x/y/"},
		{{"/k"}, NULL, "z", NULL, "@/* s3://b"},
		{{"/k", "/l"}, NULL, NULL, NULL, "@/* s3://b"},
		{{"/k", "/d", "/l"}, NULL, NULL, NULL, "@/* @/d @/* s3://b"},
		{{"/gone"}, NULL, NULL, NULL, NULL}, /* no row is made */
		{{"/k/gone"}, NULL, NULL, NULL, NULL},
		{{"/gone"}, NULL, NULL, "nightly", "nightly"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct steps steps;
		struct job_row job = {0};
		struct job_key want;
		char paths[4][200], name[400] = "", folder[200];
		const char *sources[4];
		size_t n = 0;
		if (!steps_make(&steps, "x", 1))
			return;
		snprintf(folder, sizeof folder, "%s/l", steps.tree);
		close(open(folder, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		snprintf(folder, sizeof folder, "%s/d", steps.tree);
		CHECK_INT(mkdir(folder, 0700), 0);
		for (; n < 4 && names[i].sources[n]; n++) {
			snprintf(paths[n], sizeof paths[n], "%s%s", steps.tree,
				names[i].sources[n][1] ? names[i].sources[n] : "");
			sources[n] = paths[n];
		}
		for (const char *at = names[i].name ? names[i].name : ""; *at; at++) {
			const size_t len = strlen(name);
			if (*at == '@')
				snprintf(name + len, sizeof name - len, "%s", steps.tree);
			else
				snprintf(name + len, sizeof name - len, "%c", *at);
		}
		steps.options.sources = sources;
		steps.options.n_sources = n;
		steps.options.prefix = names[i].prefix;
		steps.options.as = names[i].as;
		steps.options.job = names[i].job;
		if (!set_up(&steps, NULL, 0))
			return;
		run_job_end(steps.run, steps.push->conn, NULL, S3ONCE_EXIT_OK);
		want = key_of(name);
		bool good = CHECK_INT(read_job(&steps, &job), names[i].name != NULL);
		good &= !names[i].name || CHECK_STRING(job.key.text, want.text);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		steps_end(&steps);
	}
}

/* A SOURCE that is gone may have been a folder or a file: a row of either is its own. */
static void test_source_that_is_gone(void)
{
	enum row { NONE, OF_FOLDER, OF_FILE };
	for (enum row row = NONE; row <= OF_FILE; row++) {
		struct steps steps;
		struct job_key key;
		struct job_row job = {.exit = -1};
		char path[120], name[200];
		const char *sources[] = {path};
		if (!steps_make(&steps, "x", 1))
			return;
		snprintf(path, sizeof path, "%s/gone", steps.tree);
		snprintf(name, sizeof name, row == OF_FOLDER ? "%s/gone s3://b" : "%s/* s3://b",
			steps.tree);
		steps.options.sources = sources;
		if (!set_up(&steps, NULL, 0))
			return;
		key = key_of(name);
		const struct job_end before = {
			.target = "s3://b", .error = "", .failures = "", .has_seen_all = true};
		if (row != NONE)
			CHECK_INT(job_row_end(steps.push->conn, &key, &before, &no_limits,
					  &steps.problem),
				OUTCOME_OK);
		run_job_end(steps.run, steps.push->conn, NULL, S3ONCE_EXIT_FILES);
		CHECK_INT(read_job(&steps, &job), row != NONE);
		if (row != NONE) {
			CHECK_INT(job.exit, S3ONCE_EXIT_FILES);
			CHECK_STRING(job.key.text, key.text);
		}
		CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], 0);
		steps_end(&steps);
	}
}

/* A clock that is wrong is told once. While it is, no file is removed by an age that this host has
 * counted. */
static void test_wrong_clock(void)
{
	static const struct {
		int64_t server_s; /* before this host */
		bool removes;
		uint64_t remove_after_s;
		bool warns, says_age;
		bool is_due; /* a file that was done two days ago */
	} rows_of_clock[] = {
		{0, true, 3600, false, false, true},
		{7200, true, 3600, true, true, false},
		{-7200, true, 3600, true, true, false},
		{7200, true, 0, true, false, true},
		{7200, false, 3600, true, false, false},
	};
	for (size_t i = 0; i < sizeof rows_of_clock / sizeof *rows_of_clock; i++) {
		char reply[200], date[40];
		struct steps steps;
		const time_t then = (time_t)(clock_wall_s() - rows_of_clock[i].server_s);
		struct tm tm;
		strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&then, &tm));
		snprintf(reply, sizeof reply,
			"HTTP/1.1 200 X\r\nDate: %s\r\nConnection: close\r\n\r\n", date);
		const struct script_step script = {reply, .close = true};
		if (!steps_make(&steps, "x", 1))
			return;
		steps.options.removes = rows_of_clock[i].removes;
		steps.options.remove_after_s = rows_of_clock[i].remove_after_s;
		if (!set_up(&steps, &script, 1))
			return;
		struct run *run = steps.run;
		const int64_t done_at_s = store_time_s(run->store) - 2 * 86400;
		run_ensure_bucket_exists(run);
		run_ensure_bucket_exists(run);
		bool good = CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], rows_of_clock[i].warns);
		if (rows_of_clock[i].warns) {
			good &= steps_say(&steps, rows_of_clock[i].server_s > 0
							  ? " s ahead of the server's: set it"
							  : " s behind the server's: set it");
			good &= CHECK_INT(
				strstr(steps.said, "no file is removed by its age") != NULL,
				rows_of_clock[i].says_age);
			const char *number = strstr(steps.said, " is ");
			good &= CHECK(number && labs(atol(number + 4) - 7200) < 60);
		}
		good &= CHECK_INT(run_removal_is_due(run, done_at_s), rows_of_clock[i].is_due);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

/* A request that makes an object visible ends with the lease, and others go on. */
static void test_without_a_lease(void)
{
	struct steps steps;
	if (!steps_make(&steps, "x", 1) || !set_up(&steps, NULL, 0))
		return;
	struct run *run = steps.run;
	const struct call_limits limits = run_limits(run), visible = run_visible_limits(run);
	CHECK(!limits.abandon(run) && visible.abandon(run));
	CHECK_INT(session_begin(run->session, steps.push->conn, &steps.problem), OUTCOME_OK);
	CHECK(!limits.abandon(run) && !visible.abandon(run));
	run_fail(run, PROBLEM("over"));
	CHECK(limits.abandon(run) && visible.abandon(run));
	script_stop(&steps.server);
	steps_end(&steps);
}

/* The row of the session says how far the run is, without links and special files. */
static void test_so_far(void)
{
	for (int is_whole = 0; is_whole < 2; is_whole++) {
		struct steps steps;
		struct session_info info = {0};
		if (!steps_make(&steps, "x", 1))
			return;
		steps.options.lease_ms = 45000;
		if (!set_up(&steps, NULL, 0))
			return;
		struct report *report = &steps.run->report;
		report_count_found(report, 10, 8);
		for (int i = 0; i < 3; i++)
			report_file(report, S3ONCE_EVENT_UPLOADED,
				&(struct report_file){.bytes = 8}, NULL);
		report_file(report, S3ONCE_EVENT_LINK, &(struct report_file){0}, NULL);
		report_file(report, S3ONCE_EVENT_SPECIAL, &(struct report_file){0}, NULL);
		report_file(report, S3ONCE_EVENT_SKIPPED, &(struct report_file){.bytes = 8}, NULL);
		report->locked.counts.bytes_found = 80;
		atomic_store(&report->in_flight, 2);
		atomic_store(&report->under_way, 5);
		atomic_store(&report->scan_complete, is_whole);
		CHECK_INT(session_begin(steps.run->session, steps.push->conn, &steps.problem),
			OUTCOME_OK);
		CHECK_INT(session_describe(steps.push->conn, session_id(steps.run->session), &info,
				  &steps.problem),
			OUTCOME_OK);
		CHECK_INT(info.lease_ms, 45000);
		CHECK_INT(info.so_far.files, 2);
		CHECK_INT(info.so_far.files_found, 8);
		CHECK_INT(info.so_far.files_done, 4);
		CHECK_INT(info.so_far.bytes_found, 80);
		CHECK_INT(info.so_far.bytes_done, 37);
		CHECK_INT(info.so_far.is_whole, is_whole);
		CHECK_INT(info.so_far.left_s, 0); /* it is not known in the first second */
		steps_end(&steps);
	}
}

int main(void)
{
	test_begin(false);
	test_begin(true);
	test_too_late();
	test_end();
	test_row_that_cannot_be_written();
	test_names_of_jobs();
	test_so_far();
	test_source_that_is_gone();
	test_wrong_clock();
	test_without_a_lease();
	return check_result();
}
