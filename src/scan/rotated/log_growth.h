/* The bytes of a growing log: the part of a file that may be uploaded, and the new piece that is
 * cut from it. log_match.c decides which file has which log, and calls these functions. */
#pragma once
#include "scan/content/content.h"
#include "scan/rotated/growing_logs.h"

/* Whether the file has the family's own name, and so is the one that is renamed, copied and
 * emptied. Any other file may be a copy of it, even if it is live. */
bool grown_file_has_family_name(const struct log_family *family, const struct grown_file *file);
/* Whether the file may end in the middle of a line, because it is live or is being written. Its
 * log then ends at the last whole line. */
bool grown_file_may_end_in_line(const struct grown_file *file);

/* Opens the file, whatever its name is now. Returns the descriptor or -errno. */
int grown_file_open(const struct log_family *family, const struct grown_file *file,
	struct file_state *ret_state);

/* Sets *ret to whether the content still begins with the log, judging by the first and the last
 * bytes of that log. Returns 0 or -errno. */
int log_still_begins(const struct content *content, const struct log_row *row, bool *ret);

/* Measures the part of the file that may be uploaded, as content_measure() with these n prefixes:
 * all of it, or only its whole lines if it may end in the middle of one. If no line ends after the
 * first prefix, such a file is measured up to the end of that prefix. If this very file had a log
 * in an earlier run, `own` is that log, and its bytes are the only prefix; otherwise `own` is NULL.
 * Sets has_rest of the file. Returns 0, -ESTALE if the file changed meanwhile, or another -errno,
 * after which the file may have a sentence. */
int grown_file_measure(const struct log_family *family, struct grown_file *file,
	const struct log_row *own, struct content_prefix *prefixes, size_t n,
	struct content_measured *ret);

/* Gives the file this log, whose state becomes LOG_TAKEN. Sets is_whole of the file. */
void grown_file_take_log(struct grown_file *file, struct log_row *row);
/* Updates the columns of the row that are about the file's name. */
void log_row_note_name(
	const struct log_family *family, const struct grown_file *file, struct log_row *row);
/* Gives the file this log, whose bytes it begins with, and makes the file's bytes after the log the
 * log's next piece. `found` is the file as it was measured with the log as a prefix. A log that is
 * empty has one empty piece. The row then describes the present file. Returns 0 or -ENOMEM. */
int log_row_extend(const struct log_family *family, struct grown_file *file, struct log_row *row,
	const struct content_measured *found);

/* Whether two times are in the same second. Compressing a file keeps its time, but not the fraction
 * of the second. */
bool is_same_second(int64_t a_ns, int64_t b_ns);
