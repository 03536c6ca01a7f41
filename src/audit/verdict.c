#include "audit/verdict.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

bool verdict_of_listing(const struct mark_row *row, uint64_t size, const char *etag)
{
	return size == row->size && *row->etag && strcmp(etag, row->etag) == 0;
}

static bool is_of_parts(const struct s3_sum *sum)
{
	return strchr(sum->text, '-') != NULL;
}

/* Whether both are of the same kind, of the whole content or of parts alike. */
static bool are_alike(const struct s3_sum *a, const struct s3_sum *b)
{
	return *a->text && *b->text && a->kind == b->kind && is_of_parts(a) == is_of_parts(b);
}

static enum object_verdict other_sum(const struct mark_row *row, const struct s3_sum *told,
	const struct s3_sum *kept, struct problem *ret_problem)
{
	problem_set(ret_problem, "its content differs: S3 has the %s %s, and %s %s",
		checksum_kinds[told->kind].name, told->text, mark_row_teller(row), kept->text);
	return VERDICT_DIFFERS;
}

enum object_verdict verdict_of_head(
	const struct mark_row *row, const struct s3_object *object, struct problem *ret_problem)
{
	const struct s3_sum sum = mark_sum_told(row->sum);
	const struct s3_sum parts_sum = mark_sum_told(row->parts_sum);
	const struct s3_sum *kept = are_alike(&sum, &object->sum) ? &sum : &parts_sum;
	if (object->size != row->size) {
		problem_set(ret_problem,
			"its size differs: %" PRIu64 " bytes in S3, and %" PRIu64
			" bytes when it was uploaded",
			object->size, row->size);
		return VERDICT_DIFFERS;
	}
	if (are_alike(kept, &object->sum))
		return strcmp(kept->text, object->sum.text) == 0
			       ? VERDICT_SAME
			       : other_sum(row, &object->sum, kept, ret_problem);
	if (*row->etag && strcmp(row->etag, object->etag) == 0)
		return VERDICT_SAME;
	if (*row->etag) {
		problem_set(ret_problem,
			"its etag differs: %s in S3, and %s when it was uploaded; --download "
			"shows whether its content differs, too",
			object->etag, row->etag);
		return VERDICT_OTHER_ETAG;
	}
	problem_set(ret_problem,
		"its size is right, but S3 returns no checksum, and %s has no etag: --download "
		"compares the content",
		mark_row_teller(row));
	return VERDICT_UNTOLD;
}

static bool has_md5(const struct mark_row *row)
{
	return row->etag_is_md5 && strlen(row->etag) == 32;
}

unsigned verdict_digests(const struct mark_row *row)
{
	const struct s3_sum sum = mark_sum_told(row->sum);
	return (*sum.text ? DIGEST_OF(sum.kind) : 0U) | (has_md5(row) ? DIGEST_MD5 : 0U);
}

enum object_verdict verdict_of_bytes(
	const struct mark_row *row, const struct sums *sums, struct problem *ret_problem)
{
	const struct s3_sum kept = mark_sum_told(row->sum);
	struct s3_sum told = {.kind = kept.kind};
	char md5[33];
	if (*kept.text) {
		checksum_to_base64(kept.kind, sums_bytes(sums, kept.kind), told.text);
		if (strcmp(told.text, kept.text) != 0)
			return other_sum(row, &told, &kept, ret_problem);
	}
	if (has_md5(row)) {
		hex_encode(sums->md5, sizeof sums->md5, md5);
		if (strcasecmp(md5, row->etag) != 0) {
			problem_set(ret_problem,
				"its content differs: its MD5 is %s, and was %s when it was "
				"uploaded",
				md5, row->etag);
			return VERDICT_DIFFERS;
		}
	}
	return VERDICT_SAME;
}
