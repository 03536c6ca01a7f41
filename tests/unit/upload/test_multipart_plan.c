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
	{5ULL << 40, 16 * MIB, 0, 525 * MIB, 9987},
	{10000 * 5 * MIB + 1, 5 * MIB, 0, 6 * MIB, 8334},
	{OBJECT_BYTES_MAX, 5 * MIB, 0, PART_BYTES_MAX, 10000},
	{OBJECT_BYTES_MAX + 1, 5 * MIB, -EFBIG, 0, 0},
};

/* The plans that remain for a size and a number of parts, the usual one first. */
static void check_guesses(void)
{
	static const struct {
		uint64_t size;
		unsigned n_parts;
		uint64_t wanted, expected[6];
	} rows[] = {
		{9 * MIB, 2, 16 * MIB, {8 * MIB, 5 * MIB}},
		{60 * MIB, 2, 16 * MIB, {50 * MIB, 32 * MIB}},
		{20 * MIB, 2, 16 * MIB, {16 * MIB, 15 * MIB, 10 * MIB, 17179870}},
		{20 * MIB, 2, 12 * MIB, {12 * MIB, 16 * MIB, 15 * MIB, 10 * MIB, 17179870}},
		{9 * MIB, 2, 7 * MIB, {7 * MIB, 8 * MIB, 5 * MIB}},
		{100000 * MIB + 1, 9091, 16 * MIB, {11 * MIB}},
		{100000 * MIB + 1, 10000, 16 * MIB, {10 * MIB + 1}},
		{100000 * MIB + 1, 6251, 5 * MIB, {16 * MIB}},
		{9 * MIB, 3, 16 * MIB, {0}},
		{9 * MIB, 1, 16 * MIB, {0}},
		{0, 2, 16 * MIB, {0}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t guesses[PLAN_GUESSES_MAX];
		const size_t n =
			plan_guesses(rows[i].size, rows[i].n_parts, rows[i].wanted, guesses);
		for (size_t k = 0; k < n; k++)
			CHECK(guesses[k] == rows[i].expected[k]);
		CHECK(n < 6 && !rows[i].expected[n]);
	}
}

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

/* The smallest ranges fit whatever compressing makes of them, and they are not too many. */
static void check_equal_parts(void)
{
	static const struct {
		uint64_t size, wanted;
	} rows[] = {
		{61 * MIB, 28 * MIB},
		{61 * MIB, 1},
		{28 * MIB, 28 * MIB},
		{6 * MIB, 1},
		{100000 * MIB, 256 * MIB},
		{100000 * MIB, 1},
		{OBJECT_BYTES_MAX / 2, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct plan plan;
		uint64_t part_bytes = 6 * MIB;
		plan_equal_parts(rows[i].size, rows[i].wanted, &part_bytes, &plan);
		CHECK(part_bytes % MIB == 0 && part_bytes >= 6 * MIB &&
			part_bytes <= PART_BYTES_MAX);
		CHECK(plan.n_parts <= PARTS_MAX && plan.part_bytes >= rows[i].wanted);
		CHECK((plan.n_parts > 1) == (rows[i].size > plan.part_bytes));
		CHECK(rows[i].wanted > 1 ||
			plan.part_bytes + plan.part_bytes / 256 + 2048 <= part_bytes);
		parts_cover_the_file(rows[i].size, &plan);
	}
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
	CHECK_INT(plan_resume(20000, 2, &plan), 0);
	CHECK_INT(plan_resume(20001, 2, &plan), -EINVAL); /* the last part is short */
	check_guesses();
	check_equal_parts();
	return check_result();
}
