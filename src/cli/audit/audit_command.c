/* Functions that forget, gc, verify and manifest share, besides the frame of all commands: they
 * open a bucket, together with its marks or for its manifests. forget and gc also print a line or
 * an event for each mark that they handled. src/audit decides about a mark. */
#include "cli/audit/audit_command.h"
#include "cli/signals.h"
#include "marks/bucket_row.h"
#include <string.h>

const struct option audit_json_options[] = {
	FLAG("json", 0, "one event a line on standard output, as JSON"),
	{NULL},
};

/* Opens the bucket, once the services are open. `key_file` is as in audit_open(). False: the frame
 * has the problem, and audit_close() still has to be called. */
static bool open_s3(struct command_frame *frame, const char *bucket, const char *key_file,
	struct audit_bucket *ret)
{
	const struct services *services = &frame->services;
	struct problem *problem = &frame->problem;
	if (key_file && (s3_headers_new(&ret->headers) ||
				s3_headers_set(ret->headers, "sse-c-key-file", key_file, problem) ||
				s3_headers_prepare(ret->headers, problem)))
		return false;
	if (s3_open(services->aws, services->http, bucket, &ret->place.s3, problem) < 0)
		return false;
	ret->keys[0] = ret->headers; /* keys[1] is the NULL at the end */
	ret->place.keys = ret->keys;
	const bool is_open = s3_conn_new(ret->place.s3, &ret->place.own.s3) == 0;
	if (!is_open)
		problem_set(problem, PROBLEM_NO_DESCRIPTORS);
	return is_open;
}

bool audit_open(struct command_frame *frame, const char *bucket, bool needs_s3,
	const char *key_file, struct audit_bucket *ret)
{
	struct mark_space *space = &ret->space;
	struct bucket_row row;
	if (!frame_open_marks(frame, bucket, space) ||
		bucket_row_read(frame->marks.conn, space, NULL, &row, &frame->problem) !=
			OUTCOME_OK)
		return false;
	space->generation = row.generation;
	ret->place.store = frame->marks.store;
	ret->place.space = space;
	ret->place.limits.abandon = signals_abandon;
	ret->place.own.marks = frame->marks.conn;
	return !needs_s3 || open_s3(frame, bucket, key_file, ret);
}

bool audit_open_manifests(struct command_frame *frame, const struct s3_url *url,
	const char *key_file, const char *public_key_file, struct audit_bucket *ret)
{
	struct problem *problem = &frame->problem;
	frame->code = S3ONCE_EXIT_SETUP;
	/* `false`: a public key, not a private one. */
	if ((public_key_file &&
		    signing_key_read(public_key_file, false, &ret->public_key, problem) < 0) ||
		services_open(frame->access, &frame->services, problem) < 0 ||
		!open_s3(frame, url->bucket, key_file, ret))
		return false;
	ret->manifests = (struct manifest_place){.s3 = ret->place.own.s3,
		.headers = ret->headers,
		.bucket = url->bucket,
		.prefix = url->key,
		.limits = {.patience_ms = MANIFEST_PATIENCE_MS}};
	return true;
}

void audit_close(struct audit_bucket *bucket)
{
	s3_conn_free(bucket->place.own.s3);
	s3_close(bucket->place.s3);
	s3_headers_free(bucket->headers);
	EVP_PKEY_free(bucket->public_key);
}

int audit_code(struct command_frame *frame, bool ok, int stopped_by, bool is_wrong)
{
	if (!ok && !stopped_by)
		return S3ONCE_EXIT_SETUP;
	frame->problem = (struct problem){0};
	if (stopped_by)
		return S3ONCE_EXIT_STOPPED + stopped_by;
	return is_wrong ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
}

struct audit_prefix audit_prefix(const char *key)
{
	struct audit_prefix prefix;
	const size_t n = strlen(key);
	const char *slash = n && key[n - 1] != '/' ? "/" : "";
	snprintf(prefix.text, sizeof prefix.text, "%s%s", key, slash);
	return prefix;
}

/* For each fate: the event of --json, which is also the name of the counter in the last event, and
 * the words that are printed for people before the name of a mark. */
static const struct {
	const char *event, *words;
} names[FATES] = {
	[FATE_FORGOTTEN] = {"forgotten", "forgotten"},
	[FATE_FORGETTABLE] = {"forgettable", "would be forgotten"},
	[FATE_ABORTED] = {"aborted", "upload aborted"},
	[FATE_ABORTABLE] = {"abortable", "upload would be aborted"},
	[FATE_KEPT] = {"kept", "kept"},
	[FATE_DAMAGED] = {"damaged", "damaged"},
	[FATE_FAILED] = {"failed", "error"},
};

void fates_print(void *arg, const struct mark_report *report)
{
	struct fates *fates = arg;
	const enum mark_fate fate = report->fate;
	const char *why = fate == FATE_FAILED ? report->problem->text : report->why; /* may be "" */
	fates->counts[fate]++;
	fates->all++;
	if (fates->json) {
		char object_key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
		snprintf(object_key, sizeof object_key, "%s%s", report->key, report->suffix);
		json_t *object =
			json_set(json_event(names[fate].event), BYTES("bucket", fates->bucket),
				BYTES("key", report->key), BYTES("object", object_key),
				BYTES("state", mark_state_name(report->state)));
		if (fate == FATE_ABORTED || fate == FATE_ABORTABLE)
			json_set_bytes(object, "upload_id", report->upload_id);
		if (fate == FATE_KEPT)
			json_set_bytes(object, "text", report->why);
		if (fate == FATE_FAILED)
			json_set_problem(object, report->problem);
		json_print(fates->output, object);
	}
	/* With --json, failures are printed for people as well, on standard error. */
	if (fates->json && fate != FATE_FAILED)
		return;
	output_print(fates->output, fate == FATE_FAILED ? STDERR_FILENO : STDOUT_FILENO,
		"%s: s3://%s/%s%s%s", names[fate].words, fates->bucket, escaped(report->key).text,
		*why ? ": " : "", why);
}

json_t *fates_json(
	const struct fates *fates, const char *event, const enum mark_fate *which, size_t n)
{
	json_t *object = json_event(event);
	for (size_t i = 0; i < n; i++)
		json_set_number(object, names[which[i]].event, fates->counts[which[i]]);
	return object;
}
