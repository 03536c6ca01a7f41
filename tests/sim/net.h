/* The network between simulated processes and simulated servers. net.c implements the interface of
 * src/http: src is linked with it instead of the half of that room that uses libcurl. */
#pragma once
#include "chance.h"
#include "wire.h"
#include <stdbool.h>
#include <stdint.h>

struct machine;

/* The number of requests in 1,000 that have each fault. */
struct net_faults {
	unsigned refused;      /* no connection */
	unsigned lost_before;  /* the connection ends, and the server has seen nothing */
	unsigned lost_after;   /* the connection ends after the server has applied the request */
	unsigned hangs;        /* no reply; perhaps applied, now or later */
	unsigned sent_twice;   /* applied twice at once: curl resends on a new connection */
	unsigned comes_again;  /* a copy is applied later, and its reply is lost */
	unsigned server_error; /* 500 or 503, not applied */
	unsigned error_after;  /* 500, but applied */
	unsigned throttled;    /* SlowDown, ProvisionedThroughputExceededException */
	unsigned html;         /* status 200 and a page of HTML */
	unsigned lags;         /* applied at once, and answered up to 3 s later */
};
struct net_habits {
	struct net_faults faults;
	uint64_t latency_least_ns, latency_most_ns;
	uint64_t late_most_ns;   /* the longest delay of a copy that arrives later */
	unsigned meet_per_mille; /* rivals.h */
	bool has_proxy;          /* proxy.h */
	bool refuses_first_part; /* the first part of each upload always fails with 500 */
};

/* Answers a request, in place of the server. */
typedef void net_server(void *arg, const struct wire_request *request, struct wire_reply *ret);
void net_begin(uint64_t seed, const struct net_habits *habits, net_server *server, void *arg);
/* Ends all faults. */
void net_calm(void);
/* Returns the number of late copies that have not arrived yet. */
unsigned net_late_copies(void);
/* Cuts a machine off the network, or reconnects it. Its requests are refused, and those under way
 * hang. */
void net_cut(const struct machine *machine, bool is_cut);
/* Returns the number of faults so far. */
uint64_t net_faults_met(void);
