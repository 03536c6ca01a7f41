/* Reads s3://BUCKET[/KEY], where BUCKET may be the ARN of an access point. The sources are "General
 * purpose bucket naming rules", "Naming Amazon S3 objects" and "Referencing access points" (Amazon
 * S3 User Guide). */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

#define BUCKET_MAX 63
#define ARN_MAX    255

struct s3_url {
	char bucket[ARN_MAX + 1];
	/* What follows the '/', byte for byte, or "". It is borrowed from the argument. */
	const char *key;
};

/* Whether s begins with s3:, valid or not. */
bool url_is_s3(const char *s);
/* 0, or -EINVAL with a sentence that quotes s. */
int url_parse(const char *s, struct s3_url *ret, struct problem *ret_problem);
