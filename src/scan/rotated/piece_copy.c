#include "scan/rotated/piece_copy.h"
#include "base/clock.h"
#include "base/quote.h"
#include "base/unnamed_file.h"
#include "scan/content/content_range.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *temporary_folder(void)
{
	const char *folder = getenv("SQLITE_TMPDIR");
	if (!folder || !*folder)
		folder = getenv("TMPDIR");
	return folder && *folder ? folder : "/var/tmp";
}

static int refuse_copy(int error, const struct scan_entry *found, struct problem *ret_problem)
{
	problem_set(ret_problem,
		"no copy of %llu bytes of it could be made in %s (%s); make room there, or name a "
		"folder with room in SQLITE_TMPDIR",
		(unsigned long long)found->size, quote(temporary_folder()).text, strerror(-error));
	return error;
}

/* Copies what the file contains there, and compares it with the id. */
static int copy_piece(const struct source *source, int fd, const struct file_state *state,
	const struct scan_entry *found, int copy_fd, struct problem *ret_problem)
{
	const struct scan_options *options = source->options;
	const struct content content = {fd, state->size, options->is_over, options->is_over_arg};
	const struct content_range range = {found->offset, found->offset + found->size, copy_fd};
	struct content_range_ids ids;
	struct problem why = {.text = ""};
	int r = content_range(&content, &range, &ids, &why);
	if (r == 0 && strcmp(ids.range, found->content_id) != 0)
		r = -ESTALE;
	if (r == -ENOSPC || r == -EDQUOT || r == -EFBIG)
		return *why.text ? (*ret_problem = why, r) : refuse_copy(r, found, ret_problem);
	if (r == -ESTALE)
		problem_set(ret_problem,
			"no longer contains the %llu bytes from byte %llu on that were to be "
			"uploaded; the next run takes what is there then",
			(unsigned long long)found->size, (unsigned long long)found->offset);
	return r;
}

/* The copy is as old as the piece. */
static int finish_copy(int fd, const struct scan_entry *found, struct file_state *ret_state)
{
	struct stat st;
	const int64_t second = (int64_t)NS_PER_S;
	int64_t s = found->mtime_ns / second, ns = found->mtime_ns % second;
	if (ns < 0) {
		s--;
		ns += second;
	}
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)s, .tv_nsec = (long)ns}};
	if (futimens(fd, times) < 0 || fstat(fd, &st) < 0)
		return -errno;
	file_state_from(&st, ret_state);
	return 0;
}

int piece_copy(const struct source *source, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem)
{
	struct file_state state;
	const int fd = source_open_inode(source, found, &state);
	if (fd < 0)
		return fd;
	const int copy_fd = unnamed_file(temporary_folder());
	int r = copy_fd < 0 ? refuse_copy(copy_fd, found, ret_problem)
			    : copy_piece(source, fd, &state, found, copy_fd, ret_problem);
	if (r == 0)
		r = finish_copy(copy_fd, found, ret_state);
	close(fd);
	if (r < 0 && copy_fd >= 0)
		close(copy_fd);
	return r < 0 ? r : copy_fd;
}
