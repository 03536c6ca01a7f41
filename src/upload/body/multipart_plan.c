/* The arithmetic of cutting a file into parts. file_open.c, multipart_resume.c and compare.c use
 * it. Pure. */
#include "upload/body/multipart_plan.h"
#include <errno.h>
#include <stdbool.h>

#define MIB (1ULL << 20)

/* Returns the number of parts into which a file of this size is cut. The caller makes sure
 * that it fits an unsigned. */
static unsigned parts_of(uint64_t size, uint64_t part_bytes)
{
	return (unsigned)((size + part_bytes - 1) / part_bytes);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Returns the least part size. Smaller parts would be more than PARTS_MAX. */
static uint64_t min_part_bytes(uint64_t size)
{
	return (size + PARTS_MAX - 1) / PARTS_MAX;
}

int plan_upload(uint64_t size, uint64_t wanted, struct plan *ret)
{
	if (size > OBJECT_BYTES_MAX)
		return -EFBIG;
	const uint64_t min_bytes = min_part_bytes(size);
	const uint64_t part = wanted >= min_bytes ? wanted : round_up(min_bytes, MIB);
	*ret = (struct plan){.part_bytes = part, .n_parts = size > part ? parts_of(size, part) : 0};
	return 0;
}

/* Returns the number of bytes of a file that surely fit into a part. Compressing makes
 * incompressible content larger, but by less than a 128th and 4 KiB. */
static uint64_t surely_fits(uint64_t part_bytes)
{
	return part_bytes - part_bytes / 128 - 4096;
}

void plan_equal_parts(uint64_t size, uint64_t wanted, uint64_t *part_bytes, struct plan *ret)
{
	const uint64_t min_bytes = min_part_bytes(size);
	/* A 64th and up to a MiB more than `min_bytes` is enough for what surely_fits() takes off.
	 */
	if (surely_fits(*part_bytes) < min_bytes)
		*part_bytes = (min_bytes + min_bytes / 64 + MIB) / MIB * MIB;
	const uint64_t sure = surely_fits(*part_bytes), range = wanted > sure ? wanted : sure;
	*ret = (struct plan){
		.part_bytes = range, .n_parts = size > range ? parts_of(size, range) : 0};
}

int plan_resume(uint64_t size, uint64_t part_bytes, struct plan *ret)
{
	const bool is_part_size = part_bytes && part_bytes <= PART_BYTES_MAX;
	if (!is_part_size || size <= part_bytes) /* a file of one part is sent whole */
		return -EINVAL;
	/* The number of parts is compared before parts_of() cuts it to an unsigned. */
	if ((size + part_bytes - 1) / part_bytes > PARTS_MAX)
		return -EINVAL;
	*ret = (struct plan){.part_bytes = part_bytes, .n_parts = parts_of(size, part_bytes)};
	return 0;
}

/* Adds a part size to the n in `ret`, and returns their new number. A size is skipped if it already
 * exists, or does not cut the file into n_parts. */
static size_t add_guess(uint64_t size, unsigned n_parts, uint64_t guess, uint64_t *ret, size_t n)
{
	struct plan plan;
	for (size_t i = 0; i < n; i++)
		if (ret[i] == guess)
			return n;
	if (plan_resume(size, guess, &plan) || plan.n_parts != n_parts)
		return n;
	ret[n] = guess;
	return n + 1;
}

size_t plan_guesses(
	uint64_t size, unsigned n_parts, uint64_t wanted, uint64_t ret[static PLAN_GUESSES_MAX])
{
	/* The part sizes of AWS's command line, SDKs and transfer managers, rclone, s5cmd, s3cmd,
	 * mc and Cyberduck, and of AWS's console. */
	static const uint64_t usual[] = {8 * MIB, 5 * MIB, 16 * MIB, 50 * MIB, 15 * MIB, 10 * MIB,
		64 * MIB, 32 * MIB, 20 * MIB, 25 * MIB, 100 * MIB, 128 * MIB, 256 * MIB, 512 * MIB,
		1024 * MIB, 17179870};
	/* Programs that would need too many parts take the least part size, rounded up to a
	 * multiple of one of these: rclone, mc, SDKs. */
	static const uint64_t units[] = {MIB, 16 * MIB, 64 * MIB, 1};
	const uint64_t min_bytes = min_part_bytes(size);
	/* If no object can hold the file, the plan stays 0, which add_guess() skips. */
	struct plan plan = {0};
	plan_upload(size, wanted, &plan);
	size_t n = add_guess(size, n_parts, plan.part_bytes, ret, 0);
	n = add_guess(size, n_parts, wanted, ret, n);
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		n = add_guess(size, n_parts, usual[i], ret, n);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		n = add_guess(size, n_parts, round_up(min_bytes, units[i]), ret, n);
	return n;
}

uint64_t plan_offset(const struct plan *plan, unsigned index)
{
	return index * plan->part_bytes;
}

uint64_t plan_bytes(const struct plan *plan, uint64_t size, unsigned index)
{
	uint64_t left = size - plan_offset(plan, index);
	return left < plan->part_bytes ? left : plan->part_bytes;
}
