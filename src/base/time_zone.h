/* Local time of a place by the tz database, whatever TZ says: a library must not change the TZ of
 * its process, and neither C nor POSIX convert a time in another zone. */
#pragma once
#include "base/problem.h"
#include <stdint.h>
#include <time.h>

struct time_zone;
/* Reads the zone of this name ("Europe/Berlin") from $TZDIR, else /usr/share/zoneinfo. 0; -EINVAL
 * for a name that is not a time zone; another -errno if its file cannot be read; with a sentence.
 * Free it. */
int time_zone_open(const char *name, struct time_zone **ret, struct problem *ret_problem);
/* The same of the bytes of its file (TZif 2 and later, RFC 9636), which are copied. 0, -EINVAL or
 * -ENOMEM. Files that count leap seconds are refused, since times of files do not. Pure. */
int time_zone_parse(const unsigned char *bytes, size_t n, struct time_zone **ret);
void time_zone_free(struct time_zone *zone);

/* The calendar's time at wall_s seconds since the epoch, with tm_gmtoff and tm_zone (borrowed from
 * the zone). A zone of NULL is UTC. 0, or -ERANGE for a time of five-digit years. Thread-safe. */
int time_zone_local(const struct time_zone *zone, int64_t wall_s, struct tm *ret);
