#include "aws/settings.h"
#include "base/clock.h"
#include "base/quote.h"
#include "cli/doctor/doctor.h"
#include <string.h>
#include <sys/resource.h>

#define SOON_S            (15 * 60)
#define REQUESTS_MANY     256 /* what a run may well find worth while */
#define FILES_OF_REQUESTS 3   /* connections to S3 and DynamoDB, and the file that is read */
#define FILES_OF_PROGRAM  100 /* directories of the scan, marks, libraries, with room */

static void check_credentials(struct doctor *doctor)
{
	struct credentials credentials = {0};
	struct problem problem = {0};
	unsigned generation;
	char until[21] = "they do not expire";
	if (credentials_get(doctor->services.aws->credentials, NULL, &credentials, &generation,
		    &problem) < 0) {
		doctor_find(doctor, DOCTOR_FAILURE, "credentials", "%s", problem.text);
		return;
	}
	int64_t left_s = credentials.expires_s - clock_wall_ns() / (int64_t)NS_PER_S;
	bool is_short = credentials.expires_s && left_s < SOON_S;
	if (credentials.expires_s)
		clock_format_iso(credentials.expires_s, until);
	doctor_find(doctor, is_short ? DOCTOR_WARNING : DOCTOR_OK, "credentials", "from %s, %s%s%s",
		credentials.from, credentials.expires_s ? "until " : "", until,
		is_short ? ": less than 15 minutes, check that they are renewed" : "");
	credentials_wipe(&credentials);
}

static const char *from_of(const struct aws_settings *aws, const char *name)
{
	for (size_t i = 0; i < aws->found.n; i++)
		if (strcmp(aws->found.rows[i].name, name) == 0)
			return aws->found.rows[i].from;
	return "default";
}

static void check_region(struct doctor *doctor)
{
	const struct aws_settings *aws = doctor->services.aws;
	if (aws->region_is_default && (aws->s3_is_aws || aws->dynamodb_is_aws))
		doctor_find(doctor, DOCTOR_WARNING, "region",
			"none is set, %s is assumed: set AWS_REGION, or region of the profile",
			aws->region);
	else
		doctor_find(doctor, DOCTOR_OK, "region", "%s (%s)", aws->region,
			quote(from_of(aws, "region")).text);
}

static void check_endpoint(
	struct doctor *doctor, const char *what, const char *row, const char *url)
{
	const char *from = from_of(doctor->services.aws, row);
	if (strncmp(url, "https:", 6) == 0)
		doctor_find(doctor, DOCTOR_OK, what, "%s (%s)", quote(url).text, quote(from).text);
	else
		doctor_find(doctor, DOCTOR_WARNING, what,
			"%s (%s) is not encrypted: use https where others may listen",
			quote(url).text, quote(from).text);
}

static void check_descriptors(struct doctor *doctor)
{
	const unsigned long need = REQUESTS_MANY * FILES_OF_REQUESTS + FILES_OF_PROGRAM;
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= need)
		doctor_find(doctor, DOCTOR_OK, "file descriptors", "%llu",
			(unsigned long long)limit.rlim_cur);
	else
		doctor_find(doctor, DOCTOR_WARNING, "file descriptors",
			"%llu are too few for %d requests at once, push will send fewer: raise "
			"the limit (ulimit -Hn) to %lu",
			(unsigned long long)limit.rlim_cur, REQUESTS_MANY, need);
}

void doctor_host(struct doctor *doctor)
{
	const struct aws_settings *aws = doctor->services.aws;
	const char *marks = access_marks(doctor->access);
	check_credentials(doctor);
	check_region(doctor);
	check_endpoint(doctor, "S3 endpoint", "s3_endpoint", aws->s3_endpoint);
	if (marks && strncmp(marks, "dynamodb:", 9) == 0)
		check_endpoint(
			doctor, "DynamoDB endpoint", "dynamodb_endpoint", aws->dynamodb_endpoint);
	check_descriptors(doctor);
}
