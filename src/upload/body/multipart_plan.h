/* The plan of cutting a file into parts. Pure. Limits: Amazon S3 User Guide, "Multipart upload
 * limits". */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PART_BYTES_DEFAULT (16ULL << 20)
#define PART_BYTES_MIN     (5ULL << 20)
#define PART_BYTES_MAX     (5ULL << 30)
#define PARTS_MAX          10000U
#define OBJECT_BYTES_MAX   (PARTS_MAX * PART_BYTES_MAX)

struct plan {
	uint64_t part_bytes; /* size of all parts but the last */
	unsigned n_parts;    /* 0: the file is sent by one PutObject */
};

/* Plans the upload of a file. Parts have `wanted` bytes, or if these would be more than PARTS_MAX
 * parts, as few whole MiB as are enough. A file that fits one part is sent whole. Returns 0, or
 * -EFBIG for a file that no S3 object can hold. */
int plan_upload(uint64_t size, uint64_t wanted, struct plan *ret);
/* Plans a file whose parts are compressed, and then padded to *part_bytes. The plan cuts the file
 * into ranges, of which each becomes a part. A range has `wanted` bytes, or as many as surely fit
 * into a part, if these are more. If there would be more than PARTS_MAX ranges that surely fit,
 * *part_bytes is raised. n_parts is 0 if one range has the whole file. */
void plan_equal_parts(uint64_t size, uint64_t wanted, uint64_t *part_bytes, struct plan *ret);
/* Plans an upload that was begun with this part size. Returns 0, or -EINVAL if no upload of this
 * file can have it. */
int plan_resume(uint64_t size, uint64_t part_bytes, struct plan *ret);
/* Lists the part sizes in which an unknown uploader may have sent a file as n_parts parts:
 * `wanted`, and those that other programs use. Returns their number. Each is listed once, in the
 * order in which they are to be tried. */
#define PLAN_GUESSES_MAX 24
size_t plan_guesses(
	uint64_t size, unsigned n_parts, uint64_t wanted, uint64_t ret[static PLAN_GUESSES_MAX]);
/* The offset in the file and the length of part `index` (from 0). */
uint64_t plan_offset(const struct plan *plan, unsigned index);
uint64_t plan_bytes(const struct plan *plan, uint64_t size, unsigned index);
