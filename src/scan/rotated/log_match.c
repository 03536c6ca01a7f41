#include "scan/rotated/log_match.h"
#include "scan/rotated/grown_file.h"
#include <unistd.h>

/* It was compared, and has not been touched since. What a live file had behind its last line end
 * counts once it is rotated. */
static bool is_as_it_was(const struct grown_file *file, const struct log_row *row)
{
	return file->state.mtime_ns == row->file_mtime_ns && file->state.size == row->file_size &&
	       file->is_live == row->was_live;
}

/* How much content the file has, and whether it begins with the log. */
static int compare_with_row(struct log_family *family, struct grown_file *file, int fd,
	const struct log_row *row, uint64_t *ret_end, struct content_range_ids *ret_ids,
	struct problem *ret_why)
{
	const int packed = file->is_live ? 0 : content_seems_compressed(fd);
	int r = packed < 0 ? packed : 0;
	if (packed == 1) {
		struct content_point point = {.at = row->end};
		r = grown_file_points(family, file, fd, &point, 1, ret_end, ret_why);
	} else if (r == 0) {
		r = grown_file_end(file, fd, row->end, ret_end);
	}
	if (r < 0 || *ret_end < row->end)
		return r;
	const struct content_range range = {row->end, *ret_end, -1};
	return grown_file_range(family, file, fd, &range, ret_ids, ret_why);
}

/* The file that had this log is the same one still. Does it contain it? */
static int match_same_file(struct log_family *family, struct grown_file *file, struct log_row *row,
	struct problem *ret_problem)
{
	enum log_state *state = &family->states[row - family->rows];
	struct content_range_ids ids = {.range = ""};
	struct problem why = {.text = ""};
	uint64_t end = 0;
	if (*state == LOG_TAKEN) {
		file->entry.kind = SCAN_PROBLEM;
		problem_set(&file->entry.problem,
			"is another name (a hard link) of a log of this family; remove it, or "
			"exclude it");
		return 0;
	}
	if (file->entry.kind == SCAN_YOUNG || is_as_it_was(file, row)) {
		*state = file->entry.kind == SCAN_YOUNG ? LOG_WAITS : LOG_TAKEN;
		if (*state == LOG_WAITS)
			return 0;
		file->row = row;
		file->is_whole = grown_file_is_whole(file, row);
		return 0;
	}
	const int fd = grown_file_open(family, file);
	int r = fd < 0 ? fd : compare_with_row(family, file, fd, row, &end, &ids, &why);
	if (fd >= 0)
		close(fd);
	if (r < 0) {
		*state = LOG_WAITS;
		return grown_file_not_read(family, file, r, &why, ret_problem);
	}
	if (end < row->end || !log_is_same_id(ids.before, row->until)) {
		*state = LOG_TRUNCATED;
		return 0;
	}
	r = grown_file_take(family, file, row, end, &ids);
	return r < 0 ? grown_file_not_read(family, file, r, &why, ret_problem) : 0;
}

static int identify_log(
	struct log_family *family, struct grown_file *file, struct problem *ret_problem)
{
	static const struct problem none = {.text = ""};
	const int fd = source_open_inode(family->source, &file->entry, &file->state);
	if (fd < 0)
		return grown_file_not_read(family, file, fd, &none, ret_problem);
	file->has_identity = file_identity_of(fd, &file->identity) == 0;
	close(fd);
	if (file->has_identity)
		return 0;
	family->is_unsure = true;
	if (file->entry.kind != SCAN_FILE)
		return 0;
	file->entry.kind = SCAN_PROBLEM;
	problem_set(&file->entry.problem,
		"is on a file system without lasting file handles, by which --live and --if-grown "
		"know a log that grew; run without these options");
	return 0;
}

int log_match_by_identity(struct log_family *family, struct problem *ret_problem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < family->n_files; i++) {
		struct grown_file *file = &family->files[i];
		if (file->entry.kind != SCAN_FILE && file->entry.kind != SCAN_YOUNG) {
			family->is_unsure = true;
			continue;
		}
		if (file->entry.kind == SCAN_YOUNG)
			grown_file_waits(family, file);
		r = identify_log(family, file, ret_problem);
		/* A rotated file is what the listing found, or waits. */
		const bool is_version =
			file->is_live || (file->state.size == file->entry.size &&
						 file->state.mtime_ns == file->entry.mtime_ns);
		if (r == 0 && file->entry.kind == SCAN_FILE && !is_version)
			grown_file_waits(family, file);
		for (size_t k = 0; r == 0 && k < family->n_rows; k++)
			if (grown_file_had(file, &family->rows[k])) {
				r = match_same_file(family, file, &family->rows[k], ret_problem);
				break;
			}
	}
	return r;
}
