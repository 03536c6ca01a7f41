/* The start of a run: whether the bucket is the one that the marks are about (docs/protocol.md,
 * "The bucket is the one that the marks know"). */
#pragma once
#include "marks/bucket_row.h"
#include "upload/run.h"

/* Asks the service which bucket this is, compares that with what the marks have kept of it, and
 * sets run->space.generation, run->bucket, and run->doubt if that shows nothing. One request to S3
 * where the service shows a creation date. False with a sentence: it is another bucket, or that
 * could not be found out. `marks` is the caller's connection. Thread of the scan, before it reads
 * the first mark. */
bool bucket_check(struct run *run, struct store_conn *marks, struct problem *ret_problem);
