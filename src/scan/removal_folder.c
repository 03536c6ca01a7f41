#include "scan/removal_folder.h"
#include "base/quote.h"
#include "scan/listing.h"
#include "scan/removal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each turn is lost to somebody who just removed the folder, empty as it was. */
#define TURNS_MAX 100

int removal_rename(int from_fd, const char *from_name, int to_fd, const char *to_name)
{
	return renameat2(from_fd, from_name, to_fd, to_name, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int open_folder(int directory_fd)
{
	int fd = openat(directory_fd, REMOVAL_FOLDER,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* 0, -EBUSY if somebody else's lock does not go together with it, or another -errno. */
static int lock_folder(int fd, int how)
{
	if (flock(fd, how | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* If other users can write to a folder, they can replace the files in it at any time. */
static int check_ours(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

static bool is_removed(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

/* The folder, locked; -ESTALE if it was removed again meanwhile. */
static int make_folder(int directory_fd)
{
	if (mkdirat(directory_fd, REMOVAL_FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = open_folder(directory_fd);
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	int r = check_ours(fd);
	if (r == 0)
		r = lock_folder(fd, LOCK_SH);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int removal_folder_take(int directory_fd, const char *name)
{
	for (unsigned turn = 0; turn < TURNS_MAX; turn++) {
		int fd = make_folder(directory_fd);
		if (fd == -ESTALE)
			continue;
		if (fd < 0)
			return fd;
		const int r = removal_rename(directory_fd, name, fd, name);
		if (r == 0)
			return fd;
		const bool again = r == -ENOENT && is_removed(fd);
		removal_folder_close(directory_fd, fd);
		if (!again)
			return r;
	}
	return -EBUSY;
}

int removal_folder_give(int folder_fd, int directory_fd, const char *name)
{
	return removal_rename(folder_fd, name, directory_fd, name);
}

void removal_folder_close(int directory_fd, int folder_fd)
{
	struct stat st;
	/* It may have been renamed, and another one may have its name: that stays unless empty. */
	if (fstat(folder_fd, &st) == 0 && st.st_nlink)
		unlinkat(directory_fd, REMOVAL_FOLDER, AT_REMOVEDIR);
	close(folder_fd);
}

static int tell_stuck(const char *name, int error, struct problem *ret)
{
	if (error == -EEXIST)
		problem_set(ret,
			"holds the file %s, which a run that was cut short was about to remove, and "
			"another file has its name by now: rename or remove one of the two",
			quote(name).text);
	else
		problem_set(ret,
			"holds the file %s, which a run that was cut short was about to remove, and "
			"it cannot be put back under its name: %s",
			quote(name).text, strerror(-error));
	return error;
}

/* All that is in the locked folder; the last error. */
static int give_all(int directory_fd, int folder_fd, struct problem *ret_problem)
{
	struct names names = {0};
	int result = listing_read(folder_fd, false, &names);
	if (result < 0)
		problem_set(ret_problem, "cannot be listed: %s", strerror(-result));
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names_get(&names, i);
		const int r = names_tag(&names, i) == LISTING_OTHER
				      ? removal_folder_give(folder_fd, directory_fd, name)
				      : -EINVAL; /* none that we put there */
		if (r < 0 && r != -ENOENT)
			result = tell_stuck(name, r, ret_problem);
	}
	names_clear(&names);
	return result;
}

int removal_recover(int directory_fd, struct problem *ret_problem)
{
	int fd = open_folder(directory_fd);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	int r = fd < 0 ? fd : lock_folder(fd, LOCK_EX);
	if (r == -EBUSY) {
		close(fd);
		return 1;
	}
	if (r < 0) {
		problem_set(ret_problem,
			"cannot be opened and locked, to put back what may be in it: %s",
			strerror(-r));
		if (fd >= 0)
			close(fd);
		return r;
	}
	r = give_all(directory_fd, fd, ret_problem);
	removal_folder_close(directory_fd, fd);
	return r;
}
