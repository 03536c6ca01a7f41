#include "../check.h"
#include "base/clock.h"
#include <errno.h>

static void test_http_date(void)
{
	static const struct {
		const char *s;
		int64_t want;
	} rows[] = {
		/* RFC 9110, 5.6.7 */
		{"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
		{NULL, -EINVAL},
		{"Sun Nov  6 08:49:37 1994", 784111777},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0},
		{"Thu, 29 Feb 2024 23:59:59 GMT", 1709251199},
		{"Tue, 19 Jan 2038 03:14:08 GMT", 2147483648},
		{"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
		{"Thu, 01-Jan-26 00:00:00 GMT", 1767225600},
		{"Wed, 29 Feb 2023 00:00:00 GMT", -EINVAL},
		{"Wed, 31 Dec 1969 23:59:59 GMT", -EINVAL},
		{"Sun, 06 Nov 1994 24:00:00 GMT", -EINVAL},
		{"Sun, 06 Nov 1994 08:49:37 CET", -EINVAL},
		{"Sun, 06 Nov 1994 08:49:37", -EINVAL},
		{"Sun, 06 Nov 1994 08:49:37 GMT and more", -EINVAL},
		{"Sun, 06 Foo 1994 08:49:37 GMT", -EINVAL},
		{"Sun, 06 ovD 1994 08:49:37 GMT", -EINVAL},
		{"Sun, 00 Nov 1994 08:49:37 GMT", -EINVAL},
		{"", -EINVAL},
		{"yesterday", -EINVAL},
		{"1994-11-06", -EINVAL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!CHECK_INT(clock_parse_http_date(rows[i].s), rows[i].want))
			fprintf(stderr, "\t%s\n", rows[i].s);
}

static void test_iso(void)
{
	static const struct {
		const char *s;
		int64_t want;
	} rows[] = {
		{"2026-11-21T07:56:28Z", 1795247788},
		{"2026-11-21T07:56:28.000Z", 1795247788},
		{"2026-11-21T07:56:28+00:00", 1795247788},
		{"2026-11-21T07:56:28", -EINVAL},
		{"2026-11-21T07:56:28.Z", -EINVAL},
		{"2026-11-21T08:56:28+01:00", 1795247788},
		{"2026-11-21T02:26:28.5-0530", 1795247788},
		{"2026-11-22T07:55:28+23:59", 1795247788},
		{"2026-11-21T07:56:28-00:00", 1795247788},
		{"9999-12-31T23:59:59Z", 253402300799},
		{"9999-12-31T23:59:59-00:01", -EINVAL},
		{"1970-01-01T00:00:59+00:01", -EINVAL},
		{"2026-11-21T07:56:28+24:00", -EINVAL},
		{"2026-11-21T07:56:28+01:60", -EINVAL},
		{"2026-11-21T07:56:28+1:00", -EINVAL},
		{"2026-11-21T07:56:28+01:00 ", -EINVAL},
		{"2026-11-21T07:56:28 01:00", -EINVAL},
		{"2026-11-21T07:56:28+", -EINVAL},
		{"2026-11-21T07:56:28Z+01:00", -EINVAL},
		{"2026-13-21T07:56:28Z", -EINVAL},
		{"2026-04-31T07:56:28Z", -EINVAL},
		{"never", -EINVAL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!CHECK_INT(clock_parse_iso(rows[i].s), rows[i].want))
			fprintf(stderr, "\t%s\n", rows[i].s);
}

static void test_to_ns(void)
{
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = 1, .tv_nsec = 5}), 1000000005);
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = -1, .tv_nsec = 999999999}), -1);
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = 9223372036, .tv_nsec = 854775806}),
		INT64_MAX - 1);
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = 9223372036, .tv_nsec = 854775808}),
		INT64_MAX);
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = INT64_MAX}), INT64_MAX);
	CHECK_INT(clock_to_ns((struct timespec){.tv_sec = INT64_MIN}), INT64_MIN);
}

int main(void)
{
	test_to_ns();
	test_http_date();
	test_iso();
	char amz[17], iso[21];
	clock_format_amz(1795247788, amz);
	CHECK_STRING(amz, "20261121T075628Z");
	clock_format_iso(1795247788, iso);
	CHECK_STRING(iso, "2026-11-21T07:56:28Z");
	clock_format_iso(INT64_MAX, iso);
	CHECK_STRING(iso, "1970-01-01T00:00:00Z");

	uint64_t before = clock_boot_ns();
	CHECK(before > 0 && clock_boot_ns() >= before);
	CHECK(clock_wall_s() > 1700000000);
	char id[37];
	clock_boot_id(id);
	CHECK(strlen(id) == 36 || strlen(id) == 0);
	return check_result();
}
