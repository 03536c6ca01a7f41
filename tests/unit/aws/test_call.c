#include "../script_server.h"
#include "aws/call.h"
#include "aws/credentials/credentials_providers.h"
#include "aws/progress_clock.h"
#include "aws/retry.h"
#include "aws/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "s3/s3_reply.h"
#include <errno.h>

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define S3_ERROR(status, headers, code)                                                            \
	"HTTP/1.1 " status " X\r\nx-amz-request-id: REQ1\r\n" headers                              \
	"Connection: close\r\n\r\n<Error><Code>" code "</Code><Message>why</Message></Error>"

static const char *const kinds[] = {"PutObject", "HeadObject", NULL};

/* A service over a scripted server, and one connection to it. */
struct fixture {
	struct script_server server;
	struct aws_settings settings;
	struct http_shared *http;
	struct service *service;
	struct service_conn *conn;
};

static void set_key(const char *key, const char *token)
{
	setenv("AWS_ACCESS_KEY_ID", key, 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret/+=", 1);
	if (token)
		setenv("AWS_SESSION_TOKEN", token, 1);
	else
		unsetenv("AWS_SESSION_TOKEN");
}

static bool begin(struct fixture *f, const struct script_step *steps, size_t n)
{
	*f = (struct fixture){0};
	set_key("AKIDEXAMPLE", NULL);
	if (!script_start(&f->server, steps, n))
		return false;
	f->settings = (struct aws_settings){.region = "us-east-1",
		.s3_endpoint = f->server.url,
		.dynamodb_endpoint = f->server.url,
		.attempts = 4,
		.request_timeout_ms = 5000};
	struct credentials_options credentials = {.profile = "default",
		.credentials_path = "/nonexistent/credentials",
		.config_path = "/nonexistent/config"};
	struct http_options http = {0};
	struct service_options options = {.settings = &f->settings, .is_s3 = true, .kinds = kinds};
	CHECK_INT(credentials_chain_new(&credentials, &f->settings.credentials), 0);
	CHECK_INT(http_shared_new(&http, &f->http), 0);
	options.http = f->http;
	CHECK_INT(service_new(&options, &f->service, NULL), 0);
	return CHECK_INT(service_conn_new(f->service, &f->conn), 0);
}

static void end(struct fixture *f)
{
	service_conn_free(f->conn);
	service_free(f->service);
	http_shared_free(f->http);
	credentials_chain_free(f->settings.credentials);
	script_clear(&f->server);
}

static const struct call_header headers[] = {{"if-none-match", "*"}, {"x-amz-meta-mtime", "1.5"},
	{"x-amz-meta-empty", ""}, {"x-amz-meta-blank", " \t "}};

static struct call put_call(void)
{
	return (struct call){.method = "PUT",
		.path = "/b/a%20b/../%C3%BC",
		.query = "partNumber=1&uploadId=x~",
		.headers = headers,
		.n_headers = 4,
		.body = {.bytes = 4, .memory = "body"},
		.is_write = true,
		.read_error = s3_reply_error};
}

static struct call get_call(void)
{
	return (struct call){.kind = 1,
		.method = "GET",
		.path = "/b/k",
		.query = "",
		.payload_hash = SHA256_OF_NOTHING,
		.read_error = s3_reply_error};
}

struct result {
	enum outcome outcome;
	struct problem problem;
	bool maybe_applied;
	int status;
	uint64_t took_ms;
};

static struct result run(struct fixture *f, struct call call)
{
	struct result result = {0};
	struct http_reply reply = {0};
	uint64_t start_ns = clock_boot_ns();
	call.limits.maybe_applied = &result.maybe_applied;
	result.outcome = call_perform(f->conn, &call, &reply, &result.problem);
	result.took_ms = (clock_boot_ns() - start_ns) / NS_PER_MS;
	result.status = reply.status;
	http_reply_clear(&reply);
	return result;
}

/* The value of a header line as it was sent, or NULL; copied into ret. */
static const char *sent_header(
	const struct script_request *request, const char *name, char *ret, size_t size)
{
	char line[100];
	snprintf(line, sizeof line, "\r\n%s:", name);
	const char *at = request->head ? strcasestr(request->head, line) : NULL;
	if (!at)
		return NULL;
	at += strlen(line);
	at += strspn(at, " ");
	snprintf(ret, size, "%.*s", (int)strcspn(at, "\r"), at);
	return ret;
}

/* Signs again what the server received, and compares. */
static bool is_signed(const struct script_request *request, const char *key, const char *region)
{
	char values[16][600], names[300], method[16], target[300], *word, *rest;
	struct call_header signed_headers[16];
	size_t n = 0;
	char authorization[600] = "", date[40] = "", hash[80] = "";
	if (!CHECK(sent_header(request, "authorization", authorization, sizeof authorization)) ||
		!CHECK(sent_header(request, "x-amz-date", date, sizeof date)) ||
		!CHECK(sent_header(request, "x-amz-content-sha256", hash, sizeof hash)))
		return false;
	const char *at = strstr(authorization, "SignedHeaders=");
	snprintf(names, sizeof names, "%.*s", (int)strcspn(at + 14, ","), at + 14);
	for (rest = names; (word = strsep(&rest, ";")) && n < 16; n++) {
		CHECK(sent_header(request, word, values[n], sizeof values[n]));
		signed_headers[n] = (struct call_header){word, values[n]};
	}
	sscanf(request->head, "%15s %299s", method, target);
	char *query = strchr(target, '?');
	if (query)
		*query++ = 0;
	struct sigv4_request again = {
		method, target, query ? query : "", signed_headers, n, hash, region, "s3", date};
	struct credentials credentials = {.secret = "secret/+="};
	snprintf(credentials.access_key, sizeof credentials.access_key, "%s", key);
	struct sigv4_cache cache = {0};
	struct text want = TEXT(2000);
	CHECK_INT(sigv4_sign(&cache, &credentials, &again, &want), 0);
	bool same = CHECK_STRING(authorization, text_string(&want));
	text_clear(&want);
	sigv4_cache_wipe(&cache);
	return same;
}

struct source {
	size_t at;
	unsigned rewinds;
};

static long source_read(void *arg, void *buf, size_t n)
{
	struct source *source = arg;
	n = n < 10 - source->at ? n : 10 - source->at;
	memcpy(buf, &"0123456789"[source->at], n);
	source->at += n;
	return (long)n;
}

static int source_rewind(void *arg, uint64_t offset)
{
	struct source *source = arg;
	source->at = offset;
	source->rewinds++;
	return 0;
}

/* Whatever happened before, each attempt is the same request but for date and signature. */
static void test_same_request(void)
{
	struct script_step steps[] = {{NULL, .close = true},
		{S3_ERROR("500", "", "InternalError"), .close = true},
		{S3_ERROR("200", "", "InternalError"), .close = true},
		{"garbage\r\n\r\n", .close = true}, {OK_REPLY}};
	struct fixture f;
	if (!begin(&f, steps, 5))
		return;
	struct source source = {0};
	struct call call = put_call();
	call.limits.attempts = 5;
	call.payload_hash = SIGV4_UNSIGNED;
	call.body = (struct http_body){
		.bytes = 10, .read = source_read, .rewind = source_rewind, .arg = &source};
	struct result result = run(&f, call);
	script_stop(&f.server);
	CHECK_INT(result.outcome, OUTCOME_OK);
	CHECK(result.maybe_applied);
	CHECK_INT(f.server.n_requests, 5);
	for (size_t i = 0; i < f.server.n_requests; i++) {
		const struct script_request *request = &f.server.requests[i];
		char value[100];
		CHECK(strncmp(request->head,
			      "PUT /b/a%20b/../%C3%BC?partNumber=1&uploadId=x~ HTTP/1.1\r\n",
			      58) == 0);
		CHECK_STRING(request->body, "0123456789");
		CHECK_STRING(sent_header(request, "if-none-match", value, sizeof value), "*");
		CHECK_STRING(sent_header(request, "x-amz-meta-empty", value, sizeof value), "");
		CHECK_STRING(sent_header(request, "x-amz-meta-blank", value, sizeof value), "");
		CHECK_STRING(sent_header(request, "host", value, sizeof value), f.server.url + 7);
		CHECK(is_signed(request, "AKIDEXAMPLE", "us-east-1"));
	}
	unsigned long count = 0;
	CHECK_STRING(service_kind(f.service, 0, &count), "PutObject");
	CHECK_INT(count, 5);
	CHECK_STRING(service_kind(f.service, 1, &count), "HeadObject");
	CHECK_INT(count, 0);
	CHECK_STRING(service_kind(f.service, 2, &count), NULL);
	CHECK_STRING(service_kind(f.service, 3, &count), NULL);
	end(&f);
}

/* A kept connection that the server closes after it has taken a request: curl sends it again by
 * itself, so that a refusal may be the answer to what was applied. */
static void test_resent_by_curl(void)
{
	struct script_step steps[] = {{OK_REPLY}, {NULL, .close = true},
		{S3_ERROR("412", "", "PreconditionFailed"), .close = true}, {OK_REPLY},
		{NULL, .close = true}, {S3_ERROR("404", "", "NoSuchKey"), .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 6))
		return;
	struct result result = run(&f, put_call());
	CHECK(result.outcome == OUTCOME_OK && !result.maybe_applied);
	result = run(&f, put_call());
	CHECK(result.outcome == OUTCOME_REFUSED && result.maybe_applied);
	result = run(&f, put_call());
	CHECK(result.outcome == OUTCOME_OK && !result.maybe_applied);
	result = run(&f, get_call()); /* which changes nothing */
	CHECK(result.outcome == OUTCOME_ABSENT && !result.maybe_applied);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 6);
	end(&f);
}

static void test_throttled(void)
{
	struct script_step steps[] = {{S3_ERROR("503", "", "SlowDown"), .close = true}, {OK_REPLY},
		{"HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"}, {OK_REPLY},
		{"HTTP/1.1 500 X\r\nx-amz-retry-after: 300\r\nContent-Length: 0\r\n\r\n"},
		{OK_REPLY}};
	struct fixture f;
	if (!begin(&f, steps, 6))
		return;
	struct result result = run(&f, put_call());
	CHECK_INT(result.outcome, OUTCOME_OK);
	CHECK(!result.maybe_applied);
	CHECK_INT(result.status, 200);
	result = run(&f, get_call());
	CHECK_INT(result.outcome, OUTCOME_OK);
	CHECK(result.took_ms >= 1000);
	result = run(&f, get_call());
	CHECK_INT(result.outcome, OUTCOME_OK);
	CHECK(result.took_ms >= 300);
	script_stop(&f.server);
	/* After a server's error, another connection, perhaps to another server. */
	CHECK(f.server.requests[5].connection > f.server.requests[4].connection);
	end(&f);
}

/* Finds the wait before the next attempt in the log. */
static void note_wait(void *arg, enum log_level level, const char *line)
{
	uint64_t *wait_ms = arg;
	const char *again = strstr(line, "; again in ");
	if (again)
		*wait_ms = strtoull(again + 11, NULL, 10);
}

/* The wait that a reply asks for. None of these waits begins, since each would outlive the deadline
 * of the call. */
static void test_asked_waits(void)
{
#define DATE       "Date: Sat, 21 Nov 2026 07:56:"
#define AFTER      "Retry-After: Sat, 21 Nov 2026 07:"
#define NONE       1000000 /* the reply asks for no wait that counts */
#define LONGEST_MS 60000
	static const struct {
		const char *headers;
		uint64_t wait_ms;
	} rows[] = {
		{"Retry-After: 7\r\n", 7000},
		{"Retry-After: 59\r\n", 59000},
		{"Retry-After: 60\r\n", LONGEST_MS},
		{"Retry-After: 61\r\n", LONGEST_MS},
		{"Retry-After: 18446744073709552\r\n", LONGEST_MS},
		{"Retry-After: 18446744073709551615\r\n", LONGEST_MS},
		{"x-amz-retry-after: 7001\r\n", 7001},
		{"x-amz-retry-after: 59999\r\n", 59999},
		{"x-amz-retry-after: 60001\r\n", LONGEST_MS},
		{"x-amz-retry-after: 7001\r\nRetry-After: 9\r\n", 7001},
		{"x-amz-retry-after: soon\r\nRetry-After: 9\r\n", 9000},
		/* a date, by the reply's own clock */
		{DATE "10 GMT\r\n" AFTER "56:28 GMT\r\n", 18000},
		{DATE "10 GMT\r\n" AFTER "58:28 GMT\r\n", LONGEST_MS},
		{DATE "10 GMT\r\n" AFTER "56:10 GMT\r\n", NONE},
		{DATE "10 GMT\r\n" AFTER "55:28 GMT\r\n", NONE},
		{AFTER "56:28 GMT\r\n", NONE},
		{"Retry-After: soon\r\n", NONE},
		{"Retry-After: -7\r\n", NONE},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char reply[400];
		snprintf(reply, sizeof reply, "HTTP/1.1 500 X\r\n%sContent-Length: 0\r\n\r\n",
			rows[i].headers);
		const struct script_step steps[] = {{reply}, {OK_REPLY}};
		struct fixture f;
		uint64_t wait_ms = NONE;
		if (!begin(&f, steps, 2))
			return;
		struct call call = get_call();
		call.limits.deadline_ns = clock_boot_ns() + 5 * NS_PER_S;
		log_set_level(LOG_DEBUG);
		log_set_sink(note_wait, &wait_ms);
		const struct result result = run(&f, call);
		log_set_sink(NULL, NULL);
		log_set_level(LOG_WARNING);
		script_stop(&f.server);
		const bool is_asked = rows[i].wait_ms != NONE;
		/* Without such a header it is the wait of a first retry. */
		if (!CHECK_INT(result.outcome, is_asked ? OUTCOME_ABANDONED : OUTCOME_OK) ||
			!CHECK(is_asked ? wait_ms == rows[i].wait_ms : wait_ms <= 50) ||
			!CHECK_INT(f.server.n_requests, is_asked ? 1 : 2))
			fprintf(stderr, "\trow %zu: %" PRIu64 " ms\n", i, wait_ms);
		end(&f);
	}
}

/* In mode "standard" a throttled service is asked for as much at once as before. */
static void test_retry_mode(void)
{
	for (int keeps_pace = 0; keeps_pace < 2; keeps_pace++) {
		struct script_step steps[] = {
			{S3_ERROR("503", "", "SlowDown"), .close = true}, {OK_REPLY}};
		struct fixture f;
		if (!begin(&f, steps, 2))
			return;
		f.settings.keeps_pace = keeps_pace;
		CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
		CHECK_INT(f.service->pace.cuts, !keeps_pace);
		script_stop(&f.server);
		end(&f);
	}
}

static void test_used_up(void)
{
	struct script_step steps[] = {{S3_ERROR("500", "", "InternalError"), .close = true},
		{S3_ERROR("503", "", "SlowDown"), .close = true},
		{S3_ERROR("403", "", "AccessDenied"), .close = true},
		{S3_ERROR("403", "", "Weird\x1b[31m"), .close = true},
		{S3_ERROR("400", "", "BadDigest"), .close = true},
		{S3_ERROR("400", "", "BadDigest"), .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 6))
		return;
	struct call call = put_call();
	call.limits.attempts = 2;
	struct result result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_THROTTLED);
	CHECK(result.maybe_applied); /* the 500 may have been applied */
	CHECK_STRING(result.problem.text, "after 2 attempts: the server asks to slow down");
	CHECK_STRING(result.problem.code, "SlowDown");
	CHECK_STRING(result.problem.request_id, "REQ1");
	CHECK_INT(result.problem.status, 503);
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_DENIED);
	CHECK_STRING(result.problem.text, "S3 says: why");
	CHECK_INT(result.status, 403);
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_DENIED);
	CHECK(!strchr(result.problem.code, '\x1b') && !strchr(result.problem.text, '\x1b'));
	call.limits.attempts = 9; /* a file that changed is not sent nine times */
	CHECK_INT(run(&f, call).outcome, OUTCOME_BAD_DIGEST);
	script_stop(&f.server);
	end(&f);
}

/* With patience throttling is no attempt, without it is one. */
static void test_patience(void)
{
#define SLOW S3_ERROR("503", "", "SlowDown")
	struct script_step steps[] = {{SLOW, .close = true}, {SLOW, .close = true}, {OK_REPLY},
		{SLOW, .close = true}, {SLOW, .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 5))
		return;
	struct call call = put_call();
	call.limits.attempts = 1;
	call.limits.patience_ms = 60000;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	call.limits.patience_ms = 0;
	CHECK_INT(run(&f, call).outcome, OUTCOME_THROTTLED);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 4);
	end(&f);
}

static void test_clock(void)
{
	char skewed[500], fine[200];
	int64_t now_s = clock_wall_s();
	time_t server_s = (time_t)now_s + 3600;
	char date[64];
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&server_s));
	snprintf(skewed, sizeof skewed, "HTTP/1.1 403 X\r\nDate: %s\r\nContent-Length: 0\r\n\r\n",
		date);
	snprintf(
		fine, sizeof fine, "HTTP/1.1 200 X\r\nDate: %s\r\nContent-Length: 0\r\n\r\n", date);
	struct script_step steps[] = {{skewed}, {fine}, {fine},
		{S3_ERROR("403", "", "RequestTimeTooSkewed"), .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 4))
		return;
	CHECK(llabs(service_time_s(f.service) - now_s) <= 5);
	CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
	CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
	CHECK(llabs(service_time_s(f.service) - server_s) <= 5);
	struct result result = run(&f, get_call()); /* no Date: nothing to correct by */
	CHECK_INT(result.outcome, OUTCOME_SETUP);
	CHECK(strstr(result.problem.text, "clocks"));
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 4);
	char ours[17], theirs[17], sent[40] = "";
	clock_format_amz(now_s, ours);
	clock_format_amz(server_s, theirs);
	for (size_t i = 0; i < 4; i++) {
		sent_header(&f.server.requests[i], "x-amz-date", sent, sizeof sent);
		/* Equal down to the hour; the minute may have turned over. */
		CHECK(strncmp(sent, i ? theirs : ours, 8) == 0);
		CHECK_INT(strncmp(sent, ours, 11) == 0, i == 0);
		CHECK(is_signed(&f.server.requests[i], "AKIDEXAMPLE", "us-east-1"));
	}
	end(&f);
}

/* Each correction is by the server's clock alone, whatever was corrected before. */
static void test_clock_that_is_corrected_again(void)
{
	static const int64_t offsets_s[] = {3600, -7200, 0, 86400};
	enum { N = sizeof offsets_s / sizeof *offsets_s };
	char replies[2 * N][200];
	struct script_step steps[2 * N];
	struct fixture f;
	const int64_t now_s = clock_wall_s();
	for (size_t i = 0; i < 2 * N; i++) {
		const time_t server_s = (time_t)(now_s + offsets_s[i / 2]);
		char date[64];
		strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&server_s));
		snprintf(replies[i], sizeof replies[i],
			"HTTP/1.1 %s X\r\nDate: %s\r\nContent-Length: 0\r\n\r\n",
			i % 2 ? "200" : "403", date);
		steps[i] = (struct script_step){replies[i]};
	}
	if (!begin(&f, steps, 2 * N))
		return;
	for (size_t i = 0; i < N; i++) {
		CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
		CHECK(llabs(service_time_s(f.service) - now_s - offsets_s[i]) <= 30);
	}
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 2 * N);
	for (size_t i = 1; i < 2 * N; i += 2) {
		char signed_at[40] = "", first[17], last[17];
		sent_header(&f.server.requests[i], "x-amz-date", signed_at, sizeof signed_at);
		clock_format_amz(now_s + offsets_s[i / 2], first);
		clock_format_amz(clock_wall_s() + offsets_s[i / 2], last);
		/* Down to the hour, which may have turned over. */
		CHECK(strncmp(signed_at, first, 11) == 0 || strncmp(signed_at, last, 11) == 0);
	}
	end(&f);
}

/* A reply after minutes of sending says nothing about the clocks. */
static void test_clock_of_a_long_request(void)
{
	const struct call_request sent = {
		.signed_s = 100000, .signed_ns = clock_boot_ns() - 1000 * NS_PER_S};
	CHECK(call_request_clock_is_off(&sent, 99760));
	CHECK(!call_request_clock_is_off(&sent, 99761));
	CHECK(!call_request_clock_is_off(&sent, 101000));
	CHECK(!call_request_clock_is_off(&sent, 101239));
	CHECK(call_request_clock_is_off(&sent, 101600));
}

static void test_region(void)
{
	struct script_step steps[] = {
		{"HTTP/1.1 301 X\r\nx-amz-bucket-region: eu-west-3\r\n"
		 "Location: http://elsewhere.invalid/\r\nContent-Length: 0\r\n\r\n"},
		{OK_REPLY}, {OK_REPLY},
		{"HTTP/1.1 301 X\r\nx-amz-bucket-region: evil.example/\r\n"
		 "Location: http://elsewhere.invalid/\r\nContent-Length: 0\r\n\r\n"}};
	struct fixture f;
	if (!begin(&f, steps, 4))
		return;
	char region[64];
	service_region(f.service, region, sizeof region);
	CHECK_STRING(region, "us-east-1");
	CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
	CHECK_INT(run(&f, get_call()).outcome, OUTCOME_OK);
	CHECK_INT(run(&f, get_call()).outcome, OUTCOME_SETUP);
	service_region(f.service, region, sizeof region);
	CHECK_STRING(region, "eu-west-3");
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 4);
	for (size_t i = 0; i < 4; i++)
		CHECK(is_signed(
			&f.server.requests[i], "AKIDEXAMPLE", i ? "eu-west-3" : "us-east-1"));

	/* At AWS the host moves with the region. */
	struct problem p;
	f.service->question.custom = NULL;
	CHECK_INT(service_learn_region(f.service, "cn-north-1"), 0);
	CHECK_INT(service_learn_region(f.service, "a/b"), -EINVAL);
	CHECK_INT(service_conn_refresh(f.conn, NULL, &p), OUTCOME_OK);
	CHECK_STRING(f.conn->signer.endpoint.url, "https://s3.cn-north-1.amazonaws.com.cn");
	CHECK_STRING(f.conn->signer.endpoint.region, "cn-north-1");
	end(&f);
}

/* The renewed credentials appear while the refusal is being read. */
static int renew(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	if (reply->status != 200)
		set_key("AKIDRENEWED", "token2");
	return s3_reply_error(reply, ret_code, ret_message, ret_region);
}

static void test_credentials(void)
{
	struct script_step steps[] = {{S3_ERROR("400", "", "ExpiredToken"), .close = true},
		{OK_REPLY}, {S3_ERROR("400", "", "ExpiredToken"), .close = true}};
	struct fixture f;
	if (!begin(&f, steps, 3))
		return;
	struct call call = get_call();
	call.read_error = renew;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	struct result result = run(&f, get_call()); /* the same again: no use */
	CHECK_INT(result.outcome, OUTCOME_SETUP);
	CHECK_STRING(result.problem.text, "the credentials have expired: renew them");
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 3);
	char token[40];
	CHECK(is_signed(&f.server.requests[0], "AKIDEXAMPLE", "us-east-1"));
	CHECK(!sent_header(&f.server.requests[0], "x-amz-security-token", token, sizeof token));
	CHECK(is_signed(&f.server.requests[1], "AKIDRENEWED", "us-east-1"));
	CHECK_STRING(
		sent_header(&f.server.requests[1], "x-amz-security-token", token, sizeof token),
		"token2");
	end(&f);
}

/* New credentials for each refusal. */
static int renew_again(const struct http_reply *reply, char ret_code[static 64],
	char ret_message[static 256], char ret_region[static 64])
{
	static unsigned number;
	char key[20];
	snprintf(key, sizeof key, "AKID%u", ++number);
	set_key(key, "token");
	return s3_reply_error(reply, ret_code, ret_message, ret_region);
}

/* A call corrects its clock, its credentials and its region once each, so that no server can keep
 * it busy for ever. */
static void test_each_correction_once(void)
{
#define EXPIRED S3_ERROR("400", "", "ExpiredToken")
#define SKEWED  S3_ERROR("403", "Date: Sat, 21 Nov 2026 07:56:10 GMT\r\n", "RequestTimeTooSkewed")
#define MOVED(region)                                                                              \
	"HTTP/1.1 301 X\r\nx-amz-bucket-region: " region "\r\nConnection: close\r\n\r\n"
	static const struct {
		const char *replies[5];
		enum outcome outcome;
		size_t n_requests;
	} rows[] = {
		{{EXPIRED, EXPIRED, OK_REPLY}, OUTCOME_SETUP, 2},
		{{SKEWED, SKEWED, OK_REPLY}, OUTCOME_SETUP, 2},
		{{MOVED("eu-west-1"), MOVED("eu-west-2"), OK_REPLY}, OUTCOME_SETUP, 2},
		{{SKEWED, EXPIRED, MOVED("eu-west-1"), OK_REPLY}, OUTCOME_OK, 4},
		{{EXPIRED, SKEWED, EXPIRED, OK_REPLY}, OUTCOME_SETUP, 3},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct script_step steps[5];
		struct fixture f;
		size_t n = 0;
		for (; n < 5 && rows[i].replies[n]; n++)
			steps[n] = (struct script_step){rows[i].replies[n], .close = true};
		if (!begin(&f, steps, n))
			return;
		struct call call = get_call();
		call.read_error = renew_again;
		const struct result result = run(&f, call);
		script_stop(&f.server);
		if (!CHECK_INT(result.outcome, rows[i].outcome) ||
			!CHECK_INT(f.server.n_requests, rows[i].n_requests))
			fprintf(stderr, "\trow %zu: %s\n", i, result.problem.text);
		end(&f);
	}
}

static char keys_path[] = "/tmp/test_call.XXXXXX";

/* Writes the keys of the profile. The file is replaced, so that none reads half of it. */
static bool write_profile(const char *key)
{
	char path[64];
	snprintf(path, sizeof path, "%s.new", keys_path);
	FILE *file = fopen(path, "w");
	if (!CHECK(file != NULL))
		return false;
	fprintf(file, "[default]\naws_access_key_id = %s\naws_secret_access_key = secret/+=\n",
		key);
	fclose(file);
	return CHECK_INT(rename(path, keys_path), 0);
}

/* While the call waits for other credentials, somebody writes some. */
static bool renew_profile(void *arg)
{
	const struct fixture *f = arg;
	static bool is_written;
	if (f->server.n_requests >= 2 && !is_written)
		is_written = write_profile("AKIDNEW");
	return false;
}

/* Keys of a profile that are refused after they were accepted are not sent again: the call waits
 * until there are others. */
static void test_wait_for_other_keys(void)
{
	struct script_step steps[] = {{OK_REPLY, .close = true},
		{S3_ERROR("400", "", "ExpiredToken"), .close = true}, {OK_REPLY, .close = true}};
	struct fixture f;
	const int fd = mkstemp(keys_path);
	if (!CHECK(fd >= 0) || !write_profile("AKIDOLD") || !begin(&f, steps, 3))
		return;
	close(fd);
	unsetenv("AWS_ACCESS_KEY_ID");
	credentials_chain_free(f.settings.credentials);
	const struct credentials_options options = {.profile = "default",
		.credentials_path = keys_path,
		.config_path = "/nonexistent/config"};
	CHECK_INT(credentials_chain_new(&options, &f.settings.credentials), 0);
	struct call call = get_call();
	call.limits.abandon = renew_profile;
	call.limits.abandon_arg = &f;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 3);
	for (size_t i = 0; i < f.server.n_requests; i++)
		CHECK(is_signed(&f.server.requests[i], i < 2 ? "AKIDOLD" : "AKIDNEW", "us-east-1"));
	unlink(keys_path);
	end(&f);
}

/* A bare 400 may say that the token has expired, or that the object wants a key, as of each file:
 * credentials with a token are loaded again, now and then. */
static void test_bare_400(void)
{
	static const char bare[] = "HTTP/1.1 400 X\r\nContent-Length: 0\r\n\r\n";
	struct script_step steps[] = {{bare}, {OK_REPLY}, {bare}, {bare}, {OK_REPLY}, {bare}};
	struct fixture f;
	if (!begin(&f, steps, 6))
		return;
	struct call call = get_call();
	uint64_t *ended_ns = &f.settings.credentials->locked.ended_ns;
	CHECK_INT(service_conn_refresh(f.conn, NULL, NULL), OUTCOME_OK);
	call.read_error = renew;
	*ended_ns -= 61 * NS_PER_S;
	CHECK_INT(run(&f, call).outcome, OUTCOME_INVALID); /* without a token */
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	set_key("AKIDEXAMPLE", "token");
	credentials_chain_free(f.settings.credentials);
	struct credentials_options fresh = {.profile = "default",
		.credentials_path = "/nonexistent/credentials",
		.config_path = "/nonexistent/config"};
	CHECK_INT(credentials_chain_new(&fresh, &f.settings.credentials), 0);
	credentials_wipe(&f.conn->signer.credentials);
	ended_ns = &f.settings.credentials->locked.ended_ns;
	CHECK_INT(run(&f, call).outcome, OUTCOME_INVALID); /* they are fresh */
	*ended_ns -= 61 * NS_PER_S;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	CHECK_INT(run(&f, call).outcome, OUTCOME_INVALID);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 6);
	char token[40];
	for (size_t i = 0; i < 6; i++) {
		const char *got = sent_header(
			&f.server.requests[i], "x-amz-security-token", token, sizeof token);
		CHECK_STRING(got, i < 2 ? NULL : i < 4 ? "token" : "token2");
	}
	end(&f);
}

static bool after_500_ms(void *arg)
{
	return clock_boot_ns() >= *(uint64_t *)arg + 500 * NS_PER_MS;
}

static void test_limits(void)
{
	struct script_step steps[] = {{NULL}, {OK_REPLY}, {NULL},
		{S3_ERROR("500", "", "InternalError"), .close = true}, {NULL},
		{"HTTP/1.1 503 X\r\nRetry-After: 50\r\nx-amz-request-id: R\r\nContent-Length: "
		 "0\r\n\r\n"},
		{"HTTP/1.1 503 X\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n"},
		{"HTTP/1.1 500 X\r\nx-amz-retry-after: 99999999999999\r\nContent-Length: "
		 "0\r\n\r\n"}};
	struct fixture f;
	if (!begin(&f, steps, 8))
		return;
	/* The attempt's own deadline: tried again. */
	f.settings.request_timeout_ms = 500;
	struct call call = put_call();
	struct result result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_OK);
	CHECK(result.maybe_applied);
	f.settings.request_timeout_ms = 5000;
	/* The call's: not. */
	call.limits.deadline_ns = clock_boot_ns() + 500 * NS_PER_MS;
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK(result.took_ms >= 500 && result.took_ms < 20000);
	result = run(&f, call); /* it has passed: nothing is sent */
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK_STRING(result.problem.text, "it was given up before it was sent");
	/* It passes during the second attempt: the first one says why. */
	call.limits.deadline_ns = clock_boot_ns() + 3000 * NS_PER_MS;
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK_STRING(result.problem.code, "InternalError");
	/* Stopped while waiting. */
	uint64_t start_ns = clock_boot_ns();
	call.limits = (struct call_limits){.abandon = after_500_ms, .abandon_arg = &start_ns};
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK(result.took_ms >= 500 && result.took_ms < 20000);
	CHECK_STRING(result.problem.text, "S3 answers with status 503");
	CHECK_STRING(result.problem.request_id, "R");
	/* A wait that the deadline does not allow is not begun. */
	call.limits = (struct call_limits){.deadline_ns = clock_boot_ns() + 10 * NS_PER_S};
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK(result.took_ms < 5000);
	/* A reply that asks for years gets a minute, which this deadline allows. */
	start_ns = clock_boot_ns();
	call.limits = (struct call_limits){.deadline_ns = start_ns + 90 * NS_PER_S,
		.patience_ms = 30000,
		.abandon = after_500_ms,
		.abandon_arg = &start_ns};
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_ABANDONED);
	CHECK(result.took_ms >= 500);
	CHECK_STRING(result.problem.text,
		"the reply to PutObject (status 500) is not that of S3, but of something on the "
		"way or of another server: check the endpoint and the proxy");
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 8);
	end(&f);
}

static void test_no_use(void)
{
	struct script_step steps[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n0123456789ab"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<Err"}, {OK_REPLY}};
	struct fixture f;
	if (!begin(&f, steps, 3))
		return;
	struct call call = put_call();
	call.reply_max_bytes = 10;
	struct result result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_LOST);
	CHECK_INT(result.status, 0);
	call.read_error = s3_reply_error_or_xml;
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_LOST);
	CHECK(strstr(result.problem.text, "is not what S3 answers"));
	struct call_header bad = {"x-amz-meta-x", "a\r\nx-evil: 1"};
	call.headers = &bad;
	call.n_headers = 1;
	CHECK_INT(run(&f, call).outcome, OUTCOME_INVALID);
	script_stop(&f.server);
	CHECK_INT(f.server.n_requests, 2);

	call = get_call();
	call.limits.attempts = 2;
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_SETUP);
	CHECK(strncmp(result.problem.text, "after 2 attempts: cannot connect to 127.0.0.1:", 46) ==
		0);
	CHECK(!result.maybe_applied);
	unsetenv("AWS_ACCESS_KEY_ID");
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	struct service_conn *other;
	credentials_chain_free(f.settings.credentials);
	struct credentials_options none = {.profile = "default",
		.credentials_path = "/nonexistent/credentials",
		.config_path = "/nonexistent/config"};
	CHECK_INT(credentials_chain_new(&none, &f.settings.credentials), 0);
	CHECK_INT(service_conn_new(f.service, &other), 0);
	service_conn_free(f.conn);
	f.conn = other;
	result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_SETUP);
	CHECK(strncmp(result.problem.text, "no credentials: ", 16) == 0);
	end(&f);
}

/* Addresses that no loopback server can have. */
static void test_address(void)
{
	static const struct {
		const char *endpoint, *path, *url, *host;
	} rows[] = {
		{"https://b.s3.eu-west-1.amazonaws.com", "/k",
			"https://b.s3.eu-west-1.amazonaws.com/k?x=",
			"b.s3.eu-west-1.amazonaws.com"},
		{"https://b.s3.eu-west-1.amazonaws.com", "",
			"https://b.s3.eu-west-1.amazonaws.com/?x=", "b.s3.eu-west-1.amazonaws.com"},
		{"http://[::1]:9000/base", "/k", "http://[::1]:9000/base/k?x=", "[::1]:9000"},
		{"http://[::1]:9000/base", "", "http://[::1]:9000/base?x=", "[::1]:9000"},
	};
	struct fixture f;
	if (!begin(&f, NULL, 0))
		return;
	struct problem p;
	CHECK_INT(service_conn_refresh(f.conn, NULL, &p), OUTCOME_OK);
	for (size_t i = 0; i < 4; i++) {
		struct call call = get_call();
		struct call_request built = {0};
		char host[100];
		call.path = rows[i].path;
		call.query = "x=";
		strcpy(f.conn->signer.endpoint.url, rows[i].endpoint);
		CHECK_INT(call_request_build(&f.conn->signer, &call, 0, &built), 0);
		CHECK_STRING(text_string(&f.conn->signer.url), rows[i].url);
		snprintf(host, sizeof host, "host: %s", rows[i].host);
		CHECK_STRING(built.headers[0], host);
	}
	script_stop(&f.server);
	end(&f);
}

/* If no server listens, an empty quota does not make the last attempts late. */
static void test_down_with_an_empty_quota(void)
{
	struct fixture f;
	if (!begin(&f, NULL, 0))
		return;
	script_stop(&f.server);
	while (retry_quota_take(&f.service->quota))
		continue;
	struct call call = get_call();
	call.limits.patience_ms = 100;
	const struct result result = run(&f, call);
	CHECK_INT(result.outcome, OUTCOME_SETUP);
	CHECK(result.took_ms < RETRY_CAP_MS / 2);
	end(&f);
}

/* A reply that asks for more than half of the time that is left gets what it asks for, without the
 * longer wait of an empty quota. */
static void test_long_wait_with_an_empty_quota(void)
{
	struct script_step steps[] = {
		{"HTTP/1.1 500 X\r\nx-amz-retry-after: 1200\r\nContent-Length: 0\r\n\r\n"},
		{OK_REPLY}};
	struct fixture f;
	if (!begin(&f, steps, 2))
		return;
	while (retry_quota_take(&f.service->quota))
		continue;
	struct call call = get_call();
	call.limits.deadline_ns = clock_boot_ns() + 2 * NS_PER_S;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	script_stop(&f.server);
	end(&f);
}

/* A service that has answered is down if its name is not resolved any more. Before, the name may be
 * misspelt. */
static void test_unknown_name(void)
{
	struct script_step steps[] = {{"HTTP/1.1 200 X\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
				       "Content-Length: 0\r\n\r\n"}};
	struct fixture f;
	if (!begin(&f, steps, 1))
		return;
	const struct endpoint reached = f.service->locked.endpoint;
	struct call call = get_call();
	call.limits.patience_ms = 500;
	strcpy(f.service->locked.endpoint.url, "http://no-such-host.invalid");
	CHECK(strstr(run(&f, call).problem.text, "after 3 attempts: cannot resolve the name"));
	f.service->locked.endpoint = reached;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	strcpy(f.service->locked.endpoint.url, "http://no-such-host.invalid");
	call.limits.attempts = 2;
	CHECK(run(&f, call).took_ms >= 500);
	script_stop(&f.server);
	end(&f);
}

/* As many as were borrowed at once, and the one used last is the next. */
static void test_borrowed_connections(void)
{
	struct service_conn *first, *second, *again;
	struct fixture f;
	if (!begin(&f, NULL, 0))
		return;
	CHECK_INT(service_conn_borrow(f.service, &first), 0);
	CHECK_INT(service_conn_borrow(f.service, &second), 0);
	CHECK(first != second);
	service_conn_give_back(second);
	service_conn_give_back(first);
	CHECK_INT(service_conn_borrow(f.service, &again), 0);
	CHECK(again == first);
	CHECK_INT(service_conn_borrow(f.service, &again), 0);
	CHECK(again == second);
	service_conn_give_back(first);
	service_conn_give_back(second);
	script_stop(&f.server);
	end(&f);
}

/* Effects of a call that last: no wait on the run's clock, all tokens of the quota if it has
 * succeeded, and whether the service counts as one that accepts requests. A cached reply counts
 * only where no cache may answer. */
static void test_end_of_a_call(void)
{
	static const char cached[] = "HTTP/1.1 200 OK\r\nAge: 5\r\nContent-Length: 0\r\n\r\n";
	static const struct {
		struct script_step steps[2];
		unsigned attempts;
		bool is_read, keeps_pace;
		enum outcome outcome;
		bool is_accepted;
	} rows[] = {
		{{{OK_REPLY}}, 1, false, false, OUTCOME_OK, true},
		{{{S3_ERROR("500", "", "InternalError"), .close = true}, {OK_REPLY}}, 2, false,
			false, OUTCOME_OK, true},
		{{{S3_ERROR("500", "", "InternalError"), .close = true}}, 1, false, false,
			OUTCOME_TRANSIENT, false},
		{{{S3_ERROR("503", "", "SlowDown"), .close = true}}, 1, false, false,
			OUTCOME_THROTTLED, false},
		{{{S3_ERROR("503", "", "SlowDown"), .close = true}}, 1, false, true,
			OUTCOME_THROTTLED, false},
		{{{S3_ERROR("403", "", "AccessDenied"), .close = true}}, 1, false, false,
			OUTCOME_DENIED, true},
		{{{cached}}, 1, false, false, OUTCOME_OK, true},
		{{{cached}}, 1, true, false, OUTCOME_SETUP, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		struct progress_clock progress;
		struct call call = rows[i].is_read ? get_call() : put_call();
		if (!begin(&f, rows[i].steps, 2))
			return;
		f.settings.attempts = rows[i].attempts;
		f.settings.keeps_pace = rows[i].keeps_pace;
		progress_init(&progress);
		call.limits.progress = &progress;
		const struct result result = run(&f, call);
		bool good = CHECK_INT(result.outcome, rows[i].outcome);
		good &= CHECK_INT(atomic_load(&progress.waiting), 0);
		good &= CHECK_INT(
			atomic_load(&f.service->pace.success_ns) != 0, rows[i].is_accepted);
		if (rows[i].outcome == OUTCOME_OK)
			good &= CHECK_INT(atomic_load(&f.service->quota), RETRY_TOKENS);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, result.problem.text);
		progress_clear(&progress);
		end(&f);
	}
}

/* While requests of another kind fail, only the answers of some calls are progress. */
static void test_progress(void)
{
	const struct script_step steps[] = {{OK_REPLY, .close = true}, {OK_REPLY, .close = true}};
	struct fixture f;
	struct progress_clock progress;
	struct call call = get_call();
	const struct problem why = {.text = "why"};
	if (!begin(&f, steps, 2))
		return;
	progress_init(&progress);
	progress_failed(&progress, kinds[0], &why);
	call.limits.progress = &progress;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	CHECK_INT(atomic_load(&progress.steps), 0);
	call.limits.is_progress = true;
	CHECK_INT(run(&f, call).outcome, OUTCOME_OK);
	CHECK_INT(atomic_load(&progress.steps), 1);
	progress_clear(&progress);
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
	CHECK_INT(http_global_init(), 0);
	test_same_request();
	test_resent_by_curl();
	test_throttled();
	test_asked_waits();
	test_retry_mode();
	test_used_up();
	test_patience();
	test_down_with_an_empty_quota();
	test_long_wait_with_an_empty_quota();
	test_unknown_name();
	test_clock();
	test_clock_that_is_corrected_again();
	test_clock_of_a_long_request();
	test_region();
	test_credentials();
	test_each_correction_once();
	test_wait_for_other_keys();
	test_bare_400();
	test_limits();
	test_no_use();
	test_address();
	test_end_of_a_call();
	test_borrowed_connections();
	test_progress();
	return check_result();
}
