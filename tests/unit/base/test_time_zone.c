/* The C library's localtime_r() is the oracle: a test may change its TZ. */
#include "../check.h"
#include "base/random.h"
#include "base/time_zone.h"
#include <errno.h>
#include <stdlib.h>

static const char *const zones[] = {"Europe/Berlin", "Europe/Dublin", "Europe/London",
	"America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Nuuk",
	"Africa/Casablanca", "Africa/Cairo", "Asia/Kathmandu", "Asia/Tehran", "Asia/Gaza",
	"Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Chatham",
	"Antarctica/Troll", "Etc/GMT+11", "UTC"};

static void compare(const struct time_zone *zone, const char *name, int64_t wall_s)
{
	struct tm got, want;
	char got_text[64], want_text[64];
	const time_t t = (time_t)wall_s;
	localtime_r(&t, &want);
	CHECK_INT(time_zone_local(zone, wall_s, &got), 0);
	strftime(got_text, sizeof got_text, "%F %T %a %j %z %Z", &got);
	strftime(want_text, sizeof want_text, "%F %T %a %j %z %Z", &want);
	if (!CHECK_STRING(got_text, want_text))
		fprintf(stderr, "\tin %s at %lld\n", name, (long long)wall_s);
}

/* The hours around each change of a year, and any time up to the year 2500. */
static void test_zones(void)
{
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
		struct time_zone *zone;
		struct problem problem;
		if (!CHECK_INT(time_zone_open(zones[i], &zone, &problem), 0))
			continue;
		setenv("TZ", zones[i], 1);
		tzset();
		for (int j = 0; j < 2000; j++)
			compare(zone, zones[i], (int64_t)random_below(16725225600) - 1000000000);
		for (int64_t t = 1767225600; t < 1767225600 + 367 * 86400; t += 5399)
			compare(zone, zones[i], t);
		for (int64_t t = 4102444800; t < 4102444800 + 367 * 86400; t += 5399)
			compare(zone, zones[i], t);
		free(zone);
	}
}

static void test_change_of_summer_time(void)
{
	static const struct {
		int64_t wall_s;
		const char *want;
	} rows[] = {
		{1774745999, "2026-03-29 01:59:59 +0100 CET"},
		{1774746000, "2026-03-29 03:00:00 +0200 CEST"},
		{1792889999, "2026-10-25 02:59:59 +0200 CEST"},
		{1792890000, "2026-10-25 02:00:00 +0100 CET"},
		{4109878799, "2100-03-28 01:59:59 +0100 CET"},
		{4109878800, "2100-03-28 03:00:00 +0200 CEST"},
	};
	struct time_zone *zone;
	struct problem problem;
	setenv("TZ", "Asia/Tokyo", 1); /* which is to have no part in it */
	tzset();
	if (!CHECK_INT(time_zone_open("Europe/Berlin", &zone, &problem), 0))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tm tm;
		char text[64];
		CHECK_INT(time_zone_local(zone, rows[i].wall_s, &tm), 0);
		strftime(text, sizeof text, "%F %T %z %Z", &tm);
		CHECK_STRING(text, rows[i].want);
	}
	CHECK_STRING(getenv("TZ"), "Asia/Tokyo");
	free(zone);
}

static void test_no_zones(void)
{
	static const char *const names[] = {"", "Europe", "Europe/Berln", "/etc/passwd",
		"../zoneinfo/Europe/Berlin", "Europe/Berlin/", "zone.tab", "right/Europe/Berlin",
		"Europe/Ber lin"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct time_zone *zone;
		struct problem problem = {.text = ""};
		if (!CHECK_INT(time_zone_open(names[i], &zone, &problem), -EINVAL))
			fprintf(stderr, "\t%s\n", names[i]);
		CHECK(strstr(problem.text, "give a name such as Europe/Berlin") != NULL);
	}
}

static void test_utc_and_bounds(void)
{
	struct tm tm;
	char text[64];
	CHECK_INT(time_zone_local(NULL, -1, &tm), 0);
	strftime(text, sizeof text, "%F %T %z %Z", &tm);
	CHECK_STRING(text, "1969-12-31 23:59:59 +0000 UTC");
	CHECK_INT(time_zone_local(NULL, INT64_MAX, &tm), -ERANGE);
	CHECK_INT(time_zone_local(NULL, INT64_MIN, &tm), -ERANGE);
}

static void test_rules(void)
{
	static const struct {
		const char *rule;
		bool ok;
	} rows[] = {
		{"UTC0", true},
		{"<+0545>-5:45", true},
		{"CET-1CEST,M3.5.0,M10.5.0/3", true},
		{"IST-1GMT0,M10.5.0,M3.5.0/1", true},
		{"XXX-2<+01>-1,0/0,J365/23", true},
		{"EET-2EEST,M3.4.4/50,M10.4.4/50", true},
		{"", false},
		{"CET", false},
		{"CE-1", false},
		{"<CET-1", false},
		{"CET-25", false},
		{"CET-1:60", false},
		{"CET-1CEST", false},
		{"CET-1CEST,M3.5.0", false},
		{"CET-1CEST,M13.5.0,M10.5.0", false},
		{"CET-1CEST,M3.6.0,M10.5.0", false},
		{"CET-1CEST,M3.5.7,M10.5.0", false},
		{"CET-1CEST,J0,J365", false},
		{"CET-1CEST,0,366", false},
		{"CET-1CEST,M3.5.0/168,M10.5.0", false},
		{"CET-1CEST,M3.5.0,M10.5.0/3x", false},
		{"ABCDEFGHIJKLMNOPQ-1", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct time_zone_rule rule;
		if (!CHECK_INT(time_zone_rule_parse(rows[i].rule, &rule), rows[i].ok))
			fprintf(stderr, "\t%s\n", rows[i].rule);
	}
}

/* Permanent summer time, and days counted with and without February 29. */
static void test_days(void)
{
	static const struct {
		const char *rule;
		int64_t wall_s;
		const char *want;
	} rows[] = {
		{"XXX-2<+01>-1,0/0,J365/23", 1767225600, "+01"},
		{"XXX-2<+01>-1,0/0,J365/23", 1782777600, "+01"},
		{"AAA0BBB,J60/0,J61/0", 1835395199, "AAA"}, /* 2028-02-28T23:59:59Z */
		{"AAA0BBB,J60/0,J61/0", 1835481600, "BBB"}, /* 2028-03-01 */
		{"AAA0BBB,59/0,60/0", 1835395200, "BBB"},   /* 2028-02-29 */
		{"AAA0BBB,59/0,60/0", 1835477999, "BBB"},   /* an hour before midnight in UTC */
		{"AAA0BBB,59/0,60/0", 1835478000, "AAA"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct time_zone_rule rule;
		if (!CHECK(time_zone_rule_parse(rows[i].rule, &rule)))
			continue;
		if (!CHECK_STRING(time_zone_rule_at(&rule, rows[i].wall_s)->name, rows[i].want))
			fprintf(stderr, "\trow %zu\n", i);
	}
}

int main(void)
{
	test_zones();
	test_change_of_summer_time();
	test_no_zones();
	test_utc_and_bounds();
	test_rules();
	test_days();
	return check_result();
}
