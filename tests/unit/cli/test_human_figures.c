#include "../check.h"
#include "cli/human_figures.h"

static void check_number(struct figure (*show)(uint64_t), uint64_t n, const char *want)
{
	CHECK_STRING(show(n).text, want);
}

static void check_seconds(double seconds, const char *want)
{
	CHECK_STRING(human_seconds(seconds).text, want);
}

static void check_things(uint64_t n, const char *want)
{
	CHECK_STRING(human_things(n, "file").text, want);
}

int main(void)
{
	check_number(human_count, 0, "0");
	check_number(human_count, 999, "999");
	check_number(human_count, 1000, "1,000");
	check_number(human_count, 1002003, "1,002,003");
	check_number(human_count, UINT64_MAX, "18,446,744,073,709,551,615");
	check_number(human_bytes, 0, "0 B");
	check_number(human_bytes, 1023, "1023 B");
	check_number(human_bytes, 1024, "1.0 KiB");
	check_number(human_bytes, (1 << 20) - 1, "1.0 MiB");
	check_number(human_bytes, 3ULL << 30, "3.0 GiB");
	check_number(human_bytes, UINT64_MAX, "16.0 EiB");
	check_things(0, "0 files");
	check_things(1, "1 file");
	check_things(1204, "1,204 files");
	check_number(human_age, 0, "0 s");
	check_number(human_age, 119, "119 s");
	check_number(human_age, 120, "2 min");
	check_number(human_age, 7199, "119 min");
	check_number(human_age, 7200, "2 h");
	check_number(human_age, 48 * 3600, "2 days");
	check_seconds(0.04, "0.0 s");
	check_seconds(9.94, "9.9 s");
	check_seconds(9.96, "10 s");
	check_seconds(59.4, "59 s");
	check_seconds(59.6, "1:00");
	check_seconds(3599.4, "59:59");
	check_seconds(3661, "1:01:01");
	return check_result();
}
