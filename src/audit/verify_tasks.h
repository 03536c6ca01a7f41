/* Looks at objects more closely, on several threads. The findings are reported one at a time, in
 * the order in which the objects were added. */
#pragma once
#include "audit/verify.h"

struct verify_tasks {
	const struct verify *verify;
	struct crew crew; /* its items are the tasks that were not begun */
	struct {
		uv_mutex_t mutex;
		uv_cond_t shorter;         /* the list is */
		struct verify_task *first; /* those that were not told yet; NULL: none */
		struct verify_task **last; /* where the next one is added */
		size_t n;
		unsigned failures; /* in a row */
		bool is_left;      /* a task was not done */
		/* `before` of the first of these. */
		char left_after[KEY_BYTES_MAX + SUFFIX_MAX + 1];
		struct verify_counts counts;
	} locked;
};

/* False with a sentence. Call verify_tasks_end() in any case. */
bool verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem);
/* Waits for room, and takes row; NULL: it is an object without a mark. All keys up to `before` have
 * been looked at, or are looked at by an earlier task; "" if none has. False: the run has ended, or
 * memory ran out (an outcome says so). */
bool verify_tasks_add(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before);
/* Reports a finding. problem is NULL if the finding does not have a sentence. */
void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem);
/* One more object was listed. */
void verify_tasks_count_listed(struct verify_tasks *tasks);
void verify_tasks_progress(struct verify_tasks *tasks);
/* Waits until all are done, and frees everything. `o` is how the adding ended, with *ret_problem if
 * it is not OK; `is_all`: everything was added; ret->after is the last key that was added. Sets
 * *ret, and returns how all of it ended. */
enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem);

/* What a mark that is not done says by itself: UNFINISHED, NOTHING, or ERROR with a sentence. Pure.
 */
enum finding verify_state(enum mark_state state, struct problem *ret_problem);
