/* An S3 access point's name in full: arn:PARTITION:s3:REGION:ACCOUNT:accesspoint/NAME, or with ':'
 * for '/', and s3-object-lambda for s3. Internal to endpoint.c. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

struct endpoint_arn {
	char region[64], account[64], name[64];
	bool is_lambda;
};

/* 0, or -EINVAL with a sentence that quotes s, also for what is an ARN but cannot be uploaded to:
 * S3 on Outposts, multi-region access points. */
int endpoint_arn_parse(const char *s, struct endpoint_arn *ret, struct problem *ret_problem);
