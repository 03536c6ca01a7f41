#include "../check.h"
#include "cli/push/progress_line.h"

static void check_line(struct progress *progress, const struct s3once_counts *counts,
	unsigned columns, const char *want)
{
	struct text line = TEXT(1024);
	progress_take_in(progress, counts);
	progress_line(progress, counts, columns, &line);
	CHECK_STRING(text_string(&line), want);
	text_clear(&line);
}

int main(void)
{
	struct progress progress = {0};
	struct s3once_counts counts = {.seconds_left = -1};
	check_line(&progress, &counts, 80, "0 of 0+ files, 0 B of 0 B, 0 B/s, 0 in flight");
	counts = (struct s3once_counts){.found = 2000,
		.uploaded = 500,
		.skipped = 500,
		.bytes_found = 2 << 20,
		.bytes_settled = 1 << 20,
		.bytes_sent = 1 << 20,
		.bytes_moved = 1 << 20,
		.in_flight = 64,
		.bytes_per_second = 512 << 10,
		.seconds_left = -1,
		.seconds = 2};
	check_line(&progress, &counts, 80,
		"1,000 of 2,000+ files, 1.0 MiB of 2.0 MiB, 512.0 KiB/s, 64 in flight");
	counts.bytes_per_second = 384 << 10;
	counts.seconds_left = 0.4;
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
	counts.seconds_left = -1;
	counts.in_flight = 0;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), waiting for another uploader, 2 failed");
	check_line(&progress, &counts, 40, "75%, waiting for another uploader");
	/* Other files move meanwhile. */
	counts.in_flight = 1;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), 384.0 KiB/s, 1 in flight, 2 failed");
	progress.waits = false;
	counts.in_flight = 64;
	counts.still_seconds = 12;
	check_line(&progress, &counts, 120,
		"1,902 of 2,000 files, 1.5 MiB of 2.0 MiB (75%), nothing has moved for 12 s, 2 failed");
	check_line(&progress, &counts, 80,
		"1,902 of 2,000 files (75%), nothing has moved for 12 s, 2 failed");
	counts.still_seconds = 0;
	/* More was settled than was found. */
	counts.bytes_settled = 5 << 20;
	check_line(&progress, &counts, 46, "1,902 of 2,000 files (100%), 2 failed");
	check_line(&progress, &counts, 30, "1,902 of 2,000 files (100%)");
	check_line(&progress, &counts, 3, "100");

	/* One large file: what has left of it is progress. */
	progress = (struct progress){0};
	counts = (struct s3once_counts){.found = 1,
		.bytes_found = 100 << 20,
		.in_flight = 1,
		.large = {.found = 1, .bytes_found = 100 << 20, .in_flight = 1},
		.bytes_under_way = 20 << 20,
		.bytes_per_second = 2 << 20,
		.seconds_left = 40,
		.scan_complete = 1};
	check_line(&progress, &counts, 120,
		"0 of 1 file, 20.0 MiB of 100.0 MiB (20%), 2.0 MiB/s, 41 s left, 1 in flight");
	CHECK_INT((int64_t)progress_percent(&progress, &counts), 20);
	return check_result();
}
