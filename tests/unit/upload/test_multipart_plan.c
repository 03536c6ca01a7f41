/* How files are cut into parts. */
#include "../check.h"
#include "upload/body/multipart_plan.h"
#include <errno.h>

#define MIB (1ULL << 20)

static const struct {
	uint64_t size, wanted;
	int error;
	uint64_t part_bytes;
	unsigned n_parts;
} cases[] = {
	{0, 16 * MIB, 0, 16 * MIB, 0},
	{1, 16 * MIB, 0, 16 * MIB, 0},
	{16 * MIB, 16 * MIB, 0, 16 * MIB, 0},
	{16 * MIB + 1, 16 * MIB, 0, 16 * MIB, 2},
	{32 * MIB, 16 * MIB, 0, 16 * MIB, 2},
	{32 * MIB + 1, 16 * MIB, 0, 16 * MIB, 3},
	{10000 * 16 * MIB, 16 * MIB, 0, 16 * MIB, 10000},
	{10000 * 16 * MIB + 1, 16 * MIB, 0, 17 * MIB, 9412},
	{10000 * 5 * MIB + 1, 5 * MIB, 0, 6 * MIB, 8334},
	{OBJECT_BYTES_MAX, 5 * MIB, 0, PART_BYTES_MAX, 10000},
	{OBJECT_BYTES_MAX + 1, 5 * MIB, -EFBIG, 0, 0},
};

static void parts_cover_the_file(uint64_t size, const struct plan *plan)
{
	uint64_t at = 0;
	for (unsigned i = 0; i < plan->n_parts; i++) {
		CHECK(plan_offset(plan, i) == at);
		CHECK(plan_bytes(plan, size, i) > 0);
		at += plan_bytes(plan, size, i);
	}
	if (plan->n_parts)
		CHECK_INT((int64_t)at, (int64_t)size);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plan plan = {0};
		CHECK_INT(plan_upload(cases[i].size, cases[i].wanted, &plan), cases[i].error);
		CHECK_INT((int64_t)plan.part_bytes, (int64_t)cases[i].part_bytes);
		CHECK_INT(plan.n_parts, cases[i].n_parts);
		parts_cover_the_file(cases[i].size, &plan);
	}
	struct plan plan;
	CHECK_INT(plan_resume(17 * MIB, 8 * MIB, &plan), 0);
	CHECK_INT(plan.n_parts, 3);
	CHECK_INT(plan_resume(17 * MIB, 0, &plan), -EINVAL);
	CHECK_INT(plan_resume(8 * MIB, 8 * MIB, &plan), -EINVAL);
	CHECK_INT(plan_resume(10001, 1, &plan), -EINVAL);
	return check_result();
}
