/* Steps 2 and 3 of docs/protocol.md: judging the mark of an open file, handling a mark by which
 * another version is done, and the claim. worker.c calls claim_file() for a file that is not
 * claimed. S3 is asked only for the bucket and its witness, and for the object of a version that is
 * done, if that may be replaced or missing. */
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "scan/key/rotated_name.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/done_now.h"
#include "upload/file/file_open.h"
#include "upload/file/look.h"
#include "upload/file/steps.h"
#include "upload/file/worker.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* the most times that a mark is judged in one turn: others may write it each time */
#define JUDGINGS_MAX 20

/* The most bytes of ":FOLDER/FILE". Each byte of the two paths may become \xNN. */
#define ESCAPED_PATH_MAX (2 * 4 * PATH_MAX + 2)

/* Notes in the mark that a newer version of the file was not uploaded, so that `status` shows it.
 * No other step needs the note, so an error is only logged. If the mark has changed meanwhile
 * (REFUSED), the next run notes the state at that time. */
static void note_newer(struct worker *worker, const struct file *file)
{
	const struct mark *seen = &file->seen_mark;
	const struct file_state *now = &file->state;
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	const bool is_noted = seen->has_newer && seen->newer_size == now->size &&
			      seen->newer_mtime_ns == now->mtime_ns;
	if (is_noted || worker->run->dry)
		return;
	const enum outcome o = mark_note_newer(&ref, seen, now->size, now->mtime_ns, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_REFUSED)
		log_info("that the file has changed could not be noted: %s", problem.text);
}

/* Sets *ret_is_there to whether S3 has the object of the version that is done. Returns NEXT, or the
 * step to take instead. */
static enum step find_done_object(struct worker *worker, struct file *file, bool *ret_is_there)
{
	const struct recorded recorded = recorded_object(&file->seen_mark.done);
	struct done_object object = {.key = ""};
	struct problem problem = {0};
	const enum outcome o =
		head_done_object(worker, file, &file->seen_mark.done, &object, &problem);
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		return file_handle_outcome(worker, file, o, &problem);
	*ret_is_there = o == OUTCOME_OK && recorded_matches(&recorded, &object.object) == PROOF_YES;
	return STEP_NEXT;
}

/* Where the done version was uploaded from, compared with the source of this file. */
enum origin {
	ORIGIN_THIS,       /* the same source, or one that has this very file, or it is unknown */
	ORIGIN_OTHER_HOST, /* the same folder on another host: these hosts either share their files,
			      or share a prefix by mistake */
	ORIGIN_OTHER_FOLDER, /* another source: it has another file with this key */
};

/* Whether a path lies in a folder, which may end in '/'. */
static bool lies_in(const char *path, const char *folder)
{
	const size_t n = strlen(folder);
	return strncmp(path, folder, n) == 0 && (folder[n - 1] == '/' || path[n] == '/');
}

/* Returns the origin of the done version. A source is "HOST:FOLDER". The file has the source of
 * that version if it lies in that folder, so that a run may be given a folder, a part of it, or a
 * file alone. */
static enum origin origin_of_done(const struct worker *worker, const struct file *file)
{
	const char *here = file_source(worker, file);
	const char *there = file->seen_mark.source ? file->seen_mark.source : "";
	const char *folder = strchr(there, ':'); /* ":FOLDER"; NULL: the source is unknown */
	if (!folder || strcmp(here, there) == 0)
		return ORIGIN_THIS;
	struct text path = TEXT(ESCAPED_PATH_MAX); /* ":FOLDER/FILE" of this file */
	text_addf(&path, "%s/", strchr(here, ':'));
	text_add_escaped_string(&path, file->candidate->relative);
	const bool is_inside = lies_in(text_string(&path), folder);
	text_clear(&path);
	if (!is_inside)
		return ORIGIN_OTHER_FOLDER;
	/* Marks in a file, whose rows are removed for good, belong to one machine. If its name
	 * differs, it was renamed. */
	if (worker->run->store->ops->removes_for_good)
		return ORIGIN_THIS;
	const size_t host_and_colon = (size_t)(folder - there) + 1;
	const bool is_same_host = strncmp(here, there, host_and_colon) == 0;
	return is_same_host ? ORIGIN_THIS : ORIGIN_OTHER_HOST;
}

/* Writes both sources, as in "it was uploaded from web1:/data, and this is web2:/data". */
static void add_sources(const struct worker *worker, const struct file *file, struct text *t)
{
	text_addf(t, "it was uploaded from %s, and this is %s", quote(file->seen_mark.source).text,
		quote(file_source(worker, file)).text);
}

/* Whether this run replaces versions that are done. */
static bool replaces_versions(const struct worker *worker)
{
	return worker->options->if_changed == S3ONCE_CHANGED_REPLACE ||
	       worker->options->if_changed == S3ONCE_CHANGED_REPLACE_ANY;
}

/* Refuses a file whose key belongs to another source. The sentence offers no replacement unless
 * that was asked for already, since the object may be the only copy of the other source's file. */
static enum step refuse_source(struct worker *worker, struct file *file)
{
	struct text sources = TEXT(700);
	add_sources(worker, file, &sources);
	note_newer(worker, file);
	file_report(worker, file, S3ONCE_EVENT_CHANGED,
		PROBLEM("two sources have this key, and the object stays: %s; give each source its "
			"own prefix%s",
			text_string(&sources),
			replaces_versions(worker)
				? ", or, if this folder has taken the place of the other one, "
				  "--if-changed=replace-any replaces the object"
				: ""));
	text_clear(&sources);
	return STEP_SETTLED;
}

/* Warns, once in a run, if the version to be replaced has another source. */
static void warn_of_origin(struct worker *worker, const struct file *file, enum origin origin)
{
	struct text sources = TEXT(700);
	if (origin == ORIGIN_THIS || atomic_exchange(&worker->run->reported_sources, true))
		return;
	add_sources(worker, file, &sources);
	report_run(worker->report, S3ONCE_EVENT_WARNING,
		PROBLEM("%s replaces another source's version, and perhaps further files do: %s; "
			"%s",
			quote(file->candidate->path).text, text_string(&sources),
			origin == ORIGIN_OTHER_HOST
				? "unless both hosts share these files, give each its own prefix"
				: "if both are in use, give each source its own prefix"));
	text_clear(&sources);
}

/* Checks whether the file may replace the object of the done version. Returns NEXT with the etag of
 * that object in file->replaced_etag, or the step to take instead. */
static enum step check_replacement(struct worker *worker, struct file *file)
{
	const enum origin origin = origin_of_done(worker, file);
	/* With replace-any, the object is replaced whoever has uploaded it. */
	const bool must_be_ours = worker->options->if_changed == S3ONCE_CHANGED_REPLACE;
	if (must_be_ours && origin == ORIGIN_OTHER_FOLDER)
		return refuse_source(worker, file);
	memcpy(file->replaced_etag, file->seen_mark.done.etag, sizeof file->replaced_etag);
	if (must_be_ours) {
		const enum step step = look_whether_ours(worker, file);
		if (step != STEP_NEXT)
			return step;
	}
	warn_of_origin(worker, file, origin);
	return STEP_NEXT;
}

/* Whether the run, without --rotated, takes a name such as "app.log.1" for the name of one file. It
 * is the name of another log after each rotation. */
static bool has_reused_name(const struct worker *worker, const struct candidate *c)
{
	struct family family;
	if (worker->options->rotated)
		return false;
	family_of(worker->run->files.families, path_name(c->relative), &family);
	return family.form == FAMILY_COUNTED;
}

/* Reports that the file has changed and that its object stays. */
static enum step refuse_changed(struct worker *worker, struct file *file)
{
	const enum origin origin = origin_of_done(worker, file);
	const struct key_template *template = worker->run->files.key_template;
	const bool may_be_another_file = template && !key_template_names_folder(template);
	struct text sources = TEXT(700);
	if (origin == ORIGIN_OTHER_FOLDER)
		return refuse_source(worker, file);
	note_newer(worker, file);
	if (origin == ORIGIN_OTHER_HOST) {
		add_sources(worker, file, &sources);
		text_add(&sources,
			": unless both hosts share this file, give each its own prefix; ");
	}
	file_report(worker, file, S3ONCE_EVENT_CHANGED,
		has_reused_name(worker, file->candidate)
			? PROBLEM("changed since it was uploaded; %sits name is that of a rotated "
				  "log, which belongs to another log after each rotation: with "
				  "--rotated each log is uploaded once; the object stays",
				  text_string(&sources))
			: PROBLEM("changed since it was uploaded; %s%s--if-changed=replace "
				  "overwrites the object in S3, unless another program wrote it; "
				  "--if-changed=skip keeps it",
				  text_string(&sources),
				  may_be_another_file
					  ? "if a file of another folder had this key, put {path} "
					    "into the template of --key; "
					  : ""));
	text_clear(&sources);
	return STEP_SETTLED;
}

/* Reports that the file cannot replace its earlier content, which is in an object under a different
 * key: a replacement would leave that object behind. */
static enum step refuse_other_suffix(struct worker *worker, struct file *file)
{
	const struct candidate *c = file->candidate;
	file_report(worker, file, S3ONCE_EVENT_CHANGED,
		PROBLEM("changed since it was uploaded as %s%s; it cannot take that "
			"object's place as %s: use the same --compress as before, put "
			"{id} into the template of the keys, or remove the object and "
			"its mark",
			quote(c->key).text, file->seen_mark.done.suffix,
			quote(c->object_key).text));
	return STEP_SETTLED;
}

/* Reports that S3 keeps the earlier version, as --if-changed=skip asks. With --reupload, returns
 * NEXT if the object of that version is gone, so that there is nothing to keep. */
static enum step keep_earlier(struct worker *worker, struct file *file)
{
	if (worker->options->reupload) {
		bool is_there = false;
		const enum step step = find_done_object(worker, file, &is_there);
		if (step != STEP_NEXT)
			return step;
		if (!is_there)
			return STEP_NEXT;
	}
	note_newer(worker, file);
	file_report(worker, file, S3ONCE_EVENT_OUTDATED,
		PROBLEM("changed since it was uploaded; S3 keeps the earlier version"));
	return STEP_LEFT_OUT;
}

/* Refuses a pipe whose key has the output of another command. Returns NEXT if --reupload has found
 * that the object is gone. */
static enum step refuse_producer(struct worker *worker, struct file *file)
{
	bool is_there = true;
	if (worker->options->reupload) {
		const enum step step = find_done_object(worker, file, &is_there);
		if (step != STEP_NEXT)
			return step;
	}
	if (!is_there)
		return STEP_NEXT;
	file_report(worker, file, S3ONCE_EVENT_CHANGED,
		PROBLEM("the object under this key was made by another command, so this one was "
			"not started; give each command its own key"));
	return STEP_SETTLED;
}

/* Whether the file would become an object with the key that the done version has. It has another
 * key if the two are compressed differently. */
static bool has_done_key(const struct file *file)
{
	return strcmp(file->seen_mark.done.suffix, file->candidate->suffix) == 0;
}

/* Whether this run may replace the done version of the mark. With `replace`, that of another folder
 * stays. */
static bool may_replace_done(const struct worker *worker, const struct file *file)
{
	const bool must_be_ours = worker->options->if_changed == S3ONCE_CHANGED_REPLACE;
	return replaces_versions(worker) && has_done_key(file) &&
	       !(must_be_ours && origin_of_done(worker, file) == ORIGIN_OTHER_FOLDER);
}

/* Handles a mark by which other content of this file is done, according to --if-changed. Returns
 * NEXT if the object is to be replaced, with its etag in file->replaced_etag. Also returns NEXT if
 * --reupload has found that the object which was to be kept is gone.
 *
 * A file that is reported as CHANGED counts as failed, and its turn ends with SETTLED. One whose
 * change is skipped as the user asked (OUTDATED) does not, and its turn ends with LEFT_OUT. */
static enum step handle_changed(struct worker *worker, struct file *file)
{
	if (file->candidate->is_piped)
		return refuse_producer(worker, file);
	switch (worker->options->if_changed) {
	case S3ONCE_CHANGED_REPLACE:
	case S3ONCE_CHANGED_REPLACE_ANY:
		return has_done_key(file) ? check_replacement(worker, file)
					  : refuse_other_suffix(worker, file);
	case S3ONCE_CHANGED_SKIP:
		return keep_earlier(worker, file);
	case S3ONCE_CHANGED_FAIL:
		break;
	}
	return refuse_changed(worker, file);
}

/* Handles a mark by which this version is done, by size and mtime or by the id of the content.
 * Returns SETTLED if nothing is left to do. If the mark notes a newer version, the note is removed,
 * since the file is again the uploaded version.
 *
 * Returns NEXT if the file is to be sent nevertheless: by --reupload, or since --compare-content
 * has found other content and the object is to be replaced. */
static enum step handle_done(struct worker *worker, struct file *file)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	/* This run has uploaded or adopted the file in an earlier turn. file_settle() reports that
	 * in place of SKIPPED. */
	if (file_was_done_here(worker, file))
		return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
	if (worker->options->compare_content) {
		const enum proof done =
			compare_done_content(worker, file, &file->seen_mark.done, &problem);
		if (run_is_over(worker->run)) /* which may have ended the comparison */
			return STEP_OVER;
		/* If the file has changed, the bytes may come from two versions, and prove
		 * nothing. */
		const int error = body_check_unchanged(file->fd, &file->state);
		if (error)
			return file_handle_read_error(worker, file, error);
		if (done == PROOF_UNKNOWN)
			return file_fail(worker, file, &problem);
		if (done == PROOF_NO)
			return handle_changed(worker, file);
	}
	if (worker->options->reupload)
		return STEP_NEXT;
	if (file->seen_mark.has_newer && !worker->run->dry &&
		mark_refresh(&ref, &file->seen_mark, file->mtime_ns, &problem) != OUTCOME_OK)
		log_info("the note of a newer version stays for now: %s", problem.text);
	return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
}

/* Compares the content with all values that the mark has of the done version, and sets *ret to the
 * result. These are the checksum and, if the object was not compressed, also the etag, if that is
 * an MD5, and the checksum of the parts' checksums. file_compare_content() compares with an object,
 * so an object is made of these values. Returns NEXT, or the step to take instead. */
static enum step compare_with_mark(struct worker *worker, struct file *file, enum proof *ret)
{
	const struct version *done = &file->seen_mark.done;
	struct s3_object object = {.size = done->size,
		.sum = mark_sum_parse(done->sum),
		.etag_is_opaque = s3_supports(worker->server, S3_ETAG_IS_MD5) == S3_NO};
	/* The other values of a compressed object are of its bytes, and not of the content. */
	const bool was_compressed = done->object_bytes != 0;
	if (was_compressed)
		return file_compare_content(worker, file, &object, ret);
	object.meta.part_bytes = done->part_bytes;
	/* Without a checksum, only the etag can be compared, even if it is not known to be an
	 * MD5. */
	if (done->etag_is_md5 || !*object.sum.text)
		memcpy(object.etag, done->etag, sizeof object.etag);
	const enum step step = file_compare_content(worker, file, &object, ret);
	if (step != STEP_NEXT || *ret != PROOF_YES || !*done->parts_sum)
		return step;
	/* An object has only one checksum, so the second one takes another comparison. */
	object.sum = mark_sum_parse(done->parts_sum);
	return file_compare_content(worker, file, &object, ret);
}

/* Handles a mark by which a version of the same size is done, with another mtime, or with an mtime
 * that another content of the file has also had. The content decides. */
static enum step handle_touched(struct worker *worker, struct file *file)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	struct problem problem = {0};
	enum proof proof;
	const enum step step = compare_with_mark(worker, file, &proof);
	if (step != STEP_NEXT)
		return step;
	if (proof != PROOF_YES)
		return handle_changed(worker, file);
	if (worker->options->reupload)
		return STEP_NEXT;
	if (worker->run->dry)
		return file_settle(worker, file, S3ONCE_EVENT_SKIPPED);
	enum outcome o = mark_refresh(&ref, &file->seen_mark, file->mtime_ns, &problem);
	if (o == OUTCOME_OK)
		return file_settle(worker, file, S3ONCE_EVENT_REFRESHED);
	if (o == OUTCOME_REFUSED) { /* it has changed: it is judged again after OPEN */
		mark_clear(&file->seen_mark);
		o = mark_get(&ref, &file->seen_mark, &problem);
	}
	return o == OUTCOME_OK ? STEP_OPEN : file_handle_marks_outcome(worker, file, o, &problem);
}

/* Reports that another uploader holds the file. `is_waited_for`: the file is retried later in this
 * run. */
static void report_held(struct worker *worker, struct file *file, bool is_waited_for)
{
	struct report_file about = file_about(file);
	struct session_info holder;
	char since[24] = "an unknown time";
	struct text source = TEXT(300);
	about.is_waited_for = is_waited_for;
	session_recall(worker->run->session, file->seen_mark.session, &holder);
	if (holder.started_s > 0)
		clock_format_iso(holder.started_s, since);
	text_add_escaped_string(&source, mark_source(&file->seen_mark)
						 ? mark_source(&file->seen_mark)
						 : "an unknown source");
	report_file(worker->report, S3ONCE_EVENT_HELD, &about,
		PROBLEM("held by another uploader (%s, running since %s, session %s, from %s)%s; "
			"once it sends no more heartbeats, its files are free after %" PRIu64
			" s at most",
			quote(holder.owner).text, since, quote(file->seen_mark.session).text,
			text_string(&source),
			worker->options->no_wait ? "; run again, or without --no-wait" : "",
			(uint64_t)(holder.lease_ns / NS_PER_S)));
	text_clear(&source);
	file->candidate->held_was_reported = true;
}

/* Handles a mark that says claimed, or that cannot be read. Returns NEXT if the claim is stale, or
 * of this very session. Otherwise a running uploader holds the file. Then the file is retried
 * later, or left to that uploader (--no-wait, dry run). */
static enum step handle_claimed(struct worker *worker, struct file *file)
{
	struct session *session = worker->run->session;
	struct candidate *c = file->candidate;
	struct problem problem = {0};
	uint64_t again_ns;
	bool over;
	/* Waiting would not help here, and taking the mark over might undo changes of a later
	 * version of s3once. */
	if (file->seen_mark.state == MARK_UNREADABLE)
		return file_fail(worker, file,
			PROBLEM("its mark is damaged, or was written by a later version of s3once: "
				"use that version, or delete the mark's row (s3once status shows "
				"it)"));
	/* The claim is of this session, from an earlier turn of the file or from a request of this
	 * run that arrived late. No other worker relies on it, since only this one has the file. */
	if (strcmp(file->seen_mark.session, session_id(session)) == 0)
		return STEP_NEXT;
	const enum outcome o = session_end_if_over(
		session, worker->marks, file->seen_mark.session, &over, &again_ns, &problem);
	if (o != OUTCOME_OK)
		return file_handle_marks_outcome(worker, file, o, &problem);
	if (over)
		return STEP_NEXT;
	const bool waits = !worker->options->no_wait && !worker->run->dry;
	candidate_note_held(c);
	/* A file that is not waited for is reported at once: this is its last turn. */
	if (candidate_held_report_is_due(c) || !waits)
		report_held(worker, file, waits);
	/* That uploader is probably at work on the other files of the block, too. */
	queue_put_back_block(worker->run->queue, c->block_serial);
	return waits ? file_put_back(worker, file, again_ns) : STEP_SETTLED;
}

/* Decides the next step by file->seen_mark. Returns NEXT if the mark may be claimed or taken over.
 * A done mark is trusted only once S3 has shown that this is the bucket of the marks. */
static enum step judge_seen_mark(struct worker *worker, struct file *file)
{
	const struct file_version opened = file_opened_version(worker, file);
	if (file->seen_mark.state == MARK_DONE &&
		!bucket_ensure_trusted(worker->run, worker->marks))
		return STEP_OVER;
	switch (mark_says(&file->seen_mark, &opened)) {
	case SAYS_DONE:
		return handle_done(worker, file);
	case SAYS_COMPARE:
		return handle_touched(worker, file);
	case SAYS_CHANGED:
		return handle_changed(worker, file);
	case SAYS_CLAIMED:
		return handle_claimed(worker, file);
	case SAYS_FREE:
		break;
	}
	return STEP_NEXT;
}

/* Claims the mark, which must not have changed since file->seen_mark. Returns NEXT once it is
 * claimed. Returns OPEN if another uploader was first: then file->seen_mark is that uploader's
 * mark. That uploader may have sent a later version than the one that is open. */
static enum step try_claim(struct worker *worker, struct file *file)
{
	struct mark present = {0};
	struct problem problem = {0};
	struct mark_ref ref = file_mark_ref(worker, file);
	ref.limits = worker->visible_limits; /* the request ends when our lease has run out */
	/* A claim of a done mark is synced before anything is sent. Otherwise a power failure could
	 * undo both this claim and the change of the file that caused it. The file would then be
	 * the earlier version again, and done according to the mark, although its object was
	 * replaced. */
	ref.may_sync_later = file->seen_mark.state != MARK_DONE;
	const enum outcome o =
		file->claiming
			? mark_end_claim(file->claiming, &file->claim, &present, &problem)
			: mark_claim(&ref, &file->seen_mark, &file->claim, &present, &problem);
	file->claiming = NULL;
	if (o == OUTCOME_OK) {
		if (file->candidate->opens_block) /* the other files of its block wait for this */
			queue_release_rest(worker->run->queue, file->candidate);
		return STEP_NEXT;
	}
	if (o != OUTCOME_REFUSED)
		return file_handle_marks_outcome(worker, file, o, &problem);
	mark_clear(&file->seen_mark);
	file->seen_mark = present;
	atomic_fetch_add(&worker->report->claims_refused, 1);
	/* The other uploader is probably at work on the rest of the block, too. */
	queue_put_back_block(worker->run->queue, file->candidate->block_serial);
	return STEP_OPEN;
}

enum step claim_file(struct worker *worker, struct file *file)
{
	/* The session of the run has to begin before the first claim. A file that could not be
	 * opened needs no session. */
	if (!run_ensure_begun(worker->run, worker->marks))
		return STEP_OVER;
	/* Others have written the mark again and again, so this file gives way for a second. */
	if (++file->judgings > JUDGINGS_MAX)
		return file_put_back(worker, file, clock_boot_ns() + NS_PER_S);
	/* If the mark records an upload and has a done version, the upload was begun to replace
	 * that version. This run resumes the upload if it may replace the version, too. */
	const bool may_resume_replacement = file->seen_mark.upload.is_open &&
					    file->seen_mark.has_done &&
					    may_replace_done(worker, file);
	file->replaced_etag[0] = '\0';
	if (may_resume_replacement)
		memcpy(file->replaced_etag, file->seen_mark.done.etag, sizeof file->replaced_etag);
	const enum step step = judge_seen_mark(worker, file);
	if (step != STEP_NEXT)
		return step;
	if (may_resume_replacement)
		warn_of_origin(worker, file, origin_of_done(worker, file));
	if (worker->run->dry) {
		mark_pretend_claim(&file->seen_mark, &file->claim);
		return STEP_NEXT;
	}
	return run_wait_for_lease(worker->run) ? try_claim(worker, file) : STEP_OVER;
}
