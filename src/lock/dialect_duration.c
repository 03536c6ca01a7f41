#include "lock/dialect.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void go_duration(uint64_t ms, char ret[static 40])
{
	const uint64_t h = ms / 3600000, m = ms / 60000 % 60, s = ms / 1000 % 60;
	unsigned fraction = (unsigned)(ms % 1000), digits = 3;
	int n = 0;
	if (ms > 0 && ms < 1000) {
		snprintf(ret, 40, "%ums", fraction);
		return;
	}
	if (h)
		n += snprintf(ret + n, 40 - (size_t)n, "%" PRIu64 "h", h);
	if (h || m)
		n += snprintf(ret + n, 40 - (size_t)n, "%" PRIu64 "m", m);
	n += snprintf(ret + n, 40 - (size_t)n, "%" PRIu64, s);
	for (; fraction && fraction % 10 == 0; fraction /= 10)
		digits--;
	if (fraction)
		n += snprintf(ret + n, 40 - (size_t)n, ".%0*u", (int)digits, fraction);
	snprintf(ret + n, 40 - (size_t)n, "s");
}

static const struct {
	const char *name;
	double ms;
} units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"µs", 1e-3}, {"μs", 1e-3}, {"ms", 1}, {"s", 1e3},
	{"m", 6e4}, {"h", 3.6e6}};

/* The unit that begins at s, or the number of units. */
static size_t unit_at(const char *s, size_t *ret_bytes)
{
	size_t i;
	*ret_bytes = strcspn(s, "0123456789.");
	for (i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i].name) == *ret_bytes &&
			memcmp(s, units[i].name, *ret_bytes) == 0)
			break;
	return i;
}

int go_duration_parse(const char *s, uint64_t *ret_ms)
{
	const double most = 100.0 * 365 * 24 * 3600 * 1000;
	double sum = 0;
	if (*s == '+')
		s++;
	if (strcmp(s, "0") == 0) {
		*ret_ms = 0;
		return 0;
	}
	if (!*s)
		return -EINVAL;
	while (*s) {
		double value = 0, scale = 1;
		size_t n = strspn(s, "0123456789"), digits = n, bytes;
		for (size_t i = 0; i < n; i++)
			value = value * 10 + (s[i] - '0');
		s += n;
		if (*s == '.')
			for (s++; *s >= '0' && *s <= '9'; s++, digits++)
				value += (*s - '0') * (scale /= 10);
		size_t unit = unit_at(s, &bytes);
		if (!digits || unit == sizeof units / sizeof *units)
			return -EINVAL;
		sum += value * units[unit].ms;
		s += bytes;
		if (!(sum <= most))
			return -EINVAL;
	}
	*ret_ms = (uint64_t)sum + (sum > (double)(uint64_t)sum + 5e-7);
	return 0;
}
