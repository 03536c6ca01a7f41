/* How many requests a service gets at once. There are fewer as soon as it throttles, and more again
 * while it does not, by additive increase and multiplicative decrease as in TCP (RFC 5681).
 * Thread-safe. */
#pragma once
#include "aws/call.h"
#include <uv.h>

struct pace {
	uv_mutex_t mutex;
	uv_cond_t room;
	struct {
		double limit; /* requests at once; PACE_FREE or more is no limit */
		unsigned in_flight;
		unsigned cuts;       /* how often the limit was lowered */
		uint64_t cut_ns;     /* clock_boot_ns() of the last time */
		uint64_t success_ns; /* of the last request that was accepted */
	} locked;
};
#define PACE_FREE 4096

void pace_init(struct pace *pace);
void pace_destroy(struct pace *pace);

enum pace_result { PACE_ACCEPTED, PACE_THROTTLED, PACE_OTHER };
/* Waits until there is room. A call with a deadline, such as a heartbeat, never waits. False means
 * that the call was abandoned; then pace_leave() is not called. *ret_ticket is for pace_leave(). */
bool pace_enter(struct pace *pace, const struct call_limits *limits, unsigned *ret_ticket);
/* Notes how a request has ended. Of the requests that were under way together, only the first one
 * that was throttled lowers the limit. */
void pace_leave(struct pace *pace, unsigned ticket, enum pace_result result);
/* The clock_boot_ns() at which the service last accepted a request. 0: never. */
uint64_t pace_success_ns(struct pace *pace);
/* How often the limit was lowered. */
unsigned pace_cuts(struct pace *pace);
