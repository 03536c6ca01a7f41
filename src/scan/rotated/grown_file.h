/* Reading one file whose log grows. */
#pragma once
#include "scan/content/content_range.h"
#include "scan/rotated/log_family.h"

/* The file has to wait for a later run. */
void grown_file_waits(struct log_family *family, struct grown_file *file);
/* Why the file could not be read: it waits, or becomes a PROBLEM. 0, or the error if nothing can go
 * on, with a sentence. why may have a sentence. */
int grown_file_not_read(struct log_family *family, struct grown_file *file, int error,
	const struct problem *why, struct problem *ret_problem);
/* Opens the file of that entry, whatever its name is now. The descriptor or -errno. */
int grown_file_open(const struct log_family *family, const struct grown_file *file);

/* Whether the file is to be uploaded, and is not known to have a log yet. */
bool grown_file_is_open(const struct grown_file *file);
/* Whether the row is of this file, whatever the file contains by now. */
bool grown_file_had(const struct grown_file *file, const struct log_row *row);
/* Whether the log's only piece is what the file contains, and its key is that of the file. */
bool grown_file_is_whole(const struct grown_file *file, const struct log_row *row);
/* The file has this log, which ends at `end` in it. What is new is cut as the next piece, whose ids
 * are given. 0 or -ENOMEM. */
int grown_file_take(struct log_family *family, struct grown_file *file, struct log_row *row,
	uint64_t end, const struct content_range_ids *ids);
/* Whether both are the same id, and there is one. */
bool log_is_same_id(const char *a, const char *b);
int64_t log_seconds(int64_t ns);

/* Sets *ret_end to how much of the file may be uploaded: all of a rotated file, and of a live one
 * what is there up to its last line end, or `from` if no line has ended behind that. Returns 0 or
 * -errno. */
int grown_file_end(const struct grown_file *file, int fd, uint64_t from, uint64_t *ret_end);
/* content_points and content_range of the open file. */
int grown_file_points(const struct log_family *family, const struct grown_file *file, int fd,
	struct content_point *points, size_t n, uint64_t *ret_size, struct problem *ret_why);
int grown_file_range(const struct log_family *family, const struct grown_file *file, int fd,
	const struct content_range *range, struct content_range_ids *ret, struct problem *ret_why);
