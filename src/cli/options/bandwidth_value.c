#include "cli/options/bandwidth_value.h"
#include "base/quote.h"
#include "cli/options/values.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_CHARS 64

static int refuse(struct problem *problem, const char *word, const char *why)
{
	problem_set(problem, "--bwlimit: '%s' %s", quote(word).text, why);
	return -EINVAL;
}

/* "20M" or "off". */
static int read_rate(const char *word, uint64_t *ret, struct problem *problem)
{
	*ret = 0;
	if (strcmp(word, "off") == 0)
		return 0;
	if (value_size(word, ret, problem) < 0) {
		problem_prefix(problem, "--bwlimit");
		return -EINVAL;
	}
	if (*ret < S3ONCE_RATE_LEAST)
		return refuse(problem, word, "is too small: at least 8KiB, or off");
	return 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "08:00,2M": cut at the comma. */
static int read_timed(char *word, struct s3once_rate *ret, struct problem *problem)
{
	char whole[WORD_CHARS];
	snprintf(whole, sizeof whole, "%s", word);
	char *comma = strchr(word, ',');
	const bool is_time = comma == word + 5 && is_digit(word[0]) && is_digit(word[1]) &&
			     word[2] == ':' && is_digit(word[3]) && is_digit(word[4]);
	const int hour = is_time ? 10 * (word[0] - '0') + word[1] - '0' : 24;
	const int minute = is_time ? 10 * (word[3] - '0') + word[4] - '0' : 0;
	if (hour > 23 || minute > 59)
		return refuse(problem, whole,
			"is not a time of day and a rate: write them as in 08:00,2M, with a blank between "
			"several");
	ret->minute = (unsigned)(60 * hour + minute);
	return read_rate(comma + 1, &ret->bytes_per_second, problem);
}

static int by_time(const void *a, const void *b)
{
	const struct s3once_rate *one = a, *other = b;
	return (one->minute > other->minute) - (one->minute < other->minute);
}

/* The next word of the value. False if there is none. A word that is too long is cut, and is
 * refused then. */
static bool next_word(const char **at, char ret[static WORD_CHARS])
{
	*at += strspn(*at, " \t");
	const size_t n = strcspn(*at, " \t");
	snprintf(ret, WORD_CHARS, "%.*s", (int)n, *at);
	*at += n;
	return n > 0;
}

int bandwidth_value(const char *value, struct s3once_rate ret_rates[static BANDWIDTH_RATES_MAX],
	size_t *ret_n, struct problem *ret_problem)
{
	char word[WORD_CHARS];
	size_t n = 0;
	if (!strchr(value, ',')) {
		*ret_n = 1;
		ret_rates[0] = (struct s3once_rate){0};
		return read_rate(value, &ret_rates[0].bytes_per_second, ret_problem);
	}
	for (const char *at = value; next_word(&at, word); n++) {
		if (n == BANDWIDTH_RATES_MAX)
			return refuse(ret_problem, value, "has more than 48 times");
		if (read_timed(word, &ret_rates[n], ret_problem) < 0)
			return -EINVAL;
	}
	qsort(ret_rates, n, sizeof *ret_rates, by_time);
	for (size_t i = 1; i < n; i++)
		if (ret_rates[i].minute == ret_rates[i - 1].minute)
			return refuse(ret_problem, value, "has a time twice");
	*ret_n = n;
	return 0;
}
