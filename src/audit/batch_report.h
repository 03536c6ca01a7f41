/* The completion report of a job of S3 Batch Operations that computed checksums (Amazon S3 User
 * Guide, "Compute checksums" and "Examples: S3 Batch Operations completion reports"). Its rows are
 * in no order and are sorted in a temporary file, so that memory does not grow with them. The files
 * need not be trusted. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

/* One task of the job. All strings are borrowed until the next call. */
struct batch_row {
	const char *key;        /* of the object */
	const char *version_id; /* "" where the report names none */
	bool has_failed;
	bool is_absent;      /* the task has failed because the object was not there */
	const char *code;    /* of a failed task; or "" */
	const char *message; /* of a failed task, for people; else the result as JSON */
};

struct batch_report;
/* Rows of other buckets, and of keys without this prefix, are left out. Both are borrowed until
 * batch_report_free. 0 or -errno with a sentence. */
int batch_report_new(const char *bucket, const char *prefix, struct batch_report **ret,
	struct problem *ret_problem);
void batch_report_free(struct batch_report *report); /* NULL is fine */

/* Adds a file of the report. It is a file of rows (CSV) or its manifest.json: then the files that
 * it names, which are beside it or in "results" there, and have to have the MD5 that it says.
 * Returns 0; -EBADMSG if a file is damaged, or another -errno; with a sentence that names the file.
 */
int batch_report_add(struct batch_report *report, const char *path, struct problem *ret_problem);
/* How many rows were kept. */
uint64_t batch_report_rows(const struct batch_report *report);
/* When the report was made, in seconds since 1970, UTC: of several the first. 0 if no manifest.json
 * says it. */
int64_t batch_report_made_s(const struct batch_report *report);

/* Once all files are added. 1 and the next row in byte order of the keys, 0 at the end, or -errno
 * with a sentence. */
int batch_report_next(
	struct batch_report *report, struct batch_row *ret, struct problem *ret_problem);
