/* The reports and counts of a run. All threads of the run call these functions. The mutex
 * serialises the events, and the caller's callback gets them in that order. */
#include "upload/progress/report.h"
#include "base/clock.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LAST_LINE 80 /* room for the last line, with the number of failures that have no line */

static const char *const wait_texts[S3ONCE_WAITS] = {
	[S3ONCE_WAIT_NONE] = "",
	[S3ONCE_WAIT_YOUNG] = "younger than --min-age",
	[S3ONCE_WAIT_LIVE] = "may still be written to",
	[S3ONCE_WAIT_NO_LINE] = "no whole line yet",
	[S3ONCE_WAIT_COMPRESSING] = "still being compressed",
	[S3ONCE_WAIT_COPY] = "perhaps a copy of a log that is about to be emptied",
	[S3ONCE_WAIT_UNFINISHED] = "unfinished or put aside, by its name",
	[S3ONCE_WAIT_CHANGED] = "renamed or written to during the run",
	[S3ONCE_WAIT_FAMILY] = "after another file of the same log",
};

void report_init(struct report *report, const struct s3once_options *options)
{
	*report = (struct report){
		.callback = options->callback,
		.callback_arg = options->callback_arg,
		.reports_skipped = options->report_skipped != 0,
		.is_piped = options->read != NULL,
		.start_ns = clock_boot_ns(),
		.oldest_unshipped_ns = INT64_MAX,
		.locked.failures = TEXT(REPORT_FAILURES_MAX),
	};
	report->locked.counts.oldest_waiting_ns = INT64_MAX;
	for (int i = 0; i < S3ONCE_WAITS; i++)
		report->locked.waiting[i] = (struct s3once_waiting){
			.oldest_ns = INT64_MAX, .path = "", .text = wait_texts[i]};
	uv_mutex_init(&report->locked.mutex);
}

void report_clear(struct report *report)
{
	uv_mutex_destroy(&report->locked.mutex);
	text_clear(&report->locked.failures);
	for (int i = 0; i < S3ONCE_WAITS; i++)
		free(report->locked.waiting_paths[i]);
}

#define COUNT(field) offsetof(struct s3once_counts, field)
/* The counters of events. `settles`: the file needs nothing more, and its bytes are added to
 * bytes_settled. Files that are too large or too small do not have it, since feed.c does not count
 * their bytes as found. `ends`: the run does nothing more with the file, although it needs more.
 * `is_quiet`: the event is passed on only if report.reports_skipped is set. */
static const struct kind {
	/* The offset of the counter in struct s3once_counts, and that of the counter of the file's
	 * bytes. 0 means none: at 0 is `found`, which report_count_found() counts and no event. */
	size_t count_at, bytes_at;
	bool settles, ends, is_quiet;
} kinds[] = {
	[S3ONCE_EVENT_UPLOADED] = {COUNT(uploaded), COUNT(bytes_uploaded), .settles = true},
	[S3ONCE_EVENT_ADOPTED] = {COUNT(adopted), .settles = true},
	[S3ONCE_EVENT_REFRESHED] = {COUNT(refreshed), .settles = true},
	[S3ONCE_EVENT_SKIPPED] = {COUNT(skipped), .settles = true, .is_quiet = true},
	[S3ONCE_EVENT_PLANNED] = {COUNT(planned), .settles = true},
	[S3ONCE_EVENT_LINK] = {COUNT(links), .settles = true, .is_quiet = true},
	[S3ONCE_EVENT_WAITING] = {COUNT(waiting), .settles = true, .is_quiet = true},
	[S3ONCE_EVENT_OVERSIZED] = {COUNT(oversized), .is_quiet = true},
	[S3ONCE_EVENT_UNDERSIZED] = {COUNT(undersized), .is_quiet = true},
	[S3ONCE_EVENT_SPECIAL] = {COUNT(special), .settles = true, .is_quiet = true},
	[S3ONCE_EVENT_EXCLUDED] = {COUNT(excluded), .is_quiet = true},
	[S3ONCE_EVENT_OUTDATED] = {COUNT(outdated), .settles = true},
	[S3ONCE_EVENT_CHANGED] = {COUNT(changed), .ends = true},
	[S3ONCE_EVENT_FAILED] = {COUNT(failed), .ends = true},
	[S3ONCE_EVENT_HELD] = {COUNT(held), .ends = true},
	[S3ONCE_EVENT_LEFT] = {COUNT(left), COUNT(bytes_left)},
	[S3ONCE_EVENT_REMOVED] = {COUNT(removed), COUNT(bytes_removed)},
	[S3ONCE_EVENT_MOVED] = {COUNT(moved), COUNT(bytes_removed)},
	[S3ONCE_EVENT_KEPT] = {COUNT(kept)},
	[S3ONCE_EVENT_NOT_REMOVED] = {COUNT(not_removed)},
	[S3ONCE_EVENT_REMOVABLE] = {COUNT(removable)},
	[S3ONCE_EVENT_SUMMARY] = {0}, /* the last event, so that the array has room for all */
};

/* Keeps an event that makes the run end with another status than 0, for report_get_errors().
 * Ignores all other events. The input of a pipe is named by its key, since one program may write
 * many keys. The caller holds the mutex. */
static void keep_error_locked(
	struct report *report, const struct s3once_event *event, const struct problem *problem)
{
	const enum s3once_event_type type = event->type;
	const bool is_fatal = type == S3ONCE_EVENT_FATAL;
	const bool is_error = is_fatal || type == S3ONCE_EVENT_FAILED ||
			      type == S3ONCE_EVENT_CHANGED || type == S3ONCE_EVENT_NOT_REMOVED ||
			      type == S3ONCE_EVENT_MANIFEST_FAILED;
	const char *name = report->is_piped ? event->key : event->path;
	char sentence[PROBLEM_SENTENCE_MAX];
	struct text line = TEXT(32U << 10);
	struct text *failures = &report->locked.failures;
	if (!is_error)
		return;
	problem_format(problem, sentence, sizeof sentence);
	if (name) {
		text_add_escaped_string(&line, name);
		text_add(&line, ": ");
	}
	text_add_escaped_string(&line, sentence);
	/* Once one line had no room, no later one is added, so that the lines are the first
	 * failures. */
	if (report->locked.n_left_out || failures->len + line.len + LAST_LINE > REPORT_FAILURES_MAX)
		report->locked.n_left_out++;
	else
		text_addf(failures, "%s%s", failures->len ? "\n" : "", text_string(&line));
	text_clear(&line);
	if (report->locked.error_is_fatal) /* the error that has ended the run stays */
		return;
	report->locked.error_is_fatal = is_fatal;
	problem_set(&report->locked.error, "%s%s%s", name ? quote(name).text : "", name ? ": " : "",
		sentence);
}

/* Counts a file that waits by its reason, and keeps its path if it is the oldest one so far. If
 * memory runs out, the path of another one stays. The caller holds the mutex. */
static void note_waiting_locked(struct report *report, const struct report_file *file)
{
	struct s3once_waiting *waiting = &report->locked.waiting[file->wait];
	/* No data waits with an empty file, so its time does not count. */
	const bool is_oldest = file->bytes && file->mtime_ns < waiting->oldest_ns;
	const bool is_named = file->path && (is_oldest || !waiting->files);
	char *path = is_named ? strdup(file->path) : NULL;
	waiting->files++;
	if (is_oldest)
		waiting->oldest_ns = file->mtime_ns;
	if (path) {
		free(report->locked.waiting_paths[file->wait]);
		waiting->path = report->locked.waiting_paths[file->wait] = path;
	}
	if (file->wait != S3ONCE_WAIT_YOUNG &&
		waiting->oldest_ns < report->locked.counts.oldest_waiting_ns)
		report->locked.counts.oldest_waiting_ns = waiting->oldest_ns;
}

/* Counts an event. A file that is waited for is not counted yet: it will have another event. The
 * caller holds the mutex. */
static void count_event_locked(
	struct report *report, const struct kind *kind, const struct report_file *file)
{
	char *counts = (char *)&report->locked.counts;
	const bool is_large = file->bytes > S3ONCE_SMALL_BYTES_MAX;
	const bool has_ended = (kind->settles || kind->ends) && !file->is_waited_for;
	if (kind->count_at && !file->is_waited_for)
		++*(uint64_t *)(counts + kind->count_at);
	if (kind->bytes_at)
		*(uint64_t *)(counts + kind->bytes_at) += file->bytes;
	if (kind->settles)
		report->locked.counts.bytes_settled += file->bytes;
	if (is_large && has_ended) {
		report->locked.counts.large.ended++;
		report->locked.counts.large.bytes_ended += file->bytes;
	}
}

void report_file(struct report *report, enum s3once_event_type type, const struct report_file *file,
	const struct problem *problem)
{
	const struct kind *kind = &kinds[type];
	struct s3once_event event = {.type = type,
		.path = file->path,
		.key = file->key,
		.bytes = file->bytes,
		.text = wait_texts[file->wait],
		.wait = file->wait,
		.mtime_ns = file->mtime_ns,
		.version_id = file->version_id,
		.etag = file->etag,
		.checksum = file->checksum,
		.counts = file->counts,
		.bytes_done = file->bytes_done};
	/* The callback gets "" in place of NULL for each of these. */
	const char **texts[] = {&event.path, &event.key, &event.text, &event.version_id,
		&event.etag, &event.checksum, &event.code, &event.request_id};
	uv_mutex_lock(&report->locked.mutex);
	count_event_locked(report, kind, file);
	if (type == S3ONCE_EVENT_WAITING)
		note_waiting_locked(report, file);
	report->locked.has_waited |= file->is_waited_for;
	if (problem) {
		keep_error_locked(report, &event, problem);
		event.text = problem->text;
		event.code = problem->code;
		event.request_id = problem->request_id;
	}
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		*texts[i] = *texts[i] ? *texts[i] : "";
	if (report->callback && (report->reports_skipped || !kind->is_quiet))
		report->callback(report->callback_arg, &event);
	uv_mutex_unlock(&report->locked.mutex);
}

void report_run(struct report *report, enum s3once_event_type type, const struct problem *problem)
{
	report_file(report, type, &(struct report_file){0}, problem);
}

void report_note_repeat(struct report *report, int64_t uploaded_s, int64_t now_s)
{
	atomic_store(&report->repeats_s, uploaded_s);
	atomic_store(
		&report->repeats_age_s, now_s > uploaded_s ? (uint64_t)(now_s - uploaded_s) : 0);
}

/* Sets the name and the progress of the largest file under way. Returns its path, which the caller
 * frees after `ret`; NULL, with `ret` untouched, if no large file is under way. */
static char *largest_under_way(struct report *report, struct report_file *ret)
{
	const struct file_progress *largest = NULL;
	char *path = NULL;
	uv_mutex_lock(&report->locked.mutex);
	for (const struct file_progress *at = report->locked.large; at; at = at->next)
		if (!largest || at->size > largest->size)
			largest = at;
	if (largest && (path = strdup(largest->large_path))) {
		const uint64_t done = atomic_load(&largest->bytes);
		ret->path = path;
		ret->bytes = largest->size;
		ret->bytes_done = done < largest->size ? done : largest->size;
	}
	uv_mutex_unlock(&report->locked.mutex);
	return path;
}

void report_counts(struct report *report, enum s3once_event_type type)
{
	const struct s3once_counts counts = report_get_counts(report);
	struct report_file about = {.counts = &counts};
	char *path = NULL;
	if (type == S3ONCE_EVENT_PROGRESS)
		path = largest_under_way(report, &about);
	report_file(report, type, &about, NULL);
	free(path);
}

void report_count_found(struct report *report, uint64_t files, uint64_t bytes)
{
	uv_mutex_lock(&report->locked.mutex);
	report->locked.counts.found += files;
	report->locked.counts.bytes_found += bytes;
	if (bytes > S3ONCE_SMALL_BYTES_MAX) {
		report->locked.counts.large.found += files;
		report->locked.counts.large.bytes_found += bytes;
	}
	uv_mutex_unlock(&report->locked.mutex);
}

void report_count_unproven(struct report *report)
{
	uv_mutex_lock(&report->locked.mutex);
	report->locked.counts.unproven++;
	uv_mutex_unlock(&report->locked.mutex);
}

void report_note_unshipped(struct report *report, int64_t mtime_ns)
{
	/* If another thread changes the time meanwhile, `oldest` becomes that thread's value. */
	int64_t oldest = atomic_load(&report->oldest_unshipped_ns);
	while (mtime_ns < oldest &&
		!atomic_compare_exchange_weak(&report->oldest_unshipped_ns, &oldest, mtime_ns))
		;
}

void report_set_level(struct report *report, unsigned concurrency, enum s3once_limited_by why)
{
	uv_mutex_lock(&report->locked.mutex);
	report->locked.counts.concurrency = concurrency;
	report->locked.counts.limited_by = why;
	uv_mutex_unlock(&report->locked.mutex);
}

void report_get_errors(struct report *report, struct problem *ret_error, struct text *ret_failures)
{
	uv_mutex_lock(&report->locked.mutex);
	*ret_error = report->locked.error;
	text_add(ret_failures, text_string(&report->locked.failures));
	if (report->locked.n_left_out)
		text_addf(ret_failures, "%sand %" PRIu64 " more: the log of the run has them",
			report->locked.failures.len ? "\n" : "", report->locked.n_left_out);
	uv_mutex_unlock(&report->locked.mutex);
}

struct s3once_counts report_get_counts(struct report *report)
{
	uv_mutex_lock(&report->locked.mutex);
	struct s3once_counts counts = report->locked.counts;
	counts.in_flight = atomic_load(&report->in_flight);
	counts.large.bytes_moved = atomic_load(&report->large_content);
	counts.bytes_sent = atomic_load(&report->sent);
	counts.bytes_moved = atomic_load(&report->moved);
	counts.bytes_kept = atomic_load(&report->kept);
	counts.bytes_resumed = atomic_load(&report->resumed);
	counts.is_stuck = atomic_load(&report->is_stuck);
	counts.scan_complete = atomic_load(&report->scan_complete);
	counts.repeats_s = atomic_load(&report->repeats_s);
	counts.repeats_age_s = atomic_load(&report->repeats_age_s);
	counts.claims_refused = atomic_load(&report->claims_refused);
	counts.oldest_unshipped_ns = atomic_load(&report->oldest_unshipped_ns);
	/* A file that was just settled is still under way for a moment, and must not count twice.
	 * So the bytes under way are at most those not settled. */
	const uint64_t under_way = atomic_load(&report->under_way);
	const uint64_t left = counts.bytes_found - counts.bytes_settled;
	counts.bytes_under_way = under_way < left ? under_way : left;
	counts.seconds = (double)(clock_boot_ns() - report->start_ns) / (double)NS_PER_S;
	counts.still_seconds = (double)progress_still_ns(report->progress, NULL) / (double)NS_PER_S;
	estimate_take_in(&report->locked.estimate, &counts);
	counts.bytes_per_second = report->locked.estimate.line;
	/* The run only waits for other uploaders, for an unknown time. */
	const bool only_waits = report->locked.has_waited && !counts.in_flight;
	counts.seconds_left =
		only_waits ? -1 : estimate_seconds_left(&report->locked.estimate, &counts);
	uv_mutex_unlock(&report->locked.mutex);
	return counts;
}

void file_progress_init(
	struct file_progress *progress, struct report *report, const char *path, uint64_t size)
{
	*progress = (struct file_progress){.report = report, .size = size};
	if (size > S3ONCE_SMALL_BYTES_MAX)
		progress->large_path = strdup(path);
	if (!progress->large_path)
		return;
	uv_mutex_lock(&report->locked.mutex);
	progress->next = report->locked.large;
	progress->back = &report->locked.large;
	if (progress->next)
		progress->next->back = &progress->next;
	report->locked.large = progress;
	report->locked.counts.large.in_flight++;
	uv_mutex_unlock(&report->locked.mutex);
}

void file_progress_clear(struct file_progress *progress)
{
	struct report *report = progress->report;
	if (!progress->large_path)
		return;
	uv_mutex_lock(&report->locked.mutex);
	*progress->back = progress->next;
	if (progress->next)
		progress->next->back = progress->back;
	report->locked.counts.large.in_flight--;
	uv_mutex_unlock(&report->locked.mutex);
	free(progress->large_path);
}

const struct s3once_waiting *report_waiting(const struct report *report, enum s3once_wait why)
{
	return &report->locked.waiting[why];
}

void file_progress_add_stored(struct file_progress *progress, uint64_t bytes)
{
	atomic_fetch_add(&progress->bytes, bytes);
	atomic_fetch_add(&progress->report->under_way, bytes);
	atomic_fetch_add(&progress->report->resumed, bytes);
	atomic_fetch_add(&progress->report->large_moved, bytes);
}

/* Reports progress to the clock of the run if `moved` is more than ever before. Bytes that are sent
 * again after a failed attempt (transfer_undo()) do not count as progress: a proxy may accept the
 * same bytes forever. */
static void note_moved(struct report *report, uint64_t moved)
{
	uint64_t max_moved = atomic_load(&report->max_moved);
	while (moved > max_moved)
		if (atomic_compare_exchange_weak(&report->max_moved, &max_moved, moved)) {
			progress_made(report->progress);
			return;
		}
}

/* Converts the sent bytes of the body, which may be compressed, into bytes of the content. A body
 * that was sent completely counts as all of its content. */
static uint64_t content_of_sent(const struct transfer *transfer)
{
	if (transfer->content_bytes == transfer->body_bytes)
		return transfer->sent_bytes;
	if (transfer->sent_bytes >= transfer->body_bytes)
		return transfer->content_bytes;
	return (uint64_t)((double)transfer->content_bytes * (double)transfer->sent_bytes /
			  (double)transfer->body_bytes);
}

void transfer_moved(void *arg, uint64_t bytes)
{
	struct transfer *transfer = arg;
	struct file_progress *progress = transfer->progress;
	if (!progress)
		return;
	transfer->sent_bytes += bytes;
	const uint64_t content = content_of_sent(transfer);
	/* counted_bytes was computed in the same way of fewer bytes, so it is not above `content`.
	 */
	const uint64_t more = content - transfer->counted_bytes;
	transfer->counted_bytes = content;
	atomic_fetch_add(&progress->bytes, more);
	atomic_fetch_add(&progress->report->sent, bytes);
	note_moved(progress->report, atomic_fetch_add(&progress->report->moved, more) + more);
	if (progress->large_path)
		atomic_fetch_add(&progress->report->large_content, more);
	atomic_fetch_add(&progress->report->under_way, more);
	if (transfer->is_large)
		atomic_fetch_add(&progress->report->large_moved, bytes);
}

void transfer_undo(struct transfer *transfer)
{
	struct file_progress *progress = transfer->progress;
	if (!progress || !transfer->sent_bytes)
		return;
	if (transfer->is_large && transfer->sent_bytes < transfer->body_bytes)
		atomic_fetch_add(&progress->report->large_cuts, 1);
	atomic_fetch_sub(&progress->bytes, transfer->counted_bytes);
	atomic_fetch_sub(&progress->report->moved, transfer->counted_bytes);
	if (progress->large_path)
		atomic_fetch_sub(&progress->report->large_content, transfer->counted_bytes);
	atomic_fetch_sub(&progress->report->under_way, transfer->counted_bytes);
	transfer->sent_bytes = transfer->counted_bytes = 0;
}
