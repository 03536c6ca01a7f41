/* `s3once proven`: whether files are done, without uploading anything. It finds the given files and
 * the files of the given folders as a push would, compares each with its mark and its object, and
 * reports an event for each. It writes nothing, neither to S3 nor to the marks. */
#include "base/pool.h"
#include "scan/names.h"
#include "scan/open.h"
#include "upload/bucket/bucket_check.h"
#include "upload/feed.h"
#include "upload/file/done_now.h"
#include "upload/file/worker.h"
#include "upload/push_struct.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* No object has the whole content of a log that --live uploads in pieces. */
#define IN_PIECES                                                                                  \
	"cannot be checked, since --live uploads logs in pieces; s3once verify checks the objects"

/* number of threads besides the main one, so that eight files are compared at once */
#define HELPERS 7

/* Reports that it cannot be determined whether the file is done. Returns PROOF_UNKNOWN. */
static enum proof report_unknown(
	struct run *run, const char *path, const char *key, const struct problem *problem)
{
	const struct report_file about = {.path = path, .key = key};
	report_file(&run->report, S3ONCE_EVENT_FAILED, &about, problem);
	return PROOF_UNKNOWN;
}

/* Whether S3 may have a file in pieces. Then the file may be done although there is no object of
 * the whole. */
enum uploaded_as { UPLOADED_WHOLE, UPLOADED_PERHAPS_IN_PIECES };

/* Finds out and reports whether the file is done. Opens and reads the file as an upload would.
 * Takes the candidate. Several workers may call it at once. */
static enum proof prove_candidate(
	struct worker *worker, struct candidate *c, enum uploaded_as uploaded_as)
{
	struct run *run = worker->run;
	struct file *file = file_new(run, c);
	struct done_object object;
	struct problem problem = {0};
	const int fd = file ? scan_open_file(run->files.scan, c->source, c->relative, &file->state)
			    : -ENOMEM;
	if (fd < 0) {
		open_explain(fd, "read", &problem);
		report_unknown(run, c->path, c->object_key, &problem);
		if (!file) /* otherwise the file owns the candidate */
			free(c);
		file_free(file);
		return PROOF_UNKNOWN;
	}
	file->fd = fd;
	file->mtime_ns = file->state.mtime_ns;
	buffers_lend(&run->bodies.buffers, &worker->reader, file->state.size);
	enum proof done = prove_done_now(worker, file, CONTENT_UNREAD, &object, &problem);
	buffers_take_back(&run->bodies.buffers, &worker->reader);
	if (done == PROOF_YES && body_check_unchanged(fd, &file->state) < 0) {
		problem_set(&problem, "it changed while it was read");
		done = PROOF_UNKNOWN;
	} else if (done == PROOF_NO && uploaded_as == UPLOADED_PERHAPS_IN_PIECES) {
		problem_set(&problem, IN_PIECES);
		done = PROOF_UNKNOWN;
	}
	const enum s3once_event_type event = done == PROOF_YES  ? S3ONCE_EVENT_PROVEN
					     : done == PROOF_NO ? S3ONCE_EVENT_UNPROVEN
								: S3ONCE_EVENT_FAILED;
	report_done_object(run, file, event, done == PROOF_YES ? &object : NULL, &problem);
	file_free(file);
	return done;
}

/* Sets the reason why an entry cannot be compared with an object. */
static void explain_unprovable(const struct scan_entry *entry, struct problem *ret)
{
	if (entry->kind == SCAN_FILE || entry->kind == SCAN_WAITS)
		problem_set(ret, "has no key: larger than --max-size, or younger than --min-age");
	else if (entry->kind == SCAN_PROBLEM)
		*ret = entry->problem;
	else if (entry->kind == SCAN_EXCLUDED)
		problem_set(ret, "was not looked for, since --exclude or --include leaves it out");
	else
		problem_set(ret, "is not a regular file");
}

/* Finds out and reports whether the file of this path is done. If scan_make_entry() fails, it has
 * set the problem that is reported. */
static enum proof prove_path(struct worker *worker, const char *path)
{
	struct run *run = worker->run;
	struct scan_entry entry;
	struct problem problem = {0};
	struct stat st;
	const int found = scan_make_entry(run->files.scan, path, &entry, &problem);
	if (found < 0)
		return report_unknown(run, path, "", &problem);
	if (found == 0)
		return report_unknown(run, path, "",
			PROBLEM(lstat(path, &st) && errno == ENOENT
					? "does not exist"
					: "lies in none of the SOURCEs"));
	const bool is_file = entry.kind == SCAN_FILE || entry.kind == SCAN_WAITS;
	if (!is_file || !*entry.key) {
		explain_unprovable(&entry, &problem);
		return report_unknown(run, path, "", &problem);
	}
	struct candidate *candidate = feed_new_candidate(&entry);
	if (!candidate)
		return report_unknown(run, path, "", PROBLEM("out of memory"));
	const bool may_be_in_pieces = run->options.live && entry.is_rotated;
	return prove_candidate(
		worker, candidate, may_be_in_pieces ? UPLOADED_PERHAPS_IN_PIECES : UPLOADED_WHOLE);
}

/* The requested folders, and the shared state of the threads that prove their files. */
struct folders {
	struct run *run;
	struct folder {
		char *real; /* its path without links, with a slash at the end; owned */
		const char *given;
		bool has_found;
	} * list;
	size_t n;
	uv_mutex_t mutex;    /* protects the scan, has_found, and what follows */
	struct names pieces; /* for each piece of a log, the path of the log */
	bool scan_has_ended; /* or has returned an error */
	enum s3once_exit exit;
};

/* Sets *exit to the status for this file, unless it is worse already. UNKNOWN is worse than not
 * done. */
static void worsen_exit(enum s3once_exit *exit, enum proof done)
{
	if (done == PROOF_UNKNOWN)
		*exit = S3ONCE_EXIT_SETUP;
	else if (done == PROOF_NO && *exit == S3ONCE_EXIT_OK)
		*exit = S3ONCE_EXIT_FILES;
}

/* Notes in each folder that the entry lies in that something was found there, unless the entry is a
 * link, a special file or a notice. Returns whether it lies in any of them. */
static bool note_in_folders(struct folders *folders, const struct scan_entry *entry)
{
	struct text path = TEXT(32U << 10);
	const bool may_be_file = entry->kind != SCAN_SPECIAL && entry->kind != SCAN_NOTICE &&
				 entry->kind != SCAN_LINK;
	bool is_below = false;
	const char *source = scan_source_path(folders->run->files.scan, entry->source);
	text_addf(&path, "%s/%s", strcmp(source, "/") == 0 ? "" : source, entry->relative);
	for (size_t i = 0; i < folders->n; i++) {
		struct folder *folder = &folders->list[i];
		if (strncmp(text_string(&path), folder->real, strlen(folder->real)) != 0)
			continue;
		is_below = true;
		folder->has_found |= may_be_file;
	}
	text_clear(&path);
	return is_below;
}

/* Reports an entry that cannot be compared, and counts it in the exit status. A link, a socket, a
 * pipe or a device has no content that could be in S3, so it is only reported. A log in pieces is
 * reported later, once for all its pieces. */
static void report_uncompared(struct folders *folders, const struct scan_entry *entry)
{
	struct report *report = &folders->run->report;
	const struct report_file about = {.path = entry->path};
	switch (entry->kind) {
	case SCAN_NOTICE:
		report_run(report, S3ONCE_EVENT_WARNING, &entry->problem);
		break;
	case SCAN_LINK:
		report_file(report, S3ONCE_EVENT_LINK, &about, NULL);
		break;
	case SCAN_SPECIAL:
		report_file(report, S3ONCE_EVENT_SPECIAL, &about, &entry->problem);
		break;
	case SCAN_EXCLUDED:
		report_file(report, S3ONCE_EVENT_EXCLUDED, &about, NULL);
		worsen_exit(&folders->exit, PROOF_UNKNOWN);
		break;
	case SCAN_PROBLEM:
		worsen_exit(&folders->exit,
			report_unknown(folders->run, entry->path, entry->key, &entry->problem));
		break;
	case SCAN_FILE:
	case SCAN_WAITS:
		if (entry->is_piece) {
			if (names_add(&folders->pieces, '-', entry->path, strlen(entry->path)))
				run_fail(folders->run, PROBLEM("out of memory"));
			break;
		}
		report_file(report, S3ONCE_EVENT_UNPROVEN, &about,
			PROBLEM("has no key%s",
				entry->kind == SCAN_WAITS
					? " yet, since it is younger than --min-age, or a log "
					  "that may grow"
					: ", since it is larger than --max-size"));
		worsen_exit(&folders->exit, PROOF_NO);
	}
}

/* Reports each log that is uploaded in pieces. */
static void report_pieces(struct folders *folders)
{
	struct names *pieces = &folders->pieces;
	names_sort(pieces); /* and drop repeated ones */
	for (size_t i = 0; i < pieces->n; i++)
		worsen_exit(&folders->exit,
			report_unknown(folders->run, names_get(pieces, i), "", PROBLEM(IN_PIECES)));
	names_clear(pieces);
}

/* Returns the next file in the folders, or NULL at the end, or once the run is asked to stop, which
 * also ends the scan. */
static struct candidate *next_candidate_locked(struct folders *folders)
{
	struct scan_entry entry;
	struct problem problem = {0};
	while (!folders->scan_has_ended && !run_is_stopping(folders->run)) {
		const int got = scan_next(folders->run->files.scan, &entry, &problem);
		folders->scan_has_ended = got <= 0;
		if (got < 0 && got != -ECANCELED)
			run_fail(folders->run, &problem);
		if (got <= 0 || !note_in_folders(folders, &entry))
			continue;
		const bool is_file = entry.kind == SCAN_FILE || entry.kind == SCAN_WAITS;
		if (!is_file || !*entry.key || entry.is_piece) {
			report_uncompared(folders, &entry);
			continue;
		}
		struct candidate *candidate = feed_new_candidate(&entry);
		if (candidate)
			return candidate;
		run_fail(folders->run, PROBLEM("out of memory while reading the tree"));
	}
	return NULL;
}

/* Proves files of the folders, one after the other, until none is left. Several threads call it at
 * once, each with a worker of its own. */
static void prove_remaining(struct worker *worker, struct folders *folders)
{
	for (;;) {
		uv_mutex_lock(&folders->mutex);
		struct candidate *candidate = next_candidate_locked(folders);
		uv_mutex_unlock(&folders->mutex);
		if (!candidate)
			return;
		const enum proof done = prove_candidate(worker, candidate, UPLOADED_WHOLE);
		uv_mutex_lock(&folders->mutex);
		worsen_exit(&folders->exit, done);
		uv_mutex_unlock(&folders->mutex);
	}
}

/* Makes a worker whose answered requests count as progress of the run, since a proof ends no
 * turn. */
static struct worker *prover_new(struct run *run)
{
	struct worker *worker = worker_new(run);
	if (worker)
		worker->limits.is_progress = true;
	return worker;
}

/* The thread of a helper. If it gets no worker, the other threads prove its share of the files. */
static void run_helper(void *arg)
{
	struct folders *folders = arg;
	struct worker *worker = prover_new(folders->run);
	if (worker)
		prove_remaining(worker, folders);
	worker_free(worker);
}

/* Proves the files of all folders, together with as many helpers as can be started. */
static void prove_folders(struct worker *worker, struct folders *folders)
{
	const struct pool_options options = {.max_threads = HELPERS};
	struct pool pool;
	uv_mutex_init(&folders->mutex);
	const bool has_pool = !pool_init(&pool, &options);
	while (has_pool && pool_start(&pool, run_helper, folders)) /* until HELPERS were started */
		;
	prove_remaining(worker, folders);
	if (has_pool)
		pool_end(&pool);
	uv_mutex_destroy(&folders->mutex);
	report_pieces(folders);
	for (size_t i = 0; i < folders->n && !run_is_stopping(folders->run); i++)
		if (!folders->list[i].has_found)
			worsen_exit(&folders->exit,
				report_unknown(folders->run, folders->list[i].given, "",
					PROBLEM("there is no file in it that these options would "
						"upload")));
}

/* Adds a path to the folders if it is one. Returns whether it was added. There is room for it. */
static bool add_folder(struct folders *folders, const char *given)
{
	struct stat st;
	char *real = NULL, *path = NULL;
	if (stat(given, &st) == 0 && S_ISDIR(st.st_mode))
		real = realpath(given, NULL);
	if (real && asprintf(&path, "%s%s", real, strcmp(real, "/") == 0 ? "" : "/") < 0)
		path = NULL; /* asprintf() leaves it undefined */
	free(real);
	if (path)
		folders->list[folders->n++] = (struct folder){.real = path, .given = given};
	return path != NULL;
}

/* Proves the given files and folders. The folders come last, since scan_make_entry() cannot be used
 * while the scan is under way. A run that is asked to stop returns SETUP, since it has not checked
 * all files. */
static enum s3once_exit prove_all(struct worker *worker, const char *const *files, size_t n)
{
	struct folders folders = {.run = worker->run, .list = calloc(n, sizeof *folders.list)};
	if (!folders.list) {
		run_fail(worker->run, PROBLEM("out of memory"));
		n = 0;
	}
	for (size_t i = 0; i < n && !run_is_stopping(worker->run); i++)
		if (!add_folder(&folders, files[i]))
			worsen_exit(&folders.exit, prove_path(worker, files[i]));
	if (folders.n)
		prove_folders(worker, &folders);
	for (size_t i = 0; i < folders.n; i++)
		free(folders.list[i].real);
	free(folders.list);
	return run_is_stopping(worker->run) ? S3ONCE_EXIT_SETUP : folders.exit;
}

enum s3once_exit s3once_push_prove(struct s3once_push *push, const char *const *files, size_t n)
{
	struct run *run = &push->run;
	struct worker *worker = NULL;
	struct problem problem = {0};
	enum s3once_exit exit = S3ONCE_EXIT_SETUP;
	const bool is_set_up = push_set_up(push); /* or it has reported the reason */
	/* The marks must belong to this bucket. */
	const bool is_bucket = is_set_up && bucket_check(run, push->conn, &problem);
	if (is_set_up && !is_bucket)
		run_fail(run, &problem);
	if (is_bucket)
		worker = prover_new(run);
	if (is_bucket && !worker)
		run_fail(run, PROBLEM(PROBLEM_NO_DESCRIPTORS));
	if (worker) {
		scan_account_for_all(run->files.scan);
		exit = prove_all(worker, files, n);
	}
	worker_free(worker);
	run_check_lease(run);
	run_check_progress(run);
	if (run->session)
		session_close(run->session, push->conn);
	run->session = NULL;
	push->counts = report_get_counts(&run->report);
	return exit;
}
