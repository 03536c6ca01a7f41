/* The values of options that are more than a word: numbers, durations and sizes, times of day with
 * rates, addresses and files. options.c calls the first three by an option's type, and the commands
 * call the others. A value is refused with a sentence that quotes it; none is cut or guessed. */
#include "cli/options/values.h"
#include "base/files.h"
#include "base/must_have.h"
#include "base/quote.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#define WORD_CHARS  64 /* of a time of day with its rate */
#define BLANKS      " \t"
#define ADDRESS_MAX 64

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
	{"KiB", 1ULL << 10},
	{"MiB", 1ULL << 20},
	{"GiB", 1ULL << 30},
	{"TiB", 1ULL << 40},
	{NULL, 0},
};

static int refuse(struct problem *problem, const char *s, const char *what)
{
	return problem_error(problem, -EINVAL, "'%s' %s", quote(s).text, what);
}

/* The digits at the start of s; *ret_rest is what follows. */
static int leading_number(const char *s, uint64_t *ret, const char **ret_rest)
{
	char *rest;
	errno = 0;
	*ret = strtoull(s, &rest, 10);
	*ret_rest = rest;
	return *s < '0' || *s > '9' ? -EINVAL : -errno;
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
	const size_t len = strcspn(name, "0123456789");
	const struct unit *unit = duration_units;
	while (unit->name && (strlen(unit->name) != len || memcmp(unit->name, name, len) != 0))
		unit++;
	if (!unit->name || unit->factor >= *below)
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

/* What the unit stands for, which is written as "MiB" in any case, also without B or iB; 0: it is
 * none. */
static uint64_t size_factor(const char *name)
{
	static const char letters[] = "KMGT";
	const char *letter = *name ? strchr(letters, toupper((unsigned char)*name)) : NULL;
	const char *rest = letter ? name + 1 : name;
	if (letter && (*rest == 'i' || *rest == 'I'))
		rest++;
	if (*rest && strcasecmp(rest, "B") != 0)
		return 0;
	return letter ? 1ULL << 10 * (letter - letters + 1) : 1;
}

int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem)
{
	uint64_t n = 0, bytes;
	const char *name;
	int r = leading_number(s, &n, &name);
	const uint64_t factor = r == 0 ? size_factor(name) : 0;
	if (r == -ERANGE || __builtin_mul_overflow(n, factor, &bytes))
		return refuse(ret_problem, s, "is too large");
	if (!factor)
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

static int refuse_rate(struct problem *problem, const char *word, const char *why)
{
	return problem_error(problem, -EINVAL, "--bwlimit: '%s' %s", quote(word).text, why);
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
		return refuse_rate(problem, word, "is too small: at least 8KiB, or off");
	return 0;
}

/* "08:00,2M". */
static int read_timed(const char *word, struct s3once_rate *ret, struct problem *problem)
{
	unsigned hour = 24, minute = 0;
	int n = 0;
	if (strspn(word, "0123456789:") != 5 ||
		sscanf(word, "%2u:%2u,%n", &hour, &minute, &n) != 2 || n != 6 || hour > 23 ||
		minute > 59)
		return refuse_rate(problem, word,
			"is not a time of day and a rate: write them as in 08:00,2M, with a blank between "
			"several");
	ret->minute = 60 * hour + minute;
	return read_rate(word + n, &ret->bytes_per_second, problem);
}

static int by_time(const void *a, const void *b)
{
	const struct s3once_rate *one = a, *other = b;
	return (one->minute > other->minute) - (one->minute < other->minute);
}

int bandwidth_value(const char *value, struct s3once_rate ret_rates[static BANDWIDTH_RATES_MAX],
	size_t *ret_n, struct problem *ret_problem)
{
	char word[WORD_CHARS];
	const char *at = value;
	size_t n = 0;
	if (!strchr(value, ',')) {
		*ret_n = 1;
		ret_rates[0] = (struct s3once_rate){0};
		return read_rate(value, &ret_rates[0].bytes_per_second, ret_problem);
	}
	for (at += strspn(at, BLANKS); *at; at += strspn(at, BLANKS)) {
		const size_t chars = strcspn(at, BLANKS);
		if (n == BANDWIDTH_RATES_MAX)
			return refuse_rate(ret_problem, value, "has more than 48 times");
		/* A word that is too long is cut, and is refused then. */
		snprintf(word, sizeof word, "%.*s", (int)chars, at);
		if (read_timed(word, &ret_rates[n++], ret_problem) < 0)
			return -EINVAL;
		at += chars;
	}
	qsort(ret_rates, n, sizeof *ret_rates, by_time);
	for (size_t i = 1; i < n; i++)
		if (ret_rates[i].minute == ret_rates[i - 1].minute)
			return refuse_rate(ret_problem, value, "has a time twice");
	*ret_n = n;
	return 0;
}

int listen_address_parse(const char *value, struct listen_address *ret, struct problem *ret_problem)
{
	char address[ADDRESS_MAX] = "127.0.0.1";
	const char *colon = strrchr(value, ':'), *digits = colon ? colon + 1 : value;
	const bool is_number = strlen(digits) <= 5 && !digits[strspn(digits, "0123456789")];
	const unsigned long port = is_number ? strtoul(digits, NULL, 10) : 0;
	bool is_right = port && port <= UINT16_MAX;
	if (colon) {
		const bool has_brackets = *value == '[' && colon > value + 1 && colon[-1] == ']';
		const char *begin = value + has_brackets, *end = colon - has_brackets;
		snprintf(address, sizeof address, "%.*s", (int)(end - begin), begin);
		is_right &= *address && end - begin < ADDRESS_MAX &&
			    has_brackets == (strchr(address, ':') != NULL);
	}
	*ret = (struct listen_address){.length = sizeof(struct sockaddr_in)};
	if (is_right && uv_ip4_addr(address, (int)port, (void *)&ret->address) == 0)
		return 0;
	ret->length = sizeof(struct sockaddr_in6);
	if (is_right && uv_ip6_addr(address, (int)port, (void *)&ret->address) == 0)
		return 0;
	return problem_error(ret_problem, -EINVAL,
		"--metrics-listen: '%s' is not a port from 1 to 65535, nor an address and a port, such "
		"as 127.0.0.1:14469 or [::1]:14469",
		quote(value).text);
}

static bool is_directory(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int directory_option_check(const char *name, const char *path, struct problem *ret_problem)
{
	struct stat st;
	const int error = stat(path, &st)                                      ? errno
			  : !S_ISDIR(st.st_mode)                               ? ENOTDIR
			  : faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) ? errno
									       : 0;
	if (error)
		problem_set(ret_problem,
			"%s: %s cannot be used: %s; name a directory that this user may write to",
			name, quote(path).text, strerror(error));
	return -error;
}

/* An option that names a file which the program makes. */
struct file_option {
	const char *name, *path;
	const char *example; /* a name for a file, for somebody who named a directory */
	const char *other;   /* what to do instead of making the directory: "name ..." */
};

/* Refuses a path that is a directory, and one whose directory does not exist. */
static int check_file(const struct file_option *option, struct problem *ret_problem)
{
	char *folder = must_have(path_folder(option->path));
	const bool is_there = is_directory(folder);
	const bool is_taken = is_directory(option->path);
	if (!is_there)
		problem_set(ret_problem, "%s: the directory %s does not exist: make it, or %s",
			option->name, quote(folder).text, option->other);
	else if (is_taken)
		problem_set(ret_problem, "%s: %s is a directory: name a file in it, such as %s/%s",
			option->name, quote(option->path).text, quote(option->path).text,
			option->example);
	free(folder);
	return is_there && !is_taken ? 0 : -EINVAL;
}

int metrics_file_check(const char *path, struct problem *ret_problem)
{
	const struct file_option option = {
		"--metrics-file", path, "s3once.prom", "name the one that node_exporter reads"};
	struct stat st;
	const int error = check_file(&option, ret_problem);
	if (error || stat(path, &st) || S_ISREG(st.st_mode))
		return error;
	return problem_error(ret_problem, -EINVAL,
		"--metrics-file: %s is not a regular file, and would be replaced by one: name another "
		"one",
		quote(path).text);
}

int log_file_check(const char *path, struct problem *ret_problem)
{
	const struct file_option option = {
		"--log-file", path, "s3once.log", "name a file in another one"};
	struct stat st;
	if (check_file(&option, ret_problem))
		return -EINVAL;
	const bool is_there = stat(path, &st) == 0;
	char *folder = is_there ? NULL : must_have(path_folder(path));
	int error = -EINVAL;
	if (folder && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		problem_set(ret_problem,
			"--log-file: %s cannot be made: %s: allow it to this user, or name a file "
			"in another directory",
			quote(path).text, strerror(errno));
	else if (is_there && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		problem_set(ret_problem,
			"--log-file: %s is neither a file nor a device: name a file, or leave the "
			"option out and redirect the output",
			quote(path).text);
	else if (is_there && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		problem_set(ret_problem,
			"--log-file: %s cannot be written: %s: allow it to this user, or name "
			"another file",
			quote(path).text, strerror(errno));
	else
		error = 0;
	free(folder);
	return error;
}
