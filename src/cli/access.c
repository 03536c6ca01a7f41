#include "cli/access.h"
#include <stdlib.h>

const struct option access_marks_options[] = {
	{.name = "marks",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, marks),
		.argument = "PLACE",
		.help = "where the marks are: dynamodb:TABLE, sqlite:PATH\n"
			"or local, a file of this host [local, or as\n"
			"S3ONCE_MARKS says]"},
	{NULL},
};

const struct option access_s3_options[] = {
	{.name = "endpoint-url",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, endpoint_url),
		.argument = "URL",
		.help = "S3 server [AWS, or AWS_ENDPOINT_URL_S3]"},
	{NULL},
};

static const char *const checksums[] = {
	"crc32c", "crc32", "crc64nvme", "sha1", "sha256", "md5", "auto", NULL};

const struct option access_checksum_options[] = {
	{.name = "checksum",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, checksum),
		.argument = "NAME",
		.help = "what S3 verifies and keeps: crc32c, crc32, crc64nvme,\n"
			"sha1, sha256, md5 (as Content-MD5) or auto, the\n"
			"fastest [auto, or as S3ONCE_CHECKSUM says]",
		.choices = checksums},
	{NULL},
};

const struct option access_options[] = {
	{.name = "dynamodb-endpoint-url",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, dynamodb_endpoint_url),
		.argument = "URL",
		.help = "DynamoDB server\n[AWS, or AWS_ENDPOINT_URL_DYNAMODB]"},
	{.name = "region",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, region),
		.argument = "REGION",
		.help = "[AWS_REGION, or as the profile says]"},
	{.name = "profile",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, profile),
		.argument = "NAME",
		.help = "profile of ~/.aws/config and ~/.aws/credentials\n"
			"[AWS_DEFAULT_PROFILE, AWS_PROFILE, or default]"},
	{.name = "ca-bundle",
		.type = OPTION_STRING,
		.offset = offsetof(struct access, ca_bundle),
		.argument = "FILE",
		.help = "certificates to trust, PEM\n[AWS_CA_BUNDLE, or the system's]"},
	{.name = "request-timeout",
		.type = OPTION_DURATION,
		.offset = offsetof(struct access, request_timeout_ms),
		.argument = "DUR",
		.help = "for one request, plus the time that its body takes\nat 64 KiB/s "
			"[60s; of locks a quarter of the lease]",
		.least = 1,
		.most = 24 * 3600 * 1000},
	{NULL},
};

const char *access_marks(const struct access *access)
{
	const char *chosen = access->marks ? access->marks : getenv("S3ONCE_MARKS");
	return chosen && *chosen ? chosen : NULL;
}
