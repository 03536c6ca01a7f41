/* The values of options that are more than a word: numbers, durations and sizes, times of day with
 * rates, addresses, files, and the one reader of s3://BUCKET[/KEY]. options.c calls the first three
 * by an option's type, and the commands and fuzzers call the others. A value that is not valid is
 * refused with a sentence that quotes it. No value is cut or guessed. Of a bucket or an access
 * point only the name or the ARN is checked, and not whether it exists. */
#include "cli/options/values.h"
#include "aws/endpoint.h"
#include "base/files.h"
#include "base/must_have.h"
#include <arpa/inet.h>
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

#define WORD_CHARS  64 /* for a time of day with its rate */
#define BLANKS      " \t"
#define ADDRESS_MAX 64 /* bytes of an address without its port, with the NUL */

struct unit {
	const char *name;
	uint64_t factor;
};

/* The units of one kind of value. */
struct units {
	/* In ascending order. If a unit has several names, the last one is printed. */
	const struct unit *list;
	bool is_summed; /* a value may be a sum, such as "1h30m" */
	bool is_in_lower_case;
};

static const struct units duration_units = {
	.list =
		(const struct unit[]){
			{"ms", 1},
			{"sec", 1000},
			{"s", 1000},
			{"min", 60 * 1000},
			{"m", 60 * 1000},
			{"h", 3600 * 1000},
			{"d", 24 * 3600 * 1000},
			{NULL, 0},
		},
	.is_summed = true,
	.is_in_lower_case = true,
};

#define SIZE_UNITS(letter, factor)                                                                 \
	{letter, factor}, {letter "B", factor}, {letter "i", factor},                              \
	{                                                                                          \
		letter "iB", factor                                                                \
	}
static const struct units size_units = {
	.list =
		(const struct unit[]){
			{"", 1},
			{"B", 1},
			SIZE_UNITS("K", 1ULL << 10),
			SIZE_UNITS("M", 1ULL << 20),
			SIZE_UNITS("G", 1ULL << 30),
			SIZE_UNITS("T", 1ULL << 40),
			{NULL, 0},
		},
};

static const struct units no_units = {.list = (const struct unit[]){{"", 1}, {NULL, 0}}};

/* Finds the unit with this name of n bytes. "" is the unit of a bare number. NULL: there is no such
 * unit. */
static const struct unit *find_unit(const struct units *units, const char *name, size_t n)
{
	for (const struct unit *unit = units->list; unit->name; unit++)
		if (strlen(unit->name) == n &&
			(units->is_in_lower_case ? strncmp : strncasecmp)(unit->name, name, n) == 0)
			return unit;
	return NULL;
}

/* Adds up numbers with units, each unit once and the largest first. Returns 0, -ERANGE if the sum
 * is too large, or -EINVAL. */
static int read_in_units(const char *s, const struct units *units, uint64_t *ret)
{
	uint64_t product, last_factor = UINT64_MAX;
	*ret = 0;
	for (;;) {
		char *name;               /* the unit, after the digits */
		if (*s < '0' || *s > '9') /* strtoull() would accept a blank or a sign */
			return -EINVAL;
		errno = 0;
		const uint64_t n = strtoull(s, &name, 10);
		if (errno)
			return -ERANGE;
		const size_t name_bytes = strcspn(name, "0123456789");
		const struct unit *unit = find_unit(units, name, name_bytes);
		s = name + name_bytes; /* the next number */
		const bool has_more = *s != '\0';
		if (!unit || unit->factor >= last_factor || (has_more && !units->is_summed))
			return -EINVAL;
		if (__builtin_mul_overflow(n, unit->factor, &product) ||
			__builtin_add_overflow(*ret, product, ret))
			return -ERANGE;
		if (!has_more)
			return 0;
		last_factor = unit->factor;
	}
}

/* Reads as read_in_units() does. `complaint` is the predicate of the sentence about a value that is
 * not valid, such as "is not a whole number". */
static int value_in_units(const char *s, const struct units *units, const char *complaint,
	uint64_t *ret, struct problem *problem)
{
	uint64_t n;
	const int r = read_in_units(s, units, &n);
	if (r < 0)
		return problem_error(problem, -EINVAL, "'%s' %s", quote(s).text,
			r == -ERANGE ? "is too large" : complaint);
	*ret = n;
	return 0;
}

int value_number(const char *s, uint64_t *ret, struct problem *ret_problem)
{
	return value_in_units(s, &no_units, "is not a whole number", ret, ret_problem);
}

int value_duration(const char *s, uint64_t *ret_ms, struct problem *ret_problem)
{
	static const char complaint[] =
		"is not a duration: write whole numbers with d, h, m (or min), s, ms, as in 1h30m";
	const char *with_unit = strcmp(s, "0") == 0 ? "0s" : s; /* a zero needs none */
	return value_in_units(with_unit, &duration_units, complaint, ret_ms, ret_problem);
}

int value_size(const char *s, uint64_t *ret_bytes, struct problem *ret_problem)
{
	static const char complaint[] =
		"is not a size: write a whole number of bytes, or one with the unit K, M, G or T, "
		"as in 64M or 64MiB";
	return value_in_units(s, &size_units, complaint, ret_bytes, ret_problem);
}

/* Writes n in the largest unit that divides it. 0 has the smallest unit. */
static void show_in_units(struct text *t, const struct units *units, uint64_t n)
{
	const struct unit *largest = units->list;
	for (const struct unit *unit = units->list; unit->name; unit++)
		if (n % unit->factor == 0 && n >= unit->factor)
			largest = unit;
	text_addf(t, "%" PRIu64 "%s", n / largest->factor, largest->name);
}

void value_show_duration(struct text *t, uint64_t ms)
{
	show_in_units(t, &duration_units, ms);
}

void value_show_size(struct text *t, uint64_t bytes)
{
	show_in_units(t, &size_units, bytes);
}

static int refuse_rate(struct problem *problem, const char *word, const char *why)
{
	return problem_error(problem, -EINVAL, "--bwlimit: '%s' %s", quote(word).text, why);
}

/* Reads "20M", or "off", which becomes 0. Returns 0, or -EINVAL with a sentence, as the next
 * functions do. */
static int read_rate(const char *word, uint64_t *ret, struct problem *problem)
{
	*ret = 0;
	if (strcmp(word, "off") == 0)
		return 0;
	if (value_size(word, ret, problem) < 0) {
		problem_prefix(problem, "--bwlimit");
		return -EINVAL;
	}
	if (*ret < S3ONCE_RATE_MIN)
		return refuse_rate(problem, word, "is too small: at least 8KiB, or off");
	return 0;
}

/* Reads "08:00,2M". */
static int read_timed(const char *word, struct s3once_rate *ret, struct problem *problem)
{
	unsigned hour = 0, minute = 0;
	int n = 0; /* characters of "HH:MM,"; 0: there is no comma */
	/* sscanf() also accepts fewer digits, but the time has exactly five characters. */
	const bool is_time = strspn(word, "0123456789:") == 5 &&
			     sscanf(word, "%2u:%2u,%n", &hour, &minute, &n) == 2 && n == 6 &&
			     hour <= 23 && minute <= 59;
	if (!is_time)
		return refuse_rate(problem, word,
			"is not a time of day and a rate: write them as in 08:00,2M 19:00,off");
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
	/* Without a comma there is one rate, which has no time. */
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

/* Splits "PORT", which is on 127.0.0.1, "ADDRESS:PORT" or "[ADDRESS]:PORT". Returns false if the
 * value has none of these forms. */
static bool split_listen_address(
	const char *value, char ret_address[static ADDRESS_MAX], uint64_t *ret_port)
{
	const char *colon = strrchr(value, ':'), *digits = colon ? colon + 1 : value;
	const bool is_port = strlen(digits) <= 5 && decimal_read(digits, UINT16_MAX, ret_port);
	if (!is_port || *ret_port == 0)
		return false;
	if (!colon) {
		snprintf(ret_address, ADDRESS_MAX, "127.0.0.1");
		return true;
	}
	const bool has_brackets = *value == '[' && colon > value + 1 && colon[-1] == ']';
	const char *begin = value + has_brackets, *end = colon - has_brackets;
	if (begin == end || end - begin >= ADDRESS_MAX)
		return false;
	snprintf(ret_address, ADDRESS_MAX, "%.*s", (int)(end - begin), begin);
	/* An IPv6 address has colons. Only such an address is in brackets. */
	const bool is_ipv6 = strchr(ret_address, ':') != NULL;
	return has_brackets == is_ipv6;
}

int listen_address_parse(const char *value, struct listen_address *ret, struct problem *ret_problem)
{
	char address[ADDRESS_MAX];
	uint64_t port = 0;
	const bool is_split = split_listen_address(value, address, &port);
	*ret = (struct listen_address){.length = sizeof(struct sockaddr_in)};
	if (is_split && uv_ip4_addr(address, (int)port, (void *)&ret->address) == 0)
		return 0;
	ret->length = sizeof(struct sockaddr_in6);
	if (is_split && uv_ip6_addr(address, (int)port, (void *)&ret->address) == 0)
		return 0;
	return problem_error(ret_problem, -EINVAL,
		"--metrics-listen: '%s' is not a port from 1 to 65535, nor an address and a port, such "
		"as 127.0.0.1:14469 or [::1]:14469",
		quote(value).text);
}

int directory_option_check(const char *name, const char *path, struct problem *ret_problem)
{
	struct stat st;
	int error = 0;
	const bool is_there = stat(path, &st) == 0;
	if (is_there && !S_ISDIR(st.st_mode))
		error = ENOTDIR;
	else if (!is_there || faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0)
		error = errno;
	if (error)
		problem_set(ret_problem,
			"%s: %s cannot be used: %s; name a directory that this user may write to",
			name, quote(path).text, strerror(error));
	return -error;
}

int output_file_check(enum made_file made, const char *path, struct problem *ret_problem)
{
	static const char *const options[] = {
		[METRICS_FILE] = "--metrics", [LOG_FILE] = "--log-file"};
	static const char *const examples[] = {
		[METRICS_FILE] = "s3once.prom", [LOG_FILE] = "s3once.log"};
	const bool is_log = made == LOG_FILE;
	const struct quoted name = quote(path);
	struct stat st;
	if (stat(path, &st) || S_ISREG(st.st_mode) || (is_log && S_ISCHR(st.st_mode)))
		return 0;
	if (S_ISDIR(st.st_mode))
		return problem_error(ret_problem, -EINVAL,
			"%s: %s is a directory: name a file in it, such as %s/%s", options[made],
			name.text, name.text, examples[made]);
	return problem_error(ret_problem, -EINVAL, "%s: %s is %s", options[made], name.text,
		is_log ? "neither a file nor a device: name a file, or redirect the output"
		       : "no regular file, and would be replaced by one: name another");
}

static int refuse_url(struct problem *problem, const char *s, const char *why)
{
	return problem_error(problem, -EINVAL, "'%s': %s", quote(s).text, why);
}

bool url_is_s3(const char *s)
{
	return strncasecmp(s, "s3:", 3) == 0;
}

/* Returns the rule that a bucket's name of n bytes breaks, as a clause, or NULL. */
static const char *bucket_fault(const char *name, size_t n)
{
	struct in_addr address;
	char copy[BUCKET_MAX + 1];
	if (n < 3 || n > BUCKET_MAX)
		return "a bucket's name has 3 to 63 characters";
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") < n)
		return "a bucket's name has only lower-case letters, digits, dots and hyphens";
	if (strchr(".-", name[0]) || strchr(".-", name[n - 1]))
		return "a bucket's name begins and ends with a letter or a digit";
	memcpy(copy, name, n);
	copy[n] = 0;
	if (strstr(copy, ".."))
		return "a bucket's name has no two dots side by side";
	if (inet_pton(AF_INET, copy, &address) == 1)
		return "a bucket's name must not look like an IP address";
	return NULL;
}

/* Returns the length of the ARN at the beginning of s. An ARN has five fields that end with ':',
 * the type of a resource with ':' or '/', and the name of the resource, which ends before a '/'.
 * If s is no ARN, the length has no meaning, and endpoint_arn_parse() refuses the text. */
static size_t arn_length(const char *s)
{
	size_t n = 0;
	for (int colons = 0; s[n] && colons < 5; n++)
		colons += s[n] == ':';
	n += strcspn(s + n, ":/");
	n += s[n] != '\0';
	return n + strcspn(s + n, "/");
}

int url_parse(const char *s, struct s3_url *ret, struct problem *ret_problem)
{
	static const char scheme[] = "s3://";
	if (strncmp(s, scheme, strlen(scheme)) != 0)
		return refuse_url(
			ret_problem, s, "an S3 URL is written s3://BUCKET or s3://BUCKET/PREFIX");
	const char *bucket = s + strlen(scheme);
	const bool is_arn = strncmp(bucket, "arn:", 4) == 0;
	const size_t n = is_arn ? arn_length(bucket) : strcspn(bucket, "/");
	const char *fault = is_arn ? NULL : bucket_fault(bucket, n);
	if (is_arn && n > ARN_MAX)
		fault = "this is not the ARN of an access point";
	if (fault)
		return refuse_url(ret_problem, s, fault);
	memcpy(ret->bucket, bucket, n);
	ret->bucket[n] = 0;
	struct endpoint_arn arn; /* unused: only its validity counts here */
	if (is_arn && endpoint_arn_parse(ret->bucket, &arn, ret_problem) < 0)
		return -EINVAL;
	struct problem fault_of_key;
	const char *rest = bucket + n; /* "/KEY", "/" or "" */
	ret->key = *rest ? rest + 1 : rest;
	if (*ret->key && !key_valid(ret->key, strlen(ret->key), &fault_of_key))
		return refuse_url(ret_problem, s, fault_of_key.text);
	return 0;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

/* Returns the length of a variable of a shell at the beginning of s, or 0 if there is none. */
static size_t variable_length(const char *s)
{
	if (*s != '$')
		return 0;
	if (s[1] == '(' || s[1] == '{') {
		const char *end = strchr(s, s[1] == '(' ? ')' : '}');
		return end ? (size_t)(end + 1 - s) : 0;
	}
	const size_t n = strspn(s + 1, LETTERS);
	return n ? n + 1 : 0;
}

/* Returns the length of a field such as {host} or {env:NAME} at the beginning of s, or 0. */
static size_t field_length(const char *s)
{
	const char *end = *s == '{' ? strchr(s, '}') : NULL;
	const size_t n = end ? strspn(s + 1, LETTERS) : 0;
	return n && (s + 1 + n == end || s[1 + n] == ':') ? (size_t)(end + 1 - s) : 0;
}

/* Returns the length of a conversion of strftime(3) or of a systemd unit at the beginning of s, or
 * 0. The letters of %C3, a byte of an encoded key, are none. */
static size_t conversion_length(const char *s)
{
	if (*s != '%' || !s[1] || !strchr("YymdjHMSFTsbBaAVhin", s[1]))
		return 0;
	return isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2]) ? 0 : 2;
}

int url_refuse_fields(const char *key, struct problem *ret_problem)
{
	for (const char *p = key; *p; p++) {
		const size_t n = field_length(p);
		if (!n)
			continue;
		problem_set(ret_problem,
			"nothing fills in %s here: write its value, or a field of --key, as in "
			"--key '{host}/{path}'",
			quote_bytes(p, n).text);
		return -EINVAL;
	}
	return 0;
}

int url_parse_target(const char *s, struct s3_url *ret, struct problem *ret_problem)
{
	if (url_parse(s, ret, ret_problem) < 0)
		return -EINVAL;
	for (const char *p = ret->key; *p; p++) {
		const size_t field = field_length(p), conversion = conversion_length(p);
		const size_t n = field ? field : conversion ? conversion : variable_length(p);
		if (!n)
			continue;
		problem_set(ret_problem, "nothing fills in %s here: %s", quote_bytes(p, n).text,
			field        ? "fields are for key, as in key = {host}/{path}"
			: conversion ? "write the date of a file into key, as in key = "
				       "{mtime:%Y/%m/%d}/{path}"
				     : "write its value, or a field of key, as in key = "
				       "{host}/{path} or key = {env:NAME}/{path}");
		return -EINVAL;
	}
	return 0;
}

struct url_prefix url_prefix(const char *key)
{
	struct url_prefix prefix;
	struct text t = TEXT(sizeof prefix.text - 1);
	key_add_base(&t, key);
	snprintf(prefix.text, sizeof prefix.text, "%s", text_string(&t));
	text_clear(&t);
	return prefix;
}
