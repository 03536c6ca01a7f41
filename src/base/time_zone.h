/* Local time in a time zone of the system. */
#pragma once
#include "base/problem.h"
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A time zone's file lists its changes up to some year. For the years after that it has a rule,
 * which is the TZ string of POSIX, such as CET-1CEST,M3.5.0,M10.5.0/3. */
#define TIME_ZONE_NAME_CHARS 16

/* The name and offset that are in force for a part of the year. */
struct time_zone_period {
	char name[TIME_ZONE_NAME_CHARS]; /* "CEST" */
	int32_t offset_s;                /* east of UTC */
};

/* A day of each year, and the second of it at which the period changes. */
struct time_zone_day {
	char form; /* 'M': month, week, day; 'J': day of the year from 1, where February 29 does not
		      count; '0': day of the year from 0 */
	int month, week, day; /* M: 1 to 12, 1 to 5 (last), 0 (Sunday) to 6; else only day */
	int32_t time_s;       /* may lie outside the day */
};

struct time_zone_rule {
	struct time_zone_period standard, summer;
	bool has_summer;
	struct time_zone_day summer_begins, summer_ends; /* each in local time before the change */
};

/* Reads the TZ string s. Returns false if it is not valid, or has a summer time without the days on
 * which that begins and ends. Pure. */
bool time_zone_rule_parse(const char *s, struct time_zone_rule *ret);
/* Returns the period that is in force at utc_s, in the years 0 to 9999. Borrowed from the rule.
 * Thread-safe. */
const struct time_zone_period *time_zone_rule_at(const struct time_zone_rule *rule, int64_t utc_s);

/* A time zone of the tz database. TZ is not used: a library must not change the TZ of its process,
 * and neither C nor POSIX can convert a time in another zone. */
struct time_zone;
/* Reads the zone of this name ("Europe/Berlin") from $TZDIR, else /usr/share/zoneinfo. Returns 0,
 * -EINVAL for a name that is not a time zone, or another -errno if its file cannot be read, with a
 * sentence. The caller frees the zone by free(). */
int time_zone_open(const char *name, struct time_zone **ret, struct problem *ret_problem);
/* Reads a zone from the bytes of its file (TZif 2 and later, RFC 9636), which are copied. Returns
 * 0, -EINVAL or -ENOMEM. Files that count leap seconds are refused, since modification times do not
 * count them. Pure. */
int time_zone_parse(const unsigned char *bytes, size_t n, struct time_zone **ret);

/* Sets *ret to the local time at utc_s seconds since the epoch, with tm_gmtoff and tm_zone
 * (borrowed from the zone). A zone of NULL is UTC. Returns 0, or -ERANGE for a time after the year
 * 9999, or more than about 8,000 years before 1970. Thread-safe. */
int time_zone_local(const struct time_zone *zone, int64_t utc_s, struct tm *ret);
