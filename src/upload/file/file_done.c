/* Step 6 of docs/protocol.md, once an object is proven. On a server other than AWS, the first
 * objects are checked. Then the mark is set to done under its fence. The steps that send and the
 * steps that adopt call file_finish(). Objects are not judged here. */
#include "upload/file/file_done.h"
#include "base/log.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/ahead.h"
#include "upload/file/multipart.h"
#include "upload/file/worker.h"
#include "upload/run_manifest.h"
#include <ctype.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_ATTEMPTS 3 /* attempts of a check of settings alone */

/* Warns that the server has not kept the setting `name` of the file's object. */
static void warn_of_ignored(const struct worker *worker, const struct file *file, const char *name,
	const struct s3_settings_check *look)
{
	const bool is_class = strcmp(name, "storage-class") == 0;
	const bool is_lock = strstr(name, "object-lock") != NULL;
	const char *value = is_class ? s3_headers_value(file->target.headers, name) : NULL;
	const char *lack = is_class                        ? "is stored as "
			   : strcmp(name, "metadata") == 0 ? "does not have all of this metadata"
			   : strcmp(name, "tag") == 0      ? "does not have all of these tags"
			   : is_lock ? "does not show it, or these credentials lack "
				       "s3:GetObjectRetention and s3:GetObjectLegalHold"
				     : "does not have this value";
	report_run(worker->report, S3ONCE_EVENT_WARNING,
		PROBLEM("the server ignored --%s%s%s: the object of %s %s%s; leave the option "
			"out, or use a server that keeps it (of the objects sent %s, only this "
			"one was looked at)",
			name, value ? " " : "", value ? value : "",
			quote(file->candidate->path).text, lack,
			is_class ? quote(look->storage_class).text : "",
			file->sent_part_bytes ? "in parts" : "whole"));
}

enum step file_fail_missing(struct worker *worker, struct file *file)
{
	return file_fail(worker, file,
		PROBLEM("uploaded, but there is no object %s: a cache on the way repeats an "
			"earlier 404, another client deleted it, or the server stored it under "
			"another key, perhaps in place of another object (s3once "
			"doctor tries keys with unusual characters; s3once verify --head shows "
			"what else differs)",
			quote(file->target.key).text));
}

/* Sets a bit for each character of the key that a URL has to encode. */
static void find_encoded_characters(const char *key, uint64_t ret[static 2])
{
	ret[0] = ret[1] = 0;
	for (const char *at = key; *at; at++) {
		/* 0, which no key has, stands for all bytes that are not ASCII. strchr() would find
		 * it at the end of any string. */
		const unsigned c = (unsigned char)*at & 0x80 ? 0 : (unsigned char)*at;
		const bool stays = isalnum((int)c) || (c && strchr("-._~/", (int)c));
		if (!stays)
			ret[c / 64] |= UINT64_C(1) << c % 64;
	}
}

/* Warns of each setting that the server has ignored, once in a run. `problem` is the reason why a
 * setting is unknown. */
static void report_settings(struct worker *worker, const struct file *file,
	const struct s3_settings_check *look, const struct problem *problem)
{
	const unsigned reported = atomic_fetch_or(&worker->run->stored.lacks, look->missing);
	for (unsigned i = 0; i < S3_SETTINGS; i++) {
		if (look->missing & ~reported & (1U << i))
			warn_of_ignored(worker, file, s3_setting_name(i), look);
		else if (look->unknown & (1U << i))
			log_info("whether the server keeps --%s could not be looked at: %s",
				s3_setting_name(i), problem->text);
	}
}

/* First checks. A server other than AWS may differ from S3 in three ways. When one of them may
 * happen for the first time in a run, a HEAD checks the uploaded object before its mark says done.
 *
 * 1. The object may be stored under another key. check_first_object() checks that once for each
 * character that a URL has to encode.
 *
 * 2. Settings may be ignored. check_first_object() checks each setting once for an object sent
 * whole, and once for an object sent in parts.
 *
 * 3. CompleteMultipartUpload may return another etag than the object has from then on. multipart.c
 * checks that while it proves an upload: once, or each time if the server does so. */

/* The features of an object that no earlier check of this run has covered. */
struct unchecked {
	uint64_t characters[2]; /* all that find_encoded_characters() finds in its key */
	bool is_new_key;        /* some of these characters are new */
	unsigned settings;      /* a bit for each setting of its upload that is new */
};

/* Finds the features of the object that are still unchecked. Its settings are noted as checked
 * here, since a check of settings that fails is not repeated: settings[0] has those of objects sent
 * whole, and settings[1] those of objects sent in parts. Characters are noted only after their
 * check, since until then each object with one of them has to be checked. */
static struct unchecked take_unchecked(struct stored_seen *seen, const struct file *file)
{
	struct unchecked ret;
	find_encoded_characters(file->target.key, ret.characters);
	ret.is_new_key = (ret.characters[0] & ~atomic_load(&seen->characters[0])) ||
			 (ret.characters[1] & ~atomic_load(&seen->characters[1]));
	const unsigned asked = s3_headers_checkable(file->target.headers);
	const bool in_parts = file->sent_part_bytes != 0;
	ret.settings = asked & ~atomic_fetch_or(&seen->settings[in_parts], asked);
	return ret;
}

/* Checks the key and the settings of an object that was uploaded to a server other than AWS, if
 * they are new to this run. All characters of the key that are not ASCII count as one. If S3
 * refuses to show the object (no s3:GetObject), this is only reported, and the reply to the upload
 * has to do. Returns NEXT, or the step to take instead. */
static enum step check_first_object(struct worker *worker, struct file *file)
{
	struct stored_seen *seen = &worker->run->stored;
	const struct unchecked unchecked = take_unchecked(seen, file);
	struct call_limits limits = worker->limits;
	struct s3_settings_check look;
	struct problem problem = {0};
	if (!unchecked.settings && !unchecked.is_new_key)
		return STEP_NEXT;
	/* A check of settings alone is not worth a long wait, and may fail, since the object itself
	 * is proven. */
	const bool only_settings = !unchecked.is_new_key;
	if (only_settings) {
		limits.attempts = SETTINGS_ATTEMPTS;
		limits.patience_ms = 0;
	}
	s3_check_settings(worker->s3, &file->target, unchecked.settings, &limits, &look, &problem);
	if (look.head == OUTCOME_ABSENT)
		return file_fail_missing(worker, file);
	report_settings(worker, file, &look, &problem);
	/* After DENIED, the other objects of these characters would not be shown either. */
	if (look.head == OUTCOME_OK || look.head == OUTCOME_DENIED) {
		atomic_fetch_or(&seen->characters[0], unchecked.characters[0]);
		atomic_fetch_or(&seen->characters[1], unchecked.characters[1]);
	}
	/* report_settings() has logged a failed check of settings. */
	if (only_settings || look.head == OUTCOME_OK)
		return STEP_NEXT;
	if (look.head != OUTCOME_DENIED)
		return file_handle_outcome(worker, file, look.head, &problem);
	problem_prefix(&problem,
		"whether the object %s is found under its key cannot be seen without s3:GetObject "
		"(s3once doctor tries such keys)",
		quote(file->target.key).text);
	report_run(worker->report, S3ONCE_EVENT_WARNING, &problem);
	return STEP_NEXT;
}

enum step file_mark_done(
	struct worker *worker, struct file *file, const struct version *version, const char *source)
{
	struct mark seen = {0};
	struct problem problem = {0};
	struct mark_ref ref = file_mark_ref(worker, file);
	char object_key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	if (worker->run->dry) { /* S3 has shown an object, so this is the bucket */
		atomic_store(&worker->run->has_witness, true);
		return STEP_NEXT;
	}
	snprintf(object_key, sizeof object_key, "%s%s", file->candidate->key, version->suffix);
	/* Before the first mark says done, the row of the bucket has to name a witness, by which a
	 * later run recognises the bucket of the marks. */
	if (!atomic_load(&worker->run->has_witness) &&
		!bucket_ensure_witness(worker->run, worker->marks, object_key, version->etag))
		return STEP_OVER;
	/* Like the upload itself, this write ends when our lease has run out. */
	ref.limits = worker->visible_limits;
	/* A power failure may undo a mark that is not synced. By its metadata, the next run
	 * recognises an object that this run sent. An adopted object may have no metadata of
	 * s3once, so its mark is synced at once. */
	ref.may_sync_later = file->candidate->was_sent;
	enum outcome o = mark_done(&ref, &file->claim, version, source, &seen, &problem);
	/* `seen` is the present mark only after REFUSED. */
	const bool is_gone = seen.state == MARK_ABSENT || seen.state == MARK_FORGOTTEN;
	mark_clear(&seen);
	if (o == OUTCOME_OK) {
		bucket_note_object(worker->run, object_key, version->etag);
		return STEP_NEXT;
	}
	if (o != OUTCOME_REFUSED)
		return file_handle_marks_outcome(worker, file, o, &problem);
	run_fence(worker->run, is_gone ? "the mark of a file of this run was deleted"
				       : "another uploader took over a file of this run");
	return STEP_OVER;
}

/* Writes S3's checksum of the whole object in the form of a mark. If there is none, *ret is
 * untouched. */
static void copy_whole_sum(const struct s3_object *object, char ret[static SUM_MAX + 1])
{
	if (proof_has_whole_sum(object))
		snprintf(ret, SUM_MAX + 1, "%s:%s", checksum_kinds[object->sum.kind].name,
			object->sum.text);
}

struct version file_version_of(const struct worker *worker, const struct s3_object *object)
{
	const struct s3_meta *meta = &object->meta;
	struct version version = {
		.size = object->size, .mtime_ns = meta->mtime_ns, .part_bytes = meta->part_bytes};
	version_set_object(&version, object, s3_supports(worker->server, S3_ETAG_IS_MD5) == S3_YES);
	if (!*meta->encoding) {
		copy_whole_sum(object, version.sum);
		return version;
	}
	version.size = meta->content_bytes;
	version.object_bytes = object->size;
	copy_whole_sum(object, version.object_sum);
	/* The content's id is the SHA-256 of the content before compression. If the metadata has
	 * none, the version has no checksum of its content. */
	struct sums sums = {.kinds = DIGEST_SHA256};
	size_t n_bytes;
	const bool is_hex = OPENSSL_hexstr2buf_ex(sums.sha256, sizeof sums.sha256, &n_bytes,
				    meta->content_id, '\0') == 1;
	if (is_hex && n_bytes == sizeof sums.sha256)
		mark_sum_of(&sums, CHECKSUM_SHA256, version.sum);
	return version;
}

/* Marks the file done, once its object is proven or judged to be the file's. `version` is the
 * mark's new version; the id of its content is set here. `sums` and `event` are reported, as in
 * struct in_s3. Returns IN_S3, or LEFT_OUT in a dry run, or the step to take instead. */
static enum step finish_with_version(struct worker *worker, struct file *file,
	const struct s3_object *object, struct version *version, const struct sums *sums,
	enum s3once_event_type event)
{
	snprintf(
		version->content_id, sizeof version->content_id, "%s", file->candidate->content_id);
	if (object->lacks_encryption)
		return file_fail(worker, file,
			PROBLEM("the object is there, but the server does not confirm the "
				"encryption that was asked for (sse, sse-c-key-file), so it may "
				"lie there in clear: remove it, and leave the option out or use a "
				"server that encrypts"));
	atomic_store(&worker->run->refusals.has_stored, true);
	enum step step = STEP_NEXT;
	if (event == S3ONCE_EVENT_UPLOADED && !s3_is_aws(worker->server))
		step = check_first_object(worker, file);
	if (step != STEP_NEXT)
		return step;
	if (!worker->run->dry)
		take_ahead(worker);
	/* was_marked_done is set before the mark is written. If the reply to that write is lost, a
	 * later turn finds the mark done, and sees by was_marked_done that this run did it:
	 * file_was_done_here(). */
	file->candidate->was_marked_done = true;
	step = file_mark_done(worker, file, version, file_source(worker, file));
	if (step != STEP_NEXT)
		return step;
	const struct in_s3 done = {
		.file = file->candidate, .version = version, .sums = sums, .event = event};
	run_report_in_s3(worker->run, &done, file->state.size);
	/* Files found by a dry run have no mark, so nothing more is reported about them. */
	return worker->run->dry ? STEP_LEFT_OUT : STEP_IN_S3;
}

/* Sets the id of the command whose output was read in this turn, if the file is such a pipe. */
static void set_producer(struct version *version, const struct worker *worker)
{
	const char *id = worker->options->producer_id;
	if (id)
		snprintf(version->producer_id, sizeof version->producer_id, "%s", id);
}

enum step file_finish(struct worker *worker, struct file *file, const struct s3_object *object,
	enum s3once_event_type event)
{
	struct version version = {.size = file->state.size,
		.mtime_ns = file->mtime_ns,
		.part_bytes = file->sent_part_bytes};
	version_set_object(&version, object, s3_supports(worker->server, S3_ETAG_IS_MD5) == S3_YES);
	if (file->object_sums.bytes) {
		version.object_bytes = file->object_sums.bytes;
		mark_sum_of(&file->object_sums, s3_checksum(worker->server), version.object_sum);
		if (!*version.object_sum) /* it was not computed: see compare_compressed_object() */
			copy_whole_sum(object, version.object_sum);
	}
	mark_sum_of(&file->content_sums, s3_checksum(worker->server), version.sum);
	memcpy(version.parts_sum, file->parts_sum, sizeof version.parts_sum);
	snprintf(version.suffix, sizeof version.suffix, "%s", file->candidate->suffix);
	set_producer(&version, worker);
	const struct sums *sums =
		file->object_sums.bytes ? &file->object_sums : &file->content_sums;
	const enum step step = finish_with_version(worker, file, object, &version, sums, event);
	/* Unlike after file_finish_by_metadata(), all of the content was read in this turn. */
	return step == STEP_IN_S3 ? STEP_PROVEN : step;
}

enum step file_finish_by_metadata(struct worker *worker, struct file *file,
	const struct s3_object *object, const char *suffix)
{
	const enum step step = multipart_abort(worker, file);
	if (step != STEP_NEXT)
		return step;
	/* Set first: finish_with_version() may take the candidate from the file. */
	const bool is_unread_pipe = file_is_unread_pipe(file);
	struct version version = file_version_of(worker, object);
	if (!file->candidate->is_piped) /* the input of a pipe keeps the time of the object */
		version.mtime_ns = file->mtime_ns;
	snprintf(version.suffix, sizeof version.suffix, "%s", suffix);
	if (!is_unread_pipe) /* any command may have made the object of an unread pipe */
		set_producer(&version, worker);
	const enum step done =
		finish_with_version(worker, file, object, &version, NULL, S3ONCE_EVENT_ADOPTED);
	/* An earlier run has uploaded the output of this pipe. The report gets the time of that. */
	if (done == STEP_IN_S3 && is_unread_pipe) {
		const int64_t now_s = store_time_s(worker->run->store);
		const bool age_is_known = object->age_s >= 0;
		report_note_repeat(
			worker->report, age_is_known ? now_s - object->age_s : now_s, now_s);
	}
	return done;
}
