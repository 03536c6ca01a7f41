#include "base/clock.h"
#include "base/quote.h"
#include "scan/content/identity_cache.h"
#include "scan/rotated/log_rows.h"
#include "upload/bucket/bucket_check.h"
#include "upload/file/multipart.h"
#include "upload/push_struct.h"
#include "upload/run_job.h"
#include "upload/run_manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

const char *s3once_version(void)
{
	return S3ONCE_VERSION;
}

/* What nobody was told of must not pass for done. */
static void tell_lost(struct run *run, const struct s3once_counts *c)
{
	struct problem problem;
	problem_set(&problem,
		"%llu files were found, but %llu were counted, which is an error of "
		"s3once itself: run again",
		(unsigned long long)c->found, (unsigned long long)s3once_counts_settled(c));
	report_run(&run->report, S3ONCE_EVENT_FATAL, &problem);
}

static enum s3once_exit verdict(struct s3once_push *push)
{
	struct run *run = &push->run;
	const struct s3once_counts c = report_get(&run->report);
	const bool settled = push->whole && s3once_counts_settled(&c) == c.found;
	if (atomic_load(&run->was_asked_to_stop) && !settled)
		return S3ONCE_EXIT_STOPPED;
	if (atomic_load(&run->fenced))
		return S3ONCE_EXIT_FENCED;
	if (atomic_load(&run->failed_setup))
		return S3ONCE_EXIT_SETUP;
	const bool is_limited = atomic_load(&run->has_reached_limit);
	if (push->whole && !settled && !is_limited)
		tell_lost(run, &c);
	if (c.failed || c.changed || c.not_removed || (!settled && !is_limited))
		return S3ONCE_EXIT_FILES;
	if (!settled)
		return S3ONCE_EXIT_LIMIT;
	if (c.found && c.found == c.links) {
		struct problem problem;
		problem_set(&problem,
			"found only symbolic links, which are not followed; use --follow to "
			"upload the files that they lead to");
		report_run(&run->report, S3ONCE_EVENT_WARNING, &problem);
		return S3ONCE_EXIT_FILES;
	}
	return c.held ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
}

static void tell_start(struct s3once_push *push)
{
	struct problem problem;
	const char *marks = push->run.options.marks;
	problem_set(&problem, "%s", quote(marks).text);
	report_run(&push->run.report, S3ONCE_EVENT_START, &problem);
}

/* Before it is said that files are in S3, that is on the disk, whichever run has marked them. */
static void look_for_marks(struct s3once_push *push)
{
	struct problem problem;
	if (!push->run.dry && store_sync(push->conn, NULL, &problem) != OUTCOME_OK)
		run_fail(&push->run, &problem);
	if (own_files_are_there(&push->run.own_files))
		return;
	problem_set(&problem,
		"%s: was removed or replaced while this run had it open, so that marks "
		"may be lost: run again; files without a mark are compared with what S3 "
		"holds",
		quote(push->run.own_files.path).text);
	run_fail(&push->run, &problem);
}

/* A run that could not do its work has none: the next one's says what it found done. */
static enum s3once_exit put_manifest(struct run *run, enum s3once_exit exit)
{
	switch (exit) {
	case S3ONCE_EXIT_OK:
	case S3ONCE_EXIT_HELD:
	case S3ONCE_EXIT_LIMIT:
		return run_manifest_put(run) ? exit : S3ONCE_EXIT_FILES;
	case S3ONCE_EXIT_FILES:
		run_manifest_put(run);
		return exit;
	default:
		return exit;
	}
}

enum s3once_exit s3once_push_run(struct s3once_push *push)
{
	struct run *run = &push->run;
	struct problem problem;
	if (push_set_up(push)) {
		tell_start(push);
		if (!push_loop(push)) {
			problem_set(&problem, PROBLEM_NO_DESCRIPTORS);
			run_fail(run, &problem);
		}
		for (struct parts *parts; (parts = queue_leftover(run->queue));)
			file_free(multipart_give_up(parts));
		report_unshipped(&run->report, queue_oldest_ns(run->queue));
	}
	batches_learner_end(&run->batches_learner);
	if (push->set_up)
		bucket_keep(run, push->conn);
	char session[ID_CHARS + 1] = "";
	if (run->locked.begun)
		snprintf(session, sizeof session, "%s", session_id(run->session));
	if (run->session)
		session_close(run->session, push->conn);
	run->session = NULL;
	if (push->set_up)
		look_for_marks(push);
	const enum s3once_exit exit = put_manifest(run, verdict(push));
	if (push->has_marks && !run->dry)
		run_job_end(run, push->conn, *session ? session : NULL, exit);
	push->counts = report_get(&run->report);
	report_counts(&run->report, S3ONCE_EVENT_SUMMARY);
	return exit;
}

const char *s3once_push_requests(const struct s3once_push *push, size_t i, uint64_t *ret_count)
{
	unsigned long count = 0;
	const char *name = NULL;
	size_t n = 0;
	for (; push->run.s3 && (name = service_kind(s3_service(push->run.s3), n, &count)); n++)
		if (n == i)
			goto found;
	if (push->run.store)
		name = push->run.store->ops->kind(push->run.store, i - n, &count);
found:
	*ret_count = count;
	return name;
}

const char *s3once_push_manifest(const struct s3once_push *push)
{
	return run_manifest_key(&push->run);
}

const struct s3once_counts *s3once_push_counts(const struct s3once_push *push)
{
	return &push->counts;
}

uint64_t s3once_counts_settled(const struct s3once_counts *counts)
{
	return counts->uploaded + counts->adopted + counts->refreshed + counts->skipped +
	       counts->planned + counts->changed + counts->failed + counts->held + counts->young +
	       counts->oversized + counts->undersized + counts->links + counts->special +
	       counts->outdated;
}

void s3once_push_free(struct s3once_push *push)
{
	if (!push)
		return;
	struct run *run = &push->run;
	queue_free(run->queue);
	run_manifest_free(run);
	for (size_t i = 0; run->sources_of_marks && i < run->options.n_sources; i++)
		free(run->sources_of_marks[i]);
	free(run->sources_of_marks);
	if (run->scan)
		scan_close(run->scan);
	store_conn_free(push->conn);
	store_close(run->store);
	if (run->s3)
		s3_close(run->s3);
	http_shared_free(run->http);
	aws_settings_free(run->aws);
	key_template_free(run->key_template);
	log_rows_free(run->log_rows);
	identity_cache_close(run->identities);
	bandwidth_free(run->bandwidth);
	family_rules_free(run->families);
	if (run->move_to_fd >= 0)
		close(run->move_to_fd);
	filter_free(run->filter);
	object_rules_free(run->rules);
	encoders_clear(&run->encoders);
	refusals_clear(&run->refusals);
	report_clear(&run->report);
	uv_mutex_destroy(&run->locked.mutex);
	own_files_clear(&run->own_files);
	free(push);
}
