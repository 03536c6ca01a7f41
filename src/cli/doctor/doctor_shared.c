/* Functions that all checks of `s3once doctor` use. doctor_report() prints a finding, which is one
 * line. doctor_put() sends a small probe object, whose key comes from doctor_new_key(). */
#include "base/clock.h"
#include "cli/doctor/doctor.h"
#include "cli/signals.h"
#include <assert.h>
#include <stdarg.h>
#include <string.h>

#define TIDY_NS (5 * NS_PER_S) /* the time for the clean-up after a signal */

static const char *const names[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_FAILURE] = "failure"};

void doctor_report(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *format, ...)
{
	struct text text = TEXT(8192);
	va_list ap;
	if (signals_came() && !doctor->is_tidying)
		return;
	va_start(ap, format);
	text_addfv(&text, format, ap);
	va_end(ap);
	doctor->counts[finding]++;
	frame_print(doctor->frame,
		json_set(json_event("finding"), BYTES("finding", names[finding]),
			BYTES("check", what), BYTES("text", text_string(&text))),
		"%-8s %-21s %s", names[finding], what, text_string(&text));
	text_clear(&text);
}

void doctor_report_error(struct doctor *doctor, enum doctor_finding finding, const char *what,
	const char *permission, enum outcome outcome, const struct problem *problem)
{
	char sentence[PROBLEM_SENTENCE_MAX];
	problem_format(problem, sentence, sizeof sentence);
	if (outcome == OUTCOME_DENIED)
		doctor_report(doctor, finding, what, "these credentials need %s: %s", permission,
			sentence);
	else
		doctor_report(doctor, finding, what, "%s", sentence);
}

/* The `abandon` of requests of the clean-up. It begins to count TIDY_NS when it first notices a
 * signal. Returns whether this time has passed, or a second signal came. */
static bool tidying_is_over(void *arg)
{
	struct doctor *doctor = arg;
	const unsigned signals = signals_came();
	const uint64_t now_ns = clock_boot_ns();
	if (!signals)
		return false;
	if (!doctor->tidy_until_ns)
		doctor->tidy_until_ns = now_ns + TIDY_NS;
	return signals > 1 || now_ns >= doctor->tidy_until_ns;
}

struct call_limits doctor_tidy_limits(struct doctor *doctor)
{
	return (struct call_limits){
		.attempts = DOCTOR_ATTEMPTS, .abandon = tidying_is_over, .abandon_arg = doctor};
}

const char *doctor_key_with_end(struct doctor_bucket *bucket, const char *end)
{
	assert(bucket->n_keys < DOCTOR_KEYS_MAX);
	char *key = bucket->keys[bucket->n_keys++];
	snprintf(key, sizeof bucket->keys[0], "%s%s", bucket->prefix, end);
	return key;
}

const char *doctor_new_key(struct doctor_bucket *bucket)
{
	char end[16];
	snprintf(end, sizeof end, "-%u", bucket->n_keys);
	return doctor_key_with_end(bucket, end);
}

/* Makes a checksum wrong: one bit of its first byte. */
static void spoil_sum(struct sums *sums, enum checksum kind)
{
	unsigned char bytes[CHECKSUM_BYTES_MAX];
	memcpy(bytes, sums_bytes(sums, kind), checksum_kinds[kind].bytes);
	bytes[0] ^= 1;
	sums_set(sums, kind, bytes);
}

enum outcome doctor_put(struct s3_conn *conn, const struct doctor_bucket *bucket,
	const struct doctor_probe *probe, struct sums *ret_sums, struct s3_object *ret,
	struct problem *ret_problem)
{
	const struct http_body body = {.bytes = strlen(probe->content), .memory = probe->content};
	const enum checksum checksum = s3_checksum(bucket->s3);
	const unsigned kinds =
		probe->kinds ? probe->kinds : s3_wanted_digests(bucket->s3, checksum);
	struct sums ignored_sums, *sums = ret_sums ? ret_sums : &ignored_sums;
	struct s3_object ignored;
	const bool refuses_header = s3_supports(bucket->s3, S3_PUT_CONDITION) == S3_NO;
	const struct s3_put wanted = {.target = {.key = probe->key, .headers = probe->headers},
		.body = &body,
		.sums = sums,
		.checksum = checksum,
		.condition = {.if_match = probe->condition.if_match,
			.if_none_match = probe->condition.if_none_match ||
					 (probe->is_new && !refuses_header)},
		/* No retries with a wrong digest, which stays wrong. */
		.limits = {.attempts = probe->spoil ? 1 : bucket->doctor->limits.attempts,
			.abandon = bucket->doctor->limits.abandon}};
	if (digest_bytes(kinds, body.memory, body.bytes, sums))
		return outcome_no_memory(ret_problem);
	for (enum checksum kind = 0; kind < CHECKSUMS; kind++)
		if (probe->spoil & sums->kinds & DIGEST_OF(kind))
			spoil_sum(sums, kind);
	return s3_put_object(conn, &wanted, ret ? ret : &ignored, ret_problem);
}
