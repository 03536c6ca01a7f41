/* The start of a run: whether the bucket is the one that the marks are about (docs/protocol.md,
 * "The bucket is the one that the marks know"). */
#pragma once
#include "marks/bucket_row.h"
#include "upload/run.h"

/* Asks the service which bucket this is, compares that with what the marks have kept of it, and
 * sets run->space.generation. One request to S3 where the service tells a creation date. False with
 * a sentence: it is another bucket, or that could not be found out. `marks` is the caller's
 * connection. Thread of the scan, before it reads the first mark. */
bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem);

/* Remembers an object that was proven to be in the bucket. Thread-safe. */
void bucket_saw_object(struct run *run, const char *key, const char *etag);
/* The end of a run: keeps the last of them with the marks. What fails is only logged. */
void bucket_keep_last(struct run *run, struct store_conn *marks);
