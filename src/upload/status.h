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

/* Goes through all marks below a prefix ("" for all). `each`, if not NULL, is shown every mark that
 * is not done, or whose file has changed since; nonzero ends it. Sessions are those that hold
 * claims there, at most `max`; *ret_n of them. */
enum outcome status_of_prefix(struct store_conn *conn, const struct mark_space *space,
	const char *prefix, struct status_counts *ret_counts,
	int (*each)(void *arg, const char *key, const struct mark *mark), void *arg,
	struct status_session *ret_sessions, size_t max, size_t *ret_n,
	struct problem *ret_problem);

/* What the next run will do about a mark, a sentence. Pure: session is NULL unless the mark is
 * claimed and its row is there. */
void status_outlook(
	const struct mark *mark, const struct session_info *session, char *ret, size_t size);
