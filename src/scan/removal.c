#include "scan/removal.h"
#include "base/path.h"
#include "base/quote.h"
#include "scan/names.h"
#include "scan/open.h"
#include "scan/removal_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum removal_end kept_because(struct problem *ret, const char *sentence)
{
	problem_set(ret, "%s", sentence);
	return REMOVAL_KEPT;
}

static enum removal_end removal_failed(struct problem *ret, const char *what, int error)
{
	problem_set(ret, "%s: %s", what, strerror(-error));
	return REMOVAL_FAILED;
}

/* Whether this name still leads to the open file. */
static bool is_named(int directory_fd, const char *name, const struct stat *file)
{
	struct stat named;
	return fstatat(directory_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == file->st_dev && named.st_ino == file->st_ino;
}

/* A lease says whether somebody has the file open for writing, and as long as it is held it tells
 * of whoever wants to. */
enum write_lease {
	LEASE_HELD,
	LEASE_REFUSED, /* it is open for writing */
	LEASE_UNKNOWN, /* this user, or this file system, gets no leases */
};

static enum write_lease take_lease(int fd)
{
	/* SIGIO, which is sent otherwise when the lease is asked back, would end the process. */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return LEASE_UNKNOWN;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
		return LEASE_HELD;
	return errno == EAGAIN ? LEASE_REFUSED : LEASE_UNKNOWN;
}

static void drop_lease(int fd, enum write_lease lease)
{
	if (lease == LEASE_HELD)
		fcntl(fd, F_SETLEASE, F_UNLCK);
}

static enum removal_end keep_open(struct problem *ret)
{
	return kept_because(ret,
		"another process has it open for writing; a later run removes it once it is "
		"closed, and --delete-open all the same");
}

static enum removal_end check_owner(
	const struct removal *removal, const struct stat *file, struct problem *ret)
{
	struct stat folder;
	if (removal->foreign)
		return REMOVAL_DONE;
	if (fstat(removal->directory_fd, &folder) < 0)
		return removal_failed(ret, "its folder cannot be looked at", -errno);
	if (file->st_uid == folder.st_uid || file->st_uid == removal->owner)
		return REMOVAL_DONE;
	return kept_because(ret, "it belongs to another user than its folder and the SOURCE do; "
				 "--delete-foreign removes it all the same");
}

/* The rules, and that the file is still what was proven, under its name. */
static enum removal_end check_file(const struct removal *removal, struct problem *ret)
{
	struct stat file;
	struct file_state now;
	if (fstat(removal->fd, &file) < 0)
		return removal_failed(ret, "it cannot be looked at", -errno);
	file_state_from(&file, &now);
	if (!file_state_equal(&now, &removal->state))
		return kept_because(ret, "it has changed since its content was proven");
	if (!is_named(removal->directory_fd, removal->name, &file))
		return kept_because(ret, "its name is gone, or is another file's by now");
	if (file.st_nlink > 1 && !removal->linked)
		return kept_because(
			ret, "it has other names (hard links); --delete-linked removes this one");
	return check_owner(removal, &file, ret);
}

enum removal_end removal_check(const struct removal *removal, struct problem *ret_problem)
{
	const enum write_lease lease = take_lease(removal->fd);
	drop_lease(removal->fd, lease);
	if (lease == LEASE_REFUSED && !removal->open)
		return keep_open(ret_problem);
	return check_file(removal, ret_problem);
}

/* In the folder of ours, where nobody reaches it by its name. The rename itself may have changed
 * the ctime, so that says nothing now. */
static bool is_still_the_file(const struct removal *removal, int folder_fd, enum write_lease lease)
{
	struct stat file;
	struct file_state now;
	if (fstat(removal->fd, &file) < 0)
		return false;
	file_state_from(&file, &now);
	now.ctime_ns = removal->state.ctime_ns;
	return file_state_equal(&now, &removal->state) && (file.st_nlink == 1 || removal->linked) &&
	       is_named(folder_fd, removal->name, &file) &&
	       (lease != LEASE_HELD || fcntl(removal->fd, F_GETLEASE) == F_RDLCK);
}

/* Under its name again. Sets the sentence to another one if that cannot be. */
static enum removal_end put_back(
	const struct removal *removal, int folder_fd, enum removal_end end, struct problem *ret)
{
	const int error = removal_folder_give(folder_fd, removal->directory_fd, removal->name);
	if (!error || error == -ENOENT)
		return end;
	problem_set(ret,
		"it is now %s/%s in its folder, since it could not be put back under its name: %s",
		REMOVAL_FOLDER, quote(removal->name).text,
		error == -EEXIST ? "another file has taken that" : strerror(-error));
	return REMOVAL_FAILED;
}

/* Makes the folders of target and opens the last one. The descriptor or -errno. */
static int open_target_folder(int directory_fd, const char *target)
{
	char name[NAME_MAX + 1];
	int fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
	for (const char *slash; fd >= 0 && (slash = strchr(target, '/')); target = slash + 1) {
		const size_t len = (size_t)(slash - target);
		if (!len)
			continue;
		if (len > NAME_MAX) {
			close(fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, target, len);
		name[len] = '\0';
		int next = mkdirat(fd, name, 0700) < 0 && errno != EEXIST
				   ? -errno
				   : open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	return fd < 0 ? -errno : fd;
}

static int move_away(const struct removal *removal, int folder_fd)
{
	if (open_leads_out(removal->target))
		return -EXDEV;
	int target_fd = open_target_folder(removal->target_fd, removal->target);
	if (target_fd < 0)
		return target_fd;
	const int error =
		removal_rename(folder_fd, removal->name, target_fd, path_name(removal->target));
	close(target_fd);
	return error;
}

static int take_away(const struct removal *removal, int folder_fd)
{
	if (removal->target_fd >= 0)
		return move_away(removal, folder_fd);
	return unlinkat(folder_fd, removal->name, 0) < 0 ? -errno : 0;
}

static enum removal_end tell_not_taken(
	const struct removal *removal, int error, struct problem *ret)
{
	if (removal->target_fd < 0)
		return removal_failed(ret, "it cannot be removed", error);
	if (error == -EEXIST) {
		problem_set(ret,
			"it is not moved, since there is another file at %s below --move-to",
			quote(removal->target).text);
		return REMOVAL_FAILED;
	}
	if (error == -EXDEV) {
		problem_set(ret, "it is not moved, since --move-to is on another file system");
		return REMOVAL_FAILED;
	}
	return removal_failed(ret, "it cannot be moved", error);
}

/* The file is in our folder: from there it leaves for good, or goes back. */
static enum removal_end finish_removal(
	const struct removal *removal, int folder_fd, enum write_lease lease, struct problem *ret)
{
	if (!is_still_the_file(removal, folder_fd, lease))
		return put_back(removal, folder_fd,
			kept_because(ret,
				"it was written to, opened for writing or replaced while it was "
				"about to be removed"),
			ret);
	const int error = take_away(removal, folder_fd);
	if (!error)
		return REMOVAL_DONE;
	return put_back(removal, folder_fd, tell_not_taken(removal, error, ret), ret);
}

static enum removal_end tell_not_aside(int error, struct problem *ret)
{
	switch (error) {
	case -EINVAL:
	case -ENOSYS:
	case -EOPNOTSUPP:
		problem_set(ret, "it is not removed, since its file system cannot rename without "
				 "replacing (NFS, for instance); remove it by other means, which "
				 "may ask s3once proven");
		return REMOVAL_FAILED;
	case -EEXIST:
		problem_set(ret,
			"it is not removed, since a file of its name is still in %s beside it: look "
			"at both, and put that one back under a name of its own",
			REMOVAL_FOLDER);
		return REMOVAL_FAILED;
	case -EBUSY:
		return kept_because(ret, "another run is just putting files back in its folder");
	case -ENOENT:
		return kept_because(ret, "it is gone: somebody else removed or renamed it");
	default:
		return removal_failed(ret, "it cannot be renamed before it is removed", error);
	}
}

static enum removal_end remove_leased(
	const struct removal *removal, enum write_lease lease, struct problem *ret)
{
	if (lease == LEASE_REFUSED && !removal->open)
		return keep_open(ret);
	enum removal_end end = check_file(removal, ret);
	if (end != REMOVAL_DONE)
		return end;
	int folder_fd = removal_folder_take(removal->directory_fd, removal->name);
	if (folder_fd < 0)
		return tell_not_aside(folder_fd, ret);
	end = finish_removal(removal, folder_fd, lease, ret);
	removal_folder_close(removal->directory_fd, folder_fd);
	return end;
}

enum removal_end removal_run(const struct removal *removal, struct problem *ret_problem)
{
	const enum write_lease lease = take_lease(removal->fd);
	const enum removal_end end = remove_leased(removal, lease, ret_problem);
	drop_lease(removal->fd, lease);
	return end;
}
