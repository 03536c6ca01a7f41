/* Implements http/http.h on the simulated network. See net.h.
 *
 * The body is read like curl does, piece by piece and with time between the pieces, so that a file
 * may change meanwhile. */
#include "net.h"
#include "base/clock.h"
#include "denials.h"
#include "http/http.h"
#include "judge.h"
#include "judge_parts.h"
#include "judge_runs.h"
#include "judge_sessions.h"
#include "machines.h"
#include "proxy.h"
#include "rivals.h"
#include "silences.h"
#include "story.h"
#include "tasks.h"
#include "world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES  (256U << 10)
#define LOOK_NS     (500 * NS_PER_MS)
#define LAG_MOST_NS (3000 * NS_PER_MS)

struct http_shared {
	uint64_t stall_timeout_ns;
};
struct http {
	struct http_shared *shared;
};

enum fault {
	FAULT_NONE,
	FAULT_REFUSED,
	FAULT_LOST_BEFORE,
	FAULT_LOST_AFTER,
	FAULT_HANGS,
	FAULT_SENT_TWICE,
	FAULT_COMES_AGAIN,
	FAULT_SERVER_ERROR,
	FAULT_ERROR_AFTER,
	FAULT_THROTTLED,
	FAULT_HTML,
	FAULT_LAGS
};
static const char *const fault_names[] = {"", "refused", "lost", "answer lost", "hangs",
	"sent twice", "will come again", "500", "500 after it", "throttled", "HTML",
	"answered late"};

/* A request that has not arrived yet. */
struct late {
	struct wire_request *request;
	uint64_t at_ns;
	struct late *next;
};

static struct {
	struct chance chance;
	struct net_habits habits;
	struct late *lates;
	net_server *server;
	void *arg;
	uint64_t numbers, met;
	unsigned late;
	bool is_cut[MACHINES_MAX];
} net;

void net_begin(uint64_t seed, const struct net_habits *habits, net_server *server, void *arg)
{
	memset(&net, 0, sizeof net);
	net.chance = chance_of(seed, "net");
	net.habits = *habits;
	net.server = server;
	net.arg = arg;
	rivals_begin(seed, habits->meet_per_mille);
	proxy_begin(habits->has_proxy);
}

void net_calm(void)
{
	net.habits.refuses_first_part = false;
	rivals_calm();
	silences_calm();
	denials_calm();
	net.habits.faults = (struct net_faults){0};
	memset(net.is_cut, 0, sizeof net.is_cut);
}

unsigned net_late_copies(void)
{
	return net.late;
}

uint64_t net_faults_met(void)
{
	return net.met;
}

void net_cut(const struct machine *machine, bool is_cut)
{
	net.is_cut[machine->index] = is_cut;
}

static bool is_cut(void)
{
	const struct machine_process *process = task_process();
	return process && net.is_cut[process->machine->index];
}

static enum fault choose_fault(void)
{
	const struct net_faults *f = &net.habits.faults;
	const unsigned shares[] = {f->refused, f->lost_before, f->lost_after, f->hangs,
		f->sent_twice, f->comes_again, f->server_error, f->error_after, f->throttled,
		f->html, f->lags};
	uint64_t dice = chance_below(&net.chance, 1000);
	for (unsigned i = 0; i < sizeof shares / sizeof *shares; i++) {
		if (dice < shares[i]) {
			net.met++;
			return (enum fault)(i + 1);
		}
		dice -= shares[i];
	}
	return FAULT_NONE;
}

int http_global_init(void)
{
	return 0;
}

int http_shared_new(const struct http_options *options, struct http_shared **ret)
{
	struct http_shared *shared = calloc(1, sizeof *shared);
	if (!shared)
		return -ENOMEM;
	shared->stall_timeout_ns =
		(options->stall_timeout_ms ? options->stall_timeout_ms : 30000) * NS_PER_MS;
	*ret = shared;
	return 0;
}

void http_shared_free(struct http_shared *shared)
{
	free(shared);
}

int http_new(struct http_shared *shared, struct http **ret)
{
	struct http *http = calloc(1, sizeof *http);
	if (!http)
		return -ENOMEM;
	http->shared = shared;
	*ret = http;
	return 0;
}

void http_free(struct http *http)
{
	free(http);
}

static bool must_end(const struct http_request *request)
{
	return (request->abandon && request->abandon(request->abandon_arg)) ||
	       (request->deadline_ns && clock_boot_ns() >= request->deadline_ns);
}

static int give_up(const struct http_request *request, int error, struct problem *ret_problem)
{
	problem_set(ret_problem, "%s",
		error == -ECANCELED      ? "the request was abandoned"
		: error == -ETIMEDOUT    ? "the server does not answer"
		: error == -ECONNREFUSED ? "the server cannot be reached"
		: error == -EIO          ? "the data to send could not be read"
					 : "the connection was lost");
	return error;
}

/* Waits for that time. Returns -ECANCELED if the request has to end before. */
static int wait_on(const struct http_request *request, uint64_t ns)
{
	const uint64_t end_ns = world_now_ns() + ns;
	while (world_now_ns() < end_ns) {
		if (must_end(request))
			return -ECANCELED;
		const uint64_t left = end_ns - world_now_ns();
		task_sleep_until(world_now_ns() + (left < LOOK_NS ? left : LOOK_NS));
	}
	return must_end(request) ? -ECANCELED : 0;
}

static uint64_t latency_ns(void)
{
	return chance_between(&net.chance, net.habits.latency_least_ns, net.habits.latency_most_ns);
}

/* Returns the whole body, which the caller frees, or NULL with -errno. */
static unsigned char *read_body(const struct http_request *request, int *ret_error)
{
	const struct http_body *body = &request->body;
	unsigned char *bytes = malloc((size_t)body->bytes + 1);
	uint64_t at = 0;
	*ret_error = bytes ? 0 : -ENOMEM;
	if (bytes && body->memory)
		memcpy(bytes, body->memory, (size_t)body->bytes);
	while (bytes && !body->memory && at < body->bytes && !*ret_error) {
		const size_t most =
			body->bytes - at < READ_BYTES ? (size_t)(body->bytes - at) : READ_BYTES;
		const long n = body->read(body->arg, bytes + at, most);
		if (n <= 0)
			*ret_error = -EIO;
		at += n > 0 ? (uint64_t)n : 0;
		if (n > 0 && body->moved)
			body->moved(body->moved_arg, (uint64_t)n);
		if (n > 0 && at < body->bytes)
			*ret_error = wait_on(request, chance_below(&net.chance, 20 * NS_PER_MS));
	}
	if (!*ret_error)
		return bytes;
	free(bytes);
	return NULL;
}

static bool is_dynamodb(const struct wire_request *request)
{
	return wire_header(request, "x-amz-target") != NULL;
}

static const char *operation(const struct wire_request *request)
{
	const char *target = wire_header(request, "x-amz-target");
	const char *dot = target ? strchr(target, '.') : NULL;
	return dot ? dot + 1 : request->method;
}

/* Whether the time in the request differs too much from the server's clock, which is right. */
static bool is_skewed(const struct wire_request *request)
{
	const char *date = wire_header(request, "x-amz-date");
	char iso[21];
	if (!date || strlen(date) < 16)
		return false;
	snprintf(iso, sizeof iso, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", date, date + 4, date + 6,
		date + 9, date + 11, date + 13);
	const int64_t skew_s =
		clock_parse_iso(iso) - WORLD_EPOCH - (int64_t)(world_now_ns() / NS_PER_S);
	return skew_s > 900 || skew_s < -900;
}

static void add_common_headers(struct wire_reply *reply)
{
	char date[CLOCK_HTTP_DATE_CHARS];
	clock_format_http_date(WORLD_EPOCH + (int64_t)(world_now_ns() / NS_PER_S), date);
	wire_reply_header(reply, "date", date);
}

static void say(
	const struct wire_request *request, struct wire_reply *reply, int status, const char *code)
{
	wire_reply_clear(reply);
	wire_reply_init(reply);
	reply->status = status;
	if (is_dynamodb(request))
		text_addf(&reply->body,
			"{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\",\"message\":\"\"}",
			code);
	else if (strcmp(request->method, "HEAD") != 0)
		text_addf(&reply->body,
			"<?xml version=\"1.0\"?><Error><Code>%s</Code><Message/></Error>", code);
	wire_reply_header(reply, "x-amz-request-id", "SIM");
}

/* Returns the target of a write: the sort key of a mark or row, or the path of an object. NULL for
 * any other request. */
static const char *target_of(const struct wire_request *request, size_t *ret_n)
{
	static const char before[] = "\"sk\":{\"S\":\"";
	const bool is_get = *request->method == 'G' || *request->method == 'H';
	*ret_n = strlen(request->path);
	if (!is_dynamodb(request))
		return is_get ? NULL : request->path;
	const char *body = (const char *)request->body;
	const char *at = memmem(body, request->body_bytes, before, sizeof before - 1);
	const char *name = operation(request);
	if (!at || (strcmp(name, "UpdateItem") != 0 && strcmp(name, "PutItem") != 0))
		return NULL;
	at += sizeof before - 1;
	const char *end = memchr(at, '"', (size_t)(body + request->body_bytes - at));
	*ret_n = end ? (size_t)(end - at) : 0;
	return at;
}

/* Makes late requests arrive when they may do most harm: right after another request has written to
 * the same target. */
static void call_lates(const struct wire_request *request)
{
	size_t n, late_n;
	const char *target = net.lates ? target_of(request, &n) : NULL;
	for (struct late *late = net.lates; target && late; late = late->next) {
		const char *other = target_of(late->request, &late_n);
		if (other && n == late_n && memcmp(target, other, n) == 0 &&
			late->request->number != request->number && chance_hits(&net.chance, 300))
			task_wake_all(late);
	}
}

static void apply(const struct wire_request *request, struct wire_reply *ret)
{
	if (is_skewed(request))
		say(request, ret, is_dynamodb(request) ? 400 : 403,
			is_dynamodb(request) ? "InvalidSignatureException"
					     : "RequestTimeTooSkewed");
	else if (denials_refuse(request))
		say(request, ret, 403, "AccessDenied");
	else if (!proxy_answers(request, ret)) {
		net.server(net.arg, request, ret);
		proxy_keeps(request, ret);
	}
	if (ret->status == 400 && is_dynamodb(request) &&
		strcmp(operation(request), "BatchExecuteStatement") == 0 &&
		strstr(text_string(&ret->body), "ValidationException"))
		judge_batch_refused();
	call_lates(request);
	if (ret->status == 200)
		rivals_wrote(request);
}

static void apply_unheard(const struct wire_request *request)
{
	struct wire_reply reply;
	wire_reply_init(&reply);
	apply(request, &reply);
	story_detail("  %s %s%s: %d, which nobody hears", operation(request),
		is_dynamodb(request) ? "" : request->path, request->is_late ? " (late)" : "",
		reply.status);
	wire_reply_clear(&reply);
}

static void come_late(void *arg)
{
	struct late *late = arg, **at = &net.lates;
	while (world_now_ns() < late->at_ns && !task_wait(late, late->at_ns))
		;
	while (*at != late)
		at = &(*at)->next;
	*at = late->next;
	net.late--;
	apply_unheard(late->request);
	wire_request_free(late->request);
	free(late);
}

/* Sends the request within this time, and takes ownership of it. */
static void send_late(struct wire_request *request, uint64_t most_ns)
{
	struct late *late = calloc(1, sizeof *late);
	if (!late)
		abort();
	request->is_late = true;
	*late = (struct late){
		request, world_now_ns() + chance_below(&net.chance, most_ns), net.lates};
	net.lates = late;
	net.late++;
	task_start(NULL, come_late, late);
}

static struct wire_request *copy_of(
	const struct http_request *request, const struct wire_request *wire)
{
	unsigned char *body = malloc(wire->body_bytes + 1);
	if (!body)
		abort();
	memcpy(body, wire->body, wire->body_bytes);
	struct wire_request *copy = wire_request_new(request->method, request->url,
		request->headers, request->n_headers, body, wire->body_bytes);
	copy->from = wire->from;
	copy->number = wire->number;
	copy->sent_ns = wire->sent_ns;
	return copy;
}

static int hand_out(const struct http_request *request, const struct wire_reply *reply,
	struct http_reply *ret_reply, struct problem *ret_problem)
{
	const char *at = text_string(&reply->headers);
	char line[2300];
	ret_reply->status = reply->status;
	for (size_t i = 0; i < reply->n_headers; i++) {
		const char *value = at + strlen(at) + 1;
		const int n = snprintf(line, sizeof line, "%s: %s\r\n", at, value);
		http_reply_add_header(ret_reply, line, (size_t)n);
		at = value + strlen(value) + 1;
	}
	const uint64_t length =
		strcmp(request->method, "HEAD") == 0 ? reply->content_length : reply->body.len;
	const int n =
		snprintf(line, sizeof line, "content-length: %llu\r\n", (unsigned long long)length);
	http_reply_add_header(ret_reply, line, (size_t)n);
	text_add_bytes(&ret_reply->body, text_string(&reply->body), reply->body.len);
	return ret_reply->body.error ? give_up(request, -EMSGSIZE, ret_problem) : 0;
}

static void answer_by_fault(
	enum fault fault, const struct wire_request *wire, struct wire_reply *reply)
{
	if (fault == FAULT_SERVER_ERROR)
		say(wire, reply, chance_hits(&net.chance, 500) ? 500 : 503,
			is_dynamodb(wire) ? "InternalServerError" : "InternalError");
	else if (fault == FAULT_THROTTLED)
		say(wire, reply, is_dynamodb(wire) ? 400 : 503,
			is_dynamodb(wire) ? "ProvisionedThroughputExceededException" : "SlowDown");
	else if (fault == FAULT_ERROR_AFTER) {
		apply(wire, reply);
		say(wire, reply, 500, is_dynamodb(wire) ? "InternalServerError" : "InternalError");
	} else if (fault == FAULT_HTML) {
		reply->status = 200;
		wire_reply_header(reply, "content-type", "text/html");
		if (world.scenario.portal) /* the page has an etag, like a file */
			wire_reply_header(reply, "etag", "\"6553a-26\"");
		text_add(&reply->body, "<html><body>Please log in</body></html>");
		reply->content_length = reply->body.len;
	} else {
		apply(wire, reply);
	}
}

static bool is_part(const struct wire_request *request)
{
	return strcmp(request->method, "PUT") == 0 && strstr(request->query, "partNumber=") != NULL;
}

/* Whether this is a part that the server never accepts. */
static bool is_refused_part(const struct wire_request *request)
{
	const char *number = strstr(request->query, "partNumber=");
	return net.habits.refuses_first_part && is_part(request) &&
	       strtoul(number + 11, NULL, 10) == 1;
}

/* Waits a while for a rival to write to the same row. */
static int await_rival(const struct http_request *request, const struct wire_request *wire)
{
	struct rival *rival = rivals_hold(wire);
	const uint64_t end_ns = world_now_ns() + RIVALS_MOST_NS;
	int error = 0;
	while (rival && !error && !rivals_have_met(rival) && world_now_ns() < end_ns) {
		const uint64_t look_ns = world_now_ns() + LOOK_NS;
		task_wait(rival, look_ns < end_ns ? look_ns : end_ns);
		error = must_end(request) ? -ECANCELED : 0;
	}
	if (rival)
		rivals_let_in(rival);
	return error;
}

/* Answers a request that has arrived at the server. */
static int exchange(const struct http *http, const struct http_request *request,
	struct wire_request *wire, enum fault fault, struct http_reply *ret_reply,
	struct problem *ret_problem)
{
	struct wire_reply reply;
	if (is_cut())
		fault = FAULT_HANGS;
	if (fault == FAULT_HANGS) {
		struct wire_request *copy = copy_of(request, wire);
		if (is_cut() || chance_hits(&net.chance, 300))
			wire_request_free(copy);
		else
			send_late(copy, 90 * NS_PER_S);
		const int error = wait_on(request, http->shared->stall_timeout_ns);
		return give_up(request, error ? error : -ETIMEDOUT, ret_problem);
	}
	const enum silence silence = silence_of(wire);
	if (silence) {
		if (silence_applies(wire))
			send_late(copy_of(request, wire), 600 * NS_PER_S);
		silences_asked(task_process(), wire);
		/* The reply to a large body is due as a whole. An attempt with a small one has a
		 * deadline of its own (http_exchange.c, call.c). */
		const bool moves =
			silence == SILENCE_TRICKLES && request->body.bytes <= HTTP_SMALL_BODY_BYTES;
		const int error =
			wait_on(request, moves ? UINT64_MAX / 4 : http->shared->stall_timeout_ns);
		silences_left(task_process());
		return give_up(request, error ? error : -ETIMEDOUT, ret_problem);
	}
	if (fault == FAULT_LOST_AFTER || fault == FAULT_SENT_TWICE)
		apply_unheard(wire);
	if (fault == FAULT_LOST_AFTER)
		return give_up(request, -ECONNRESET, ret_problem);
	if (fault == FAULT_COMES_AGAIN)
		send_late(copy_of(request, wire), net.habits.late_most_ns);
	wire_reply_init(&reply);
	answer_by_fault(fault, wire, &reply);
	add_common_headers(&reply);
	const int status = reply.status;
	const uint64_t lag_ns = fault == FAULT_LAGS ? chance_below(&net.chance, LAG_MOST_NS) : 0;
	int error = wait_on(request, latency_ns() + lag_ns);
	if (!error)
		error = hand_out(request, &reply, ret_reply, ret_problem);
	else
		give_up(request, error, ret_problem);
	if (!error && fault != FAULT_HTML && status == 200) {
		parts_heard(wire);
		sessions_heard(wire, &reply);
		silences_answered(wire);
	}
	ret_reply->is_resent = fault == FAULT_SENT_TWICE;
	story_detail("  %s %s: %d%s%s", operation(wire), is_dynamodb(wire) ? "" : wire->path,
		status, fault ? ", " : "", fault_names[fault]);
	wire_reply_clear(&reply);
	return error;
}

int http_perform(struct http *http, const struct http_request *request,
	struct http_reply *ret_reply, struct problem *ret_problem)
{
	enum fault fault = choose_fault();
	int error = 0;
	http_reply_begin(ret_reply, request->reply_max_bytes);
	if (must_end(request))
		return give_up(request, -ECANCELED, ret_problem);
	if (fault == FAULT_REFUSED || is_cut()) {
		wait_on(request, latency_ns());
		return give_up(request, -ECONNREFUSED, ret_problem);
	}
	unsigned char *body = read_body(request, &error);
	if (!body)
		return give_up(request, error, ret_problem);
	struct wire_request *wire = wire_request_new(request->method, request->url,
		request->headers, request->n_headers, body, (size_t)request->body.bytes);
	wire->from = task_process();
	if (wire->from && !is_dynamodb(wire))
		runs_sent(task_process()->machine, wire);
	wire->number = ++net.numbers;
	wire->sent_ns = world_now_ns();
	if (is_part(wire))
		parts_sent(wire);
	if (is_refused_part(wire))
		fault = FAULT_SERVER_ERROR;
	error = wait_on(request, latency_ns());
	if (!error && !fault)
		error = await_rival(request, wire);
	if (error) {
		/* It was on its way, so it may still arrive. */
		if (chance_hits(&net.chance, 500))
			send_late(copy_of(request, wire), 5 * NS_PER_S);
		give_up(request, error, ret_problem);
	} else if (fault == FAULT_LOST_BEFORE) {
		error = give_up(request, -ECONNRESET, ret_problem);
	} else {
		error = exchange(http, request, wire, fault, ret_reply, ret_problem);
	}
	ret_reply->wire_ns = world_now_ns() - wire->sent_ns;
	if (error)
		story_detail("  %s %s: no answer%s%s", operation(wire),
			is_dynamodb(wire) ? "" : wire->path, fault ? ", " : "", fault_names[fault]);
	wire_request_free(wire);
	return error;
}
