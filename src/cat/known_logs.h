/* The sequence of a log's objects: the log that an object continues, and the bytes of it that other
 * objects already have. Pure, except for memory.
 *
 * A log is the content of one generation of a log file, and each object has a range of it. The name
 * says where the range begins, and its length is that of the content. If no range is missing, an
 * object begins where another one ends, or at 0.
 *
 * A run with the marks of another table does not know the pieces uploaded before, and uploads the
 * log from its beginning again. Such an object is recognised by the SHA-256 that the metadata of
 * each piece has: it has the same bytes at the same place of the log. */
#pragma once
#include "s3/s3.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LENGTH_UNKNOWN UINT64_MAX

/* The part of its log that an object has. */
struct log_range {
	uint64_t start, end;         /* end may be LENGTH_UNKNOWN */
	char id[S3_CONTENT_MAX + 1]; /* the SHA-256 of these bytes in hex digits; "": not known */
	char table[S3_ID_MAX + 1];   /* id of the marks of the run that has uploaded it */
};

/* The ranges follow each other without a gap. The object of each was printed, or comes before the
 * first that is. */
struct known_log {
	uint64_t start, end;       /* end may be LENGTH_UNKNOWN */
	char table[S3_ID_MAX + 1]; /* that of the last range */
	struct log_range *ranges;  /* owned */
	size_t n;
};
/* The recently met logs, the latest first: programs may write several logs of a family at once.
 * Zero it to start. */
#define KNOWN_LOGS_MAX 8
struct known_logs {
	struct known_log logs[KNOWN_LOGS_MAX];
	size_t n;
};
void known_logs_clear(struct known_logs *known);

/* Returns the log that ends at `start`, and so is continued by an object that begins there. It may
 * also be the latest log, if its end is unknown. NULL: there is none, as for 0. */
struct known_log *known_logs_find_continued(struct known_logs *known, uint64_t start);
/* Adds a range after the last one of the log, or begins a new log with it if `log` is NULL. The
 * log moves to the front, so all pointers to logs become invalid, even after -ENOMEM. Returns 0 or
 * -ENOMEM. */
int known_logs_add(struct known_logs *known, struct known_log *log, const struct log_range *range);

/* Whether an object may repeat bytes of this log, which only its content can show. */
bool known_log_may_repeat(const struct known_log *log, const struct log_range *object);
