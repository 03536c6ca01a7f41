#include "aws/call.h"
#include "aws/call_problem.h"
#include "aws/call_request.h"
#include "aws/call_retry.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/quote.h"
#include <errno.h>
#include <string.h>

#define REPLY_MAX_BYTES (1U << 20)

static bool on_abandon(void *arg)
{
	struct call_run *run = arg;
	const struct call_limits *limits = &run->call->limits;
	run->was_abandoned = run->was_abandoned || limits->abandon(limits->abandon_arg);
	return run->was_abandoned;
}

static bool must_end(struct call_run *run)
{
	const struct call_limits *limits = &run->call->limits;
	return (limits->abandon && on_abandon(run)) ||
	       (limits->deadline_ns && clock_boot_ns() >= limits->deadline_ns);
}

/* The end of one attempt, and never after the call's. A large body has no end as long as it moves:
 * on a line that many share nobody can say how long it takes. */
static uint64_t attempt_deadline_ns(const struct call_run *run)
{
	const struct call *call = run->call;
	const uint64_t last_ns = call->limits.deadline_ns;
	if (call->body.bytes > HTTP_SMALL_BODY_BYTES)
		return last_ns;
	const uint64_t end_ns =
		clock_boot_ns() +
		run->conn->service->options.settings->request_timeout_ms * NS_PER_MS;
	return last_ns && last_ns < end_ns ? last_ns : end_ns;
}

static int send_once(struct call_run *run, const struct call_request *built)
{
	const struct call *call = run->call;
	struct http_request request = {.method = call->method,
		.url = text_string(&run->conn->url),
		.headers = built->headers,
		.n_headers = built->n_headers,
		.body = call->body,
		.deadline_ns = attempt_deadline_ns(run),
		.abandon = call->limits.abandon ? on_abandon : NULL,
		.abandon_arg = run,
		.reply_max_bytes = call->reply_max_bytes ? call->reply_max_bytes : REPLY_MAX_BYTES,
		.new_connection = run->new_connection};
	if (call->body.rewind && call->body.rewind(call->body.arg, 0)) {
		problem_set(&run->problem, "the data to send could not be read again");
		return -EIO;
	}
	atomic_fetch_add_explicit(
		&run->conn->service->counts.count[call->kind], 1, memory_order_relaxed);
	int error = http_perform(run->conn->http, &request, run->reply, &run->problem);
	/* Only the attempt's own deadline has passed: the next one may do better. */
	return error == -ECANCELED && !must_end(run) ? -ETIMEDOUT : error;
}

static struct verdict judge_reply(struct call_run *run, const struct call_request *sent, int error)
{
	struct service *service = run->conn->service;
	struct attempt attempt = {.error = error,
		.code = run->code,
		.is_s3 = service->options.is_s3,
		.is_write = run->call->is_write};
	run->code[0] = run->message[0] = run->region[0] = 0;
	run->date_s = -1;
	if (error)
		return classify(&attempt);
	const char *date = http_reply_header(run->reply, "date");
	run->date_s = date ? clock_parse_http_date(date) : -1;
	if (run->date_s >= 0)
		service_saw_date(service, run->date_s);
	attempt.status = run->reply->status;
	int has_error = run->call->read_error(run->reply, run->code, run->message, run->region);
	bool is_success = attempt.status >= 200 && attempt.status < 300;
	attempt.body_is_unreadable = has_error < 0 || (is_success && has_error && !run->code[0]);
	attempt.names_other_region = service_is_region(run->region) &&
				     strcmp(run->region, run->conn->endpoint.region) != 0;
	attempt.clock_is_off = run->date_s >= 0 && call_request_clock_is_off(sent, run->date_s);
	struct verdict verdict = classify(&attempt);
	const struct refusal refusal = {.reply = run->reply,
		.operation = service->options.kinds[run->call->kind],
		.code = run->code,
		.message = run->message,
		.region = run->region,
		.is_s3 = attempt.is_s3,
		.body_is_unreadable = attempt.body_is_unreadable};
	if (verdict.outcome != OUTCOME_OK)
		call_explain(&refusal, &run->problem);
	if (run->call->subject &&
		(verdict.outcome == OUTCOME_SETUP || verdict.outcome == OUTCOME_DENIED))
		problem_prefix(&run->problem, "%s %s at %s", attempt.is_s3 ? "bucket" : "table",
			quote(run->call->subject).text, quote(run->conn->endpoint.url).text);
	return verdict;
}

static struct verdict send_signed(struct call_run *run)
{
	struct call_request built = {0};
	int error = call_request_build(run->conn, run->call, &built);
	if (error) {
		problem_set(&run->problem, error == -ENOMEM
						   ? "out of memory"
						   : "the request cannot be written: a header "
						     "or the address is not valid");
		return (struct verdict){
			RETRY_NONE, error == -ENOMEM ? OUTCOME_LOCAL : OUTCOME_INVALID};
	}
	error = send_once(run, &built);
	run->name_is_unknown = error == -ENOENT;
	run->is_down = error == -ECONNREFUSED;
	run->maybe_applied |= run->call->is_write && run->reply->is_resent;
	run->new_connection = !error && run->reply->status >= 500;
	struct verdict verdict = judge_reply(run, &built, error);
	log_debug("%s %s: %s (status %d)", run->conn->service->options.kinds[run->call->kind],
		run->call->path, outcome_name(verdict.outcome), error ? 0 : run->reply->status);
	if (error)
		http_reply_clear(run->reply);
	return verdict;
}

static enum pace_result pace_result_of(const struct call_run *run, struct verdict verdict)
{
	const int status = run->reply->status;
	if (verdict.retry != RETRY_THROTTLE)
		return status && status < 500 ? PACE_ACCEPTED : PACE_OTHER;
	return run->conn->service->options.settings->keeps_pace ? PACE_OTHER : PACE_THROTTLED;
}

/* One attempt. An outcome without a request is a verdict too. */
static struct verdict try_once(struct call_run *run)
{
	struct pace *pace = &run->conn->service->pace;
	const struct call_limits *limits = &run->call->limits;
	unsigned ticket;
	if (!must_end(run)) {
		enum outcome outcome = service_conn_refresh(run->conn, limits, &run->problem);
		if (outcome != OUTCOME_OK)
			return (struct verdict){RETRY_NONE, outcome};
		if (pace_enter(pace, limits, &ticket)) {
			struct verdict verdict = send_signed(run);
			pace_leave(pace, ticket, pace_result_of(run, verdict));
			return verdict;
		}
	}
	problem_set(&run->problem, "it was given up before it was sent");
	return (struct verdict){RETRY_NONE, OUTCOME_ABANDONED};
}

enum outcome call_perform(struct service_conn *conn, const struct call *call,
	struct http_reply *ret_reply, struct problem *ret_problem)
{
	struct call_run run = {
		.conn = conn, .call = call, .reply = ret_reply, .began_ns = clock_boot_ns()};
	enum outcome outcome;
	struct verdict verdict;
	do
		verdict = try_once(&run);
	while (verdict.outcome != OUTCOME_OK && call_goes_on(&run, verdict, &outcome));
	if (verdict.outcome == OUTCOME_OK) {
		outcome = OUTCOME_OK;
		service_say_up(conn->service);
		retry_quota_refill(&conn->service->quota, run.cost + 1);
		credentials_accepted(conn->service->options.settings->credentials);
	} else if (run.attempts > 1) {
		problem_prefix(&run.problem, "after %u attempts", run.attempts);
	}
	if (run.failed_ns)
		run.problem.failing_ms = (clock_boot_ns() - run.failed_ns) / NS_PER_MS;
	if (run.maybe_applied && call->limits.maybe_applied)
		*call->limits.maybe_applied = true;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = run.problem;
	return outcome;
}
