/* The time: since the host booted, with its sleep, for all that is measured or waited for; of
 * the wall for what people and services read. There is no other source of it in the program. */
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

uint64_t clock_boot_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return uv_hrtime();
}

int64_t clock_boot_shift_ns(void)
{
	FILE *offsets = fopen("/proc/self/timens_offsets", "re");
	char name[16];
	long long s, ns, shift_ns = 0;
	if (!offsets)
		return 0;
	while (fscanf(offsets, "%15s %lld %lld", name, &s, &ns) == 3)
		if (strcmp(name, "boottime") == 0)
			shift_ns = s * (long long)NS_PER_S + ns;
	fclose(offsets);
	return shift_ns;
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

/* The time of these fields, which must be a date that exists where it is offset_s later than UTC,
 * or -EINVAL. */
static int64_t time_of(const struct tm *fields, int offset_s)
{
	struct tm tm = *fields;
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 ||
		tm.tm_hour < 0 || tm.tm_hour > 23 || tm.tm_min < 0 || tm.tm_min > 59 ||
		tm.tm_sec < 0 || tm.tm_sec > 60)
		return -EINVAL;
	const int64_t time_s = timegm(&tm) - offset_s;
	/* timegm carries the 31st of a short month over; a leap second may be carried, but not into
	 * a year that cannot be written. */
	bool exists = tm.tm_mon == fields->tm_mon || fields->tm_sec == 60;
	return exists && time_s >= 0 && time_s <= CLOCK_LAST_S ? time_s : -EINVAL;
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

/* In the form, 0 stands for a digit and a for anything. */
static bool has_form(const char *s, const char *form)
{
	for (; *s && *form; s++, form++) {
		bool is_digit = *s >= '0' && *s <= '9';
		if (*form == '0' ? !is_digit : *form != 'a' && *form != *s)
			return false;
	}
	return *s == *form;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", as every server writes it today: without sscanf, since each
 * reply has one. */
static bool parse_fixed_date(const char *s, struct tm *ret)
{
	if (!has_form(s, "aaa, 00 aaa 0000 00:00:00 GMT"))
		return false;
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
		return time_of(&tm, 0);
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
	return time_of(&tm, 0);
}

/* "Z", "+01:00" or "-0530" in seconds. */
static bool parse_offset(const char *s, int *ret_s)
{
	const bool has_colon = has_form(s, "a00:00");
	*ret_s = 0;
	if (strcmp(s, "Z") == 0)
		return true;
	if ((*s != '+' && *s != '-') || (!has_colon && !has_form(s, "a0000")))
		return false;
	const int hours = two_digits(s + 1), minutes = two_digits(s + 3 + has_colon);
	*ret_s = (*s == '-' ? -60 : 60) * (60 * hours + minutes);
	return hours < 24 && minutes < 60;
}

int64_t clock_parse_iso(const char *s)
{
	struct tm tm = {0};
	int end = 0, offset_s;
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
	if (!parse_offset(s, &offset_s))
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return time_of(&tm, offset_s);
}

/* Only a year of four digits can be written; no other can be meant. */
static struct tm fields_of(int64_t wall_s)
{
	time_t t = (time_t)wall_s;
	struct tm tm = {0};
	if (wall_s > CLOCK_LAST_S || !gmtime_r(&t, &tm) || tm.tm_year < -900)
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
