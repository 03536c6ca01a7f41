/* The checks of a bucket by `s3once doctor`: whether it is there, the clock, the names of objects,
 * the settings that objects are stored with, and the lifecycle rules. The checks of PutObject and
 * of multipart uploads are in doctor_uploads.c. This file chooses the prefix of all probe objects,
 * and removes them at the end. */
#include "base/clock.h"
#include "base/must_have.h"
#include "base/random.h"
#include "cli/doctor/doctor.h"
#include "cli/signals.h"
#include "marks/judge_object.h"
#include "s3/s3.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UPLOADS_MAX 64 /* more than the writers of a race have open at once, with all retries */

/* Checks whether the bucket exists. Returns false if the other checks are useless. If the HEAD is
 * denied, the bucket may still exist, and the checks continue: push needs no permission for this
 * HEAD. */
static bool check_reachable(struct doctor_bucket *bucket, const char *name)
{
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	const enum outcome outcome = s3_look_for_bucket(bucket->conn, &doctor->limits, &problem);
	char region[64];
	service_region(s3_service(bucket->s3), region, sizeof region);
	if (outcome == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_OK, "bucket", "%s is there, in %s", quote(name).text,
			quote(region).text);
	else if (outcome == OUTCOME_DENIED)
		doctor_report(doctor, DOCTOR_OK, "bucket",
			"whether %s is there cannot be seen without s3:ListBucket, which push does "
			"not need",
			quote(name).text);
	else if (outcome == OUTCOME_ABSENT)
		doctor_report(doctor, DOCTOR_FAILURE, "bucket",
			"there is no bucket %s: create it, or check its name and the endpoint",
			quote(name).text);
	else
		doctor_report_error(
			doctor, DOCTOR_FAILURE, "bucket", "s3:ListBucket", outcome, &problem);
	return outcome == OUTCOME_OK || outcome == OUTCOME_DENIED;
}

/* Compares this host's clock with the server's clock in its reply to check_reachable(). */
static void check_clock(struct doctor_bucket *bucket)
{
	const long long ahead_s = service_clock_ahead_s(s3_service(bucket->s3));
	if (!ahead_s)
		doctor_report(bucket->doctor, DOCTOR_OK, "clock", "as the server's");
	else
		doctor_report(bucket->doctor, DOCTOR_WARNING, "clock",
			"%lld s %s the server's, by which requests are signed; set this host's",
			llabs(ahead_s), ahead_s > 0 ? "ahead of" : "behind");
}

/* Checks whether a lifecycle rule aborts unfinished uploads below the prefix. */
static void check_lifecycle(struct doctor_bucket *bucket, const char *prefix)
{
	static const char what[] = "lifecycle rule";
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	unsigned days = 0;
	enum outcome outcome =
		s3_get_abort_days(bucket->conn, prefix, &doctor->limits, &days, &problem);
	if (outcome == OUTCOME_OK && days)
		doctor_report(doctor, DOCTOR_OK, what,
			"unfinished uploads are aborted after %u days", days);
	else if (outcome == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"nothing aborts uploads that nobody finishes, and they cost as much as "
			"objects: add a rule with AbortIncompleteMultipartUpload");
	else if (outcome == OUTCOME_DENIED)
		doctor_report(doctor, DOCTOR_WARNING, what,
			"cannot be seen without s3:GetLifecycleConfiguration: have one that aborts "
			"unfinished uploads");
	else /* for example UNSUPPORTED */
		doctor_report(doctor, DOCTOR_WARNING, what,
			"this server shows none: unfinished uploads stay until they are aborted");
}

/* Ends of keys with characters that have to be encoded in a URL. A server that splits the key at
 * one of them, or decodes the key twice, stores the object under another key. */
static const char *const key_ends[] = {
	"#a", "?a", "%23a", "+a", " a", "&a=b;c", ":@,!$'()*", "\xc3\xa9"};
#define KEY_ENDS (sizeof key_ends / sizeof *key_ends)

/* Looks for the object with this key and these sums. *ret_is_lost: it is absent, or has other
 * content. If nothing can be compared (PROOF_UNKNOWN), it is not lost. */
static enum outcome look_for_probe(struct doctor_bucket *bucket, const char *key,
	const struct sums *sums, bool *ret_is_lost, struct problem *ret_problem)
{
	const struct s3_target target = {.key = key};
	struct s3_object seen = {0};
	const enum outcome o =
		s3_head_object(bucket->conn, &target, &bucket->doctor->limits, &seen, ret_problem);
	const bool is_other = o == OUTCOME_OK && proof_whole(sums, &seen, SIZE_KNOWN) == PROOF_NO;
	*ret_is_lost = o == OUTCOME_ABSENT || is_other;
	return o;
}

/* Stores two objects, the second under the key of the first with this end after it, and checks that
 * both exist. *ret_is_lost: one does not, or it took the place of the other. */
static enum outcome try_key_end(struct doctor_bucket *bucket, const char *end, bool *ret_is_lost,
	struct problem *ret_problem)
{
	char behind_prefix[64], content[1400];
	const char *first = doctor_new_key(bucket);
	snprintf(behind_prefix, sizeof behind_prefix, "%s%s", first + strlen(bucket->prefix), end);
	const char *const keys[] = {first, doctor_key_with_end(bucket, behind_prefix)};
	struct sums sums[2];
	enum outcome o = OUTCOME_OK;
	for (int i = 0; i < 2 && o == OUTCOME_OK; i++) {
		snprintf(content, sizeof content, "s3once doctor: %s\n", keys[i]);
		/* With an MD5, the etag proves the content where HEAD shows no checksum.
		 * s3_wanted_digests() omits MD5 if replies to writes have a checksum. */
		const struct doctor_probe probe = {.key = keys[i],
			.content = content,
			.is_new = true,
			.kinds = s3_wanted_digests(bucket->s3, s3_checksum(bucket->s3)) |
				 DIGEST_MD5};
		o = doctor_put(bucket->conn, bucket, &probe, &sums[i], NULL, ret_problem);
	}
	/* If-None-Match refuses a new key only if the server confuses it with an existing one. */
	*ret_is_lost = o == OUTCOME_REFUSED;
	for (int i = 0; i < 2 && o == OUTCOME_OK && !*ret_is_lost; i++)
		o = look_for_probe(bucket, keys[i], &sums[i], ret_is_lost, ret_problem);
	return *ret_is_lost ? OUTCOME_OK : o; /* a lost object is a result, not a failure */
}

/* Checks whether an object is found under the key that it was stored under. Some servers cut or
 * decode keys with characters that are special in a URL, and answer as if nothing had happened. */
static void check_names(struct doctor_bucket *bucket)
{
	static const char what[] = "names";
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	struct text lost = TEXT(500);
	enum outcome o = OUTCOME_OK;
	for (unsigned i = 0; o == OUTCOME_OK && i < KEY_ENDS; i++) {
		bool is_lost;
		o = try_key_end(bucket, key_ends[i], &is_lost, &problem);
		if (is_lost)
			text_addf(&lost, "%s'%s'", lost.len ? ", " : "", quote(key_ends[i]).text);
	}
	if (lost.len)
		doctor_report(doctor, DOCTOR_FAILURE, what,
			"objects whose keys end in %s are not found under their keys, although the "
			"server answered that it stored them, or take the place of others: files "
			"whose keys have such characters cannot be kept here",
			text_string(&lost));
	else if (o == OUTCOME_OK)
		doctor_report(doctor, DOCTOR_OK, what,
			"objects are found under their keys, also with characters to be encoded");
	else
		doctor_report_error(doctor, DOCTOR_WARNING, what,
			"s3:GetObject to find objects with unusual characters in their keys", o,
			&problem);
	text_clear(&lost);
}

static const char settings_content[] = "s3once doctor was here\n";

/* A setting that is tried out: the name of its option, the name of the check, the value, and the
 * permission as doctor_report_error() takes it. */
struct trial {
	const char *setting, *what, *value, *permission;
};
static const struct trial trials[] = {
	/* This class is tried since S3 charges no minimum storage time for it. */
	{"storage-class", "storage class", "REDUCED_REDUNDANCY", "s3:PutObject"},
	{"metadata", "metadata", "doctor=was-here", "s3:PutObject"},
	{"header", "content language", "Content-Language: en", "s3:PutObject"},
	{"header", "cache control", "Cache-Control: no-cache", "s3:PutObject"},
	{"tag", "tags", "doctor=was-here", "s3:PutObjectTagging, as --tag does"},
};

/* Reports whether the server keeps the setting of this trial, with which the object was stored. */
static void check_kept(
	struct doctor_bucket *bucket, const struct trial *trial, const struct s3_target *target)
{
	struct doctor *doctor = bucket->doctor;
	struct s3_settings_check look;
	struct problem problem = {0};
	const unsigned asked =
		s3_headers_checkable(target->headers); /* the bit of the one setting */
	const int index = ffs((int)asked) - 1;         /* of this bit, from 0 */
	const char *option = s3_setting_name((unsigned)index);
	enum outcome outcome =
		s3_check_settings(bucket->conn, target, asked, &doctor->limits, &look, &problem);
	if (look.missing)
		doctor_report(doctor, DOCTOR_WARNING, trial->what,
			"--%s is ignored by this server: objects are stored without", option);
	else if (!look.unknown)
		doctor_report(doctor, DOCTOR_OK, trial->what, "--%s is kept", option);
	else {
		problem_prefix(&problem, "whether --%s is kept cannot be seen", option);
		doctor_report_error(doctor, DOCTOR_WARNING, trial->what,
			strcmp(option, "tag") == 0 ? "s3:GetObjectTagging" : "s3:GetObject",
			outcome, &problem);
	}
}

/* Stores an object with this setting, and reports the server's reaction. A refusal is fine, since
 * push would report it. */
static void try_setting(
	struct doctor_bucket *bucket, const struct trial *trial, const struct s3_headers *headers)
{
	struct doctor *doctor = bucket->doctor;
	struct problem problem = {0};
	const char *key = doctor_new_key(bucket);
	const struct doctor_probe probe = {
		.key = key, .content = settings_content, .headers = headers, .is_new = true};
	const struct s3_target target = {.key = key, .headers = headers};
	const enum outcome outcome = doctor_put(bucket->conn, bucket, &probe, NULL, NULL, &problem);
	const bool is_refused = outcome == OUTCOME_SETTING || outcome == OUTCOME_INVALID ||
				outcome == OUTCOME_UNSUPPORTED;
	if (outcome == OUTCOME_OK)
		check_kept(bucket, trial, &target);
	else if (is_refused)
		doctor_report(doctor, DOCTOR_OK, trial->what,
			"--%s %s is refused by this server, not ignored", trial->setting,
			trial->value);
	else
		doctor_report_error(
			doctor, DOCTOR_WARNING, trial->what, trial->permission, outcome, &problem);
}

/* Checks whether the server keeps the settings of an object, such as its storage class, metadata
 * and tags, or silently ignores them. */
static void check_settings(struct doctor_bucket *bucket)
{
	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		const struct trial *trial = &trials[i];
		struct s3_headers *headers = NULL;
		struct problem problem = {0};
		/* The values of the trials are valid, so only memory can run out here. */
		if (s3_headers_new(&headers) ||
			s3_headers_set(headers, trial->setting, trial->value, &problem) ||
			s3_headers_prepare(headers, &problem))
			doctor_report(bucket->doctor, DOCTOR_WARNING, trial->what, "out of memory");
		else
			try_setting(bucket, trial, headers);
		s3_headers_free(headers);
	}
}

/* The uploads that probes have left open. The keys and ids are owned. */
struct left {
	char *keys[UPLOADS_MAX], *ids[UPLOADS_MAX];
	size_t n;
};

/* Adds an upload to the list. Returns 1 once the list is full: s3_list_uploads() then ends with
 * LOCAL, so that abort_uploads() reports that uploads may be left. */
static int note_upload(void *arg, const struct s3_upload *upload)
{
	struct left *left = arg;
	left->keys[left->n] = must_have(strdup(upload->key));
	left->ids[left->n] = must_have(strdup(upload->upload_id));
	return ++left->n == UPLOADS_MAX;
}

/* Lists and aborts all uploads below the prefix. The checks may not know the ids of them, since a
 * signal may have come before the reply to their creation. */
static void abort_uploads(struct doctor_bucket *bucket)
{
	const struct call_limits limits = doctor_tidy_limits(bucket->doctor);
	struct left left = {0};
	struct problem problem = {0};
	enum outcome outcome = s3_list_uploads(
		bucket->conn, bucket->prefix, &limits, note_upload, &left, &problem);
	for (size_t i = 0; i < left.n; i++) {
		enum outcome o =
			s3_abort_upload(bucket->conn, left.keys[i], left.ids[i], &limits, &problem);
		if (o != OUTCOME_OK && o != OUTCOME_NO_UPLOAD)
			outcome = o;
		free(left.keys[i]);
		free(left.ids[i]);
	}
	if (outcome == OUTCOME_OK)
		return;
	problem_prefix(&problem, "uploads of probes may be left, remove them");
	doctor_report_error(bucket->doctor, DOCTOR_WARNING, "clean-up",
		"s3:ListBucketMultipartUploads", outcome, &problem);
}

/* Removes the objects of all keys that were handed out. If some of them may be left, it reports the
 * reason for the first one, and returns false. */
static bool remove_probes(struct doctor_bucket *bucket)
{
	const struct call_limits limits = doctor_tidy_limits(bucket->doctor);
	struct problem problem = {0};
	/* the outcome for the first object that could not be removed */
	enum outcome failed = OUTCOME_OK;
	bucket->doctor->is_tidying = true;
	/* Without a signal, each check has ended its own uploads. */
	if (signals_came())
		abort_uploads(bucket);
	for (unsigned i = 0; i < bucket->n_keys; i++) {
		struct problem why = {0};
		const enum outcome outcome =
			s3_delete_object(bucket->conn, bucket->keys[i], &limits, &why);
		const bool may_be_left = outcome != OUTCOME_OK && outcome != OUTCOME_ABSENT;
		if (may_be_left && failed == OUTCOME_OK) {
			failed = outcome;
			problem = why;
		}
	}
	if (failed != OUTCOME_OK) {
		problem_prefix(&problem, "probe objects %s* may be left, remove them",
			escaped(bucket->prefix).text);
		doctor_report_error(bucket->doctor, DOCTOR_WARNING, "clean-up",
			"s3:DeleteObject, which push does not", failed, &problem);
	}
	bucket->doctor->is_tidying = false;
	return failed == OUTCOME_OK;
}

/* Checks that S3 itself answers, not a cache: a HEAD of the first probe succeeded before, and now
 * it is removed. */
static void check_gone(struct doctor_bucket *bucket)
{
	static const char what[] = "no cache";
	const struct s3_target target = {.key = bucket->keys[0]};
	struct s3_object object;
	struct problem problem = {0};
	const enum outcome outcome =
		s3_head_object(bucket->conn, &target, &bucket->doctor->limits, &object, &problem);
	if (outcome == OUTCOME_ABSENT)
		doctor_report(bucket->doctor, DOCTOR_OK, what,
			"an object that was removed is no longer shown");
	else if (outcome == OUTCOME_OK)
		doctor_report(bucket->doctor, DOCTOR_FAILURE, what,
			"an object that was removed is still shown, so a cache on the way answers "
			"in place of S3, and nothing proves what S3 holds: let the proxy pass "
			"requests on, or go around it (NO_PROXY, --endpoint-url)");
	else if (outcome == OUTCOME_SETUP) /* for example a cache that identifies itself */
		doctor_report_error(
			bucket->doctor, DOCTOR_FAILURE, what, "s3:GetObject", outcome, &problem);
}

/* Makes the checks of an existing bucket. After a signal, the current check and all later ones end
 * at once. */
static void try_bucket(struct doctor_bucket *bucket, const struct s3_url *url)
{
	struct doctor *doctor = bucket->doctor;
	check_clock(bucket);
	/* The following checks need objects. */
	const bool works = doctor_try_puts(bucket);
	bool is_removed = false;
	if (works) {
		check_names(bucket);
		check_settings(bucket);
		doctor_try_multipart(bucket);
	}
	/* Without `works`, nothing was stored according to the server's answers. But a signal may
	 * have come before an answer. */
	if (works || signals_came())
		is_removed = remove_probes(bucket);
	if (is_removed && !signals_came())
		check_gone(bucket);
	check_lifecycle(bucket, url->key);
	if (works && !signals_came()) {
		snprintf(doctor->bucket, sizeof doctor->bucket, "%s", url->bucket);
		conditions_note(&doctor->conditions, bucket->s3);
	}
}

void doctor_check_bucket(struct doctor *doctor, const struct s3_url *url)
{
	struct doctor_bucket bucket = {.doctor = doctor};
	struct command_frame *frame = doctor->frame;
	char id[ID_CHARS + 1];
	random_id(id);
	snprintf(bucket.prefix, sizeof bucket.prefix, "%s.s3once-doctor-%s",
		url_prefix(url->key).text, id);
	const bool is_open = frame_open_s3(frame, url->bucket);
	bucket.s3 = frame->s3;
	bucket.conn = frame->s3_conn;
	if (!is_open)
		doctor_report(doctor, DOCTOR_FAILURE, "bucket", "%s", frame->problem.text);
	else if (check_reachable(&bucket, url->bucket))
		try_bucket(&bucket, url);
}
