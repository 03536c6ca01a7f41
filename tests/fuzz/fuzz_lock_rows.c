/* Rows of locks, whoever wrote them, read as each dialect: one is free only if it says so, held for
 * a time only if that time is certain, and else held for good. What is written is read again. */
#include "fuzz.h"
#include "lock/dialect.h"
#include "store/item_json.h"
#include <errno.h>

static bool says(const struct item *row, const char *name, const char *value)
{
	const char *found = name ? item_string(row, name) : NULL;
	return found && strcmp(found, value) == 0;
}

static void check_held(const struct dialect *dialect, const struct lock_row *row)
{
	ENSURE(*row->version && !*row->why);
	ENSURE(!dialect->lease || row->lease_ms > 0);
	ENSURE(!dialect->expires || row->expires_s > 0);
}

/* Neither dialect takes the other's number without a unit, or with one that it does not know. */
static void check_lease(const char *lease)
{
	uint64_t ms = 0, again = 0;
	char text[40];
	const bool is_number = *lease && !lease[strspn(lease, "0123456789")];
	const int r = go_duration_parse(lease, &ms);
	ENSURE(r == 0 || r == -EINVAL);
	ENSURE(r || !is_number || ms == 0);
	if (r)
		return;
	go_duration(ms, text);
	ENSURE(go_duration_parse(text, &again) == 0 && again == ms);
}

static void write_again(const struct dialect *dialect, const struct lock_row *row)
{
	struct item item = {0};
	const struct lock_write write = {.owner = "me",
		.version = row->version,
		.lease_ms = row->lease_ms ? row->lease_ms : 1000,
		.now_s = 1};
	struct lock_changes changes;
	dialect_hold_changes(dialect, &write, &changes);
	ENSURE(item_apply(&item, changes.list, changes.n) == 0);
	const struct lock_row again = dialect_read(dialect, &item);
	ENSURE(again.state == ROW_HELD && strcmp(again.version, row->version) == 0);
	/* A number of seconds is written without the fraction that another client may write. */
	const uint64_t rounding_ms = dialect->lease_form == LEASE_AS_SECONDS ? 999 : 0;
	ENSURE(!dialect->lease ||
		(again.lease_ms >= row->lease_ms && again.lease_ms - row->lease_ms <= rounding_ms));
	if (dialect->released) {
		dialect_release_changes(dialect, &changes);
		ENSURE(item_apply(&item, changes.list, changes.n) == 0);
		ENSURE(dialect_read(dialect, &item).state == ROW_FREE);
	}
	item_clear(&item);
}

static void read_as(const struct dialect *dialect, const struct item *item)
{
	const struct lock_row row = dialect_read(dialect, item);
	const char *lease = dialect->lease ? item_string(item, dialect->lease) : NULL;
	ENSURE((row.state == ROW_FREE) == says(item, dialect->released, "1"));
	ENSURE(row.owner && row.version && row.why);
	if (row.state == ROW_UNREADABLE)
		ENSURE(*row.why && row.lease_ms == 0);
	if (row.state == ROW_HELD) {
		check_held(dialect, &row);
		write_again(dialect, &row);
	}
	if (lease)
		check_lease(lease);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	struct item row = {0};
	const struct dialect *dialect;
	if (item_from_json(json, &row) == 0)
		for (unsigned i = 0; (dialect = dialect_of((enum s3once_lock_dialect)i)); i++)
			read_as(dialect, &row);
	item_clear(&row);
	json_decref(json);
	return 0;
}
