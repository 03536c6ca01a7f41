/* Takes the name of a rotated log apart: into the family, the rotation, and the suffix of
 * compression. It uses names alone. The listings of rotated logs (rotation_table.c) and {family} of
 * keys use it. With the suffixes, verify and forget find the key of a mark from its object's, and a
 * run looks in S3 for a log that may have been compressed. */
#include "scan/key/rotated_name.h"
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* In the order of the array in family_rules_new(). */
enum pattern {
	USUAL,
	ENDING,
	ADDRESS,
	PUT_ASIDE,
	INDEX,
	IIS,
	UNBROKEN,
	TAI64N,
	NAMELESS,
	PATTERNS
};
struct family_rules {
	regex_t regexes[PATTERNS];
	size_t n; /* the number of compiled patterns */
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
	"-W?[0-5][0-9]|" DAY "[-_.]?" MONTH "[-_.]?" YEAR "|" MONTH "[-_.]?" DAY "[-_.]?" YEAR ")"
#define TIME "([T_.-]?" HOUR "(" BREAK SIXTY "(" BREAK SIXTY ")?)?(Z|[+-][0-9]{4})?)"

/* The rotation is the longest of the following at the end of the name. */

/* A date, which a time, the seconds since 1970 and a counter may follow: "-20261130",
 * ".2026-11-30T12.1" */
#define DATED "[._-][._-]?" DATE TIME "?([._-]" EPOCH ")?([._-][0-9]{1,7})?"
/* The seconds since 1970, perhaps with a counter: ".1796040000", "-1796040000.2" */
#define EPOCH_ALONE "[._-]" EPOCH "([._-][0-9]{1,4})?"
#define COUNTED     "[.][0-9]{1,4}"  /* a counter: ".1" */
#define SERIAL      "[.]0[0-9]{4,9}" /* a long counter that begins with a zero: ".00042" */
#define CLOCK       HOUR ":" SIXTY ":" SIXTY
#define HOURS       "[.]" CLOCK "-" CLOCK /* Zeek's interval: ".13:00:00-14:00:00" */
/* journald's sequence id, sequence number and time, in hexadecimal: "@…-…-…" */
#define JOURNAL "@[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{16}"
#define WEEKDAY "[._-](Mon|Tue|Wed|Thu|Fri|Sat|Sun)" /* "-Mon", as PostgreSQL may have it */
#define OLD     "[._-]old"                           /* "-old", as administrators of MySQL rename */
#define ROTATION                                                                                   \
	"(" DATED "|" EPOCH_ALONE "|" COUNTED "|" SERIAL "|" HOURS "|" JOURNAL "|" WEEKDAY "|" OLD \
	")$"

/* An ending such as ".log", before which a rotation may stand. */
#define EXTENSION "[.][A-Za-z][A-Za-z0-9]{0,9}$"
/* Exactly four numbers with dots between them at the end of a name: an IPv4 address, whose last
 * number is not a counter. */
#define FOUR_NUMBERS "(^|[^0-9.]|(^|[^0-9])[.])([0-9]+[.]){3}[0-9]+$"
/* The ending that logrotate adds to a live log that it puts aside: date and hour, see
 * find_backup(). */
#define BACKUP "-[0-9]{10}[.]backup$"

/* log4j's numbers, only before an extension: logs of programs that run side by side also have such
 * names. */
#define BEFORE_EXTENSION "[^0-9]-[0-9]{1,3}$"
/* IIS's dates, only before an extension: the year without its century, month, day, and perhaps
 * hour. */
#define IIS_DATE   "_ex[0-9]{2}" MONTH DAY HOUR "?$"
#define IIS_BEFORE 3 /* bytes that precede the date */
/* Dates of Serilog and log4net: after a letter, perhaps with hour and minute, and a counter. */
#define UNBROKEN_DATE   "[A-Za-z]" YEAR MONTH DAY "(" HOUR "(" SIXTY ")?)?(_[0-9]{3,7})?$"
#define UNBROKEN_BEFORE 1 /* the letter */
/* A name, without its extension, that is nothing but a date or a number. */
#define NAMELESS_DATE "^(" DATE TIME "?([._-][0-9]{1,7})?|" EPOCH "([._-][0-9]{1,4})?|0[0-9]{4,9})$"
static const char nameless_family[] = "log";
/* The whole of a name that multilog, s6-log or svlogd gives to the former `current`. */
#define TAI64N_NAME "^@[0-9a-f]{24}[.][a-z]$"
static const char tai64n_family[] = "current";

int family_rules_new(struct family_rules **ret, struct problem *ret_problem)
{
	static const char *const patterns[PATTERNS] = {ROTATION, EXTENSION, FOUR_NUMBERS, BACKUP,
		BEFORE_EXTENSION, IIS_DATE, UNBROKEN_DATE, TAI64N_NAME, NAMELESS_DATE};
	struct family_rules *rules = calloc(1, sizeof *rules);
	/* The patterns are valid, so regcomp() can only run out of memory. */
	while (rules && rules->n < PATTERNS &&
		regcomp(&rules->regexes[rules->n], patterns[rules->n], REG_EXTENDED) == 0)
		rules->n++;
	if (!rules || rules->n < PATTERNS) {
		family_rules_free(rules);
		return problem_error(ret_problem, -ENOMEM, "out of memory");
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
	if (regexec(&rules->regexes[pattern], name, 1, &match, REG_STARTEND))
		return false;
	*ret = (struct span){(size_t)match.rm_so, (size_t)(match.rm_eo - match.rm_so)};
	return true;
}

static bool ends_in(const char *name, size_t n, const char *end)
{
	const size_t bytes = strlen(end);
	return n > bytes && memcmp(name + n - bytes, end, bytes) == 0;
}

/* Finds a rotation of a usual form at the end of the first n bytes. Returns its form, which is
 * FAMILY_PLAIN if there is none. */
static enum family_form find_usual(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span address;
	if (!find_match(rules, USUAL, name, n, ret) || ret->at == 0)
		return FAMILY_PLAIN;
	if (ends_in(name, n, "old")) /* only finished logs have this ending, as with a counter */
		return FAMILY_COUNTED;
	/* A counter is a dot and up to four digits. No other form is that short and begins so. */
	const char *rotation = name + ret->at;
	const bool begins_with_digit = rotation[1] >= '0' && rotation[1] <= '9';
	const bool is_counter = rotation[0] == '.' && begins_with_digit && ret->bytes <= 5;
	if (!is_counter)
		return FAMILY_DATED;
	/* A file may be named after the address of a host, whose last number is not a counter. */
	return find_match(rules, ADDRESS, name, n, &address) ? FAMILY_PLAIN : FAMILY_COUNTED;
}

/* Finds a date that follows a letter at the end of the first n bytes. Returns FAMILY_DATED, or
 * FAMILY_PLAIN if there is none. */
static enum family_form find_unbroken(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	if (!find_match(rules, UNBROKEN, name, n, ret))
		return FAMILY_PLAIN;
	*ret = (struct span){ret->at + UNBROKEN_BEFORE, ret->bytes - UNBROKEN_BEFORE};
	return FAMILY_DATED;
}

/* Finds the rotation in the first n bytes, in a usual form at the end of the name, or before its
 * extension. A match that leaves nothing of the name is none. */
static enum family_form find_rotation(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span extension;
	if (*name == '.')
		return FAMILY_PLAIN;
	enum family_form form = find_usual(rules, name, n, ret);
	if (!form)
		form = find_unbroken(rules, name, n, ret);
	if (form || !find_match(rules, ENDING, name, n, &extension))
		return form;
	/* The end of the name has no rotation: look before its extension. */
	form = find_usual(rules, name, extension.at, ret);
	if (!form)
		form = find_unbroken(rules, name, extension.at, ret);
	if (!form && find_match(rules, IIS, name, extension.at, ret)) {
		*ret = (struct span){ret->at + IIS_BEFORE, ret->bytes - IIS_BEFORE};
		form = FAMILY_DATED;
	} else if (!form && find_match(rules, INDEX, name, extension.at, ret)) {
		/* The number only, without the separator before it. */
		*ret = (struct span){ret->at + 1, ret->bytes - 1};
		form = FAMILY_INDEXED;
	}
	return form;
}

/* Returns where the suffix of compression begins in the first n bytes, or n if there is none. */
static size_t suffix_at(const char *name, size_t n)
{
	for (size_t i = 0; i < FAMILY_SUFFIXES; i++)
		if (ends_in(name, n, family_suffixes[i]))
			return n - strlen(family_suffixes[i]);
	return n;
}

/* Finds the ending BACKUP, which logrotate adds to the name of a live log that it puts aside.
 * logrotate does so if it is about to create a log which the writer has already created. The lines
 * of such a file are nowhere else, so that it counts as rotated. Where a rotation or a suffix of
 * compression precedes this ending, the file is an unfinished copy of logrotate's. */
static bool find_backup(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span rotation;
	if (*name == '.' || !find_match(rules, PUT_ASIDE, name, n, ret) || ret->at == 0)
		return false;
	const bool has_suffix = suffix_at(name, ret->at) < ret->at;
	return !has_suffix && !find_rotation(rules, name, ret->at, &rotation);
}

/* If a wildcard in logrotate's configuration also matches rotated files, they are rotated again
 * ("app.log.1.gz.1.gz"). Then extends *rotation, which is the last one (".1", since the last suffix
 * is not among the n bytes), to all that follows the first name (".1.gz.1"). `form` is the form of
 * the last one. Returns whether the log was compressed between two rotations. */
static bool extend_to_first_rotation(const struct family_rules *rules, const char *name, size_t n,
	enum family_form form, struct span *rotation)
{
	struct span inner, extension;
	bool was_packed = false;
	while (rotation->at + rotation->bytes == n) {
		const size_t end = suffix_at(name, rotation->at);
		const bool is_packed = end < rotation->at;
		if (!find_usual(rules, name, end, &inner))
			break;
		/* Without a suffix between them, a counter is the second rotation only if an
		 * extension precedes the first ("app.log.1.1"). */
		const bool is_second_counter =
			form == FAMILY_COUNTED &&
			find_match(rules, ENDING, name, inner.at, &extension);
		if (!is_packed && !is_second_counter)
			break;
		*rotation = (struct span){inner.at, n - inner.at};
		was_packed |= is_packed;
	}
	return was_packed;
}

/* Finds the rotation of a name whose first n bytes are nothing but the rotation, perhaps with an
 * extension. Returns the constant head of its family, or NULL if it is no such name. */
static const char *find_nameless(
	const struct family_rules *rules, const char *name, size_t n, struct span *ret)
{
	struct span extension;
	if (find_match(rules, TAI64N, name, n, ret))
		return tai64n_family;
	const size_t end = find_match(rules, ENDING, name, n, &extension) ? extension.at : n;
	return find_match(rules, NAMELESS, name, end, ret) ? nameless_family : NULL;
}

/* Takes a name apart whose first n bytes have this rotation, or none (FAMILY_PLAIN). */
static struct family cut_name(
	const char *base_name, size_t n, struct span rotation, enum family_form form)
{
	const size_t tail_at = rotation.at + rotation.bytes;
	return (struct family){.head = base_name,
		.head_bytes = rotation.at,
		.rotation = base_name + rotation.at,
		.rotation_bytes = rotation.bytes,
		.tail = base_name + tail_at,
		.tail_bytes = n - tail_at,
		.form = form,
		.suffix = base_name + n};
}

void family_of(const struct family_rules *rules, const char *base_name, struct family *ret)
{
	const size_t n = suffix_at(base_name, strlen(base_name));
	const struct span none = {
		.at = n}; /* an absent rotation is empty, at the end of the name */
	struct span rotation = none;
	const char *head = find_nameless(rules, base_name, n, &rotation);
	if (head) {
		rotation.at = 0;
		*ret = cut_name(base_name, n, rotation, FAMILY_DATED);
		ret->head = head;
		ret->head_bytes = strlen(head);
		return;
	}
	enum family_form form =
		find_backup(rules, base_name, n, &rotation) ? FAMILY_DATED : FAMILY_PLAIN;
	const bool is_unfinished =
		!form && (ends_in(base_name, n, ".backup") || ends_in(base_name, n, ".tmp"));
	if (!form && !is_unfinished)
		form = find_rotation(rules, base_name, n, &rotation);
	const bool may_be_repeated = form == FAMILY_COUNTED || form == FAMILY_DATED;
	const bool was_packed =
		may_be_repeated && extend_to_first_rotation(rules, base_name, n, form, &rotation);
	/* A rejected match may have set `rotation`. */
	*ret = cut_name(base_name, n, form ? rotation : none, form);
	ret->is_unfinished = is_unfinished;
	ret->was_packed = was_packed;
}

int64_t family_moment(const struct family *family)
{
	int64_t digits = 0; /* the last 18 digits, which fit */
	size_t n = 0;
	const char *const end = family->rotation + family->rotation_bytes;
	for (const char *p = family->rotation; p < end; p++)
		if (*p >= '0' && *p <= '9') {
			n++;
			digits = (10 * digits + (*p - '0')) % INT64_C(1000000000000000000);
		}
	if (n == strlen("YYYYMMDDhhmmss") || n == strlen("YYYYMMDDhhmmssmmm"))
		return digits;
	const bool is_date = n >= strlen("YYYYMM") || family->form == FAMILY_DATED;
	return is_date ? -digits : 0;
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
