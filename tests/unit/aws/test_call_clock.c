/* How long a call goes on, by a clock that the test moves: with each reply, and with each wait
 * before the next attempt. */
#include "../moved_clock.h"
#include "../script_server.h"
#include "aws/call.h"
#include "aws/progress_clock.h"
#include "aws/retry.h"
#include "aws/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "s3/s3_reply.h"

#define REPLY(status, code)                                                                        \
	"HTTP/1.1 " status " X\r\nConnection: close\r\n\r\n"                                       \
	"<Error><Code>" code "</Code><Message>why</Message></Error>"
#define OK_REPLY   "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define FAILS      REPLY("500", "InternalError")
#define SLOW       REPLY("503", "SlowDown")
#define STALL_MS   30000
#define PATIENCE_S 60

/* A service over a scripted server. */
struct fixture {
	struct script_server server;
	struct aws_settings settings;
	struct http_shared *http;
	struct service *service;
	struct service_conn *conn;
	/* With each reply so much time passes, and the service may accept a request of others. */
	int64_t reply_takes_s;
	bool accepts_others;
	unsigned said_down, said_up;
	uint64_t wait_ms;    /* of the wait that has just begun; 0: there is none */
	uint64_t longest_ms; /* of all waits */
};

static void note_line(void *arg, enum log_level level, const char *line)
{
	struct fixture *f = arg;
	const char *again = strstr(line, "; again in ");
	f->said_down += strstr(line, "; trying again for up to ") != NULL;
	f->said_up += strstr(line, "S3 answers again") != NULL;
	if (again)
		f->wait_ms = strtoull(again + 11, NULL, 10);
	f->longest_ms = f->wait_ms > f->longest_ms ? f->wait_ms : f->longest_ms;
	(void)level;
}

/* In the server's thread, right before a reply. */
static void let_time_pass(void *arg)
{
	const struct fixture *f = arg;
	shift_ns += f->reply_takes_s * (int64_t)NS_PER_S;
	if (f->accepts_others)
		atomic_store(&f->service->pace.success_ns, clock_boot_ns());
}

/* Is asked whether to give up, and lets a wait that has begun pass. */
static bool let_wait_pass(void *arg)
{
	struct fixture *f = arg;
	shift_ns += (int64_t)(f->wait_ms * NS_PER_MS);
	f->wait_ms = 0;
	return false;
}

/* Begins a service whose server gives these n replies. */
static bool begin(struct fixture *f, const char *const *replies, size_t n)
{
	static const char *const kinds[] = {"GetObject", NULL};
	const struct credentials_options credentials = {.profile = "default",
		.credentials_path = "/nonexistent/credentials",
		.config_path = "/nonexistent/config"};
	struct script_step steps[SCRIPT_STEPS_MAX];
	*f = (struct fixture){0};
	for (size_t i = 0; i < n; i++)
		steps[i] = (struct script_step){
			replies[i], .close = true, .meanwhile = let_time_pass, .arg = f};
	if (!script_start(&f->server, steps, n))
		return false;
	f->settings = (struct aws_settings){.region = "us-east-1",
		.s3_endpoint = f->server.url,
		.attempts = 100,
		.request_timeout_ms = 24 * 3600 * 1000,
		.stall_timeout_ms = STALL_MS};
	const struct http_options http = {.stall_timeout_ms = 24 * 3600 * 1000};
	CHECK_INT(credentials_chain_new(&credentials, &f->settings.credentials), 0);
	CHECK_INT(http_shared_new(&http, &f->http), 0);
	const struct service_options options = {
		.settings = &f->settings, .http = f->http, .is_s3 = true, .kinds = kinds};
	CHECK_INT(service_new(&options, &f->service, NULL), 0);
	log_set_level(LOG_DEBUG);
	log_set_sink(note_line, f);
	return CHECK_INT(service_conn_new(f->service, &f->conn), 0);
}

static void end(struct fixture *f)
{
	log_set_sink(NULL, NULL);
	log_set_level(LOG_WARNING);
	service_conn_free(f->conn);
	service_free(f->service);
	http_shared_free(f->http);
	credentials_chain_free(f->settings.credentials);
	script_clear(&f->server);
}

static enum outcome perform(struct fixture *f, struct call_limits limits, struct problem *ret)
{
	struct http_reply reply = {0};
	limits.abandon = let_wait_pass;
	limits.abandon_arg = f;
	const struct call call = {.method = "GET",
		.path = "/b/k",
		.query = "",
		.payload_hash = SHA256_OF_NOTHING,
		.read_error = s3_reply_error,
		.limits = limits};
	const enum outcome outcome = call_perform(f->conn, &call, &reply, ret);
	http_reply_clear(&reply);
	return outcome;
}

/* When a call that fails is given up: once it has failed for its patience, of which earlier calls
 * may have used up a part. A long attempt counts for no longer than its server may be silent. */
static void test_failing(void)
{
	static const struct {
		int64_t reply_takes_s;
		uint64_t failed_ms, patience_s;
		unsigned attempts, want;
		uint64_t failing_s; /* what is said of the call; 0: it is random */
		bool has_no_tokens; /* so that each wait takes 10 s and more, beside the attempt */
	} rows[] = {
		/* The time counts from the first failure on. */
		{25, 0, PATIENCE_S, 100, 4, 75},
		{25, 5000, PATIENCE_S, 100, 4, 75},
		{25, 11000, PATIENCE_S, 100, 3, 50},
		{25, 61000, PATIENCE_S, 100, 1, 0},
		{25, 0, PATIENCE_S + 6, 100, 4, 75},
		{25, 0, PATIENCE_S + 6, 100, 3, 0, true},
		{1000, 0, PATIENCE_S, 100, 3, 60},
		/* Without patience, only the number of attempts ends it. */
		{1000, 0, 0, 5, 5, 0},
		{1, 0, PATIENCE_S, 3, 3, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static const char *const replies[] = {FAILS, FAILS, FAILS, FAILS, FAILS, FAILS};
		struct problem problem = {0};
		struct fixture f;
		if (!begin(&f, replies, 6))
			return;
		f.reply_takes_s = rows[i].reply_takes_s;
		if (rows[i].has_no_tokens)
			atomic_store(&f.service->quota, 0);
		const struct call_limits limits = {.patience_ms = rows[i].patience_s * 1000,
			.failed_ms = rows[i].failed_ms,
			.attempts = rows[i].attempts};
		CHECK_INT(perform(&f, limits, &problem), OUTCOME_TRANSIENT);
		script_stop(&f.server);
		if (!CHECK_INT(f.server.n_requests, rows[i].want) ||
			(rows[i].failing_s &&
				!CHECK(problem.failing_ms >= rows[i].failing_s * 1000 &&
					problem.failing_ms < (rows[i].failing_s + 20) * 1000)))
			fprintf(stderr, "\trow %zu\n", i);
		end(&f);
	}
}

/* Throttling is no attempt while the patience lasts, which begins again whenever the service
 * accepts a request of others. Then no wait becomes longer than the first one. */
static void test_throttled(void)
{
	for (int accepts_others = 0; accepts_others < 2; accepts_others++) {
		static const char *const replies[] = {
			SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, OK_REPLY};
		struct problem problem = {0};
		struct fixture f;
		if (!begin(&f, replies, 12))
			return;
		f.accepts_others = accepts_others;
		f.reply_takes_s = PATIENCE_S - 20;
		/* Requests accepted before the call began do not count. */
		atomic_store(&f.service->pace.success_ns, 1);
		const struct call_limits limits = {.patience_ms = PATIENCE_S * 1000, .attempts = 1};
		CHECK_INT(perform(&f, limits, &problem),
			accepts_others ? OUTCOME_OK : OUTCOME_THROTTLED);
		script_stop(&f.server);
		CHECK_INT(f.server.n_requests, accepts_others ? 12 : 2);
		if (accepts_others)
			CHECK(f.longest_ms <= 1000);
		/* Throttling takes no tokens. */
		CHECK_INT(atomic_load(&f.service->quota), RETRY_TOKENS);
		end(&f);
	}
}

/* For the clock of the run, only an answer of the service to the request itself is one: a server
 * that throttles everything for ever is as useless as one that fails. */
static void test_clock_of_the_run(void)
{
	static const struct {
		const char *reply;
		bool is_answer;
	} rows[] = {
		{OK_REPLY, true},
		{REPLY("404", "NoSuchKey"), true},
		{REPLY("403", "AccessDenied"), true},
		{FAILS, false},
		{SLOW, false},
		{REPLY("400", "RequestTimeout"), false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct problem problem = {0};
		struct progress_clock clock;
		struct fixture f;
		if (!begin(&f, &rows[i].reply, 1))
			return;
		progress_init(&clock);
		progress_set_limit(&clock, PATIENCE_S * 1000, 1000);
		perform(&f, (struct call_limits){.attempts = 1, .progress = &clock}, &problem);
		if (!CHECK_INT(atomic_load(&clock.has_failed), !rows[i].is_answer))
			fprintf(stderr, "\trow %zu\n", i);
		progress_clear(&clock);
		script_stop(&f.server);
		end(&f);
	}
}

/* Each wait makes the next one longer, but for those of a throttled request while the service
 * accepts others. The waits are random, so that only the longest of many shows it. */
static void test_waits(void)
{
	static const struct {
		const char *reply;
		bool accepts_others, grows;
		uint64_t first_ms; /* the most of a first wait */
	} rows[] = {
		{FAILS, false, true, 50},
		{FAILS, true, true, 50},
		{SLOW, false, true, 1000},
		{SLOW, true, false, 1000},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *replies[12];
		struct problem problem = {0};
		struct fixture f;
		for (size_t j = 0; j < 12; j++)
			replies[j] = rows[i].reply;
		if (!begin(&f, replies, 12))
			return;
		f.accepts_others = rows[i].accepts_others;
		const struct call_limits limits = {.attempts = 12};
		perform(&f, limits, &problem);
		script_stop(&f.server);
		if (!CHECK_INT(f.server.n_requests, 12) ||
			!CHECK_INT(f.longest_ms > rows[i].first_ms, rows[i].grows))
			fprintf(stderr, "\trow %zu: %" PRIu64 " ms\n", i, f.longest_ms);
		end(&f);
	}
}

/* No wait takes more than half of the time that is left before the deadline, so that all attempts
 * come in time, though without tokens each wait is one of ten seconds at least. */
static void test_deadline(void)
{
	static const char *const replies[] = {FAILS, FAILS, FAILS};
	struct problem problem = {0};
	struct fixture f;
	if (!begin(&f, replies, 3))
		return;
	atomic_store(&f.service->quota, 0);
	const struct call_limits limits = {
		.attempts = 3, .deadline_ns = clock_boot_ns() + 20 * NS_PER_S};
	CHECK_INT(perform(&f, limits, &problem), OUTCOME_TRANSIENT);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 3);
	end(&f);
}

/* A call that fails waits no longer than its patience lasts, of which earlier calls have used up a
 * part.
 */
static void test_rest_of_patience(void)
{
	static const char *const replies[] = {FAILS, FAILS, FAILS, FAILS};
	struct problem problem = {0};
	struct fixture f;
	if (!begin(&f, replies, 4))
		return;
	atomic_store(&f.service->quota, 0);
	const struct call_limits limits = {
		.patience_ms = PATIENCE_S * 1000, .failed_ms = PATIENCE_S * 1000 - 500};
	CHECK_INT(perform(&f, limits, &problem), OUTCOME_TRANSIENT);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 2);
	CHECK_INT(f.longest_ms, 500);
	end(&f);
}

/* An outage of the service is reported once for all calls, and so is its end. */
static void test_down(void)
{
	static const char *const replies[] = {OK_REPLY, OK_REPLY, OK_REPLY};
	const struct call_limits patient = {.patience_ms = PATIENCE_S * 1000};
	struct problem problem = {0};
	struct fixture f;
	if (!begin(&f, replies, 3))
		return;
	const struct endpoint reached = f.service->locked.endpoint;
	struct endpoint down = reached;
	strcpy(down.url, "http://127.0.0.1:1");
	const struct {
		bool is_down, is_patient;
		unsigned said_down, said_up; /* so far */
	} rows[] = {
		{true, false, 0, 0},
		{false, true, 0, 0},
		{true, true, 1, 0},
		{true, true, 1, 0},
		{false, true, 1, 1},
		{false, true, 1, 1},
		{true, true, 2, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		f.service->locked.endpoint = rows[i].is_down ? down : reached;
		f.settings.attempts = rows[i].is_patient ? 9 : 2;
		atomic_store(&f.service->quota, RETRY_TOKENS);
		const enum outcome o =
			perform(&f, rows[i].is_patient ? patient : no_limits, &problem);
		if (!CHECK_INT(o, rows[i].is_down ? OUTCOME_SETUP : OUTCOME_OK) ||
			!CHECK_INT(f.said_down, rows[i].said_down) ||
			!CHECK_INT(f.said_up, rows[i].said_up) ||
			/* Once the patience is over, the attempts that it has excused count. */
			(rows[i].is_down && !CHECK_INT(strncmp(problem.text, "after ", 6) == 0,
						    !rows[i].is_patient)))
			fprintf(stderr, "\trow %zu: %s\n", i, problem.text);
	}
	script_stop(&f.server);
	end(&f);
}

int main(void)
{
	static const char *const unwanted[] = {"http_proxy", "all_proxy", "ALL_PROXY",
		"AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"};
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
		unsetenv(unwanted[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	CHECK_INT(http_global_init(), 0);
	test_failing();
	test_throttled();
	test_clock_of_the_run();
	test_waits();
	test_deadline();
	test_rest_of_patience();
	test_down();
	return check_result();
}
