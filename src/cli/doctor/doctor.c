/* `s3once doctor`: checks whether push can work, and the real behaviour of the server. The checks
 * of this host are here. The checks of the bucket are in doctor_bucket.c and doctor_uploads.c, and
 * those of the marks in doctor_marks.c. Each check reports by doctor_report(). The exit code is
 * made here. */
#include "cli/doctor/doctor.h"
#include "base/clock.h"
#include "cli/signals.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#define SOON_S        (15 * 60) /* also written in the finding about credentials */
#define REQUESTS_MANY 256       /* a number of concurrent requests that a run may well reach */
/* Descriptors of each request: connections to S3 and DynamoDB, the file and the next one. */
#define FILES_OF_REQUEST 4
#define FILES_OF_PROGRAM 100 /* more than directories, marks and libraries need */

static const struct command doctor_command = {
	.name = "doctor",
	.operands = "[s3://BUCKET[/PREFIX]]",
	.takes = {0, 1},
	.about = "Tests the setup, and prints a line for each check: credentials, endpoints,\n"
		 "clock, marks. With a bucket, also tests the real behaviour of the server, with\n"
		 "probe objects below PREFIX that it removes.\n",
	.shares = SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_CHECKSUM | SHARES_JSON,
	.examples = "  s3once doctor\n"
		    "  s3once doctor --marks dynamodb:s3once s3://my-bucket/photos\n\n"
		    "Exit codes: 0 push can work; 1 it cannot, or stdout is broken; 2 usage.\n",
};

/* Checks whether there are credentials, and their expiry. */
static void check_credentials(struct doctor *doctor)
{
	struct credentials credentials = {0};
	struct problem problem = {0};
	unsigned unused_generation;
	char until[21] = "they do not expire";
	if (credentials_get(doctor->frame->services.aws->credentials, NULL, &credentials,
		    &unused_generation, &problem) < 0) {
		doctor_report(doctor, DOCTOR_FAILURE, "credentials", "%s", problem.text);
		return;
	}
	const int64_t left_s = credentials.expires_s - clock_wall_s();
	const bool is_short = credentials.expires_s && left_s < SOON_S;
	if (credentials.expires_s) /* 0: they do not expire */
		clock_format_iso(credentials.expires_s, until);
	doctor_report(doctor, is_short ? DOCTOR_WARNING : DOCTOR_OK, "credentials",
		"from %s, %s%s%s", credentials.from, credentials.expires_s ? "until " : "", until,
		is_short ? ": less than 15 minutes, check that they are renewed" : "");
	credentials_wipe(&credentials);
}

/* Returns the source of the setting of this name, such as an option, a variable or a profile;
 * "default" if it has none. */
static const char *setting_source(const struct aws_settings *aws, const char *name)
{
	for (size_t i = 0; i < aws->found.n; i++)
		if (strcmp(aws->found.rows[i].name, name) == 0)
			return aws->found.rows[i].from;
	return "default";
}

/* Reports the URL of a service, and warns if it is not encrypted. `what` names the check, and `row`
 * is the name of the setting that has the URL. */
static void check_endpoint(
	struct doctor *doctor, const char *what, const char *row, const char *url)
{
	const char *from = setting_source(doctor->frame->services.aws, row);
	if (strncmp(url, "https:", 6) == 0)
		doctor_report(
			doctor, DOCTOR_OK, what, "%s (%s)", quote(url).text, quote(from).text);
	else
		doctor_report(doctor, DOCTOR_WARNING, what,
			"%s (%s) is not encrypted: use https where others may listen",
			quote(url).text, quote(from).text);
}

/* Checks whether this process may open as many files as a run with REQUESTS_MANY requests needs. */
static void check_descriptors(struct doctor *doctor)
{
	const unsigned long need = REQUESTS_MANY * FILES_OF_REQUEST + FILES_OF_PROGRAM;
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= need)
		doctor_report(doctor, DOCTOR_OK, "file descriptors", "%llu",
			(unsigned long long)limit.rlim_cur);
	else
		doctor_report(doctor, DOCTOR_WARNING, "file descriptors",
			"%llu are too few for %d requests at once, push will send fewer: raise "
			"the limit (ulimit -Hn) to %lu",
			(unsigned long long)limit.rlim_cur, REQUESTS_MANY, need);
}

/* Makes the checks that need no request to S3 or DynamoDB. */
static void check_host(struct doctor *doctor)
{
	const struct aws_settings *aws = doctor->frame->services.aws;
	const char *marks = doctor->frame->access.marks;
	check_credentials(doctor);
	if (aws->region_is_default && (aws->s3_is_aws || aws->dynamodb_is_aws))
		doctor_report(doctor, DOCTOR_WARNING, "region",
			"none is set, %s is assumed: set AWS_REGION, or region of the profile",
			aws->region);
	else
		doctor_report(doctor, DOCTOR_OK, "region", "%s (%s)", aws->region,
			quote(setting_source(aws, "region")).text);
	check_endpoint(doctor, "S3 endpoint", "s3_endpoint", aws->s3_endpoint);
	if (marks && strncmp(marks, "dynamodb:", 9) == 0)
		check_endpoint(
			doctor, "DynamoDB endpoint", "dynamodb_endpoint", aws->dynamodb_endpoint);
	check_descriptors(doctor);
}

/* Makes the checks of the bucket and of the marks. A signal ends them, and after it doctor_report()
 * prints only the findings of the clean-up. Returns the signal that came, or 0. */
static int check_services(struct doctor *doctor, const struct s3_url *url)
{
	signals_count("s3once: stopping; the probes are removed first (a second signal ends it)\n");
	if (url)
		doctor_check_bucket(doctor, url);
	if (!signals_came())
		doctor_check_marks(doctor);
	return signals_restore();
}

/* Whether --marks can be parsed, or was not given. Otherwise that is an error of usage, and the
 * frame has the sentence. If it can be parsed, but its place cannot be found, doctor_check_marks()
 * reports that as a finding. */
static bool can_parse_marks(struct command_frame *frame)
{
	struct marks_place place = {0};
	const char *marks = frame->access.marks;
	const int error = marks ? marks_place_parse(marks, &place, &frame->problem) : 0;
	marks_place_clear(&place);
	return error != -EINVAL;
}

int doctor_main(int argc, char **argv)
{
	struct command_frame frame = {.command = &doctor_command};
	struct s3_url url;
	int stopped_by = 0; /* the signal that came, or 0 */
	/* The code of the frame is S3ONCE_EXIT_USAGE until the checks begin. */
	if (!frame_begin(&frame, argc, argv) ||
		(frame.n_operands && url_parse(frame.operands[0], &url, &frame.problem) < 0) ||
		!can_parse_marks(&frame))
		return frame_end(&frame);
	struct doctor doctor = {.frame = &frame,
		.limits = {.attempts = DOCTOR_ATTEMPTS, .abandon = signals_abandon}};
	if (services_open(&frame.access, &frame.services, &frame.problem) < 0) {
		doctor_report(&doctor, DOCTOR_FAILURE, "configuration", "%s", frame.problem.text);
	} else {
		check_host(&doctor);
		stopped_by = check_services(&doctor, frame.n_operands ? &url : NULL);
	}
	frame.problem = (struct problem){0}; /* its sentence is a finding already */
	frame.code = stopped_by                      ? S3ONCE_EXIT_STOPPED + stopped_by
		     : doctor.counts[DOCTOR_FAILURE] ? S3ONCE_EXIT_FILES
						     : S3ONCE_EXIT_OK;
	return frame_end(&frame);
}
