#include "scan/file_kind.h"
#include "scan/min_age.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int64_t to_ns(struct timespec t)
{
	int64_t ns;
	if (__builtin_mul_overflow((int64_t)t.tv_sec, INT64_C(1000000000), &ns) ||
		__builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

void file_state_from(const struct stat *st, struct file_state *ret)
{
	*ret = (struct file_state){
		.size = (uint64_t)st->st_size,
		.mtime_ns = to_ns(st->st_mtim),
		.ctime_ns = to_ns(st->st_ctim),
		.dev = st->st_dev,
		.ino = st->st_ino,
	};
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
	       a->ino == b->ino && (a->ctime_ns == b->ctime_ns || !a->ctime_ns || !b->ctime_ns);
}

bool file_state_is_version(const struct file_state *a, const struct file_state *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns;
}

void look_was_named(struct scan_entry *entry)
{
	if (entry->kind == SCAN_SPECIAL)
		entry->kind = SCAN_PROBLEM;
}

static const char *what_else(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFSOCK:
		return "is a socket, not a file; exclude it";
	case S_IFIFO:
		return "is a named pipe, not a file; exclude it";
	case S_IFCHR:
	case S_IFBLK:
		return "is a device, not a file; exclude it";
	case S_IFDIR:
		return "is a directory, not a file; list the files in it";
	default:
		return "is not a regular file; exclude it";
	}
}

void look_judge(const struct stat *st, const struct scan_options *options, struct scan_entry *ret)
{
	struct file_state state;
	file_state_from(st, &state);
	ret->size = state.size;
	ret->mtime_ns = state.mtime_ns;
	ret->dev = state.dev;
	ret->ino = state.ino;
	if (S_ISLNK(st->st_mode)) {
		ret->kind = SCAN_LINK;
	} else if (!S_ISREG(st->st_mode)) {
		ret->kind = S_ISDIR(st->st_mode) ? SCAN_PROBLEM : SCAN_SPECIAL;
		problem_set(&ret->problem, "%s", what_else(st->st_mode));
	} else {
		ret->kind = min_age_holds(&state, options) ? SCAN_YOUNG : SCAN_FILE;
		ret->is_from_future = min_age_is_from_future(&state, options);
	}
}

void look_refused(
	int directory_fd, const char *name, int error, const char *absent, struct scan_entry *ret)
{
	struct stat st;
	ret->kind = SCAN_PROBLEM;
	if (error == ELOOP)
		problem_set(&ret->problem,
			"is a symbolic link that forms a loop, or lies behind one; fix or "
			"exclude it");
	else if (error == EACCES || error == EPERM)
		problem_set(&ret->problem,
			"cannot be accessed: %s; run as a user who may read it, or exclude it",
			strerror(error));
	else if (error != ENOENT)
		problem_set(&ret->problem, "cannot be accessed: %s", strerror(error));
	else if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		problem_set(&ret->problem,
			"is a symbolic link to a file that does not exist; fix or exclude it");
	else
		problem_set(&ret->problem, "%s", absent);
}

void look_at(int directory_fd, const char *name, const struct scan_options *options,
	const char *absent, struct scan_entry *ret)
{
	struct stat st;
	int flags = options->follow ? 0 : AT_SYMLINK_NOFOLLOW;
	if (fstatat(directory_fd, name, &st, flags) < 0)
		look_refused(directory_fd, name, errno, absent, ret);
	else
		look_judge(&st, options, ret);
}
