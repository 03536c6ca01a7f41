/* The marks of one shard as known.c reads them: a page at a time, in the order of their keys. */
#pragma once
#include "marks/known.h"

struct known_row {
	char *key; /* owned */
	struct known_mark mark;
	struct version *version; /* owned; NULL unless it is done and versions are kept */
};

/* Where the query stands: rows[at..n) are the rest of its page, all above the last key asked for.
 * Zero is one that was not read yet. */
struct known_shard {
	struct known_row *rows;
	size_t n, at, cap;
	bool keeps_versions;
	bool started, more;
};
void known_shard_clear(struct known_shard *shard);

/* Sets what is needed of a mark. ret_version is NULL if the version is not; else it is set for one
 * that is done, for the caller to free. 0 or -ENOMEM. */
int known_condense(const struct item *item, struct known_mark *ret, struct version **ret_version);

/* How shards are read. Borrowed. */
struct known_reading {
	struct store_conn *conn;
	const struct mark_space *space;
	struct call_limits limits;
	bool keeps_versions;
};
/* Keys from..to; `to` may be NULL. */
struct known_range {
	const char *from, *to;
};
/* The next page of the shard with this number, in place of the one before: marks below range->from
 * are of no interest any more. */
enum outcome known_shard_load(const struct known_reading *reading, struct known_shard *shard,
	unsigned number, const struct known_range *range, struct problem *ret_problem);
/* The first page of every shard, of several at the same time: where a request takes 20 ms, sixteen
 * shards one after the other would take a third of a second. It uses threads and connections of its
 * own beside the caller's, as far as there are any to be had. OK: all are started. Else the first
 * error, and no more pages are asked for. */
enum outcome known_shards_begin(const struct known_reading *reading, struct known_shard *shards,
	const struct known_range *range, struct problem *ret_problem);
