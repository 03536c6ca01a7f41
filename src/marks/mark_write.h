/* What the writes of a mark share: mark.c and mark_forget.c. */
#pragma once
#include "marks/mark_changes.h"

/* The key of the mark's row; its partition is written to `partition`. */
struct item_key mark_item_key(const struct mark_ref *ref, char partition[static PARTITION_MAX]);
/* The store's time. */
int64_t mark_now_s(const struct mark_ref *ref);
/* Reads the image of a refusal into *ret_seen and frees it; the outcome stays unless memory runs
 * out. */
enum outcome mark_seen(
	enum outcome o, struct item *present, struct mark *ret_seen, struct problem *ret_problem);
