#include "cli/values.h"
#include "base/quote.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{"ms", 1},
	{"s", 1000},
	{"m", 60 * 1000},
	{"h", 3600 * 1000},
	{"d", 24 * 3600 * 1000},
	{NULL, 0},
};
static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", 1ULL << 10},
	{"KiB", 1ULL << 10},
	{"M", 1ULL << 20},
	{"MiB", 1ULL << 20},
	{"G", 1ULL << 30},
	{"GiB", 1ULL << 30},
	{"T", 1ULL << 40},
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

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units;
	return NULL;
}

static int number_with_unit(const char *s, const struct unit *units, const char *wanted,
	uint64_t *ret, struct problem *ret_problem)
{
	uint64_t n;
	const char *rest;
	int r = leading_number(s, &n, &rest);
	if (r == -ERANGE)
		return refuse(ret_problem, s, "is too large");
	const struct unit *unit = r == 0 ? find_unit(units, rest) : NULL;
	if (!unit)
		return refuse(ret_problem, s, wanted);
	if (n > UINT64_MAX / unit->factor)
		return refuse(ret_problem, s, "is too large");
	*ret = n * unit->factor;
	return 0;
}

int value_number(const char *s, uint64_t *ret, struct problem *ret_problem)
{
	static const struct unit none[] = {{"", 1}, {NULL, 0}};
	return number_with_unit(s, none, "is not a whole number", ret, ret_problem);
}

int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem)
{
	if (!strcmp(s, "0")) { /* of whatever unit */
		*ret_ms = 0;
		return 0;
	}
	return number_with_unit(s, duration_units,
		"is not a duration: write a whole number and one of ms, s, m, h, d, as in 30s",
		ret_ms, ret_problem);
}

int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem)
{
	return number_with_unit(s, size_units,
		"is not a size: write a whole number of bytes, or of KiB, MiB, GiB, TiB, as in 64MiB",
		ret_bytes, ret_problem);
}

/* The last unit in a list that divides n. */
static void show(struct text *t, const struct unit *units, uint64_t n)
{
	const struct unit *largest = units;
	for (; units->name; units++)
		if (n % units->factor == 0 && n >= units->factor)
			largest = units;
	text_addf(t, "%" PRIu64 "%s", n / largest->factor, largest->name);
}

void value_show_duration(struct text *t, uint64_t ms)
{
	show(t, duration_units, ms);
}

void value_show_size(struct text *t, uint64_t bytes)
{
	show(t, size_units, bytes);
}
