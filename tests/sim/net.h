/* The wire between simulated processes and simulated servers. It is src/http's interface: src is
 * linked with this instead of libcurl's half of that room (net.c). */
#pragma once
#include "chance.h"
#include "wire.h"
#include <stdbool.h>
#include <stdint.h>

struct machine;

/* Of 1,000 requests, how many meet what. */
struct net_faults {
	unsigned refused;     /* no connection */
	unsigned lost_before; /* the connection ends, and the server has seen nothing */
	unsigned lost_after;  /* the same, but the server has applied it */
	unsigned hangs;       /* no answer; perhaps applied, now or later */
	unsigned sent_twice; /* applied twice at once, as curl does on a connection that was gone */
	unsigned comes_again;  /* a copy is applied later, and nobody reads its answer */
	unsigned server_error; /* 500 or 503, not applied */
	unsigned error_after;  /* 500, but applied */
	unsigned throttled;    /* SlowDown, ProvisionedThroughputExceededException */
	unsigned html;         /* 200 and a page of HTML */
	unsigned lags;         /* applied at once, and answered up to 3 s later */
};
struct net_habits {
	struct net_faults faults;
	uint64_t latency_least_ns, latency_most_ns;
	uint64_t late_most_ns;   /* of a copy that comes again */
	unsigned meet_per_mille; /* rivals.h */
	bool has_proxy;          /* proxy.h */
	bool refuses_first_part; /* of an upload, always: 500 */
};

/* Answers a request at the server. */
typedef void net_server(void *arg, const struct wire_request *request, struct wire_reply *ret);
void net_begin(uint64_t seed, const struct net_habits *habits, net_server *server, void *arg);
/* From now on there are no faults. */
void net_calm(void);
/* How many requests are late copies that have not come yet. */
unsigned net_late_copies(void);
/* A machine has no network; its requests are refused, and what is under way hangs. */
void net_cut(const struct machine *machine, bool is_cut);
/* How many faults have happened. */
uint64_t net_faults_met(void);
