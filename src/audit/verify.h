/* Checks whether the files whose marks are done are in the bucket. It changes nothing.
 *
 * The bucket's listing and the marks, both sorted, are merged. If a mark and the listing disagree,
 * a HEAD of the object is sent. If the HEAD confirms the difference, the mark is read again,
 * consistently. The difference is reported only if the mark is still the same, so that the work of
 * a running uploader is not reported as a difference.
 *
 * A listing that is not in byte order is read only up to its first object out of order. From there
 * on, the marks are compared by HEAD, and objects without a mark are not found. */
#pragma once
#include "audit/audit_pool.h"
#include "scan/key/key_template.h"

enum verify_by {
	VERIFY_BY_LISTING,  /* existence, size and etag */
	VERIFY_BY_HEAD,     /* these, and the checksum that S3 keeps */
	VERIFY_BY_DOWNLOAD, /* these, and the content */
};

enum finding {
	FINDING_SAME,
	FINDING_MISSING,    /* the mark is done, and there is no object */
	FINDING_DIFFERS,    /* the object differs from its mark; with a sentence */
	FINDING_UNKNOWN,    /* an object without a mark */
	FINDING_ERROR,      /* the mark and the object could not be compared; with a sentence */
	FINDING_UNSENT,     /* the mark is failed, or its uploader has ended; with a sentence */
	FINDING_AGED,       /* as UNKNOWN, but older than the time for which marks are kept */
	FINDING_ELSEWHERE,  /* as UNKNOWN, but its key is that of another host */
	FINDING_UNFINISHED, /* the mark is claimed by an uploader at work */
	FINDING_NOTHING,    /* the mark is gone; nothing is reported */
	FINDINGS
};

struct verify_counts {
	uint64_t listed; /* objects in the listing */
	uint64_t of[FINDINGS];
	uint64_t looked_at;  /* checks of single objects or marks */
	uint64_t bytes_read; /* downloaded */
};

/* The callbacks of a run. found() and progress() are called by any thread of the run, one at a
 * time. warned() is called by the thread of verify_run(), perhaps at the same time. */
struct verify_visitor {
	/* Called with each finding, except AGED, ELSEWHERE, UNFINISHED and NOTHING. `key` is the
	 * object's key. `problem` is the sentence of the finding; NULL: it has none. */
	void (*found)(
		void *arg, enum finding finding, const char *key, const struct problem *problem);
	/* Called with a sentence about a property of the server that limits the comparison. The run
	 * continues. */
	void (*warned)(void *arg, const struct problem *problem);
	void (*progress)(void *arg, const struct verify_counts *counts); /* about once a second */
	void *arg;
};

/* The keys to which HEAD or DOWNLOAD applies: those whose hash modulo `of` is in [from, to). They
 * are the same each time. If `of` is 0, it applies to all keys. */
struct verify_subset {
	uint64_t from, to, of;
	/* The size of the subset, if it is given in bytes: a run first adds up the sizes of all
	 * objects, and then sets the other fields so that the objects of the subset have about this
	 * many bytes in total. 0: the other fields are given. */
	uint64_t bytes;
};
bool verify_subset_has(const struct verify_subset *subset, const char *key);

/* The parameters of a comparison. All pointers are borrowed. */
struct verify {
	/* The limits of the place say when the run is stopped. If the place has no store, the
	 * objects are compared with a manifest, not with marks. */
	struct audit_place place;
	const struct s3_headers *headers; /* prepared, with the key for SSE-C; NULL: none */
	struct mark_range range;          /* `after` is the key of an object */
	uint64_t keep_marks_s;            /* an object without a mark is AGED if it is older; 0:
					     no object is AGED */
	const char *id_object;            /* the key of --bucket-id-object, or NULL */
	/* The template of the keys below `job_prefix`, which decides whether an object without a
	 * mark is ELSEWHERE; NULL: none is. */
	const struct key_template *template;
	const char *job_prefix;
	enum verify_by by;
	struct verify_subset subset; /* the keys to which `by` applies */
	unsigned workers;            /* 1 to VERIFY_WORKERS_MAX */
	struct verify_visitor visitor;
};
#define VERIFY_WORKERS_MAX  64
#define VERIFY_FAILURES_MAX 8 /* a run ends after this many consecutive failed tasks */

struct verify_end {
	struct verify_counts counts;
	bool is_complete; /* set if everything was compared */
	/* If is_complete is false, the last key up to which everything was compared. "": there is
	 * none. */
	char after[KEY_BYTES_MAX + SUFFIX_MAX + 1];
};

/* Compares all marks of the range with the bucket. Also OK if the run was stopped; then *ret is not
 * complete. Any other outcome is the reason for the end of the run; *ret is set in any case. */
enum outcome verify_run(
	const struct verify *verify, struct verify_end *ret, struct problem *ret_problem);
/* Compares one mark with its object, without a listing. `key` is the key of the mark or of the
 * object. Returns as verify_run(), or ABSENT if there is no such mark. */
enum outcome verify_one(const struct verify *verify, const struct audit_conns *conns,
	const char *key, struct verify_end *ret, struct problem *ret_problem);

/* Compares the objects that a manifest lists with the bucket, without marks. `fd` is the manifest,
 * an open file. verify->by is HEAD or DOWNLOAD; the store, the space, the range and the id_object
 * are not used. An object of another bucket is an ERROR.
 *
 * Also OK if the run was stopped; then *ret is not complete, and ret->after is not set. LOCAL with
 * *ret_is_damaged: the manifest is damaged. */
enum outcome verify_manifest(const struct verify *verify, const char *bucket, int fd,
	struct verify_end *ret, bool *ret_is_damaged, struct problem *ret_problem);

/* For verify.c and verify_tasks.c only. Checks single objects on several threads. The findings are
 * reported one at a time, in the order in which the objects were added. */
struct verify_tasks {
	const struct verify *verify;
	struct audit_pool pool; /* its items are the tasks that no thread has begun */
	struct {
		uv_mutex_t mutex;
		uv_cond_t shorter;         /* signalled when the list gets shorter */
		struct verify_task *first; /* the tasks that were not reported yet; NULL: none */
		struct verify_task **last; /* the link for the next task */
		size_t n;                  /* the length of the list */
		unsigned failures;         /* consecutive failed tasks */
		bool is_left;              /* a task was left undone */
		/* The least `before` of the tasks that were left. The next run begins after it. */
		char left_after[KEY_BYTES_MAX + SUFFIX_MAX + 1];
		struct verify_counts counts;
	} locked;
};

/* Starts without tasks. False with a sentence. Call verify_tasks_end() in any case. */
bool verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem);
/* Waits for room, and adds a task for the object with this key. `row` is the mark of the object,
 * which the task then owns; NULL: no mark was found. `before` is a key up to which everything was
 * checked or has a task; "": there is none. Returns false if the run has ended or memory has run
 * out; verify_tasks_end() then returns the outcome. */
bool verify_tasks_add(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before);
/* Reports a finding. problem is NULL if the finding does not have a sentence. */
void verify_tasks_report(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem);
/* Counts a listed object. */
void verify_tasks_count_listed(struct verify_tasks *tasks);
void verify_tasks_progress(struct verify_tasks *tasks);
/* Waits until all tasks are done or left, and frees everything. Sets *ret, and returns the outcome
 * of the run; OK also if it was stopped.
 *
 * `o` is the outcome of adding the tasks; if it is not OK, *ret_problem has the sentence. `is_all`:
 * the caller has gone through everything. Before the call, the caller has set ret->after to the key
 * up to which it has added tasks or reported findings. If tasks were left undone, ret->after
 * becomes the key before the first of them. */
enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem);
