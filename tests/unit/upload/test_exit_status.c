/* The exit status of a run, of each way in which it may end and each kind of file that it may have
 * left: against a list of the statuses in the order in which they count. */
#include "../check.h"
#include "upload/push_struct.h"
#include <stdlib.h>
#include <unistd.h>

static unsigned fatal, warned;

static void note(void *arg, const struct s3once_event *event)
{
	(void)arg;
	fatal += event->type == S3ONCE_EVENT_FATAL;
	warned += event->type == S3ONCE_EVENT_WARNING;
}

/* Facts about the run, each a bit of its number. */
enum {
	ASKED = 1,
	FENCED = 2,
	SETUP = 4,
	LIMITED = 8,
	LISTED = 16,   /* the scan has found all files */
	ANSWERED = 32, /* S3 has answered for the bucket */
	LOOSE = 64,    /* a file was found, and is neither done nor given up */
	FAILED = 128,
	CHANGED = 256,
	NOT_REMOVED = 512,
	HELD = 1024,
	LINK = 2048,
	UPLOADED = 4096,
	CASES = 8192
};

static enum s3once_exit status_of(unsigned is, bool removes)
{
	const bool all_files = (is & LISTED) && !(is & LOOSE);
	const bool is_whole = all_files && (is & ANSWERED);
	const unsigned kinds = LOOSE | FAILED | CHANGED | HELD | UPLOADED;
	if ((is & ASKED) && !is_whole)
		return S3ONCE_EXIT_STOPPED;
	if (is & FENCED)
		return S3ONCE_EXIT_FENCED;
	if (is & SETUP)
		return S3ONCE_EXIT_SETUP;
	if (is & (FAILED | CHANGED | NOT_REMOVED))
		return S3ONCE_EXIT_FILES;
	if (is & LIMITED && !is_whole)
		return S3ONCE_EXIT_LIMIT;
	if (!all_files)
		return S3ONCE_EXIT_FILES;
	if (!(is & ANSWERED))
		return S3ONCE_EXIT_SETUP;
	if ((is & LINK) && !(is & kinds) && !removes)
		return S3ONCE_EXIT_FILES;
	return is & HELD ? S3ONCE_EXIT_HELD : S3ONCE_EXIT_OK;
}

static void test_each_case(struct s3once_push *push)
{
	struct run *run = &push->run;
	for (unsigned k = 0; k < 2 * CASES; k++) {
		const unsigned is = k % CASES;
		const bool removes = k >= CASES;
		struct s3once_counts *counts = &run->report.locked.counts;
		*counts = (struct s3once_counts){.failed = (is & FAILED) != 0,
			.changed = (is & CHANGED) != 0,
			.not_removed = (is & NOT_REMOVED) != 0,
			.held = (is & HELD) != 0,
			.links = (is & LINK) != 0,
			.uploaded = (is & UPLOADED) != 0};
		counts->found = s3once_counts_settled(counts) + ((is & LOOSE) != 0);
		run->options.removes = removes;
		run->locked.no_answer = (struct problem){.text = "silence"};
		atomic_store(&run->end.was_asked_to_stop, (is & ASKED) != 0);
		atomic_store(&run->end.fenced, (is & FENCED) != 0);
		atomic_store(&run->end.failed_setup, (is & SETUP) != 0);
		atomic_store(&run->end.limit, (is & LIMITED) ? "limit" : NULL);
		atomic_store(&run->report.scan_complete, (is & LISTED) != 0);
		atomic_store(&run->bucket_answers, (is & ANSWERED) != 0);
		fatal = warned = 0;
		const enum s3once_exit got = push_exit_status(push);
		bool good = CHECK_INT(got, status_of(is, removes));
		/* No status but 0 and 4 is without a reason. The other reasons were reported
		 * before. */
		const bool had_reason =
			is & (FENCED | SETUP | LIMITED | FAILED | CHANGED | NOT_REMOVED) ||
			got == S3ONCE_EXIT_STOPPED || !(is & LISTED);
		const bool needs = got != S3ONCE_EXIT_OK && got != S3ONCE_EXIT_HELD && !had_reason;
		good &= !needs || CHECK_INT(fatal + warned, 1);
		good &= got != S3ONCE_EXIT_OK || CHECK_INT(fatal + warned, 0);
		if (!good) {
			fprintf(stderr, "\tcase %#x, removes %d\n", is, removes);
			return;
		}
	}
}

int main(void)
{
	char folder[] = "/tmp/exit_status.XXXXXX", marks[64], text[256] = "";
	CHECK(mkdtemp(folder) != NULL);
	snprintf(marks, sizeof marks, "sqlite:%s/db", folder);
	const char *const sources[] = {folder};
	const struct s3once_options options = {.sources = sources,
		.n_sources = 1,
		.bucket = "bucket",
		.marks = marks,
		.callback = note};
	struct s3once_push *push;
	if (CHECK_INT(s3once_push_new(&options, &push, text, sizeof text), 0)) {
		test_each_case(push);
		s3once_push_free(push);
	}
	rmdir(folder);
	return check_result();
}
