/* Figures for people: counts, bytes, times. Every command that prints a figure for people takes it
 * from here, so that the same figure looks the same everywhere. JSON and metrics have plain numbers
 * instead. Pure.
 *
 * Some bounds are a little below a round number. printf() would round values above such a bound to
 * a text that is too long, such as "1024.0 KiB" or "60 s". */
#include "cli/human_figures.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

__attribute__((format(printf, 1, 2))) static struct figure figure(const char *format, ...)
{
	struct figure f;
	va_list ap;
	va_start(ap, format);
	vsnprintf(f.text, sizeof f.text, format, ap);
	va_end(ap);
	return f;
}

struct figure human_count(uint64_t n)
{
	return n < 1000 ? figure("%" PRIu64, n)
			: figure("%s,%03" PRIu64, human_count(n / 1000).text, n % 1000);
}

struct figure human_bytes(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double n = (double)bytes / 1024;
	size_t unit = 0;
	for (; n >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
		n /= 1024;
	return bytes < 1024 ? figure("%" PRIu64 " B", bytes) : figure("%.1f %s", n, units[unit]);
}

struct figure human_seconds(double seconds)
{
	if (seconds < 59.5)
		return figure("%.*f s", seconds < 9.95 ? 1 : 0, seconds);
	const uint64_t s = (uint64_t)(seconds + 0.5);
	if (s < 3600)
		return figure("%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
	return figure("%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
}

struct figure human_age(uint64_t seconds)
{
	const uint64_t minutes = seconds / 60, hours = minutes / 60;
	/* Minutes, hours and days are used from two of them on: "1 days" would be wrong. */
	if (seconds < 120)
		return figure("%" PRIu64 " s", seconds);
	if (minutes < 120)
		return figure("%" PRIu64 " min", minutes);
	return hours < 48 ? figure("%" PRIu64 " h", hours) : figure("%" PRIu64 " days", hours / 24);
}

struct figure human_things(uint64_t n, const char *thing)
{
	return figure(n == 1 ? "%s %s" : "%s %ss", human_count(n).text, thing);
}
