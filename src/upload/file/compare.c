/* Whether an object has the content of a file. The file is read to compute the checksums that are
 * known of the object. */
#include "upload/file/file_encoding.h"
#include <errno.h>
#include <stdlib.h>

/* Which part size an object's etag or checksum was made with: ours by its metadata, else the one
 * this file would get. */
static int plan_of(const struct worker *worker, const struct file *file,
	const struct s3_object *object, unsigned n_parts, struct plan *ret)
{
	if (n_parts == 1) {
		*ret = (struct plan){file->state.size, 1};
		return 0;
	}
	const uint64_t sizes[] = {object->meta.part_bytes, file->plan.part_bytes,
		worker->run->options.part_bytes, 8 << 20, 5 << 20};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (!plan_resume(file->state.size, sizes[i], ret) && ret->n_parts == n_parts)
			return 0;
	return -ENOENT;
}

static enum step compare_whole(struct worker *worker, struct file *file, unsigned kinds,
	const struct s3_object *object, enum proof *ret)
{
	enum step step = file_sum(worker, file, kinds);
	if (step != STEP_NEXT)
		return step;
	file_note_whole(file);
	*ret = proof_whole(&file->sums, object, true);
	return STEP_NEXT;
}

static enum step compare_parts(struct worker *worker, struct file *file, unsigned kinds,
	const struct plan *plan, const struct s3_object *object, enum proof *ret)
{
	struct sums *sums = NULL;
	enum step step = file_sum_parts(worker, file, &(struct sending){NULL, plan, kinds}, &sums);
	if (step != STEP_NEXT)
		return step;
	*ret = proof_parts(sums, plan->n_parts, object, true);
	/* A guessed part size that does not fit says nothing of the content. */
	if (*ret == PROOF_NO && plan->n_parts > 1 && plan->part_bytes != object->meta.part_bytes) {
		const struct s3_object untold = {.size = object->size, .sum = object->sum};
		const struct sums whole = sums_combine(sums, plan->n_parts);
		*ret = proof_whole(&whole, &untold, true);
	}
	file->sums = sums_combine(sums, plan->n_parts);
	file->summed = true;
	file_note_parts(file, sums, plan, object->sum.kind);
	free(sums);
	return STEP_NEXT;
}

enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	unsigned parts;
	/* One that combines too, since that of the whole goes into the mark. */
	const unsigned kinds = proof_needs(object, &parts) | DIGEST_OF(checksum_default());
	*ret = PROOF_NO;
	if (object->size != file->state.size)
		return STEP_NEXT;
	if (!parts)
		return compare_whole(worker, file, kinds, object, ret);
	struct plan plan;
	enum step step = STEP_NEXT;
	*ret = PROOF_MISSING;
	if (!plan_of(worker, file, object, parts, &plan))
		step = compare_parts(worker, file, kinds, &plan, object, ret);
	/* Of an object in parts some servers tell a checksum of the whole that does not combine. */
	if (step == STEP_NEXT && *ret == PROOF_MISSING && proof_tells_whole(object))
		step = compare_whole(worker, file, kinds, object, ret);
	return step;
}

enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	file->stored = (struct sums){0};
	return *object->meta.encoding || file->encoding
		       ? file_compare_encoded(worker, file, object, ret)
		       : file_compare_content(worker, file, object, ret);
}
