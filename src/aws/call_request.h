/* One attempt of a call as an HTTP request: address, headers, signature. Internal to call.c. */
#pragma once
#include "aws/service.h"

struct call_request {
	const char *headers[SIGV4_HEADERS_MAX + 1]; /* lines in conn->lines and ->authorization */
	size_t n_headers;
	int64_t signed_s;      /* the time it was signed at */
	uint64_t signed_ns;    /* clock_boot_ns() then */
	char payload_hash[65]; /* if it had to be computed */
	char date[17];         /* signed_s, as x-amz-date has it */
};

/* Fills *ret and conn's texts with the request, signed for now; they are valid until the next call
 * with this conn. Returns 0, -ENOMEM, or -EINVAL if something in it cannot be sent (a header with a
 * line break, too many of them, too long). */
int call_request_build(
	struct service_conn *conn, const struct call *call, struct call_request *ret);

/* Whether the Date of a reply that came just now is minutes away from any time since the signing.
 */
bool call_request_clock_is_off(const struct call_request *request, int64_t date_s);
