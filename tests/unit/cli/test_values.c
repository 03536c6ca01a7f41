#include "../check.h"
#include "cli/options/values.h"
#include <errno.h>

typedef int reader(const char *s, uint64_t *ret, struct problem *ret_problem);

struct row {
	reader *read;
	const char *given;
	bool ok;
	uint64_t value;
};

static const struct row rows[] = {
	{value_number, "0", true, 0},
	{value_number, "18446744073709551615", true, UINT64_MAX},
	{value_number, "18446744073709551616", false, 0},
	{value_number, "", false, 0},
	{value_number, "-1", false, 0},
	{value_number, "+1", false, 0},
	{value_number, " 1", false, 0},
	{value_number, "1 ", false, 0},
	{value_number, "0x10", false, 0},
	{value_number, "1e3", false, 0},
	{value_duration, "500ms", true, 500},
	{value_duration, "30s", true, 30000},
	{value_duration, "5m", true, 300000},
	{value_duration, "2h", true, 7200000},
	{value_duration, "1d", true, 86400000},
	{value_duration, "0s", true, 0},
	{value_duration, "0", true, 0},
	{value_duration, "30", false, 0},
	{value_duration, "30S", false, 0},
	{value_duration, "30 s", false, 0},
	{value_duration, "1.5h", false, 0},
	{value_duration, "5min", true, 300000},
	{value_duration, "90sec", true, 90000},
	{value_duration, "1h30m", true, 5400000},
	{value_duration, "1d2h3min4s5ms", true, 93784005},
	{value_duration, "0h", true, 0},
	{value_duration, "1h30", false, 0},
	{value_duration, "30m1h", false, 0},
	{value_duration, "1m1min", false, 0},
	{value_duration, "1h 30m", false, 0},
	{value_duration, "1hm", false, 0},
	{value_duration, "5minutes", false, 0},
	{value_duration, "5M", false, 0},
	{value_duration, "", false, 0},
	{value_duration, "00", false, 0},
	{value_duration, "s", false, 0},
	{value_duration, "-5s", false, 0},
	{value_duration, "18446744073709551615d", false, 0},
	{value_duration, "213503982334d18446744073709551615ms", false, 0},
	{value_duration, "1s18446744073709551616ms", false, 0},
	{value_size, "4096", true, 4096},
	{value_size, "7B", true, 7},
	{value_size, "64MiB", true, 64 << 20},
	{value_size, "16M", true, 16 << 20},
	{value_size, "1GiB", true, 1 << 30},
	{value_size, "2K", true, 2048},
	{value_size, "1T", true, 1ULL << 40},
	{value_size, "24MB", true, 24 << 20},
	{value_size, "10M", true, 10 << 20},
	{value_size, "10m", true, 10 << 20},
	{value_size, "16mib", true, 16 << 20},
	{value_size, "3Gi", true, 3ULL << 30},
	{value_size, "2TB", true, 2ULL << 40},
	{value_size, "5Mb/s", false, 0},
	{value_size, "5P", false, 0},
	{value_size, "5iB", false, 0},
	{value_size, "1G1M", false, 0},
	{value_size, "1 M", false, 0},
	{value_size, "", false, 0},
	{value_size, "1.5M", false, 0},
	{value_size, "99999999999999T", false, 0},
};

static void check_row(const struct row *row)
{
	uint64_t value = 0;
	struct problem problem = {0};
	int r = row->read(row->given, &value, &problem);
	bool ok = CHECK_INT(r, row->ok ? 0 : -EINVAL);
	if (row->ok)
		ok = CHECK_INT(value, row->value) && ok;
	else
		ok = CHECK(problem.text[0] == '\'' && strstr(problem.text, row->given)) && ok;
	if (!ok)
		fprintf(stderr, "\tgiven '%s': %s\n", row->given, problem.text);
}

static void check_shown(void (*show)(struct text *, uint64_t), uint64_t n, const char *want)
{
	struct text t = TEXT(64);
	show(&t, n);
	CHECK_STRING(text_string(&t), want);
	text_clear(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_row(&rows[i]);
	check_shown(value_show_duration, 100, "100ms");
	check_shown(value_show_duration, 1000, "1s");
	check_shown(value_show_duration, 90000, "90s");
	check_shown(value_show_duration, 24 * 3600 * 1000, "1d");
	check_shown(value_show_size, 5 << 20, "5MiB");
	check_shown(value_show_size, 1536, "1536B");
	return check_result();
}
