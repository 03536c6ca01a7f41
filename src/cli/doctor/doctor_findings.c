/* What a check found is one line, and what it tried out is removed even after a signal. */
#include "base/clock.h"
#include "base/text.h"
#include "cli/doctor/doctor.h"
#include "cli/json.h"
#include "cli/signals.h"
#include <stdarg.h>

#define TIDY_NS (5 * NS_PER_S)

static const char *const names[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_FAILURE] = "failure"};

static void tell_json(
	struct doctor *doctor, enum doctor_finding finding, const char *what, const char *text)
{
	json_t *object = json_event("finding");
	json_object_set_new(object, "finding", json_string(names[finding]));
	json_object_set_new(object, "check", json_string(what));
	json_set_bytes(object, "text", text);
	json_print(&doctor->output, object);
}

void doctor_find(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *format, ...)
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

void doctor_refused(struct doctor *doctor, enum doctor_finding finding, const char *what,
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
		.attempts = DOCTOR_ATTEMPTS, .abandon = ends_tidying, .abandon_arg = doctor};
}

void doctor_begin_probes(struct doctor *doctor)
{
	signals_count("s3once: stopping; the probes are removed first (a second signal ends it)\n");
}

void doctor_end_probes(struct doctor *doctor)
{
	doctor->signal = signals_restore();
}
