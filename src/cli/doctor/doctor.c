/* `s3once doctor`: whether everything is in order for push, and what the server really does. */
#include "cli/doctor/doctor.h"
#include "base/clock.h"
#include "base/quote.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/signals.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 3
#define TIDY_NS  (5 * NS_PER_S)

struct doctor_options {
	struct access access;
	int json;
};

static const struct option output_options[] = {
	{.name = "json",
		.type = OPTION_FLAG,
		.offset = offsetof(struct doctor_options, json),
		.help = "one finding a line on standard output, as JSON"},
	{.name = "help", .letter = 'h', .type = OPTION_HELP, .help = "print this and exit"},
	{NULL},
};

enum { GROUPS = 5 };

static struct command doctor_command(
	struct option_group groups[static GROUPS], struct doctor_options *options)
{
	struct access *access = &options->access;
	const struct option_group filled[GROUPS] = {
		{"Marks", access_marks_options, access},
		{"Services", access_s3_options, access},
		{NULL, access_options, access},
		{NULL, access_checksum_options, access},
		{"Output", output_options, options},
	};
	memcpy(groups, filled, sizeof filled);
	return (struct command){
		.name = "doctor",
		.operands = "[s3://BUCKET[/PREFIX]]",
		.about =
			"Tries out what push needs and says what it finds, line by line: credentials,\n"
			"endpoints, clock, marks; of a bucket also which checks the server really makes,\n"
			"with two probe objects below PREFIX that it removes.\n",
		.groups = groups,
		.n_groups = GROUPS,
		.examples =
			"  s3once doctor\n"
			"  s3once doctor --marks dynamodb:s3once s3://my-bucket/photos\n"
			"\n"
			"Exit codes: 0 push can work; 1 it cannot, or standard output is broken;\n"
			"2 usage. More: man s3once-doctor\n",
	};
}

static const char *const names[] = {
	[FINDING_OK] = "ok", [FINDING_WARNING] = "warning", [FINDING_FAILURE] = "failure"};

static void tell_json(
	struct doctor *doctor, enum finding finding, const char *what, const char *text)
{
	json_t *object = json_event("finding");
	json_object_set_new(object, "finding", json_string(names[finding]));
	json_object_set_new(object, "check", json_string(what));
	json_set_bytes(object, "text", text);
	char *line = json_line(object);
	output_result(&doctor->output, line ? line : "");
	free(line);
}

void doctor_find(
	struct doctor *doctor, enum finding finding, const char *what, const char *format, ...)
{
	struct text text = TEXT(8192), line = TEXT(8192);
	va_list ap;
	if (signals_came() && !doctor->is_tidying)
		return;
	va_start(ap, format);
	text_addfv(&text, format, ap);
	va_end(ap);
	doctor->counts[finding]++;
	text_addf(&line, "%-8s %-21s %s", names[finding], what, text_string(&text));
	if (doctor->is_json)
		tell_json(doctor, finding, what, text_string(&text));
	else
		output_result(&doctor->output, text_string(&line));
	text_clear(&text);
	text_clear(&line);
}

void doctor_refused(struct doctor *doctor, enum finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	if (outcome == OUTCOME_DENIED)
		doctor_find(doctor, finding, what, "these credentials need %s: %s", permission,
			sentence);
	else
		doctor_find(doctor, finding, what, "%s", sentence);
}

static bool ends_checks(void *doctor)
{
	return signals_came() > 0;
}

static bool ends_tidying(void *arg)
{
	struct doctor *doctor = arg;
	const unsigned came = signals_came();
	const uint64_t now = clock_boot_ns();
	if (came && !doctor->tidy_until_ns)
		doctor->tidy_until_ns = now + TIDY_NS;
	return came > 1 || (came && now >= doctor->tidy_until_ns);
}

struct call_limits doctor_tidy_limits(struct doctor *doctor)
{
	return (struct call_limits){
		.attempts = ATTEMPTS, .abandon = ends_tidying, .abandon_arg = doctor};
}

void doctor_begin_probes(struct doctor *doctor)
{
	signals_count("s3once: stopping; the probes are removed first (a second signal ends it)\n");
}

void doctor_end_probes(struct doctor *doctor)
{
	doctor->signal = signals_restore();
}

static int examine(const struct doctor_options *options, const struct s3_url *url)
{
	struct doctor doctor = {.is_json = options->json,
		.access = &options->access,
		.limits = {.attempts = ATTEMPTS, .abandon = ends_checks}};
	struct problem problem = {0};
	output_init(&doctor.output);
	if (services_open(&options->access, &doctor.services, &problem) < 0) {
		doctor_find(&doctor, FINDING_FAILURE, "configuration", "%s", problem.text);
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
	return is_told && !doctor.counts[FINDING_FAILURE] ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
}

int doctor_main(int argc, char **argv)
{
	struct doctor_options options = {0};
	struct option_group groups[GROUPS];
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
