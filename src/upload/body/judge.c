#include "upload/body/judge.h"
#include <string.h>

/* By the etag, and by the checksum where both have the same one. */
bool judge_is_done_version(const struct claim *claim, const struct s3_object *object)
{
	const struct mark *before = &claim->before;
	const struct s3_sum done = mark_sum_told(version_object_sum(&before->done));
	const bool sums_differ = proof_tells_whole(object) && object->sum.kind == done.kind &&
				 *done.text && strcmp(object->sum.text, done.text) != 0;
	return before->has_done && *object->etag && strcmp(before->done.etag, object->etag) == 0 &&
	       version_object_bytes(&before->done) == object->size && !sums_differ;
}

/* A copy that was made in S3 keeps the metadata, but it is not under the key that it was written
 * for. What an earlier version of this program wrote does not name the key: then its claim has to
 * be one that the mark itself has had. */
static bool is_of_this_mark(const struct judged *j)
{
	const struct s3_meta *meta = &j->object->meta;
	if (strcmp(meta->table, j->table) != 0)
		return false;
	if (meta->written_for != S3_WRITTEN_FOR_UNKNOWN)
		return meta->written_for == S3_WRITTEN_FOR_THIS;
	return *meta->claim && (strcmp(meta->claim, j->claim->id) == 0 ||
				       strcmp(meta->claim, j->claim->before.claim) == 0);
}

/* What X was compressed to is not an earlier version of the file X.zst, nor the reverse. Of a log
 * that is known by its content, either may be the same log. */
bool judge_is_ours(const struct judged *j)
{
	const struct s3_meta *meta = &j->object->meta;
	const bool is_alike = strcmp(meta->suffix, j->suffix) == 0;
	const bool is_the_log = *j->content && strcmp(meta->content, j->content) == 0;
	return is_of_this_mark(j) && (is_alike || is_the_log);
}

/* What does not name the sums of what was sent was sent in parts. Under our own claim it was sent
 * of this very version, if that has its size and time. */
static bool was_sent_of_this(const struct judged *j)
{
	const struct s3_meta *meta = &j->object->meta;
	const uint64_t size = *meta->encoding ? meta->content_bytes : j->object->size;
	return !meta->sums.kinds && strcmp(meta->claim, j->claim->id) == 0 &&
	       meta->mtime_ns == j->file->mtime_ns && size == j->file->size;
}

static enum judgement judge_other_bytes(const struct judged *j)
{
	const enum proof sent = proof_sent(j->object);
	const bool says_content = *j->content && strcmp(j->object->meta.content, j->content) == 0;
	const bool is_ours = judge_is_ours(j);
	if (is_ours && (sent == PROOF_NO || (j->proof == PROOF_NO && was_sent_of_this(j))))
		return JUDGED_DAMAGED;
	if (says_content && sent != PROOF_NO)
		return sent == PROOF_YES ? JUDGED_THE_CONTENT : JUDGED_UNPROVEN;
	if ((is_ours && j->proof == PROOF_NO) || judge_is_done_version(j->claim, j->object))
		return JUDGED_EARLIER;
	return JUDGED_FOREIGN;
}

enum judgement judge(const struct judged *j)
{
	if (j->proof == PROOF_YES)
		return JUDGED_THE_FILE;
	if (*j->replaces && strcmp(j->replaces, j->object->etag) == 0)
		return JUDGED_REPLACED;
	return judge_other_bytes(j);
}
