/* Whether an object has the content of a file. The file is read to compute the checksums that are
 * known of the object. */
#include "upload/file/file_encoding.h"
#include <stdlib.h>

/* The size of the parts that the object was sent in: it says so if it is ours, and some servers
 * tell it. 0: not known. */
static uint64_t known_part_bytes(struct worker *worker, const struct file *file,
	const struct s3_object *object, unsigned n_parts)
{
	const struct call_limits limits = run_limits(worker->run);
	struct plan plan;
	uint64_t bytes = object->meta.part_bytes;
	if (!bytes && s3_head_first_part(worker->s3, &file->target, &limits, &bytes) != OUTCOME_OK)
		return 0;
	return plan_resume(object->size, bytes, &plan) || plan.n_parts != n_parts ? 0 : bytes;
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
	const struct plan *plan, bool is_guess, const struct s3_object *object, enum proof *ret)
{
	struct sums *sums = NULL;
	enum step step = file_sum_parts(worker, file, &(struct sending){NULL, plan, kinds}, &sums);
	if (step != STEP_NEXT)
		return step;
	*ret = proof_parts(sums, plan->n_parts, object, true);
	/* A guessed part size that does not fit says nothing of the content. */
	if (*ret == PROOF_NO && is_guess) {
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

/* Where nobody tells the size of the parts, each size that another program may have used is tried
 * until one fits, or the checksum of the whole decides. */
static enum step compare_in_parts(struct worker *worker, struct file *file, unsigned kinds,
	unsigned n_parts, const struct s3_object *object, enum proof *ret)
{
	uint64_t sizes[PLAN_GUESSES_MAX] = {object->size};
	size_t n = 1;
	bool is_guess = false;
	*ret = PROOF_MISSING;
	if (n_parts > 1) {
		sizes[0] = known_part_bytes(worker, file, object, n_parts);
		is_guess = !sizes[0];
	}
	if (is_guess)
		n = plan_guesses(object->size, n_parts, worker->run->options.part_bytes, sizes);
	enum step step = STEP_NEXT;
	for (size_t i = 0; step == STEP_NEXT && *ret == PROOF_MISSING && i < n; i++) {
		const struct plan plan = {sizes[i], n_parts};
		step = compare_parts(worker, file, kinds, &plan, is_guess, object, ret);
	}
	return step;
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
	enum step step = compare_in_parts(worker, file, kinds, parts, object, ret);
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
