/* Decides the consequence of an outcome other than OK for a file: it is retried, it fails, it ends
 * the run, or it is put aside with other files that S3 refused. If a setting of the object may be
 * the reason, the sentence names it. Every step calls file_handle_outcome() for outcomes that it
 * does not handle itself. A condition that S3 refused (412) is no error: look_after_failed_write()
 * handles it. */
#include "base/clock.h"
#include "upload/file/file.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* The pause before a file is retried. It doubles with each failure. */
#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MAX_NS   (30 * NS_PER_S)

#define NOT_FOUND_RETRIES_MAX 2 /* the most retries of a file after 404 */

#define SUSPECTS_MAX_BYTES 500 /* a longer list of settings is omitted from the sentence */

/* The setting that an error code is about, by its name on the command line. A code that ends in "."
 * means all codes with this beginning. */
static const struct {
	const char *code, *setting;
} settings[] = {
	{"InvalidStorageClass", "storage-class"},
	{"InvalidEncryptionAlgorithmError", "sse"},
	{"InvalidTag", "tag"},
	{"AccessControlListNotSupported", "acl"},
	{"ObjectLockConfigurationNotFoundError", "object-lock"},
	{"KMS.", "sse-kms-key-id"},
};

/* The settings that may be the reason if the server does not name one. */
static const char *const suspects[] = {"storage-class", "sse", "sse-kms-key-id", "acl", "tag",
	"metadata", "header x-amz-website-redirect-location", "object-lock",
	"header x-amz-object-lock-legal-hold", "header x-amz-grant-read",
	"header x-amz-grant-read-acp", "header x-amz-grant-write-acp",
	"header x-amz-grant-full-control"};

/* Whether any of the suspects is set for the file's object. */
static bool has_suspects(const struct file *file)
{
	for (size_t i = 0; i < sizeof suspects / sizeof *suspects; i++)
		if (s3_headers_value(file->target.headers, suspects[i]))
			return true;
	return false;
}

/* Names in *problem the suspects that are set for the file's object, if there are any. */
static void name_suspects(const struct file *file, struct problem *problem)
{
	struct text names = TEXT(SUSPECTS_MAX_BYTES);
	unsigned n = 0;
	for (size_t i = 0; i < sizeof suspects / sizeof *suspects; i++) {
		const char *value = s3_headers_value(file->target.headers, suspects[i]);
		if (value)
			text_addf(&names, "%s--%s%s%s", n++ ? ", " : "", suspects[i],
				*value ? " " : "", value);
	}
	if (n && !names.error)
		problem_prefix(problem, "the reason may be %s%s", n > 1 ? "one of " : "",
			text_string(&names));
	text_clear(&names);
}

/* Whether the error code leaves the cause open. Ceph returns NoSuchKey for an unknown grantee. */
static bool is_vague(const struct problem *problem)
{
	return strcmp(problem->code, "NoSuchKey") == 0 ||
	       strcmp(problem->code, "InvalidArgument") == 0 ||
	       strcmp(problem->code, "InvalidRequest") == 0 ||
	       strcmp(problem->code, "NotImplemented") == 0;
}

/* The cause of a failure that may pass: the file itself, or a request to one of the services. */
enum failure_of { FAILURE_OF_FILE, FAILURE_OF_S3, FAILURE_OF_MARKS };

/* Looks for the bucket, and ends the run if there is none. */
static enum outcome look_for_bucket(struct worker *worker, const struct call_limits *limits)
{
	struct problem problem = {0};
	const enum outcome o = run_look_for_bucket(worker->run, worker->s3, limits, &problem);
	if (o == OUTCOME_ABSENT || o == OUTCOME_SETUP)
		run_fail(worker->run, &problem);
	return o;
}

/* Sends a single request for the bucket, and returns whether S3 serves it: a throttled request, an
 * error of S3's own (5xx) or no reply counts as no. Ends the run if there is no such bucket. */
static bool bucket_is_served(struct worker *worker)
{
	struct call_limits once = worker->limits;
	once.attempts = 1;
	once.patience_ms = 0;
	const enum outcome o = look_for_bucket(worker, &once);
	return o != OUTCOME_THROTTLED && !outcome_is_ambiguous(o);
}

/* Whether every other file would fail like this one, so that the run gives up. May send a request
 * for the bucket. */
static bool all_would_fail(struct worker *worker, const struct candidate *c,
	const struct problem *problem, enum failure_of cause)
{
	/* Half of the time is enough: failing_ns also has time that the clock of progress does not
	 * count, as when the host was suspended. */
	const bool others_move =
		progress_still_ns(&worker->run->progress, NULL) <= c->failing_ns / 2;
	const bool has_reply = problem->status != 0;
	if (cause == FAILURE_OF_FILE || others_move)
		return false;
	/* The marks of all files are in one store. A service that does not reply is taken to be out
	 * of reach for all files. */
	if (cause == FAILURE_OF_MARKS || !has_reply)
		return true;
	/* S3 may answer with an error to the requests of a single file. */
	return !bucket_is_served(worker);
}

/* Reports the failure, and retries the file after a pause, or fails it after give_up_after_ms. The
 * turns in which the file failed, and the pauses, count toward that time. Time in which the file
 * waits for its turn does not. The claim stays with this run. */
static enum step retry_or_fail(struct worker *worker, struct file *file,
	const struct problem *problem, enum failure_of cause)
{
	struct candidate *c = file->candidate;
	const uint64_t now_ns = clock_boot_ns();
	struct problem reported = *problem;
	/* In the first turn, only the time in which the service failed counts, since the file may
	 * be a large one. */
	c->failing_ns += c->failures ? now_ns - file->begun_ns : problem->failing_ms * NS_PER_MS;
	if (c->failing_ns / NS_PER_MS >= worker->options->give_up_after_ms) {
		/* The run may have lost its lease, or was stopped, while the bucket was checked. */
		if (all_would_fail(worker, c, problem, cause) && !run_is_over(worker->run))
			progress_give_up(&worker->run->progress);
		if (run_is_over(worker->run))
			return STEP_OVER;
		file->has_given_up = true;
		if (c->failures)
			problem_prefix(&reported, "failed after %u attempts", c->failures + 1);
		return file_fail(worker, file, &reported);
	}
	/* Doubled five times, the pause is above AGAIN_MAX_NS already. */
	uint64_t pause_ns = AGAIN_FIRST_NS << (c->failures < 5 ? c->failures : 5);
	if (pause_ns > AGAIN_MAX_NS)
		pause_ns = AGAIN_MAX_NS;
	c->failing_ns += pause_ns;
	c->failures++;
	problem_prefix(&reported, "will be retried later");
	file_report(worker, file, S3ONCE_EVENT_RETRY, &reported);
	return file_put_back(worker, file, now_ns + pause_ns);
}

enum step file_retry(struct worker *worker, struct file *file, const struct problem *problem)
{
	return retry_or_fail(worker, file, problem, FAILURE_OF_FILE);
}

/* Names in *problem those settings of the file's object that the error code is about. */
static void name_settings(const struct file *file, struct problem *problem)
{
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const char *code = settings[i].code, *name = settings[i].setting;
		const char *value = s3_headers_value(file->target.headers, name);
		const size_t n = strlen(code);
		const bool is_beginning = code[n - 1] == '.';
		const bool is_about = is_beginning ? strncmp(problem->code, code, n) == 0
						   : strcmp(problem->code, code) == 0;
		if (value && is_about)
			problem_prefix(problem, "--%s%s%s", name, *value ? " " : "", value);
	}
}

/* Keeps a refused file until it is clear whether S3 refuses all files. If something was stored
 * before, the file fails by itself. The sentence names the settings that may be the reason. Returns
 * ASIDE or SETTLED. */
static enum step put_aside(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct problem explained = *problem;
	if (is_vague(problem))
		name_suspects(file, &explained);
	else
		name_settings(file, &explained);
	return refusals_keep(worker, file, &explained) ? STEP_ASIDE
						       : file_fail(worker, file, &explained);
}

/* Handles 404 to a request that writes. If the bucket does not exist, the run ends. If it exists,
 * the file is retried, since Swift answers 404 as long as it cannot reach the server of the bucket.
 * After that the file is put aside, since some servers answer 404 for a key that they cannot
 * store. */
static enum step handle_not_found(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	const enum outcome o = look_for_bucket(worker, &worker->limits);
	if (o == OUTCOME_ABSENT || o == OUTCOME_SETUP)
		return STEP_OVER;
	if (o != OUTCOME_OK)
		return put_aside(worker, file, problem);
	const bool is_retried = file->candidate->failures < NOT_FOUND_RETRIES_MAX;
	/* If no setting of the object is suspected, the key may be the reason. */
	const bool key_is_suspect = !is_vague(problem) || !has_suspects(file);
	struct problem explained = *problem;
	snprintf(explained.text, sizeof explained.text,
		"S3 answers 404 for this %s, although bucket %s is there%s",
		key_is_suspect ? "key" : "file", quote(worker->options->bucket).text,
		key_is_suspect && !is_retried ? ": the server may not take such keys" : "");
	return is_retried ? file_retry(worker, file, &explained)
			  : put_aside(worker, file, &explained);
}

/* Handles an outcome as file_handle_outcome() promises. */
static enum step handle_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem, enum failure_of cause)
{
	if (run_is_over(worker->run))
		return STEP_OVER;
	switch (outcome) {
	case OUTCOME_DENIED:
	case OUTCOME_SETTING:
		return put_aside(worker, file, problem);
	case OUTCOME_INVALID:
	case OUTCOME_UNSUPPORTED:
		/* The error code does not name the reason. It may be a setting of the object: some
		 * servers refuse a storage class or tags in this way. */
		if (is_vague(problem) && has_suspects(file))
			return put_aside(worker, file, problem);
		break;
	case OUTCOME_ABSENT:
		return handle_not_found(worker, file, problem);
	case OUTCOME_SETUP:
		/* handle_not_found() checks whether the bucket is really missing, before the run
		 * fails. */
		if (strcmp(problem->code, "NoSuchBucket") == 0)
			return handle_not_found(worker, file, problem);
		run_fail(worker->run, problem);
		return STEP_OVER;
	case OUTCOME_LOST:
		/* The server has answered, but not as S3 does, and has taken nothing in this run.
		 * It would answer the same again, so the file fails. */
		if (problem->status && !atomic_load(&worker->run->refusals.has_stored))
			break;
		/* fall through */
	case OUTCOME_TRANSIENT:
	case OUTCOME_CONFLICT:
	case OUTCOME_THROTTLED:
		return retry_or_fail(worker, file, problem, cause);
	case OUTCOME_ABANDONED:
		/* The lease ran out. The claim is judged again once the lease is renewed. */
		return file_put_back(worker, file, clock_boot_ns() + NS_PER_S / 2);
	default:
		break;
	}
	return file_fail(worker, file, problem);
}

enum step file_handle_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	return handle_outcome(worker, file, outcome, problem, FAILURE_OF_S3);
}

enum step file_handle_marks_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	if (outcome == OUTCOME_DENIED || outcome == OUTCOME_ABSENT)
		outcome = OUTCOME_SETUP;
	return handle_outcome(worker, file, outcome, problem, FAILURE_OF_MARKS);
}
