/* The options for the marks, S3 and DynamoDB, which commands share. */
#pragma once
#include "aws/settings.h"
#include "cli/options/options.h"

struct access {
	const char *marks; /* NULL: not chosen */
	struct aws_options aws;
};

/* Groups of options for struct access. */
extern const struct option access_marks_options[];
extern const struct option access_s3_options[];       /* --endpoint-url */
extern const struct option access_options[];          /* --region, --profile, --ca-bundle */
extern const struct option access_timeout_options[];  /* --request-timeout */
extern const struct option access_checksum_options[]; /* --checksum */
