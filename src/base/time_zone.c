/* Time zones: the files of the system, and the rule by which a zone goes on after what its file
 * lists. */
#include "base/time_zone.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/quote.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_S  86400
#define HOUR_S 3600

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Letters, or in angle brackets also digits and signs. */
static bool read_name(const char **s, char ret[static TIME_ZONE_NAME_CHARS])
{
	const bool is_quoted = **s == '<';
	const char *begin = *s + is_quoted;
	const size_t n = strspn(begin, is_quoted ? LETTERS DIGITS "+-" : LETTERS);
	if (n < 3 || n >= TIME_ZONE_NAME_CHARS || (is_quoted && begin[n] != '>'))
		return false;
	memcpy(ret, begin, n);
	ret[n] = '\0';
	*s = begin + n + is_quoted;
	return true;
}

static bool read_number(const char **s, int least, int most, int *ret)
{
	const size_t n = strspn(*s, DIGITS);
	const long number = strtol(*s, NULL, 10);
	if (!n || number < least || number > most)
		return false;
	*s += n;
	*ret = (int)number;
	return true;
}

/* [+-]hours[:minutes[:seconds]] */
static bool read_time(const char **s, int hours_max, int32_t *ret)
{
	const bool is_negative = **s == '-';
	int32_t time_s = 0;
	int n;
	*s += is_negative || **s == '+';
	for (int unit_s = HOUR_S; unit_s; unit_s /= 60) {
		if (!read_number(s, 0, unit_s == HOUR_S ? hours_max : 59, &n))
			return false;
		time_s += n * unit_s;
		if (**s != ':' || unit_s == 1)
			break;
		++*s;
	}
	*ret = is_negative ? -time_s : time_s;
	return true;
}

/* POSIX counts offsets to the west. */
static bool read_offset(const char **s, int32_t *ret)
{
	const bool is_read = read_time(s, 24, ret);
	*ret = -*ret;
	return is_read;
}

static bool read_day(const char **s, struct time_zone_day *ret)
{
	*ret = (struct time_zone_day){.form = '0', .time_s = 2 * HOUR_S};
	if (**s == 'M' || **s == 'J')
		ret->form = *(*s)++;
	const bool is_read = ret->form == 'M'
				     ? read_number(s, 1, 12, &ret->month) && *(*s)++ == '.' &&
					       read_number(s, 1, 5, &ret->week) && *(*s)++ == '.' &&
					       read_number(s, 0, 6, &ret->day)
				     : read_number(s, ret->form == 'J', 365, &ret->day);
	if (!is_read || **s != '/')
		return is_read;
	++*s;
	return read_time(s, 167, &ret->time_s);
}

bool time_zone_rule_parse(const char *s, struct time_zone_rule *ret)
{
	struct time_zone_rule rule = {.has_summer = false};
	if (!read_name(&s, rule.standard.name) || !read_offset(&s, &rule.standard.offset_s))
		return false;
	rule.has_summer = *s != '\0';
	rule.summer.offset_s = rule.standard.offset_s + HOUR_S;
	if (rule.has_summer && (!read_name(&s, rule.summer.name) ||
				       (*s != ',' && !read_offset(&s, &rule.summer.offset_s)) ||
				       *s++ != ',' || !read_day(&s, &rule.summer_begins) ||
				       *s++ != ',' || !read_day(&s, &rule.summer_ends)))
		return false;
	if (*s)
		return false;
	*ret = rule;
	return true;
}

/* The first second of this day, as if it were UTC. Days before or after the month's are counted on.
 */
static struct tm day_of(int year, int month, int day)
{
	struct tm tm = {.tm_year = year, .tm_mon = month - 1, .tm_mday = day};
	timegm(&tm);
	return tm;
}

/* When the day's change comes in this year (counted from 1900), as if local time were UTC. */
static int64_t change_in(const struct time_zone_day *day, int year)
{
	struct tm tm;
	if (day->form == 'M') {
		const int days = day_of(year, day->month + 1, 0).tm_mday;
		tm = day_of(year, day->month, 1);
		int of_month = 1 + (day->day - tm.tm_wday + 7) % 7 + 7 * (day->week - 1);
		tm = day_of(year, day->month, of_month > days ? of_month - 7 : of_month);
	} else if (day->form == 'J') { /* February 29 has no number */
		const bool is_leap = day_of(year, 3, 0).tm_mday == 29;
		tm = day_of(year, 1, day->day + (is_leap && day->day >= 60));
	} else {
		tm = day_of(year, 1, 1 + day->day);
	}
	return (int64_t)timegm(&tm) + day->time_s;
}

const struct time_zone_period *time_zone_rule_at(const struct time_zone_rule *rule, int64_t wall_s)
{
	if (!rule->has_summer)
		return &rule->standard;
	struct tm now;
	const time_t local = (time_t)(wall_s + rule->standard.offset_s);
	gmtime_r(&local, &now);
	const int64_t begins =
		change_in(&rule->summer_begins, now.tm_year) - rule->standard.offset_s;
	const int64_t ends = change_in(&rule->summer_ends, now.tm_year) - rule->summer.offset_s;
	/* In the south, summer lasts over the turn of the year. */
	const bool is_summer = begins < ends ? wall_s >= begins && wall_s < ends
					     : wall_s >= begins || wall_s < ends;
	return is_summer ? &rule->summer : &rule->standard;
}

#define FOLDER         "/usr/share/zoneinfo"
#define FILE_BYTES_MAX (64U << 10) /* the largest of today has 4 KiB */
#define HEADER_BYTES   44
#define KIND_BYTES     6
#define OFFSET_S_MAX   93599 /* RFC 9636, 3.2 */

struct time_zone {
	/* All of this points into bytes, which follow the struct. */
	const unsigned char *times;    /* n_times, each of 8 bytes, at which another kind begins */
	const unsigned char *kinds_at; /* n_times, each the index of that kind */
	const unsigned char *kinds;    /* each: offset, whether it is summer, where its name is */
	const char *names;
	size_t n_times;
	struct time_zone_rule rule; /* of what comes after the last time, if it has one */
	bool has_rule;
	unsigned char bytes[];
};

static uint32_t read_32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The numbers of a header (RFC 9636, 3.1), in its order. */
enum { UT, STANDARD, LEAPS, TIMES, KINDS, NAMES, COUNTS };

static bool read_header(const unsigned char *p, size_t n, size_t ret[static COUNTS])
{
	if (n < HEADER_BYTES || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
		return false;
	for (size_t i = 0; i < COUNTS; i++) {
		ret[i] = read_32(p + 20 + 4 * i);
		if (ret[i] > FILE_BYTES_MAX)
			return false;
	}
	return true;
}

static size_t block_bytes(const size_t c[static COUNTS], size_t time_bytes)
{
	return c[TIMES] * (time_bytes + 1) + c[KINDS] * KIND_BYTES + c[NAMES] +
	       c[LEAPS] * (time_bytes + 4) + c[STANDARD] + c[UT];
}

/* Between two newlines; it may be empty. */
static bool read_rule(struct time_zone *zone, const unsigned char *p, const unsigned char *end)
{
	char rule[128];
	const unsigned char *last =
		p < end && *p == '\n' ? memchr(p + 1, '\n', (size_t)(end - p - 1)) : NULL;
	if (!last || (size_t)(last - p) > sizeof rule)
		return false;
	const size_t n = (size_t)(last - p) - 1;
	memcpy(rule, p + 1, n);
	rule[n] = '\0';
	zone->has_rule = n > 0;
	return n == 0 || (strlen(rule) == n && time_zone_rule_parse(rule, &zone->rule));
}

static bool read_file(struct time_zone *zone, size_t n)
{
	const unsigned char *p = zone->bytes, *end = p + n;
	size_t c[COUNTS];
	/* The file begins with a block of times of 32 bits for old readers, which is passed over.
	 */
	if (!read_header(p, n, c) || block_bytes(c, 4) > n - HEADER_BYTES)
		return false;
	p += HEADER_BYTES + block_bytes(c, 4);
	if (!read_header(p, (size_t)(end - p), c) || c[LEAPS] ||
		block_bytes(c, 8) > (size_t)(end - p) - HEADER_BYTES)
		return false;
	zone->n_times = c[TIMES];
	zone->times = p + HEADER_BYTES;
	zone->kinds_at = zone->times + 8 * c[TIMES];
	zone->kinds = zone->kinds_at + c[TIMES];
	zone->names = (const char *)zone->kinds + KIND_BYTES * c[KINDS];
	if (!c[KINDS] || !c[NAMES] || zone->names[c[NAMES] - 1] != '\0')
		return false;
	for (size_t i = 0; i < c[TIMES]; i++)
		if (zone->kinds_at[i] >= c[KINDS])
			return false;
	for (size_t i = 0; i < c[KINDS]; i++) {
		const unsigned char *kind = zone->kinds + KIND_BYTES * i;
		const int32_t offset_s = (int32_t)read_32(kind);
		if (kind[5] >= c[NAMES] || offset_s < -OFFSET_S_MAX || offset_s > OFFSET_S_MAX)
			return false;
	}
	return read_rule(zone, p + HEADER_BYTES + block_bytes(c, 8), end);
}

int time_zone_parse(const unsigned char *bytes, size_t n, struct time_zone **ret)
{
	if (n > FILE_BYTES_MAX)
		return -EINVAL;
	struct time_zone *zone = malloc(sizeof *zone + n);
	if (!zone)
		return -ENOMEM;
	*zone = (struct time_zone){.n_times = 0};
	memcpy(zone->bytes, bytes, n);
	if (!read_file(zone, n)) {
		free(zone);
		return -EINVAL;
	}
	*ret = zone;
	return 0;
}

void time_zone_free(struct time_zone *zone)
{
	free(zone);
}

int time_zone_open(const char *name, struct time_zone **ret, struct problem *ret_problem)
{
	const char *folder = getenv("TZDIR");
	char path[4096];
	struct text text = TEXT(FILE_BYTES_MAX);
	int error = -EINVAL;
	if (!folder || !*folder)
		folder = FOLDER;
	const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	/* A name leads to a file below the folder, never out of it. */
	if (*name && *name != '/' && !name[strspn(name, LETTERS DIGITS "+-_/")] && n >= 0 &&
		(size_t)n < sizeof path)
		error = named_file_read(path, &text, NULL);
	if (!error)
		error = time_zone_parse((const unsigned char *)text_string(&text), text.len, ret);
	text_clear(&text);
	if (!error)
		return 0;
	if (error == -EINVAL || error == -ENOENT || error == -EISDIR || error == -ENOTDIR ||
		error == -EFBIG)
		return problem_error(ret_problem, -EINVAL,
			"there is no time zone \"%s\" in %s; zones have names such as "
			"Europe/Berlin, and the package tzdata brings them",
			quote(name).text, quote(folder).text);
	return problem_error(ret_problem, error, "the time zone \"%s\" cannot be read from %s: %s",
		quote(name).text, quote(folder).text, named_file_error(error));
}

static int32_t offset_at(const struct time_zone *zone, int64_t wall_s, const char **ret_name)
{
	size_t n = 0, above = zone->n_times; /* n of the times are at or before wall_s */
	while (n < above) {
		const size_t middle = n + (above - n) / 2;
		const unsigned char *time = zone->times + 8 * middle;
		if ((int64_t)((uint64_t)read_32(time) << 32 | read_32(time + 4)) <= wall_s)
			n = middle + 1;
		else
			above = middle;
	}
	if (n == zone->n_times && zone->has_rule) {
		const struct time_zone_period *period = time_zone_rule_at(&zone->rule, wall_s);
		*ret_name = period->name;
		return period->offset_s;
	}
	const unsigned char *kind = zone->kinds + KIND_BYTES * (n ? zone->kinds_at[n - 1] : 0U);
	*ret_name = zone->names + kind[5];
	return (int32_t)read_32(kind);
}

int time_zone_local(const struct time_zone *zone, int64_t wall_s, struct tm *ret)
{
	if (wall_s > CLOCK_LAST_S - OFFSET_S_MAX || wall_s < -CLOCK_LAST_S)
		return -ERANGE;
	const char *name = "UTC";
	const int32_t offset_s = zone ? offset_at(zone, wall_s, &name) : 0;
	const time_t local = (time_t)(wall_s + offset_s);
	gmtime_r(&local, ret);
	ret->tm_gmtoff = offset_s;
	ret->tm_zone = name;
	return 0;
}
