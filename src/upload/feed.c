/* The thread of the scan. It counts and reports every file that the scan finds, reads the marks of
 * a thousand files at a time, drops the files that are done, and hands the rest to the queue in
 * blocks. It sends nothing to S3 except HeadBucket, and the requests of bucket_check() and of the
 * listing. */
#include "upload/feed.h"
#include "base/clock.h"
#include "marks/known.h"
#include "scan/mounts.h"
#include "upload/bucket/bucket_check.h"
#include "upload/bucket/listing.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most files whose marks are read together. It is a multiple of BLOCK_FILES, so that every
 * chunk begins a block. */
#define CHUNK (20 * BLOCK_FILES)

/* The workers begin only after the scan has gathered files for this long, so that uploaders that
 * begin together do not all begin with the same file. */
#define FLOW_AFTER_NS (200 * NS_PER_MS)

struct feed {
	struct run *run;
	struct store_conn *conn;
	struct known *known;
	struct listing *listing; /* NULL: not used yet */
	struct candidate *chunk[CHUNK];
	struct packed_mark *marks[CHUNK]; /* owned; NULL where there is none */
	size_t n;
	uint64_t begun_ns;
	bool reported_future;   /* a file that was modified in the future was reported */
	bool reported_far_time; /* likewise, one whose time does not fit as nanoseconds */
	bool bucket_is_checked;
	uint64_t own_files; /* files of s3once itself that the scan found and skipped */
	char *own_path;     /* the path of the first one; NULL also if memory has run out */
	bool *has_found;    /* [n_sources]: whether the scan found anything in it */
};

struct candidate *feed_new_candidate(const struct scan_entry *entry)
{
	/* Five strings follow the struct, in one allocation: key, path, relative, content, and the
	 * object's key, which is the key with room for a suffix after it. The first four end with a
	 * NUL each. */
	struct candidate *file =
		malloc(sizeof *file + 2 * strlen(entry->key) + strlen(entry->path) +
			strlen(entry->relative) + strlen(entry->content_id) + 4 + SUFFIX_MAX + 1);
	if (!file)
		return NULL;
	*file = (struct candidate){.source = entry->source,
		.size = entry->size,
		.mtime_ns = entry->mtime_ns,
		.dev = entry->dev,
		.ino = entry->ino,
		.is_rotated = entry->is_rotated,
		.may_grow = entry->may_grow,
		.is_piece = entry->is_piece,
		.is_new = entry->is_new,
		.offset = entry->offset,
		.was_compressed = *entry->suffix != 0};
	file->key = (char *)(file + 1);
	file->path = stpcpy(file->key, entry->key) + 1;
	file->relative = stpcpy(file->path, entry->path) + 1;
	file->content_id = stpcpy(file->relative, entry->relative) + 1;
	file->object_key = stpcpy(file->content_id, entry->content_id) + 1;
	file->suffix = stpcpy(file->object_key, entry->key);
	strcpy(file->suffix, entry->suffix);
	return file;
}

void feed_drop_candidate(struct run *run, struct candidate *file)
{
	report_note_unshipped(&run->report, file->mtime_ns);
	run_report_unfinished(run, file);
	free(file);
}

static int compare_ranks(const void *a, const void *b)
{
	const uint64_t x = candidate_rank(*(const struct candidate *const *)a);
	const uint64_t y = candidate_rank(*(const struct candidate *const *)b);
	return x < y ? -1 : x > y;
}

/* Looks in the bucket's listing for the first n files of the chunk that have no mark, if the marks
 * know none of its files, or lack a dozen: then another program may have uploaded them. A few new
 * files among known ones are not looked up, nor is output that this run makes, nor files reported
 * by inotify (options.folders). */
static void look_in_listing(struct feed *feed, size_t n, bool some_have_marks)
{
	struct candidate *unmarked[CHUNK];
	size_t n_unmarked = 0;
	if (feed->run->options.folders)
		return;
	for (size_t i = 0; i < n; i++) {
		struct candidate *file = feed->chunk[i];
		if (file->mark_state == MARK_ABSENT && !file->is_piped && !file->is_new)
			unmarked[n_unmarked++] = file;
	}
	if (!n_unmarked || (some_have_marks && n_unmarked < LISTING_WORTH))
		return;
	/* HeadBucket, which each run sends before it claims a file, reports wrong credentials or a
	 * wrong address, whereas a refused listing would only be skipped. */
	run_ensure_bucket_exists(feed->run);
	if (run_is_stopping(feed->run))
		return;
	if (!feed->listing)
		feed->listing = listing_new(feed->run);
	if (feed->listing)
		listing_look(feed->listing, unmarked, n_unmarked);
}

/* Adds the n files that are left of the chunk to the queue, in blocks. Each BLOCK_FILES files of
 * the scan are a block, whichever of them are left, and however the scan was cut into chunks. So
 * the blocks of all uploaders over one tree are the same, and only one goes on with each. blocks[i]
 * is the number of the block of file i. With options.final, the files are sorted by their rank, and
 * each BLOCK_FILES that are left are a block. Returns how many files the queue has taken. */
static size_t add_blocks(struct feed *feed, const unsigned *blocks, size_t n)
{
	const bool is_sorted = feed->run->options.final;
	for (size_t begin = 0, end; begin < n; begin = end) {
		end = begin + 1;
		while (end < n && end - begin < BLOCK_FILES &&
			(is_sorted || blocks[end] == blocks[begin]))
			end++;
		if (!queue_add(feed->run->queue, feed->chunk + begin, end - begin))
			return begin;
	}
	return n;
}

/* Checks once that the bucket is the one of the marks. Returns false if that fails, which ends the
 * run, unless it is over anyway. */
static bool check_bucket_once(struct feed *feed)
{
	struct problem problem = {0};
	if (feed->bucket_is_checked)
		return true;
	feed->bucket_is_checked = bucket_check(feed->run, feed->conn, &problem);
	if (!feed->bucket_is_checked && !run_is_stopping(feed->run))
		run_fail(feed->run, &problem);
	return feed->bucket_is_checked;
}

enum chunk { CHUNK_WITH_SUCCESSOR, LAST_CHUNK };

/* Reads the marks of the first n files of the chunk into feed->marks. The bucket is checked before
 * the first mark is read, and only if there are files. Returns false if either fails. That ends the
 * run, unless it is over anyway. */
static bool read_marks(struct feed *feed, size_t n, enum chunk chunk)
{
	struct run *run = feed->run;
	const char *keys[CHUNK];
	struct problem problem = {0};
	if (n && !check_bucket_once(feed))
		return false;
	for (size_t i = 0; i < n; i++)
		keys[i] = feed->chunk[i]->key;
	const bool is_last = chunk == LAST_CHUNK;
	const bool is_read =
		known_read(feed->known, keys, n, is_last, feed->marks, &problem) == OUTCOME_OK;
	if (!is_read && !run_is_over(run))
		run_fail(run, &problem);
	return is_read;
}

/* Copies the key of the object that --bucket-id-object names, or that an earlier run has made, or
 * "". */
static void copy_id_object(struct run *run, char ret[static KEY_BYTES_MAX + 1])
{
	const char *option = run->options.bucket_id_object;
	uv_mutex_lock(&run->locked.mutex);
	snprintf(ret, KEY_BYTES_MAX + 1, "%s", option ? option : run->locked.bucket.id_key);
	uv_mutex_unlock(&run->locked.mutex);
}

/* Reports that the file has the key of the id object, and frees it. */
static void fail_id_object(struct run *run, struct candidate *file)
{
	const struct report_file about = {
		.path = file->path, .key = file->key, .bytes = file->size};
	report_file(&run->report, S3ONCE_EVENT_FAILED, &about,
		PROBLEM("has the key of --bucket-id-object: exclude it, or name another key there"));
	report_note_unshipped(&run->report, file->mtime_ns);
	free(file);
}

/* The files of a chunk that are not done. */
struct rest {
	size_t n;               /* they are the first n of the chunk */
	unsigned blocks[CHUNK]; /* for each of them, the number of its block in the chunk */
	bool some_have_marks;   /* the marks knew some files of the chunk, done or not */
};

/* Drops those of the first n files of the chunk that are done, and the one with the key of the id
 * object, and moves the others to the front. Frees their marks. If the marks were not read, every
 * file counts as not done. Returns false if they were not, or if the run ends: then the other files
 * count as not done, too. */
static bool drop_done(struct feed *feed, size_t n, bool marks_were_read, struct rest *ret)
{
	struct run *run = feed->run;
	bool can_go_on = marks_were_read;
	char id_object[KEY_BYTES_MAX + 1];
	copy_id_object(run, id_object);
	ret->n = 0;
	ret->some_have_marks = false;
	for (size_t i = 0; i < n; i++) {
		struct candidate *file = feed->chunk[i];
		const struct mark mark = mark_unpack(feed->marks[i]);
		ret->some_have_marks |= mark.state != MARK_ABSENT;
		candidate_note_mark(file, &mark);
		const bool is_id_object = strcmp(file->key, id_object) == 0;
		const bool is_done =
			!is_id_object && can_go_on && run_skips_by_mark(run, file, &mark);
		if (is_done && file->is_piped)
			report_note_repeat(&run->report, mark.at_s, store_time_s(run->store));
		/* After true, the file is freed. */
		const bool is_skipped =
			is_done && bucket_skip_done(run, feed->conn, file, &mark.done);
		can_go_on &= is_skipped || !is_done;
		if (is_id_object) {
			fail_id_object(run, file);
		} else if (!is_skipped) {
			ret->blocks[ret->n] = (unsigned)(i / BLOCK_FILES);
			feed->chunk[ret->n++] = file;
		}
		free(feed->marks[i]);
		feed->marks[i] = NULL;
	}
	return can_go_on;
}

/* Reads the marks of the whole blocks in the chunk, hands the files that are not done to the queue,
 * and removes both from the chunk. Of the last chunk, the last block is whole, too. Returns false
 * if the run is over or the queue is closed. Then the files that the queue has not taken are
 * dropped. */
static bool queue_chunk(struct feed *feed, enum chunk chunk)
{
	struct run *run = feed->run;
	const size_t n_whole = chunk == LAST_CHUNK ? feed->n : feed->n - feed->n % BLOCK_FILES;
	struct rest rest;
	size_t taken = 0;
	const bool marks_were_read = read_marks(feed, n_whole, chunk);
	const bool can_go_on = drop_done(feed, n_whole, marks_were_read, &rest);
	if (can_go_on) {
		look_in_listing(feed, rest.n, rest.some_have_marks);
		if (run->options.final)
			qsort(feed->chunk, rest.n, sizeof(struct candidate *), compare_ranks);
		taken = add_blocks(feed, rest.blocks, rest.n);
	}
	for (size_t i = taken; i < rest.n; i++)
		feed_drop_candidate(run, feed->chunk[i]);
	feed->n -= n_whole;
	memmove(feed->chunk, feed->chunk + n_whole, feed->n * sizeof(struct candidate *));
	return can_go_on && taken == rest.n;
}

/* Counts and reports an entry that is not uploaded: a problem, a link, a file that waits, a special
 * one, or one that the filter leaves out. The last does not count as found, since a folder that is
 * left out whole is one entry. Only a file that waits has bytes that count as found. */
static void report_entry(struct report *report, const struct scan_entry *entry)
{
	static const enum s3once_event_type types[] = {
		[SCAN_PROBLEM] = S3ONCE_EVENT_FAILED,
		[SCAN_LINK] = S3ONCE_EVENT_LINK,
		[SCAN_WAITS] = S3ONCE_EVENT_WAITING,
		[SCAN_SPECIAL] = S3ONCE_EVENT_SPECIAL,
		[SCAN_EXCLUDED] = S3ONCE_EVENT_EXCLUDED,
	};
	const bool waits = entry->kind == SCAN_WAITS;
	const uint64_t bytes = waits ? entry->size : 0;
	const struct report_file about = {.path = entry->path,
		.key = entry->key,
		.bytes = bytes,
		.wait = entry->wait,
		.mtime_ns = waits ? entry->mtime_ns : 0};
	const bool has_problem = entry->kind == SCAN_PROBLEM || entry->kind == SCAN_SPECIAL;
	if (entry->kind != SCAN_EXCLUDED)
		report_count_found(report, 1, bytes);
	report_file(report, types[entry->kind], &about, has_problem ? &entry->problem : NULL);
	/* A problem has a time only if it is about a file. */
	if (waits || (entry->kind == SCAN_PROBLEM && entry->mtime_ns))
		report_note_unshipped(report, entry->mtime_ns);
}

/* Reports a SOURCE directory without files: by a warning, since it may rightly be empty, or as a
 * file that failed if its file system is not mounted. */
static void report_empty_source(struct run *run, size_t source, bool has_left_out)
{
	const char *path = scan_source_path(run->files.scan, source);
	const struct report_file about = {.path = run->options.sources[source]};
	const size_t n = mount_missing_above("/etc/fstab", "/proc/self/mounts", path);
	if (n) {
		report_count_found(&run->report, 1, 0);
		report_file(&run->report, S3ONCE_EVENT_FAILED, &about,
			PROBLEM("there are no files in it, and %s of /etc/fstab is not mounted: "
				"mount it",
				quote_bytes(path, n).text));
	} else {
		report_run(&run->report, S3ONCE_EVENT_WARNING,
			PROBLEM("there are no files in %s%s", quote(about.path).text,
				has_left_out ? " but those that --exclude and --include leave out"
					     : ""));
	}
}

/* Reports patterns that match nothing. For an --exclude this is only a note, since what it excludes
 * need not be there each time. */
static void warn_unmatched_rules(struct run *run)
{
	static const char *const names[] = {"exclude", "include", "exclude-from"};
	const struct s3once_options *o = &run->options;
	for (size_t i = 0; i < o->n_rules; i++) {
		const enum s3once_rule_kind kind = o->rules[i].kind;
		if (filter_has_matched(run->files.filter, i))
			continue;
		report_run(&run->report,
			kind == S3ONCE_RULE_INCLUDE ? S3ONCE_EVENT_WARNING : S3ONCE_EVENT_NOTE,
			PROBLEM("--%s %s matches nothing: check the pattern%s", names[kind],
				quote(o->rules[i].pattern).text,
				kind == S3ONCE_RULE_EXCLUDE_FROM ? "s"
				: strpbrk(o->rules[i].pattern, " ,")
					? ", and give each pattern an option of its own"
					: ""));
	}
}

/* Reports directories without files and, unless there are no files at all, patterns that match
 * nothing. With options.files_from, a directory may well have no file of the list, and an empty
 * list is worth a note. has_found has an element for each source. */
static void warn_unmatched(struct run *run, const bool *has_found)
{
	const struct s3once_options *o = &run->options;
	const bool has_left_out = run->files.filter && filter_has_left_out(run->files.filter);
	bool has_files = has_left_out;
	for (size_t i = 0; i < o->n_sources; i++)
		has_files |= has_found[i];
	if (run->files.filter && has_files)
		warn_unmatched_rules(run);
	if (o->files_from && !has_files)
		report_run(&run->report, S3ONCE_EVENT_NOTE,
			PROBLEM("--files-from %s names no files", quote(o->files_from).text));
	for (size_t i = 0; i < o->n_sources && !o->files_from; i++)
		if (!has_found[i] && scan_source_is_directory(run->files.scan, i))
			report_empty_source(run, i, has_left_out);
}

/* Warns once a run of times that are in the future, and of times that are too far away for a mark,
 * since a wrong clock affects many files. */
static void warn_of_times(struct feed *feed, const struct scan_entry *entry)
{
	struct report *report = &feed->run->report;
	char when[32];
	if (entry->is_from_future && !feed->reported_future) {
		feed->reported_future = true;
		clock_format_iso(entry->mtime_ns / (int64_t)NS_PER_S, when);
		report_run(report, S3ONCE_EVENT_WARNING,
			PROBLEM("%s was last modified in the future (%s); the age of such files is "
				"counted from the last change of their inode (ctime)",
				quote(entry->path).text, when));
	}
	/* The scan cuts times that do not fit as nanoseconds to these. */
	const bool has_far_time = entry->kind == SCAN_FILE &&
				  (entry->mtime_ns == INT64_MAX || entry->mtime_ns == INT64_MIN);
	if (has_far_time && !feed->reported_far_time) {
		feed->reported_far_time = true;
		report_run(report, S3ONCE_EVENT_WARNING,
			PROBLEM("%s was last modified %s; all such times count as one, so that a "
				"change from one to another is not noticed",
				quote(entry->path).text,
				entry->mtime_ns > 0 ? "after the year 2262"
						    : "before the year 1677"));
	}
}

/* Reports that files of s3once itself were skipped, by one line for all of them. */
static void report_own_files(struct feed *feed)
{
	const bool is_one = feed->own_files == 1;
	if (feed->own_files)
		report_run(&feed->run->report, S3ONCE_EVENT_NOTE,
			PROBLEM("%llu file%s of s3once itself %s left out (marks, state, log)%s %s",
				(unsigned long long)feed->own_files, is_one ? "" : "s",
				is_one ? "is" : "are", is_one ? ":" : ", such as",
				quote(feed->own_path ? feed->own_path : "").text));
}

/* Adds an entry of the scan to the chunk if it is a file that may have to be uploaded, and reports
 * any other entry. Returns 0, or -ENOMEM, which was reported. */
static int take_entry(struct feed *feed, const struct scan_entry *entry)
{
	struct run *run = feed->run;
	struct report *report = &run->report;
	enum s3once_event_type event;
	feed->has_found[entry->source] |= entry->kind != SCAN_EXCLUDED;
	warn_of_times(feed, entry);
	if (entry->kind == SCAN_NOTICE) {
		report_run(report, S3ONCE_EVENT_WARNING, &entry->problem);
		return 0;
	}
	if (entry->is_own && !feed->own_files++)
		feed->own_path = strdup(entry->path);
	if (entry->kind != SCAN_FILE) {
		report_entry(report, entry);
		return 0;
	}
	if (run_excludes_size(run, entry->size, &event)) {
		const struct report_file about = {
			.path = entry->path, .key = entry->key, .bytes = entry->size};
		report_count_found(
			report, 1, 0); /* its bytes do not count (bytes_found in push.h) */
		report_file(report, event, &about, NULL);
		return 0;
	}
	struct candidate *file = feed_new_candidate(entry);
	if (!file) {
		run_fail(run, PROBLEM("out of memory while reading the tree"));
		return -ENOMEM;
	}
	file->is_piped = run->options.read != NULL;
	report_count_found(report, 1, entry->size);
	feed->chunk[feed->n++] = file;
	return 0;
}

/* Reads the scan until the chunk is full. If the file system is slow, a whole block is enough, so
 * that there are blocks in the queue when the workers begin. Returns 1 after both, 0 if the scan
 * has ended, or -errno if it cannot continue, which was reported, or if the run has ended it
 * (-ECANCELED). */
static int fill_chunk(struct feed *feed)
{
	struct run *run = feed->run;
	struct scan_entry entry;
	struct problem problem = {0};
	const uint64_t late_ns = clock_boot_ns() + FLOW_AFTER_NS / 2;
	size_t enough = CHUNK;
	int got = 1;
	liveness_begin_task(&run->scanning);
	while (got > 0 && feed->n < enough) {
		got = run_ends_scan(run) ? -ECANCELED
					 : scan_next(run->files.scan, &entry, &problem);
		if (got < 0 && got != -ECANCELED)
			run_fail(run, &problem);
		if (got > 0 && take_entry(feed, &entry) < 0)
			got = -ENOMEM;
		/* run_ends_scan() has noted the present time there, which saves reading the clock
		 * for each file. */
		if (atomic_load(&run->scanning.seen_ns) >= late_ns)
			enough = BLOCK_FILES;
	}
	liveness_end_task(&run->scanning);
	return got;
}

/* Feeds the queue from the scan. Returns whether the scan was read to its end.
 *
 * If a limit has closed the queue, queue_chunk() returns false. With options.final, the scan
 * continues all the same until run_ends_scan(), so that queue_chunk() reports the files that are
 * left. */
static bool feed_all(struct feed *feed)
{
	for (;;) {
		const int got = fill_chunk(feed);
		if (got < 0)
			return false;
		const bool is_last = got == 0;
		const bool was_queued =
			queue_chunk(feed, is_last ? LAST_CHUNK : CHUNK_WITH_SUCCESSOR);
		if (!was_queued && run_ends_scan(feed->run))
			return false;
		if (is_last)
			return true;
		/* The workers begin once FLOW_AFTER_NS have passed. The queue lets them begin
		 * sooner if it is full. */
		if (clock_boot_ns() - feed->begun_ns >= FLOW_AFTER_NS)
			queue_enter_phase(feed->run->queue, QUEUE_FLOWS);
	}
}

/* Opens what the feed needs. Returns false if there is no memory or descriptor for it; feed_run()
 * frees what was opened in any case. */
static bool prepare_feed(struct feed *feed, struct run *run)
{
	struct call_limits limits = run_limits(run);
	limits.is_progress = true; /* reading a page of marks is progress */
	feed->run = run;
	feed->has_found = calloc(run->options.n_sources, sizeof(bool));
	if (!feed->has_found || store_conn_new(run->store, &feed->conn))
		return false;
	return !known_new(feed->conn, &run->space, &limits, 0, &feed->known);
}

void feed_run(struct run *run)
{
	struct feed *feed = calloc(1, sizeof *feed);
	bool is_whole = false; /* the scan was read to its end */
	if (feed && prepare_feed(feed, run)) {
		feed->begun_ns = clock_boot_ns();
		is_whole = feed_all(feed);
	} else {
		run_fail(run, PROBLEM(PROBLEM_NO_DESCRIPTORS));
	}
	if (is_whole)
		run_ensure_bucket_exists(run);
	if (is_whole && !run->options.folders) { /* with folders, only these were read */
		warn_unmatched(run, feed->has_found);
		report_own_files(feed);
	}
	if (feed) {
		free(feed->own_path);
		free(feed->has_found);
		/* If the scan was not read to its end, the files of the last chunk are left. */
		for (size_t i = 0; i < feed->n; i++)
			feed_drop_candidate(run, feed->chunk[i]);
		listing_free(feed->listing);
		known_free(feed->known);
		store_conn_free(feed->conn);
	}
	free(feed);
	atomic_store(&run->report.scan_complete, is_whole);
	queue_enter_phase(run->queue, QUEUE_COMPLETE);
}
