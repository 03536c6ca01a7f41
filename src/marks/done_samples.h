/* A few of the objects that the marks of a bucket say are there. */
#pragma once
#include "marks/bucket_row.h"

#define DONE_SAMPLES 8
struct done_sample {
	char key[BUCKET_KEY_MAX + 1]; /* of the object */
	char etag[S3_ETAG_MAX + 1];
	int64_t at_s;
};
struct done_samples {
	struct done_sample list[DONE_SAMPLES];
	unsigned n;
};

/* Half of them are the marks that were changed last, since a lifecycle rule deletes the oldest
 * objects first. The other half are from anywhere among 20,000 marks that are done. None only if no
 * mark says done: all are read until the first that does. */
enum outcome done_samples_take(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, struct done_samples *ret, struct problem *ret_problem);
