/* Checks single objects for verify: by HEAD, by download, and by reading the mark again. This file
 * sends the requests and makes the sentences about differences; src/marks/judge_object.c compares.
 * Nothing is written.
 *
 * verify.c adds a task for each such object, and the threads of the pool take the tasks. A finding
 * stays in the list until all findings before it were reported, so that they are reported in the
 * order of the keys.
 *
 * If too many consecutive tasks fail, or the run is stopped, the remaining tasks are left undone.
 * The key after which the next run has to begin is kept. */
#include "audit/object_read.h"
#include "audit/verify.h"
#include "base/checksum.h"
#include "base/text.h"
#include "base/wait_until.h"
#include "marks/judge_object.h"
#include "marks/session.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mark that changes this many times while it is compared counts as unfinished. */
#define TRIES_MAX 5
/* The most tasks and findings in the list, which bounds the memory. If it is full, the thread that
 * adds one waits. */
#define TASKS_MAX 20000

/* The arguments and the result of one closer look. All pointers are borrowed. */
struct inspection {
	const struct verify *verify;
	/* connections of this thread; its marks are NULL for a manifest */
	const struct audit_conns *conns;
	uint64_t bytes_read; /* downloaded so far */
	enum finding finding;
	struct problem problem; /* the sentence of the finding or of an outcome other than OK */
};

/* Reads the mark of a key, consistently. If there is none, it is MARK_ABSENT. *ret is the caller's
 * to free(). */
static enum outcome read_packed_mark(
	struct inspection *look, const char *key, struct packed_mark **ret)
{
	const struct mark_ref ref = audit_mark_ref(&look->verify->place, look->conns, key);
	const enum outcome o = mark_get_packed(&ref, ret, &look->problem);
	if (o != OUTCOME_OK)
		problem_prefix(&look->problem, "its mark cannot be read");
	return o;
}

/* Returns the finding that follows from a mark that does not say done: NOTHING, UNFINISHED, or
 * UNSENT or ERROR with a sentence. For a done mark, it returns UNFINISHED, and the caller has to
 * check the object. A claimed mark needs a request for its session; `marks` is NULL for a manifest,
 * which has no such marks. */
static enum finding judge_state(
	struct store_conn *marks, const struct mark *mark, struct problem *ret_problem)
{
	switch (mark->state) {
	case MARK_ABSENT:
	case MARK_FORGOTTEN:
		return FINDING_NOTHING;
	case MARK_UNREADABLE:
		problem_set(ret_problem,
			"its mark is damaged, or was written by a later version of s3once, so that "
			"its object cannot be compared: s3once status shows the mark");
		return FINDING_ERROR;
	case MARK_FAILED:
		problem_set(ret_problem,
			"its upload has failed: the next push retries it; if the file is gone, "
			"s3once forget removes its mark");
		return FINDING_UNSENT;
	case MARK_CLAIMED:
		if (!marks || session_may_be_at_work(marks, mark->session))
			break;
		problem_set(ret_problem,
			"its uploader has ended, or sends no more heartbeats: the next push "
			"continues it");
		return FINDING_UNSENT;
	case MARK_DONE: /* the caller compares its object, which sets the finding */
		break;
	}
	return FINDING_UNFINISHED;
}

/* Returns "its mark" or the like: the thing that the object is compared with, as the subject of a
 * clause. */
static const char *counterpart_name(const struct inspection *look)
{
	return look->verify->place.store ? "its mark" : "the manifest";
}

/* Makes the sentence that S3 has the checksum `server_sum`, which differs from the recorded one. */
static void explain_other_sum(
	struct inspection *look, const struct s3_sum *server_sum, const struct s3_sum *recorded)
{
	problem_set(&look->problem, "its content differs: S3 has the %s %s, and %s %s",
		checksum_kinds[server_sum->kind].name, server_sum->text, counterpart_name(look),
		recorded->text);
}

/* Compares the reply to HEAD with the values that are recorded for the object. If they differ, sets
 * a sentence. */
static enum proof compare_with_recorded(
	struct inspection *look, const struct recorded *recorded, const struct s3_object *object)
{
	const struct s3_sum recorded_sum = recorded_sum_like(recorded, &object->sum);
	const enum proof is_same = recorded_matches(recorded, object);
	if (is_same == PROOF_NO && object->size != recorded->bytes)
		problem_set(&look->problem,
			"its size differs: %" PRIu64 " bytes in S3, and %" PRIu64
			" bytes when it was uploaded",
			object->size, recorded->bytes);
	else if (is_same == PROOF_NO)
		explain_other_sum(look, &object->sum, &recorded_sum);
	else if (is_same == PROOF_UNKNOWN && *recorded->etag)
		problem_set(&look->problem,
			"its etag differs: %s in S3, and %s when it was uploaded; --download "
			"shows whether its content differs, too",
			object->etag, recorded->etag);
	else if (is_same == PROOF_UNKNOWN)
		problem_set(&look->problem,
			"its size is right, but S3 returns no checksum, and %s has no etag: "
			"--download compares the content",
			counterpart_name(look));
	return is_same;
}

/* Makes the sentence that the content which was read, with the checksums `content`, differs from
 * the recorded values. */
static void explain_other_content(
	struct inspection *look, const struct recorded *recorded, const struct sums *content)
{
	const struct s3_sum recorded_sum = mark_sum_parse(recorded->sum);
	struct s3_sum read_sum = {.kind = recorded_sum.kind};
	char md5[33];
	if (*recorded_sum.text)
		checksum_to_base64(
			recorded_sum.kind, sums_bytes(content, recorded_sum.kind), read_sum.text);
	if (strcmp(read_sum.text, recorded_sum.text) != 0) {
		explain_other_sum(look, &read_sum, &recorded_sum);
		return;
	}
	/* No recorded checksum differs, so the difference is in the etag, which is an MD5. */
	hex_encode(content->md5, sizeof content->md5, md5);
	problem_set(&look->problem,
		"its content differs: its MD5 is %s, and was %s when it was uploaded", md5,
		recorded->etag);
}

/* Reads the object and compares its content. OK: the finding is SAME, DIFFERS or ERROR, and the
 * problem is the sentence of the finding. Any other outcome: the object could not be read. */
static enum outcome compare_by_download(struct inspection *look, const struct recorded *recorded,
	const struct s3_target *target, const struct s3_object *object)
{
	struct problem *problem = &look->problem;
	struct digest digest;
	const struct object_reading reading = {.conn = look->conns->s3,
		.target = target,
		.object = object,
		.limits = &look->verify->place.limits,
		.digest = &digest,
		.fd = -1};
	struct sums sums;
	bool is_replaced = false;
	const unsigned kinds = recorded_digests(recorded);
	/* The next two errors are about this object alone. They are its finding, and the outcome is
	 * OK, so that the run continues. */
	look->finding = FINDING_ERROR;
	if (!kinds) {
		problem_set(problem, "%s has no checksum that its content can be compared with",
			counterpart_name(look));
		return OUTCOME_OK;
	}
	const int error = digest_init(&digest, kinds);
	if (error) {
		problem_set(problem, "its checksum cannot be computed: %s", strerror(-error));
		return OUTCOME_OK;
	}
	const enum outcome o = object_read(&reading, &is_replaced, problem);
	digest_finish(&digest, &sums);
	digest_clear(&digest);
	look->bytes_read += sums.bytes;
	if (o != OUTCOME_OK && !is_replaced)
		return o;
	const bool is_same = !is_replaced && recorded_matches_bytes(recorded, &sums) == PROOF_YES;
	look->finding = is_same ? FINDING_SAME : FINDING_DIFFERS;
	/* object_read() has set the sentence about a replacement. */
	if (!is_same && !is_replaced)
		explain_other_content(look, recorded, &sums);
	return OUTCOME_OK;
}

/* Returns the finding of a comparison by HEAD. It is an ERROR if there was no value to compare. */
static enum finding finding_by_head(enum proof is_same, const struct recorded *recorded)
{
	const bool has_no_value = is_same == PROOF_UNKNOWN && !*recorded->etag;
	if (is_same == PROOF_YES)
		return FINDING_SAME;
	return has_no_value ? FINDING_ERROR : FINDING_DIFFERS;
}

/* Sends a HEAD of the object, and compares it with its done mark, or with the entry of a manifest,
 * which verify_manifest() has turned into such a mark. With --download it reads the object, too. */
static enum outcome compare_with_head(
	struct inspection *look, const struct packed_mark *row, const struct version *done)
{
	const struct recorded recorded = recorded_object(done);
	/* A mark is about the current version of its object. An entry of a manifest may name a
	 * version. */
	const struct s3_target target = {.key = row->object_key,
		.headers = look->verify->headers,
		.version_id = look->verify->place.store ? "" : done->version_id};
	struct s3_object object;
	enum outcome o = s3_head_object(
		look->conns->s3, &target, &look->verify->place.limits, &object, &look->problem);
	if (o == OUTCOME_OK) {
		const enum proof is_same = compare_with_recorded(look, &recorded, &object);
		look->finding = finding_by_head(is_same, &recorded);
		if (is_same != PROOF_NO && look->verify->by == VERIFY_BY_DOWNLOAD)
			o = compare_by_download(look, &recorded, &target, &object);
	}
	if (o == OUTCOME_ABSENT) { /* ABSENT from the HEAD, or from the download after it */
		look->finding = FINDING_MISSING;
		return OUTCOME_OK;
	}
	const bool is_denied = o == OUTCOME_DENIED;
	if (o != OUTCOME_OK)
		problem_prefix(&look->problem, "S3 does not show it%s",
			is_denied && *target.version_id
				? "; allow s3:GetObjectVersion and s3:ListBucket"
			: is_denied ? "; allow s3:GetObject and s3:ListBucket"
				    : "");
	return o;
}

/* Compares the object of a mark, and frees the mark. If the object differs, or was not sent, the
 * mark is read again: its uploader may have changed it meanwhile, and even ended. The finding
 * counts if the mark is still the same. Otherwise the new mark is compared. A mark that changes
 * each time is UNFINISHED. An outcome other than OK has its sentence in look->problem. */
static enum outcome inspect_mark(struct inspection *look, struct packed_mark *row)
{
	enum outcome o = OUTCOME_OK;
	for (unsigned tries = 0; o == OUTCOME_OK && tries < TRIES_MAX; tries++) {
		const struct mark mark = mark_unpack(row);
		struct packed_mark *reread = NULL;
		look->finding = judge_state(look->conns->marks, &mark, &look->problem);
		if (mark.state == MARK_DONE)
			o = compare_with_head(look, row, &mark.done);
		/* Only a difference has to be confirmed, and only for marks: a manifest does not
		 * change meanwhile. */
		const bool is_wrong = mark.state == MARK_DONE ? look->finding != FINDING_SAME
							      : look->finding == FINDING_UNSENT;
		if (o != OUTCOME_OK || !is_wrong || !look->conns->marks)
			break;
		/* If the mark cannot be read, look->problem has the reason. Otherwise it becomes
		 * the sentence of the finding again. */
		const struct problem sentence = look->problem;
		look->problem = (struct problem){0};
		o = read_packed_mark(look, row->key, &reread);
		if (o != OUTCOME_OK)
			break;
		look->problem = sentence;
		const struct mark now = mark_unpack(reread);
		const bool is_same = now.state == mark.state &&
				     strcmp(now.claim, mark.claim) == 0 &&
				     version_is_same(&now.done, &mark.done);
		free(row);
		row = reread;
		if (is_same)
			break;
		look->finding = FINDING_UNFINISHED; /* stays if this was the last try */
	}
	free(row);
	return o;
}

/* A key from the listing is that of an object. A key from the user may also be that of a mark,
 * whose object then may have another key: with a suffix of compression. */
enum key_of { KEY_OF_OBJECT, KEY_OF_EITHER };

/* Looks for the mark of an object under each key that this mark may have, and compares it. The
 * finding is UNKNOWN if there is no mark. */
static enum outcome inspect_key(struct inspection *look, const char *given, enum key_of key_of)
{
	char key[KEY_BYTES_MAX + SUFFIX_MAX + 1];
	const char *suffix;
	look->finding = FINDING_UNKNOWN;
	for (size_t i = 0; i < AUDIT_MARK_KEYS; i++) {
		struct packed_mark *row;
		if (!audit_mark_key(given, i, key, &suffix))
			continue;
		const enum outcome o = read_packed_mark(look, key, &row);
		if (o != OUTCOME_OK)
			return o;
		const enum mark_state state = mark_unpack(row).state;
		const bool is_there = state != MARK_ABSENT && state != MARK_FORGOTTEN;
		/* With i = 0, no suffix was cut off: the key is the given one. */
		const bool is_named = key_of == KEY_OF_EITHER && i == 0;
		/* An uploader stores an object before its mark is done. So a mark that is not done
		 * may be that of an object which the listing has shown. */
		const bool is_of_object = state == MARK_DONE ? strcmp(row->object_key, given) == 0
							     : key_of == KEY_OF_OBJECT;
		if (is_there && (is_named || is_of_object))
			return inspect_mark(look, row);
		free(row);
	}
	return OUTCOME_OK;
}

#define FINDING_NONE FINDINGS /* the task was left undone, so nothing is reported */

/* One object or mark to be checked, or the finding about it, until the finding is reported. */
struct verify_task {
	struct verify_task *next;
	struct packed_mark *row; /* owned; NULL: an object without a mark */
	const char *key;         /* key of the object */
	const char *before;      /* see verify_tasks_add(); NULL: a finding that needs no look */
	bool is_known;           /* `finding` is set */
	enum finding finding;    /* or FINDING_NONE */
	struct problem *problem; /* the sentence of the finding, owned; NULL: none */
	char strings[];          /* key and before */
};

/* Counts a finding, and reports it unless findings of its kind are only counted. */
static void verify_report(const struct verify *verify, struct verify_counts *counts,
	enum finding finding, const char *key, const struct problem *problem)
{
	const struct verify_visitor *visitor = &verify->visitor;
	const bool has_sentence =
		finding == FINDING_DIFFERS || finding == FINDING_ERROR || finding == FINDING_UNSENT;
	counts->of[finding]++;
	const bool is_counted_only = finding == FINDING_AGED || finding == FINDING_ELSEWHERE ||
				     finding == FINDING_UNFINISHED || finding == FINDING_NOTHING;
	if (!is_counted_only)
		visitor->found(visitor->arg, finding, key, has_sentence ? problem : NULL);
}

/* Adds a task to the end of the list, after waiting for room. The list owns the task, which owns
 * `row`. The caller holds the mutex. NULL: out of memory, and `row` is freed. */
static struct verify_task *append_locked(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before)
{
	const size_t key_bytes = strlen(key) + 1, before_bytes = before ? strlen(before) + 1 : 0;
	struct verify_task *task = calloc(1, sizeof *task + key_bytes + before_bytes);
	if (!task) {
		free(row);
		return NULL;
	}
	task->row = row;
	task->key = memcpy(task->strings, key, key_bytes);
	if (before)
		task->before = memcpy(task->strings + key_bytes, before, before_bytes);
	wait_until(tasks->locked.n < TASKS_MAX, .cond = &tasks->locked.shorter,
		.mutex = &tasks->locked.mutex);
	*tasks->locked.last = task;
	tasks->locked.last = &task->next;
	tasks->locked.n++;
	return task;
}

/* Reports and frees the tasks at the beginning of the list, up to the first one whose finding is
 * unknown. The caller holds the mutex. */
static void report_known_locked(struct verify_tasks *tasks)
{
	for (struct verify_task *first; (first = tasks->locked.first) && first->is_known;) {
		if (first->finding != FINDING_NONE)
			verify_report(tasks->verify, &tasks->locked.counts, first->finding,
				first->key, first->problem);
		tasks->locked.first = first->next;
		if (!first->next)
			tasks->locked.last = &tasks->locked.first;
		tasks->locked.n--;
		free(first->row);
		free(first->problem);
		free(first);
	}
	uv_cond_broadcast(&tasks->locked.shorter);
}

/* Sets the finding of a task, with a copy of its sentence, or without a sentence if memory runs
 * out. Then reports all findings whose turn has come, and frees their tasks, perhaps this one. The
 * caller holds the mutex. */
static void set_finding_locked(struct verify_tasks *tasks, struct verify_task *task,
	enum finding finding, const struct problem *problem)
{
	task->is_known = true;
	task->finding = finding;
	if (problem && *problem->text && (task->problem = malloc(sizeof *problem)))
		*task->problem = *problem;
	report_known_locked(tasks);
}

/* Leaves a task undone. The least `before` of all tasks that were left is the key after which the
 * next run continues. */
static void leave_task(void *arg, void *item)
{
	struct verify_tasks *tasks = arg;
	struct verify_task *task = item;
	char *after = tasks->locked.left_after;
	uv_mutex_lock(&tasks->locked.mutex);
	if (!tasks->locked.is_left || strcmp(task->before, after) < 0)
		snprintf(after, sizeof tasks->locked.left_after, "%s", task->before);
	tasks->locked.is_left = true;
	set_finding_locked(tasks, task, FINDING_NONE, NULL);
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_report(struct verify_tasks *tasks, enum finding finding, const char *key,
	const struct problem *problem)
{
	uv_mutex_lock(&tasks->locked.mutex);
	/* If no task is before this finding, or memory has run out, it is reported at once. */
	struct verify_task *task =
		tasks->locked.first ? append_locked(tasks, NULL, key, NULL) : NULL;
	if (task)
		set_finding_locked(tasks, task, finding, problem);
	else
		verify_report(tasks->verify, &tasks->locked.counts, finding, key, problem);
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_count_listed(struct verify_tasks *tasks)
{
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.counts.listed++;
	uv_mutex_unlock(&tasks->locked.mutex);
}

void verify_tasks_progress(struct verify_tasks *tasks)
{
	const struct verify_visitor *visitor = &tasks->verify->visitor;
	uv_mutex_lock(&tasks->locked.mutex);
	visitor->progress(visitor->arg, &tasks->locked.counts);
	uv_mutex_unlock(&tasks->locked.mutex);
}

/* Checks the object of a task, in a thread of the pool. */
static enum outcome perform_task(
	void *arg, const struct audit_conns *conns, void *item, struct problem *ret_problem)
{
	struct verify_tasks *tasks = arg;
	struct verify_task *task = item;
	struct inspection look = {.verify = tasks->verify, .conns = conns};
	struct packed_mark *row = task->row;
	task->row = NULL; /* inspect_mark() frees it */
	const enum outcome o =
		row ? inspect_mark(&look, row) : inspect_key(&look, task->key, KEY_OF_OBJECT);
	*ret_problem = look.problem;
	uv_mutex_lock(&tasks->locked.mutex);
	tasks->locked.counts.looked_at++;
	tasks->locked.counts.bytes_read += look.bytes_read;
	const bool is_failure =
		o == OUTCOME_LOST || o == OUTCOME_TRANSIENT || o == OUTCOME_THROTTLED;
	tasks->locked.failures = is_failure ? tasks->locked.failures + 1 : 0;
	/* The run ends at a failure that other objects would have, too, or at a stop. It also ends
	 * after VERIFY_FAILURES_MAX tasks in a row without an answer. The task is then left for the
	 * next run. Any other failure is an ERROR of this object alone. */
	const bool is_over = o == OUTCOME_SETUP || o == OUTCOME_LOCAL || o == OUTCOME_ABANDONED ||
			     tasks->locked.failures >= VERIFY_FAILURES_MAX;
	if (!is_over)
		set_finding_locked(
			tasks, task, o == OUTCOME_OK ? look.finding : FINDING_ERROR, &look.problem);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (is_over)
		leave_task(tasks, task);
	return is_over ? o : OUTCOME_OK;
}

bool verify_tasks_init(
	struct verify_tasks *tasks, const struct verify *verify, struct problem *ret_problem)
{
	const struct audit_pool_work work = {
		.each = perform_task, .leave = leave_task, .arg = tasks};
	*tasks = (struct verify_tasks){.verify = verify};
	uv_mutex_init(&tasks->locked.mutex);
	uv_cond_init(&tasks->locked.shorter);
	tasks->locked.last = &tasks->locked.first;
	return audit_pool_init(&tasks->pool, &verify->place, &work, verify->workers, ret_problem);
}

bool verify_tasks_add(
	struct verify_tasks *tasks, struct packed_mark *row, const char *key, const char *before)
{
	uv_mutex_lock(&tasks->locked.mutex);
	struct verify_task *task = append_locked(tasks, row, key, before);
	uv_mutex_unlock(&tasks->locked.mutex);
	if (task)
		return audit_pool_add(&tasks->pool, task);
	audit_pool_stop(&tasks->pool, OUTCOME_LOCAL, PROBLEM("out of memory"));
	return false;
}

enum outcome verify_tasks_end(struct verify_tasks *tasks, enum outcome o, bool is_all,
	struct verify_end *ret, struct problem *ret_problem)
{
	o = audit_pool_end(&tasks->pool, o, ret_problem);
	/* No thread is left, so the mutex need not be held. */
	const bool is_left = tasks->locked.is_left;
	ret->counts = tasks->locked.counts;
	/* A task is left only if the pool has ended with another outcome. */
	ret->is_complete = o == OUTCOME_OK && is_all;
	if (is_left && strcmp(tasks->locked.left_after, ret->after) < 0)
		memcpy(ret->after, tasks->locked.left_after, sizeof ret->after);
	uv_cond_destroy(&tasks->locked.shorter);
	uv_mutex_destroy(&tasks->locked.mutex);
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o;
}

enum outcome verify_one(const struct verify *verify, const struct audit_conns *conns,
	const char *key, struct verify_end *ret, struct problem *ret_problem)
{
	struct inspection look = {.verify = verify, .conns = conns};
	*ret = (struct verify_end){0};
	const enum outcome o = inspect_key(&look, key, KEY_OF_EITHER);
	if (o == OUTCOME_OK && look.finding == FINDING_UNKNOWN)
		return OUTCOME_ABSENT;
	ret->counts.looked_at = 1;
	ret->counts.bytes_read = look.bytes_read;
	ret->is_complete = o == OUTCOME_OK;
	if (o == OUTCOME_OK)
		verify_report(verify, &ret->counts, look.finding, key, &look.problem);
	*ret_problem = look.problem;
	return o == OUTCOME_ABANDONED ? OUTCOME_OK : o; /* a stop is no error */
}
