/* Computes how far a run is: rates, the time that is left, and the text of the line that shows
 * them. push_command.c hands over the counts, has the line drawn on a terminal, sends it to
 * systemd, and prints the same figures as JSON. Pure: the time comes with the counts. */
#include "cli/push/progress_line.h"
#include "cli/human_figures.h"
#include <stdio.h>

/* What is older than so many seconds counts little in a rate. The rate of the line shows what
 * happens now. The rate of large files makes an estimate, which must not jump. */
#define LINE_MEMORY_S  4.0
#define LARGE_MEMORY_S 20.0

/* From this time without any progress on, the rates say nothing about the time that is left. */
#define STILL_S 5.0

/* Returns the new mean of a rate that was `latest` in the last `seconds`. What is older than
 * memory_s counts little. While the run, which began of_run_s ago, is younger than memory_s, the
 * mean is that of the whole run. */
static double smooth(double rate, double latest, double seconds, double of_run_s, double memory_s)
{
	const double span = of_run_s < memory_s ? of_run_s : memory_s;
	return rate + (latest - rate) * (seconds < span ? seconds / span : 1);
}

/* The rate at which a count has grown in this time; 0 if it has not. */
static double per_second(uint64_t before, uint64_t now, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

void progress_take_in(struct progress *p, const struct s3once_counts *counts)
{
	const double seconds = counts->seconds - p->seconds;
	/* What the library counts as found and settled, and the line does not count as files. */
	const uint64_t no_files = counts->links + counts->special;
	if (seconds <= 0)
		return;
	p->files = s3once_counts_settled(counts) - no_files;
	p->found = counts->found - no_files;
	p->bytes = counts->bytes_settled + counts->bytes_under_way;
	/* The small files that are sent no longer, whether that went well or not. */
	const uint64_t sent = counts->uploaded + counts->failed;
	const uint64_t small_sent = sent > counts->large.ended ? sent - counts->large.ended : 0;
	const double line = per_second(p->rates.sent, counts->bytes_sent, seconds);
	const double large = per_second(p->rates.large_moved, counts->large.bytes_moved, seconds);
	const double small = per_second(p->rates.small_sent, small_sent, seconds);
	p->rates.line = smooth(p->rates.line, line, seconds, counts->seconds, LINE_MEMORY_S);
	if (counts->large.in_flight || large > 0) {
		p->rates.large_s += seconds;
		p->rates.large =
			smooth(p->rates.large, large, seconds, p->rates.large_s, LARGE_MEMORY_S);
	}
	/* This rate never is the mean of the whole run, so that one early file does not make
	 * most_small too high for ever. */
	p->rates.small = smooth(p->rates.small, small, seconds, LINE_MEMORY_S, LINE_MEMORY_S);
	if (p->rates.small > p->rates.most_small)
		p->rates.most_small = p->rates.small;
	p->rates.sent = counts->bytes_sent;
	p->rates.large_moved = counts->large.bytes_moved;
	p->rates.small_sent = small_sent;
	p->seconds = counts->seconds;
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
	const uint64_t large_done = counts->large.bytes_ended + counts->bytes_under_way;
	/* Nothing is known while the run only waits for other uploaders, while nothing moves,
	 * before all files are found, in the first second, or if more is done than was found, since
	 * files have grown. */
	if ((p->waits && !counts->in_flight) || counts->still_seconds >= STILL_S ||
		!counts->scan_complete || counts->seconds < 1 || p->found < p->files ||
		counts->bytes_found < p->bytes)
		return -1;
	const uint64_t large_bytes =
		counts->large.bytes_found > large_done ? counts->large.bytes_found - large_done : 0;
	const uint64_t files = p->found - p->files;
	const uint64_t large_files = counts->large.found - counts->large.ended;
	const uint64_t small = files > large_files ? files - large_files : 0;
	const unsigned small_in_flight = counts->in_flight - counts->large.in_flight;
	const uint64_t to_begin = small > small_in_flight ? small - small_in_flight : 0;
	/* There is no rate yet. */
	if ((large_bytes && p->rates.large <= 0) || (to_begin && p->rates.most_small <= 0))
		return -1;
	const double of_large = large_bytes ? (double)large_bytes / p->rates.large : 0;
	const double of_small = to_begin ? (double)to_begin / p->rates.most_small : 0;
	const double longer = of_large > of_small ? of_large : of_small;
	const bool both_go_on = counts->large.in_flight && small_in_flight;
	const double left = both_go_on ? longer : of_large + of_small;
	return left < 100 * 3600 ? left : -1; /* an estimate of 100 hours would mean nothing */
}

/* The figures of the line, in its order. */
enum { FILES, BYTES, PERCENT, RATE, LEFT, IN_FLIGHT, FAILED, FIGURES };
/* The figures that a narrow terminal does not show, in the order in which they are left out. */
static const int dispensable[] = {IN_FLIGHT, BYTES, RATE, FAILED, FILES, LEFT};

enum { CHARS = 128 }; /* of one figure, with its NUL */

/* Joins the figures that are not empty by commas. The percentage is in brackets, unless it is the
 * first one. */
static void join_figures(char figures[static FIGURES][CHARS], struct text *ret_line)
{
	text_reset(ret_line);
	for (int i = 0; i < FIGURES; i++) {
		const bool in_brackets = i == PERCENT && ret_line->len;
		if (*figures[i])
			text_addf(ret_line, "%s%s%s",
				!ret_line->len ? ""
				: in_brackets  ? " ("
					       : ", ",
				figures[i], in_brackets ? ")" : "");
	}
}

void progress_line(const struct progress *p, const struct s3once_counts *counts, unsigned columns,
	struct text *ret_line)
{
	char figures[FIGURES][CHARS] = {""}; /* those that are not to be shown stay empty */
	const double percent = progress_percent(p, counts), left = progress_seconds_left(p, counts);
	snprintf(figures[FILES], CHARS, "%s of %s%s", human_count(p->files).text,
		human_count(p->found).text, counts->scan_complete ? " files" : "+ files");
	snprintf(figures[BYTES], CHARS, "%s of %s", human_bytes(p->bytes).text,
		human_bytes(counts->bytes_found).text);
	if (percent >= 0)
		snprintf(figures[PERCENT], CHARS, "%u%%", (unsigned)percent);
	snprintf(figures[RATE], CHARS, "%s/s", human_bytes((uint64_t)p->rates.line).text);
	/* Fewer than 59 seconds are rounded up, so that there never are "0 s left". */
	if (left >= 59)
		snprintf(figures[LEFT], CHARS, "%s left", human_seconds(left).text);
	else if (left >= 0)
		snprintf(figures[LEFT], CHARS, "%u s left", (unsigned)left + 1);
	if (p->waits && !counts->in_flight)
		snprintf(figures[IN_FLIGHT], CHARS, "waiting for another uploader");
	else if (counts->still_seconds >= STILL_S)
		snprintf(figures[IN_FLIGHT], CHARS, "nothing has moved for %s",
			human_seconds(counts->still_seconds).text);
	else
		snprintf(figures[IN_FLIGHT], CHARS, "%u in flight", counts->in_flight);
	if (counts->failed)
		snprintf(figures[FAILED], CHARS, "%s failed", human_count(counts->failed).text);
	join_figures(figures, ret_line);
	for (size_t i = 0; ret_line->len > columns && i < sizeof dispensable / sizeof *dispensable;
		i++) {
		*figures[dispensable[i]] = 0;
		join_figures(figures, ret_line);
	}
	/* Even the percentage alone has no room. All figures are ASCII, and may be cut anywhere. */
	if (ret_line->len > columns) {
		ret_line->len = columns;
		ret_line->data[columns] = 0;
	}
}

static bool is_first_byte(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

/* Skips characters of UTF-8 at the beginning until at most `columns` are left. */
static const char *last_columns(const char *s, size_t columns)
{
	size_t n = 0;
	for (const char *at = s; *at; at++)
		n += is_first_byte(*at);
	for (; n > columns; n--)
		for (s++; *s && !is_first_byte(*s); s++)
			;
	return s;
}

void progress_add_largest(
	struct text *line, const char *path, uint64_t done, uint64_t size, unsigned columns)
{
	struct text name = TEXT(16U << 10), figures = TEXT(CHARS);
	text_add_escaped_string(&name, path);
	text_addf(&figures, ": %s of %s (%u%%)", human_bytes(done).text, human_bytes(size).text,
		size ? (unsigned)(100.0 * (double)done / (double)size) : 0);
	const size_t room = columns > figures.len ? columns - figures.len : 0;
	const char *shown = last_columns(text_string(&name), room);
	if (shown != text_string(&name) && room > 3)
		text_addf(line, "\n...%s%s", last_columns(shown, room - 3), text_string(&figures));
	else
		text_addf(line, "\n%s%s", shown, text_string(&figures));
	text_clear(&name);
	text_clear(&figures);
}
