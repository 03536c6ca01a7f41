/* Computes the progress of a run, and the text of the progress line. push_command.c passes the
 * counts, draws the line on a terminal, sends it to systemd, and prints the same figures as JSON.
 * Pure. */
#include "cli/push/progress_line.h"
#include "cli/human_figures.h"
#include <stdio.h>

void progress_take_in(struct progress *p, const struct s3once_counts *counts)
{
	/* The library counts links and special files as found and settled; the line does not. */
	const uint64_t no_files = counts->links + counts->special;
	p->files = s3once_counts_settled(counts) - no_files;
	p->found = counts->found - no_files;
	p->bytes = counts->bytes_settled + counts->bytes_under_way;
}

double progress_percent(const struct progress *p, const struct s3once_counts *counts)
{
	if (!counts->scan_complete || !counts->bytes_found)
		return -1;
	const double percent = 100.0 * (double)p->bytes / (double)counts->bytes_found;
	return percent < 100 ? percent : 100;
}

/* The figures of the line, in its order. */
enum { FILES, BYTES, PERCENT, RATE, LEFT, IN_FLIGHT, FAILED, FIGURES };
/* The figures that a narrow terminal does not show, in the order in which they are left out. */
static const int dispensable[] = {IN_FLIGHT, BYTES, RATE, FAILED, FILES, LEFT};

enum { CHARS = 128 }; /* of one figure, with its NUL */

/* Joins the figures that are not empty with commas. The percentage is in brackets, unless it is the
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

/* Makes the figures. Those that are not to be shown stay empty. */
static void make_figures(const struct progress *p, const struct s3once_counts *counts,
	char figures[static FIGURES][CHARS])
{
	const double percent = progress_percent(p, counts), left = counts->seconds_left;
	snprintf(figures[FILES], CHARS, "%s of %s%s %s", human_count(p->files).text,
		human_count(p->found).text, counts->scan_complete ? "" : "+",
		p->found == 1 && counts->scan_complete ? "file" : "files");
	snprintf(figures[BYTES], CHARS, "%s of %s", human_bytes(p->bytes).text,
		human_bytes(counts->bytes_found).text);
	if (percent >= 0)
		snprintf(figures[PERCENT], CHARS, "%u%%", (unsigned)percent);
	/* The reason why nothing moves stands in the place of the rate and the time left. */
	if (p->waits && !counts->in_flight) {
		snprintf(figures[LEFT], CHARS, "waiting for another uploader");
	} else if (counts->still_seconds >= S3ONCE_STILL_S) {
		snprintf(figures[LEFT], CHARS, "nothing has moved for %s",
			human_seconds(counts->still_seconds).text);
	} else {
		snprintf(figures[RATE], CHARS, "%s/s",
			human_bytes((uint64_t)counts->bytes_per_second).text);
		snprintf(figures[IN_FLIGHT], CHARS, "%u in flight", counts->in_flight);
		/* Rounded up, so that the line never says "0 s left". From 59 on, that would be
		 * "60 s left", so human_seconds() writes these times: "59 s", "1:00". */
		if (left >= 59)
			snprintf(figures[LEFT], CHARS, "%s left", human_seconds(left).text);
		else if (left >= 0)
			snprintf(figures[LEFT], CHARS, "%u s left", (unsigned)left + 1);
	}
	if (counts->failed)
		snprintf(figures[FAILED], CHARS, "%s failed", human_count(counts->failed).text);
}

void progress_line(const struct progress *p, const struct s3once_counts *counts, unsigned columns,
	struct text *ret_line)
{
	char figures[FIGURES][CHARS] = {""};
	make_figures(p, counts, figures);
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
