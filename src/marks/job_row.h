/* The rows of jobs. Each job has one for each machine, with the session and the result of its last
 * run (docs/protocol.md, "The rows of jobs"). Nothing is decided by these rows. They are for people
 * who monitor many hosts. */
#pragma once
#include "base/random.h"
#include "base/text.h"
#include "store/store.h"

#define JOB_HOST_MAX      255
#define JOB_NAME_MAX      700
#define JOB_MACHINE_CHARS 12
#define JOB_TARGET_MAX    1400
#define JOB_ERROR_MAX     600

/* "HOST/MACHINE/JOB": the sort key of a row. */
struct job_key {
	char text[JOB_HOST_MAX + 1 + JOB_MACHINE_CHARS + 1 + JOB_NAME_MAX + 1];
	bool only_updates; /* runs write the row only if it is there; job_key_make() sets false */
};
/* A job on a machine. The names of the host and the job may be any bytes. */
struct job_name {
	const char *host, *job;
	const char *machine; /* machine_id() (lease/machine.h) */
};
/* Makes the key. Bytes that are not text are escaped. A name that is too long is cut in its middle,
 * and a hash of the whole name follows it. Of the machine's id, the key has the beginning. */
void job_key_make(const struct job_name *name, struct job_key *ret);

/* A run that begins. Both strings are borrowed. */
struct job_begin {
	const char *session;
	const char *target; /* "s3://BUCKET/PREFIX", escaped for a terminal */
};
/* Records that a run has begun. One write, and another one to make the row if there is none. If the
 * key only updates, and there is no row, the outcome is REFUSED. */
enum outcome job_row_begin(struct store_conn *conn, const struct job_key *key,
	const struct job_begin *begin, const struct call_limits *limits,
	struct problem *ret_problem);

/* The result of a run. All strings are borrowed, and escaped for a terminal. */
struct job_end {
	const char *target;   /* "s3://BUCKET/PREFIX" */
	const char *session;  /* NULL: the run has begun no session */
	const char *error;    /* the error that ended the run, or else the last error of a file; "":
				 none */
	const char *failures; /* a line for each; "": none */
	int exit;             /* an enum s3once_exit */
	bool repeats;         /* an earlier run has already uploaded the input of this run's pipe */
	/* Numbers of found, uploaded and failed files, and the bytes of the uploaded ones. */
	uint64_t found, uploaded, failed, bytes;
	/* Whether all files were found. If not, the row keeps the two values below as an earlier
	 * run has written them. */
	bool has_seen_all;
	/* The number of files that wait for a later run, and the modification time of the oldest
	 * one that waits for longer than min_age_ms: in seconds since 1970, or 0. */
	uint64_t waiting;
	int64_t waiting_since_s;
};
/* Records the result of a run, with the store's time. The time of the last success stays unless the
 * run succeeded by itself, and that of the last upload unless it has uploaded something. It is one
 * write, or two if several runs in a row have not succeeded. The row is made, and the write is
 * refused, as by job_row_begin(). */
enum outcome job_row_end(struct store_conn *conn, const struct job_key *key,
	const struct job_end *end, const struct call_limits *limits, struct problem *ret_problem);

/* A row in memory. Times are seconds of the store's time, 0 where there is none. */
struct job_row {
	struct job_key key;
	char host[JOB_HOST_MAX + 1], job[JOB_NAME_MAX + 1]; /* parts of the key */
	char machine[JOB_MACHINE_CHARS + 1];                /* likewise; "": not known */
	char version[ID_CHARS + 1];                         /* random, changes with each write */
	char target[JOB_TARGET_MAX + 1], error[JOB_ERROR_MAX + 1];
	char session[ID_CHARS + 1]; /* the session that was begun last, or "" */
	/* The session of the last run that had one and has ended, or "". */
	char ended_session[ID_CHARS + 1];
	int64_t first_s;              /* the row was made: its first run began, or ended */
	int64_t began_s;              /* beginning of `session` */
	int64_t ended_s, succeeded_s; /* end of the last run, and of the last one with exit 0 */
	int64_t failed_since_s;       /* end of the first run after that which ended otherwise */
	int64_t shipped_s;            /* end of the last run that has uploaded something */
	int exit;                     /* exit status of the last run that ended; -1: none has */
	uint64_t found, uploaded, failed, bytes, waiting; /* as in struct job_end */
	int64_t waiting_since_s;
};

/* Reads up to `max_rows` rows whose keys follow `after` (NULL: the first ones), in the order of
 * their keys. Rows whose keys are longer than job_key_make() makes them are skipped. Eventually
 * consistent. OK sets *ret_n to their number; if it is less than `max_rows`, these were the last
 * ones. */
enum outcome job_rows_read(struct store_conn *conn, const struct job_key *after, size_t max_rows,
	const struct call_limits *limits, struct job_row *ret, size_t *ret_n,
	struct problem *ret_problem);
/* Reads the row of a key consistently. ABSENT: there is none, and *ret is undefined. */
enum outcome job_row_read(struct store_conn *conn, const struct job_key *key,
	const struct call_limits *limits, struct job_row *ret, struct problem *ret_problem);
/* Adds the lines about the failures of the last run that ended, escaped. It adds nothing if nothing
 * failed. Eventually consistent. */
enum outcome job_row_failures(struct store_conn *conn, const struct job_key *key,
	const struct call_limits *limits, struct text *ret, struct problem *ret_problem);
/* Removes a row that has not changed since it was read. Also OK if the row is gone already.
 * REFUSED: it has changed. */
enum outcome job_row_remove(struct store_conn *conn, const struct job_row *row,
	const struct call_limits *limits, struct problem *ret_problem);
