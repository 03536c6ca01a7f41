/* What the checks of `s3once doctor` share. Each finding of a check is one line. For one thread. */
#pragma once
#include "cli/commands.h"
#include "cli/options/values.h"
#include "marks/bucket_row.h"
#include "s3/s3.h"

#define DOCTOR_ATTEMPTS 3 /* of each request */

enum doctor_finding {
	DOCTOR_OK,
	DOCTOR_WARNING, /* push works, but not as well as it might */
	DOCTOR_FAILURE, /* push cannot work, or not safely */
};

struct doctor {
	struct command_frame *frame; /* borrowed, with its output, access and services */
	bool is_json;
	unsigned counts[3];        /* findings by kind */
	struct call_limits limits; /* of each request; a signal ends it */
	uint64_t tidy_until_ns;    /* when the clean-up has to end, once a signal came */
	bool is_tidying;
	char bucket[256]; /* the one that was tried out, or "" */
	/* Which conditions the bucket honours. */
	struct bucket_row conditions;
};

/* Prints one line about `what`. The format makes a clause, with the remedy where there is one.
 * Escape what comes from outside. */
void doctor_find(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for a request that failed. `permission`, such as "s3:PutObject", is named if the request
 * was denied. */
void doctor_refused(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem);

/* The limits of a request that removes probe objects. It may go on for a few seconds after a
 * signal, until the second one. */
struct call_limits doctor_tidy_limits(struct doctor *doctor);

/* A bucket and the keys that are tried out in it. Each probe has a key of its own, since a policy
 * may forbid to write to a key twice. */
#define DOCTOR_KEYS_MAX 64
struct doctor_bucket {
	struct doctor *doctor;
	struct s3 *s3;
	struct s3_conn *conn;
	char prefix[1200]; /* of all these keys */
	char keys[DOCTOR_KEYS_MAX][1300];
	unsigned n_keys; /* handed out so far */
};
/* A key that nothing was written to yet, or the one with this end. They are borrowed from the
 * bucket, and their objects are removed at the end. Thread of the checks. */
const char *doctor_key(struct doctor_bucket *bucket);
const char *doctor_key_of(struct doctor_bucket *bucket, const char *end);

/* A small object that is sent whole. */
struct doctor_probe {
	const char *key, *content;
	const struct s3_headers *headers; /* prepared, or NULL */
	/* Nothing is there yet, and If-None-Match is sent unless the server is known to refuse it:
	 * a policy may demand it. */
	bool is_new;
	struct s3_condition condition; /* otherwise */
	unsigned kinds;                /* the digests to send; 0: those that push sends */
	unsigned spoil;                /* which of the digests is made wrong */
};
/* Sends it, by any thread's connection. The sums that were sent and the object may be NULL. */
enum outcome doctor_put(struct s3_conn *conn, const struct doctor_bucket *bucket,
	const struct doctor_probe *probe, struct sums *ret_sums, struct s3_object *ret,
	struct problem *ret_problem);

/* Several writers try the same conditional write at the same moment, some rounds long. A server
 * that first looks and then writes lets more than one of them win. */
#define DOCTOR_WRITERS 8
#define DOCTOR_ROUNDS  5
struct racer {
	unsigned number; /* of the writer, from 0 */
	struct s3_conn *s3;
	struct store_conn *store;
	struct contest *contest; /* of this round, as what follows */
	bool is_ready;
	enum outcome outcome;
	struct problem problem;
};
struct race {
	struct s3 *s3;       /* whose connections the writers get, or NULL */
	struct store *store; /* likewise */
	/* Makes what a round is about, in the thread of the checks. */
	enum outcome (*prepare)(void *arg, unsigned round, struct problem *ret_problem);
	/* One writer, in a thread of its own. It calls racer_ready() right before its write. OK: it
	 * has won; REFUSED: another one has. */
	enum outcome (*write)(void *arg, struct racer *racer, struct problem *ret_problem);
	void *arg;
};
/* Waits until all writers of the round are ready. */
void racer_ready(struct racer *racer);
/* The most that won one round: 1 is right. 0 with a sentence: in some round nobody has won, so that
 * nothing is known. */
unsigned doctor_race(const struct race *race, struct problem *ret_problem);

/* Checks whether the bucket is there, what the server does with probe objects below the prefix, and
 * the lifecycle rules. The probe objects are removed. */
void doctor_look_at_bucket(struct doctor *doctor, const struct s3_url *url);
/* Checks PutObject, the proof, the checksums and the conditions. False if nothing can be put. */
bool doctor_puts(struct doctor_bucket *bucket);
/* Checks multipart uploads as doctor_puts() checks PutObject. */
void doctor_multipart(struct doctor_bucket *bucket);

/* Checks the place where marks are kept. */
void doctor_marks(struct doctor *doctor);
