/* Step 4 of docs/protocol.md: checks the object under the key of a file, or under its mark's key
 * with another suffix of compression. src/marks/judge_object.c judges the object. This file sends
 * the requests, and acts upon the judgement. worker.c calls look_at_object() for a file in doubt,
 * and the steps that send call it right before a write. They call look_after_failed_write() after a
 * write that was not successful. Nothing of the file is sent here. */
#include "upload/file/look.h"
#include "aws/retry.h"
#include "base/log.h"
#include "scan/key/rotated_name.h"
#include "upload/file/file_done.h"
#include "upload/file/file_open.h"
#include "upload/file/multipart.h"
#include "upload/file/worker.h"
#include <stdio.h>
#include <string.h>

/* Collects the arguments of judge() for an object. `proof` is left UNKNOWN, for the
 * caller to set if it compares the object with the file. Borrows the file and the object. */
static struct evidence evidence_of(
	const struct worker *worker, const struct file *file, const struct s3_object *object)
{
	const struct candidate *c = file->candidate;
	return (struct evidence){.object = object,
		.file = file_opened_version(worker, file),
		/* An object that was not compressed during its upload names no suffix in its
		 * metadata. Whether the input of a pipe is compressed is unknown before it has
		 * come. */
		.suffix = (file->encoding || c->is_piped) ? c->suffix : "",
		.table_id = worker->run->space.settings.table_id,
		.claim = &file->claim,
		.replaced_etag = file->replaced_etag,
		.replaces_any = worker->options->if_changed == S3ONCE_CHANGED_REPLACE_ANY};
}

/* Returns the version of an object that is an earlier version of the file. */
static struct version earlier_version_of(
	const struct worker *worker, const struct file *file, const struct s3_object *object)
{
	struct version version = file_version_of(worker, object);
	/* Only the mark of a file that is known by its content has an id of the content. */
	if (*file->candidate->content_id)
		memcpy(version.content_id, object->meta.content_id, sizeof version.content_id);
	if (judge_is_done_version(&file->claim, object))
		version = file->claim.before.done;
	snprintf(version.suffix, sizeof version.suffix, "%s", file->candidate->suffix);
	/* The content of the object differs from that of the file. If the size and the time are the
	 * same all the same, the file was rewritten, and its time was put back. From now on only
	 * the content can decide. */
	if (version.size == file->state.size && version.mtime_ns == file->mtime_ns)
		version.mtime_is_shared = true;
	return version;
}

/* Makes file->seen_mark the mark that file_mark_done() has just written with this version. The
 * claim has ended with that. */
static void set_seen_done(
	const struct worker *worker, struct file *file, const struct version *version)
{
	mark_clear(&file->seen_mark);
	file->seen_mark = (struct mark){.state = MARK_DONE, .has_done = true, .done = *version};
	file->seen_mark.source = file->claim.before.source; /* moved, not copied */
	file->claim.before.source = NULL;
	snprintf(file->seen_mark.session, sizeof file->seen_mark.session, "%s",
		session_id(worker->run->session));
	memcpy(file->seen_mark.claim, file->claim.id, sizeof file->seen_mark.claim);
	claim_clear(&file->claim);
}

/* Marks the version of an object done that is an earlier version of the file: one that was sent for
 * this mark and is not marked yet, or the one that was done before the claim. That ends the claim,
 * and the file is then judged like any file that has changed. Returns OPEN, or the step to take
 * instead. */
static enum step mark_earlier_version(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	const struct version version = earlier_version_of(worker, file, object);
	/* If each comparison has another result, the object may be taken for an earlier version
	 * again and again in this turn. So the number of restarts is limited. */
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(worker, file,
			PROBLEM("the object in S3 is taken for an earlier version again and "
				"again: compare it with the file"));
	enum step step = multipart_abort(worker, file);
	if (step == STEP_NEXT)
		step = file_mark_done(worker, file, &version, file->claim.before.source);
	if (step != STEP_NEXT)
		return step;
	set_seen_done(worker, file, &version);
	return STEP_OPEN;
}

/* Adopts an object that has the content of the file. It counts as uploaded if this very run has
 * sent it and the reply was lost. */
static enum step adopt_object(
	struct worker *worker, struct file *file, const struct evidence *evidence)
{
	const bool names_claim = strcmp(evidence->object->meta.claim_id, file->claim.id) == 0;
	const bool is_sent = judge_is_ours(evidence) && (file->candidate->was_sent || names_claim);
	const enum step step = multipart_abort(worker, file);
	if (step != STEP_NEXT) /* the abort is tried again in the next turn of the file */
		return step;
	file->candidate->was_sent = is_sent;
	return file_finish(worker, file, evidence->object,
		is_sent ? S3ONCE_EVENT_UPLOADED : S3ONCE_EVENT_ADOPTED);
}

/* Fails a file whose object has the file's content according to its metadata, but was not proven to
 * have it. So the object is neither adopted nor replaced. */
static enum step fail_unproven(struct worker *worker, struct file *file, const char *key)
{
	return file_fail(worker, file,
		PROBLEM("the object %s says that it has this content, and nothing shows that its "
			"bytes are the ones that were sent; compare it with the file, and remove "
			"one of the two",
			quote(key).text));
}

/* Handles an object with other bytes than were sent, which are no earlier version. Returns SEND, so
 * that the file is sent again in place of exactly this object, or SETTLED. */
static enum step replace_damaged(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	if (++file->damages > FILE_DAMAGES_MAX)
		return file_fail(worker, file,
			PROBLEM("S3 holds other bytes than were sent, although the file was sent "
				"%u times: the network, a proxy or the server damages it; the "
				"object is not a version of this file",
				FILE_DAMAGES_MAX));
	report_run(worker->report, S3ONCE_EVENT_WARNING,
		PROBLEM("%s: S3 holds other bytes than were sent; the upload was damaged on the "
			"way or by the server, and the file is sent again in its place",
			quote(file->candidate->path).text));
	memcpy(file->replaced_etag, object->etag, sizeof file->replaced_etag);
	return STEP_SEND;
}

/* Returns a sentence about who uploaded an object, which these marks have not uploaded for this
 * file. */
static const char *describe_owner(const struct worker *worker, const struct s3_object *object)
{
	const struct store_settings *settings = &worker->run->space.settings;
	const char *table = object->meta.table_id;
	if (!*table)
		return "s3once did not upload it";
	if (strcmp(table, settings->table_id) == 0)
		return object->meta.written_for == S3_WRITTEN_FOR_ANOTHER
			       ? "it is a copy of an object that s3once uploaded under another key"
			       : "s3once uploaded it for another file, whose key has the suffix of "
				 "--compress behind it, or for a version that no mark knows any more";
	return settings_had_id(settings, table)
		       ? "it was uploaded before these marks came to this machine, which may be a "
			 "copy of the one that uploaded it"
		       : "another s3once, whose marks are not these, uploaded it";
}

/* Fails a file whose key has an object that stays. If --reupload has claimed a mark that said done
 * of this very version, another client has overwritten its object. Then the mark is set to done
 * again: verify compares the object with it, and reports that it differs. */
static enum step fail_conflict(
	struct worker *worker, struct file *file, const struct problem *problem)
{
	const struct file_version now = file_opened_version(worker, file);
	const struct mark_ref ref = file_mark_ref(worker, file);
	const struct mark *before = &file->claim.before;
	struct problem second = {0};
	const bool was_done = before->state == MARK_DONE && mark_says(before, &now) != SAYS_CHANGED;
	const bool was_to_be_replaced = *file->replaced_etag != 0;
	const bool restores_mark = was_done && !was_to_be_replaced && !worker->run->dry;
	if (!restores_mark)
		return file_fail(worker, file, problem);
	const enum step step = multipart_abort(worker, file);
	if (step != STEP_NEXT)
		return step;
	if (mark_give_back(&ref, &file->claim, &second) != OUTCOME_OK)
		log_info("the mark could not be set to done again: %s", second.text);
	file_report(worker, file, S3ONCE_EVENT_FAILED, problem);
	return STEP_SETTLED;
}

/* Lets the file replace exactly the object that was just seen, since --if-changed=replace-any asks
 * for it. Returns SEND, or the step to take instead. */
static enum step replace_foreign(
	struct worker *worker, struct file *file, const struct s3_object *object)
{
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(
			worker, file, PROBLEM("another client writes its object again and again"));
	if (!atomic_exchange(&worker->run->reported_foreign, true))
		report_run(worker->report, S3ONCE_EVENT_WARNING,
			PROBLEM("%s replaces an object of other content, and perhaps further files "
				"do (--if-changed=replace-any): %s",
				quote(file->candidate->path).text, describe_owner(worker, object)));
	memcpy(file->replaced_etag, object->etag, sizeof file->replaced_etag);
	return STEP_SEND;
}

/* Whether another client has overwritten the object that a mark of this file said to be done. */
static bool is_overwritten(const struct file *file, const struct evidence *evidence)
{
	const bool is_of_s3once = *evidence->object->meta.table_id != 0;
	return evidence->proof != PROOF_UNKNOWN && file->claim.before.has_done && !is_of_s3once;
}

/* Returns why the object does not count as the file. */
static const char *conflict_reason(
	const struct worker *worker, const struct file *file, const struct evidence *evidence)
{
	const struct s3_object *object = evidence->object;
	if (evidence->proof == PROOF_UNKNOWN)
		return proof_etag_parts(object->etag) > 1
			       ? "it was uploaded in parts of a size that s3once cannot find out, "
				 "so that its content cannot be compared; name that size with "
				 "--part-size, or make sure that it is this file"
			       : "the server returns nothing that shows whether its content is the "
				 "same";
	return is_overwritten(file, evidence) ? "another client has overwritten what was uploaded"
					      : describe_owner(worker, object);
}

/* Returns what to do about the object. It or the file may be the only copy, so this does not advise
 * to remove one. */
static const char *conflict_advice(
	const struct worker *worker, const struct file *file, const struct evidence *evidence)
{
	const char *table = evidence->object->meta.table_id; /* "": the object is not of s3once */
	if (is_overwritten(file, evidence))
		return "compare it with the file; --reupload --if-changed=replace-any uploads the "
		       "file in its place";
	if (file_is_unread_pipe(file))
		return "if it is to stay, choose another key";
	if (*table && strcmp(table, worker->run->space.settings.table_id) != 0)
		return "give each host its own prefix";
	return "compare it with the file, and give one of them another key";
}

/* Handles an object of another uploader under the key of the file. With --if-changed=replace-any,
 * the file takes its place if the contents are known to differ. Otherwise the file fails. */
static enum step handle_conflict(
	struct worker *worker, struct file *file, const struct evidence *evidence)
{
	const struct s3_object *object = evidence->object;
	/* Without an etag, the write could not be limited to exactly this object. */
	const bool may_replace =
		evidence->replaces_any && evidence->proof == PROOF_NO && *object->etag;
	struct problem problem = {0};
	if (may_replace)
		return replace_foreign(worker, file, object);
	const char *how = evidence->proof == PROOF_UNKNOWN ? "exists with this size"
			  : file_is_unread_pipe(file)      ? "exists with unknown content"
							   : "exists with other content";
	problem_set(&problem, "the object %s %s: %s; %s", quote(file->candidate->object_key).text,
		how, conflict_reason(worker, file, evidence),
		conflict_advice(worker, file, evidence));
	return fail_conflict(worker, file, &problem);
}

/* Judges the object, and acts on it by the table of docs/protocol.md. */
static enum step act_on_object(
	struct worker *worker, struct file *file, const struct evidence *evidence)
{
	switch (judge(evidence)) {
	case JUDGED_THE_FILE:
		return adopt_object(worker, file, evidence);
	case JUDGED_THE_CONTENT:
		return file_finish_by_metadata(
			worker, file, evidence->object, file->candidate->suffix);
	case JUDGED_REPLACED: /* the version to be replaced */
		return STEP_NEXT;
	case JUDGED_DAMAGED:
		return replace_damaged(worker, file, evidence->object);
	case JUDGED_EARLIER:
		return mark_earlier_version(worker, file, evidence->object);
	case JUDGED_UNPROVEN:
		return fail_unproven(worker, file, file->candidate->object_key);
	case JUDGED_FOREIGN:
		break;
	}
	return handle_conflict(worker, file, evidence);
}

/* The consequence if S3 refuses a HEAD of the object: an error, or the file is sent all the same.
 */
enum head_refusal { REFUSAL_FAILS, REFUSAL_IGNORED };

/* Handles a HEAD that was answered 400, which has no body with a reason. Credentials may have
 * expired, the object may be encrypted with another key (SSE-C), or the server refuses something
 * else. Other requests are sent, whose replies have a reason. Returns NEXT if a refusal is ignored
 * and only the HEAD itself is invalid: the request that sends the file will show the reason. */
static enum step handle_refused_head(struct worker *worker, struct file *file,
	enum head_refusal refusal, struct problem *problem)
{
	struct problem why = {0};
	enum outcome o = s3_get_first_byte(worker->s3, &file->target, &worker->limits, &why);
	const bool has_reason = o != OUTCOME_OK && o != OUTCOME_ABSENT && *why.code;
	if (has_reason) {
		*problem = why;
	} else {
		const bool concerns_all =
			s3_find_bucket_fault(worker->s3, &worker->limits, problem);
		o = concerns_all ? OUTCOME_SETUP : OUTCOME_INVALID;
	}
	if (o != OUTCOME_INVALID)
		return file_handle_outcome(worker, file, o, problem);
	if (*s3_headers_key_md5(file->target.headers))
		problem_prefix(
			problem, "the existing object is not encrypted with this sse-c-key-file");
	else if (refusal == REFUSAL_IGNORED)
		return STEP_NEXT;
	return file_handle_outcome(worker, file, o, problem);
}

/* Handles a HEAD that was denied, whose reply has no reason. A GET may have one: the signature of
 * this key is refused, or only HEAD is. */
static enum step handle_denied_head(
	struct worker *worker, struct file *file, struct problem *problem)
{
	struct problem why = {0};
	const enum outcome o = s3_get_first_byte(worker->s3, &file->target, &worker->limits, &why);
	if (o == OUTCOME_DENIED && strcmp(why.code, SIGNATURE_REFUSED) == 0)
		return file_handle_outcome(worker, file, OUTCOME_DENIED, &why);
	/* A 404 with a code is S3's own, so that this GET was allowed. */
	const bool get_is_allowed = o == OUTCOME_OK || (o == OUTCOME_ABSENT && *why.code);
	if (get_is_allowed)
		s3_explain_refused_head(file->target.key, problem);
	else
		problem_prefix(problem,
			"cannot find out whether the object exists already: allow s3:GetObject "
			"and s3:ListBucket");
	return file_handle_outcome(worker, file, OUTCOME_DENIED, problem);
}

/* Handles a HEAD that has shown no object. Returns NEXT if there is none, or if S3 refuses to show
 * it and the refusal is ignored. */
static enum step handle_no_object(struct worker *worker, struct file *file,
	enum head_refusal refusal, enum outcome o, struct problem *problem)
{
	if (o == OUTCOME_ABSENT) {
		file->replaced_etag[0] = '\0';
		return STEP_NEXT;
	}
	if (o == OUTCOME_INVALID)
		return handle_refused_head(worker, file, refusal, problem);
	if (o != OUTCOME_DENIED)
		return file_handle_outcome(worker, file, o, problem);
	return refusal == REFUSAL_IGNORED ? STEP_NEXT : handle_denied_head(worker, file, problem);
}

/* Whether the server honours the condition of the request that will make the file visible. Which
 * request that is depends on the size, which is unknown of the input of a pipe that has not come
 * yet. */
static bool write_is_conditional(const struct worker *worker, const struct file *file)
{
	const bool put_is = !file_needs_look(worker, file, S3_PUT_CONDITION);
	const bool complete_is = !file_needs_look(worker, file, S3_COMPLETE_CONDITION);
	if (file_is_unread_pipe(file))
		return put_is && complete_is;
	return file->plan.n_parts ? complete_is : put_is;
}

enum step look_at_object(struct worker *worker, struct file *file, enum look look)
{
	const bool may_be_refused = look == LOOK_OPTIONAL && write_is_conditional(worker, file);
	const enum head_refusal refusal = may_be_refused ? REFUSAL_IGNORED : REFUSAL_FAILS;
	struct s3_object object = {0};
	struct problem problem = {0};
	const enum outcome o =
		s3_head_object(worker->s3, &file->target, &worker->limits, &object, &problem);
	if (o != OUTCOME_OK)
		return handle_no_object(worker, file, refusal, o, &problem);
	struct evidence evidence = evidence_of(worker, file, &object);
	const enum step step = file_compare(worker, file, &object, &evidence.proof);
	return step == STEP_NEXT ? act_on_object(worker, file, &evidence) : step;
}

enum step look_whether_ours(struct worker *worker, struct file *file)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	/* The mark is not claimed yet. */
	const struct claim as_seen = {.before = file->seen_mark};
	const enum outcome o =
		s3_head_object(worker->s3, &file->target, &worker->limits, &object, &problem);
	if (o == OUTCOME_ABSENT)
		return STEP_NEXT;
	if (o == OUTCOME_DENIED) {
		problem_prefix(&problem,
			"the object is not replaced, since S3 does not show whose it is: allow "
			"s3:GetObject and s3:ListBucket");
		return file_handle_outcome(worker, file, o, &problem);
	}
	if (o != OUTCOME_OK)
		return handle_no_object(worker, file, REFUSAL_FAILS, o, &problem);
	struct evidence evidence = evidence_of(worker, file, &object);
	evidence.claim = &as_seen;
	/* The condition protects an object with another etag, which is judged after the refusal. */
	if (strcmp(object.etag, file->replaced_etag) != 0 || judge_is_ours(&evidence))
		return STEP_NEXT;
	file_report(worker, file, S3ONCE_EVENT_CHANGED,
		PROBLEM("changed since its content was found in S3, and the object stays: %s; give "
			"this source its own prefix, or, if the object is this source's, "
			"--if-changed=replace-any replaces it",
			describe_owner(worker, &object)));
	return STEP_SETTLED;
}

enum step look_before_write(struct worker *worker, struct file *file)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	const enum outcome o =
		s3_head_object(worker->s3, &file->target, &worker->limits, &object, &problem);
	/* This HEAD must not be refused, since nothing else protects an existing object. */
	if (o != OUTCOME_OK)
		return handle_no_object(worker, file, REFUSAL_FAILS, o, &problem);
	const struct evidence evidence = evidence_of(worker, file, &object);
	if (judge(&evidence) == JUDGED_REPLACED)
		return STEP_NEXT;
	/* The check that follows may find no object, if the servers behind one endpoint differ. */
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(worker, file,
			PROBLEM("S3 shows its object, and then no object, again and again"));
	return STEP_LOOK;
}

enum step look_after_failed_write(struct worker *worker, struct file *file,
	const struct s3_condition *condition, enum outcome outcome, const struct problem *problem)
{
	const bool has_if_match = condition->if_match != NULL;
	const bool had_condition = has_if_match || condition->if_none_match;
	/* The object that If-Match names may have been deleted meanwhile, which is ABSENT. With
	 * REFUSED an object exists, perhaps from a request of this run whose reply was lost. */
	const bool is_condition_refused =
		outcome == OUTCOME_REFUSED || (outcome == OUTCOME_ABSENT && has_if_match);
	struct problem explained = *problem;
	if (outcome == OUTCOME_DENIED && has_if_match)
		problem_prefix(&explained,
			"the object is not replaced: S3 wants s3:GetObject beside s3:PutObject to "
			"compare its etag (If-Match), and a policy may let objects only be made");
	if (outcome == OUTCOME_UNSUPPORTED && had_condition && !file->is_unconditional) {
		file->is_unconditional = true; /* a HEAD right before the write replaces it */
		return STEP_SEND;
	}
	if (!is_condition_refused)
		return file_handle_outcome(worker, file, outcome, &explained);
	const enum step step = look_at_object(worker, file, LOOK_REQUIRED);
	if (step != STEP_NEXT)
		return step;
	/* The server refused the condition, although S3 holds no conflicting object. If it still
	 * has the object in If-Match (look_at_object() clears file->replaced_etag if not), the
	 * server reads If-Match differently: some require an etag without quotes. Or another object
	 * was there for a moment. Then the server is wrongly taken for one without If-Match, which
	 * costs only a HEAD before each write that replaces something. */
	if (has_if_match && *file->replaced_etag)
		s3_set_support(worker->server, S3_IF_MATCH, S3_NO);
	if (++file->restarts > FILE_RESTARTS_MAX)
		return file_fail(worker, file,
			PROBLEM("the server refuses the upload, but HEAD finds no object"));
	return STEP_SEND;
}

enum step prove_by_head(struct worker *worker, struct file *file)
{
	struct s3_object object = {0};
	struct problem problem = {0};
	const enum outcome o =
		s3_head_object(worker->s3, &file->target, &worker->limits, &object, &problem);
	if (o == OUTCOME_DENIED)
		problem_prefix(
			&problem, "uploaded, but it cannot be verified without s3:GetObject");
	if (o == OUTCOME_ABSENT)
		return file_fail_missing(worker, file);
	if (o != OUTCOME_OK)
		return file_handle_outcome(worker, file, o, &problem);
	struct evidence evidence = evidence_of(worker, file, &object);
	const enum step step = file_compare(worker, file, &object, &evidence.proof);
	if (step != STEP_NEXT)
		return step;
	if (evidence.proof == PROOF_YES)
		return file_finish(worker, file, &object, S3ONCE_EVENT_UPLOADED);
	if (evidence.proof == PROOF_NO) {
		/* The object that file->replaced_etag names was replaced. The object that is there
		 * now is another one, even if it has the same etag, as after the same damage. */
		file->replaced_etag[0] = '\0';
		return act_on_object(worker, file, &evidence);
	}
	return file_fail(worker, file,
		PROBLEM("uploaded, but it cannot be verified: the server returns neither a "
			"checksum nor an MD5 of its content"));
}

/* Checks whether S3 holds the content under `key`, which is the mark's key with another suffix of
 * compression, such as "app.log-20261130.gz". If so, adopts the object. Returns NEXT if there is no
 * object, or one that does not prevent sending the file, or the step to take instead. The object is
 * judged by its metadata, since the file is not compared with it. */
static enum step look_under_key(struct worker *worker, struct file *file, const char *key)
{
	const struct candidate *c = file->candidate;
	const char *suffix = key + strlen(c->key);
	struct s3_object object = {0};
	struct problem problem = {0};
	struct s3_target target = file->target;
	target.key = key;
	const enum outcome o =
		s3_head_object(worker->s3, &target, &worker->limits, &object, &problem);
	if (o == OUTCOME_DENIED && !atomic_exchange(&worker->run->reported_hidden, true))
		report_run(worker->report, S3ONCE_EVENT_NOTE,
			PROBLEM("S3 does not show whether a rotated log is there already with "
				"another compression: if its mark was lost, it is uploaded once "
				"more; allow s3:GetObject and s3:ListBucket"));
	/* These outcomes do not prevent sending the file: the next request is about its own key,
	 * and shows any error. */
	if (o == OUTCOME_ABSENT || o == OUTCOME_DENIED || o == OUTCOME_INVALID)
		return STEP_NEXT;
	if (o != OUTCOME_OK)
		return file_handle_outcome(worker, file, o, &problem);
	struct evidence evidence = evidence_of(worker, file, &object);
	evidence.suffix = suffix;
	/* Input of a pipe that has not come yet has no content to compare. judge() takes such an
	 * object for the output by its key and suffix alone. */
	if (!c->is_piped && strcmp(object.meta.content_id, c->content_id) != 0)
		return STEP_NEXT;
	switch (judge(&evidence)) {
	case JUDGED_THE_CONTENT:
		return file_finish_by_metadata(worker, file, &object, suffix);
	case JUDGED_UNPROVEN:
		return fail_unproven(worker, file, key);
	case JUDGED_DAMAGED: /* the file has another key, so it cannot replace this */
		report_run(worker->report, S3ONCE_EVENT_WARNING,
			PROBLEM("%s: S3 holds other bytes under the key %s than were sent; the "
				"upload was damaged on the way or by the server, and the file is "
				"sent again as %s; remove the damaged object",
				quote(c->path).text, quote(key).text, quote(c->object_key).text));
		return STEP_NEXT;
	default:
		return STEP_NEXT;
	}
}

/* Whether S3 may hold the content of the file under its key with another suffix of compression, in
 * an object that look_under_key() can recognise. `was_begun`: an uploader may have sent this
 * version before. */
static bool may_be_elsewhere(const struct file *file, bool was_begun)
{
	const struct candidate *c = file->candidate;
	/* S3 holds nothing yet of the input of a pipe, or of a piece of a log that this run has
	 * cut, unless the mark shows an earlier beginning. */
	if ((c->is_piped || c->is_new) && !was_begun)
		return false;
	/* A log is recognised by the id of its content. Input of a pipe that has not come yet (fd
	 * is -1) is recognised by its key alone. If a done version is to be replaced, its mark has
	 * named the object (file->replaced_etag), and no other is checked. */
	const bool is_known = c->is_piped ? file->fd < 0 : *c->content_id != '\0';
	return is_known && !*file->replaced_etag;
}

/* Whether S3 may hold an object under the key of the file, by what is known of the bucket before
 * the file is sent. If nothing was asked, the write will show an object that is there after all,
 * and only a dry run, which writes nothing, has to assume one. */
static bool may_be_in_bucket(const struct candidate *c, bool dry)
{
	unsigned suffix = FAMILY_SUFFIXES;
	switch (c->in_bucket) {
	case BUCKET_UNLISTED:
		return true;
	case BUCKET_LISTED: /* listed_suffixes has a bit for each suffix, in family_suffix() */
		while (suffix && strcmp(family_suffix(suffix), c->suffix) != 0)
			suffix--;
		return (c->listed_suffixes >> suffix & 1) != 0;
	case BUCKET_UNASKED:
		break;
	}
	return dry;
}

/* Whether to check the file's own key before the file is read, although no uploader is known to
 * have sent this version. If the server may ignore conditions, a HEAD comes right before the write
 * anyway. A dry run has no write. */
static bool wants_optional_look(struct worker *worker, const struct file *file)
{
	const bool dry = worker->run->dry;
	const bool looks_later = !dry && file_needs_look(worker, file, S3_PUT_CONDITION);
	const bool replaces = *file->replaced_etag != 0; /* the mark has named the object */
	return !replaces && !looks_later && may_be_in_bucket(file->candidate, dry);
}

/* Checks all keys that the file may have in S3, except its own. Marks may be lost, and a run that
 * was killed may have stored the log, so that S3 may hold it under any suffix that it was
 * compressed with at any time. The first suffix, "", is that of a log that was not compressed yet.
 * Returns NEXT if nothing was found, or the step to take instead. */
static enum step look_under_other_suffixes(struct worker *worker, struct file *file)
{
	const struct candidate *c = file->candidate;
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	for (size_t i = 0; i < 1 + FAMILY_SUFFIXES; i++) {
		const char *suffix = family_suffix(i);
		if (strcmp(suffix, c->suffix) == 0) /* the file's own key is checked later */
			continue;
		/* A key that is too long cannot exist. */
		if (snprintf(key, sizeof key, "%s%s", c->key, suffix) >= (int)sizeof key)
			continue;
		const enum step step = look_under_key(worker, file, key);
		if (step != STEP_NEXT)
			return step;
	}
	return STEP_NEXT;
}

enum step look_elsewhere(struct worker *worker, struct file *file)
{
	/* Whether an uploader may have sent this version before. It may if the mark that was taken
	 * over was not done. With --reupload it may whatever that mark said, since versions that
	 * are done are sent again. Without --reupload, a mark that said done is taken over only to
	 * replace the done version, whose object file->replaced_etag names. */
	const bool was_begun = file->claim.taken_over &&
			       (file->claim.before.state != MARK_DONE || worker->options->reupload);
	if (may_be_elsewhere(file, was_begun)) {
		const enum step step = look_under_other_suffixes(worker, file);
		if (step != STEP_NEXT)
			return step;
	}
	if (was_begun)
		return STEP_LOOK; /* the file's own key is checked next */
	return wants_optional_look(worker, file) ? look_at_object(worker, file, LOOK_OPTIONAL)
						 : STEP_NEXT;
}
