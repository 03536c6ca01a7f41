#include "cli/doctor/doctor.h"
#include "s3/s3_kept.h"
#include <string.h>

static const char content[] = "s3once doctor was here\n";

/* A setting that is tried out. Of the class, S3 asks for no least time of storage. */
struct trial {
	enum s3_kept kind;
	const char *what, *value, *permission;
};
static const struct trial trials[] = {
	{S3_KEPT_CLASS, "storage class", "REDUCED_REDUNDANCY", "s3:PutObject"},
	{S3_KEPT_METADATA, "metadata", "doctor=was-here", "s3:PutObject"},
	{S3_KEPT_LANGUAGE, "content language", "en", "s3:PutObject"},
	{S3_KEPT_CACHE_CONTROL, "cache control", "no-cache", "s3:PutObject"},
	{S3_KEPT_TAGS, "tags", "doctor=was-here", "s3:PutObjectTagging, as --tag does"},
};

static void look_at_kept(
	struct doctor_bucket *bucket, const struct trial *trial, const struct s3_target *target)
{
	struct doctor *doctor = bucket->doctor;
	struct s3_kept_look look;
	struct problem problem = {0};
	const char *option = s3_kept_setting(trial->kind);
	enum outcome outcome = s3_look_at_kept(
		bucket->conn, target, S3_KEPT_BIT(trial->kind), &doctor->limits, &look, &problem);
	if (look.lacks)
		doctor_find(doctor, DOCTOR_WARNING, trial->what,
			"--%s is ignored by this server: objects are stored without", option);
	else if (!look.unknown)
		doctor_find(doctor, DOCTOR_OK, trial->what, "--%s is kept", option);
	else {
		problem_prefix(&problem, "whether --%s is kept cannot be seen", option);
		doctor_refused(doctor, DOCTOR_WARNING, trial->what,
			trial->kind == S3_KEPT_TAGS ? "s3:GetObjectTagging" : "s3:GetObject",
			outcome, &problem);
	}
}

/* A server that refuses a setting does not ignore it, and push says so. */
static bool is_refusal(enum outcome outcome)
{
	return outcome == OUTCOME_SETTING || outcome == OUTCOME_INVALID ||
	       outcome == OUTCOME_UNSUPPORTED;
}

static void try_out(
	struct doctor_bucket *bucket, const struct trial *trial, const struct s3_target *target)
{
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	struct sums sums;
	struct s3_object object;
	const struct doctor_probe probe = {
		.key = target->key, .content = content, .headers = target->headers, .is_new = true};
	enum outcome outcome = doctor_put(bucket->conn, bucket, &probe, &sums, &object, &problem);
	if (outcome == OUTCOME_OK)
		look_at_kept(bucket, trial, target);
	else if (is_refusal(outcome))
		doctor_find(doctor, DOCTOR_OK, trial->what,
			"--%s %s is refused by this server, not ignored",
			s3_kept_setting(trial->kind), trial->value);
	else
		doctor_refused(
			doctor, DOCTOR_WARNING, trial->what, trial->permission, outcome, &problem);
}

void doctor_settings(struct doctor_bucket *bucket)
{
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		const struct trial *trial = &trials[i];
		struct s3_headers *headers = NULL;
		struct problem problem = {0};
		int error = s3_headers_new(&headers);
		if (!error)
			error = s3_headers_set(
				headers, s3_kept_setting(trial->kind), trial->value, &problem);
		if (!error)
			error = s3_headers_prepare(headers, &problem);
		const struct s3_target target = {.key = doctor_key(bucket), .headers = headers};
		if (error)
			doctor_find(bucket->doctor, DOCTOR_WARNING, trial->what, "out of memory");
		else
			try_out(bucket, trial, &target);
		s3_headers_free(headers);
	}
}
