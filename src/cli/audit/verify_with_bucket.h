/* `s3once verify` of a bucket: what the marks say, compared with what the bucket has. */
#pragma once
#include "cli/audit/audit_setup.h"
#include "cli/audit/verify_view.h"

/* All pointers are borrowed. */
struct verify_with_bucket {
	const struct audit_setup *setup;
	const struct s3_url *url;
	struct verify *verify;    /* a subset of so many bytes gets its bounds here */
	struct verify_view *view; /* if one key alone is meant, its prefix becomes that key */
};
/* Compares what is below the prefix of `verify`, or the key of the URL alone if that has a mark, as
 * in `status`. As verify_run(); an outcome other than OK also if the bucket is not the one that the
 * marks know. */
enum outcome verify_with_bucket(const struct verify_with_bucket *wanted, struct verify_end *ret,
	struct problem *ret_problem);
