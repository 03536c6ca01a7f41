/* A row by the table of its fields: what is read of it, and what a write of it says. */
#include "../check.h"
#include "marks/row.h"
#include <errno.h>
#include <stdlib.h>

struct thing {
	char name[5], id[5];
	char *note;
	int64_t number;
	uint64_t size;
	bool is_old;
};
static const struct row_field fields[] = {
	ROW_FIELD(struct thing, name, "name", FIELD_TEXT, .groups = 1, .is_always = true),
	ROW_FIELD(struct thing, id, "id", FIELD_ID, .groups = 2),
	ROW_FIELD(struct thing, note, "note", FIELD_COPY, .groups = 1),
	ROW_FIELD(struct thing, number, "number", FIELD_NUMBER, .groups = 1),
	ROW_FIELD(struct thing, size, "size", FIELD_SIZE, .groups = 1, .is_always = true),
	ROW_FIELD(struct thing, is_old, "old", FIELD_FLAG, .groups = 1),
};
static const struct row_table table = ROW_TABLE(fields);

static int read_one(const char *name, enum value_type type, const char *value, struct thing *ret)
{
	struct item item = {0};
	CHECK_INT(item_set(&item, name, type, value, strlen(value)), 0);
	const int error = row_read(&table, &item, ret);
	item_clear(&item);
	return error;
}

/* A value that is too long, or of another type, leaves the field unchanged. */
static void test_read(void)
{
	struct thing thing = {.name = "was", .id = "it", .number = 7, .size = 8};
	CHECK_INT(read_one("name", VALUE_STRING, "long ", &thing), -EBADMSG);
	CHECK_INT(read_one("name", VALUE_NUMBER, "1", &thing), -EBADMSG);
	CHECK_INT(read_one("id", VALUE_STRING, "", &thing), -EBADMSG);
	CHECK_INT(read_one("size", VALUE_NUMBER, "-1", &thing), -EBADMSG);
	CHECK_INT(read_one("number", VALUE_STRING, "1", &thing), -EBADMSG);
	CHECK_INT(read_one("nobody's", VALUE_STRING, "x", &thing), 0);
	CHECK_STRING(thing.name, "was");
	CHECK_STRING(thing.id, "it");
	CHECK(thing.number == 7 && thing.size == 8 && !thing.is_old && !thing.note);
	CHECK_INT(read_one("name", VALUE_STRING, "full", &thing), 0);
	CHECK_INT(read_one("number", VALUE_NUMBER, "-9", &thing), 0);
	CHECK_INT(read_one("old", VALUE_NUMBER, "1", &thing), 0);
	CHECK_INT(read_one("note", VALUE_STRING, "a", &thing), 0);
	CHECK_INT(read_one("note", VALUE_STRING, "b", &thing), 0);
	CHECK_STRING(thing.name, "full");
	CHECK_STRING(thing.note, "b");
	CHECK(thing.number == -9 && thing.is_old);
	free(thing.note);
}

/* A value that is not there is removed from a row that may have it, and not named in a new one. */
static void test_write(void)
{
	const struct thing thing = {.id = "me", .size = 3};
	struct row_write update = {0}, fresh = {.removes_nothing = true};
	row_set(&update, &table, 1, &thing);
	row_set(&fresh, &table, 1, &thing);
	CHECK_INT(update.n_changes, 5);
	CHECK_INT(fresh.n_changes, 2);
	CHECK_STRING(update.changes[0].value, "");
	CHECK_STRING(update.changes[1].name, "note");
	CHECK(!update.changes[1].value && !update.changes[2].value && !update.changes[4].value);
	CHECK_STRING(fresh.changes[1].value, "3");
	CHECK(fresh.changes[1].type == VALUE_NUMBER);
	row_expect(&update, &table, 2, &thing);
	row_expect(&update, &table, 2, &(struct thing){0});
	CHECK(update.conditions[0].test == CONDITION_EQUALS);
	CHECK_STRING(update.conditions[0].value, "me");
	CHECK(update.conditions[1].test == CONDITION_ABSENT);
}

int main(void)
{
	test_read();
	test_write();
	return check_result();
}
