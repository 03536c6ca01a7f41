/* `s3once doctor`: whether everything is in order for push, and what the server really does. */
#include "cli/doctor/doctor.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/options/access.h"
#include "cli/signals.h"
#include <errno.h>
#include <string.h>

static struct command doctor_command(
	struct option_group groups[static SETUP_GROUPS], struct setup_options *options)
{
	struct command command = setup_command(groups, options);
	command.name = "doctor";
	command.operands = "[s3://BUCKET[/PREFIX]]";
	command.about =
		"Tries out what push needs and says what it finds, line by line: credentials,\n"
		"endpoints, clock, marks; of a bucket also which checks the server really makes,\n"
		"with probe objects below PREFIX that it removes.\n";
	command.examples =
		"  s3once doctor\n"
		"  s3once doctor --marks dynamodb:s3once s3://my-bucket/photos\n"
		"\n"
		"Exit codes: 0 push can work; 1 it cannot, or standard output is broken;\n"
		"2 usage. More: man s3once-doctor\n";
	return command;
}

static bool ends_checks(void *doctor)
{
	return signals_came() > 0;
}

static int examine(const struct setup_options *options, const struct s3_url *url)
{
	struct doctor doctor = {.is_json = options->json,
		.access = &options->access,
		.limits = {.attempts = DOCTOR_ATTEMPTS, .abandon = ends_checks}};
	struct problem problem = {0};
	output_init(&doctor.output);
	if (services_open(&options->access, &doctor.services, &problem) < 0) {
		doctor_find(&doctor, DOCTOR_FAILURE, "configuration", "%s", problem.text);
	} else {
		doctor_host(&doctor);
		if (url)
			doctor_look_at_bucket(&doctor, url);
		if (!doctor.signal)
			doctor_marks(&doctor);
	}
	services_close(&doctor.services);
	bool is_told = output_finish(&doctor.output) == 0;
	if (doctor.signal)
		return 128 + doctor.signal;
	return is_told && !doctor.counts[DOCTOR_FAILURE] ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
}

int doctor_main(int argc, char **argv)
{
	struct setup_options options = {0};
	struct option_group groups[SETUP_GROUPS];
	struct command command = doctor_command(groups, &options);
	struct problem problem = {0};
	struct s3_url url;
	struct marks_place place = {0};
	int n = options_parse(&command, argc, argv, &problem);
	if (n == -ECANCELED) {
		options_help(&command, stdout);
		return S3ONCE_EXIT_OK;
	}
	if (n > 1)
		problem_set(
			&problem, "'%s': one s3://BUCKET[/PREFIX] at a time", quote(argv[1]).text);
	if (n < 0 || n > 1 || (n == 1 && url_parse(argv[0], &url, &problem) < 0))
		return command_fail("doctor", S3ONCE_EXIT_USAGE, &problem);
	const char *spec = access_marks(&options.access);
	const int r = spec ? marks_place_parse(spec, &place, &problem) : 0;
	marks_place_clear(&place);
	if (r == -EINVAL)
		return command_fail("doctor", S3ONCE_EXIT_USAGE, &problem);
	return examine(&options, n ? &url : NULL);
}
