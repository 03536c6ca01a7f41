#include "aws/credentials/credentials_http.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/wait_until.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_MAX_BYTES   (256U << 10)
#define ANSWERED_ATTEMPTS 3    /* at least, of a service that answers that it cannot */
#define PAUSE_MS          200U /* at most, before the second attempt; then twice that, … */

static int prepare_client(struct credentials_loader *loader)
{
	const struct http_options options = {.ca_bundle = loader->ca_bundle};
	int error = loader->shared ? 0 : http_shared_new(&options, &loader->shared);
	if (error == 0 && !loader->http)
		error = http_new(loader->shared, &loader->http);
	return error;
}

static bool is_stopped(void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

static int attempt(struct credentials_loader *loader, const struct credentials_request *request,
	bool is_again, struct http_reply *ret, struct problem *ret_problem)
{
	const struct text *body = request->body;
	const struct http_request sent = {.method = request->method,
		.url = request->url,
		.headers = request->headers,
		.n_headers = request->n_headers,
		.body = {.bytes = body ? body->len : 0, .memory = body ? body->data : NULL},
		.deadline_ns = clock_boot_ns() + request->timeout_ms * NS_PER_MS,
		.abandon = is_stopped,
		.abandon_arg = &loader->stopped,
		.reply_max_bytes = REPLY_MAX_BYTES,
		.no_proxy = request->no_proxy,
		.new_connection = is_again};
	int error = http_perform(loader->http, &sent, ret, ret_problem);
	/* Only the attempt's own time has passed. */
	return error == -ECANCELED && !is_stopped(&loader->stopped) ? -ETIMEDOUT : error;
}

/* STS says so with status 400. */
static bool is_throttled(const struct http_reply *reply)
{
	static const char *const codes[] = {
		"<Code>Throttling", "<Code>RequestLimitExceeded<", "<Code>IDPCommunicationError<"};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (reply->status == 400 && strstr(text_string(&reply->body), codes[i]))
			return true;
	return reply->status == 429;
}

static bool is_worth_another(int error, const struct http_reply *reply)
{
	if (error == 0)
		return is_throttled(reply) || reply->status >= 500;
	return error != -ECANCELED && error != -ENOMEM && error != -EINVAL && error != -EPROTO;
}

int credentials_http(struct credentials_loader *loader, const struct credentials_request *request,
	struct http_reply *ret, struct problem *ret_problem)
{
	int error = prepare_client(loader);
	if (error) {
		problem_set(ret_problem, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0;; i++) {
		error = attempt(loader, request, i > 0, ret, ret_problem);
		const unsigned most = error || request->attempts > ANSWERED_ATTEMPTS
					      ? request->attempts
					      : ANSWERED_ATTEMPTS;
		if (i + 1 >= most || !is_worth_another(error, ret))
			return error;
		const unsigned most_ms = PAUSE_MS << i;
		const uint64_t pause_ms = most_ms / 2 + random_below(most_ms / 2);
		wait_until(atomic_load(&loader->stopped),
			.deadline_ns = clock_boot_ns() + pause_ms * NS_PER_MS);
	}
}

int64_t credentials_clock_offset_s(const struct http_reply *reply)
{
	const char *date = http_reply_header(reply, "date");
	const int64_t date_s = date ? clock_parse_http_date(date) : -1;
	const int64_t offset_s = date_s - clock_wall_ns() / (int64_t)NS_PER_S;
	return date_s >= 0 && llabs(offset_s) >= CLOCK_IS_OFF_S ? offset_s : 0;
}

void credentials_reply_clear(struct http_reply *reply)
{
	text_wipe(&reply->body);
	http_reply_clear(reply);
}
