/* A proxy between the machines and S3 that keeps answers, as long as a request does not forbid it
 * (RFC 9111). */
#pragma once
#include "wire.h"
#include <stdbool.h>

/* Forgets all answers; from now on there is such a proxy, or there is none. */
void proxy_begin(bool is_there);
/* Whether it answers the request by itself. */
bool proxy_answers(const struct wire_request *request, struct wire_reply *ret);
/* The answer of the server passes by. */
void proxy_keeps(const struct wire_request *request, const struct wire_reply *reply);
