#include "upload/worker.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "upload/body.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mark_ref file_mark_ref(struct worker *worker, const struct file *file)
{
	return (struct mark_ref){
		.conn = worker->marks,
		.space = &worker->run->space,
		.key = file->candidate->key,
		.session = session_id(worker->run->session),
		.source = worker->run->sources_of_marks[file->candidate->source],
		.limits = run_limits(worker->run),
	};
}

struct report_file file_about(const struct file *file)
{
	const struct candidate *c = file->candidate;
	return (struct report_file){c->path, c->key, file->fd >= 0 ? file->state.size : c->size};
}

struct s3_meta file_meta(const struct worker *worker, const struct file *file)
{
	struct s3_meta meta = {
		.mtime_ns = file->state.mtime_ns,
		.part_bytes = file->plan.n_parts ? file->plan.part_bytes : 0,
	};
	snprintf(meta.table, sizeof meta.table, "%s", worker->run->space.settings.table_id);
	snprintf(meta.claim, sizeof meta.claim, "%s", file->claim.id);
	return meta;
}

struct s3_condition file_condition(
	const struct worker *worker, const struct file *file, enum s3_ability ability)
{
	struct s3_condition condition = {0};
	const bool replaces = *file->replaces.etag != 0;
	if (file->unconditional ||
		s3_knows(worker->run->s3, replaces ? S3_IF_MATCH : ability) == S3_NO)
		return condition;
	condition.if_none_match = !replaces;
	condition.if_match = replaces ? file->replaces.etag : NULL;
	return condition;
}

bool file_needs_look(const struct worker *worker, const struct file *file, enum s3_ability ability)
{
	if (file->must_look || file->unconditional)
		return true;
	if (*file->replaces.etag)
		ability = S3_IF_MATCH;
	else if (worker->run->options.trust_conditions)
		return false;
	return s3_knows(worker->run->s3, ability) != S3_YES;
}

enum step file_sum(struct worker *worker, struct file *file, unsigned kinds)
{
	if (file->summed && (file->sums.kinds & kinds) == kinds)
		return STEP_NEXT;
	const struct range range = {file->fd, 0, file->state.size};
	int error = body_digest(&worker->digest, kinds, &range, worker->buffer,
		worker->buffer_bytes, run_is_over, worker->run, &file->sums);
	if (!error)
		error = body_unchanged(file->fd, &file->state);
	file->summed = !error;
	return error ? file_read_error(worker, file, error) : STEP_NEXT;
}

static enum step open_file(struct worker *worker, struct file *file)
{
	struct candidate *c = file->candidate;
	struct problem problem;
	if (file->fd >= 0)
		close(file->fd);
	file->summed = false;
	file->fd = scan_open_file(worker->run->scan, c->source, c->relative, &file->state);
	if (file->fd < 0) {
		int error = -file->fd;
		file->fd = -1;
		return file_read_error(worker, file, -error);
	}
	if (!file->state.size && pread(file->fd, &(char){0}, 1, 0) > 0 &&
		!body_unchanged(file->fd, &file->state)) {
		problem_set(&problem,
			"says that it is empty and has content, as files of the kernel do (/proc, "
			"/sys): copy it to a file, or exclude it");
		return file_fail(worker, file, &problem);
	}
	if (!plan_upload(file->state.size, worker->run->options.part_bytes, &file->plan))
		return STEP_NEXT;
	problem_set(&problem, "larger than the largest object S3 can hold; split it or exclude it");
	return file_fail(worker, file, &problem);
}

enum step file_changed(struct worker *worker, struct file *file)
{
	struct problem problem;
	const struct report_file about = file_about(file);
	if (++file->restarts > FILE_RESTARTS_MAX) {
		problem_set(&problem,
			"changes faster than it can be read; --min-age leaves files alone "
			"that were written a moment ago");
		return file_fail(worker, file, &problem);
	}
	problem_set(&problem, "changed while it was read, starting again with what it is now");
	report_file(&worker->run->report, S3ONCE_EVENT_RETRY, &about, &problem);
	enum step step = open_file(worker, file);
	return step == STEP_NEXT ? STEP_AGAIN : step;
}

enum step file_read_error(struct worker *worker, struct file *file, int error)
{
	struct problem problem;
	switch (error) {
	case -ESTALE:
		return file_changed(worker, file);
	case -ECANCELED:
		return STEP_OVER;
	case -ENOENT:
	case -ENOTDIR:
		problem_set(&problem, "vanished while the upload was under way");
		break;
	case -EACCES:
	case -EPERM:
		problem_set(&problem, "cannot be read: %s; give this user access, or exclude it",
			strerror(-error));
		break;
	case -ELOOP:
	case -EXDEV:
		problem_set(&problem,
			"became a symbolic link, or lies behind one, since it was scanned; not followed");
		break;
	case -EINVAL:
		problem_set(&problem, "is no regular file any more");
		break;
	case -EMFILE:
	case -ENFILE:
		problem_set(&problem,
			"out of file descriptors; raise ulimit -n or lower --concurrency");
		run_fail(worker->run, &problem);
		return STEP_OVER;
	default:
		problem_set(&problem, "cannot be read: %s", strerror(-error));
	}
	return file_fail(worker, file, &problem);
}

enum step file_fail(struct worker *worker, struct file *file, const struct problem *problem)
{
	const struct report_file about = file_about(file);
	if (file->claimed) {
		struct mark_ref ref = file_mark_ref(worker, file);
		struct problem second = {0};
		if (mark_fail(&ref, &file->claim, problem->text, &second) != OUTCOME_OK)
			log_info("the mark could not be set to failed: %s", second.text);
	}
	report_file(&worker->run->report, S3ONCE_EVENT_FAILED, &about, problem);
	return STEP_SETTLED;
}

enum step file_later(struct worker *worker, struct file *file, uint64_t not_before_ns)
{
	file->candidate->known.state = MARK_CLAIMED; /* so that the mark is read first */
	queue_later(worker->run->queue, &file->candidate, 1, not_before_ns);
	file->candidate = NULL;
	return STEP_LATER;
}

#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MOST_NS  (30 * NS_PER_S)

/* What may pass by itself: the file is begun once more when the others are through, with a pause
 * that grows, until it was tried for long enough. Its claim stays ours. */
static enum step try_again(struct worker *worker, struct file *file, const struct problem *problem)
{
	struct candidate *c = file->candidate;
	const struct report_file about = file_about(file);
	const uint64_t now = clock_boot_ns();
	struct problem said = *problem;
	if (!c->failed_since_ns)
		c->failed_since_ns = now;
	const uint64_t tried_ms = (now - c->failed_since_ns) / NS_PER_MS;
	if (tried_ms >= worker->run->options.give_up_after_ms) {
		if (c->failures)
			problem_prefix(
				&said, "given up after it was tried %u times", c->failures + 1);
		return file_fail(worker, file, &said);
	}
	uint64_t pause_ns = AGAIN_FIRST_NS << (c->failures < 5 ? c->failures : 5);
	c->failures++;
	problem_prefix(&said, "tried again later");
	report_file(&worker->run->report, S3ONCE_EVENT_RETRY, &about, &said);
	c->known.state = MARK_CLAIMED; /* so that the mark is read first */
	queue_again(
		worker->run->queue, c, now + (pause_ns < AGAIN_MOST_NS ? pause_ns : AGAIN_MOST_NS));
	file->candidate = NULL;
	return STEP_LATER;
}

/* It is the set-up that is wrong then, not this file. */
static bool nothing_worked_yet(struct worker *worker)
{
	const struct s3once_counts counts = report_get(&worker->run->report);
	return !counts.uploaded && !counts.adopted;
}

enum step file_outcome(struct worker *worker, struct file *file, enum outcome outcome,
	const struct problem *problem)
{
	struct run *run = worker->run;
	if (run_is_over(run))
		return STEP_OVER;
	switch (outcome) {
	case OUTCOME_DENIED:
		if (!nothing_worked_yet(worker))
			break;
		/* fall through */
	case OUTCOME_SETUP:
		run_fail(run, problem);
		return STEP_OVER;
	case OUTCOME_LOST:
	case OUTCOME_TRANSIENT:
		/* What never answered as S3 does will not begin to. */
		if (nothing_worked_yet(worker) && (outcome == OUTCOME_LOST || !problem->status))
			break;
		/* fall through */
	case OUTCOME_CONFLICT:
	case OUTCOME_THROTTLED:
		return try_again(worker, file, problem);
	case OUTCOME_ABANDONED: /* our lease ran out for a while; the claim is judged anew once it
				   is back */
		return file_later(worker, file, clock_boot_ns() + NS_PER_S / 2);
	default:
		break;
	}
	return file_fail(worker, file, problem);
}

enum step file_settle(struct worker *worker, struct file *file, enum s3once_event_type event)
{
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	return STEP_SETTLED;
}

enum step file_mark_done(struct worker *worker, struct file *file, const struct version *version)
{
	struct mark seen = {0};
	struct problem problem = {0};
	struct mark_ref ref = file_mark_ref(worker, file);
	ref.limits = run_visible_limits(worker->run);
	enum outcome o = mark_done(&ref, &file->claim, version, &seen, &problem);
	mark_clear(&seen);
	if (o == OUTCOME_OK)
		return STEP_NEXT;
	if (o != OUTCOME_REFUSED)
		return file_outcome(worker, file, o, &problem);
	run_fence(worker->run, "another uploader took over a file of this run");
	return STEP_OVER;
}

enum step file_done(
	struct worker *worker, struct file *file, const char *etag, enum s3once_event_type event)
{
	struct version version = {.size = file->state.size, .mtime_ns = file->state.mtime_ns};
	snprintf(version.sum, sizeof version.sum, "crc32c:");
	crc32c_to_base64(file->sums.crc32c, version.sum + strlen(version.sum));
	snprintf(version.etag, sizeof version.etag, "%s", etag);
	enum step step = file_mark_done(worker, file, &version);
	if (step != STEP_NEXT)
		return step;
	const struct report_file about = file_about(file);
	report_file(&worker->run->report, event, &about, NULL);
	return STEP_SETTLED;
}

/* Steps 2 to 7, from wherever the file is. */
static enum step go_on(struct worker *worker, struct file *file)
{
	for (;;) {
		enum step step = STEP_NEXT;
		if (run_is_over(worker->run))
			return STEP_OVER;
		if (!file->claimed)
			step = claim_file(worker, file);
		if (step == STEP_NEXT && file->must_look)
			step = look_at_object(worker, file);
		if (step == STEP_NEXT && !file->plan.n_parts) /* it was large once */
			step = parts_abort(worker, file);
		if (step == STEP_NEXT)
			step = file->plan.n_parts ? parts_begin(worker, file)
						  : send_whole(worker, file);
		if (step != STEP_AGAIN)
			return step;
	}
}

static void finish(struct worker *worker, struct file *file, enum step step)
{
	if (step == STEP_PARTS)
		return;
	report_in_flight(&worker->run->report, -1);
	file_free(file);
}

static void do_file(struct worker *worker, struct candidate *candidate)
{
	struct run *run = worker->run;
	struct file *file = calloc(1, sizeof *file);
	struct problem problem;
	report_in_flight(&run->report, 1);
	if (!file) {
		free(candidate);
		problem_set(&problem, "out of memory");
		run_fail(run, &problem);
		return;
	}
	file->candidate = candidate;
	file->target = object_rules_target(run->rules, candidate->key, candidate->relative);
	file->fd = -1;
	enum step step = open_file(worker, file);
	if (step == STEP_NEXT && candidate->known.state != MARK_ABSENT) {
		const struct mark_ref ref = file_mark_ref(worker, file);
		enum outcome o = mark_get(&ref, &file->seen, &problem);
		if (o != OUTCOME_OK)
			step = file_outcome(worker, file, o, &problem);
	}
	if (step == STEP_NEXT && !run_begin(run, worker->marks))
		step = STEP_OVER;
	if (step == STEP_NEXT)
		step = go_on(worker, file);
	finish(worker, file, step);
}

static void do_part(struct worker *worker, struct parts *parts, unsigned index)
{
	struct file *file = NULL;
	enum step step = parts_send(worker, parts, index, &file);
	if (!file)
		return;
	if (step == STEP_AGAIN)
		step = go_on(worker, file);
	finish(worker, file, step);
}

/* Somebody alive holds it, and nobody need be told of that now. */
static bool may_wait(struct worker *worker, struct candidate *c, uint64_t *ret_again_ns)
{
	struct run *run = worker->run;
	struct problem problem;
	return c->known.state == MARK_CLAIMED && !run->options.no_wait && !run->dry &&
	       strcmp(c->known.session, session_id(run->session)) != 0 &&
	       (candidate_was_just_seen_held(c) || c->said_held) &&
	       session_is_over(
		       run->session, worker->marks, c->known.session, ret_again_ns, &problem) == 0;
}

/* Begins a shared block anywhere but where the others may just be. */
static void rotate(struct candidate **files, size_t n)
{
	struct candidate *copy[BLOCK_FILES];
	const size_t first = (size_t)random_below(n);
	memcpy(copy, files, n * sizeof(struct candidate *));
	for (size_t i = 0; i < n; i++)
		files[i] = copy[(first + i) % n];
}

/* What others have taken meanwhile: done is skipped, what somebody alive holds waits, the rest may
 * be begun. */
static void sort_block(struct worker *worker, struct block *block, const struct known_mark *known)
{
	struct run *run = worker->run;
	struct candidate *ready[BLOCK_FILES], *later[BLOCK_FILES];
	size_t n_ready = 0, n_later = 0;
	uint64_t again_ns = clock_boot_ns() + NS_PER_S / 2;
	for (size_t i = 0; i < block->n; i++) {
		struct candidate *c = block->files[i];
		c->known = known[i];
		uint64_t at_ns = 0;
		if (known_is_done(&c->known, c->size, c->mtime_ns)) {
			const struct report_file about = {c->path, c->key, c->size};
			report_file(&run->report, S3ONCE_EVENT_SKIPPED, &about, NULL);
			free(c);
		} else if (may_wait(worker, c, &at_ns)) {
			later[n_later++] = c;
			again_ns = at_ns > again_ns ? at_ns : again_ns;
		} else {
			ready[n_ready++] = c;
		}
	}
	queue_later(run->queue, later, n_later, again_ns);
	if (n_later && !block->last) { /* as long as there are others, away from who is in it */
		queue_shared(run->queue, ready, n_ready);
		n_ready = 0;
	} else if (block->last) {
		rotate(ready, n_ready);
	}
	queue_ready(run->queue, ready, n_ready);
}

static void do_check(struct worker *worker, struct block *block)
{
	const char *keys[BLOCK_FILES];
	struct known_mark known[BLOCK_FILES];
	struct problem problem = {0};
	const struct call_limits limits = run_limits(worker->run);
	for (size_t i = 0; i < block->n; i++)
		keys[i] = block->files[i]->key;
	enum outcome o = known_again(
		worker->marks, &worker->run->space, keys, block->n, &limits, known, &problem);
	if (o == OUTCOME_OK) {
		sort_block(worker, block, known);
	} else { /* a claim will tell */
		log_info("reading marks again: %s", problem.text);
		queue_ready(worker->run->queue, block->files, block->n);
	}
	free(block);
}

void worker_run(struct worker *worker)
{
	struct job job;
	for (;;) {
		queue_take(worker->run->queue, &job);
		switch (job.kind) {
		case JOB_END:
			return;
		case JOB_FILE:
			do_file(worker, job.file);
			break;
		case JOB_CHECK:
			do_check(worker, job.block);
			break;
		case JOB_PART:
			do_part(worker, job.parts, job.index);
			break;
		}
		queue_done(worker->run->queue);
	}
}

void file_free(struct file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file->candidate);
	mark_clear(&file->seen);
	claim_clear(&file->claim);
	free(file->upload_id);
	free(file);
}

int worker_new(struct run *run, size_t buffer_bytes, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return -ENOMEM;
	worker->run = run;
	worker->buffer_bytes = buffer_bytes;
	worker->buffer = malloc(buffer_bytes);
	int error = worker->buffer ? digest_init(&worker->digest, DIGEST_CRC32C) : -ENOMEM;
	if (!error)
		error = s3_conn_new(run->s3, &worker->s3);
	if (!error)
		error = store_conn_new(run->store, &worker->marks);
	if (error) {
		worker_free(worker);
		return error;
	}
	*ret = worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	if (!worker)
		return;
	store_conn_free(worker->marks);
	s3_conn_free(worker->s3);
	digest_clear(&worker->digest);
	free(worker->buffer);
	free(worker);
}
