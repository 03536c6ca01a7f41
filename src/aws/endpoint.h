/* The endpoints of services. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>

/* The parts of an access point's ARN: arn:PARTITION:s3:REGION:ACCOUNT:accesspoint/NAME. The '/' may
 * be a ':', and the s3 may be s3-object-lambda (is_lambda). */
struct endpoint_arn {
	char region[64], account[64], name[64];
	bool is_lambda;
};

/* Parses an ARN. Returns 0, or -EINVAL with a sentence that quotes s. An ARN that cannot be
 * uploaded to is -EINVAL too: S3 on Outposts, or a multi-region access point. */
int endpoint_arn_parse(const char *s, struct endpoint_arn *ret, struct problem *ret_problem);

/* Whether s has only visible ASCII characters: no space, no control character. */
bool is_graphic(const char *s);

/* An endpoint: its URL, the region and name that requests are signed for, and the way in which a
 * bucket is addressed there. These functions do no I/O.
 *
 * The sources are "Amazon S3 endpoints and quotas", "Bucket naming rules", "Virtual hosting of
 * buckets" and "Referencing access points" (Amazon S3 User Guide), "Dual-stack and FIPS endpoints"
 * (AWS SDKs and Tools Reference Guide), and the rules in botocore. */
#define REGION_MAX 63
/* the longest URL of an endpoint with its bucket; a longer one is refused */
#define ENDPOINT_MAX 767

enum endpoint_style {
	STYLE_AUTO,    /* virtual host at AWS, path at a custom endpoint */
	STYLE_VIRTUAL, /* virtual host wherever the name allows it */
	STYLE_PATH,
};

/* The settings that apply to all endpoints. */
struct endpoint_terms {
	bool fips, dualstack; /* without effect on a custom endpoint */
	bool s3_dualstack;    /* instead of `dualstack`, for S3 */
	bool accelerate;      /* S3 Transfer Acceleration */
	bool keep_region;     /* an access point must be in our own region */
	bool sts_global;      /* the older regions share the one STS endpoint */
	enum endpoint_style style;
};

struct endpoint_question {
	const char *service; /* "s3", "dynamodb", "sts", or how the host of another service begins,
				such as "portal.sso" */
	const char *region;
	const char *custom; /* a URL that endpoint_parse_url() made; NULL: AWS */
	const char *bucket; /* for S3: a name, or an access point's alias or ARN; NULL: none */
	struct endpoint_terms terms;
};

struct endpoint {
	/* It has no trailing slash. The bucket is in it, as host or as path. */
	char url[ENDPOINT_MAX + 1];
	char region[REGION_MAX + 1]; /* the one that requests are signed for */
	const char *signing_name;    /* static, or the question's service */
};

/* Finds the endpoint for a question. Returns 0, or -EINVAL with a sentence: the region is invalid,
 * the bucket cannot be reached (S3 on Outposts, directory buckets, multi-region access points), or
 * the terms exclude each other. */
int endpoint_resolve(const struct endpoint_question *question, struct endpoint *ret,
	struct problem *ret_problem);

/* The partition a region belongs to: "aws", "aws-cn", "aws-us-gov", "aws-iso", … Static. */
const char *endpoint_partition(const char *region);

/* Normalises a custom endpoint. *ret has the scheme and the host in lower case, no default port, a
 * base path without trailing slash, and nothing else; the caller frees it. 0; -EINVAL with a
 * sentence; -ENOMEM. */
int endpoint_parse_url(const char *url, char **ret, struct problem *ret_problem);
