/* A service and a connection to it: the state that the attempts of all calls share. Internal to
 * src/aws. */
#pragma once
#include "aws/call.h"
#include "aws/credentials/credentials.h"
#include "aws/endpoint.h"
#include "aws/retry.h"
#include "aws/sigv4.h"
#include "base/text.h"
#include <stdatomic.h>
#include <uv.h>

/* Limits how many requests a service gets at once. Throttling lowers the limit, and each success
 * raises it again, by additive increase and multiplicative decrease as in TCP (RFC 5681).
 * Thread-safe. */
struct pace {
	uv_mutex_t mutex;
	uv_cond_t room;
	/* Written with the mutex held, and also read without it. */
	atomic_uint cuts;            /* number of times that the limit was lowered */
	_Atomic uint64_t success_ns; /* clock_boot_ns() of the last accepted request, 0: none */
	struct {
		double limit; /* requests at once; PACE_FREE is more than a process ever has */
		unsigned in_flight;
		uint64_t cut_ns; /* time of the last cut */
	} locked;
};
#define PACE_FREE 4096

enum pace_result { PACE_ACCEPTED, PACE_THROTTLED, PACE_OTHER };
/* Waits until another request may be sent, and counts it. A call with a deadline, such as a
 * heartbeat, never waits. Returns false if the call was abandoned; then pace_leave() is not called.
 * *ret_cuts is for pace_leave(). */
bool pace_enter(struct pace *pace, const struct call_limits *limits, unsigned *ret_cuts);
/* Notes the result of a request. Among requests that were under way together, only the first
 * throttled one lowers the limit. */
void pace_leave(struct pace *pace, unsigned cuts, enum pace_result result);

struct service {
	struct service_options options;
	atomic_ulong counts[CALL_KINDS_MAX]; /* numbers of attempts that were sent, by kind */
	/* The question from the settings. Only `endpoint` has a learned region. Borrowed
	 * strings. */
	struct endpoint_question question;
	atomic_int quota; /* quota of retries: retry.h */
	struct pace pace;
	_Atomic uint64_t replies, wire_ns; /* of service_wire() */
	_Atomic int64_t clock_offset_s;    /* added to our wall clock to sign */
	/* The server's time when clock_boot_ns() was 0, in ms since 1970, is between these two
	 * (service_time_s()). NO_TIME before the first reply with a Date. */
	_Atomic int64_t server_at_boot_ms, latest_at_boot_ms;
	/* 1 + the generation of the credentials with which a request was accepted last. 0: none. */
	atomic_uint accepted_generation;
	atomic_bool reported_down; /* a warning has said that the service is down, and none since
				     then that it answers again */
	uv_mutex_t mutex;
	struct {
		struct endpoint endpoint;
		struct service_conn *idle; /* a list to borrow from, the last one used first */
	} locked;
};
#define NO_TIME INT64_MIN

/* The means of signing a request, and the texts of the last request. */
struct signer {
	struct endpoint endpoint;
	struct credentials credentials;
	struct sigv4_cache cache;
	struct text url, lines,
		authorization; /* texts of the last request; kept for their memory */
};
/* Returns an empty signer, which limits the size of its requests. */
struct signer signer_new(void);
void signer_wipe(struct signer *signer);

struct service_conn {
	struct service *service;
	struct http *http;
	struct signer signer;
	unsigned credentials_generation; /* generation of the signer's copy, if it has one */
	struct service_conn *next;       /* link in the list of idle connections */
	/* The last Date that was parsed, and its value. */
	char date[32];
	int64_t date_s;
};

/* Updates the connection's copies of the endpoint and of the credentials. Waits for credentials
 * within the limits. Returns OUTCOME_OK, SETUP, ABANDONED or LOCAL. */
enum outcome service_conn_refresh(
	struct service_conn *conn, const struct call_limits *limits, struct problem *ret_problem);

/* Remembers the server's time, which the reply to a request that was sent at sent_ns (by
 * clock_boot_ns()) has just shown. */
void service_saw_date(struct service *service, int64_t date_s, uint64_t sent_ns);

/* Signs for this region from now on and, at AWS, sends requests to its endpoint. Returns 0, or
 * -EINVAL if the service cannot be in that region. */
int service_learn_region(struct service *service, const char *region);

/* One attempt of a call as an HTTP request: address, headers, signature. */
struct call_request {
	/* The signer's lines (host, x-amz-date, …), the signature, and one that is not signed. */
	const char *headers[SIGV4_HEADERS_MAX + 2];
	size_t n_headers;
	int64_t signed_s;      /* the time it was signed at */
	uint64_t signed_ns;    /* clock_boot_ns() then */
	char payload_hash[65]; /* hash of the body, if the caller gives none */
	char date[17];         /* signed_s, as x-amz-date has it */
};

/* Fills *ret and the signer's texts with the request, signed for time_s. They are valid until the
 * next call with this signer. Returns 0, -ENOMEM, or -EINVAL if the request cannot be sent: a
 * header has a line break, or there are too many or too long ones. */
int call_request_build(
	struct signer *signer, const struct call *call, int64_t time_s, struct call_request *ret);

/* Whether the server's clock is off, by the Date of a reply that has just come: it is minutes
 * before the signing, or minutes after now. */
bool call_request_clock_is_off(const struct call_request *request, int64_t date_s);
