/* Time zones: reads the files of the system. Such a file lists changes up to some year, and has a
 * rule for the time after them. */
#include "base/time_zone.h"
#include "base/clock.h"
#include "base/files.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_S 3600

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/* Reads the name of a period: letters, or in angle brackets also digits and signs. */
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

/* Reads a number that is from min to max. Returns false if there is none. */
static bool read_number(const char **s, int min, int max, int *ret)
{
	const size_t n = strspn(*s, DIGITS);
	const long number = strtol(*s, NULL, 10);
	if (!n || number < min || number > max)
		return false;
	*s += n;
	*ret = (int)number;
	return true;
}

/* Skips c if it is the next character. Returns whether it was. */
static bool pass_char(const char **s, char c)
{
	const bool is_there = **s == c;
	*s += is_there;
	return is_there;
}

/* Reads [+-]hours[:minutes[:seconds]] as seconds. */
static bool read_time(const char **s, int hours_max, int32_t *ret_s)
{
	const bool is_negative = pass_char(s, '-');
	if (!is_negative)
		pass_char(s, '+');
	int hours, minutes = 0, seconds = 0;
	if (!read_number(s, 0, hours_max, &hours))
		return false;
	if (pass_char(s, ':') && !read_number(s, 0, 59, &minutes))
		return false;
	if (pass_char(s, ':') && !read_number(s, 0, 59, &seconds))
		return false;
	const int32_t time_s = hours * HOUR_S + minutes * 60 + seconds;
	*ret_s = is_negative ? -time_s : time_s;
	return true;
}

/* Reads an offset, which POSIX counts to the west of UTC, as seconds to the east. */
static bool read_offset(const char **s, int32_t *ret_s)
{
	int32_t west_s;
	if (!read_time(s, 24, &west_s))
		return false;
	*ret_s = -west_s;
	return true;
}

/* Reads the day of a change, perhaps with its time: M3.5.0, J60 or 59, or M10.5.0/3 and so on. */
static bool read_day(const char **s, struct time_zone_day *ret)
{
	*ret = (struct time_zone_day){.form = '0', .time_s = 2 * HOUR_S};
	bool is_read;
	if (pass_char(s, 'M')) {
		ret->form = 'M';
		is_read = read_number(s, 1, 12, &ret->month) && pass_char(s, '.') &&
			  read_number(s, 1, 5, &ret->week) && pass_char(s, '.') &&
			  read_number(s, 0, 6, &ret->day);
	} else if (pass_char(s, 'J')) {
		ret->form = 'J';
		is_read = read_number(s, 1, 365, &ret->day);
	} else {
		is_read = read_number(s, 0, 365, &ret->day);
	}
	/* RFC 9636 allows a time within a week before or after the day: less than 168 hours. */
	return is_read && (!pass_char(s, '/') || read_time(s, 167, &ret->time_s));
}

/* Reads the summer time of a rule, as in "CEST,M3.5.0,M10.5.0/3". It is one hour ahead of standard
 * time unless its offset follows its name. */
static bool read_summer(const char **s, struct time_zone_rule *ret)
{
	if (!read_name(s, ret->summer.name))
		return false;
	ret->summer.offset_s = ret->standard.offset_s + HOUR_S;
	const bool has_offset = **s != ',';
	if (has_offset && !read_offset(s, &ret->summer.offset_s))
		return false;
	return pass_char(s, ',') && read_day(s, &ret->summer_begins) && pass_char(s, ',') &&
	       read_day(s, &ret->summer_ends);
}

bool time_zone_rule_parse(const char *s, struct time_zone_rule *ret)
{
	*ret = (struct time_zone_rule){.has_summer = false};
	if (!read_name(&s, ret->standard.name) || !read_offset(&s, &ret->standard.offset_s))
		return false;
	ret->has_summer = *s != '\0';
	return !ret->has_summer || (read_summer(&s, ret) && !*s);
}

/* Returns the time of this change in a year (counted from 1900), in seconds since the epoch, as if
 * local time were UTC. timegm(3) accepts days before and after those of the month, and sets the day
 * of the week. */
static int64_t time_of_change(const struct time_zone_day *day, int year)
{
	/* A day of the year is a day of January that goes on beyond the 31st. The form '0' counts
	 * from 0. */
	struct tm tm = {.tm_year = year, .tm_mday = day->day + (day->form == '0')};
	if (day->form == 'M') {
		tm.tm_mon = day->month - 1;
		tm.tm_mday = 1;
		timegm(&tm);
		/* the first such day of the week from the 1st on, plus the weeks */
		tm.tm_mday += (day->day - tm.tm_wday + 7) % 7 + 7 * (day->week - 1);
		timegm(&tm);
		if (tm.tm_mon != day->month - 1) /* week 5 is the last week of the month */
			tm.tm_mday -= 7;
	} else if (day->form == 'J' && day->day > 59) { /* February 29 has no number */
		tm.tm_mon = 2;
		tm.tm_mday -= 59;
	}
	return (int64_t)timegm(&tm) + day->time_s;
}

const struct time_zone_period *time_zone_rule_at(const struct time_zone_rule *rule, int64_t utc_s)
{
	if (!rule->has_summer)
		return &rule->standard;
	struct tm now;
	const time_t local = (time_t)(utc_s + rule->standard.offset_s);
	gmtime_r(&local, &now);
	const int64_t begins =
		time_of_change(&rule->summer_begins, now.tm_year) - rule->standard.offset_s;
	const int64_t ends =
		time_of_change(&rule->summer_ends, now.tm_year) - rule->summer.offset_s;
	/* In the southern hemisphere, summer includes the turn of the year. */
	const bool is_summer =
		begins < ends ? utc_s >= begins && utc_s < ends : utc_s >= begins || utc_s < ends;
	return is_summer ? &rule->summer : &rule->standard;
}

#define FOLDER         "/usr/share/zoneinfo"
#define FILE_BYTES_MAX (64U << 10) /* the largest file at present has 4 KiB */
#define HEADER_BYTES   44
/* A kind is an offset from UTC with a name: four bytes for the offset, one that says whether it is
 * summer time, and one for the index of its name in the names. */
#define KIND_BYTES     6
#define KIND_NAME_BYTE 5
#define OFFSET_S_MAX   93599 /* RFC 9636, 3.2 */

struct time_zone {
	/* Pointers into `bytes`, which is the file. At each of the n_times times, of 8 bytes each,
	 * another kind begins. kinds_at has the index of that kind in one byte. */
	const unsigned char *times, *kinds_at, *kinds;
	const char *names;
	size_t n_times;
	struct time_zone_rule rule; /* for the time after the last of `times`, if has_rule */
	bool has_rule;
	unsigned char bytes[];
};

static uint64_t big_endian(const unsigned char *p, size_t n)
{
	uint64_t number = 0;
	while (n--)
		number = number << 8 | *p++;
	return number;
}

/* The numbers of a header (RFC 9636, 3.1), in its order. */
enum { UT, STANDARD, LEAPS, TIMES, KINDS, NAMES, COUNTS };

/* Reads the numbers of a header into counts, in the order of the enum. Returns the size of the
 * header and of the block that follows it, in which each time has time_bytes. Returns 0 if this is
 * no header, or if there are fewer bytes than that. */
static size_t read_header(
	const unsigned char *p, size_t n, size_t time_bytes, uint64_t counts[static COUNTS])
{
	if (n < HEADER_BYTES || memcmp(p, "TZif", 4) != 0 || p[4] < '2') /* p[4] is the version */
		return 0;
	/* The numbers follow "TZif", the version and 15 reserved bytes. */
	for (size_t i = 0; i < COUNTS; i++)
		counts[i] = big_endian(p + 20 + 4 * i, 4);
	const uint64_t bytes = HEADER_BYTES + counts[TIMES] * (time_bytes + 1) +
			       counts[KINDS] * KIND_BYTES + counts[NAMES] +
			       counts[LEAPS] * (time_bytes + 4) + counts[STANDARD] + counts[UT];
	return bytes <= n ? bytes : 0;
}

/* Whether the file has each kind that its times name, and each kind is possible. `counts` has the
 * numbers of the header. */
static bool has_valid_kinds(const struct time_zone *zone, const uint64_t counts[static COUNTS])
{
	for (size_t i = 0; i < counts[TIMES]; i++)
		if (zone->kinds_at[i] >= counts[KINDS])
			return false;
	for (size_t i = 0; i < counts[KINDS]; i++) {
		const unsigned char *kind = zone->kinds + KIND_BYTES * i;
		const int32_t offset_s = (int32_t)big_endian(kind, 4);
		if (kind[KIND_NAME_BYTE] >= counts[NAMES] || offset_s < -OFFSET_S_MAX ||
			offset_s > OFFSET_S_MAX)
			return false;
	}
	return true;
}

/* Sets the fields of the zone from its n bytes, which are followed by a NUL. Returns false if they
 * are not a valid file. */
static bool read_file(struct time_zone *zone, size_t n)
{
	uint64_t counts[COUNTS] = {0};
	/* The first block, with times of 32 bits, is for old readers, and is skipped. */
	const size_t first = read_header(zone->bytes, n, 4, counts);
	const size_t second = first ? read_header(zone->bytes + first, n - first, 8, counts) : 0;
	if (!second || counts[LEAPS] || !counts[KINDS] || !counts[NAMES])
		return false;
	/* read_header() has made sure that all of the second block is there. */
	zone->n_times = counts[TIMES];
	zone->times = zone->bytes + first + HEADER_BYTES;
	zone->kinds_at = zone->times + 8 * counts[TIMES];
	zone->kinds = zone->kinds_at + counts[TIMES];
	zone->names = (const char *)zone->kinds + KIND_BYTES * counts[KINDS];
	if (zone->names[counts[NAMES] - 1] != '\0' || !has_valid_kinds(zone, counts))
		return false;
	/* The rule is between two newlines; it may be empty. */
	char *rule = (char *)zone->bytes + first + second;
	char *newline = *rule == '\n' ? strchr(rule + 1, '\n') : NULL;
	if (!newline)
		return false;
	*newline = '\0';
	zone->has_rule = rule[1] != '\0';
	return !zone->has_rule || time_zone_rule_parse(rule + 1, &zone->rule);
}

int time_zone_parse(const unsigned char *bytes, size_t n, struct time_zone **ret)
{
	if (n > FILE_BYTES_MAX)
		return -EINVAL;
	struct time_zone *zone = calloc(1, sizeof *zone + n + 1);
	if (!zone)
		return -ENOMEM;
	memcpy(zone->bytes, bytes, n);
	if (!read_file(zone, n)) {
		free(zone);
		return -EINVAL;
	}
	*ret = zone;
	return 0;
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
	/* The name must not point outside of the folder: it does not begin with a slash, and has no
	 * dots. */
	const bool is_name = *name && *name != '/' && !name[strspn(name, LETTERS DIGITS "+-_/")];
	if (is_name && n >= 0 && (size_t)n < sizeof path)
		error = named_file_read(path, &text, NULL);
	if (!error)
		error = time_zone_parse((const unsigned char *)text_string(&text), text.len, ret);
	text_clear(&text);
	if (!error)
		return 0;
	const bool is_no_zone = error == -EINVAL || error == -ENOENT || error == -EISDIR ||
				error == -ENOTDIR || error == -EFBIG;
	if (is_no_zone)
		return problem_error(ret_problem, -EINVAL,
			"there is no time zone \"%s\" in %s: give a name such as "
			"Europe/Berlin, or install the package tzdata",
			quote(name).text, quote(folder).text);
	return problem_error(ret_problem, error, "the time zone \"%s\" cannot be read from %s: %s",
		quote(name).text, quote(folder).text, named_file_error(error));
}

/* Returns the offset from UTC at utc_s, and the name of the period. */
static int32_t offset_at(const struct time_zone *zone, int64_t utc_s, const char **ret_name)
{
	/* The number of times at or before utc_s. Mostly it is all of them. */
	size_t n = zone->n_times;
	while (n && (int64_t)big_endian(zone->times + 8 * (n - 1), 8) > utc_s)
		n--;
	if (n == zone->n_times && zone->has_rule) {
		const struct time_zone_period *period = time_zone_rule_at(&zone->rule, utc_s);
		*ret_name = period->name;
		return period->offset_s;
	}
	/* The kind that began last is in force, and before the first time the first kind. */
	const unsigned char *kind = zone->kinds + KIND_BYTES * (n ? zone->kinds_at[n - 1] : 0U);
	*ret_name = zone->names + kind[KIND_NAME_BYTE];
	return (int32_t)big_endian(kind, 4);
}

int time_zone_local(const struct time_zone *zone, int64_t utc_s, struct tm *ret)
{
	if (utc_s > CLOCK_LAST_S - OFFSET_S_MAX || utc_s < -CLOCK_LAST_S)
		return -ERANGE;
	const char *name = "UTC";
	const int32_t offset_s = zone ? offset_at(zone, utc_s, &name) : 0;
	const time_t local = (time_t)(utc_s + offset_s);
	gmtime_r(&local, ret);
	ret->tm_gmtoff = offset_s;
	ret->tm_zone = name;
	return 0;
}
