/* Marks packed into little memory, for readers of many: the stream of marks, the reads before
 * claims, and the tasks of audits. */
#pragma once
#include "marks/mark.h"
#include "marks/row.h"

/* A mark and its key in one block of memory that is no larger than they need, for readers of many
 * marks. It is freed by free(). */
struct packed_mark {
	const char *key;
	const char *object_key; /* that of mark_suffix(); the same pointer if it has no suffix */
	bool is_absent;         /* there is no such mark */
	struct row_packed size; /* of the row; both keys follow it */
	char row[];
};
/* Packs the mark of a row, whose sort key is the mark's key. NULL: out of memory. An item that is
 * damaged, or not understood, becomes MARK_UNREADABLE, and an empty one is MARK_ABSENT. */
struct packed_mark *mark_pack(const struct found_item *found);
/* Likewise for the item of this key's mark. */
struct packed_mark *mark_pack_item(const char *key, const struct item *item);
/* Packs a mark that says that this version is done. NULL: out of memory. */
struct packed_mark *mark_pack_done(const char *key, const struct version *version);
/* Returns the mark, which borrows its strings, so that mark_clear() is not called for it. NULL
 * gives an absent mark. */
struct mark mark_unpack(const struct packed_mark *packed);
/* Reads a mark that owns its strings. 0, or -ENOMEM with an absent mark. */
int mark_from_item(const struct item *item, struct mark *ret);
