/* Takes the name of a rotated log apart: into the family, the rotation, and the suffix of
 * compression. It looks at names alone. The listings of rotated logs (rotation_table.c) and
 * {family} of keys use it. The suffixes are also what verify and forget cut off an object's key to
 * find the key of its mark, and what a run looks for in S3 when a log may have been compressed. */
#include "scan/key/rotated_name.h"
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* In the order of the array in family_rules_new(). GIVEN is the user's. */
enum pattern { USUAL, ENDING, ADDRESS, PUT_ASIDE, GIVEN, PATTERNS };
struct family_rules {
	regex_t regexes[PATTERNS]; /* without the last one if none is given */
	size_t n;
};

const char *const family_suffixes[FAMILY_SUFFIXES] = {".gz", ".bz2", ".xz", ".zst", ".lz4"};

#define YEAR  "(19|20)[0-9][0-9]"
#define MONTH "(0[1-9]|1[0-2])"
#define DAY   "(0[1-9]|[12][0-9]|3[01])"
#define HOUR  "([01][0-9]|2[0-4])"
#define SIXTY "[0-5][0-9]"
#define BREAK "[-_.:]?"
#define EPOCH "[1-3][0-9]{9}" /* since 1970 */

/* Whole dates, months, and weeks; the year first or last. */
#define DATE                                                                                       \
	"(" YEAR MONTH DAY "|" YEAR "[-_.]" MONTH "[-_.]" DAY "|" YEAR "[-_.]?" MONTH "|" YEAR     \
	"-W?[0-5][0-9]|" DAY "-" MONTH "-" YEAR "|" MONTH "-" DAY "-" YEAR ")"
#define TIME "([T_.-]?" HOUR "(" BREAK SIXTY "(" BREAK SIXTY ")?)?(Z|[+-][0-9]{4})?)"

/* The rotation is the longest of these three at the end of the name: DATED, a date that a time, the
 * seconds since 1970 and a counter may follow; EPOCH_ALONE, the seconds since 1970, perhaps with a
 * counter; COUNTED, a counter alone. */
#define DATED       "[._-][._-]?" DATE TIME "?([._-]" EPOCH ")?([._-][0-9]{1,7})?"
#define EPOCH_ALONE "[._-]" EPOCH "([._-][0-9]{1,4})?"
#define COUNTED     "[.][0-9]{1,4}"
#define ROTATION    "(" DATED "|" EPOCH_ALONE "|" COUNTED ")$"

/* An ending such as ".log", before which a rotation may stand. */
#define EXTENSION "[.][A-Za-z][A-Za-z0-9]{0,9}$"
/* Exactly four numbers with dots between them at the end of a name: an IPv4 address, whose last
 * number is not a counter. */
#define FOUR_NUMBERS "(^|[^0-9.]|(^|[^0-9])[.])([0-9]+[.]){3}[0-9]+$"
/* What logrotate adds to a live log that it puts aside: date and hour, see find_put_aside(). */
#define BACKUP "-[0-9]{10}[.]backup$"

int family_rules_new(const char *pattern, struct family_rules **ret, struct problem *ret_problem)
{
	const char *const patterns[PATTERNS] = {ROTATION, EXTENSION, FOUR_NUMBERS, BACKUP, pattern};
	struct family_rules *rules = calloc(1, sizeof *rules);
	if (!rules)
		return problem_error(ret_problem, -ENOMEM, "out of memory");
	for (; rules->n < PATTERNS && patterns[rules->n]; rules->n++) {
		char why[200];
		regex_t *regex = &rules->regexes[rules->n];
		const int error = regcomp(regex, patterns[rules->n], REG_EXTENDED);
		if (!error)
			continue;
		regerror(error, regex, why, sizeof why);
		family_rules_free(rules);
		return problem_error(ret_problem, error == REG_ESPACE ? -ENOMEM : -EINVAL,
			"is not an extended regular expression: %s", why);
	}
	*ret = rules;
	return 0;
}

void family_rules_free(struct family_rules *rules)
{
	if (!rules)
		return;
	while (rules->n)
		regfree(&rules->regexes[--rules->n]);
	free(rules);
}

/* A part of a name. */
struct span {
	size_t at, bytes;
};

/* Finds the leftmost match in the first n bytes and, of those that begin there, the longest. */
static bool find_match(const struct family_rules *rules, enum pattern pattern, const char *name,
	size_t n, struct span *ret)
{
	regmatch_t match = {.rm_so = 0, .rm_eo = (regoff_t)n};
	if (pattern >= rules->n || regexec(&rules->regexes[pattern], name, 1, &match, REG_STARTEND))
		return false;
	*ret = (struct span){(size_t)match.rm_so, (size_t)(match.rm_eo - match.rm_so)};
	return true;
}

static bool ends_in(const char *name, size_t n, const char *end)
{
	const size_t bytes = strlen(end);
	return n > bytes && memcmp(name + n - bytes, end, bytes) == 0;
}

/* Finds a rotation of a usual form at the end of the first n bytes. */
static bool find_usual(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span address;
	if (!find_match(rules, USUAL, name, n, ret) || ret->at == 0)
		return false;
	const bool is_counter = name[ret->at] == '.' && ret->bytes <= 5; /* COUNTED has no more */
	/* A file may be named after the address of a host, whose last number is not a counter. */
	return !is_counter || !find_match(rules, ADDRESS, name, n, &address);
}

/* Finds the rotation in the first n bytes: by the pattern that was given, else in a usual form at
 * the end of the name, or before its extension. A match that is empty or leaves nothing of the name
 * is none. */
static bool find_rotation(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span extension;
	if (find_match(rules, GIVEN, name, n, ret) && ret->bytes && ret->bytes < n)
		return true;
	if (*name == '.')
		return false;
	if (find_usual(rules, name, n, ret))
		return true;
	return find_match(rules, ENDING, name, n, &extension) &&
	       find_usual(rules, name, extension.at, ret);
}

/* Returns where the suffix of compression begins in the first n bytes, or n if there is none. */
static size_t suffix_at(const char *name, size_t n)
{
	for (size_t i = 0; i < FAMILY_SUFFIXES; i++)
		if (ends_in(name, n, family_suffixes[i]))
			return n - strlen(family_suffixes[i]);
	return n;
}

/* Finds what logrotate has added to the name of a live log that it has put aside: the ending
 * BACKUP. logrotate does so if it is about to create a log which the writer has already created.
 * The lines of such a file are nowhere else, so that it counts as rotated. Where a rotation or a
 * suffix of compression precedes this ending, the file is an unfinished copy of logrotate's. */
static bool find_put_aside(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span rotation;
	return *name != '.' && find_match(rules, PUT_ASIDE, name, n, ret) && ret->at &&
	       suffix_at(name, ret->at) == ret->at &&
	       !find_rotation(rules, name, ret->at, &rotation);
}

void family_of(const struct family_rules *rules, const char *base_name, struct family *ret)
{
	const size_t whole = strlen(base_name);
	const size_t n = suffix_at(base_name, whole);
	struct span rotation = {.at = whole}; /* if there is none, it is empty at the end */
	const bool is_put_aside = find_put_aside(rules, base_name, n, &rotation);
	const bool is_unfinished = !is_put_aside && (ends_in(base_name, n, ".backup") ||
							    ends_in(base_name, n, ".tmp"));
	const bool is_rotated =
		is_put_aside || (!is_unfinished && find_rotation(rules, base_name, n, &rotation));
	if (!is_rotated) /* a match that does not count may have set it */
		rotation = (struct span){.at = whole};
	const size_t tail_at = rotation.at + rotation.bytes, end = is_rotated ? n : whole;
	*ret = (struct family){.head = base_name,
		.head_bytes = rotation.at,
		.tail = base_name + tail_at,
		.tail_bytes = end - tail_at,
		.is_rotated = is_rotated,
		.is_unfinished = is_unfinished,
		.suffix = base_name + end};
}

int64_t family_moment(const struct family *family)
{
	int64_t digits = 0; /* of more than 18 digits, the last ones: so many have room */
	size_t n = 0;
	for (const char *p = family->head + family->head_bytes; p < family->tail; p++)
		if (*p >= '0' && *p <= '9') {
			n++;
			digits = (10 * digits + (*p - '0')) % INT64_C(1000000000000000000);
		}
	if (n == strlen("YYYYMMDDhhmmss") || n == strlen("YYYYMMDDhhmmssmmm"))
		return digits;
	return n >= strlen("YYYYMM") ? -digits : 0;
}

bool family_moment_is_unique(int64_t moment)
{
	return moment > 0;
}

void family_add(struct text *t, const struct family *family)
{
	text_add_bytes(t, family->head, family->head_bytes);
	text_add_bytes(t, family->tail, family->tail_bytes);
}
