#include "../check.h"
#include "cli/options/values.h"
#include <errno.h>

static struct s3once_rate rates[BANDWIDTH_RATES_MAX];
static size_t n;
static struct problem problem;

static int read_value(const char *value)
{
	n = 0;
	return bandwidth_value(value, rates, &n, &problem);
}

static void check_rate(size_t i, unsigned minute, uint64_t bytes)
{
	CHECK(i < n);
	CHECK_INT(rates[i].minute, minute);
	CHECK_INT(rates[i].bytes_per_second, bytes);
}

static void check_refused(const char *value, const char *sentence)
{
	CHECK_INT(read_value(value), -EINVAL);
	CHECK_STRING(problem.text, sentence);
}

int main(void)
{
	CHECK_INT(read_value("20M"), 0);
	check_rate(0, 0, 20 << 20);
	CHECK_INT(read_value("off"), 0);
	check_rate(0, 0, 0);
	CHECK_INT(read_value(" 19:00,off  08:00,2M\t23:59,1GiB"), 0);
	CHECK_INT(n, 3);
	check_rate(0, 8 * 60, 2 << 20);
	check_rate(1, 19 * 60, 0);
	check_rate(2, 24 * 60 - 1, 1 << 30);
	CHECK_INT(read_value("8K"), 0);
	check_rate(0, 0, S3ONCE_RATE_MIN);
	check_refused("8191", "--bwlimit: '8191' is too small: at least 8KiB, or off");
	check_refused("1K", "--bwlimit: '1K' is too small: at least 8KiB, or off");
	check_refused("08:00,0", "--bwlimit: '0' is too small: at least 8KiB, or off");
	check_refused("08:00,2M,19:00,off",
		"--bwlimit: '2M,19:00,off' is not a size: write a whole number of bytes, or one with the "
		"unit K, M, G or T, as in 64M or 64MiB");
	check_refused("24:00,2M",
		"--bwlimit: '24:00,2M' is not a time of day and a rate: write them as in "
		"08:00,2M 19:00,off");
	check_refused("8:00,2M",
		"--bwlimit: '8:00,2M' is not a time of day and a rate: write them as in "
		"08:00,2M 19:00,off");
	check_refused("08:00,2M 08:00,3M", "--bwlimit: '08:00,2M 08:00,3M' has a time twice");
	check_refused("07:00,1M 08:00,2M 08:00,3M",
		"--bwlimit: '07:00,1M 08:00,2M 08:00,3M' has a time twice");
	CHECK(read_value("08:60,2M") && read_value("08:00,2M 19:00") && read_value("fast"));
	return check_result();
}
