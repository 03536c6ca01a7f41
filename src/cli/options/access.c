/* The options for the marks, S3 and DynamoDB. push has these tables, and so has each command that
 * examines the results of a push. src/cli/open_marks.c opens the marks and services; in a push, the
 * library does. */
#include "cli/options/access.h"

const struct option access_marks_options[] = {
	VALUE("marks", STRING, offsetof(struct access, marks), "PLACE",
		"keep the marks in dynamodb:TABLE, sqlite:PATH or local, a file of this host [S3ONCE_MARKS, or local]",
		.brief = "remember uploads in dynamodb:TABLE or sqlite:PATH"),
	{NULL},
};

const struct option access_s3_options[] = {
	VALUE("endpoint-url", STRING, offsetof(struct access, aws.endpoint_url), "URL",
		"use this S3 server [AWS_ENDPOINT_URL_S3, or AWS]",
		.brief = "use this S3 server in place of AWS"),
	{NULL},
};

static const char *const checksums[] = {
	"crc32c", "crc32", "crc64nvme", "sha1", "sha256", "md5", "auto", NULL};

const struct option access_checksum_options[] = {
	VALUE("checksum", STRING, offsetof(struct access, aws.checksum), "NAME",
		"the checksum that S3 verifies and stores: crc32c, crc32, crc64nvme, sha1, "
		"sha256, md5 (as Content-MD5) or auto, the fastest [S3ONCE_CHECKSUM, or auto]",
		.choices = checksums),
	{NULL},
};

const struct option access_options[] = {
	VALUE("region", STRING, offsetof(struct access, aws.region), "REGION",
		"use this region [AWS_REGION, or of the profile]"),
	VALUE("profile", STRING, offsetof(struct access, aws.profile), "NAME",
		"use this profile of ~/.aws/config, ~/.aws/credentials [AWS_DEFAULT_PROFILE, "
		"AWS_PROFILE, or default]",
		.brief = "use this profile of ~/.aws/config"),
	VALUE("ca-bundle", STRING, offsetof(struct access, aws.ca_bundle), "FILE",
		"trust the certificates in FILE (PEM)\n[AWS_CA_BUNDLE, or the system's]"),
	{NULL},
};

const struct option access_timeout_options[] = {
	VALUE("request-timeout", DURATION, offsetof(struct access, aws.request_timeout_ms), "DUR",
		"end a request that is not answered DUR after its body was sent [60s]", .min = 1,
		.max = 24 * 3600 * 1000),
	{NULL},
};
