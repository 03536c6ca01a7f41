/* One signed request with its retries. s3_request.c and dynamodb_request.c make their
 * requests by it. */
#pragma once
#include "aws/outcome.h"
#include "aws/progress_clock.h"
#include "aws/settings.h"
#include "aws/sigv4.h"
#include "base/problem.h"
#include "http/http.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of a call. Zeroed limits let it go on until its retries are used up. */
struct call_limits {
	/* The clock_boot_ns() by which the call ends, with all retries. 0: none. */
	uint64_t deadline_ns;
	/* Returns true to end the call now, because of a stop or a lost lease. It is called from
	 * this thread, also while the call waits for its next attempt. May be NULL. */
	bool (*abandon)(void *arg);
	void *abandon_arg;
	/* The most attempts that the call makes. 0: as many as the settings say. */
	unsigned attempts;
	/* Becomes true if the call is a write, and a request before the last one may have been
	 * applied; the outcome is about the last one alone. Otherwise it is untouched. May be
	 * NULL. */
	bool *maybe_applied;
	/* While this time lasts, attempts that are throttled or cannot connect do not count. It
	 * begins with the call, or when the service last accepted any request, whichever is later.
	 * 0: all attempts count.
	 *
	 * A call that fails otherwise is repeated for no longer than this time, counted from its
	 * first failure. 0: only the number of attempts limits it. */
	uint64_t patience_ms;
	/* The time for which earlier calls for the same purpose have failed, which counts as if
	 * this call had failed for it. */
	uint64_t failed_ms;
	/* The clock to which this call reports: its wait, the failures of its attempts and, with
	 * is_progress, its answer. Only abandon(), which reads the clock, ends calls. NULL: no
	 * clock. */
	struct progress_clock *progress;
	bool is_progress;
};
extern const struct call_limits no_limits; /* all zero: they end nothing */

#define CALL_KINDS_MAX 24 /* the most operations of a service */

/* A service at an endpoint, shared by all threads: settings, learned region, clock offset, retry
 * quota, counters. */
struct service;
struct service_options {
	const struct aws_settings *settings; /* borrowed until service_free */
	struct http_shared *http;            /* borrowed until service_free */
	bool is_s3;                          /* otherwise it is DynamoDB */
	const char *bucket; /* for S3: the bucket of all calls; borrowed likewise */
	/* The names of the operations, indexed by call.kind, NULL-terminated; static. */
	const char *const *kinds;
};
/* Returns 0, -ENOMEM, or -EINVAL if the bucket cannot be reached, with a sentence. */
int service_new(
	const struct service_options *options, struct service **ret, struct problem *ret_problem);
void service_free(struct service *service);
/* Returns the name of operation i, or NULL past the end. *ret_count is the number of requests of it
 * that were sent so far. */
const char *service_kind(const struct service *service, size_t i, unsigned long *ret_count);
/* Returns the number of replies so far to requests without a large body, and the time that these
 * requests were on the wire. */
void service_wire(const struct service *service, uint64_t *ret_replies, uint64_t *ret_ns);
/* Returns the number of times that throttling has lowered the number of requests at once. */
unsigned service_cuts(const struct service *service);
/* The server's time now in seconds since 1970, by the Date of its last reply and the time elapsed
 * since then. Before the first reply it is our own wall clock.
 *
 * It is not known when the server set that Date: right before the reply came, or as soon as the
 * request was sent. service_time_s() assumes the former, and so is never later than the server's
 * time. service_latest_time_s() assumes the latter, and so is never earlier. */
int64_t service_time_s(const struct service *service);
int64_t service_latest_time_s(const struct service *service);
/* Returns how far the clock of this host is ahead of the service's, which the last reply has shown.
 * Negative: it is behind. 0: by less than CLOCK_WARN_S, or there was no reply yet. */
int64_t service_clock_ahead_s(const struct service *service);
/* Copies the region that requests are signed for, which was configured or learned. */
void service_region(struct service *service, char *ret, size_t size);

/* A connection to a service, used by one thread at a time: the HTTP handle, the signing cache and
 * the reply buffer. */
struct service_conn;
int service_conn_new(struct service *service, struct service_conn **ret);
void service_conn_free(struct service_conn *conn);
/* Borrows a connection for a request, or gives it back. Returns 0 or -errno. Thread-safe.
 *
 * The connection is the idle one that was used last, or a new one. So there are as many connections
 * as there were concurrent requests, however many threads there are. */
int service_conn_borrow(struct service *service, struct service_conn **ret);
void service_conn_give_back(struct service_conn *conn);

struct call {
	unsigned kind;       /* index into service_options.kinds */
	const char *subject; /* the bucket or table. The sentence begins with this name if a request
				is denied, or if the setup is wrong */
	const char *method;
	const char *path;                  /* encoded, begins with '/'; "": the bucket itself */
	const char *query;                 /* encoded and sorted, "" for none */
	const struct call_header *headers; /* all but host, x-amz-date, x-amz-content-sha256,
					      x-amz-security-token and authorization */
	size_t n_headers;
	struct http_body body;
	const char *payload_hash; /* 64 hex digits, SIGV4_UNSIGNED, or NULL: computed from
				     body.memory */
	bool is_write;
	size_t reply_max_bytes; /* 0: 1 MiB */
	struct call_limits limits;
	/* Reads the error code, the message and the region out of a reply of any status, since S3
	 * may answer 200 with an <Error>. Returns 1 if the reply has an error, 0 if it has none,
	 * and -EBADMSG if it cannot be understood. */
	int (*read_error)(const struct http_reply *reply, char ret_code[static 64],
		char ret_message[static 256], char ret_region[static 64]);
};

/* Performs the call, and repeats it as often as classify() and the limits allow. A repeated request
 * has a new date and signature. It also has a new region, endpoint or credentials if the reply to
 * the one before asked for that. Nothing else differs. *ret_problem is set if the outcome is not
 * OK.
 *
 * *ret_reply is the last reply, or is empty if there was none. The caller clears it with
 * http_reply_clear(). */
enum outcome call_perform(struct service_conn *conn, const struct call *call,
	struct http_reply *ret_reply, struct problem *ret_problem);
