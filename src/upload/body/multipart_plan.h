/* How a file is cut into parts. Pure. Limits: Amazon S3 User Guide, "Multipart upload limits". */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PART_BYTES_DEFAULT (16ULL << 20)
#define PART_BYTES_MIN     (5ULL << 20)
#define PART_BYTES_MAX     (5ULL << 30)
#define PARTS_MAX          10000U
#define OBJECT_BYTES_MAX   (PARTS_MAX * PART_BYTES_MAX)

struct plan {
	uint64_t part_bytes; /* of all parts but the last */
	unsigned n_parts;    /* 0: one PutObject */
};

/* A file that fits one part of `wanted` bytes is sent whole; else the parts grow, in whole MiB,
 * until PARTS_MAX do. Returns 0, or -EFBIG for a file that no S3 object can hold. */
int plan_upload(uint64_t size, uint64_t wanted, struct plan *ret);
/* The plan of a file whose parts are compressed and padded to `part_bytes`: ranges of `wanted`
 * bytes, or of fewer, so that no part is larger if compressing makes nothing smaller. If ranges
 * that small would be too many parts, *part_bytes is raised. n_parts is 0 if one range has all. */
void plan_equal_parts(uint64_t size, uint64_t wanted, uint64_t *part_bytes, struct plan *ret);
/* The plan of an upload that was begun with this part size. -EINVAL if it cannot be. */
int plan_resume(uint64_t size, uint64_t part_bytes, struct plan *ret);
/* The part sizes that an uploader that nobody knows may have sent a file in, if that made so many
 * parts: `wanted`, and what other programs use. Returns how many they are, each once, in the order
 * in which they are to be tried. */
#define PLAN_GUESSES_MAX 24
size_t plan_guesses(
	uint64_t size, unsigned n_parts, uint64_t wanted, uint64_t ret[static PLAN_GUESSES_MAX]);
/* Where part `index` (from 0) begins, and how long it is. */
uint64_t plan_offset(const struct plan *plan, unsigned index);
uint64_t plan_bytes(const struct plan *plan, uint64_t size, unsigned index);
