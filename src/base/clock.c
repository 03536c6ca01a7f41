#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t clock_boot_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

int64_t clock_wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec;
}

void clock_boot_id(char ret_id[static 37])
{
	ret_id[0] = 0;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, ret_id, 36);
	ret_id[n == 36 ? 36 : 0] = 0;
	close(fd);
}

/* Not strptime or strftime: names must not depend on the locale. */
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

/* Month from 0, or -1. */
static int month_of(const char *name)
{
	for (int i = 0; i < 12 && strlen(name) == 3; i++)
		if (memcmp(months + 3 * i, name, 3) == 0)
			return i;
	return -1;
}

#define LAST_YEAR 8099 /* since 1900: years have four digits */

/* The time of these fields, which must be a date that exists, or -EINVAL. */
static int64_t time_of(const struct tm *fields)
{
	struct tm tm = *fields;
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 ||
		tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 ||
		tm.tm_sec < 0 || tm.tm_sec > 60)
		return -EINVAL;
	time_t t = timegm(&tm);
	/* timegm carries the 31st of a short month over; a leap second may be carried, but not into
	 * a year that cannot be written. */
	bool exists = tm.tm_mon == fields->tm_mon || fields->tm_sec == 60;
	return exists && tm.tm_year <= LAST_YEAR ? (int64_t)t : -EINVAL;
}

/* Of a year with two digits or four; two mean 1970 to 2069. */
static int years_since_1900(int year)
{
	return year >= 100 ? year - 1900 : year < 70 ? year + 100 : year;
}

static int two_digits(const char *s)
{
	return (s[0] - '0') * 10 + s[1] - '0';
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", as every server writes it today: without sscanf, since each
 * reply has one. */
static bool parse_fixed_date(const char *s, struct tm *ret)
{
	static const char form[] = "aaa, 00 aaa 0000 00:00:00 GMT";
	if (strlen(s) != sizeof form - 1)
		return false;
	for (size_t i = 0; form[i]; i++) {
		bool is_digit = s[i] >= '0' && s[i] <= '9';
		if (form[i] == '0' ? !is_digit : form[i] != 'a' && form[i] != s[i])
			return false;
	}
	*ret = (struct tm){.tm_mday = two_digits(s + 5),
		.tm_mon = month_of((char[]){s[8], s[9], s[10], 0}),
		.tm_year = two_digits(s + 12) * 100 + two_digits(s + 14) - 1900,
		.tm_hour = two_digits(s + 17),
		.tm_min = two_digits(s + 20),
		.tm_sec = two_digits(s + 23)};
	return true;
}

int64_t clock_parse_http_date(const char *s)
{
	struct tm tm = {0};
	char month[4] = "", zone[4] = "";
	int end = 0;
	const char *comma = strchr(s, ',');
	if (parse_fixed_date(s, &tm))
		return time_of(&tm);
	const bool parsed =
		comma ? sscanf(comma, ", %2d %3s %4d %2d:%2d:%2d %3s%n", &tm.tm_mday, month,
				&tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, zone,
				&end) == 7 ||
				sscanf(comma, ", %2d-%3[A-Za-z]-%2d %2d:%2d:%2d %3s%n", &tm.tm_mday,
					month, &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
					zone, &end) == 7
		      : sscanf(s, "%*3[A-Za-z] %3s %2d %2d:%2d:%2d %4d%n", month, &tm.tm_mday,
				&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &tm.tm_year, &end) == 6;
	if (!parsed)
		return -EINVAL;
	tm.tm_year = years_since_1900(tm.tm_year);
	if ((comma && strcmp(zone, "GMT") != 0) || (comma ? comma : s)[end])
		return -EINVAL;
	tm.tm_mon = month_of(month);
	return time_of(&tm);
}

int64_t clock_parse_iso(const char *s)
{
	struct tm tm = {0};
	int end = 0;
	if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		    &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &end) != 6)
		return -EINVAL;
	s += end;
	if (*s == '.') {
		size_t digits = strspn(s + 1, "0123456789");
		if (!digits)
			return -EINVAL;
		s += 1 + digits;
	}
	if (strcmp(s, "Z") != 0 && strcmp(s, "+00:00") != 0 && strcmp(s, "+0000") != 0)
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return time_of(&tm);
}

/* Only a year of four digits can be written; no other can be meant. */
static struct tm fields_of(int64_t wall_s)
{
	time_t t = (time_t)wall_s;
	struct tm tm = {0};
	if (!gmtime_r(&t, &tm) || tm.tm_year < -900 || tm.tm_year > LAST_YEAR)
		return (struct tm){.tm_year = 70, .tm_mday = 1};
	return tm;
}

void clock_format_http_date(int64_t wall_s, char ret[static CLOCK_HTTP_DATE_CHARS])
{
	struct tm tm = fields_of(wall_s);
	strcpy(ret, "aaa, dd aaa ");
	memcpy(ret, weekdays + 3 * tm.tm_wday, 3);
	strftime(ret + 5, 3, "%d", &tm);
	ret[7] = ' ';
	memcpy(ret + 8, months + 3 * tm.tm_mon, 3);
	strftime(ret + 12, CLOCK_HTTP_DATE_CHARS - 12, "%Y %H:%M:%S GMT", &tm);
}

void clock_format_amz(int64_t wall_s, char ret[static 17])
{
	struct tm tm = fields_of(wall_s);
	strftime(ret, 17, "%Y%m%dT%H%M%SZ", &tm);
}

void clock_format_iso(int64_t wall_s, char ret[static 21])
{
	struct tm tm = fields_of(wall_s);
	strftime(ret, 21, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
