/* Judges one name in a folder: a file to be uploaded, one that is too young, or something else,
 * with the sentence for it. The walk, lists of paths and single SOURCEs all use this, so that a
 * file is judged alike however it was found. Judging takes one stat(2), and nothing is opened. */
#include "scan/scan_entry.h"
#include "base/clock.h"
#include "scan/open.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

void file_state_from(const struct stat *st, struct file_state *ret)
{
	*ret = (struct file_state){.size = (uint64_t)st->st_size,
		.mtime_ns = clock_to_ns(st->st_mtim),
		.ctime_ns = clock_to_ns(st->st_ctim),
		.dev = st->st_dev,
		.ino = st->st_ino};
}

int file_state_of(int fd, struct file_state *ret)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	file_state_from(&st, ret);
	return 0;
}

bool file_state_equal(const struct file_state *a, const struct file_state *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->dev == b->dev &&
	       (a->ino == b->ino || !a->ino || !b->ino) &&
	       (a->ctime_ns == b->ctime_ns || !a->ctime_ns || !b->ctime_ns);
}

void entry_set_version(struct scan_entry *entry, const struct file_state *state)
{
	entry->size = state->size;
	entry->mtime_ns = state->mtime_ns;
	entry->dev = state->dev;
	entry->ino = state->ino;
}

void entry_refuse_special(struct scan_entry *entry)
{
	const struct problem found = entry->problem;
	if (entry->kind != SCAN_SPECIAL)
		return;
	entry->kind = SCAN_PROBLEM;
	problem_set(&entry->problem, "%s; exclude it", found.text);
}

/* Sentences for types other than a regular file, indexed by the type bits of st_mode. */
static const char *const other_types[16] = {
	[S_IFSOCK >> 12] = "is a socket, not a file",
	[S_IFIFO >> 12] = "is a named pipe, not a file",
	[S_IFCHR >> 12] = "is a device, not a file",
	[S_IFBLK >> 12] = "is a device, not a file",
	[S_IFDIR >> 12] = "is a directory, not a file; list the files in it",
};

/* Whether the mtime lies in the future, so that the age is counted from the ctime. A file that was
 * written after the start of the run (now_wall_ns) has a later mtime than that, but is not ahead of
 * the clock. */
static bool is_from_future(const struct file_state *state, const struct scan_options *options)
{
	return options->min_age_ms && state->mtime_ns > options->now_wall_ns &&
	       state->mtime_ns > clock_wall_ns();
}

static bool is_own(const char *name, const struct stat *st, const struct scan_options *options)
{
	return options->is_own &&
	       options->is_own(options->is_own_arg, name, st->st_dev, st->st_ino);
}

void entry_judge(const char *name, const struct stat *st, const struct scan_options *options,
	struct scan_entry *ret)
{
	struct file_state state;
	file_state_from(st, &state);
	entry_set_version(ret, &state);
	if (S_ISLNK(st->st_mode)) {
		ret->kind = SCAN_LINK;
	} else if (!S_ISREG(st->st_mode)) {
		ret->kind = S_ISDIR(st->st_mode) ? SCAN_PROBLEM : SCAN_SPECIAL;
		const char *what = other_types[(st->st_mode & S_IFMT) >> 12];
		problem_set(&ret->problem, "%s", what ? what : "is not a regular file");
	} else if (is_own(name, st, options)) {
		ret->kind = SCAN_SPECIAL;
		ret->is_own = true;
		problem_set(&ret->problem, "is a file of s3once itself");
	} else {
		ret->kind = SCAN_FILE;
		if (is_too_young(&state, options))
			entry_let_wait(ret, S3ONCE_WAIT_YOUNG);
		ret->is_from_future = is_from_future(&state, options);
	}
}

void entry_set_unreadable(
	int directory_fd, const char *name, int error, const char *absent, struct scan_entry *ret)
{
	struct stat st;
	ret->kind = SCAN_PROBLEM;
	if (error == ELOOP)
		problem_set(&ret->problem,
			"is a symbolic link that forms a loop, or lies behind one; fix or "
			"exclude it");
	else if (error != ENOENT)
		open_explain(-error, "accessed", &ret->problem);
	else if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		problem_set(&ret->problem,
			"is a symbolic link to a file that does not exist; fix or exclude it");
	else
		problem_set(&ret->problem, "%s", absent);
}

void entry_look(int directory_fd, const char *name, const struct scan_options *options,
	const char *absent, struct scan_entry *ret)
{
	struct stat st;
	int flags = options->follow ? 0 : AT_SYMLINK_NOFOLLOW;
	if (fstatat(directory_fd, name, &st, flags) < 0)
		entry_set_unreadable(directory_fd, name, errno, absent, ret);
	else
		entry_judge(name, &st, options, ret);
}

bool is_too_young(const struct file_state *state, const struct scan_options *options)
{
	if (!options->min_age_ms)
		return false;
	const bool by_ctime = is_from_future(state, options);
	const int64_t time_ns = by_ctime ? state->ctime_ns : state->mtime_ns;
	/* Neither the least age nor the difference of two times need fit into 64 bits. */
	const long double min_age_ns = (long double)options->min_age_ms * NS_PER_MS;
	const long double age_ns = (long double)options->now_wall_ns - (long double)time_ns;
	/* The age is negative if the clock of the file server is ahead. If it is a little ahead,
	 * the file is young. A ctime that is ahead by more than the least age is wrong, and must
	 * not keep the file from being uploaded for years. */
	const bool is_wrong_ctime = by_ctime && age_ns < -min_age_ns;
	return age_ns < min_age_ns && !is_wrong_ctime;
}

bool scan_is_cancelled(const struct scan_options *options)
{
	return options->abandon && options->abandon(options->abandon_arg);
}

int scan_check_cancelled(const struct scan_options *options, struct problem *ret_problem)
{
	if (!scan_is_cancelled(options))
		return 0;
	open_explain_fatal(-ECANCELED, ret_problem);
	return -ECANCELED;
}

int scan_no_memory(struct problem *ret_problem)
{
	open_explain_fatal(-ENOMEM, ret_problem);
	return -ENOMEM;
}

void entry_let_wait(struct scan_entry *entry, enum s3once_wait why)
{
	if (entry->kind != SCAN_WAITS)
		entry->wait = why;
	entry->kind = SCAN_WAITS;
}

bool entry_is_file(const struct scan_entry *entry)
{
	return entry->kind == SCAN_FILE || entry->kind == SCAN_WAITS;
}

bool entry_is_too_large(const struct scan_entry *entry, const struct scan_options *options)
{
	return options->max_bytes && entry->size > options->max_bytes;
}
