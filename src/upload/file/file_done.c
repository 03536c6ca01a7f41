#include "upload/bucket/bucket_check.h"
#include "upload/file/stored_look.h"
#include "upload/file/worker.h"
#include "upload/run_manifest.h"
#include <stdio.h>
#include <string.h>

enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version)
{
	struct mark seen = {0};
	struct problem problem = {0};
	struct mark_ref ref = file_mark_ref(worker, file);
	char object[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(object, sizeof object, "%s%s", file->candidate->key, version->suffix);
	if (!bucket_keeps_witness(worker->run, worker->marks, object, version->etag))
		return STEP_OVER;
	ref.limits = run_visible_limits(worker->run);
	ref.may_sync_later = file->candidate->was_sent;
	enum outcome o = mark_done(&ref, &file->claim, version, &seen, &problem);
	const bool is_gone = seen.state == MARK_ABSENT || seen.state == MARK_FORGOTTEN;
	mark_clear(&seen);
	if (o == OUTCOME_OK) {
		bucket_saw_object(worker->run, object, version->etag);
		return STEP_NEXT;
	}
	if (o != OUTCOME_REFUSED)
		return file_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, is_gone ? "the mark of a file of this run was deleted"
				       : "another uploader took over a file of this run");
	return STEP_OVER;
}

static void keep_version_id(const struct s3_object *object, struct version *version)
{
	if (strlen(object->version_id) <= VERSION_MAX)
		memcpy(version->version_id, object->version_id, strlen(object->version_id) + 1);
}

static void sum_as_told(const struct s3_object *object, char ret[static SUM_MAX + 1])
{
	if (proof_tells_whole(object))
		snprintf(ret, SUM_MAX + 1, "%s:%s", checksum_kinds[object->sum.kind].name,
			object->sum.text);
}

/* The id of a content is the SHA-256 of the content before compression. */
static void sum_of_content(const struct s3_meta *meta, char ret[static SUM_MAX + 1])
{
	struct sums sums = {.kinds = DIGEST_SHA256};
	for (size_t i = 0; i < sizeof sums.sha256; i++)
		if (sscanf(meta->content + 2 * i, "%2hhx", &sums.sha256[i]) != 1)
			return;
	mark_sum_of(&sums, CHECKSUM_SHA256, ret);
}

struct version file_version_of(const struct worker *worker, const struct s3_object *object)
{
	const struct s3_meta *meta = &object->meta;
	struct version version = {.size = object->size,
		.mtime_ns = meta->mtime_ns,
		.part_bytes = meta->part_bytes,
		.etag_is_md5 = file_etag_is_md5(worker, object)};
	snprintf(version.etag, sizeof version.etag, "%s", object->etag);
	keep_version_id(object, &version);
	if (*meta->encoding) {
		version.size = meta->content_bytes;
		version.object_bytes = object->size;
		sum_as_told(object, version.object_sum);
		if (strlen(meta->content) == S3_CONTENT_MAX)
			sum_of_content(meta, version.sum);
	} else {
		sum_as_told(object, version.sum);
	}
	return version;
}

static enum step done_with(struct worker *worker, struct file *file, const struct s3_object *object,
	const struct in_s3 *done)
{
	if (object->lacks_encryption) {
		struct problem problem;
		problem_set(&problem,
			"the object is there, but the server does not confirm the encryption that was "
			"asked for (sse, sse-c-key-file), so it may lie there in clear: remove it, and "
			"leave the option out or use a server that encrypts");
		return file_fail(worker, file, &problem);
	}
	refusals_stored(&worker->run->refusals);
	enum step step =
		done->event == S3ONCE_EVENT_UPLOADED ? stored_look(worker, file) : STEP_NEXT;
	if (step != STEP_NEXT)
		return step;
	file->candidate->said_done = true;
	step = file_mark_done(worker, file, done->version);
	if (step != STEP_NEXT)
		return step;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	snprintf(key, sizeof key, "%s%s", file->candidate->key, done->version->suffix);
	struct report_file about = file_about(file);
	about.key = key;
	report_file(&worker->run->report, done->event, &about, NULL);
	run_manifest_add(worker->run, done);
	file->is_in_s3 = true;
	return STEP_SETTLED;
}

enum step file_done(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event)
{
	struct version version = {.size = file->state.size,
		.mtime_ns = file->state.mtime_ns,
		.part_bytes = file->sent_part_bytes,
		.etag_is_md5 = file_etag_is_md5(worker, object)};
	if (file->stored.bytes) {
		version.object_bytes = file->stored.bytes;
		mark_sum_of(&file->stored, s3_checksum(worker->run->s3), version.object_sum);
		if (!*version.object_sum)
			sum_as_told(object, version.object_sum);
	}
	mark_sum_of(&file->sums, s3_checksum(worker->run->s3), version.sum);
	snprintf(version.etag, sizeof version.etag, "%s", object->etag);
	keep_version_id(object, &version);
	snprintf(version.parts_sum, sizeof version.parts_sum, "%s", file->parts_sum);
	snprintf(version.content, sizeof version.content, "%s", file->candidate->content);
	snprintf(version.suffix, sizeof version.suffix, "%s", candidate_suffix(file->candidate));
	const struct in_s3 done = {.file = file->candidate,
		.version = &version,
		.sums = file->stored.bytes ? &file->stored : &file->sums,
		.event = event};
	const enum step step = done_with(worker, file, object, &done);
	file->is_proven = step == STEP_SETTLED && file->is_in_s3;
	return step;
}

enum step file_done_otherwise(struct worker *worker, struct file *file,
	const struct s3_object *object, const char *suffix)
{
	struct version version = file_version_of(worker, object);
	version.mtime_ns = file->state.mtime_ns;
	snprintf(version.content, sizeof version.content, "%s", file->candidate->content);
	snprintf(version.suffix, sizeof version.suffix, "%s", suffix);
	const struct in_s3 done = {
		.file = file->candidate, .version = &version, .event = S3ONCE_EVENT_ADOPTED};
	return done_with(worker, file, object, &done);
}
