/* The line of a job in `s3once fleet` and `s3once status`, which jobs are shown with --quiet, and
 * in which sum each one counts. */
#include "../check.h"
#include "cli/audit/audit_command.h"
#include "results.h"
#include <stdlib.h>
#include <unistd.h>

#define NOW_S  1700000000
#define AGO(s) (NOW_S - (s))
#define HOUR_S 3600
#define DAY_S  (24 * HOUR_S)
#define SESSION                                                                                    \
	.session = {.is_open = true,                                                               \
		.heard_s = AGO(5),                                                                 \
		.lease_ns = 20 * 1000000000ULL,                                                    \
		.so_far = {.files = 2,                                                             \
			.files_done = 30,                                                          \
			.files_found = 40,                                                         \
			.bytes_done = 1024,                                                        \
			.bytes_found = 4096,                                                       \
			.rate = 2048,                                                              \
			.is_whole = true,                                                          \
			.left_s = 90}}
#define OF_RUN .session = "s2", .ended_session = "s1", .began_s = AGO(300)
#define JOB    .host = "web1", .job = "nginx", .target = "s3://b/p"

static struct text printed = {.max = 1 << 16};

static void put(void *arg, const char *line)
{
	(void)arg;
	text_addf(&printed, "%s\n", line);
}

static const struct row {
	struct fleet_job job;
	const char *want;
	uint64_t expect_s;
	const char *sums; /* those in which it counts, in the order of enum fleet_sum */
	bool is_hidden;   /* with --quiet */
	const char *failures;
} rows[] = {
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .uploaded = 1,
		  .bytes = 2048}},
		"ok       web1/nginx: succeeded 60 min ago, uploaded 1 file (2.0 KiB)\n",
		2 * HOUR_S, "10000000", true},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .found = 1,
		  .shipped_s = AGO(3 * DAY_S)}},
		"ok       web1/nginx: nothing new 60 min ago; last upload 3 days ago\n", 0,
		"10000000", true},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .found = 1}},
		"ok       web1/nginx: nothing new 60 min ago; no upload yet\n", 0, "10000000",
		true},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S),
		  .shipped_s = AGO(3 * DAY_S)}},
		"ok       web1/nginx: found no files 60 min ago; last upload 3 days ago\n", 0,
		"10000000", true},
	/* A push has no name, so its sources and its target stand for it. */
	{{.row = {.host = "web1",
		  .job = "/srv s3://b",
		  .exit = 0,
		  .ended_s = AGO(1),
		  .succeeded_s = AGO(1),
		  .uploaded = 1}},
		"ok       web1 push /srv s3://b: succeeded 1 s ago, uploaded 1 file (0 B)\n", 0,
		"10000000", true},
	{{.row = {JOB, .exit = 1, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(DAY_S), .uploaded = 2,
		  .failed = 3, .error = "why"}},
		"failed   web1/nginx: exit status 1, 60 min ago, uploaded 2 files (0 B), 3 failed; "
		"last success 24 h ago\n         why\n",
		0, "00100000"},
	{{.row = {JOB, .exit = 1, .ended_s = AGO(HOUR_S), .error = "last"}},
		"failed   web1/nginx: exit status 1, 60 min ago; no success yet\n"
		"         one\n         two\n",
		0, "00100000", .failures = "one\ntwo"},
	/* It is both, and the worse of both is its word. */
	{{.row = {JOB, .exit = 3, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(3 * DAY_S)}},
		"failed   web1/nginx: exit status 3, 60 min ago; last success 3 days ago; overdue\n",
		2 * DAY_S, "00100000"},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(3 * DAY_S), .succeeded_s = AGO(3 * DAY_S),
		  .uploaded = 1}},
		"overdue  web1/nginx: succeeded 3 days ago, uploaded 1 file (0 B)\n", 2 * DAY_S,
		"00010000"},
	{{.row = {JOB, .exit = 143, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(DAY_S)}},
		"ok       web1/nginx: stopped before its end 60 min ago; last success 24 h ago\n",
		0, "10000000", true},
	/* The reasons of a run that has not failed are not repeated. */
	{{.row = {JOB, .exit = 6, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(DAY_S),
		  .error = "why"}},
		"ok       web1/nginx: exit status 6, 60 min ago; last success 24 h ago\n", 0,
		"10000000", true},
	{{.row = {JOB, OF_RUN, .exit = -1}, .has_session = true, SESSION},
		"running  web1/nginx: running for 5 min, 30 of 40 files, 1.0 KiB of 4.0 KiB (25%), "
		"2.0 KiB/s, 1:30 left, with 2 files under way at the last heartbeat 5 s ago; no "
		"success yet\n",
		DAY_S, "11000000", true},
	{{.row = {JOB, OF_RUN, .exit = -1},
		 .has_session = true,
		 .session = {.is_open = true,
			 .heard_s = AGO(100),
			 .lease_ns = 20 * 1000000000ULL,
			 .so_far = {.files = 1,
				 .files_done = 3,
				 .files_found = 9,
				 .bytes_done = 1024,
				 .bytes_found = 4096,
				 .rate = 7}}},
		"silent   web1/nginx: last heard of 100 s ago, 3 of 9+ files, 1.0 KiB of 4.0 KiB, with 1 "
		"file under way at the last heartbeat; no success yet\n",
		0, "00001000"},
	/* The run before it has failed, which is the lesser trouble. */
	{{.row = {JOB, OF_RUN, .exit = 1, .ended_s = AGO(DAY_S), .error = "why"},
		 .has_session = true,
		 .session = {.is_open = true, .heard_s = AGO(100), .lease_ns = 20 * 1000000000ULL}},
		"silent   web1/nginx: last heard of 100 s ago; no success yet\n         why\n", 0,
		"00001000"},
	{{.row = {JOB, OF_RUN, .exit = -1},
		 .has_session = true,
		 .session = {.is_open = true,
			 .is_gone = true,
			 .heard_s = AGO(5),
			 .lease_ns = 20 * 1000000000ULL}},
		"silent   web1/nginx: its process is gone, last heard of 5 s ago; no success yet\n",
		0, "00001000"},
	{{.row = {JOB, OF_RUN, .exit = 0, .ended_s = AGO(DAY_S), .succeeded_s = AGO(DAY_S)}},
		"lost     web1/nginx: its run of 5 min ago is over and did not say how it ended; "
		"last success 24 h ago\n",
		0, "00000100"},
	/* Another host has its name. */
	{{.row = {JOB, .machine = "abc", .exit = 3, .ended_s = AGO(HOUR_S)}, .has_namesake = true},
		"failed   web1@abc/nginx: exit status 3, 60 min ago; no success yet\n", 0,
		"00100000"},
	{{.row = {.host = "web1",
		  .job = "/srv s3://b",
		  .exit = 4,
		  .ended_s = AGO(1),
		  .succeeded_s = AGO(2)},
		 .has_namesake = true},
		"ok       web1@unknown push /srv s3://b: exit status 4, 1 s ago; last success 2 s "
		"ago\n",
		0, "10000000", true},
	/* Files that wait for long are shown also with --quiet, though the job is fine. */
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .uploaded = 1,
		  .waiting = 2, .waiting_since_s = AGO(2 * DAY_S)}},
		"waits    web1/nginx: succeeded 60 min ago, uploaded 1 file (0 B); 2 files are "
		"waiting, the oldest for 2 days\n",
		0, "10000010"},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .uploaded = 1,
		  .waiting = 1, .waiting_since_s = AGO(HOUR_S)}},
		"ok       web1/nginx: succeeded 60 min ago, uploaded 1 file (0 B); 1 file has been "
		"waiting for 60 min\n",
		0, "10000000", true},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(HOUR_S), .uploaded = 1,
		  .waiting = 1}},
		"ok       web1/nginx: succeeded 60 min ago, uploaded 1 file (0 B); 1 file is "
		"waiting\n",
		0, "10000000", true},
	/* The key of its pipe was done already: the same for a night whose output is missing. */
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(12 * HOUR_S),
		  .found = 1, .shipped_s = AGO(12 * HOUR_S)}},
		"ok       web1/nginx: nothing new 60 min ago; last upload 12 h ago\n", 0,
		"10000000", true},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .succeeded_s = AGO(13 * HOUR_S),
		  .found = 1, .shipped_s = AGO(13 * HOUR_S)}},
		"repeats  web1/nginx: nothing new 60 min ago; last upload 13 h ago; last success "
		"13 h ago\n",
		0, "10000001"},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .found = 1}},
		"repeats  web1/nginx: nothing new 60 min ago; no upload yet; no success yet\n", 0,
		"10000001"},
	{{.row = {JOB, .exit = 0, .ended_s = AGO(HOUR_S), .found = 1}},
		"overdue  web1/nginx: nothing new 60 min ago; no upload yet; no success yet; "
		"overdue\n",
		DAY_S, "00010001"},
	{{.row = {JOB, .exit = 3, .ended_s = AGO(HOUR_S), .error = "why"}, .is_replaced = true},
		"replaced web1/nginx: exit status 3, 60 min ago; the same files were uploaded to "
		"another target since\n",
		DAY_S, "10000000", true},
};

static void test_lines(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct command_frame frame = {0};
		struct fleet_view view = {.frame = &frame, .put = put, .failures = row->failures};
		struct fleet_job job = row->job;
		char sums[FLEET_SUMS + 1] = "";
		job.now_s = NOW_S;
		fleet_judge(row->expect_s, &job);
		fleet_print_job(&view, &job);
		for (unsigned j = 0; j < FLEET_SUMS; j++)
			sums[j] = (char)('0' + view.sums[j]);
		bool good = CHECK_STRING(text_string(&printed), row->want);
		good &= CHECK_STRING(sums, row->sums);
		good &= CHECK_INT(view.jobs, 1);
		text_reset(&printed);
		view.only_wrong = 1;
		fleet_print_job(&view, &job);
		good &= CHECK_INT(printed.len == 0, row->is_hidden);
		good &= CHECK_INT(view.jobs, 2);
		text_reset(&printed);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
}

/* A row that is history is neither shown nor counted. */
static void test_moved(void)
{
	struct command_frame frame = {0};
	struct fleet_view view = {.frame = &frame, .put = put};
	struct fleet_job job = {
		.row = {JOB, .exit = 1, .ended_s = AGO(DAY_S)}, .has_moved = true, .now_s = NOW_S};
	fleet_judge(0, &job);
	fleet_print_job(&view, &job);
	CHECK_INT(printed.len, 0);
	CHECK_INT(view.jobs + view.sums[FLEET_SUM_FAILED], 0);
}

/* All members of an event, each from its own field: of a job with a run under way, of one whose
 * first run has not ended, and of one whose last run is over. */
static void test_json(void)
{
	static const char *const want[] = {
		"\"host\":\"web1\",\"machine\":\"abc\",\"job\":\"nginx\",\"target\":\"s3://b/p\","
		"\"state\":\"running\",\"fine\":false,\"failed\":true,\"overdue\":false,"
		"\"replaced\":false,\"repeats\":false,\"exit\":1,\"error\":\"why\","
		"\"ended\":\"1970-01-01T00:16:40Z\",\"succeeded\":\"1970-01-01T00:33:20Z\","
		"\"last_upload\":\"1970-01-01T00:50:00Z\",\"files_found\":11,"
		"\"files_uploaded\":12,\"files_failed\":13,\"bytes_uploaded\":14,"
		"\"files_waiting\":15,\"waiting_since\":\"1970-01-01T01:06:40Z\","
		"\"failures\":[\"a: why\",\"b: why\"],\"began\":\"2023-11-14T22:08:20Z\","
		"\"session\":{\"session\":\"s2\",\"owner\":\"web1 pid 7\","
		"\"started\":\"1970-01-01T01:23:20Z\",\"open\":true,\"gone\":false,"
		"\"silent_seconds\":5,\"lease_ms\":20000,\"files\":2,\"files_done\":30,"
		"\"files_found\":40,\"bytes_done\":1024,\"bytes_found\":4096,"
		"\"found_all\":true,\"bytes_per_second\":2048,\"seconds_left\":90}}",
		"\"host\":\"web1\",\"machine\":null,\"job\":\"nginx\",\"target\":\"s3://b/p\","
		"\"state\":\"idle\",\"fine\":true,\"failed\":false,\"overdue\":false,"
		"\"replaced\":false,\"repeats\":false,\"exit\":null,\"error\":\"\",\"ended\":null,"
		"\"succeeded\":null,\"last_upload\":null,\"files_found\":0,"
		"\"files_uploaded\":0,\"files_failed\":0,\"bytes_uploaded\":0,"
		"\"files_waiting\":0,\"waiting_since\":null,\"began\":null,"
		"\"session\":null}",
		"\"host\":\"web1\",\"machine\":null,\"job\":\"nginx\",\"target\":\"s3://b/p\","
		"\"state\":\"idle\",\"fine\":true,\"failed\":false,\"overdue\":false,"
		"\"replaced\":false,\"repeats\":false,\"exit\":0,\"error\":\"\","
		"\"ended\":\"1970-01-01T00:16:40Z\",\"succeeded\":\"1970-01-01T00:16:40Z\","
		"\"last_upload\":null,\"files_found\":0,\"files_uploaded\":0,"
		"\"files_failed\":0,\"bytes_uploaded\":0,\"files_waiting\":0,"
		"\"waiting_since\":null,\"began\":null,\"session\":{\"session\":\"\","
		"\"owner\":\"\",\"started\":null,\"open\":false,\"gone\":false,"
		"\"silent_seconds\":1700000000,\"lease_ms\":0,\"files\":0,\"files_done\":0,"
		"\"files_found\":0,\"bytes_done\":0,\"bytes_found\":0,\"found_all\":false,"
		"\"bytes_per_second\":0,\"seconds_left\":null}}",
	};
	struct command_frame frame = {.json = 1};
	struct fleet_view view = {.frame = &frame, .failures = "a: why\nb: why"};
	struct fleet_job job = {
		.row = {JOB, OF_RUN, .machine = "abc", .exit = 1, .error = "why", .ended_s = 1000,
			.succeeded_s = 2000, .shipped_s = 3000, .found = 11, .uploaded = 12,
			.failed = 13, .bytes = 14, .waiting = 15, .waiting_since_s = 4000},
		.has_session = true,
		SESSION};
	begin_results(&frame.output);
	job.now_s = NOW_S;
	snprintf(job.session.owner, sizeof job.session.owner, "web1 pid 7");
	job.session.started_s = 5000;
	fleet_judge(0, &job);
	fleet_print_job(&view, &job);
	struct fleet_job none = {.row = {JOB, .exit = -1}, .now_s = NOW_S};
	view.failures = NULL;
	fleet_judge(0, &none);
	fleet_print_job(&view, &none);
	struct fleet_job over = {.row = {JOB, .exit = 0, .ended_s = 1000, .succeeded_s = 1000},
		.has_session = true,
		.now_s = NOW_S};
	fleet_judge(0, &over);
	fleet_print_job(&view, &over);
	end_results(&frame.output, want, 3);
}

int main(void)
{
	const int fd = mkstemp(results_path);
	if (!CHECK(fd >= 0))
		return check_result();
	close(fd);
	test_lines();
	test_moved();
	test_json();
	unlink(results_path);
	text_clear(&printed);
	return check_result();
}
