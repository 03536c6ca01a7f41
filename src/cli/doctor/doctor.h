/* The state that the checks of `s3once doctor` share. Each finding of a check is one line. For one
 * thread. */
#pragma once
#include "cli/commands.h"
#include "cli/options/values.h"
#include "marks/bucket_row.h"
#include "s3/s3.h"
#include "store/race.h"

#define DOCTOR_ATTEMPTS 3 /* attempts of each request */

enum doctor_finding {
	DOCTOR_OK,
	DOCTOR_WARNING, /* push works, but not at its best */
	DOCTOR_FAILURE, /* push cannot work, or not safely */
};

struct doctor {
	struct command_frame *frame; /* borrowed, with its output, access and services */
	unsigned counts[3];          /* findings by enum doctor_finding */
	struct call_limits limits;   /* limits of each request of the checks; a signal ends it */
	uint64_t tidy_until_ns;      /* the clock_boot_ns() at which the clean-up has to end; 0: no
					signal was noticed yet */
	bool is_tidying;  /* the clean-up is under way, and reports even after a signal */
	char bucket[256]; /* the bucket that was tried out to the end, or "" */
	/* The conditions that `bucket` honours, as conditions_note() sets them. All other fields
	 * are zero. */
	struct bucket_row conditions;
};

/* Prints and counts a finding, which is one line about `what`. The format makes a clause that names
 * the remedy, if there is one. The caller escapes text from outside. After a signal, only the
 * clean-up prints. */
void doctor_report(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Prints and counts a finding about a request that failed. If the request was denied, the finding
 * says that "these credentials need" the permission, such as "s3:PutObject". The permission may be
 * followed by an explanation. */
void doctor_report_error(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem);

/* The limits of a request that removes probe objects. After a signal, it has a few more seconds,
 * until a second signal. */
struct call_limits doctor_tidy_limits(struct doctor *doctor);

/* A bucket and the keys that are tried out in it. Each probe has a key of its own, since a policy
 * may forbid to write to a key twice. All checks together use fewer keys than DOCTOR_KEYS_MAX,
 * which doctor_key_with_end() asserts. */
#define DOCTOR_KEYS_MAX 64
struct doctor_bucket {
	struct doctor *doctor;
	struct s3 *s3;
	struct s3_conn *conn;
	char prefix[1200]; /* prefix of all these keys */
	char keys[DOCTOR_KEYS_MAX][1300];
	unsigned n_keys; /* handed out so far */
};
/* Hands out the key of a probe: doctor_new_key() one that is chosen here, and doctor_key_with_end()
 * the prefix with this end after it. The key is borrowed from the bucket, and its object is removed
 * after the checks. Only the thread of the checks calls these. */
const char *doctor_new_key(struct doctor_bucket *bucket);
const char *doctor_key_with_end(struct doctor_bucket *bucket, const char *end);

/* A small object that is sent whole. */
struct doctor_probe {
	const char *key, *content;
	const struct s3_headers *headers; /* prepared, or NULL */
	/* The key has no object yet. Such a probe is sent with If-None-Match, since a policy may
	 * demand it, unless the server is known to refuse that header. */
	bool is_new;
	struct s3_condition condition; /* set if the probe replaces an object */
	unsigned kinds; /* the set of digests to send (DIGEST_OF()); 0: those that push sends */
	unsigned spoil; /* the set of digests that are made wrong */
};
/* Sends a probe. Any thread may call it, with a connection of its own. *ret_sums are the sums that
 * were sent, and *ret is the object as the reply shows it. Both may be NULL. */
enum outcome doctor_put(struct s3_conn *conn, const struct doctor_bucket *bucket,
	const struct doctor_probe *probe, struct sums *ret_sums, struct s3_object *ret,
	struct problem *ret_problem);

/* Checks whether the bucket exists, the server's treatment of probe objects below the prefix, and
 * the lifecycle rules. The probe objects are removed. */
void doctor_check_bucket(struct doctor *doctor, const struct s3_url *url);
/* Checks that PutObject works, that HEAD proves the stored content, that the server verifies
 * checksums, and whether it honours If-None-Match and If-Match. False if nothing can be put. */
bool doctor_try_puts(struct doctor_bucket *bucket);
/* Checks that a multipart upload works, that ListParts shows the checksum of a part, whether the
 * server honours If-None-Match at Complete, and that an upload can be aborted. */
void doctor_try_multipart(struct doctor_bucket *bucket);

/* Checks the place of the marks, and records there the results that push need not find out
 * again. */
void doctor_check_marks(struct doctor *doctor);
