/* Figures as people read them: counts, bytes, times. Every command that prints a figure for people
 * takes it from here, so that the same figure looks the same everywhere; JSON and metrics have
 * plain numbers instead. Pure. */
#include "cli/human_figures.h"
#include <inttypes.h>

void human_count(struct text *t, uint64_t n)
{
	if (n >= 1000) {
		human_count(t, n / 1000);
		text_addf(t, ",%03" PRIu64, n % 1000);
	} else {
		text_addf(t, "%" PRIu64, n);
	}
}

void human_bytes(struct text *t, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	if (bytes < 1024) {
		text_addf(t, "%" PRIu64 " B", bytes);
		return;
	}
	size_t unit = 0;
	double n = (double)bytes / 1024;
	for (; n >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
		n /= 1024;
	text_addf(t, "%.1f %s", n, units[unit]);
}

void human_seconds(struct text *t, double seconds)
{
	if (seconds < 59.5) {
		text_addf(t, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
		return;
	}
	uint64_t s = (uint64_t)(seconds + 0.5);
	if (s < 3600)
		text_addf(t, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
	else
		text_addf(t, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
}

void human_age(struct text *t, uint64_t seconds)
{
	const uint64_t minutes = seconds / 60, hours = minutes / 60;
	if (seconds < 120)
		text_addf(t, "%" PRIu64 " s", seconds);
	else if (minutes < 120)
		text_addf(t, "%" PRIu64 " min", minutes);
	else if (hours < 48)
		text_addf(t, "%" PRIu64 " h", hours);
	else
		text_addf(t, "%" PRIu64 " days", hours / 24);
}

void human_things(struct text *t, uint64_t n, const char *thing)
{
	human_count(t, n);
	text_addf(t, n == 1 ? " %s" : " %ss", thing);
}
