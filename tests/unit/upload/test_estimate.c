#include "../check.h"
#include "upload/progress/estimate.h"
#include <math.h>

/* A run whose pace is known, second by second. All its work is over when the last second is. */
struct run_of {
	const char *what;
	struct work {
		unsigned small, large; /* files that end in this second */
		uint64_t each;         /* bytes of such a small file; 0: 4 KiB */
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

/* A line of 1 MiB a second, of which the large file has little until the small ones are sent. */
static struct work many_share_the_line(unsigned second)
{
	return (struct work){.small = second < 40 ? 3 : 0,
		.each = 300 << 10,
		.large = second == 59,
		.bytes = second < 40 ? 124 << 10 : 1 << 20};
}

static const struct run_of runs[] = {
	{"a large file that shares the line", many_share_the_line, 60, 1},
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
	const uint64_t small_bytes = work->small * (work->each ? work->each : SMALL_SIZE);
	counts->uploaded += work->small + work->large;
	counts->skipped += work->skipped;
	counts->bytes_moved += work->bytes + small_bytes;
	counts->bytes_sent = counts->bytes_moved;
	counts->bytes_settled += small_bytes + work->skipped * MIB;
	counts->large.ended += work->large;
	counts->large.bytes_moved += work->bytes;
	counts->large.bytes_ended += work->bytes + work->had; /* what is under way counts, too */
}

/* After ten seconds, and until the last three, an estimate is right within a third. There is none
 * before the first large file has begun, and there has to be one from three seconds after that on.
 */
static void check_run(const struct run_of *run)
{
	struct s3once_counts counts = {.scan_complete = 1};
	struct s3once_counts all = {0};
	struct estimate estimate = {0};
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
		estimate_take_in(&estimate, &counts);
		const double left = estimate_seconds_left(&estimate, &counts);
		const double really = run->seconds - counts.seconds;
		const bool may_be_unknown = i < first_large + 3;
		if (i < 10 || (left < 0 && may_be_unknown))
			continue;
		if (!CHECK(fabs(left - really) <= really / 3 + 1))
			printf("%s, after %u s: %.1f s left, really %.1f\n", run->what, i + 1, left,
				really);
	}
}

/* The rate of the line is that of the last seconds. */
static void check_rate(void)
{
	struct estimate estimate = {0};
	struct s3once_counts counts = {.seconds = 2, .bytes_sent = MIB};
	estimate_take_in(&estimate, &counts);
	CHECK_INT((int64_t)estimate.line, MIB / 2);
	counts.seconds = 4;
	counts.bytes_sent += MIB / 2;
	estimate_take_in(&estimate, &counts);
	CHECK_INT((int64_t)estimate.line, MIB * 3 / 8);
}

/* No time is made up before the end of the scan, while nothing moves, nor where more is settled
 * than was found. */
static void check_unknown(void)
{
	struct estimate estimate = {.small = 100, .max_small = 100};
	struct s3once_counts counts = {.found = 2000,
		.uploaded = 1000,
		.bytes_found = 2 * MIB,
		.bytes_settled = MIB,
		.in_flight = 4,
		.seconds = 10};
	CHECK(estimate_seconds_left(&estimate, &counts) < 0);
	counts.scan_complete = 1;
	CHECK_INT((int64_t)estimate_seconds_left(&estimate, &counts), 9);
	counts.still_seconds = 12;
	CHECK(estimate_seconds_left(&estimate, &counts) < 0);
	counts.still_seconds = 0;
	counts.bytes_settled = 5 * MIB;
	CHECK(estimate_seconds_left(&estimate, &counts) < 0);
}

/* A file that was small when it was found, and large when it had ended, hides no small files. Nor
 * does a large file that waits for the fate of others that were refused, and is not in flight. */
static void check_small_files_left(void)
{
	const struct estimate estimate = {
		.large = MIB, .large_s = 10, .small = 100, .max_small = 100};
	const struct s3once_counts before = {.found = 2000,
		.uploaded = 1000,
		.bytes_found = 2 * MIB,
		.bytes_settled = MIB,
		.in_flight = 4,
		.scan_complete = 1,
		.seconds = 10};
	struct s3once_counts counts = before;
	counts.large.ended = 1;
	counts.large.bytes_ended = 2 * MIB;
	CHECK_INT((int64_t)estimate_seconds_left(&estimate, &counts), 9);
	counts = before;
	counts.in_flight = 0;
	counts.large.found = counts.large.in_flight = 1;
	counts.large.bytes_found = MIB;
	CHECK_INT((int64_t)estimate_seconds_left(&estimate, &counts), 10);
}

int main(void)
{
	check_rate();
	check_small_files_left();
	check_unknown();
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		check_run(&runs[i]);
	return check_result();
}
