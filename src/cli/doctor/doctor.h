/* What the checks of `s3once doctor` have in common. A check says what it found, in one line. */
#pragma once
#include "cli/access.h"
#include "cli/open_marks.h"
#include "cli/output.h"
#include "cli/url.h"
#include "marks/bucket_row.h"
#include "s3/s3.h"

#define DOCTOR_ATTEMPTS 3 /* of each request */

enum finding {
	FINDING_OK,
	FINDING_WARNING, /* push works, but not as well as it might */
	FINDING_FAILURE, /* push cannot work, or not safely */
};

struct doctor {
	struct output output;
	bool is_json;
	unsigned counts[3];          /* findings by kind */
	const struct access *access; /* borrowed */
	struct services services;
	struct call_limits limits; /* of each request; a signal ends it */
	uint64_t tidy_until_ns;    /* once a signal came */
	bool is_tidying;
	int signal;                   /* that ended the probes, or 0 */
	char bucket[256];             /* that was tried out, or "" */
	struct bucket_row conditions; /* which of them it honours, and what it tells of itself */
};

/* One line about `what`: printf style, a clause with the remedy where there is one; escape what
 * comes from outside. */
void doctor_find(struct doctor *doctor, enum finding finding, const char *what, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* The same of a request that did not end well. permission ("s3:PutObject") is named if that is
 * what it lacks. */
void doctor_refused(struct doctor *doctor, enum finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem);

/* Between the two a signal ends the checks, and nothing is found any more but by the clean-up. */
void doctor_begin_probes(struct doctor *doctor);
void doctor_end_probes(struct doctor *doctor);
/* Of a request that removes what was tried out: it may go on after a signal, for a few seconds, or
 * until the second one. */
struct call_limits doctor_tidy_limits(struct doctor *doctor);

/* Credentials, region, endpoints, limits of the process. */
void doctor_host(struct doctor *doctor);

/* A bucket and the keys that are tried out in it. */
struct doctor_bucket {
	struct doctor *doctor;
	struct s3 *s3;
	struct s3_conn *conn;
	char key[1200];       /* of the object sent whole */
	char parts_key[1200]; /* of the one sent in parts */
};
/* Whether it is there, what the server does with probe objects below the prefix, lifecycle rules.
 * The probe objects are removed. */
void doctor_look_at_bucket(struct doctor *doctor, const struct s3_url *url);
/* PutObject, proof, checksums and conditions; false if nothing can be put. */
bool doctor_puts(struct doctor_bucket *bucket);
/* Whether the server keeps the storage class, metadata and tags that an object is stored with. */
void doctor_settings(struct doctor_bucket *bucket);
/* The same for multipart uploads. */
void doctor_multipart(struct doctor_bucket *bucket);

/* Where marks are kept. */
void doctor_marks(struct doctor *doctor);
