/* The rule by which the offset of a zone changes in the years that its file does not list: the TZ
 * string of POSIX, such as CET-1CEST,M3.5.0,M10.5.0/3. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TIME_ZONE_NAME_CHARS 16

/* What is in force for part of the year. */
struct time_zone_period {
	char name[TIME_ZONE_NAME_CHARS]; /* "CEST" */
	int32_t offset_s;                /* east of UTC */
};

/* A day in every year, and the second of it at which the period changes. */
struct time_zone_day {
	char form;            /* 'M': month, week, day; 'J': of 365 days; '0': of all days */
	int month, week, day; /* M: 1 to 12, 1 to 5 (last), 0 (Sunday) to 6; else only day */
	int32_t time_s;       /* may lie outside of the day */
};

struct time_zone_rule {
	struct time_zone_period standard, summer;
	bool has_summer;
	struct time_zone_day summer_begins, summer_ends; /* each in local time before the change */
};

/* False for what is not such a string, or has a summer time without its days. Pure. */
bool time_zone_rule_parse(const char *s, struct time_zone_rule *ret);
/* What is in force at wall_s, from year 0 to 9999. Borrowed from the rule. Thread-safe. */
const struct time_zone_period *time_zone_rule_at(const struct time_zone_rule *rule, int64_t wall_s);
