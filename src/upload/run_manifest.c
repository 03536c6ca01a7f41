/* The manifest of a run. Workers and the scan add a line for each file that is in S3; the main
 * thread opens it before they begin, and stores it as one object after they have ended. No file
 * fails because of the manifest: its failures are errors of the run. */
#include "upload/run_manifest.h"
#include "base/clock.h"
#include "lease/process.h"
#include "manifest/manifest_entry.h"
#include "manifest/manifest_file.h"
#include "manifest/manifest_name.h"
#include "manifest/manifest_signature.h"
#include "marks/judge_object.h"
#include "upload/push_struct.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If a limit has ended the run, its manifest has at least this long to be stored. */
#define LIMITED_NS (10 * NS_PER_S)

struct run_manifest {
	struct manifest_spool *spool;
	struct text key;
	EVP_PKEY *signing_key; /* NULL: the manifest is not signed */
	bool is_stored;
	uint64_t deadline_ns; /* the time by which it has to be stored; 0: none */
};

bool run_manifest_open(struct run *run, struct problem *ret_problem)
{
	const char *key_file = run->options.sign_key_file;
	if (!run->options.manifest)
		return true;
	struct run_manifest *manifest = run->manifest = calloc(1, sizeof *manifest);
	if (!manifest)
		return problem_error(ret_problem, false, "out of memory");
	/* After an error, run_manifest_free() is called by s3once_push_free(). */
	if (key_file &&
		signing_key_read(key_file, KEY_PRIVATE, &manifest->signing_key, ret_problem))
		return false;
	if (run->dry) { /* a dry run reads the key only to report a wrong one */
		run_manifest_free(run);
		return true;
	}
	const unsigned kinds = s3_wanted_digests(run->s3, s3_checksum(run->s3)) | DIGEST_SHA256;
	const int64_t run_ns = (int64_t)(clock_boot_ns() - run->report.start_ns);
	struct process self;
	process_self(&self);
	const struct manifest_run name = {.prefix = run->options.prefix,
		.host = self.host,
		.session = session_id(run->session),
		.started_s = (clock_wall_ns() - run_ns) / (int64_t)NS_PER_S};
	/* The text has an error if the key is longer than this, so that the key of the signature,
	 * which has the suffix after it, has KEY_BYTES_MAX bytes at most. */
	manifest->key = TEXT(KEY_BYTES_MAX - sizeof MANIFEST_SIGNATURE_SUFFIX);
	manifest_add_key(&manifest->key, &name);
	if (!manifest->key.error)
		return !manifest_spool_new(kinds, &manifest->spool, ret_problem);
	return problem_error(ret_problem, false,
		"the prefix is so long that the key of the manifest would have more than "
		"%d bytes: shorten it, or leave --manifest out",
		KEY_BYTES_MAX);
}

void run_manifest_free(struct run *run)
{
	if (!run->manifest)
		return;
	manifest_spool_free(run->manifest->spool);
	EVP_PKEY_free(run->manifest->signing_key);
	text_clear(&run->manifest->key);
	free(run->manifest);
	run->manifest = NULL;
}

static const char *const event_words[] = {
	[S3ONCE_EVENT_UPLOADED] = "uploaded",
	[S3ONCE_EVENT_ADOPTED] = "adopted",
	[S3ONCE_EVENT_REFRESHED] = "refreshed",
	[S3ONCE_EVENT_SKIPPED] = "skipped",
};

void run_report_in_s3(struct run *run, const struct in_s3 *file, uint64_t bytes)
{
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	const struct candidate *c = file->file;
	stpcpy(stpcpy(key, c->key), file->version ? file->version->suffix : c->suffix);
	const struct report_file about = {.path = c->path, .key = key, .bytes = bytes};
	report_file(&run->report, file->event, &about, NULL);
	if (!run->manifest)
		return;
	struct manifest_entry entry = {.event = event_words[file->event],
		.bucket = run->options.bucket,
		.key = key,
		.path = file->file->path};
	manifest_entry_set_version(&entry, file->version);
	if (file->sums)
		manifest_entry_set_sums(&entry, file->sums);
	/* If there is no memory for the line, manifest_spool_add() notes that. */
	char *line = manifest_entry_line(&entry);
	manifest_spool_add(run->manifest->spool, line);
	free(line);
}

/* An object to store. All pointers are borrowed. */
struct to_store {
	const char *key, *content_type;
	struct http_body body;
	const struct sums *sums;
};

/* Whether the manifest is given up: S3 does not take it for too long, or the run was asked to stop,
 * and its grace is over. If only a limit has ended the run, the end of the grace does not count
 * here: manifest->deadline_ns ends the requests, and leaves them LIMITED_NS at least. */
static bool was_stopped(void *arg)
{
	struct run *run = arg;
	return progress_poll_is_over(&run->progress) ||
	       (atomic_load(&run->end.was_asked_to_stop) && run_grace_is_over(arg));
}

/* Proves an object that was just sent by a HEAD, since the reply to its PUT was lost or proves
 * nothing. Returns false with a sentence if it cannot be proven. */
static bool prove_by_head(struct s3_conn *conn, const struct s3_put *put, struct s3_object *ret,
	struct problem *ret_problem)
{
	if (s3_head_object(conn, &put->target, &put->limits, ret, ret_problem) != OUTCOME_OK) {
		problem_prefix(ret_problem, "it was sent, but cannot be looked at");
		return false;
	}
	return proof_whole(put->sums, ret, SIZE_KNOWN) == PROOF_YES ||
	       problem_error(ret_problem, false,
		       "S3 holds other bytes than were sent, or does not show which");
}

/* Stores an object, and proves that S3 holds the sent bytes under the key. This is called when
 * the run does not use its session any more. So its limits ask was_stopped(), and not
 * run_is_over(), which asks the session. */
static bool store_object(struct run *run, const struct to_store *what, struct s3_object *ret,
	struct problem *ret_problem)
{
	struct s3_conn *conn = NULL;
	/* The key without the prefix, by which the settings of the object are found as those of a
	 * file are by its path. */
	const char *below = what->key + strlen(run->options.prefix);
	if (s3_conn_new(run->s3, &conn))
		return problem_error(ret_problem, false, PROBLEM_NO_DESCRIPTORS);
	struct s3_put put = {
		.target =
			object_rules_target(run->bodies.rules, what->key, below + (*below == '/')),
		.body = &what->body,
		.sums = what->sums,
		.checksum = s3_checksum(run->s3),
		.condition = {.if_none_match = true},
		.limits = {.abandon = was_stopped,
			.abandon_arg = run,
			.deadline_ns = run->manifest->deadline_ns,
			.patience_ms = run->options.give_up_after_ms,
			.progress = &run->progress},
	};
	put.target.content_type = what->content_type;
	const enum outcome o = s3_put_unless_there(conn, &put, ret, ret_problem);
	/* A refusal means that an earlier attempt of this request stored the object and its reply
	 * was lost, since no other run uses this key. */
	if (o == OUTCOME_REFUSED)
		*ret = (struct s3_object){0};
	bool good = o == OUTCOME_OK || o == OUTCOME_REFUSED;
	if (good && proof_whole(put.sums, ret, SIZE_UNKNOWN) != PROOF_YES)
		good = prove_by_head(conn, &put, ret, ret_problem);
	s3_conn_free(conn);
	if (!good || !ret->lacks_encryption)
		return good;
	return problem_error(ret_problem, false,
		"the server does not confirm the encryption that was asked for (sse, "
		"sse-c-key-file), so it may lie there in clear");
}

/* Stores the signature under a key next to that of the manifest, which is stored already. */
static bool put_signature(struct run *run, struct problem *ret_problem)
{
	struct run_manifest *manifest = run->manifest;
	struct text text = TEXT(MANIFEST_SIGNATURE_MAX), key = TEXT(2 * KEY_BYTES_MAX);
	struct sums sums;
	struct s3_object object = {0};
	const unsigned kinds = s3_wanted_digests(run->s3, s3_checksum(run->s3));
	const struct signed_manifest to_sign = {.bucket = run->options.bucket,
		.key = text_string(&manifest->key),
		.sums = manifest_spool_sums(manifest->spool)};
	text_addf(&key, "%s" MANIFEST_SIGNATURE_SUFFIX, text_string(&manifest->key));
	bool good = manifest_sign(manifest->signing_key, &to_sign, &text, ret_problem);
	if (text.error || (good && digest_bytes(kinds, text.data, text.len, &sums)))
		good = problem_error(ret_problem, false, "out of memory");
	const struct to_store signature = {.key = text_string(&key),
		.content_type = "text/plain",
		.body = {.bytes = text.len, .memory = text.data},
		.sums = &sums};
	good = good && store_object(run, &signature, &object, ret_problem);
	text_clear(&text);
	text_clear(&key);
	if (!good)
		problem_prefix(ret_problem, "it was stored, but its signature was not");
	return good;
}

static void note_manifest_of_dry_run(struct run *run)
{
	struct text folder = TEXT(KEY_BYTES_MAX);
	manifest_add_folder(&folder, run->options.prefix);
	report_run(&run->report, S3ONCE_EVENT_NOTE,
		PROBLEM("a manifest of the run would be written below s3://%s/%s",
			run->options.bucket, quote(text_string(&folder)).text));
	text_clear(&folder);
}

/* Returns the time for storing the manifest after a limit: the rest of the grace, and LIMITED_NS at
 * least. The grace is measured by clock_monotonic_ns(), unlike the deadlines of requests. */
static uint64_t time_after_limit_ns(struct run *run)
{
	const uint64_t now_ns = clock_monotonic_ns();
	const uint64_t ends_ns = atomic_load(&run->end.grace_ends_ns);
	return ends_ns > now_ns + LIMITED_NS ? ends_ns - now_ns : LIMITED_NS;
}

/* Finishes the manifest, and stores it and its signature. Returns false with a problem if that
 * fails. *ret_object is the manifest if that was stored. */
static bool store_manifest(
	struct run *run, struct s3_object *ret_object, struct problem *ret_problem)
{
	struct run_manifest *manifest = run->manifest;
	if (!manifest_spool_finish(manifest->spool, ret_problem))
		return false;
	const struct to_store stored = {.key = text_string(&manifest->key),
		.content_type = "application/gzip",
		.body = manifest_spool_body(manifest->spool),
		.sums = manifest_spool_sums(manifest->spool)};
	return store_object(run, &stored, ret_object, ret_problem) &&
	       (!manifest->signing_key || put_signature(run, ret_problem));
}

bool run_manifest_put(struct run *run)
{
	struct run_manifest *manifest = run->manifest;
	struct problem problem = {0};
	struct s3_object object = {0};
	char checksum[S3_SUM_MAX + SUM_MAX] = "";
	if (run->options.manifest && run->dry)
		note_manifest_of_dry_run(run);
	if (!manifest)
		return true;
	if (atomic_load(&run->end.limit))
		manifest->deadline_ns = clock_boot_ns() + time_after_limit_ns(run);
	const bool good = store_manifest(run, &object, &problem);
	if (*object.sum.text)
		snprintf(checksum, sizeof checksum, "%s:%s", checksum_kinds[object.sum.kind].name,
			object.sum.text);
	struct report_file about = {.checksum = checksum,
		.key = text_string(&manifest->key),
		.bytes = manifest_spool_sums(manifest->spool)->bytes,
		.version_id = object.version_id,
		.etag = object.etag};
	if (!good)
		problem_prefix(&problem, "the manifest of the run cannot be stored as %s",
			quote(about.key).text);
	manifest->is_stored = good;
	report_file(&run->report, good ? S3ONCE_EVENT_MANIFEST : S3ONCE_EVENT_MANIFEST_FAILED,
		&about, good ? NULL : &problem);
	return good;
}

const char *s3once_push_manifest(const struct s3once_push *push)
{
	const struct run_manifest *manifest = push->run.manifest;
	return manifest && manifest->is_stored ? text_string(&manifest->key) : "";
}
