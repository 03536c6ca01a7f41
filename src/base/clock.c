/* The time: since the host booted, with its sleep, for all that is measured or waited for; of
 * the wall for what people and services read. There is no other source of it in the program. */
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

#define HTTP_DATE "%a, %d %b %Y %H:%M:%S GMT"

static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c_locale)
		abort();
}

locale_t clock_c_locale(void)
{
	static uv_once_t once = UV_ONCE_INIT;
	uv_once(&once, make_c_locale);
	return c_locale;
}

/* The time of these fields, which must be a date that exists where it is offset_s later than UTC,
 * or -EINVAL. Each is in the range that strptime(3) allows. */
static int64_t time_of(const struct tm *fields, int offset_s)
{
	struct tm tm = *fields;
	if (tm.tm_year < 70 || tm.tm_sec > 60)
		return -EINVAL;
	const int64_t time_s = timegm(&tm) - offset_s;
	/* timegm carries the 31st of a short month over; a leap second may be carried, but not into
	 * a year that cannot be written. */
	bool exists = tm.tm_mon == fields->tm_mon || fields->tm_sec == 60;
	return exists && time_s >= 0 && time_s <= CLOCK_LAST_S ? time_s : -EINVAL;
}

int64_t clock_parse_http_date(const char *s)
{
	static const char *const forms[] = {
		HTTP_DATE, "%a, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct tm tm = {0};
		const char *end = strptime_l(s, forms[i], &tm, clock_c_locale());
		if (end && !*end)
			return time_of(&tm, 0);
	}
	return -EINVAL;
}

/* "Z", "+01:00" or "-0530" in seconds. */
static bool parse_offset(const char *s, int *ret_s)
{
	static const char digits[] = "0123456789";
	*ret_s = 0;
	if (strcmp(s, "Z") == 0)
		return true;
	const bool has_sign = *s == '+' || *s == '-';
	const size_t n = has_sign ? strspn(s + 1, digits) : 0;
	const bool has_colon = n == 2 && s[3] == ':' && strspn(s + 4, digits) == 2;
	if ((n != 4 && !has_colon) || s[5 + has_colon])
		return false;
	const int number = atoi(s + 1);
	const int hours = has_colon ? number : number / 100;
	const int minutes = has_colon ? atoi(s + 4) : number % 100;
	*ret_s = (*s == '-' ? -60 : 60) * (60 * hours + minutes);
	return hours < 24 && minutes < 60;
}

int64_t clock_parse_iso(const char *s)
{
	struct tm tm = {0};
	int offset_s;
	s = strptime_l(s, "%Y-%m-%dT%H:%M:%S", &tm, clock_c_locale());
	if (s && *s == '.') {
		size_t digits = strspn(s + 1, "0123456789");
		if (!digits)
			return -EINVAL;
		s += 1 + digits;
	}
	return s && parse_offset(s, &offset_s) ? time_of(&tm, offset_s) : -EINVAL;
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
