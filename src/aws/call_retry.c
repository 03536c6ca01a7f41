#include "aws/call_retry.h"
#include "aws/wait.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include <stdlib.h>

#define UNKNOWN_NAME_ATTEMPTS 3 /* of a service that has never answered */

/* The milliseconds that the reply asks to wait, or 0. Retry-After is in seconds or a date. */
static uint64_t retry_after_ms(const struct call_run *run)
{
	const char *ms = http_reply_header(run->reply, "x-amz-retry-after");
	const char *s = http_reply_header(run->reply, "retry-after");
	if (ms && ms[0] >= '0' && ms[0] <= '9')
		return strtoull(ms, NULL, 10);
	if (!s)
		return 0;
	if (s[0] >= '0' && s[0] <= '9') {
		uint64_t seconds = strtoull(s, NULL, 10);
		return seconds < 1000000 ? seconds * 1000 : 1000000000;
	}
	int64_t at = clock_parse_http_date(s);
	return at > run->date_s && run->date_s >= 0 ? (uint64_t)(at - run->date_s) * 1000 : 0;
}

/* Waits before the next attempt; OUTCOME_OK or OUTCOME_ABANDONED. */
static enum outcome back_off(struct call_run *run, enum retry_class retry)
{
	struct service *service = run->conn->service;
	const struct call_limits *limits = &run->call->limits;
	uint64_t least_ms = retry_after_ms(run);
	const bool is_throttled = retry == RETRY_THROTTLE;
	/* Throttled, but others are served: the pace has been lowered, longer waits would only
	 * starve this one. */
	if (!is_throttled || pace_success_ns(&service->pace) < run->waited_ns)
		run->waits++;
	uint64_t ms = retry_backoff_ms(
		retry, service->options.is_s3, run->waits ? run->waits - 1 : 0, least_ms);
	run->waited_ns = clock_boot_ns();
	run->cost = is_throttled ? 0 : retry_cost(retry);
	if (!is_throttled && !retry_quota_take(&service->quota, retry)) {
		run->cost = 0;
		ms += RETRY_CAP_MS / 2 + random_below(RETRY_CAP_MS / 2);
	}
	/* Half of the time that is left, so that the last attempts are made in time. */
	uint64_t now_ns = clock_boot_ns(), end_ns = limits->deadline_ns;
	uint64_t half_ms = end_ns > now_ns ? (end_ns - now_ns) / 2 / NS_PER_MS : 0;
	if (end_ns && ms > half_ms)
		ms = least_ms > half_ms ? ms : half_ms;
	/* An empty quota must not make the last attempt a late one. */
	const bool is_failing = run->failed_ns || run->is_down;
	if (is_failing && limits->patience_ms && ms > limits->patience_ms)
		ms = least_ms > limits->patience_ms ? least_ms : limits->patience_ms;
	log_debug("%s: %s; again in %llu ms", service->options.kinds[run->call->kind],
		run->problem.text, (unsigned long long)ms);
	enum outcome outcome = wait_within(limits, ms, NULL);
	if (outcome != OUTCOME_OK)
		problem_prefix(&run->problem, "given up before the next attempt");
	return outcome;
}

/* Mends what the reply complained of, once each; false if that is not possible. */
static bool correct(struct call_run *run, struct verdict verdict)
{
	struct service_conn *conn = run->conn;
	struct service *service = conn->service;
	switch (verdict.retry) {
	case RETRY_CLOCK:
		if (run->corrected_clock || run->date_s < 0)
			return false;
		service_correct_clock(service, run->date_s);
		return run->corrected_clock = true;
	case RETRY_CREDENTIALS:
		if (run->corrected_credentials ||
			!credentials_refused(service->options.settings->credentials,
				conn->credentials_generation, verdict.outcome == OUTCOME_SETUP,
				&run->call->limits))
			return false;
		conn->has_credentials = false;
		return run->corrected_credentials = true;
	case RETRY_REGION:
		if (run->corrected_region || service_learn_region(service, run->region))
			return false;
		return run->corrected_region = true;
	default:
		return false;
	}
}

/* Whether throttling, or a service that is down, is waited out still. */
static bool is_patient(struct call_run *run)
{
	const uint64_t success_ns = pace_success_ns(&run->conn->service->pace);
	const uint64_t since_ns = success_ns > run->began_ns ? success_ns : run->began_ns;
	return clock_boot_ns() - since_ns < run->call->limits.patience_ms * NS_PER_MS;
}

/* Whether the service has answered with errors of its own for longer than the caller waits. */
static bool has_failed_long(struct call_run *run, struct verdict verdict)
{
	const uint64_t now_ns = clock_boot_ns();
	if (verdict.retry != RETRY_TRANSIENT || run->reply->status < 500)
		return false;
	run->failed_ns = run->failed_ns ? run->failed_ns : now_ns;
	const uint64_t patience_ns = run->call->limits.patience_ms * NS_PER_MS;
	return patience_ns && now_ns - run->failed_ns >= patience_ns;
}

bool call_goes_on(struct call_run *run, struct verdict verdict, enum outcome *outcome)
{
	const struct call_limits *limits = &run->call->limits;
	unsigned most = limits->attempts ? limits->attempts
					 : run->conn->service->options.settings->attempts;
	if (run->name_is_unknown && most > UNKNOWN_NAME_ATTEMPTS &&
		!service_has_answered(run->conn->service))
		most = UNKNOWN_NAME_ATTEMPTS;
	*outcome = verdict.outcome;
	if (!retry_cost(verdict.retry))
		return correct(run, verdict);
	const bool is_waited_out =
		(verdict.retry == RETRY_THROTTLE || run->is_down) && is_patient(run);
	run->attempts += !is_waited_out;
	if (run->is_down && is_waited_out)
		service_say_down(run->conn->service, &run->problem, limits->patience_ms);
	const bool is_too_late = has_failed_long(run, verdict) ||
				 (run->is_down && !is_waited_out && run->waits + 1 >= most);
	if (run->attempts >= most || is_too_late ||
		(verdict.retry == RETRY_DIGEST && run->repeated_digest))
		return false;
	run->repeated_digest = run->repeated_digest || verdict.retry == RETRY_DIGEST;
	enum outcome waited = back_off(run, verdict.retry);
	if (waited != OUTCOME_OK)
		*outcome = waited;
	else if (run->call->is_write && verdict.retry == RETRY_TRANSIENT)
		run->maybe_applied = run->maybe_applied || outcome_is_ambiguous(verdict.outcome);
	return waited == OUTCOME_OK;
}
