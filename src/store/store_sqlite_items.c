#include "store/store_sqlite_items.h"
#include "store/store_sqlite_statements.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COMPACT_PAGES "500" /* at a time: 2 MiB */

static void fail_op(struct items_op *op, int r)
{
	op->outcome = doc_failure(op->key, r, &op->problem);
}

static int add_op_row(struct items_op *op, const char *pk, const char *sk, const char *doc)
{
	text_add_bytes(&op->rows, pk, strlen(pk) + 1);
	text_add_bytes(&op->rows, sk, strlen(sk) + 1);
	text_add_bytes(&op->rows, doc, strlen(doc) + 1);
	return op->rows.error ? SQLITE_NOMEM : SQLITE_OK;
}

/* Finds one row and adds it to the op's rows. */
static int find(struct items *items, struct items_op *op, struct item_key key, bool *ret_found)
{
	sqlite3_stmt *select = items_bound(items, ITEMS_SQL_SELECT, key);
	bool found = sqlite3_step(select) == SQLITE_ROW;
	int rc = SQLITE_OK;

	if (found) {
		const char *doc = (const char *)sqlite3_column_text(select, 0);
		rc = doc ? add_op_row(op, key.pk, key.sk, doc) : SQLITE_NOMEM;
	}
	int reset = sqlite3_reset(select);
	*ret_found = found;
	return rc ? rc : reset;
}

static const char *found_doc(const struct items_op *op)
{
	const char *sk = op->rows.data + strlen(op->rows.data) + 1;

	return sk + strlen(sk) + 1;
}

static int get(struct items *items, struct items_op *op)
{
	bool found;
	int rc = find(items, op, op->key, &found);

	op->outcome = found ? OUTCOME_OK : OUTCOME_ABSENT;
	return rc;
}

/* In one transaction, since each takes and gives back two locks of the file. */
static int get_many(struct items *items, struct items_op *op)
{
	bool found;
	int rc = items_run(items, ITEMS_SQL_SNAPSHOT);

	for (size_t i = 0; i < op->n_keys && !rc; i++)
		rc = find(items, op, op->keys[i], &found);
	if (!rc)
		rc = items_run(items, ITEMS_SQL_COMMIT);
	if (rc)
		items_rollback(items);
	op->outcome = OUTCOME_OK;
	return rc;
}

static int query_rows(sqlite3_stmt *select, struct items_op *op)
{
	const struct dynamodb_range *range = op->range;
	unsigned count = 0;

	while (sqlite3_step(select) == SQLITE_ROW) {
		const char *sk = (const char *)sqlite3_column_text(select, 0);
		const char *doc = (const char *)sqlite3_column_text(select, 1);

		if (!sk || !doc)
			return SQLITE_NOMEM;
		if (range->after && range->from && strcmp(sk, range->from) == 0)
			continue;
		if (range->to && strcmp(sk, range->to) > 0)
			break;
		op->more = (range->most && count == range->most) || op->rows.len >= ITEMS_PAGE;
		if (op->more)
			break;
		int rc = add_op_row(op, range->pk, sk, doc);
		if (rc)
			return rc;
		count++;
	}
	return SQLITE_OK;
}

static int query(struct items *items, struct items_op *op)
{
	const char *from = op->range->from ? op->range->from : "";
	sqlite3_stmt *select =
		items_bound(items, ITEMS_SQL_RANGE, (struct item_key){op->range->pk, from});
	int rc = query_rows(select, op);
	int reset = sqlite3_reset(select);

	op->outcome = OUTCOME_OK;
	return rc ? rc : reset;
}

static int write_doc(
	struct items *items, enum items_statement which, struct item_key key, const char *doc)
{
	sqlite3_bind_text(items_bound(items, which, key), 3, doc, -1, SQLITE_STATIC);
	return items_run(items, which);
}

static int upsert(struct items *items, const struct items_op *op, const char *doc)
{
	return write_doc(items, ITEMS_SQL_UPSERT, op->key, doc);
}

static bool is_put_if_absent(const struct items_op *op)
{
	return op->kind == ITEMS_PUT && op->n_conditions == 1 &&
	       op->conditions->test == CONDITION_ABSENT && strcmp(op->conditions->name, "pk") == 0;
}

/* One search instead of two, for what each new file costs. */
static int put_if_absent(struct items *items, struct items_op *op)
{
	bool found;
	int rc = write_doc(items, ITEMS_SQL_INSERT, op->key, op->doc);

	op->outcome = OUTCOME_OK;
	if (rc || sqlite3_changes(items->db))
		return rc;
	op->outcome = OUTCOME_REFUSED;
	return find(items, op, op->key, &found);
}

static int write_changed(struct items *items, struct items_op *op, struct item *present)
{
	char *doc = NULL;
	int r = item_apply(present, op->changes, op->n_changes);
	int rc = SQLITE_OK;

	if (!r)
		r = doc_encode(present, &doc);
	if (r)
		fail_op(op, r);
	else
		rc = write_doc(items, ITEMS_SQL_UPDATE, op->key, doc);
	free(doc);
	return rc;
}

static int write_op(struct items *items, struct items_op *op, struct item *present)
{
	switch (op->kind) {
	case ITEMS_PUT:
		return upsert(items, op, op->doc);
	case ITEMS_UPDATE:
		return write_changed(items, op, present);
	default:
		items_bound(items, ITEMS_SQL_DELETE, op->key);
		return items_run(items, ITEMS_SQL_DELETE);
	}
}

static int count_up(struct item *item, const char *name)
{
	int64_t n = 0;

	if (item_number(item, name, &n) == -EINVAL)
		return -EBADMSG;
	return item_set_number(item, name, n + 1);
}

/* Leaves the row as it then is in op->rows. */
static int take(struct items *items, struct items_op *op)
{
	const struct taking *taking = op->taking;
	bool found;
	int rc = find(items, op, op->key, &found);
	struct item item = {0};
	char *doc = NULL;
	int r = !rc && found ? doc_decode(op->key, found_doc(op), &item) : 0;
	bool may = found ? !taking_only_creates(taking) &&
				   item_satisfies(&item, taking->conditions, taking->n_conditions)
			 : taking->or_absent;

	op->outcome = may ? OUTCOME_OK : OUTCOME_REFUSED;
	if (!r && !rc && may) {
		r = item_apply(&item, taking->changes, taking->n_changes);
		if (!r && taking->count)
			r = count_up(&item, taking->count);
		if (!r)
			r = doc_encode(&item, &doc);
		if (!r)
			rc = upsert(items, op, doc);
		text_reset(&op->rows);
		if (!r && !rc)
			rc = add_op_row(op, op->key.pk, op->key.sk, doc);
	}
	if (r)
		fail_op(op, r);
	free(doc);
	item_clear(&item);
	return rc;
}

/* Leaves the present row in op->rows if the conditions do not hold, else nothing. */
static int write_if(struct items *items, struct items_op *op)
{
	bool found = false;
	bool look = op->n_conditions || op->kind == ITEMS_UPDATE;
	int rc = look ? find(items, op, op->key, &found) : SQLITE_OK;
	struct item present = {0};
	int r = !rc && found ? doc_decode(op->key, found_doc(op), &present) : 0;

	op->outcome = OUTCOME_OK;
	if (r)
		fail_op(op, r);
	else if (!rc && ((op->kind == ITEMS_UPDATE && !found) ||
				!item_satisfies(&present, op->conditions, op->n_conditions)))
		op->outcome = OUTCOME_REFUSED;
	else if (!rc)
		rc = write_op(items, op, &present);
	if (op->outcome != OUTCOME_REFUSED)
		text_clear(&op->rows);
	item_clear(&present);
	return rc;
}

static int first_number(void *arg, int columns, char **values, char **names)
{
	(void)columns, (void)names;
	*(long *)arg = values[0] ? strtol(values[0], NULL, 10) : 0;
	return 0;
}

static int read_pragma(struct items *items, const char *pragma, long *ret)
{
	*ret = 0;
	return sqlite3_exec(items->db, pragma, first_number, ret, NULL);
}

/* A file that was made without auto_vacuum is written anew once, at a stretch. */
static int free_some(struct items *items, bool *ret_more)
{
	long mode, left;
	int rc = read_pragma(items, "PRAGMA auto_vacuum", &mode);
	if (!rc)
		rc = sqlite3_exec(items->db,
			mode ? "PRAGMA incremental_vacuum(" COMPACT_PAGES ")"
			     : "PRAGMA auto_vacuum = INCREMENTAL; VACUUM",
			NULL, NULL, NULL);
	if (!rc)
		rc = read_pragma(items, "PRAGMA freelist_count", &left);
	*ret_more = !rc && left > 0;
	return rc;
}

/* The file itself is cut when its log is written back. That waits for nobody who reads just now:
 * then the last one that closes the file does it. */
static int compact(struct items *items, struct items_op *op)
{
	int rc = free_some(items, &op->more);

	if (!rc && !op->more)
		sqlite3_exec(items->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
	op->outcome = OUTCOME_OK;
	return rc;
}

int items_apply(struct items *items, struct items_op *op)
{
	int rc;

	op->more = false;
	text_reset(&op->rows);
	switch (op->kind) {
	case ITEMS_GET:
		rc = get(items, op);
		break;
	case ITEMS_GET_MANY:
		rc = get_many(items, op);
		break;
	case ITEMS_QUERY:
		rc = query(items, op);
		break;
	case ITEMS_TAKE:
		rc = take(items, op);
		break;
	case ITEMS_COMPACT:
		rc = compact(items, op);
		break;
	case ITEMS_SYNC:
		op->outcome = OUTCOME_OK;
		rc = SQLITE_OK;
		break;
	default:
		rc = is_put_if_absent(op) ? put_if_absent(items, op) : write_if(items, op);
	}
	return rc;
}
