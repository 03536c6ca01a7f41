/* Compares an object with the content of a file. The file is read to compute the checksums that the
 * server has of the object. If the object was made by compressing, the file is compressed again for
 * that. look.c, claim.c and the proof of an upload call these functions. They write nothing. The
 * checksums that they have computed stay in struct file, for its mark. */
#include "upload/file/file.h"
#include "upload/file/file_open.h"
#include "upload/file/worker.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the digests to compute for the file: those that the proof needs, and one for the mark, of
 * a kind whose value for the whole content can be combined from the values of the parts. */
static unsigned digests_for(const struct s3_object *object)
{
	unsigned n_parts;
	return proof_needs(object, &n_parts) | DIGEST_OF(checksum_default());
}

/* Returns the number of parts whose checksums the server shows. 0: they are of the whole. */
static unsigned parts_shown(const struct s3_object *object)
{
	unsigned n_parts;
	proof_needs(object, &n_parts);
	return n_parts;
}

/* Compares the object with the file as a whole. `encoding` is the object's encoding, or NULL. The
 * file's sums stay in struct file. */
static enum step compare_whole(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	const enum step step = file_compute_sums(worker, file, encoding, digests_for(object));
	if (step != STEP_NEXT)
		return step;
	/* The object was sent whole, or the size of its parts is unknown. */
	file->sent_part_bytes = 0;
	file->parts_sum[0] = '\0';
	*ret = proof_whole(encoding ? &file->object_sums : &file->content_sums, object, SIZE_KNOWN);
	return STEP_NEXT;
}

/* Whether the size of the parts in a plan is that of the object's parts, or only a guess. */
enum part_size { PART_SIZE_KNOWN, PART_SIZE_GUESSED };

/* Compares the object with the file, part by part. If the size of the parts is a guess, the result
 * is NO only if a checksum of the whole differs, and UNKNOWN if only the guess may be wrong. The
 * file's sums and, if it may fit, the size of the parts stay in struct file. */
static enum step compare_parts(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct plan *plan, enum part_size part_size,
	const struct s3_object *object, enum proof *ret)
{
	const unsigned kinds = digests_for(object);
	struct sums *sums = calloc(plan->n_parts, sizeof *sums);
	int error = sums ? 0 : -ENOMEM;
	for (unsigned i = 0; !error && i < plan->n_parts; i++) {
		const struct range range = file_part_range(file, encoding, plan, i);
		error = file_digest(worker, file, kinds, &range, &sums[i]);
	}
	if (error) {
		free(sums);
		return file_handle_read_error(worker, file, error);
	}
	const struct sums whole = sums_combine(sums, plan->n_parts);
	*ret = proof_parts(sums, plan->n_parts, object, SIZE_KNOWN);
	/* If a guessed size of the parts does not fit, the content may still be the same. So the
	 * object is compared again, without its etag: only a checksum of the whole counts. */
	const bool is_bad_guess = part_size == PART_SIZE_GUESSED && *ret == PROOF_NO;
	if (is_bad_guess) {
		const struct s3_object no_etag = {.size = object->size, .sum = object->sum};
		*ret = proof_whole(&whole, &no_etag, SIZE_KNOWN);
	}
	if (encoding)
		file->object_sums = whole;
	else
		file->content_sums = whole;
	file->sent_part_bytes = is_bad_guess ? 0 : plan->part_bytes; /* 0: unknown */
	mark_parts_sum_of(sums, plan->n_parts, object->sum.kind, file->parts_sum);
	free(sums);
	return STEP_NEXT;
}

/* The sizes of parts in which an object of n_parts parts may have been sent. */
struct part_sizes {
	uint64_t sizes[PLAN_GUESSES_MAX];
	size_t n;
	enum part_size kind; /* PART_SIZE_KNOWN: there is only one */
};

/* Finds the sizes of parts to try. An object of s3once has the size in its metadata. For others,
 * some servers return the size of the first part. Otherwise the sizes are guessed. */
static void find_part_sizes(struct worker *worker, const struct file *file,
	const struct s3_object *object, unsigned n_parts, struct part_sizes *ret)
{
	struct plan plan;
	uint64_t bytes = object->meta.part_bytes;
	*ret = (struct part_sizes){.n = 1, .kind = PART_SIZE_KNOWN};
	if (n_parts == 1) { /* the part is the whole object */
		ret->sizes[0] = object->size;
		return;
	}
	if (!bytes && s3_head_first_part(worker->s3, &file->target, &worker->limits, &bytes) !=
			      OUTCOME_OK)
		bytes = 0;
	const bool is_known = !plan_resume(object->size, bytes, &plan) && plan.n_parts == n_parts;
	if (is_known) {
		ret->sizes[0] = bytes;
		return;
	}
	ret->kind = PART_SIZE_GUESSED;
	ret->n = plan_guesses(object->size, n_parts, worker->options->part_bytes, ret->sizes);
}

enum step file_compare_content(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	const unsigned n_parts = parts_shown(object);
	*ret = PROOF_NO;
	if (object->size != file->state.size)
		return STEP_NEXT;
	if (!n_parts)
		return compare_whole(worker, file, NULL, object, ret);
	struct part_sizes part_sizes;
	find_part_sizes(worker, file, object, n_parts, &part_sizes);
	enum step step = STEP_NEXT;
	*ret = PROOF_UNKNOWN;
	/* Each size that another program may have used is tried, until one fits or the checksum of
	 * the whole decides. */
	for (size_t i = 0; step == STEP_NEXT && *ret == PROOF_UNKNOWN && i < part_sizes.n; i++) {
		const struct plan plan = {part_sizes.sizes[i], n_parts};
		step = compare_parts(worker, file, NULL, &plan, part_sizes.kind, object, ret);
	}
	/* The parts have proven nothing. Some servers show a checksum of the whole of an object in
	 * parts, even SHA-1 or SHA-256, which cannot be combined from those of the parts. So the
	 * file is read once more as a whole. */
	if (step == STEP_NEXT && *ret == PROOF_UNKNOWN && proof_has_whole_sum(object))
		return compare_whole(worker, file, NULL, object, ret);
	return step;
}

/* Sets *ret_may_be to whether the file may have the content that the object was made of. The
 * metadata has the size of that content, and mostly its SHA-256. Returns NEXT, or the step to take
 * instead. */
static enum step compare_noted_content(
	struct worker *worker, struct file *file, const struct s3_meta *meta, bool *ret_may_be)
{
	char hex[2 * sizeof file->content_sums.sha256 + 1];
	*ret_may_be = meta->content_bytes == file->state.size;
	if (!*ret_may_be || !*meta->content_id)
		return STEP_NEXT;
	const enum step step = file_compute_sums(worker, file, NULL, DIGEST_SHA256);
	if (step != STEP_NEXT)
		return step;
	hex_encode(file->content_sums.sha256, sizeof file->content_sums.sha256, hex);
	*ret_may_be = strcmp(hex, meta->content_id) == 0;
	return STEP_NEXT;
}

/* Compresses the file by an encoding, and compares the bytes with those of the object. If the file
 * cannot be cut into parts as the object was, *ret stays as the caller set it. */
static enum step compare_recompressed(struct worker *worker, struct file *file,
	const struct encoding *encoding, const struct s3_object *object, enum proof *ret)
{
	const struct s3_meta *meta = &object->meta;
	struct plan plan;
	if (!*meta->encoding || !meta->part_bytes) /* sent whole, or not by s3once */
		return compare_whole(worker, file, encoding, object, ret);
	if (plan_resume(file->state.size, meta->part_bytes, &plan))
		return STEP_NEXT;
	return compare_parts(worker, file, encoding, &plan, PART_SIZE_KNOWN, object, ret);
}

/* Takes the values of the mark from the metadata of the object, whose bytes prove nothing. */
static void take_values_of_metadata(struct file *file, const struct s3_object *object)
{
	file->parts_sum[0] = '\0';
	file->sent_part_bytes = object->meta.part_bytes;
	file->object_sums = (struct sums){.bytes = object->size};
}

/* Compares an object that s3once has compressed according to its metadata, or any object of a file
 * that would be compressed during its upload. The file is compressed again by the encoding of the
 * object, so that the bytes can be compared. The metadata decide (`by_metadata`) where this build
 * does not have that encoding. They also decide where the bytes differ, since a compressor that
 * names the same version may make other bytes on another CPU. */
static enum step compare_compressed_object(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	const struct s3_meta *meta = &object->meta;
	const struct encoding *encoding = file->encoding; /* NULL: this build does not have it */
	struct encoding theirs;
	bool may_be_same = true;
	enum step step = STEP_NEXT;
	*ret = PROOF_NO;
	if (*meta->encoding) {
		step = compare_noted_content(worker, file, meta, &may_be_same);
		encoding = encoding_named(meta->encoding, &theirs) == 0 ? &theirs : NULL;
	}
	if (step != STEP_NEXT || !may_be_same)
		return step;
	const enum proof by_metadata = proof_encoded(
		object, worker->run->space.settings.table_id, file->mtime_ns, file->state.ctime_ns);
	if (!encoding && by_metadata != PROOF_YES) {
		*ret = by_metadata;
		return STEP_NEXT;
	}
	/* If the object is proven, the mark also gets a checksum of the content. */
	if (!file->content_sums.kinds)
		step = file_compute_sums(worker, file, NULL, DIGEST_OF(checksum_default()));
	if (step == STEP_NEXT && encoding)
		step = compare_recompressed(worker, file, encoding, object, ret);
	if (step != STEP_NEXT || *ret == PROOF_YES)
		return step;
	/* The bytes differ, or were not compared. */
	if (*meta->encoding && by_metadata == PROOF_YES) {
		take_values_of_metadata(file, object);
		*ret = PROOF_YES;
	}
	return STEP_NEXT;
}

enum step file_compare(
	struct worker *worker, struct file *file, const struct s3_object *object, enum proof *ret)
{
	file->object_sums = (struct sums){0};
	*ret = PROOF_NO;
	if (file->fd < 0) /* the input of the pipe has not come yet */
		return STEP_NEXT;
	return (*object->meta.encoding || file->encoding)
		       ? compare_compressed_object(worker, file, object, ret)
		       : file_compare_content(worker, file, object, ret);
}
