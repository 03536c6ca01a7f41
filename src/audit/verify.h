/* Checks whether the files that are done by their marks are in the bucket. It changes nothing.
 *
 * The bucket's listing is merged with the marks, both sorted. What disagrees there is looked at
 * again by a HEAD, and after that its mark is read consistently. It is a difference only if the
 * mark is still the same, so the work of a running uploader is not reported.
 *
 * Where the listing is not in byte order, it is left at that point. The marks that follow are
 * compared by HEAD, and objects that have no mark are not looked for any more. */
#pragma once
#include "audit/crew.h"

enum verify_by {
	VERIFY_BY_LISTING,  /* existence, size and etag */
	VERIFY_BY_HEAD,     /* and the checksum that S3 keeps */
	VERIFY_BY_DOWNLOAD, /* and the bytes */
};

enum finding {
	FINDING_SAME,
	FINDING_MISSING,    /* the mark says done, and there is no object */
	FINDING_DIFFERS,    /* the object is not what the mark says; with a sentence */
	FINDING_UNKNOWN,    /* an object without a mark */
	FINDING_ERROR,      /* it cannot be told; with a sentence */
	FINDING_AGED,       /* an object without a mark, which is older than marks are kept */
	FINDING_UNFINISHED, /* the mark is claimed or failed */
	FINDING_NOTHING,    /* neither a mark nor an object by now */
	FINDINGS
};

struct verify_counts {
	uint64_t listed; /* objects in the listing */
	uint64_t of[FINDINGS];
	uint64_t looked_at;  /* by HEAD, and by download if that was asked for */
	uint64_t bytes_read; /* downloaded */
};

/* The callbacks of a run. Its threads call them, one at a time. */
struct verify_visitor {
	/* Any finding but AGED, UNFINISHED and NOTHING. key is the object's; problem is NULL if it
	 * does not have a sentence. */
	void (*found)(
		void *arg, enum finding finding, const char *key, const struct problem *problem);
	/* Something about the server that bounds what could be compared. The run goes on. */
	void (*warned)(void *arg, const struct problem *problem);
	void (*progress)(void *arg, const struct verify_counts *counts); /* about once a second */
	void *arg;
};

/* A part of the keys, to be looked at more closely than the rest: keys whose hash modulo `of` is
 * from..to-1: the same keys each time. of 0: all keys. */
struct verify_subset {
	uint64_t from, to, of;
	uint64_t bytes; /* not 0: as many keys as have so many bytes in total, which the run finds
			   out before it begins */
};
bool verify_subset_has(const struct verify_subset *subset, const char *key);

/* What is compared, and how. All pointers are borrowed. */
struct verify {
	/* Its limits say when it is stopped. Without a store the objects are compared with a
	 * manifest, not with marks. */
	struct audit_place place;
	const struct s3_headers *headers; /* prepared, with a key of the caller's own; or NULL */
	struct mark_range range;          /* `after` is the key of an object */
	uint64_t keep_marks_s;            /* objects older than this may lack a mark; 0: none may */
	const char *id_object;            /* identifies the bucket and has no mark; or NULL */
	enum verify_by by;
	struct verify_subset subset; /* what is looked at by more than the listing */
	unsigned workers;            /* 1 to VERIFY_WORKERS_MAX */
	struct verify_visitor visitor;
};
#define VERIFY_WORKERS_MAX  64
#define VERIFY_FAILURES_MAX 8 /* requests in a row that got no answer end a run */

struct verify_end {
	struct verify_counts counts;
	bool is_complete;
	char after[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* else: everything up to this key was
						       looked at; "" if nothing was */
};

/* OK also if it was stopped; then *ret is not complete. Otherwise the outcome says why it had to
 * end, and *ret is set as well. */
enum outcome verify_run(
	const struct verify *verify, struct verify_end *ret, struct problem *ret_problem);
/* One mark alone, without a listing: the object of the mark under this key. */
enum outcome verify_one(const struct verify *verify, const struct audit_hand *hand, const char *key,
	struct verify_end *ret, struct problem *ret_problem);

/* The objects of a manifest, an open file, without marks. Of `verify`, the store, the space, the
 * range and the id_object are not used; `by` is HEAD or DOWNLOAD. An object of another bucket is an
 * ERROR. OK also if it was stopped: then *ret is not complete, and ret->after says nothing. LOCAL
 * with *ret_is_damaged: the manifest is. */
enum outcome verify_manifest(const struct verify *verify, const char *bucket, int fd,
	struct verify_end *ret, bool *ret_is_damaged, struct problem *ret_problem);

/* For verify.c and verify_tasks.c only. Looks at objects more closely, on several threads. The
 * findings are reported one at a time, in the order in which the objects were added. */
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
