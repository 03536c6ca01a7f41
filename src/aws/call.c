/* Performs one signed request with its retries. s3_request.c and dynamodb_request.c make
 * their requests by it.
 *
 * First comes the decision after an attempt, with the wait of the call, and then the call itself.
 * classify() in retry.c decides the outcome of a reply, refusal.c has the sentence for it, and
 * call_request.c builds the request. */
#include "aws/call.h"
#include "aws/refusal.h"
#include "aws/retry.h"
#include "aws/service.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A call in progress. */
struct call_run {
	struct service_conn *conn;
	const struct call *call;
	struct http_reply *reply;
	struct problem problem;
	unsigned attempts; /* number of attempts that count (may_try_again()) */
	unsigned waits;    /* number of waits so far that make the next one longer (count_wait()) */
	uint64_t began_ns, wait_began_ns; /* beginning of the call, and of its last wait */
	uint64_t wait_ns;                 /* intended length of that wait */
	uint64_t failed_ns;   /* time of the last failure that note_failing_time() noted; 0: none */
	uint64_t failing_ns;  /* time since the first of these failures */
	unsigned cost;        /* tokens of the retry quota that the last wait took */
	bool was_abandoned;   /* limits.abandon() has returned true */
	bool new_connection;  /* the last reply was a 5xx, so the next attempt does not use
				 the same connection */
	bool may_be_misspelt; /* the last attempt could not resolve the host's name, and
				 the service has never answered */
	bool is_down;         /* the last attempt could not connect, or could not resolve
				 a name at which the service has answered before */
	bool has_sent;        /* an attempt may have sent some of the body */
	bool retried[RETRY_REGION + 1]; /* for each retry_class, whether it was used, since some
					   retries are made only once */
	bool maybe_applied;             /* a request before the last one may have been applied */
	int64_t date_s;                 /* date of the last reply, -1 if it has none */
	/* The error code, message and region of the last reply, as they came. Each of them may be
	 * "". */
	char code[64], message[256], region[64];
};

#define RETRY_AFTER_MAX_MS 60000

/* Returns the wait that the reply asks for, at most RETRY_AFTER_MAX_MS. Returns 0 if it asks for
 * none, or if there is no reply. x-amz-retry-after is in milliseconds. Retry-After is in seconds,
 * or is a date, which is compared with the reply's own Date, since our clock may be off. A header
 * that is missing is NULL, which is neither a number nor a date. */
static uint64_t retry_after_ms(const struct call_run *run)
{
	const char *amz_retry_after = http_reply_header(run->reply, "x-amz-retry-after");
	const char *retry_after = http_reply_header(run->reply, "retry-after");
	const int64_t retry_at_s = clock_parse_http_date(retry_after);
	uint64_t ms, s, wait_ms = 0;
	if (decimal_read(amz_retry_after, UINT64_MAX, &ms))
		wait_ms = ms;
	else if (decimal_read(retry_after, UINT64_MAX, &s)) /* s * 1000 may overflow */
		wait_ms = s < RETRY_AFTER_MAX_MS ? s * 1000 : RETRY_AFTER_MAX_MS;
	else if (run->date_s >= 0 && retry_at_s > run->date_s)
		wait_ms = (uint64_t)(retry_at_s - run->date_s) * 1000;
	return wait_ms < RETRY_AFTER_MAX_MS ? wait_ms : RETRY_AFTER_MAX_MS;
}

/* Returns the wait, in ms, cut to the time that the limits of the call leave. */
static uint64_t shorten_wait_ms(const struct call_run *run, uint64_t now_ns, uint64_t ms)
{
	const struct call_limits *limits = &run->call->limits;
	const uint64_t end_ns = limits->deadline_ns;
	/* Waits for at most half of the time that is left before the deadline, so that the next
	 * attempt comes in time. */
	const uint64_t half_ms = end_ns > now_ns ? (end_ns - now_ns) / 2 / NS_PER_MS : 0;
	if (end_ns && ms > half_ms)
		ms = half_ms;
	const bool is_failing = run->failed_ns || run->is_down;
	if (!is_failing || !limits->patience_ms)
		return ms;
	/* While the call fails, waits no longer than its patience: otherwise the long wait of an
	 * empty quota would make the last attempt too late. */
	const uint64_t failed_ms = limits->failed_ms + run->failing_ns / NS_PER_MS;
	const uint64_t left_ms =
		limits->patience_ms > failed_ms ? limits->patience_ms - failed_ms : 0;
	return ms < left_ms ? ms : left_ms;
}

/* Counts a wait that begins now, unless it should not make the next one longer: this request is
 * throttled, but the service has accepted others since the last wait of this request began. The
 * service then has room for some requests, and longer waits would only let the others go first. The
 * first wait of a throttled request is never counted, since wait_began_ns is still 0. */
static void count_wait(struct call_run *run, bool is_throttled, uint64_t now_ns)
{
	const uint64_t accepted_ns = atomic_load(&run->conn->service->pace.success_ns);
	const bool accepts_others = accepted_ns >= run->wait_began_ns;
	if (!is_throttled || !accepts_others)
		run->waits++;
	run->wait_began_ns = now_ns;
}

/* Returns the wait before the next attempt, in ms. Counts the wait, and takes the tokens of the
 * retry from the quota. */
static uint64_t next_wait_ms(struct call_run *run, enum retry_class retry)
{
	struct service *service = run->conn->service;
	const uint64_t now_ns = clock_boot_ns();
	const uint64_t asked_ms = retry_after_ms(run); /* the server's request */
	const bool is_throttled = retry == RETRY_THROTTLE;
	count_wait(run, is_throttled, now_ns);
	const unsigned waits_before = run->waits ? run->waits - 1 : 0;
	uint64_t ms = retry_backoff_ms(
		retry, service->options.is_s3 ? RETRY_OF_S3 : RETRY_OF_DYNAMODB, waits_before);
	ms = ms > asked_ms ? ms : asked_ms;
	/* Throttling takes no tokens. If the quota has too few for any other retry, this one waits
	 * 10 to 20 s longer, so that many failing calls do not flood the service. */
	run->cost = (!is_throttled && retry_quota_take(&service->quota)) ? RETRY_COST : 0;
	if (!is_throttled && !run->cost)
		ms += RETRY_CAP_MS / 2 + random_below(RETRY_CAP_MS / 2);
	ms = shorten_wait_ms(run, now_ns, ms);
	/* Only the server may ask for a wait that is longer than the limits of the call. */
	return ms > asked_ms ? ms : asked_ms;
}

/* Waits before the next attempt. Returns OUTCOME_OK, or OUTCOME_ABANDONED if the limits end the
 * wait. */
static enum outcome back_off(struct call_run *run, enum retry_class retry)
{
	const uint64_t ms = next_wait_ms(run, retry);
	run->wait_ns = ms * NS_PER_MS;
	log_debug("%s: %s; again in %llu ms", run->conn->service->options.kinds[run->call->kind],
		run->problem.text, (unsigned long long)ms);
	/* The wait sets no sentence: run->problem stays that of the last failed attempt. */
	return wait_within(&run->call->limits, ms, NULL);
}

/* Corrects the clock, the credentials or the region, according to the verdict. Returns whether
 * another attempt may now succeed: false if nothing could be corrected, or if this call has already
 * corrected the same thing. */
static bool correct_before_retry(struct call_run *run, struct verdict verdict)
{
	struct service_conn *conn = run->conn;
	struct service *service = conn->service;
	if (run->retried[verdict.retry])
		return false;
	run->retried[verdict.retry] = true;
	switch (verdict.retry) {
	case RETRY_CLOCK:
		if (run->date_s < 0)
			return false;
		/* All later requests of the service are signed by the server's clock. */
		atomic_store(&service->clock_offset_s, run->date_s - clock_wall_s());
		return true;
	case RETRY_CREDENTIALS: {
		/* With SETUP the reply has named the credentials as the cause, as ExpiredToken
		 * does. Otherwise it was a 400 without a code, to a HEAD, which may have other
		 * causes. */
		const bool is_sure = verdict.outcome == OUTCOME_SETUP;
		/* Without this copy, service_conn_refresh() gets the credentials in force. */
		credentials_wipe(&conn->signer.credentials);
		return credentials_refused(service->options.settings->credentials,
			conn->credentials_generation, is_sure, &run->call->limits);
	}
	case RETRY_REGION:
		return service_learn_region(service, run->region) == 0;
	default:
		return false;
	}
}

#define MISSPELT_ATTEMPTS 3

/* Returns the number of attempts of the call. A host name that was never resolved is probably
 * misspelt, so a call with the number of the settings has only a few attempts then. A caller that
 * sets the number gets all of its attempts: a wait for a lock, for example, also waits until the
 * name resolves. */
static unsigned max_attempts(const struct call_run *run)
{
	const struct service *service = run->conn->service;
	const unsigned by_caller = run->call->limits.attempts;
	const unsigned by_settings = service->options.settings->attempts;
	if (by_caller)
		return by_caller;
	if (run->may_be_misspelt && by_settings > MISSPELT_ATTEMPTS)
		return MISSPELT_ATTEMPTS;
	return by_settings;
}

/* Whether another attempt may follow the one that has just failed, which is counted here, unless
 * the patience excuses it. If the service is down and the call waits for it, logs a warning, once
 * for all calls.
 *
 * While the patience lasts, it excuses attempts that were throttled or could not connect. The
 * patience begins with the call, or when the service last accepted any request, whichever is later.
 */
static bool may_try_again(struct call_run *run, enum retry_class retry)
{
	struct service *service = run->conn->service;
	const uint64_t patience_ms = run->call->limits.patience_ms;
	const uint64_t success_ns = atomic_load(&service->pace.success_ns);
	const uint64_t since_ns = success_ns > run->began_ns ? success_ns : run->began_ns;
	const bool has_patience = clock_boot_ns() - since_ns < patience_ms * NS_PER_MS;
	const unsigned max = max_attempts(run);
	if (has_patience && run->is_down && !atomic_exchange(&service->reported_down, true))
		log_warning("%s; trying again for up to %llu s (--give-up-after)",
			run->problem.text, (unsigned long long)(patience_ms / 1000));
	if (has_patience && (run->is_down || retry == RETRY_THROTTLE))
		return true;
	run->attempts++;
	if (run->attempts >= max)
		return false;
	/* If the service is down, the excused attempts count once the patience is over: one for
	 * each wait, and this one. So the call ends soon after the patience. */
	return !run->is_down || run->waits + 1 < max;
}

/* Notes for how long this call has failed, with or without replies, counted from the end of its
 * first failure. A later attempt counts for no longer than a request may be silent, since a large
 * body may have moved for hours before its connection broke. */
static void note_failing_time(struct call_run *run)
{
	const uint64_t now_ns = clock_boot_ns();
	const struct aws_settings *settings = run->conn->service->options.settings;
	const uint64_t max_ns = run->wait_ns + settings->stall_timeout_ms * NS_PER_MS;
	const uint64_t passed_ns = run->failed_ns ? now_ns - run->failed_ns : 0;
	run->failing_ns += passed_ns < max_ns ? passed_ns : max_ns;
	run->failed_ns = now_ns;
}

/* Whether this call has failed for as long as its patience lasts. A call without patience has no
 * such limit. */
static bool has_failed_too_long(const struct call_run *run)
{
	const struct call_limits *limits = &run->call->limits;
	const uint64_t failed_ns = limits->failed_ms * NS_PER_MS + run->failing_ns;
	return limits->patience_ms && failed_ns >= limits->patience_ms * NS_PER_MS;
}

/* Decides whether another attempt follows this verdict, which is not OK. Before it returns true, it
 * has waited, or has made the correction that the verdict asks for. If it returns false,
 * *ret_outcome is the outcome of the call. */
static bool call_goes_on(struct call_run *run, struct verdict verdict, enum outcome *ret_outcome)
{
	const enum retry_class retry = verdict.retry;
	*ret_outcome = verdict.outcome;
	if (retry == RETRY_NONE)
		return false;
	if (retry == RETRY_CLOCK || retry == RETRY_CREDENTIALS || retry == RETRY_REGION)
		return correct_before_retry(run, verdict);
	if (!may_try_again(run, retry))
		return false;
	/* A service that cannot be reached has its limits in may_try_again(). */
	if (retry == RETRY_TRANSIENT && !run->is_down) {
		note_failing_time(run);
		if (has_failed_too_long(run))
			return false;
	}
	if (retry == RETRY_DIGEST && run->retried[retry]) /* damaged bytes are sent again once */
		return false;
	run->retried[retry] = true;
	if (back_off(run, retry) != OUTCOME_OK) {
		*ret_outcome = OUTCOME_ABANDONED;
		return false;
	}
	/* The attempt of this verdict is no longer the last one. Only after a transient error may
	 * it have been applied: a throttled or damaged request was refused. */
	if (run->call->is_write && retry == RETRY_TRANSIENT)
		run->maybe_applied |= outcome_is_ambiguous(verdict.outcome);
	return true;
}

#define REPLY_MAX_BYTES (1U << 20)

/* Calls limits.abandon() during an attempt, and remembers when it has returned true. From then on
 * it is not called again. */
static bool on_abandon(void *arg)
{
	struct call_run *run = arg;
	const struct call_limits *limits = &run->call->limits;
	run->was_abandoned = run->was_abandoned || limits->abandon(limits->abandon_arg);
	return run->was_abandoned;
}

/* Whether the whole call must end, not only the attempt. */
static bool must_end(struct call_run *run)
{
	return run->was_abandoned || limits_are_over(&run->call->limits);
}

#define WIRE_BODY_BYTES (1U << 20) /* a larger body does not count for service_wire() */

/* Counts a reply, and the time that it took, for service_wire(). */
static void count_reply(struct service *service, const struct http_reply *reply)
{
	atomic_fetch_add_explicit(&service->replies, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&service->wire_ns, reply->wire_ns, memory_order_relaxed);
}

/* Sends the request once. Returns 0 if there is a reply, otherwise http_perform()'s -errno. */
static int send_once(struct call_run *run, const struct call_request *built)
{
	const struct call *call = run->call;
	struct service *service = run->conn->service;
	struct http_request request = {.method = call->method,
		.url = text_string(&run->conn->signer.url),
		.headers = built->headers,
		.n_headers = built->n_headers,
		.body = call->body,
		.deadline_ns = call->limits.deadline_ns,
		.abandon = call->limits.abandon ? on_abandon : NULL,
		.abandon_arg = run,
		.reply_max_bytes = call->reply_max_bytes ? call->reply_max_bytes : REPLY_MAX_BYTES,
		.new_connection = run->new_connection};
	/* An attempt with a small body also has a deadline of its own. An attempt with a large body
	 * may go on as long as bytes move, since the time for the body cannot be predicted on a
	 * shared line. */
	const uint64_t timeout_ns =
		clock_boot_ns() + service->options.settings->request_timeout_ms * NS_PER_MS;
	const bool is_small = call->body.bytes <= HTTP_SMALL_BODY_BYTES;
	const bool ends_later = !request.deadline_ns || request.deadline_ns > timeout_ns;
	if (is_small && ends_later)
		request.deadline_ns = timeout_ns;
	/* An attempt before this one may have read some of the body. */
	if (call->body.rewind && call->body.rewind(call->body.arg, 0))
		return problem_error(
			&run->problem, -EIO, "the data to send could not be read again");
	atomic_fetch_add_explicit(&service->counts[call->kind], 1, memory_order_relaxed);
	struct problem problem = {0};
	int error = http_perform(run->conn->http, &request, run->reply, &problem);
	if (!error && call->body.bytes <= WIRE_BODY_BYTES)
		count_reply(service, run->reply);
	/* If the call need not end, only the attempt's own deadline has passed, and the next
	 * attempt may succeed. */
	if (error == -ECANCELED && !must_end(run))
		error = -ETIMEDOUT;
	/* If the call was given up, the problem of the previous attempt is more useful than this
	 * one. */
	if (error != -ECANCELED || !run->problem.text[0])
		run->problem = problem;
	return error;
}

/* Notes the Date of the reply, and by it the server's time. */
static void note_date(struct call_run *run, const struct call_request *sent)
{
	struct service_conn *conn = run->conn;
	const char *date = http_reply_header(run->reply, "date");
	/* Parses the Date only if it differs from the last one. Many replies have the same second,
	 * and parsing a date takes long. */
	if (date && (!*conn->date || strcmp(conn->date, date) != 0)) {
		conn->date_s = clock_parse_http_date(date);
		snprintf(conn->date, sizeof conn->date, "%s", date);
	}
	run->date_s = date ? conn->date_s : -1;
	if (run->date_s >= 0)
		service_saw_date(conn->service, run->date_s, sent->signed_ns);
}

/* Sets the problem of the call to a sentence about a reply that is not OK. */
static void explain_reply(struct call_run *run, enum outcome outcome, bool body_is_unreadable)
{
	const struct service *service = run->conn->service;
	refusal_explain(&(const struct refusal){.outcome = outcome,
				.is_s3 = service->options.is_s3,
				.method = run->call->method,
				.request = service->options.kinds[run->call->kind],
				.url = text_string(&run->conn->signer.url),
				.reply = run->reply,
				.code = run->code,
				.message = run->message,
				.region = run->region,
				.body_is_unreadable = body_is_unreadable},
		&run->problem);
}

/* Returns the facts about an attempt by which classify() decides. Notes in `run` the error that the
 * reply names, if there is a reply. */
static struct attempt describe_attempt(
	struct call_run *run, const struct call_request *sent, int error)
{
	const struct service_conn *conn = run->conn;
	const struct service *service = conn->service;
	struct attempt attempt = {.error = error,
		.code = run->code,
		.is_s3 = service->options.is_s3,
		.is_write = run->call->is_write};
	run->code[0] = run->message[0] = run->region[0] = 0;
	if (error)
		return attempt;
	attempt.status = run->reply->status;
	const int found = run->call->read_error(run->reply, run->code, run->message, run->region);
	const bool has_error = found > 0,
		   is_success = attempt.status >= 200 && attempt.status < 300;
	const bool is_nameless_error = has_error && !run->code[0]; /* a success never has one */
	attempt.body_is_unreadable = found < 0 || (is_success && is_nameless_error);
	attempt.names_other_region =
		run->region[0] && strcmp(run->region, conn->signer.endpoint.region) != 0;
	attempt.clock_is_off = run->date_s >= 0 && call_request_clock_is_off(sent, run->date_s);
	attempt.signature_is_good =
		atomic_load(&service->accepted_generation) == conn->credentials_generation + 1;
	return attempt;
}

/* Returns the verdict on the attempt. Notes the server's time, and in `run` the error in the reply
 * and the problem that explains it. */
static struct verdict judge_reply(struct call_run *run, const struct call_request *sent, int error)
{
	struct service_conn *conn = run->conn;
	struct service *service = conn->service;
	run->date_s = -1;
	if (!error)
		note_date(run, sent);
	const struct attempt attempt = describe_attempt(run, sent, error);
	struct verdict verdict = classify(&attempt);
	if (error) /* send_once() has set the problem */
		return verdict;
	if (verdict.outcome == OUTCOME_OK && !attempt.signature_is_good)
		atomic_store(&service->accepted_generation, conn->credentials_generation + 1);
	if (verdict.outcome != OUTCOME_OK)
		explain_reply(run, verdict.outcome, attempt.body_is_unreadable);
	/* DynamoDB is called by POST, which no cache answers. */
	const bool may_be_cached = attempt.is_s3 && !attempt.is_write;
	const char *cached_by = may_be_cached ? http_reply_cached_by(run->reply) : NULL;
	/* A cached reply, whatever it says, is out of date. */
	if (cached_by) {
		verdict = (struct verdict){RETRY_NONE, OUTCOME_SETUP};
		problem_set(&run->problem,
			"a cache on the way answered in place of S3 (%s: %s), so nothing is known "
			"of what is there now: let the proxy pass requests on, or go around it "
			"(NO_PROXY, --endpoint-url)",
			cached_by, quote(http_reply_header(run->reply, cached_by)).text);
	}
	const bool is_of_subject =
		verdict.outcome == OUTCOME_SETUP || verdict.outcome == OUTCOME_DENIED;
	if (run->call->subject && is_of_subject)
		problem_prefix(&run->problem, "%s %s at %s", attempt.is_s3 ? "bucket" : "table",
			quote(run->call->subject).text, quote(run->conn->signer.endpoint.url).text);
	return verdict;
}

/* Signs the request, sends it once, and returns the verdict. Notes in `run` the facts about this
 * attempt that the next one needs. */
static struct verdict send_signed(struct call_run *run)
{
	struct call_request built = {0};
	const int64_t now_s = clock_wall_s() + atomic_load(&run->conn->service->clock_offset_s);
	int error = call_request_build(&run->conn->signer, run->call, now_s, &built);
	if (error == -ENOMEM)
		return (struct verdict){RETRY_NONE, outcome_no_memory(&run->problem)};
	if (error)
		return (struct verdict){RETRY_NONE,
			outcome_error(&run->problem, OUTCOME_INVALID,
				"the request cannot be written: a header or the address is not "
				"valid")};
	error = send_once(run, &built);
	/* These two errors mean that there was no address or no connection, so nothing was sent. */
	const bool is_unreached = error == -ENOENT || error == -ECONNREFUSED;
	/* A service whose time is not known has never answered. */
	run->may_be_misspelt =
		error == -ENOENT && atomic_load(&run->conn->service->server_at_boot_ms) == NO_TIME;
	run->is_down = is_unreached && !run->may_be_misspelt;
	run->has_sent |= !is_unreached;
	/* If curl has sent the request twice by itself, the first one may have been applied. */
	run->maybe_applied |= run->call->is_write && run->reply->is_resent;
	run->new_connection = !error && run->reply->status >= 500;
	struct verdict verdict = judge_reply(run, &built, error);
	log_debug("%s %s: %s (status %d)", run->conn->service->options.kinds[run->call->kind],
		run->call->path, outcome_name(verdict.outcome), error ? 0 : run->reply->status);
	if (error) /* A reply that is not whole does not count. */
		http_reply_clear(run->reply);
	return verdict;
}

/* Returns the verdict on a call that ends before its next attempt is sent. Keeps the problem of the
 * previous attempt, if there was one. */
static struct verdict give_up(struct call_run *run)
{
	if (!run->problem.text[0])
		problem_set(&run->problem, "it was given up before it was sent");
	return (struct verdict){RETRY_NONE, OUTCOME_ABANDONED};
}

/* Makes one attempt and returns the verdict on it. If no request is sent, the verdict is RETRY_NONE
 * with the outcome for that. */
static struct verdict try_once(struct call_run *run)
{
	struct service *service = run->conn->service;
	const struct http_body *body = &run->call->body;
	unsigned cuts; /* passed from pace_enter() to pace_leave() */
	/* After an attempt that may have sent some of the body, may_send_again() waits until the
	 * limit of bandwidth allows sending it again. It returns false if that wait was given
	 * up. */
	if (run->has_sent && body->may_send_again && !body->may_send_again(body->arg))
		return give_up(run);
	if (must_end(run))
		return give_up(run);
	enum outcome outcome = service_conn_refresh(run->conn, &run->call->limits, &run->problem);
	if (outcome != OUTCOME_OK)
		return (struct verdict){RETRY_NONE, outcome};
	if (!pace_enter(&service->pace, &run->call->limits, &cuts))
		return give_up(run);
	struct verdict verdict = send_signed(run);
	const int status = run->reply->status;
	/* Any reply that is neither 5xx nor throttling shows that the service takes requests. The
	 * status is 0 if there is no reply. AWS's retry_mode decides whether throttling lowers the
	 * pace (aws_settings.keeps_pace). */
	enum pace_result result = (status && status < 500) ? PACE_ACCEPTED : PACE_OTHER;
	if (verdict.retry == RETRY_THROTTLE)
		result = service->options.settings->keeps_pace ? PACE_OTHER : PACE_THROTTLED;
	pace_leave(&service->pace, cuts, result);
	return verdict;
}

/* Reports the result of an attempt to the clock of the run. */
static void report_progress(const struct call_run *run, struct verdict verdict)
{
	const struct call_limits *limits = &run->call->limits;
	const char *kind = run->conn->service->options.kinds[run->call->kind];
	/* These two say nothing about the service. */
	if (verdict.outcome == OUTCOME_ABANDONED || verdict.outcome == OUTCOME_LOCAL)
		return;
	const bool is_failure = verdict.retry == RETRY_TRANSIENT ||
				verdict.retry == RETRY_THROTTLE ||
				outcome_is_ambiguous(verdict.outcome);
	if (is_failure) {
		progress_failed(limits->progress, kind, &run->problem);
		return;
	}
	progress_answered(limits->progress, kind);
	if (limits->progress && limits->is_progress)
		progress_made(limits->progress);
}

/* Notes that the service takes requests again, and gives back tokens of the quota. */
static void note_success(const struct call_run *run)
{
	struct service *service = run->conn->service;
	/* All threads pass here, and atomic_load() is cheaper than atomic_exchange(). */
	if (atomic_load(&service->reported_down) && atomic_exchange(&service->reported_down, false))
		log_warning("%s answers again", service->options.is_s3 ? "S3" : "DynamoDB");
	/* The tokens of the last retry, and 1 for the success. */
	retry_quota_refill(&service->quota, run->cost + 1);
	credentials_accepted(service->options.settings->credentials);
}

enum outcome call_perform(struct service_conn *conn, const struct call *call,
	struct http_reply *ret_reply, struct problem *ret_problem)
{
	struct call_run run = {
		.conn = conn, .call = call, .reply = ret_reply, .began_ns = clock_boot_ns()};
	struct progress_clock *progress = call->limits.progress;
	const char *kind = conn->service->options.kinds[call->kind];
	enum outcome outcome; /* call_goes_on() sets it when it ends the call */
	struct verdict verdict;
	progress_begin_wait(progress, kind);
	do {
		verdict = try_once(&run);
		report_progress(&run, verdict);
	} while (verdict.outcome != OUTCOME_OK && call_goes_on(&run, verdict, &outcome));
	progress_end_wait(progress);
	if (verdict.outcome == OUTCOME_OK) {
		outcome = OUTCOME_OK;
		note_success(&run);
	} else if (run.attempts > 1) {
		problem_prefix(&run.problem, "after %u attempts", run.attempts);
	}
	run.problem.failing_ms = run.failing_ns / NS_PER_MS;
	if (run.maybe_applied && call->limits.maybe_applied)
		*call->limits.maybe_applied = true;
	if (outcome != OUTCOME_OK && ret_problem)
		*ret_problem = run.problem;
	return outcome;
}
