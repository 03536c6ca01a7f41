/* The endpoints of requests and the credentials that sign them: options, environment and profile,
 * resolved into one immutable struct. */
#pragma once
#include "aws/credentials/credentials.h"
#include "aws/endpoint.h"
#include "aws/settings_lookup.h"
#include "base/checksum.h"
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>

/* Initialises curl, libxml2 and jansson's hash seed, once for the process. Each run and each client
 * of locks calls it before it uses them, from any thread. Returns 0 or -errno. */
int aws_global_init(void);

/* From the command line; NULL or 0 where not given. Borrowed for the call. */
struct aws_options {
	const char *profile, *region, *endpoint_url, *dynamodb_endpoint_url, *ca_bundle;
	unsigned attempts;    /* attempts of each request, including the first. 0: AWS_MAX_ATTEMPTS,
				 the value of the profile, or 9 */
	const char *checksum; /* "auto", or of checksum_kinds[].name */
	uint64_t request_timeout_ms; /* for each attempt with a small body as a whole, and for the
					silence in other attempts (stall_timeout_ms). 0: 60 s */
};

struct aws_settings {
	const char *region;      /* never NULL; "us-east-1" if none is configured */
	bool region_is_default;  /* no option, variable or profile names one */
	const char *s3_endpoint; /* "https://s3.eu-west-1.amazonaws.com" or the custom URL, without
				    a trailing slash */
	bool s3_is_aws;          /* not a custom URL */
	const char *dynamodb_endpoint;
	bool dynamodb_is_aws;
	struct endpoint_terms terms;
	/* checksum of uploads. If none was chosen, it is checksum_default(), or MD5 if
	 * request_checksum_calculation is "when_required" */
	enum checksum checksum;
	bool checksum_is_automatic; /* not chosen by the user, so it may be omitted for a server
				       that refuses it */
	bool signs_payload;         /* the SHA-256 of bodies is signed over TLS too */
	const char *ca_bundle;      /* or NULL */
	unsigned attempts;          /* >= 1 */
	bool keeps_pace; /* throttling does not lower the number of concurrent requests */
	uint64_t request_timeout_ms;
	uint64_t stall_timeout_ms; /* the longest silence: request_timeout_ms, but at least 30 s */
	struct endpoint s3, dynamodb;          /* hold s3_endpoint and dynamodb_endpoint */
	struct credentials_options access;     /* options for loading credentials */
	struct credentials_chain *credentials; /* owned */
	struct setting_rows found;             /* each setting's value and its source */
};

/* Each setting comes from an option, from the environment, or from the profile, in this order. See
 * settings_lookup.h; settings.c lists the names. A profile that was named and does not exist is an
 * error. Returns 0, or -EINVAL or -ENOENT with a sentence. */
int aws_settings_resolve(
	const struct aws_options *options, struct aws_settings **ret, struct problem *ret_problem);
void aws_settings_free(struct aws_settings *settings);

/* Returns the first word of a mark's partition key: the AWS partition ("aws", "aws-cn"), or the
 * host:port of the custom S3 endpoint, with its base path if it has one. Borrowed from settings. */
const char *aws_settings_service(const struct aws_settings *settings);
