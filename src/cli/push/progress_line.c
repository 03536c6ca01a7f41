#include "cli/push/progress_line.h"
#include "cli/human_figures.h"
#include <string.h>

/* Rates forget what is older than about this. */
#define MEMORY_S 4.0

static double smooth(double rate, uint64_t before, uint64_t now, double seconds)
{
	double weight = seconds < MEMORY_S ? seconds / MEMORY_S : 1;
	double latest = now > before ? (double)(now - before) / seconds : 0;
	return rate > 0 ? rate + weight * (latest - rate) : latest;
}

void progress_take_in(struct progress *p, const struct s3once_counts *counts)
{
	double seconds = counts->seconds - p->seconds;
	const uint64_t files = s3once_counts_settled(counts);
	const uint64_t bytes = counts->bytes_settled + counts->bytes_under_way;
	if (seconds <= 0)
		return;
	p->files_rate = smooth(p->files_rate, p->files, files, seconds);
	p->bytes_rate = smooth(p->bytes_rate, p->bytes, bytes, seconds);
	p->sent_rate = smooth(p->sent_rate, p->sent, counts->bytes_sent, seconds);
	p->seconds = counts->seconds;
	p->files = files;
	p->bytes = bytes;
	p->sent = counts->bytes_sent;
}

double progress_percent(const struct progress *p, const struct s3once_counts *counts)
{
	if (!counts->scan_complete || !counts->bytes_found)
		return -1;
	const double percent = 100.0 * (double)p->bytes / (double)counts->bytes_found;
	return percent < 100 ? percent : 100;
}

double progress_seconds_left(const struct progress *p, const struct s3once_counts *counts)
{
	if (p->waits && !counts->in_flight)
		return -1;
	uint64_t files = counts->found - p->files, bytes = counts->bytes_found - p->bytes;
	if (!counts->scan_complete || counts->seconds < 1 || counts->found < p->files ||
		counts->bytes_found < p->bytes)
		return -1;
	double by_files = p->files_rate > 0 ? (double)files / p->files_rate : -1;
	double by_bytes = p->bytes_rate > 0 ? (double)bytes / p->bytes_rate : -1;
	double left = by_files > by_bytes ? by_files : by_bytes;
	return left < 100 * 3600 ? left : -1;
}

/* A narrow terminal shows fewer figures, each of them whole. */
static void leave_out_what_does_not_fit(struct text *line, unsigned columns)
{
	if (line->len <= columns)
		return;
	size_t len = columns;
	while (len > 0 && strncmp(line->data + len, ", ", 2) != 0 &&
		strncmp(line->data + len, " (", 2) != 0)
		len--;
	line->data[line->len = len ? len : columns] = 0;
}

void progress_line(const struct progress *p, const struct s3once_counts *counts, unsigned columns,
	struct text *ret_line)
{
	text_reset(ret_line);
	human_count(ret_line, p->files);
	text_add(ret_line, " of ");
	human_count(ret_line, counts->found);
	text_add(ret_line, counts->scan_complete ? " files, " : "+ files, ");
	human_bytes(ret_line, p->bytes);
	text_add(ret_line, " of ");
	human_bytes(ret_line, counts->bytes_found);
	const double percent = progress_percent(p, counts);
	if (percent >= 0)
		text_addf(ret_line, " (%u%%)", (unsigned)percent);
	text_add(ret_line, ", ");
	human_bytes(ret_line, (uint64_t)p->sent_rate);
	text_add(ret_line, "/s");
	double left = progress_seconds_left(p, counts);
	if (left >= 0) {
		text_add(ret_line, ", ");
		if (left < 59)
			text_addf(ret_line, "%u s", (unsigned)left + 1);
		else
			human_seconds(ret_line, left);
		text_add(ret_line, " left");
	}
	if (p->waits && !counts->in_flight)
		text_add(ret_line, ", waiting for another uploader");
	else
		text_addf(ret_line, ", %u in flight", counts->in_flight);
	if (counts->failed) {
		text_add(ret_line, ", ");
		human_count(ret_line, counts->failed);
		text_add(ret_line, " failed");
	}
	leave_out_what_does_not_fit(ret_line, columns);
}
