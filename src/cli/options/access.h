/* The options that every command shares: where the marks are and how to reach the services. */
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
extern const struct option access_dynamodb_options[]; /* --dynamodb-endpoint-url */
extern const struct option access_options[];          /* all others */

/* Those of a command that has marks and S3: "Marks", and "Services" in three. */
#define ACCESS_GROUPS 4
void access_groups(struct access *access, struct option_group ret[static ACCESS_GROUPS]);

/* The options of the commands that look at the setup of a push: config and doctor. */
struct setup_options {
	struct access access;
	int json;
};

/* A command with these options alone: fills the groups with the fields of *options. The caller adds
 * the name and the texts. */
enum { SETUP_GROUPS = 2 + ACCESS_GROUPS };
struct command setup_command(
	struct option_group groups[static SETUP_GROUPS], struct setup_options *options);
