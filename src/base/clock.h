/* The clocks. clock_boot_ns() alone decides whether a lease has expired. The wall clock is for
 * signatures and for people. */
#pragma once
#include <locale.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_MS 1000000ULL
#define NS_PER_S  1000000000ULL

/* The longest time that is counted, ten years: sums of such times in ns do not overflow. */
#define CLOCK_SPAN_MAX_MS (3650ULL * 24 * 3600 * 1000)

#define CLOCK_LAST_S   253402300799 /* 9999-12-31T23:59:59Z: years have four digits */
#define CLOCK_WARN_S   60           /* a clock this far off is worth a warning */
#define CLOCK_IS_OFF_S 240          /* a clock this far off is wrong; DynamoDB allows 300, S3 900 */

/* CLOCK_BOOTTIME in ns: elapsed time that counts suspend and never steps. */
uint64_t clock_boot_ns(void);
/* CLOCK_MONOTONIC in ns, for interfaces that take this clock. It does not advance during
 * suspend. */
uint64_t clock_monotonic_ns(void);
/* Returns the offset in ns of clock_boot_ns() from the host's CLOCK_BOOTTIME, which is 0 outside of
 * a time namespace. */
int64_t clock_boot_shift_ns(void);
/* CLOCK_REALTIME in ns since the epoch, and in s. */
int64_t clock_wall_ns(void);
int64_t clock_wall_s(void);
/* Returns the time, or ten years if it is longer. Pure. */
static inline uint64_t clock_span_ms(uint64_t ms)
{
	return ms < CLOCK_SPAN_MAX_MS ? ms : CLOCK_SPAN_MAX_MS;
}
/* Converts to nanoseconds since the epoch. A file may have any time: one that does not fit into 64
 * bits, before 1677 or after 2262, becomes INT64_MIN or INT64_MAX. Pure. */
static inline int64_t clock_to_ns(struct timespec t)
{
	int64_t ns;
	if (__builtin_mul_overflow((int64_t)t.tv_sec, (int64_t)NS_PER_S, &ns) ||
		__builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}
/* Identity of this boot (Linux: /proc/sys/kernel/random/boot_id), "" where unknown. ret is always
 * terminated. */
void clock_boot_id(char ret_id[static 37]);

/* The locale "C", for dates that other programs write or read: names of days and months must not
 * depend on the locale of the process. Thread-safe. */
locale_t clock_c_locale(void);
/* An HTTP date (RFC 9110, all three forms) as seconds since the epoch, or -EINVAL, also for NULL.
 * Pure. */
int64_t clock_parse_http_date(const char *s);
#define CLOCK_HTTP_DATE_CHARS 30
/* "Sun, 06 Nov 1994 08:49:37 GMT". Pure. */
void clock_format_http_date(int64_t wall_s, char ret[static CLOCK_HTTP_DATE_CHARS]);
/* "20261121T075628Z", as SigV4 wants it. Pure. */
void clock_format_amz(int64_t wall_s, char ret[static 17]);
/* An ISO 8601 time ("2026-11-21T07:56:28Z", "2026-11-21T02:56:28.5-05:00", "…-0500") as seconds
 * since the epoch, or -EINVAL. Pure. */
int64_t clock_parse_iso(const char *s);
/* "2026-11-21T07:56:28Z" for people. Pure. */
void clock_format_iso(int64_t wall_s, char ret[static 21]);
