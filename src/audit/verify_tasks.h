/* Looks at objects on several threads. The findings are reported one at a time, in the order in
 * which the objects were added. */
#pragma once
#include "audit/inspect.h"
#include "base/pool.h"

/* A finding in the order of what was added. It waits for those before it. */
struct verify_line {
	struct verify_line *next;
	char *key; /* of the object, owned */
	bool is_known;
	enum finding finding;    /* once it is known */
	struct problem *problem; /* its sentence, owned; NULL: none */
};

/* One object or mark to look at. */
struct verify_task {
	struct verify_line *line; /* its finding; the list's */
	struct mark_row *row;     /* owned; NULL: an object without a mark */
	char *key;                /* of the object, owned */
	char *before; /* owned: all up to this key has been looked at, or is looked at by
			 an earlier task; "" if nothing has */
};

struct verify_tasks {
	const struct verify *verify;
	struct pool pool; /* its items are tasks */
	struct {
		uv_mutex_t mutex;
		uv_cond_t shorter;         /* the list of lines is */
		struct verify_line *first; /* those that wait; NULL: none does */
		struct verify_line **last; /* where the next one is added */
		size_t n_lines;
		bool is_ended;        /* by an outcome, or since it was stopped */
		unsigned failures;    /* in a row */
		enum outcome outcome; /* OK, or what ended it, with its sentence */
		struct problem problem;
		char *left_after; /* owned: `before` of the first task that was not done;
				     NULL: all were */
		struct verify_counts counts;
	} locked;
};

/* 0 or -errno with a sentence. Clear it in any case. */
int verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem);
/* Waits for room, and takes row, which may be NULL. False: the run has ended, or memory ran out
 * (an outcome says so). */
bool verify_tasks_add(
	struct verify_tasks *tasks, struct mark_row *row, const char *key, const char *before);
/* Reports a finding. problem is NULL if the finding does not have a sentence. */
void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem);
/* One more object was listed. */
void verify_tasks_count_listed(struct verify_tasks *tasks);
void verify_tasks_progress(struct verify_tasks *tasks);
/* Waits until all are done. The threads have ended then; `locked` may be read without its mutex. */
void verify_tasks_finish(struct verify_tasks *tasks);
void verify_tasks_clear(struct verify_tasks *tasks);
