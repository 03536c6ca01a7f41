/* The only source of time in the program. Durations and deadlines use the time since boot, which
 * counts suspend. Times for people and services use the wall clock. */
#include "base/clock.h"
#include "base/files.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#define PROC_FILE_MAX 4096

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
	struct text offsets = TEXT(PROC_FILE_MAX);
	long long s, ns;
	/* A kernel without time namespaces does not have this file, and the text stays empty. */
	named_file_read("/proc/self/timens_offsets", &offsets, NULL);
	const char *line = strstr(text_string(&offsets), "boottime");
	const bool is_read = line && sscanf(line, "boottime %lld %lld", &s, &ns) == 2;
	text_clear(&offsets);
	return is_read ? s * (long long)NS_PER_S + ns : 0;
}

int64_t clock_wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NS_PER_S + ts.tv_nsec;
}

int64_t clock_wall_s(void)
{
	return clock_wall_ns() / (int64_t)NS_PER_S;
}

void clock_boot_id(char ret_id[static 37])
{
	struct text id = TEXT(PROC_FILE_MAX);
	named_file_read("/proc/sys/kernel/random/boot_id", &id, NULL);
	snprintf(ret_id, 37, "%s", id.len >= 36 ? id.data : ""); /* cuts off the newline */
	text_clear(&id);
}

#define HTTP_DATE "%a, %d %b %Y %H:%M:%S GMT"

/* newlocale() allocates nothing for the "C" locale, so that nothing has to be freed. */
locale_t clock_c_locale(void)
{
	return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Returns the seconds since the epoch of these fields, which are the local time of a place that is
 * offset_s ahead of UTC. Returns -EINVAL if there is no such date, or if it is not from 1970 to
 * CLOCK_LAST_S. Each field is in the range that strptime(3) allows. */
static int64_t seconds_of(const struct tm *fields, long offset_s)
{
	struct tm tm = *fields;
	if (tm.tm_year < 70 || tm.tm_sec > 60)
		return -EINVAL;
	const int64_t time_s = timegm(&tm) - offset_s;
	/* timegm() turns the 31st of a shorter month into the 1st of the next one, which is
	 * refused. A leap second may be carried over, but not into a year of five digits. */
	const bool exists = tm.tm_mon == fields->tm_mon || fields->tm_sec == 60;
	return (exists && time_s >= 0 && time_s <= CLOCK_LAST_S) ? time_s : -EINVAL;
}

int64_t clock_parse_http_date(const char *s)
{
	static const char *const forms[] = {
		HTTP_DATE, "%a, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"};
	for (size_t i = 0; s && i < sizeof forms / sizeof *forms; i++) {
		struct tm tm = {0};
		const char *end = strptime_l(s, forms[i], &tm, clock_c_locale());
		if (end && !*end)
			return seconds_of(&tm, 0);
	}
	return -EINVAL;
}

int64_t clock_parse_iso(const char *s)
{
	struct tm tm = {0};
	const char *offset = strptime_l(s, "%Y-%m-%dT%H:%M:%S", &tm, clock_c_locale());
	if (offset && *offset == '.') { /* a fraction of the second, which is dropped */
		const size_t digits = strspn(offset + 1, "0123456789");
		offset = digits ? offset + 1 + digits : NULL;
	}
	/* strptime(3) would accept spaces before the offset. */
	if (!offset || isspace((unsigned char)*offset))
		return -EINVAL;
	/* The offset is "Z", "+01:00" or "-0530". */
	const char *end = strptime_l(offset, "%z", &tm, clock_c_locale());
	if (!end || *end || labs(tm.tm_gmtoff) >= 24L * 3600)
		return -EINVAL;
	return seconds_of(&tm, tm.tm_gmtoff);
}

/* Returns the fields of a time in UTC. A time whose year does not have four digits becomes
 * 1970-01-01, since the formats have room for four digits. */
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
	strftime_l(ret, CLOCK_HTTP_DATE_CHARS, HTTP_DATE, &tm, clock_c_locale());
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
