/* Functions that forget, gc, verify and manifest share, besides the frame of all commands: they
 * open a bucket, together with its marks or for its manifests. forget and gc also print a line or
 * an event for each mark that they handled. src/audit decides about a mark. */
#include "cli/audit/audit_command.h"
#include "cli/signals.h"
#include "marks/bucket_row.h"
#include <string.h>

/* Opens the bucket. False: the frame has the problem. */
static bool open_s3(struct command_frame *frame, const char *bucket, struct audit_bucket *ret)
{
	const bool is_open = frame_open_s3(frame, bucket);
	ret->place.s3 = frame->s3;
	ret->place.own.s3 = frame->s3_conn;
	ret->keys[0] = frame->headers; /* keys[1] is the NULL at the end */
	ret->place.keys = ret->keys;
	return is_open;
}

bool audit_open_marks(struct command_frame *frame, const char *bucket, struct audit_bucket *ret)
{
	struct mark_space *space = &ret->space;
	struct bucket_row row;
	if (!frame_open_marks(frame, bucket, space))
		return false;
	if (bucket_row_read(frame->marks.conn, space, NULL, &row, &frame->problem) != OUTCOME_OK)
		return false;
	space->generation = row.generation;
	ret->place.store = frame->marks.store;
	ret->place.space = space;
	ret->place.limits.abandon = signals_abandon;
	ret->place.own.marks = frame->marks.conn;
	return true;
}

bool audit_open(struct command_frame *frame, const char *bucket, struct audit_bucket *ret)
{
	return audit_open_marks(frame, bucket, ret) && open_s3(frame, bucket, ret);
}

bool audit_open_manifests(struct command_frame *frame, const struct s3_url *url,
	const char *public_key_file, struct audit_bucket *ret)
{
	frame->code = S3ONCE_EXIT_SETUP;
	if (public_key_file && signing_key_read(public_key_file, KEY_PUBLIC, &ret->public_key,
				       &frame->problem) < 0)
		return false;
	if (!open_s3(frame, url->bucket, ret))
		return false;
	ret->manifests = (struct manifest_place){.s3 = ret->place.own.s3,
		.headers = frame->headers,
		.bucket = url->bucket,
		.prefix = url->key,
		.limits = {.patience_ms = MANIFEST_PATIENCE_MS}};
	return true;
}

int audit_exit_code(struct command_frame *frame, bool is_complete, int signal, bool is_wrong)
{
	const bool is_stopped = !is_complete && signal;
	const bool has_failed = !is_complete && !signal;
	if (has_failed)
		return S3ONCE_EXIT_SETUP;
	frame->problem = (struct problem){0};
	if (is_stopped)
		return S3ONCE_EXIT_STOPPED + signal;
	return is_wrong ? S3ONCE_EXIT_FILES : S3ONCE_EXIT_OK;
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
	struct output *output = &fates->frame->output;
	const bool has_failed = fate == FATE_FAILED;
	const char *why = has_failed ? report->problem->text : report->why; /* may be "" */
	fates->counts[fate]++;
	fates->all++;
	if (fates->frame->json) {
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
		if (has_failed)
			json_set_problem(object, report->problem);
		json_print(output, object);
	}
	/* With --json, failures are printed for people as well, on standard error. */
	if (fates->frame->json && !has_failed)
		return;
	output_print(output, has_failed ? STDERR_FILENO : STDOUT_FILENO, "%s: s3://%s/%s%s%s",
		names[fate].words, fates->bucket, escaped(report->key).text, *why ? ": " : "", why);
}

json_t *fates_json(
	const struct fates *fates, const char *event, const enum mark_fate *which, size_t n)
{
	json_t *object = json_event(event);
	for (size_t i = 0; i < n; i++)
		json_set(object, NUMBER(names[which[i]].event, fates->counts[which[i]]));
	return object;
}
