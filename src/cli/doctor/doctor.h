/* What the checks of `s3once doctor` share. Each finding of a check is one line. For one thread. */
#pragma once
#include "cli/open_marks.h"
#include "cli/options/access.h"
#include "cli/options/url.h"
#include "cli/output.h"
#include "marks/bucket_row.h"
#include "s3/s3.h"

#define DOCTOR_ATTEMPTS 3 /* of each request */

enum doctor_finding {
	DOCTOR_OK,
	DOCTOR_WARNING, /* push works, but not as well as it might */
	DOCTOR_FAILURE, /* push cannot work, or not safely */
};

struct doctor {
	struct output output;
	bool is_json;
	unsigned counts[3];          /* findings by kind */
	const struct access *access; /* borrowed */
	struct services services;
	struct call_limits limits; /* of each request; a signal ends it */
	uint64_t tidy_until_ns;    /* when the clean-up has to end, once a signal came */
	bool is_tidying;
	int signal;       /* the one that ended the probes, or 0 */
	char bucket[256]; /* the one that was tried out, or "" */
	/* Which conditions the bucket honours, and what the service shows of it. */
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

/* Between these two, a signal ends the checks. After it only the clean-up prints findings. */
void doctor_begin_probes(struct doctor *doctor);
void doctor_end_probes(struct doctor *doctor);
/* The limits of a request that removes probe objects. It may go on for a few seconds after a
 * signal, until the second one. */
struct call_limits doctor_tidy_limits(struct doctor *doctor);

/* Checks the credentials, the region, the endpoints and the limits of the process. */
void doctor_host(struct doctor *doctor);

/* A bucket and the keys that are tried out in it. */
struct doctor_bucket {
	struct doctor *doctor;
	struct s3 *s3;
	struct s3_conn *conn;
	char key[1200];       /* of the object sent whole */
	char parts_key[1200]; /* of the one sent in parts */
};
/* Checks whether the bucket is there, what the server does with probe objects below the prefix, and
 * the lifecycle rules. The probe objects are removed. */
void doctor_look_at_bucket(struct doctor *doctor, const struct s3_url *url);
/* Checks PutObject, the proof, the checksums and the conditions. False if nothing can be put. */
bool doctor_puts(struct doctor_bucket *bucket);
/* Checks whether the server keeps the storage class, metadata and tags that an object is stored
 * with. */
void doctor_settings(struct doctor_bucket *bucket);
/* Checks multipart uploads as doctor_puts() checks PutObject. */
void doctor_multipart(struct doctor_bucket *bucket);

/* Checks the place where marks are kept. */
void doctor_marks(struct doctor *doctor);
