/* Whether an object that was compressed on its way has the content of a file. */
#include "base/text.h"
#include "upload/file/file_encoding.h"
#include <stdlib.h>
#include <string.h>

/* NEXT: *ret says whether the object's file had this content, as far as it says. */
static enum step compare_metadata(
	struct worker *worker, struct file *file, const struct s3_meta *meta, bool *ret)
{
	char hex[2 * sizeof file->sums.sha256 + 1];
	*ret = meta->content_bytes == file->state.size;
	if (!*ret || !*meta->content)
		return STEP_NEXT;
	const enum step step = file_sum(worker, file, DIGEST_SHA256);
	if (step != STEP_NEXT)
		return step;
	hex_encode(file->sums.sha256, sizeof file->sums.sha256, hex);
	*ret = strcmp(hex, meta->content) == 0;
	return STEP_NEXT;
}

static enum step compare_whole(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	unsigned parts;
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	const struct range range = file_range(file, encoding, NULL, 0);
	struct sums sums;
	const int error = file_digest(worker, file, kinds, &range, &sums);
	if (error)
		return file_read_error(worker, file, error);
	file->stored = sums;
	file_note_whole(file);
	*ret = proof_whole(&sums, object, true);
	return STEP_NEXT;
}

static enum step compare_parts(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct plan *plan, const struct s3_object *object,
	enum proof *ret)
{
	unsigned parts;
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	struct sums *sums = NULL;
	const enum step step =
		file_sum_parts(worker, file, &(struct sending){encoding, plan, kinds}, &sums);
	if (step != STEP_NEXT)
		return step;
	file->stored = sums_combine(sums, plan->n_parts);
	file_note_parts(file, sums, plan, object->sum.kind);
	*ret = proof_parts(sums, plan->n_parts, object, true);
	free(sums);
	return STEP_NEXT;
}

/* The encoding of this build makes the object's bytes again, if that is what it was made with. */
static enum step compare_bytes(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	struct plan plan;
	const struct s3_meta *meta = &object->meta;
	const uint64_t part_bytes = *meta->encoding ? meta->part_bytes : 0;
	/* The mark has a checksum of the content, too. */
	enum step step =
		file->summed ? STEP_NEXT : file_sum(worker, file, DIGEST_OF(checksum_default()));
	if (step != STEP_NEXT)
		return step;
	if (!part_bytes)
		return compare_whole(worker, file, encoding, object, ret);
	if (plan_resume(file->state.size, part_bytes, &plan))
		return STEP_NEXT;
	return compare_parts(worker, file, encoding, &plan, object, ret);
}

enum step file_compare_encoded(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	const struct s3_meta *meta = &object->meta;
	const struct encoding *encoding = file->encoding;
	struct encoding theirs;
	*ret = PROOF_NO;
	if (*meta->encoding) {
		bool is_same;
		const enum step step = compare_metadata(worker, file, meta, &is_same);
		if (step != STEP_NEXT || !is_same)
			return step;
		encoding = encoding_named(meta->encoding, &theirs) ? NULL : &theirs;
	}
	if (encoding)
		return compare_bytes(worker, file, encoding, object, ret);
	*ret = proof_encoded(object, worker->run->space.settings.table_id, file->state.mtime_ns,
		file->state.ctime_ns);
	if (*ret != PROOF_YES)
		return STEP_NEXT;
	file_note_whole(file);
	file->sent_part_bytes = meta->part_bytes;
	file->stored = (struct sums){.bytes = object->size};
	return file->summed ? STEP_NEXT : file_sum(worker, file, DIGEST_OF(checksum_default()));
}
