/* s3://BUCKET[/KEY]; BUCKET may be the ARN of an access point. Pure. Source: "General purpose
 * bucket naming rules", "Naming Amazon S3 objects" and "Referencing access points" (Amazon S3 User
 * Guide). */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

#define BUCKET_MAX 63
#define ARN_MAX    255

struct s3_url {
	char bucket[ARN_MAX + 1];
	const char *key; /* what follows the '/', byte for byte, "" if nothing; borrowed from the
			    argument */
};

/* Whether s begins as an S3 URL, right or wrong. */
bool url_is_s3(const char *s);
/* 0, or -EINVAL with a sentence that quotes s. */
int url_parse(const char *s, struct s3_url *ret, struct problem *ret_problem);
