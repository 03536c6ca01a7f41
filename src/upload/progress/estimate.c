/* Computes the rate of a run, and the remaining time. report.c passes in the counts, and puts both
 * into them, so that the line on the terminal, JSON and the row of the session agree. */
#include "upload/progress/estimate.h"
#include <stdbool.h>

/* Times older than this many seconds count little in a rate. The rate of the line shows what
 * happens now. The rate of large files makes an estimate, which must not jump. */
#define LINE_MEMORY_S  4.0
#define LARGE_MEMORY_S 20.0
/* In its first seconds, the rate of large files is that of a few connections that are just
 * starting. */
#define LARGE_MIN_S 3.0

/* Returns the mean of a rate, updated by `latest`, which was the rate of the last `seconds`. Times
 * older than memory_s count little. The mean covers run_s; while that is less than memory_s, it is
 * the mean of all of it. */
static double update_mean(double mean, double latest, double seconds, double run_s, double memory_s)
{
	const double span = run_s < memory_s ? run_s : memory_s;
	return mean + (latest - mean) * (seconds < span ? seconds / span : 1);
}

/* The rate at which a count has grown in this time; 0 if it has not. */
static double per_second(uint64_t before, uint64_t now, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

uint64_t s3once_counts_settled(const struct s3once_counts *counts)
{
	return counts->uploaded + counts->adopted + counts->refreshed + counts->skipped +
	       counts->planned + counts->changed + counts->failed + counts->held + counts->waiting +
	       counts->oversized + counts->undersized + counts->links + counts->special +
	       counts->outdated;
}

/* Updates three smoothed rates: `line`, bytes per second sent over the network; `large`, bytes per
 * second of large files; and `small`, small files per second. */
void estimate_take_in(struct estimate *e, const struct s3once_counts *counts)
{
	const double seconds = counts->seconds - e->seconds;
	if (seconds <= 0)
		return;
	/* The small files whose sending has ended, successfully or not. */
	const uint64_t sent = counts->uploaded + counts->failed;
	const uint64_t small_sent = sent > counts->large.ended ? sent - counts->large.ended : 0;
	const double line = per_second(e->sent, counts->bytes_sent, seconds);
	const double large = per_second(e->large_moved, counts->large.bytes_moved, seconds);
	const double small = per_second(e->small_sent, small_sent, seconds);
	e->line = update_mean(e->line, line, seconds, counts->seconds, LINE_MEMORY_S);
	if (counts->large.in_flight || large > 0) {
		e->large_s += seconds;
		e->large = update_mean(e->large, large, seconds, e->large_s, LARGE_MEMORY_S);
	}
	/* The small files are gone, so the large ones now have the whole line. Expect them to be at
	 * least as fast as the line was in all. */
	const bool has_small = counts->in_flight > counts->large.in_flight;
	if (e->had_small && !has_small && counts->large.in_flight && e->line > e->large)
		e->large = e->line;
	e->had_small = has_small;
	/* This rate is smoothed over LINE_MEMORY_S from the beginning. The others begin as a mean,
	 * which may be that of a single early file here, and max_small would stay too high for
	 * good. */
	e->small = update_mean(e->small, small, seconds, LINE_MEMORY_S, LINE_MEMORY_S);
	if (e->small > e->max_small)
		e->max_small = e->small;
	e->sent = counts->bytes_sent;
	e->large_moved = counts->large.bytes_moved;
	e->small_sent = small_sent;
	e->seconds = counts->seconds;
}

static uint64_t positive_difference(uint64_t n, uint64_t subtracted)
{
	return n > subtracted ? n - subtracted : 0;
}

/* Returns the bytes of large files that were not sent yet. */
static uint64_t large_bytes_left(const struct s3once_counts *counts)
{
	return positive_difference(
		counts->large.bytes_found, counts->large.bytes_ended + counts->bytes_under_way);
}

/* A large file that S3 has refused is not in flight, and still counts as a large one. */
static uint64_t small_in_flight(const struct s3once_counts *counts)
{
	return positive_difference(counts->in_flight, counts->large.in_flight);
}

/* Returns the number of small files whose sending has not begun. */
static uint64_t small_files_left(const struct s3once_counts *counts)
{
	const uint64_t files = counts->found - s3once_counts_settled(counts);
	/* A file may have become large only after it was found. */
	const uint64_t large_files = positive_difference(counts->large.found, counts->large.ended);
	return positive_difference(
		positive_difference(files, large_files), small_in_flight(counts));
}

/* Returns the time for the rest of the large files, which alone takes of_large seconds, and of the
 * small ones, which alone takes of_small. */
static double seconds_of_both(const struct estimate *e, const struct s3once_counts *counts,
	double of_large, double of_small)
{
	const bool are_sent_together = counts->large.in_flight && small_in_flight(counts);
	if (!are_sent_together)
		return of_large + of_small;
	if (of_large <= of_small)
		return of_small;
	/* Once the small files are sent, the rest of the large ones has the whole line. */
	const double line = e->line > e->large ? e->line : e->large;
	return of_small + (of_large - of_small) * e->large / line;
}

double estimate_seconds_left(const struct estimate *e, const struct s3once_counts *counts)
{
	const uint64_t bytes_done = counts->bytes_settled + counts->bytes_under_way;
	const bool moves = counts->still_seconds < S3ONCE_STILL_S;
	if (!moves || !counts->scan_complete || counts->seconds < 1)
		return -1;
	/* More is done than was found, since files have grown. */
	if (counts->found < s3once_counts_settled(counts) || counts->bytes_found < bytes_done)
		return -1;
	const uint64_t large_bytes = large_bytes_left(counts);
	const uint64_t small_files = small_files_left(counts);
	const bool has_large_rate = e->large > 0 && e->large_s >= LARGE_MIN_S;
	const bool has_small_rate = e->max_small > 0;
	if ((large_bytes && !has_large_rate) || (small_files && !has_small_rate))
		return -1;
	const double of_large = large_bytes ? (double)large_bytes / e->large : 0;
	const double of_small = small_files ? (double)small_files / e->max_small : 0;
	const double left = seconds_of_both(e, counts, of_large, of_small);
	return left < 100 * 3600 ? left : -1; /* an estimate of 100 hours would mean nothing */
}
