#include "../check.h"
#include "cli/push/progress_line.h"
#include <math.h>

static void check_line(struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, const char *want)
{
	struct text line = TEXT(1024);
	progress_take_in(progress, counts);
	progress_line(progress, counts, columns, &line);
	CHECK_STRING(text_string(&line), want);
	text_clear(&line);
}

/* A run whose pace is known, second by second. All its work is over when the last second is. */
struct run_of {
	const char *what;
	struct work {
		unsigned small, large; /* files that end in this second; a small one has 4 KiB */
		uint64_t bytes;        /* of large files, which leave in it */
		uint64_t had;          /* of them, which S3 has already and are only compared */
		unsigned skipped;      /* files of 1 MiB that are done since an earlier run */
	} (*work)(unsigned second);
	unsigned seconds;
	unsigned large_at_once;
};

#define MIB        ((uint64_t)1 << 20)
#define SMALL_SIZE 4096U

/* 2 MiB a second of one file of 200 MiB, and a hundred small ones in the first seconds. */
static struct work one_large_beside_small(unsigned second)
{
	return (struct work){
		.small = second < 10 ? 10 : 0, .large = second == 99, .bytes = 2 * MIB};
}

/* The same, and S3 has half of the large one from an earlier run. */
static struct work large_that_is_resumed(unsigned second)
{
	return (struct work){
		.large = second == 49, .bytes = 2 * MIB, .had = second == 0 ? 100 * MIB : 0};
}

static struct work small_alone(unsigned second)
{
	(void)second;
	return (struct work){.small = 100};
}

/* Those end long after the large ones. */
static struct work small_beside_large(unsigned second)
{
	return (struct work){
		.small = 100, .large = second == 29, .bytes = second < 30 ? 20 * MIB : 0};
}

/* Two at once, of 100 MiB each. */
static struct work large_alone(unsigned second)
{
	return (struct work){.large = second % 50 == 49 ? 2 : 0, .bytes = 4 * MIB};
}

static struct work most_is_done_before(unsigned second)
{
	return (struct work){.skipped = second < 2 ? 5000 : 0, .small = 20, .bytes = 0};
}

/* From a hundred a second to twenty. */
static struct work slower_and_slower(unsigned second)
{
	return (struct work){
		.small = 100, .large = second == 119, .bytes = second < 20 ? 5 * MIB : 4 * MIB};
}

/* As where the first names in the order of the keys are of small files. */
static struct work large_after_small(unsigned second)
{
	return (struct work){.small = second < 30 ? 400 : 0,
		.large = second == 59 || second == 89,
		.bytes = second < 30 ? 0 : 20 * MIB};
}

static const struct run_of runs[] = {
	{"one large file beside small ones", one_large_beside_small, 100, 1},
	{"a large file that is resumed", large_that_is_resumed, 50, 1},
	{"small files", small_alone, 120, 0},
	{"small files beside a large one", small_beside_large, 120, 1},
	{"large files", large_alone, 500, 2},
	{"large files after small ones", large_after_small, 90, 1},
	{"a rerun", most_is_done_before, 100, 0},
	{"a line that becomes slower", slower_and_slower, 120, 1},
};

static void add_work(struct s3once_counts *counts, const struct work *work)
{
	counts->uploaded += work->small + work->large;
	counts->skipped += work->skipped;
	counts->bytes_moved += work->bytes + work->small * SMALL_SIZE;
	counts->bytes_sent = counts->bytes_moved;
	counts->bytes_settled += work->small * SMALL_SIZE + work->skipped * MIB;
	counts->large.ended += work->large;
	counts->large.bytes_moved += work->bytes;
	counts->large.bytes_ended += work->bytes + work->had; /* what is under way counts, too */
}

/* After ten seconds, and until the last three, an estimate is right within a third. There is none
 * before the first large file has begun, and there has to be one from two seconds after that on. */
static void check_run(const struct run_of *run)
{
	struct s3once_counts counts = {.scan_complete = 1};
	struct s3once_counts all = {0};
	struct progress progress = {0};
	unsigned first_large = run->large_at_once ? run->seconds : 0;
	for (unsigned i = 0; i < run->seconds; i++) {
		const struct work work = run->work(i);
		add_work(&all, &work);
		if (work.bytes && i < first_large)
			first_large = i;
	}
	counts.found = s3once_counts_settled(&all);
	counts.large.found = all.large.ended;
	counts.large.bytes_found = all.large.bytes_ended;
	counts.bytes_found = all.bytes_settled + all.large.bytes_ended;
	for (unsigned i = 0; i + 3 < run->seconds; i++) {
		const struct work work = run->work(i);
		add_work(&counts, &work);
		counts.seconds = i + 1;
		counts.large.in_flight = work.bytes ? run->large_at_once : 0;
		counts.in_flight = counts.large.in_flight + (work.small ? 4 : 0);
		progress_take_in(&progress, &counts);
		const double left = progress_seconds_left(&progress, &counts);
		const double really = run->seconds - counts.seconds;
		const bool may_be_unknown = i < first_large + 2;
		if (i < 10 || (left < 0 && may_be_unknown))
			continue;
		if (!CHECK(fabs(left - really) <= really / 3 + 1))
			printf("%s, after %u s: %.1f s left, really %.1f\n", run->what, i + 1, left,
				really);
	}
}

int main(void)
{
	struct progress progress = {0};
	struct s3once_counts counts = {0};
	check_line(&progress, &counts, 80, "0 of 0+ files, 0 B of 0 B, 0 B/s, 0 in flight");
	counts = (struct s3once_counts){.found = 2000,
		.uploaded = 500,
		.skipped = 500,
		.bytes_found = 2 << 20,
		.bytes_settled = 1 << 20,
		.bytes_sent = 1 << 20,
		.bytes_moved = 1 << 20,
		.in_flight = 64,
		.seconds = 2};
	check_line(&progress, &counts, 80,
		"1,000 of 2,000+ files, 1.0 MiB of 2.0 MiB, 512.0 KiB/s, 64 in flight");
	counts.seconds = 4;
	counts.scan_complete = 1;
	counts.uploaded = 1400;
	counts.links = 7; /* no files */
	counts.found += 7;
	counts.failed = 2;
	counts.bytes_sent = counts.bytes_moved = counts.bytes_settled = 3 << 19;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), 384.0 KiB/s, 1 s left, 64 in flight, 2 failed");
	check_line(&progress, &counts, 40, "1,902 of 2,000 files (75%), 1 s left");
	check_line(&progress, &counts, 20, "75%, 1 s left");
	check_line(&progress, &counts, 8, "75%");
	progress.waits = true;
	counts.in_flight = 0;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), 384.0 KiB/s, waiting for another uploader, 2 failed");
	progress.waits = false;
	counts.in_flight = 64;
	/* Nothing moves: what moved before says nothing about the time that is left. */
	counts.still_seconds = 12;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), 384.0 KiB/s, nothing has moved for 12 s, 2 failed");
	counts.still_seconds = 0;
	/* More was settled than was found: no time left is made up. */
	counts.bytes_settled = 5 << 20;
	counts.seconds = 5;
	check_line(&progress, &counts, 46, "1,902 of 2,000 files (100%), 2 failed");
	check_line(&progress, &counts, 30, "1,902 of 2,000 files (100%)");
	check_line(&progress, &counts, 3, "100");

	/* One large file: what has left of it is progress. */
	progress = (struct progress){0};
	counts = (struct s3once_counts){.found = 1,
		.bytes_found = 100 << 20,
		.in_flight = 1,
		.large = {.found = 1, .bytes_found = 100 << 20, .in_flight = 1},
		.scan_complete = 1};
	for (unsigned i = 1; i <= 10; i++) {
		counts.seconds = i;
		counts.bytes_sent = counts.bytes_moved = counts.bytes_under_way = i * (2 << 20);
		counts.large.bytes_moved = counts.bytes_moved;
		progress_take_in(&progress, &counts);
	}
	check_line(&progress, &counts, 120,
		"0 of 1 files, 20.0 MiB of 100.0 MiB (20%), 2.0 MiB/s, 41 s left, 1 in flight");
	CHECK_INT((int64_t)progress_percent(&progress, &counts), 20);

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		check_run(&runs[i]);
	return check_result();
}
