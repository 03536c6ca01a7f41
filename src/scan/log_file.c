#include "scan/log_file.h"
#include "scan/open.h"
#include "scan/scan_over.h"
#include <errno.h>
#include <unistd.h>

#define CHUNK_BYTES 65536

void log_file_waits(struct log_family *family, struct log_file *file)
{
	file->entry.kind = SCAN_YOUNG;
	family->has_waiting = true;
}

int log_file_not_read(struct log_family *family, struct log_file *file, int error,
	const struct problem *why, struct problem *ret_problem)
{
	if (error == -ECANCELED)
		return scan_may_be_over(family->options, ret_problem);
	if (open_out_of_resources(error, ret_problem))
		return error;
	family->is_unsure = true;
	if (error == -ESTALE || error == -ENOENT || error == -ENOTDIR || error == -ELOOP) {
		log_file_waits(family, file); /* it was renamed, removed or emptied just now */
		return 0;
	}
	file->entry.kind = SCAN_PROBLEM;
	if (*why->text)
		file->entry.problem = *why;
	else
		open_explain_unread(error, &file->entry.problem);
	return 0;
}

int log_file_open(const struct log_family *family, const struct log_file *file)
{
	struct file_state state;
	return source_open_inode(family->source, &file->entry, &state);
}

/* Where the last line end in these bytes is followed by the next line; from if there is none. */
static int find_line_end(int fd, uint64_t from, uint64_t to, uint64_t *ret_end)
{
	char bytes[CHUNK_BYTES];
	for (uint64_t at = to; at > from;) {
		const size_t want = at - from < sizeof bytes ? (size_t)(at - from) : sizeof bytes;
		const ssize_t n = pread(fd, bytes, want, (off_t)(at - want));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((size_t)n < want)
			return -ESTALE;
		for (size_t i = want; i-- > 0;) {
			if (bytes[i] == '\n') {
				*ret_end = at - want + i + 1;
				return 0;
			}
		}
		at -= want;
	}
	*ret_end = from;
	return 0;
}

int log_file_end(const struct log_file *file, int fd, uint64_t from, uint64_t *ret_end)
{
	*ret_end = file->state.size;
	if (!file->is_live || file->state.size <= from)
		return 0;
	return find_line_end(fd, from, file->state.size, ret_end);
}

static struct content content_of(
	const struct log_family *family, const struct log_file *file, int fd)
{
	return (struct content){
		fd, file->state.size, family->options->is_over, family->options->is_over_arg};
}

int log_file_points(const struct log_family *family, const struct log_file *file, int fd,
	struct content_point *points, size_t n, uint64_t *ret_size, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_points(&content, points, n, ret_size, ret_why);
}

int log_file_range(const struct log_family *family, const struct log_file *file, int fd,
	const struct content_range *range, struct content_range_ids *ret, struct problem *ret_why)
{
	const struct content content = content_of(family, file, fd);
	return content_range(&content, range, ret, ret_why);
}
