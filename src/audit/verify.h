/* Checks whether the files whose marks say done are in the bucket. It changes nothing.
 *
 * The bucket's listing is merged with the marks, both sorted. If a mark and the listing disagree,
 * the object is looked at by a HEAD, and then its mark is read consistently. Only if the mark is
 * still the same is a difference reported, so the work of a running uploader is not.
 *
 * If the listing is not in byte order, it is not read beyond that point. The marks that follow are
 * compared by HEAD, and objects that have no mark are not looked for any more. */
#pragma once
#include "audit/crew.h"

enum verify_by {
	VERIFY_BY_LISTING,  /* existence, size and etag */
	VERIFY_BY_HEAD,     /* these, and the checksum that S3 keeps */
	VERIFY_BY_DOWNLOAD, /* these, and the content */
};

enum finding {
	FINDING_SAME,
	FINDING_MISSING,    /* the mark says done, and there is no object */
	FINDING_DIFFERS,    /* the object is not what the mark says; with a sentence */
	FINDING_UNKNOWN,    /* an object without a mark */
	FINDING_ERROR,      /* they could not be compared; with a sentence */
	FINDING_AGED,       /* an object without a mark, which is older than marks are kept */
	FINDING_UNFINISHED, /* the mark is claimed or failed */
	FINDING_NOTHING,    /* there is no mark any more; nothing is reported */
	FINDINGS
};

struct verify_counts {
	uint64_t listed; /* objects in the listing */
	uint64_t of[FINDINGS];
	uint64_t looked_at;  /* tasks that asked S3 or the marks again */
	uint64_t bytes_read; /* downloaded */
};

/* The callbacks of a run. found() and progress() are called by any thread of the run, one at a
 * time. warned() is called by the thread of verify_run(), perhaps at the same time. */
struct verify_visitor {
	/* Gets each finding but AGED, UNFINISHED and NOTHING. `key` is the object's key. `problem`
	 * is the sentence of the finding; NULL: it has none. */
	void (*found)(
		void *arg, enum finding finding, const char *key, const struct problem *problem);
	/* Gets a property of the server that limits what can be compared. The run goes on. */
	void (*warned)(void *arg, const struct problem *problem);
	void (*progress)(void *arg, const struct verify_counts *counts); /* about once a second */
	void *arg;
};

/* The part of the keys that is looked at more closely than the rest: the keys whose hash modulo
 * `of` is from `from` to `to` - 1. They are the same keys each time. `of` is 0: all keys. */
struct verify_subset {
	uint64_t from, to, of;
	uint64_t bytes; /* unless 0: a run first adds up all sizes, and sets the subset to about as
			   many keys as have so many bytes in total */
};
bool verify_subset_has(const struct verify_subset *subset, const char *key);

/* What is compared, and how. All pointers are borrowed. */
struct verify {
	/* Its limits say when it is stopped. Without a store the objects are compared with a
	 * manifest, not with marks. */
	struct audit_place place;
	const struct s3_headers *headers; /* prepared, with the key for SSE-C; NULL: none */
	struct mark_range range;          /* `after` is the key of an object */
	uint64_t keep_marks_s;            /* an older object is AGED without a mark; 0: none is */
	const char *id_object;            /* the key of --bucket-id-object, or NULL */
	enum verify_by by;
	struct verify_subset subset; /* the keys to which `by` applies */
	unsigned workers;            /* 1 to VERIFY_WORKERS_MAX */
	struct verify_visitor visitor;
};
#define VERIFY_WORKERS_MAX  64
#define VERIFY_FAILURES_MAX 8 /* so many tasks in a row without an answer end a run */

struct verify_end {
	struct verify_counts counts;
	bool is_complete;                           /* everything was looked at */
	char after[KEY_BYTES_MAX + SUFFIX_MAX + 1]; /* otherwise everything up to this key was
						       looked at; "": nothing was */
};

/* Compares all marks of the range with the bucket. OK also if it was stopped; then *ret is not
 * complete. Any other outcome says why it had to end, and *ret is set as well. */
enum outcome verify_run(
	const struct verify *verify, struct verify_end *ret, struct problem *ret_problem);
/* Compares the mark of this key, or of the object of this key, with its object, without a listing.
 * Returns as verify_run(), or ABSENT if there is no such mark. */
enum outcome verify_one(const struct verify *verify, const struct audit_hand *hand, const char *key,
	struct verify_end *ret, struct problem *ret_problem);

/* Compares the objects that a manifest lists with the bucket, without marks. `fd` is the manifest,
 * an open file. verify->by is HEAD or DOWNLOAD; the store, the space, the range and the id_object
 * are not used. An object of another bucket is an ERROR.
 *
 * OK also if it was stopped; then *ret is not complete, and ret->after is not set. LOCAL with
 * *ret_is_damaged: the manifest is damaged. */
enum outcome verify_manifest(const struct verify *verify, const char *bucket, int fd,
	struct verify_end *ret, bool *ret_is_damaged, struct problem *ret_problem);

/* For verify.c and verify_tasks.c only. Looks at objects more closely, on several threads. The
 * findings are reported one at a time, in the order in which the objects were added. */
struct verify_tasks {
	const struct verify *verify;
	struct crew crew; /* its items are the tasks that no thread has begun */
	struct {
		uv_mutex_t mutex;
		uv_cond_t shorter;         /* signalled when the list gets shorter */
		struct verify_task *first; /* the tasks that were not reported yet; NULL: none */
		struct verify_task **last; /* where the next task is added */
		size_t n;                  /* how many are in the list */
		unsigned failures;         /* tasks in a row that got no answer */
		bool is_left;              /* a task was left undone */
		/* The least `before` of the tasks that were left. */
		char left_after[KEY_BYTES_MAX + SUFFIX_MAX + 1];
		struct verify_counts counts;
	} locked;
};

/* Starts without tasks. False with a sentence. Call verify_tasks_end() in any case. */
bool verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem);
/* Adds a task for the object of this key, after waiting for room. It takes `row`, the mark; NULL:
 * no mark was met. `before` is a key up to which everything was looked at, or is looked at by an
 * earlier task; "": nothing was. False: the run has ended, or memory ran out. In both cases
 * verify_tasks_end() returns the outcome. */
bool verify_tasks_add(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before);
/* Reports a finding. problem is NULL if the finding does not have a sentence. */
void verify_tasks_tell(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem);
/* One more object was listed. */
void verify_tasks_count_listed(struct verify_tasks *tasks);
void verify_tasks_progress(struct verify_tasks *tasks);
/* Waits until all tasks are done or left, and frees everything. Sets *ret, and returns how the run
 * ended; OK also if it was stopped.
 *
 * `o` says how the adding ended, with *ret_problem if it is not OK. `is_all`: everything was added.
 * ret->after is the last key that was added, and becomes less if tasks were left. */
enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem);

/* Returns the finding for a mark without a look at its object: UNFINISHED, NOTHING, or ERROR with a
 * sentence. For a mark that says done it is UNFINISHED until the caller has looked. Pure. */
enum finding verify_state(enum mark_state state, struct problem *ret_problem);
