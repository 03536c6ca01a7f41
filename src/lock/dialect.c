/* Reads and writes the lock rows of other clients, by a table of the attribute names of each
 * client. Also reads and writes durations in the notation of Go. The files lock*.c call these
 * functions, and send the requests. */
#include "lock/dialect.h"
#include "base/text.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void go_duration(uint64_t ms, char ret[static 40])
{
	const uint64_t h = ms / 3600000, m = ms / 60000 % 60, s = ms / 1000 % 60;
	char fraction[8] = "";
	if (ms % 1000)
		snprintf(fraction, sizeof fraction, ".%03u", (unsigned)(ms % 1000));
	/* Go writes no zeros at the end: 1500 ms are "1.5s". */
	for (size_t n = strlen(fraction); n && fraction[n - 1] == '0'; n--)
		fraction[n - 1] = '\0';
	if (ms > 0 && ms < 1000)
		snprintf(ret, 40, "%" PRIu64 "ms", ms);
	else if (h)
		snprintf(ret, 40, "%" PRIu64 "h%" PRIu64 "m%" PRIu64 "%ss", h, m, s, fraction);
	else if (m)
		snprintf(ret, 40, "%" PRIu64 "m%" PRIu64 "%ss", m, s, fraction);
	else
		snprintf(ret, 40, "%" PRIu64 "%ss", s, fraction);
}

/* The units of Go. It reads both the micro sign and the Greek letter mu, which look the same. */
static const struct {
	const char *name;
	double ms;
} units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"µs", 1e-3}, {"μs", 1e-3}, {"ms", 1}, {"s", 1e3},
	{"m", 6e4}, {"h", 3.6e6}};
enum { UNITS = sizeof units / sizeof *units };

/* Reads a number with its unit, such as the "1.5h" of "1.5h30m", and moves *text past it. Returns
 * the milliseconds, or -1 if Go could not read it. */
static double read_number_with_unit(const char **text)
{
	const char *s = *text;
	double value = 0, scale = 1;
	size_t digits = 0, unit = 0;
	for (; *s >= '0' && *s <= '9'; s++, digits++)
		value = value * 10 + (*s - '0');
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, digits++)
			value += (*s - '0') * (scale /= 10);
	const size_t n = strcspn(s, "0123456789."); /* length of the unit's name */
	while (unit < UNITS &&
		(strlen(units[unit].name) != n || memcmp(s, units[unit].name, n) != 0))
		unit++;
	if (!digits || unit == UNITS)
		return -1;
	*text = s + n;
	return value * units[unit].ms;
}

int go_duration_parse(const char *s, uint64_t *ret_ms)
{
	const double max_ms = 100.0 * 365 * 24 * 3600 * 1000; /* a hundred years, in ms */
	double sum = 0;
	if (*s == '+')
		s++;
	if (strcmp(s, "0") == 0) {
		*ret_ms = 0;
		return 0;
	}
	do { /* a number and its unit, at least once */
		const double ms = read_number_with_unit(&s);
		sum += ms;
		if (ms < 0 || sum > max_ms)
			return -EINVAL;
	} while (*s);
	/* A fraction of a millisecond is rounded up. But Go has only whole nanoseconds, so a
	 * fraction below half of one is an error of the floating-point sum. */
	*ret_ms = (uint64_t)sum + (sum > (double)(uint64_t)sum + 5e-7);
	return 0;
}

#define ROWS_OF_JAVA                                                                               \
	.pk_name = "key", .sk_default = "", .owner = "ownerName",                                  \
	.version = "recordVersionNumber", .lease = "leaseDuration", .released = "isReleased",      \
	.data = "data"

static const struct dialect dialects[] = {
	[S3ONCE_LOCK_JAVA] = {ROWS_OF_JAVA, .name = "java", .lease_form = LEASE_AS_MS},
	[S3ONCE_LOCK_GO] = {ROWS_OF_JAVA, .name = "go", .lease_form = LEASE_AS_GO},
	[S3ONCE_LOCK_PYTHON] = {.name = "python",
		.pk_name = "lock_key",
		.sk_name = "sort_key",
		.sk_default = "-",
		.owner = "owner_name",
		.version = "record_version_number",
		.lease = "lease_duration",
		.lease_form = LEASE_AS_SECONDS,
		.expires = "expiry_time",
		.expires_after_s = 3600}, /* the default of that client */
	[S3ONCE_LOCK_DLM] = {.name = "dlm",
		.pk_name = "resource_id",
		.sk_name = "concurrency_id",
		.sk_default = "",
		.sk_is_slot = true,
		.version = "release_code",
		.expires = "expires",
		.version_is_fixed = true,
		.by_wall_clock = true},
};
enum { DIALECTS = sizeof dialects / sizeof *dialects };

const struct dialect *dialect_of(enum s3once_lock_dialect kind)
{
	return (unsigned)kind < DIALECTS ? &dialects[kind] : NULL;
}

bool dialect_owns(const struct dialect *d, const char *name)
{
	const char *const own[] = {
		d->owner, d->version, d->lease, d->released, d->data, d->expires, DIALECT_TOKEN};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i] && strcmp(own[i], name) == 0)
			return true;
	return false;
}

/* The string attribute of this name, or "". `name` may be NULL: the dialect has no such attribute.
 */
static const char *string_or_empty(const struct item *item, const char *name)
{
	const char *value = name ? item_string(item, name) : NULL;
	return value ? value : "";
}

/* Reading rows. */

#define LEASE_MAX_MS (100ULL * 365 * 24 * 3600 * 1000) /* as go_duration_parse() allows */

/* Reads the length of a lease. Returns false if it is not more than 0, or if its unit is not
 * certain: text without a unit means milliseconds only in a LEASE_AS_MS dialect. */
static bool read_lease(const struct dialect *dialect, const struct item *item, uint64_t *ret_ms)
{
	const char *text = item_string(item, dialect->lease);
	char seconds[64];
	if (dialect->lease_form == LEASE_AS_SECONDS) {
		/* DynamoDB writes a number with at most 38 digits. It may have a fraction, as in
		 * the duration "2.5s". */
		const struct attribute *number = item_find(item, dialect->lease);
		text = number && number->type == VALUE_NUMBER ? seconds : NULL;
		snprintf(seconds, sizeof seconds, "%ss", text ? number->value : "");
	}
	if (!text)
		return false;
	bool is_read = go_duration_parse(text, ret_ms) == 0;
	if (!is_read && dialect->lease_form == LEASE_AS_MS)
		is_read = decimal_read(text, LEASE_MAX_MS, ret_ms);
	return is_read && *ret_ms > 0;
}

/* Returns the fault of a row, as a clause, or "" if it has none. Sets the lease and the expiry time
 * of *row. */
static const char *row_fault(
	const struct dialect *dialect, const struct item *item, struct lock_row *row)
{
	/* A row that is held does not have the attribute isReleased. dialect_read() has dealt with
	 * released rows, in which it is the string "1". */
	if (dialect->released && item_find(item, dialect->released))
		return "it is neither released nor held: isReleased is there and not the string 1";
	if (dialect->owner && !item_string(item, dialect->owner))
		return "it names no owner";
	if (!*row->version)
		return "it has no version";
	if (dialect->lease && !read_lease(dialect, item, &row->lease_ms))
		return "its lease cannot be read";
	if (dialect->expires &&
		(item_number(item, dialect->expires, &row->expires_s) || row->expires_s <= 0))
		return "its expiry time cannot be read";
	return "";
}

struct lock_row dialect_read(const struct dialect *dialect, const struct item *item)
{
	int64_t token = 0;
	struct lock_row row = {
		.state = ROW_HELD,
		.owner = string_or_empty(item, dialect->owner),
		.version = string_or_empty(item, dialect->version),
		.data = dialect->data ? item_find(item, dialect->data) : NULL,
		.why = "",
	};
	if (!item_number(item, DIALECT_TOKEN, &token) && token > 0)
		row.token = (uint64_t)token;
	if (row.data && row.data->type != VALUE_BYTES && row.data->type != VALUE_STRING)
		row.data = NULL; /* of a type that no client writes */
	if (strcmp(string_or_empty(item, dialect->released), "1") == 0) {
		row.state = ROW_FREE; /* the rest of a released row is not checked */
		return row;
	}
	row.why = row_fault(dialect, item, &row);
	if (*row.why) {
		row.state = ROW_UNREADABLE;
		row.lease_ms = 0;
	}
	return row;
}

/* Writing. */

void lock_change(struct lock_changes *changes, const char *name, enum value_type type,
	const char *value, size_t n)
{
	size_t i = 0;
	if (!name)
		return;
	while (i < changes->n && strcmp(changes->list[i].name, name) != 0)
		i++;
	assert(i < LOCK_CHANGES_MAX);
	if (i == changes->n) /* a new change, not a replacement */
		changes->n++;
	changes->list[i] = (struct change){.name = name, .type = type, .value = value, .n = n};
}

/* Strings and numbers are passed without their length, which change_bytes() finds out. */
void dialect_hold_changes(
	const struct dialect *dialect, const struct lock_write *write, struct lock_changes *ret)
{
	const bool in_seconds = dialect->lease_form == LEASE_AS_SECONDS;
	const uint64_t lease_s = (write->lease_ms + 999) / 1000;
	const uint64_t after_s =
		lease_s > dialect->expires_after_s ? lease_s : dialect->expires_after_s;
	if (dialect->lease_form == LEASE_AS_GO)
		go_duration(write->lease_ms, ret->lease);
	else
		snprintf(ret->lease, sizeof ret->lease, "%" PRIu64,
			in_seconds ? lease_s : write->lease_ms);
	snprintf(ret->expires, sizeof ret->expires, "%" PRId64, write->now_s + (int64_t)after_s);
	ret->n = 0;
	if (write->owner)
		lock_change(ret, dialect->owner, VALUE_STRING, write->owner, 0);
	lock_change(ret, dialect->lease, in_seconds ? VALUE_NUMBER : VALUE_STRING, ret->lease, 0);
	lock_change(ret, dialect->version, VALUE_STRING, write->version, 0);
	lock_change(ret, dialect->expires, VALUE_NUMBER, ret->expires, 0);
	if (write->data)
		lock_change(ret, dialect->data, VALUE_BYTES, write->data, write->data_bytes);
}

/* The lease becomes "0", which both the java client and the go client can read. Both read the lease
 * before isReleased, and neither can read a lease that the other client has written. */
void dialect_release_changes(const struct dialect *dialect, struct lock_changes *ret)
{
	ret->n = 0;
	lock_change(ret, dialect->released, VALUE_STRING, "1", 0);
	lock_change(ret, dialect->lease, VALUE_STRING, "0", 0);
}
