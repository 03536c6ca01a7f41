#include "base/time_zone_rule.h"
#include <string.h>
#include <time.h>

#define DAY_S  86400
#define HOUR_S 3600

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Letters, or in angle brackets also digits and signs. */
static bool read_name(const char **s, char ret[static TIME_ZONE_NAME_CHARS])
{
	const bool is_quoted = **s == '<';
	const char *begin = *s + is_quoted, *p = begin;
	while (is_letter(*p) || (is_quoted && (is_digit(*p) || *p == '+' || *p == '-')))
		p++;
	const size_t n = (size_t)(p - begin);
	if (n < 3 || n >= TIME_ZONE_NAME_CHARS || (is_quoted && *p != '>'))
		return false;
	memcpy(ret, begin, n);
	ret[n] = '\0';
	*s = p + is_quoted;
	return true;
}

static bool read_number(const char **s, int least, int most, int *ret)
{
	int n = 0;
	const char *p = *s;
	for (; is_digit(*p) && n <= most; p++)
		n = 10 * n + (*p - '0');
	if (p == *s || n < least || n > most)
		return false;
	*s = p;
	*ret = n;
	return true;
}

/* [+-]hours[:minutes[:seconds]] */
static bool read_time(const char **s, int hours_max, int32_t *ret)
{
	const bool is_negative = **s == '-';
	int hours, minutes = 0, seconds = 0;
	*s += is_negative || **s == '+';
	if (!read_number(s, 0, hours_max, &hours))
		return false;
	if (**s == ':' && (++*s, !read_number(s, 0, 59, &minutes)))
		return false;
	if (**s == ':' && (++*s, !read_number(s, 0, 59, &seconds)))
		return false;
	const int32_t time_s = hours * HOUR_S + minutes * 60 + seconds;
	*ret = is_negative ? -time_s : time_s;
	return true;
}

/* POSIX counts offsets to the west. */
static bool read_period(const char **s, struct time_zone_period *ret)
{
	if (!read_name(s, ret->name) || !read_time(s, 24, &ret->offset_s))
		return false;
	ret->offset_s = -ret->offset_s;
	return true;
}

static bool read_day(const char **s, struct time_zone_day *ret)
{
	*ret = (struct time_zone_day){.form = '0', .time_s = 2 * HOUR_S};
	bool ok;
	if (**s == 'M') {
		ret->form = *(*s)++;
		ok = read_number(s, 1, 12, &ret->month) && *(*s)++ == '.' &&
		     read_number(s, 1, 5, &ret->week) && *(*s)++ == '.' &&
		     read_number(s, 0, 6, &ret->day);
	} else if (**s == 'J') {
		ret->form = *(*s)++;
		ok = read_number(s, 1, 365, &ret->day);
	} else {
		ok = read_number(s, 0, 365, &ret->day);
	}
	return ok && (**s != '/' || (++*s, read_time(s, 167, &ret->time_s)));
}

static bool read_summer(const char **s, struct time_zone_rule *ret)
{
	if (!read_name(s, ret->summer.name))
		return false;
	ret->has_summer = true;
	ret->summer.offset_s = ret->standard.offset_s + HOUR_S;
	if (**s != ',') {
		if (!read_time(s, 24, &ret->summer.offset_s))
			return false;
		ret->summer.offset_s = -ret->summer.offset_s;
	}
	return *(*s)++ == ',' && read_day(s, &ret->summer_begins) && *(*s)++ == ',' &&
	       read_day(s, &ret->summer_ends);
}

bool time_zone_rule_parse(const char *s, struct time_zone_rule *ret)
{
	struct time_zone_rule rule = {.has_summer = false};
	if (!read_period(&s, &rule.standard) || (*s && !read_summer(&s, &rule)) || *s)
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
