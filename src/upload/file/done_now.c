/* Finds out whether a file is done at this very moment, for `s3once proven` (src/upload/prove.c),
 * and before a file is removed (remove.c). For --compare-content, claim.c uses only the comparison
 * of content. Nothing is written. */
#include "upload/file/done_now.h"
#include "marks/claimant.h"
#include "scan/content/content.h"
#include "upload/file/file_open.h"
#include "upload/file/worker.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns NO with this sentence. */
static enum proof not_done(struct problem *ret, const char *sentence)
{
	return (enum proof)problem_error(ret, PROOF_NO, "%s", sentence);
}

/* Explains an error of reading the file. Only a file that has changed is known not to be done. */
static enum proof explain_unreadable(int error, struct problem *ret)
{
	if (error == -ESTALE)
		return not_done(ret, "it changed while it was read");
	return (enum proof)problem_error(
		ret, PROOF_UNKNOWN, "it cannot be read: %s", strerror(-error));
}

enum proof compare_done_content(struct worker *worker, const struct file *file,
	const struct version *done, struct problem *ret)
{
	const struct recorded recorded = recorded_content(done);
	const struct range range = file_whole_range(file, NULL);
	struct sums sums;
	/* A file that is known by its content may have been compressed since it was sent. Then its
	 * bytes differ, but its content still has the same id. */
	if (*file->candidate->content_id) {
		const struct content content = {
			file->fd, file->state.size, run_poll_is_over, worker->run};
		char now[CONTENT_ID_CHARS + 1];
		const int error = content_id(&content, now, ret);
		if (error) /* after -EFBIG, *ret has a sentence already */
			return error == -EFBIG ? PROOF_UNKNOWN : explain_unreadable(error, ret);
		return strcmp(now, done->content_id) == 0
			       ? PROOF_YES
			       : not_done(ret, "its content is not what was uploaded");
	}
	const int error = file_digest(worker, file, recorded_digests(&recorded), &range, &sums);
	if (error)
		return explain_unreadable(error, ret);
	if (recorded_matches_bytes(&recorded, &sums) == PROOF_YES)
		return PROOF_YES;
	return not_done(ret,
		"its content is not what was uploaded, although its size is: --compare-content "
		"finds such files, and --if-changed says what becomes of their objects");
}

/* Whether the object's etag is the MD5 of the whole file, which is read for that. Also false if the
 * file cannot be read. check_object() uses this if the mark has another etag: some servers return
 * one etag when an upload is completed, and another one later. */
static bool has_md5_of_file(
	struct worker *worker, const struct file *file, const struct s3_object *object)
{
	const struct recorded by_etag = {
		.bytes = object->size, .sum = "", .etag = object->etag, .etag_is_md5 = true};
	const struct range range = file_whole_range(file, NULL);
	struct sums sums;
	return !file_digest(worker, file, DIGEST_MD5, &range, &sums) &&
	       recorded_matches_bytes(&by_etag, &sums) == PROOF_YES;
}

/* Reads the mark, and checks that this version is done, and that it has a checksum or an id to
 * compare the content with. With CONTENT_UNREAD, another modification time does not matter, since
 * the caller will compare the content. *mark becomes the mark that was read. */
static enum proof check_mark(struct worker *worker, const struct file *file,
	enum content_state content, struct mark *mark, struct problem *ret)
{
	const struct mark_ref ref = file_mark_ref(worker, file);
	const struct file_version opened = file_opened_version(worker, file);
	struct claimant claimant;
	mark_clear(mark);
	if (mark_get_with_claimant(&ref, mark, &claimant, ret) != OUTCOME_OK) {
		problem_prefix(ret, "its mark cannot be read");
		return PROOF_UNKNOWN;
	}
	const enum mark_says says = mark_says(mark, &opened);
	if (says == SAYS_FREE)
		return not_done(ret, "no upload of it is marked as done");
	if (mark->state == MARK_UNREADABLE)
		return (enum proof)problem_error(ret, PROOF_UNKNOWN,
			"its mark is damaged, or was written by a later version of s3once");
	if (says == SAYS_CLAIMED)
		return not_done(ret, claimant.is_over ? "its uploader has ended, or sends no more "
							"heartbeats: the next push continues it"
						      : "an uploader has it under way");
	if (says == SAYS_CHANGED || (says == SAYS_COMPARE && content == CONTENT_PROVEN))
		return not_done(ret, "what was uploaded under its key is another version");
	if (!*mark->done.sum && !*opened.content_id)
		return not_done(ret, "its mark has no checksum of its content");
	return PROOF_YES;
}

enum outcome head_done_object(struct worker *worker, const struct file *file,
	const struct version *done, struct done_object *ret, struct problem *ret_problem)
{
	struct s3_target target = file->target;
	snprintf(ret->key, sizeof ret->key, "%s%s", file->candidate->key, done->suffix);
	target.key = ret->key;
	return s3_head_object(worker->s3, &target, &worker->limits, &ret->object, ret_problem);
}

/* Checks that S3 holds the object that was proven when the mark was set. */
static enum proof check_object(struct worker *worker, const struct file *file,
	const struct version *done, struct done_object *ret, struct problem *ret_problem)
{
	const struct recorded recorded = recorded_object(done);
	const enum outcome o = head_done_object(worker, file, done, ret, ret_problem);
	if (o == OUTCOME_ABSENT)
		return not_done(ret_problem,
			"S3 does not hold its object any more, although it was "
			"uploaded; --reupload uploads it again");
	if (o != OUTCOME_OK) {
		problem_prefix(ret_problem, "S3 does not show its object%s",
			o == OUTCOME_DENIED ? "; allow s3:GetObject and s3:ListBucket" : "");
		return PROOF_UNKNOWN;
	}
	if (ret->object.lacks_encryption)
		return not_done(ret_problem, "S3 does not confirm the encryption of its object");
	const enum proof is_same = recorded_matches(&recorded, &ret->object);
	if (is_same == PROOF_YES)
		return PROOF_YES;
	if (is_same == PROOF_NO)
		return not_done(
			ret_problem, "S3 holds another object under its key than the uploaded one");
	/* The mark of an object in parts may have the etag of the reply to Complete, and some
	 * servers return another one later. If the latter is the MD5 of the file, the object is the
	 * same. */
	if (proof_etag_parts(done->etag) && has_md5_of_file(worker, file, &ret->object))
		return PROOF_YES;
	return not_done(ret_problem,
		"S3 holds another object under its key than the uploaded one, or returns "
		"nothing that shows that it is the same");
}

/* Compares the content with the mark. The mark may change while the content is read. So it is read
 * once more after that, and has to have the same content. *mark is the mark before and after. */
static enum proof compare_by_mark(
	struct worker *worker, const struct file *file, struct mark *mark, struct problem *ret)
{
	const struct version compared = mark->done;
	enum proof done = compare_done_content(worker, file, &compared, ret);
	if (done == PROOF_YES)
		done = check_mark(worker, file, CONTENT_UNREAD, mark, ret);
	if (done != PROOF_YES)
		return done;
	const bool is_same = strcmp(compared.sum, mark->done.sum) == 0 &&
			     strcmp(compared.content_id, mark->done.content_id) == 0;
	return is_same ? PROOF_YES : not_done(ret, "its mark changed meanwhile");
}

enum proof prove_done_now(struct worker *worker, struct file *file, enum content_state content,
	struct done_object *ret, struct problem *ret_problem)
{
	struct mark mark = {0};
	*ret = (struct done_object){0};
	enum proof done = check_mark(worker, file, content, &mark, ret_problem);
	if (done == PROOF_YES && content == CONTENT_UNREAD)
		done = compare_by_mark(worker, file, &mark, ret_problem);
	if (done == PROOF_YES)
		done = check_object(worker, file, &mark.done, ret, ret_problem);
	mark_clear(&mark);
	return done;
}

void report_done_object(struct run *run, const struct file *file, enum s3once_event_type event,
	const struct done_object *object, const struct problem *problem)
{
	struct report_file about = file_about(file);
	char checksum[SUM_MAX + S3_SUM_MAX] = "";
	if (object) {
		const struct s3_sum *sum = &object->object.sum;
		if (*sum->text)
			snprintf(checksum, sizeof checksum, "%s:%s", checksum_kinds[sum->kind].name,
				sum->text);
		about.key = object->key;
		about.version_id = object->object.version_id;
		about.etag = object->object.etag;
		about.checksum = checksum;
	}
	report_file(&run->report, event, &about, object ? NULL : problem);
}
