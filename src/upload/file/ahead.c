/* Takes the next file of a worker while the present one is not marked done yet. file_done.c calls
 * take_ahead(), worker.c begins the turn of the file, and claim.c waits for its claim. Nothing here
 * waits for the claim. Only the mark of a file that is missing is read at once, since it may say
 * why. */
#include "upload/file/ahead.h"
#include "base/clock.h"
#include "upload/file/file_open.h"
#include "upload/file/worker.h"
#include <assert.h>

void take_ahead(struct worker *worker)
{
	struct run *run = worker->run;
	struct next_file *next = &worker->next;
	assert(!next->is_taken); /* a task marks at most one file done */
	if (worker->options->removes || run_is_stopping(run) || !run_has_lease(run) ||
		!queue_take_ahead(run->queue, &next->task))
		return;
	next->is_taken = true;
	struct file *file = next->file = file_new(run, next->task.file);
	if (!file) /* worker.c tries again, and reports it */
		return;
	atomic_fetch_add(&run->report.in_flight, 1);
	const uint64_t began_ns = clock_boot_ns();
	next->answer = file_open(worker, file);
	next->read_ns = clock_boot_ns() - began_ns;
	if (next->answer != STEP_NEXT)
		return;
	struct mark_ref ref = file_mark_ref(worker, file);
	ref.limits = worker->visible_limits;
	ref.limits.failed_ms = 0; /* it was not tried before */
	ref.may_sync_later = true;
	file->claiming = &next->claiming;
	mark_begin_claim(&ref, file->claiming);
}
