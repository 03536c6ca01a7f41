/* `s3once status`: what the marks say of a bucket, a prefix or one key. */
#pragma once
#include "marks/mark.h"
#include "marks/session.h"

struct status_counts {
	uint64_t claimed, done, failed, unreadable;
	uint64_t changed; /* of those done: files that have changed since, and were left alone */
	uint64_t bytes_done;
};
/* One session that holds claims. */
struct status_session {
	char id[ID_CHARS + 1];
	uint64_t claims;
	bool known;               /* its row is still there */
	struct session_info info; /* if known */
};

#define STATUS_SESSIONS_MAX 1000
/* What the marks below a prefix say, and which sessions hold claims there. Large: on the heap. */
struct status_summary {
	struct status_counts counts;
	size_t n_sessions;
	struct status_session sessions[STATUS_SESSIONS_MAX];
};
/* Is shown the marks that are not done, and those whose file has changed since. Nonzero ends it. */
struct status_visitor {
	int (*each)(void *arg, const char *key, const struct mark *mark); /* or NULL */
	void *arg;
};
/* Goes through all marks below a prefix ("" for all). *ret is only complete with OK. */
enum outcome status_of_prefix(struct store_conn *conn, const struct mark_space *space,
	const char *prefix, const struct status_visitor *visitor, struct status_summary *ret,
	struct problem *ret_problem);

/* What the next run will do about a mark, a sentence. Pure: session is NULL unless the mark is
 * claimed and its row is there. */
void status_outlook(
	const struct mark *mark, const struct session_info *session, char *ret, size_t size);
