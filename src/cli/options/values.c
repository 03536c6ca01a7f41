#include "cli/options/values.h"
#include "base/quote.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *name;
	uint64_t factor;
};

/* If a unit has several names, the last one is shown. */
static const struct unit duration_units[] = {
	{"ms", 1},
	{"sec", 1000},
	{"s", 1000},
	{"min", 60 * 1000},
	{"m", 60 * 1000},
	{"h", 3600 * 1000},
	{"d", 24 * 3600 * 1000},
	{NULL, 0},
};
static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ULL << 10},
	{"KB", 1ULL << 10},
	{"Ki", 1ULL << 10},
	{"KiB", 1ULL << 10},
	{"M", 1ULL << 20},
	{"MB", 1ULL << 20},
	{"Mi", 1ULL << 20},
	{"MiB", 1ULL << 20},
	{"G", 1ULL << 30},
	{"GB", 1ULL << 30},
	{"Gi", 1ULL << 30},
	{"GiB", 1ULL << 30},
	{"T", 1ULL << 40},
	{"TB", 1ULL << 40},
	{"Ti", 1ULL << 40},
	{"TiB", 1ULL << 40},
	{NULL, 0},
};

static int refuse(struct problem *problem, const char *s, const char *what)
{
	problem_set(problem, "'%s' %s", quote(s).text, what);
	return -EINVAL;
}

/* The digits at the start of s; *ret_rest is what follows. */
static int leading_number(const char *s, uint64_t *ret, const char **ret_rest)
{
	uint64_t n = 0;
	const char *at = s;
	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		if (n > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		n = n * 10 + digit;
	}
	if (at == s)
		return -EINVAL;
	*ret = n;
	*ret_rest = at;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name, size_t n,
	int compare(const char *, const char *, size_t))
{
	for (; units->name; units++)
		if (strlen(units->name) == n && compare(units->name, name, n) == 0)
			return units;
	return NULL;
}

int value_number(const char *s, uint64_t *ret, struct problem *ret_problem)
{
	uint64_t n;
	const char *rest;
	int r = leading_number(s, &n, &rest);
	if (r == -ERANGE)
		return refuse(ret_problem, s, "is too large");
	if (r < 0 || *rest)
		return refuse(ret_problem, s, "is not a whole number");
	*ret = n;
	return 0;
}

/* Adds the number and unit at the start of *s, whose unit is smaller than *below, and moves *s past
 * them. */
static int add_duration(const char **s, uint64_t *below, uint64_t *ms)
{
	uint64_t n, product;
	const char *name;
	int r = leading_number(*s, &n, &name);
	if (r < 0)
		return r;
	size_t len = strcspn(name, "0123456789");
	const struct unit *unit = find_unit(duration_units, name, len, strncmp);
	if (!unit || unit->factor >= *below)
		return -EINVAL;
	if (__builtin_mul_overflow(n, unit->factor, &product) ||
		__builtin_add_overflow(*ms, product, ms))
		return -ERANGE;
	*below = unit->factor;
	*s = name + len;
	return 0;
}

int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem)
{
	uint64_t ms = 0, below = UINT64_MAX;
	const char *at = s;
	int r = 0;
	if (strcmp(s, "0") != 0) /* which needs no unit */
		do
			r = add_duration(&at, &below, &ms);
		while (r == 0 && *at);
	if (r == -ERANGE)
		return refuse(ret_problem, s, "is too large");
	if (r < 0)
		return refuse(ret_problem, s,
			"is not a duration: write whole numbers with the units d, h, m (or min), s "
			"and ms, as in 30s, 5min or 1h30m");
	*ret_ms = ms;
	return 0;
}

int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem)
{
	uint64_t n, bytes;
	const char *name;
	int r = leading_number(s, &n, &name);
	const struct unit *unit =
		r == 0 ? find_unit(size_units, name, strlen(name), strncasecmp) : NULL;
	if (r == -ERANGE || (unit && __builtin_mul_overflow(n, unit->factor, &bytes)))
		return refuse(ret_problem, s, "is too large");
	if (!unit)
		return refuse(ret_problem, s,
			"is not a size: write a whole number of bytes, or one with the unit K, M, G "
			"or T, as in 64M or 64MiB");
	*ret_bytes = bytes;
	return 0;
}

/* The last unit in a list that divides n. */
static void show_in_units(struct text *t, const struct unit *units, uint64_t n)
{
	const struct unit *largest = units;
	for (; units->name; units++)
		if (n % units->factor == 0 && n >= units->factor)
			largest = units;
	text_addf(t, "%" PRIu64 "%s", n / largest->factor, largest->name);
}

void value_show_duration(struct text *t, uint64_t ms)
{
	show_in_units(t, duration_units, ms);
}

void value_show_size(struct text *t, uint64_t bytes)
{
	show_in_units(t, size_units, bytes);
}
