/* The counts and reports of a run, against tables and small models: a counter for each event, the
 * waiting files, the reasons for an exit status, and the bytes on their way. */
#include "../check.h"
#include "upload/progress/report.h"
#include <stddef.h>
#include <stdlib.h>

#define SMALL ((uint64_t)S3ONCE_SMALL_BYTES_MAX)

static struct seen {
	unsigned n;
	enum s3once_event_type type;
	char path[100], key[100], text[200];
	uint64_t bytes, bytes_done;
	bool has_null, has_counts;
} seen;

static void note(void *arg, const struct s3once_event *event)
{
	struct seen *s = arg;
	s->n++;
	s->type = event->type;
	s->bytes = event->bytes;
	s->bytes_done = event->bytes_done;
	s->has_counts = event->counts != NULL;
	s->has_null = !event->path || !event->key || !event->text || !event->version_id ||
		      !event->etag || !event->checksum || !event->code || !event->request_id;
	snprintf(s->path, sizeof s->path, "%s", event->path ? event->path : "");
	snprintf(s->key, sizeof s->key, "%s", event->key ? event->key : "");
	snprintf(s->text, sizeof s->text, "%s", event->text ? event->text : "");
}

static struct progress_clock clock_of_run;

static void begin(struct report *report, const struct s3once_options *options)
{
	struct s3once_options all = *options;
	all.callback = note;
	all.callback_arg = &seen;
	memset(&seen, 0, sizeof seen);
	progress_init(&clock_of_run);
	progress_set_limit(&clock_of_run, 60000, 1000);
	report_init(report, &all);
	report->progress = &clock_of_run;
}

static void end(struct report *report)
{
	report_clear(report);
	progress_clear(&clock_of_run);
}

/* Each event with its counter, and the one of bytes. `is_done`: the file needs nothing more.
 * `is_over`: the run does nothing more with it. */
#define COUNT(field) offsetof(struct s3once_counts, field)
#define NONE         SIZE_MAX
static const struct {
	enum s3once_event_type type;
	size_t count, bytes;
	bool is_done, is_over, is_quiet;
} events[] = {
	{S3ONCE_EVENT_START, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_NOTE, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_WARNING, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_UPLOADED, COUNT(uploaded), COUNT(bytes_uploaded), true, true, false},
	{S3ONCE_EVENT_ADOPTED, COUNT(adopted), NONE, true, true, false},
	{S3ONCE_EVENT_REFRESHED, COUNT(refreshed), NONE, true, true, false},
	{S3ONCE_EVENT_SKIPPED, COUNT(skipped), NONE, true, true, true},
	{S3ONCE_EVENT_OUTDATED, COUNT(outdated), NONE, true, true, false},
	{S3ONCE_EVENT_PLANNED, COUNT(planned), NONE, true, true, false},
	{S3ONCE_EVENT_LINK, COUNT(links), NONE, true, true, true},
	{S3ONCE_EVENT_WAITING, COUNT(waiting), NONE, true, true, true},
	{S3ONCE_EVENT_OVERSIZED, COUNT(oversized), NONE, false, false, true},
	{S3ONCE_EVENT_UNDERSIZED, COUNT(undersized), NONE, false, false, true},
	{S3ONCE_EVENT_SPECIAL, COUNT(special), NONE, true, true, true},
	{S3ONCE_EVENT_CHANGED, COUNT(changed), NONE, false, true, false},
	{S3ONCE_EVENT_HELD, COUNT(held), NONE, false, true, false},
	{S3ONCE_EVENT_FAILED, COUNT(failed), NONE, false, true, false},
	{S3ONCE_EVENT_LEFT, COUNT(left), COUNT(bytes_left), false, false, false},
	{S3ONCE_EVENT_RETRY, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_REMOVED, COUNT(removed), COUNT(bytes_removed), false, false, false},
	{S3ONCE_EVENT_MOVED, COUNT(moved), COUNT(bytes_removed), false, false, false},
	{S3ONCE_EVENT_KEPT, COUNT(kept), NONE, false, false, false},
	{S3ONCE_EVENT_NOT_REMOVED, COUNT(not_removed), NONE, false, false, false},
	{S3ONCE_EVENT_REMOVABLE, COUNT(removable), NONE, false, false, false},
	{S3ONCE_EVENT_PROVEN, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_UNPROVEN, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_EXCLUDED, COUNT(excluded), NONE, false, false, true},
	{S3ONCE_EVENT_MANIFEST, NONE, NONE, false, false, false},
	{S3ONCE_EVENT_MANIFEST_FAILED, NONE, NONE, false, false, false},
};

/* The two counts that are compared word by word: all before large.in_flight are numbers. */
static void check_counts(
	const struct s3once_counts *got, const struct s3once_counts *want, size_t row)
{
	for (size_t at = 0; at < COUNT(in_flight); at += sizeof(uint64_t)) {
		uint64_t a, b;
		memcpy(&a, (const char *)got + at, sizeof a);
		memcpy(&b, (const char *)want + at, sizeof b);
		if (!CHECK_INT(a, b))
			fprintf(stderr, "\trow %zu, counter at %zu\n", row, at);
	}
	if (!CHECK(got->large.ended == want->large.ended &&
		    got->large.bytes_ended == want->large.bytes_ended))
		fprintf(stderr, "\trow %zu, large\n", row);
}

static void add(struct s3once_counts *counts, size_t field, uint64_t n)
{
	uint64_t value;
	if (field == NONE)
		return;
	memcpy(&value, (char *)counts + field, sizeof value);
	value += n;
	memcpy((char *)counts + field, &value, sizeof value);
}

static void test_each_event(void)
{
	static const uint64_t sizes[] = {0, 7, SMALL, SMALL + 1};
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		for (unsigned k = 0; k < 16; k++) {
			const bool is_waited_for = k & 1, reports_skipped = k & 2;
			const uint64_t bytes = sizes[k / 4];
			struct s3once_counts want = {0};
			struct report report;
			begin(&report, &(struct s3once_options){.report_skipped = reports_skipped});
			const struct report_file file = {.path = "p",
				.key = "k",
				.bytes = bytes,
				.is_waited_for = is_waited_for};
			/* Twice, so that it is added to what is there. */
			for (int n = 0; n < 2; n++) {
				report_file(&report, events[i].type, &file, NULL);
				add(&want, events[i].count, !is_waited_for);
				add(&want, events[i].bytes, bytes);
				want.bytes_settled += events[i].is_done ? bytes : 0;
				if (events[i].is_over && !is_waited_for && bytes > SMALL) {
					want.large.ended++;
					want.large.bytes_ended += bytes;
				}
			}
			const struct s3once_counts got = report_get_counts(&report);
			check_counts(&got, &want, i);
			bool good =
				CHECK_INT(seen.n, reports_skipped || !events[i].is_quiet ? 2 : 0);
			good &= !seen.n || (CHECK_INT(seen.type, events[i].type) &&
						   CHECK_INT(seen.bytes, bytes));
			good &= CHECK(!seen.has_null) && CHECK(!seen.has_counts);
			if (!good)
				fprintf(stderr, "\tevent %d, case %u\n", (int)events[i].type, k);
			end(&report);
		}
}

/* Found files count at once, and large ones separately. */
static void test_found(void)
{
	struct report report;
	begin(&report, &(struct s3once_options){0});
	report_count_found(&report, 3, 0);
	report_count_found(&report, 1, SMALL);
	report_count_found(&report, 1, SMALL + 1);
	report_count_found(&report, 1, SMALL + 2);
	report_count_unproven(&report);
	report_set_level(&report, 17, S3ONCE_LIMITED_BY_CPU);
	const struct s3once_counts got = report_get_counts(&report);
	CHECK_INT(got.found, 6);
	CHECK_INT(got.bytes_found, 3 * SMALL + 3);
	CHECK_INT(got.large.found, 2);
	CHECK_INT(got.large.bytes_found, 2 * SMALL + 3);
	CHECK_INT(got.unproven, 1);
	CHECK_INT(got.concurrency, 17);
	CHECK_INT(got.limited_by, S3ONCE_LIMITED_BY_CPU);
	CHECK(!got.scan_complete && !got.is_stuck);
	CHECK_INT(seen.n, 0);
	end(&report);
}

/* Files that wait, by reason: how many, the oldest with data in it, and its path. Those that are
 * younger than --min-age are not the oldest of all. */
static void test_waiting(void)
{
	const struct {
		enum s3once_wait wait;
		uint64_t bytes;
		int64_t mtime_ns;
		const char *path;
		/* afterwards, of this reason */
		uint64_t files;
		int64_t oldest_ns;
		const char *named;
		int64_t oldest_of_all_ns;
	} rows[] = {
		{S3ONCE_WAIT_YOUNG, 1, 5, "a", 1, 5, "a", INT64_MAX},
		{S3ONCE_WAIT_LIVE, 0, 3, "b", 1, INT64_MAX, "b", INT64_MAX},
		{S3ONCE_WAIT_LIVE, 0, 2, "c", 2, INT64_MAX, "b", INT64_MAX},
		{S3ONCE_WAIT_LIVE, 1, 90, "d", 3, 90, "d", 90},
		{S3ONCE_WAIT_LIVE, 1, 90, "e", 4, 90, "d", 90},
		{S3ONCE_WAIT_LIVE, 1, 91, "f", 5, 90, "d", 90},
		{S3ONCE_WAIT_LIVE, 1, -7, "g", 6, -7, "g", -7},
		{S3ONCE_WAIT_COPY, 1, 10, "h", 1, 10, "h", -7},
		{S3ONCE_WAIT_COPY, 1, -8, "i", 2, -8, "i", -8},
		{S3ONCE_WAIT_YOUNG, 1, -900, "j", 2, -900, "j", -8},
		{S3ONCE_WAIT_FAMILY, 0, -900, "k", 1, INT64_MAX, "k", -8},
	};
	struct report report;
	begin(&report, &(struct s3once_options){.report_skipped = 1});
	CHECK_INT(report_get_counts(&report).oldest_waiting_ns, INT64_MAX);
	for (int i = 0; i < S3ONCE_WAITS; i++) {
		const struct s3once_waiting *none = report_waiting(&report, (enum s3once_wait)i);
		CHECK_INT(none->files, 0);
		CHECK_INT(none->oldest_ns, INT64_MAX);
		CHECK_STRING(none->path, "");
		CHECK((*none->text == 0) == (i == S3ONCE_WAIT_NONE));
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct report_file file = {.path = rows[i].path,
			.bytes = rows[i].bytes,
			.wait = rows[i].wait,
			.mtime_ns = rows[i].mtime_ns};
		report_file(&report, S3ONCE_EVENT_WAITING, &file, NULL);
		const struct s3once_waiting *now = report_waiting(&report, rows[i].wait);
		bool good = CHECK_INT(now->files, rows[i].files);
		good &= CHECK_INT(now->oldest_ns, rows[i].oldest_ns);
		good &= CHECK_STRING(now->path, rows[i].named);
		good &= CHECK_STRING(seen.text, now->text);
		good &= CHECK_INT(
			report_get_counts(&report).oldest_waiting_ns, rows[i].oldest_of_all_ns);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	CHECK_INT(report_get_counts(&report).waiting, sizeof rows / sizeof *rows);
	end(&report);
}

static void test_oldest_unshipped(void)
{
	static const int64_t times[] = {50, 60, 40, 45, 40, -3, 0, INT64_MAX};
	int64_t least = INT64_MAX;
	struct report report;
	begin(&report, &(struct s3once_options){0});
	CHECK_INT(report_get_counts(&report).oldest_unshipped_ns, INT64_MAX);
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		report_note_unshipped(&report, times[i]);
		least = times[i] < least ? times[i] : least;
		CHECK_INT(report_get_counts(&report).oldest_unshipped_ns, least);
	}
	end(&report);
}

/* The reasons of an exit status: each event that makes the run fail has a line. The last error
 * stands for all, except that the one which has ended the run stays. */
static void test_reasons(void)
{
	static const struct {
		enum s3once_event_type type;
		const char *path, *key, *text, *error; /* the error afterwards */
		bool has_line;
	} rows[] = {
		{S3ONCE_EVENT_WARNING, NULL, NULL, "w", "", false},
		{S3ONCE_EVENT_RETRY, "p", "k", "r", "", false},
		{S3ONCE_EVENT_HELD, "p", "k", "h", "", false},
		{S3ONCE_EVENT_KEPT, "p", "k", "k", "", false},
		{S3ONCE_EVENT_UNPROVEN, "p", "k", "k", "", false},
		{S3ONCE_EVENT_FAILED, "p1", "k1", "one", "p1: one", true},
		{S3ONCE_EVENT_CHANGED, "p2", "k2", "two", "p2: two", true},
		{S3ONCE_EVENT_NOT_REMOVED, "p3", "k3", "three", "p3: three", true},
		{S3ONCE_EVENT_NOTE, NULL, NULL, "n", "p3: three", false},
		{S3ONCE_EVENT_MANIFEST_FAILED, NULL, "m", "four", "four", true},
		{S3ONCE_EVENT_FATAL, NULL, NULL, "five", "five", true},
		{S3ONCE_EVENT_FAILED, "p6", "k6", "six", "five", true},
		{S3ONCE_EVENT_FATAL, NULL, NULL, "seven", "five", true},
	};
	for (int is_piped = 0; is_piped < 2; is_piped++) {
		struct report report;
		struct problem error;
		unsigned lines = 0;
		begin(&report, &(struct s3once_options){
				       .read = is_piped ? (s3once_read *)(uintptr_t)abort : NULL});
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
			struct text got = TEXT(REPORT_FAILURES_MAX);
			struct problem why = {0};
			const struct report_file file = {.path = rows[i].path, .key = rows[i].key};
			problem_set(&why, "%s", rows[i].text);
			report_file(&report, rows[i].type, &file, &why);
			CHECK_STRING(seen.text, rows[i].text);
			CHECK(!seen.has_null);
			report_get_errors(&report, &error, &got);
			lines += rows[i].has_line;
			unsigned n = *text_string(&got) ? 1 : 0;
			for (const char *at = text_string(&got); *at; at++)
				n += *at == '\n';
			bool good = CHECK_INT(n, lines);
			/* The input of a pipe has its key as the name. */
			if (!is_piped)
				good &= CHECK_STRING(error.text, rows[i].error);
			else if (*rows[i].error == 'p')
				good &= CHECK_INT(error.text[0], 'k');
			if (!good)
				fprintf(stderr, "\trow %zu: %s\n", i, text_string(&got));
			text_clear(&got);
		}
		end(&report);
	}
}

/* The lines are the first failures. Once one has no room, all later ones are only counted, also
 * one that is short. */
static void test_more_failures_than_room(void)
{
	struct report report;
	struct problem error;
	struct text got = TEXT(REPORT_FAILURES_MAX), want = TEXT(2 * REPORT_FAILURES_MAX);
	char path[700];
	unsigned left = 0;
	begin(&report, &(struct s3once_options){0});
	for (unsigned i = 0; i < 60; i++) {
		const int n = i == 50 ? 1 : 500;
		snprintf(path, sizeof path, "%0*u", n, i % 10);
		report_file(&report, S3ONCE_EVENT_FAILED, &(struct report_file){.path = path},
			PROBLEM("x"));
		/* room is left for a last line of 80 characters */
		if (left || want.len + strlen(path) + 3 + 80 > REPORT_FAILURES_MAX)
			left++;
		else
			text_addf(&want, "%s%s: x", want.len ? "\n" : "", path);
	}
	text_addf(&want, "\nand %u more: the log of the run has them", left);
	report_get_errors(&report, &error, &got);
	CHECK(left > 10);
	CHECK(!got.error);
	CHECK_STRING(text_string(&got), text_string(&want));
	text_clear(&got);
	text_clear(&want);
	end(&report);
}

/* PROGRESS names the largest file that is under way, and how much of it is done. */
static void test_progress_names_the_largest(void)
{
	struct report report;
	struct file_progress small, first, large, larger;
	begin(&report, &(struct s3once_options){0});
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "");
	CHECK(seen.has_counts);
	file_progress_init(&small, &report, "small", SMALL);
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "");
	file_progress_init(&first, &report, "first", SMALL + 8);
	file_progress_init(&larger, &report, "larger", SMALL + 10);
	file_progress_init(&large, &report, "large", SMALL + 9);
	CHECK_INT(report_get_counts(&report).large.in_flight, 3);
	file_progress_add_stored(&larger, SMALL + 4);
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "larger");
	CHECK_INT(seen.bytes, SMALL + 10);
	CHECK_INT(seen.bytes_done, SMALL + 4);
	file_progress_add_stored(&larger, 100); /* it has grown */
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_INT(seen.bytes_done, SMALL + 10);
	report_counts(&report, S3ONCE_EVENT_SUMMARY);
	CHECK_STRING(seen.path, "");
	file_progress_clear(&larger);
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "large");
	CHECK_INT(seen.bytes_done, 0);
	file_progress_clear(&large);
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "first");
	file_progress_clear(&first);
	file_progress_clear(&small);
	report_counts(&report, S3ONCE_EVENT_PROGRESS);
	CHECK_STRING(seen.path, "");
	CHECK_INT(report_get_counts(&report).large.in_flight, 0);
	end(&report);
}

/* The bytes of one body after random pieces of it have left and some of its attempts were in vain.
 * The model counts afresh from the attempts. */
static void test_bytes_that_leave(void)
{
	unsigned random = 1;
	for (unsigned round = 0; round < 200; round++) {
		const bool is_large = round & 1, is_packed = round & 2;
		const uint64_t size = is_large ? SMALL + 1000 : 1000;
		struct report report;
		struct file_progress progress;
		begin(&report, &(struct s3once_options){0});
		report_count_found(&report, 1, size);
		file_progress_init(&progress, &report, "f", size);
		struct transfer transfer = {.progress = &progress,
			.body_bytes = is_packed ? size / 4 : size,
			.content_bytes = size,
			.is_large = is_large};
		uint64_t left = 0, sent = 0, most = 0;
		unsigned cuts = 0;
		uint64_t steps = atomic_load(&clock_of_run.steps);
		for (unsigned i = 0; i < 20; i++) {
			random = random * 1103515245U + 12345U;
			uint64_t more = (random >> 8) % (transfer.body_bytes / 3);
			if (random >> 30 == 0) {
				cuts += is_large && left && left < transfer.body_bytes;
				transfer_undo(&transfer);
				left = 0;
			} else {
				if (left + more > transfer.body_bytes)
					more = transfer.body_bytes - left;
				transfer_moved(&transfer, more);
				left += more;
				sent += more;
			}
			const uint64_t content = left == transfer.body_bytes ? size
						 : is_packed
							 ? (uint64_t)((double)size * (double)left /
								      (double)transfer.body_bytes)
							 : left;
			const struct s3once_counts now = report_get_counts(&report);
			bool good = CHECK_INT(now.bytes_sent, sent);
			good &= CHECK_INT(now.bytes_moved, content);
			good &= CHECK_INT(now.bytes_under_way, content);
			good &= CHECK_INT(now.large.bytes_moved, is_large ? content : 0);
			good &= CHECK_INT(atomic_load(&progress.bytes), content);
			good &= CHECK_INT(atomic_load(&report.large_cuts), cuts);
			good &= CHECK_INT(atomic_load(&report.large_moved), is_large ? sent : 0);
			/* Only more than ever before is progress. */
			const uint64_t now_steps = atomic_load(&clock_of_run.steps);
			good &= CHECK(now_steps - steps == (content > most));
			most = content > most ? content : most;
			steps = now_steps;
			if (!good) {
				fprintf(stderr, "\tround %u, %u\n", round, i);
				break;
			}
		}
		file_progress_clear(&progress);
		end(&report);
	}
	/* A body of no file counts nothing. */
	struct transfer none = {.body_bytes = 10};
	transfer_moved(&none, 5);
	transfer_undo(&none);
	CHECK_INT(none.sent_bytes, 0);
}

/* A file that was just settled is still under way for a moment, and does not count twice. */
static void test_under_way_is_not_settled(void)
{
	struct report report;
	struct file_progress progress;
	begin(&report, &(struct s3once_options){0});
	report_count_found(&report, 2, 100);
	file_progress_init(&progress, &report, "f", 60);
	file_progress_add_stored(&progress, 60);
	CHECK_INT(report_get_counts(&report).bytes_under_way, 60);
	CHECK_INT(report_get_counts(&report).bytes_moved, 0); /* S3 had it */
	CHECK_INT(atomic_load(&report.large_moved), 60);
	CHECK_INT(report_get_counts(&report).bytes_resumed, 60);
	report_file(&report, S3ONCE_EVENT_UPLOADED, &(struct report_file){.bytes = 60}, NULL);
	CHECK_INT(report_get_counts(&report).bytes_under_way, 40);
	atomic_store(&report.kept, 5);
	atomic_store(&report.claims_refused, 6);
	atomic_store(&report.in_flight, 7);
	atomic_store(&report.is_stuck, true);
	atomic_store(&report.scan_complete, true);
	atomic_store(&report.repeats_s, 8);
	atomic_store(&report.repeats_age_s, 9);
	const struct s3once_counts now = report_get_counts(&report);
	CHECK_INT(now.bytes_kept, 5);
	CHECK_INT(now.claims_refused, 6);
	CHECK_INT(now.in_flight, 7);
	CHECK(now.is_stuck && now.scan_complete);
	CHECK_INT(now.repeats_s, 8);
	CHECK_INT(now.repeats_age_s, 9);
	file_progress_clear(&progress);
	end(&report);
}

static struct s3once_event passed;
static void keep_event(void *arg, const struct s3once_event *event)
{
	(void)arg;
	passed = *event;
}

/* All that is known of a file is passed on, and so is the answer of the service. */
static void test_events_passed_on(void)
{
	struct report report;
	struct problem problem = {0};
	const struct report_file file = {.path = "p",
		.key = "k",
		.bytes = 3,
		.version_id = "v",
		.etag = "e",
		.checksum = "c",
		.bytes_done = 2,
		.wait = S3ONCE_WAIT_COPY,
		.mtime_ns = 9};
	problem_set(&problem, "text");
	snprintf(problem.code, sizeof problem.code, "Code");
	snprintf(problem.request_id, sizeof problem.request_id, "id");
	begin(&report, &(struct s3once_options){0});
	report.callback = keep_event;
	report_file(&report, S3ONCE_EVENT_REMOVED, &file, &problem);
	CHECK(passed.path == file.path && passed.key == file.key && passed.etag == file.etag);
	CHECK(passed.version_id == file.version_id && passed.checksum == file.checksum);
	CHECK(passed.text == problem.text && passed.code == problem.code);
	CHECK(passed.request_id == problem.request_id);
	CHECK(passed.bytes == 3 && passed.bytes_done == 2 && passed.mtime_ns == 9);
	CHECK_INT(passed.wait, S3ONCE_WAIT_COPY);
	CHECK_INT(report_waiting(&report, S3ONCE_WAIT_COPY)->files, 0); /* it does not wait */
	report.callback = NULL;
	report_run(&report, S3ONCE_EVENT_NOTE, &problem);
	end(&report);
}

/* The time of the run is that since its beginning. How much is left is not known while it only
 * waits for other uploaders. */
static void test_time_left(void)
{
	for (unsigned k = 0; k < 4; k++) {
		const bool has_waited = k & 1, is_at_work = k & 2;
		struct report report;
		begin(&report, &(struct s3once_options){0});
		CHECK(report_get_counts(&report).seconds < 60);
		report.start_ns -= 50 * UINT64_C(1000000000);
		atomic_store(&report.scan_complete, true);
		atomic_store(&report.sent, 5000000);
		atomic_store(&report.in_flight, is_at_work);
		report_count_found(&report, 20, 0);
		for (int i = 0; i < 10; i++)
			report_file(&report, S3ONCE_EVENT_UPLOADED, &(struct report_file){0}, NULL);
		if (has_waited)
			report_file(&report, S3ONCE_EVENT_HELD,
				&(struct report_file){.is_waited_for = true}, NULL);
		clock_of_run.locked.still_ns = UINT64_C(2000000000);
		const struct s3once_counts now = report_get_counts(&report);
		bool good = CHECK(now.seconds >= 50 && now.seconds < 110);
		good &= CHECK(now.still_seconds >= 2 && now.still_seconds < 60);
		good &= CHECK(now.bytes_per_second > 1);
		good &= CHECK_INT(now.seconds_left < 0, has_waited && !is_at_work);
		if (!good)
			fprintf(stderr, "\tcase %u: %f s left\n", k, now.seconds_left);
		end(&report);
	}
}

int main(void)
{
	test_events_passed_on();
	test_time_left();
	test_each_event();
	test_found();
	test_waiting();
	test_oldest_unshipped();
	test_reasons();
	test_more_failures_than_room();
	test_progress_names_the_largest();
	test_bytes_that_leave();
	test_under_way_is_not_settled();
	return check_result();
}
