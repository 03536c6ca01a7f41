/* How many requests a service gets at once: fewer as soon as it throttles, more again while it does
 * not. Additive increase, multiplicative decrease, as TCP does it (RFC 5681). Thread-safe. */
#pragma once
#include "aws/call.h"
#include <pthread.h>

struct pace {
	pthread_mutex_t mutex;
	pthread_cond_t room;
	struct {
		double limit; /* requests at once; from PACE_FREE on: no limit */
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
/* Waits until there is room; a call with a deadline (a heartbeat) never waits. False: abandoned,
 * and there is no pace_leave. *ret_ticket is for pace_leave. */
bool pace_enter(struct pace *pace, const struct call_limits *limits, unsigned *ret_ticket);
/* The request has ended so. Of those that were under way together only the first that was throttled
 * lowers the limit. */
void pace_leave(struct pace *pace, unsigned ticket, enum pace_result result);
/* When the service last accepted a request, clock_boot_ns(); 0: never. */
uint64_t pace_success_ns(struct pace *pace);
/* How often the limit was lowered. */
unsigned pace_cuts(struct pace *pace);
