#include "upload/body/multipart_plan.h"
#include <errno.h>

#define MIB (1ULL << 20)

static unsigned parts_of(uint64_t size, uint64_t part_bytes)
{
	return (unsigned)((size + part_bytes - 1) / part_bytes);
}

int plan_upload(uint64_t size, uint64_t wanted, struct plan *ret)
{
	if (size > OBJECT_BYTES_MAX)
		return -EFBIG;
	uint64_t least = (size + PARTS_MAX - 1) / PARTS_MAX;
	uint64_t part = wanted >= least ? wanted : (least + MIB - 1) / MIB * MIB;
	*ret = (struct plan){.part_bytes = part, .n_parts = size > part ? parts_of(size, part) : 0};
	return 0;
}

int plan_resume(uint64_t size, uint64_t part_bytes, struct plan *ret)
{
	if (!part_bytes || part_bytes > PART_BYTES_MAX || size <= part_bytes ||
		(size + part_bytes - 1) / part_bytes > PARTS_MAX)
		return -EINVAL;
	*ret = (struct plan){.part_bytes = part_bytes, .n_parts = parts_of(size, part_bytes)};
	return 0;
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
