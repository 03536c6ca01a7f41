/* A proxy between the machines and S3 that caches replies, unless a request forbids it (RFC 9111).
 */
#pragma once
#include "wire.h"
#include <stdbool.h>

/* Forgets all replies. `is_there`: the world has such a proxy. */
void proxy_begin(bool is_there);
/* Answers the request from the cache if possible, and returns whether it did. */
bool proxy_answers(const struct wire_request *request, struct wire_reply *ret);
/* Passes the server's reply through the proxy, which may cache it. */
void proxy_keeps(const struct wire_request *request, const struct wire_reply *reply);
