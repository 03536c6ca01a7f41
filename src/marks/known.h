/* What the store knows of a rising sequence of keys, read before claiming at the least cost:
 * queries of the shards merged with the sorted scan, or batches of single reads where few of the
 * marks in between are asked for. Eventually consistent: a claim decides. */
#pragma once
#include "marks/mark.h"

/* Of a mark, what is needed to tell whether there is anything to do. */
struct known_mark {
	uint64_t size; /* of the version done, if state is done */
	int64_t mtime_ns;
	int64_t at_s; /* store time of the last change */
	enum mark_state state;
	char content[CONTENT_MAX + 1]; /* as size */
	char session[ID_CHARS + 1];    /* if it is claimed */
	bool mtime_is_shared;          /* as in struct version */
	bool has_newer;                /* the mark says that the file is another version by now */
};
/* Whether this very version is done, and the mark says nothing else. */
bool known_is_done(const struct known_mark *mark, const struct asked *file);

/* conn and space are borrowed until known_free. `keeps_versions`: known_read() is asked for them.
 * Memory: at most a page of marks a shard. */
struct known;
int known_new(struct store_conn *conn, const struct mark_space *space,
	const struct call_limits *limits, bool keeps_versions, struct known **ret);
void known_free(struct known *known);

/* The marks of n keys, rising, and above all that were asked before. `last` says that no more will
 * come, which lets a short list be read in one batch. ret_versions, unless it is NULL, gets the
 * versions of those that are done, for the caller to free(), and NULL for the others; all are NULL
 * if the outcome is not OK. */
enum outcome known_read(struct known *known, const char *const *keys, size_t n, bool last,
	struct known_mark *ret, struct version **ret_versions, struct problem *ret_problem);

/* Reads the marks of n rising keys in batches of single reads, to see which files other uploaders
 * have taken meanwhile. The versions are as above. */
enum outcome known_again(struct store_conn *conn, const struct mark_space *space,
	const char *const *keys, size_t n, const struct call_limits *limits, struct known_mark *ret,
	struct version **ret_versions, struct problem *ret_problem);
