/* The options by which commands find the marks, S3 and DynamoDB. */
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
extern const struct option access_checksum_options[]; /* --checksum */
extern const struct option access_options[];          /* --region, --profile, --ca-bundle,
							 --request-timeout */

/* The groups of a command that has marks and S3, and whose values have the field `access`. */
#define ACCESS_GROUPS(values)                                                                      \
	{"Marks", access_marks_options, offsetof(values, access), true},                           \
		{"Services", access_s3_options, offsetof(values, access), true},                   \
	{                                                                                          \
		NULL, access_options, offsetof(values, access), true                               \
	}

/* The options of the commands that look at the setup of a push: config and doctor. */
struct setup_options {
	struct access access;
	int json;
};
extern const struct option_group setup_groups[];
