/* When a file leaves this host (--delete-after): only once its mark and S3 say, at that moment,
 * that its content is there, and only if it is still what was proven. */
#include "base/clock.h"
#include "steps.h"
#include "upload/file/steps.h"
#include <sys/wait.h>

#define CONTENT  "123456789" /* whose CRC-32C is SAME */
#define SAME     "4waSgw=="
#define OTHER    "AAAAAA=="
#define HEAD     "HEAD /b/k\n"
#define MTIME_NS 1000000000000

#define SHOWN(size, etag, sum)                                                                     \
	STEPS_REPLY("200",                                                                         \
		"Content-Length: " size "\r\nETag: \"" etag "\"\r\n"                               \
		"x-amz-checksum-crc32c: " sum "\r\n",                                              \
		"")
#define SHOWN_WITHOUT_SUM(etag)                                                                    \
	STEPS_REPLY("200", "Content-Length: 9\r\nETag: \"" etag "\"\r\n", "")
/* By a server whose clock is years behind this host's. */
#define SHOWN_BEFORE                                                                               \
	STEPS_REPLY("200",                                                                         \
		"Date: Mon, 01 Jan 2001 00:00:00 GMT\r\nContent-Length: 9\r\nETag: \"e\"\r\n"      \
		"x-amz-checksum-crc32c: " SAME "\r\n",                                             \
		"")

enum trouble {
	NONE,
	NOT_READ,         /* its content was not read in this turn */
	CHANGED_BEFORE,   /* after it was opened */
	CHANGED_AFTER,    /* while S3 is asked */
	CLAIMED,          /* its mark, by another uploader */
	TOUCHED_MARK,     /* its mark has another modification time */
	OTHER_MARK,       /* its mark is of other content */
	NO_SUM,           /* its mark has no checksum */
	MARKED_OTHERWISE, /* and it is not read again */
	STOPPING,
	DRY,
	TOO_YOUNG,      /* it is removed after an hour, and was proven just now */
	OLD_MARK,       /* so it is, and its mark is two hours old */
	OLD_OTHER_MARK, /* the same, and it is of other content */
	FRESH_MARK,     /* its mark is half an hour old */
	MARK_OF_LATER,  /* by a clock that was ahead */
	HARD_LINK,
	SYNC_FAILS, /* of the marks */
	/* The same mark as MARKED_OTHERWISE, but the content is read again. */
	HIDES_CHANGES, /* times need not show a change of the file */
	UNSTEADY,      /* its ctime does not count, and it was modified just now */
	RENAMED,       /* a rotated file, since it was opened */
	MOVED,         /* a rotated file with a suffix of its own, to another folder */
	MOVED_PLAIN,   /* the same, but the suffix is that of compression on its way */
};

static bool moves(enum trouble trouble)
{
	return trouble == MOVED || trouble == MOVED_PLAIN;
}

static const struct {
	enum trouble trouble;
	const char *reply;
	int event; /* -1: nothing is said */
	const char *asked;
} rows[] = {
	{NONE, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{NONE, SHOWN("9", "x", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{NONE, SHOWN("9", "e", OTHER), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NONE, SHOWN("8", "e", SAME), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NONE, SHOWN_WITHOUT_SUM("e"), S3ONCE_EVENT_REMOVED, HEAD},
	{NONE, SHOWN_WITHOUT_SUM("x"), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NONE, STEPS_REPLY("404", "", ""), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NONE, STEPS_REPLY("403", "", ""), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NONE, STEPS_REPLY("500", "", ""), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{NOT_READ, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{CHANGED_BEFORE, SHOWN("9", "e", SAME), S3ONCE_EVENT_KEPT, ""},
	{CHANGED_AFTER, SHOWN("9", "e", SAME), S3ONCE_EVENT_KEPT, HEAD},
	{CLAIMED, SHOWN("9", "e", SAME), S3ONCE_EVENT_NOT_REMOVED, ""},
	{TOUCHED_MARK, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{OTHER_MARK, SHOWN("9", "e", OTHER), S3ONCE_EVENT_NOT_REMOVED, ""},
	{NO_SUM, SHOWN("9", "e", SAME), S3ONCE_EVENT_NOT_REMOVED, ""},
	{MARKED_OTHERWISE, SHOWN("9", "e", SAME), S3ONCE_EVENT_NOT_REMOVED, ""},
	{STOPPING, SHOWN("9", "e", SAME), -1, ""},
	{DRY, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVABLE, HEAD},
	{TOO_YOUNG, SHOWN("9", "e", SAME), -1, ""},
	{OLD_MARK, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{OLD_OTHER_MARK, SHOWN("9", "e", OTHER), S3ONCE_EVENT_NOT_REMOVED, ""},
	{FRESH_MARK, SHOWN("9", "e", SAME), -1, ""},
	{MARK_OF_LATER, SHOWN("9", "e", SAME), -1, ""},
	{HARD_LINK, SHOWN("9", "e", SAME), S3ONCE_EVENT_KEPT, ""},
	{SYNC_FAILS, SHOWN("9", "e", SAME), S3ONCE_EVENT_NOT_REMOVED, HEAD},
	{HIDES_CHANGES, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{UNSTEADY, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{RENAMED, SHOWN("9", "e", SAME), S3ONCE_EVENT_REMOVED, HEAD},
	{MOVED, SHOWN("9", "e", SAME), S3ONCE_EVENT_MOVED, HEAD},
	{MOVED_PLAIN, SHOWN("9", "e", SAME), S3ONCE_EVENT_MOVED, HEAD},
	/* Only the reply shows that this host's clock, and so the age, is wrong. */
	{OLD_MARK, SHOWN_BEFORE, -1, HEAD},
};

/* The syncs of the marks that were asked for, and the operations of the store without them. Each
 * row has a process of its own. */
static struct {
	struct store_ops ops;
	const struct store_ops *real;
	const struct steps *steps;
	bool fails;
	unsigned n;
} syncs;

/* The file is there until its mark is on the disk. */
static enum outcome note_sync(
	struct store_conn *conn, const struct call_limits *limits, struct problem *ret_problem)
{
	syncs.n++;
	CHECK_INT(access(syncs.steps->path, F_OK), 0);
	return syncs.fails ? outcome_error(ret_problem, OUTCOME_SETUP, "as the test wants")
			   : syncs.real->sync(conn, limits, ret_problem);
}

/* Marks the file done, as the trouble wants it. */
static void mark(struct steps *steps, enum trouble trouble)
{
	struct file *file = steps->file;
	const struct mark_ref ref = file_mark_ref(steps->worker, file);
	struct mark seen;
	struct version version = {.size = 9, .mtime_ns = MTIME_NS, .etag = "e"};
	if (trouble == TOUCHED_MARK || trouble == MARKED_OTHERWISE || trouble == HIDES_CHANGES ||
		trouble == UNSTEADY || trouble == RENAMED || moves(trouble))
		version.mtime_ns++;
	if (trouble != NO_SUM)
		snprintf(version.sum, sizeof version.sum, "crc32c:%s",
			trouble == OTHER_MARK || trouble == OLD_OTHER_MARK ? OTHER : SAME);
	CHECK_INT(steps_claim(steps), STEP_NEXT);
	CHECK_INT(mark_done(&ref, &file->claim, &version, ref.source, &seen, &steps->problem),
		OUTCOME_OK);
	CHECK_INT(mark_get(&ref, &file->seen_mark, &steps->problem), OUTCOME_OK);
	file->seen_mark.done.mtime_ns = MTIME_NS; /* as the step before has judged it */
}

static void make_trouble(struct steps *steps, enum trouble trouble)
{
	struct run *run = steps->run;
	struct file *file = steps->file;
	if (trouble == CHANGED_BEFORE)
		steps_append(steps->path);
	if (trouble == CHANGED_AFTER) {
		steps->server.steps[0].arg = steps->path;
		steps->server.steps[0].meanwhile = steps_append;
	}
	if (trouble == CLAIMED) {
		struct mark_ref ref = file_mark_ref(steps->worker, file);
		struct mark present = steps_mark(steps), seen;
		struct claim theirs = {0};
		ref.session = "22222222222222222222222222222222";
		CHECK_INT(mark_claim(&ref, &present, &theirs, &seen, &steps->problem), OUTCOME_OK);
		claim_clear(&theirs);
		mark_clear(&present);
	}
	if (trouble == STOPPING)
		run_ask_to_stop(run);
	run->dry = trouble == DRY;
	file->must_reread = trouble == HIDES_CHANGES || trouble == UNSTEADY;
	if (trouble == UNSTEADY) {
		CHECK_INT(utimensat(AT_FDCWD, steps->path, NULL, 0), 0);
		file->stat_is_unsteady = true;
		CHECK_INT(file_open(steps->worker, file), STEP_NEXT);
	}
	if (trouble == RENAMED || moves(trouble)) { /* its ctime does not count */
		file->candidate->is_rotated = true;
		file->state.ctime_ns = 0;
	}
	if (moves(trouble)) {
		strcpy(file->candidate->suffix, ".gz");
		file->encoding = trouble == MOVED_PLAIN ? &run->bodies.encoding : NULL;
		run->files.move_to_fd = open(steps->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (trouble == TOO_YOUNG || trouble == OLD_MARK || trouble == OLD_OTHER_MARK ||
		trouble == FRESH_MARK || trouble == MARK_OF_LATER)
		run->options.remove_after_s = 3600;
	const int64_t now_s = store_time_s(run->store);
	file->seen_mark.at_s =
		trouble == OLD_MARK || trouble == OLD_OTHER_MARK || trouble == TOO_YOUNG
			? now_s - 7200
		: trouble == FRESH_MARK    ? now_s - 1800
		: trouble == MARK_OF_LATER ? now_s + 7200
					   : file->seen_mark.at_s;
	if (trouble == HARD_LINK) {
		char other[120];
		snprintf(other, sizeof other, "%s2", steps->path);
		CHECK_INT(link(steps->path, other), 0);
		CHECK_INT(file_open(steps->worker, file), STEP_NEXT); /* its ctime is another one */
	}
}

static void test_row(size_t i)
{
	static const enum s3once_event_type events[] = {S3ONCE_EVENT_REMOVED, S3ONCE_EVENT_KEPT,
		S3ONCE_EVENT_NOT_REMOVED, S3ONCE_EVENT_REMOVABLE, S3ONCE_EVENT_MOVED};
	const struct script_step script[] = {{rows[i].reply, .close = true}};
	const enum trouble trouble = rows[i].trouble;
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.removes = 1;
	if (!steps_begin(&steps, script, 1))
		return;
	struct file *file = steps.file;
	mark(&steps, trouble);
	make_trouble(&steps, trouble);
	file->step = trouble == OLD_MARK || trouble == OLD_OTHER_MARK || trouble == FRESH_MARK ||
				     trouble == MARK_OF_LATER
			     ? STEP_IN_S3
			     : STEP_PROVEN;
	/* It was quiet for long when this turn opened it, unless it is to be read again: then that
	 * waits until it was quiet for two seconds. Having been open for long is no reason not to
	 * read it. */
	if (trouble == NOT_READ || trouble == TOUCHED_MARK || trouble == OTHER_MARK) {
		file->opened_ns -= 10 * (int64_t)NS_PER_S;
		file->opened_ctime_ns = file->opened_ns;
	} else {
		file->opened_ctime_ns = file->opened_ns - 3 * (int64_t)NS_PER_S;
	}
	struct store *store = steps.run->store;
	syncs.steps = &steps;
	syncs.real = store->ops;
	syncs.ops = *store->ops;
	syncs.ops.sync = note_sync;
	syncs.fails = trouble == SYNC_FAILS;
	store->ops = &syncs.ops;
	remove_file(steps.worker, file);
	store->ops = syncs.real;
	if (trouble == NOT_READ) /* two changes within a tick of the clock look like one */
		CHECK(clock_wall_ns() - file->state.ctime_ns >= 2 * (int64_t)NS_PER_S);
	if (trouble == UNSTEADY)
		CHECK(clock_wall_ns() - file->state.mtime_ns >= 2 * (int64_t)NS_PER_S);
	const bool leaves =
		rows[i].event == S3ONCE_EVENT_REMOVED || rows[i].event == S3ONCE_EVENT_MOVED;
	bool good = CHECK_INT(access(steps.path, F_OK) == 0, !leaves);
	if (moves(trouble)) {
		char target[100];
		snprintf(target, sizeof target, "%s/%s", steps.folder,
			trouble == MOVED ? "k.gz" : "k");
		good &= CHECK_INT(access(target, F_OK), 0);
	}
	if (rows[i].event == S3ONCE_EVENT_REMOVED || trouble == SYNC_FAILS)
		good &= CHECK_INT(syncs.n, 1);
	if (trouble == DRY)
		good &= CHECK_INT(syncs.n, 0);
	for (size_t k = 0; k < sizeof events / sizeof *events; k++)
		good &= CHECK_INT(steps.events[events[k]], (int)events[k] == rows[i].event);
	/* Each file that stays has a reason, and those that are not proven are counted. */
	if (rows[i].event == S3ONCE_EVENT_KEPT || rows[i].event == S3ONCE_EVENT_NOT_REMOVED)
		good &= CHECK(*steps.said);
	good &= CHECK_INT(report_get_counts(&steps.run->report).unproven,
		rows[i].event == S3ONCE_EVENT_NOT_REMOVED);
	if (!good)
		fprintf(stderr, "\trow %zu: %s\n", i, steps.said);
	steps_asked(&steps, rows[i].asked);
	steps_end(&steps);
}

/* Some rows wait for two seconds. So that they wait at the same time, each has a process. */
int main(void)
{
	enum { ROWS = sizeof rows / sizeof *rows };
	pid_t children[ROWS];
	int status;
	for (size_t i = 0; i < ROWS; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			test_row(i);
			return check_result();
		}
	}
	for (size_t i = 0; i < ROWS; i++) {
		CHECK_INT(waitpid(children[i], &status, 0), children[i]);
		CHECK_INT(status, 0);
	}
	return check_result();
}
