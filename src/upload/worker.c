#include "upload/worker.h"
#include "base/clock.h"
#include "upload/multipart.h"
#include <errno.h>
#include <stdlib.h>

/* Claim, look, send, from wherever the file is. Sending ends with proving and marking: send_whole,
 * or multipart_send with the last part. */
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
			step = multipart_abort(worker, file);
		if (step == STEP_NEXT)
			step = file->plan.n_parts ? multipart_begin(worker, file)
						  : send_whole(worker, file);
		if (step != STEP_AGAIN)
			return step;
	}
}

/* A large file that needed no sending took its time all the same: with more at once such files,
 * too, get done sooner. */
static void note_unsent(struct worker *worker, const struct file *file)
{
	const uint64_t most = worker->run->options.part_bytes;
	const uint64_t bytes = file->state.size < most ? file->state.size : most;
	if (bytes > SMALL_BYTES_MAX && !atomic_load(&file->share.bytes))
		queue_moved(worker->run->queue, bytes);
}

static void finish(struct worker *worker, struct file *file, enum step step)
{
	if (step == STEP_PARTS)
		return;
	report_in_flight(&worker->run->report, -1);
	if (step == STEP_ASIDE)
		return;
	note_unsent(worker, file);
	file_free(file);
}

static void do_file(struct worker *worker, struct candidate *candidate)
{
	struct run *run = worker->run;
	struct file *file = calloc(1, sizeof *file);
	struct problem problem;
	if (!file) {
		free(candidate);
		problem_set(&problem, "out of memory");
		run_fail(run, &problem);
		return;
	}
	report_in_flight(&run->report, 1);
	file->candidate = candidate;
	file->target = object_rules_target(run->rules, candidate->key, candidate->relative);
	file->fd = -1;
	file->begun_ns = clock_boot_ns();
	file->share = (struct share){.report = &run->report, .queue = run->queue};
	enum step step = file_open(worker, file);
	if (step == STEP_NEXT && candidate->known.state != MARK_ABSENT) {
		const struct mark_ref ref = file_mark_ref(worker, file);
		enum outcome o = mark_get(&ref, &file->seen, &problem);
		if (o != OUTCOME_OK)
			step = file_marks_outcome(worker, file, o, &problem);
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
	enum step step = multipart_send(worker, parts, index, &file);
	if (!file)
		return;
	if (step == STEP_AGAIN)
		step = go_on(worker, file);
	finish(worker, file, step);
}

void worker_run(struct worker *worker)
{
	struct refusals *refusals = &worker->run->refusals;
	struct job job;
	for (;;) {
		queue_take(worker->run->queue, &job);
		if (job.kind != JOB_END) {
			refusals_job_begins(refusals);
			liveness_begin(&worker->run->liveness);
		}
		switch (job.kind) {
		case JOB_END:
			refusals_settle(worker, true);
			return;
		case JOB_FILE:
			do_file(worker, job.file);
			break;
		case JOB_CHECK:
			block_check(worker, job.block);
			break;
		case JOB_PART:
			do_part(worker, job.parts, job.index);
			break;
		}
		liveness_end(&worker->run->liveness);
		refusals_job_ended(refusals);
		refusals_settle(worker, false);
		queue_done(worker->run->queue, &job);
	}
}

int worker_new(struct run *run, size_t buffer_bytes, struct worker **ret)
{
	struct worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return -ENOMEM;
	worker->run = run;
	worker->buffer_bytes = buffer_bytes;
	worker->buffer = malloc(buffer_bytes);
	int error = worker->buffer ? digest_init(&worker->digest, 0) : -ENOMEM;
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
