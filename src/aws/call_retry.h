/* A call between its attempts. Internal to call.c. */
#pragma once
#include "aws/call.h"
#include "aws/service.h"

/* A call in progress. */
struct call_run {
	struct service_conn *conn;
	const struct call *call;
	struct http_reply *reply;
	struct problem problem;
	unsigned attempts;            /* sent so far, but for those that only corrected something */
	unsigned waits;               /* so far, as far as the next one is to be longer */
	uint64_t began_ns, waited_ns; /* the call; its last wait */
	uint64_t failed_ns;           /* when the service first answered with an error of its own */
	unsigned cost;                /* tokens the last wait took */
	bool was_abandoned;           /* the caller said so */
	bool new_connection;          /* for the next attempt */
	bool name_is_unknown;         /* in the last attempt: a slip of the pen, or no network */
	bool is_down;                 /* likewise: nobody listens there */
	bool corrected_clock, corrected_credentials, corrected_region;
	bool repeated_digest;
	bool maybe_applied;                      /* by an attempt before the last one */
	int64_t date_s;                          /* of the last reply, -1 if it has none */
	char code[64], message[256], region[64]; /* of the last reply */
};

/* Whether to try again after this verdict, which is not OK; if not, *outcome is what the call
 * returns. Waits where it must. */
bool call_goes_on(struct call_run *run, struct verdict verdict, enum outcome *outcome);
