/* Removes or moves a file whose content was proven to be in S3. A run calls it for each such file.
 * The file is first renamed into our folder REMOVAL_FOLDER beside it. There it is removed or moved
 * if it is exactly the proven file; otherwise it is renamed back. No rename ever replaces a file. A
 * scan that meets this folder calls removal_recover(), which puts back the files of an interrupted
 * removal. */
#include "scan/removal.h"
#include "base/files.h"
#include "scan/names.h"
#include "scan/open.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most attempts to enter the folder. An attempt fails if another process has just removed the
 * folder because it was empty. */
#define ATTEMPTS_MAX 100

/* Renames a file without replacing another one. Returns 0, -EEXIST if to_name is taken, -EINVAL or
 * -ENOSYS if the file system cannot do this, or another -errno. */
static int rename_to_free(int from_fd, const char *from_name, int to_fd, const char *to_name)
{
	return renameat2(from_fd, from_name, to_fd, to_name, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* Opens our folder (REMOVAL_FOLDER) in this directory. Returns its descriptor or -errno. */
static int open_folder(int directory_fd)
{
	int fd = openat(directory_fd, REMOVAL_FOLDER,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Makes our folder if it is missing, and takes a shared lock on it, together with other processes
 * that remove files there. Returns its descriptor for leave_folder(); -EWOULDBLOCK if another
 * process has an exclusive lock; -ESTALE if the folder was removed again meanwhile; or -EPERM if
 * other users own it or can write to it, since they could replace the files in it at any time. */
static int enter_folder(int directory_fd)
{
	struct stat st;
	if (mkdirat(directory_fd, REMOVAL_FOLDER, 0700) < 0 && errno != EEXIST)
		return -errno;
	const int fd = open_folder(directory_fd);
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	const bool others_can_write = r == 0 && (st.st_uid != geteuid() || (st.st_mode & 022));
	if (others_can_write)
		r = -EPERM;
	if (r == 0 && flock(fd, LOCK_SH | LOCK_NB) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* Removes our folder if nothing is in it, and ends the lock. */
static void leave_folder(int directory_fd, int folder_fd)
{
	struct stat st;
	/* If st_nlink is 0, the folder was removed already. If it was renamed, another folder may
	 * have its name by now; unlinkat() removes that one only if it is empty. */
	if (fstat(folder_fd, &st) == 0 && st.st_nlink)
		unlinkat(directory_fd, REMOVAL_FOLDER, AT_REMOVEDIR);
	close(folder_fd);
}

/* Enters our folder in this directory, and renames the file into it under its own name. Returns the
 * folder's descriptor for leave_folder(); -EWOULDBLOCK if another process is putting files back, or
 * if the folder was removed each time; -EPERM if the folder is not ours; or another -errno. */
static int move_into_folder(int directory_fd, const char *name)
{
	struct stat st;
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		const int fd = enter_folder(directory_fd);
		if (fd == -ESTALE)
			continue;
		if (fd < 0)
			return fd;
		const int r = rename_to_free(directory_fd, name, fd, name);
		if (r == 0)
			return fd;
		/* If the file is still there, another process has removed the folder before the
		 * rename, and the next attempt makes it again. The folder's own st_nlink would be
		 * less reliable: file systems in user space may not update it. */
		const bool is_there = fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		leave_folder(directory_fd, fd);
		if (r != -ENOENT || !is_there)
			return r;
	}
	return -EWOULDBLOCK;
}

/* Renames a file that an interrupted removal has left in our folder back to its name. Returns 0,
 * even if another process has taken the file out meanwhile, or -errno with a sentence. */
static int put_back_leftover(
	int directory_fd, int folder_fd, const char *name, struct problem *ret_problem)
{
	const int error = rename_to_free(folder_fd, name, directory_fd, name);
	if (!error || error == -ENOENT)
		return 0;
	return problem_error(ret_problem, error,
		"holds the file %s, which a run that was cut short was about to remove, and %s%s",
		quote(name).text,
		error == -EEXIST
			? "another file has its name by now: rename or remove one of the two"
			: "it cannot be put back under its name: ",
		error == -EEXIST ? "" : strerror(-error));
}

enum recovery { PUT_BACK, ONLY_REPORT };

/* Puts back all files in our folder, on which the caller has an exclusive lock. With ONLY_REPORT
 * there is no lock, no file is put back, and each file is an error. Returns 0, or the last error
 * with a sentence. */
static int recover_files(
	int directory_fd, int folder_fd, enum recovery recovery, struct problem *ret_problem)
{
	struct names names = {0};
	const bool follows_links =
		false; /* a link is reported, since no removal has put it there */
	int result = names_read(folder_fd, follows_links, &names);
	if (result < 0)
		problem_set(ret_problem, "cannot be listed: %s", strerror(-result));
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names_get(&names, i);
		int r = 0;
		if (names_tag(&names, i) != NAMES_OTHER) /* no removal has put it there */
			r = problem_error(ret_problem, -EINVAL,
				"holds %s, which is not a file: remove it", quote(name).text);
		else if (recovery == ONLY_REPORT)
			r = problem_error(ret_problem, -EROFS,
				"holds the file %s, which a run that was cut short was about to "
				"remove, and the next run puts it back, unless another run is "
				"working on it: run push once",
				quote(name).text);
		else
			r = put_back_leftover(directory_fd, folder_fd, name, ret_problem);
		if (r < 0)
			result = r;
	}
	names_clear(&names);
	return result;
}

/* Whether this error of open_folder() means that there is no folder of ours: nothing has its name,
 * or a file or a symlink has it. */
static bool error_means_no_folder(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP;
}

/* Sets the sentence for our folder, which could not be opened or locked. Returns the error. */
static int explain_unopened(int error, struct problem *ret_problem)
{
	return problem_error(ret_problem, error,
		"cannot be opened and locked, to put back what may be in it: %s", strerror(-error));
}

int removal_recover(int directory_fd, struct problem *ret_problem)
{
	const int fd = open_folder(directory_fd);
	if (error_means_no_folder(fd))
		return 0;
	if (fd < 0)
		return explain_unopened(fd, ret_problem);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const int error = -errno;
		close(fd);
		return error == -EWOULDBLOCK ? 1 : explain_unopened(error, ret_problem);
	}
	const int r = recover_files(directory_fd, fd, PUT_BACK, ret_problem);
	leave_folder(directory_fd, fd);
	return r;
}

int removal_find_left(int directory_fd, struct problem *ret_problem)
{
	const int fd = open_folder(directory_fd);
	if (error_means_no_folder(fd))
		return 0;
	if (fd < 0)
		return explain_unopened(fd, ret_problem);
	const int r = recover_files(directory_fd, fd, ONLY_REPORT, ret_problem);
	close(fd);
	return r;
}

/* Whether this name still points to the open file. */
static bool still_has_name(int directory_fd, const char *name, const struct stat *file)
{
	struct stat named;
	return fstatat(directory_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == file->st_dev && named.st_ino == file->st_ino;
}

/* Returns REMOVAL_DONE if the file may be removed: under its name is still the proven file, and no
 * rule keeps it. Otherwise it returns REMOVAL_KEPT, NEVER or FAILED with a sentence. */
static enum removal_end check_file(
	const struct removal *removal, bool is_being_written, struct problem *ret)
{
	struct stat file, folder;
	struct file_state now;
	if (is_being_written && !removal->takes_open)
		return problem_error(ret, REMOVAL_KEPT,
			"another process has it open for writing; a later run removes it once it "
			"is closed, and --remove-even open all the same");
	if (fstat(removal->fd, &file) < 0)
		return problem_error(
			ret, REMOVAL_FAILED, "it cannot be looked at: %s", strerror(errno));
	file_state_from(&file, &now);
	if (!file_state_equal(&now, &removal->state))
		return problem_error(
			ret, REMOVAL_KEPT, "it has changed since its content was proven");
	if (!still_has_name(removal->directory_fd, removal->name, &file))
		return problem_error(
			ret, REMOVAL_KEPT, "its name is gone, or is another file's by now");
	if (file.st_nlink > 1 && !removal->takes_linked)
		return problem_error(ret, REMOVAL_NEVER,
			"it has other names (hard links); --remove-even linked removes this one");
	if (removal->takes_foreign)
		return REMOVAL_DONE;
	if (fstat(removal->directory_fd, &folder) < 0)
		return problem_error(
			ret, REMOVAL_FAILED, "its folder cannot be looked at: %s", strerror(errno));
	if (file.st_uid == folder.st_uid || file.st_uid == removal->owner)
		return REMOVAL_DONE;
	return problem_error(ret, REMOVAL_NEVER,
		"it belongs to another user than its folder and the SOURCE do; "
		"--remove-even foreign removes it all the same");
}

/* Whether the file in our folder, where its old name no longer reaches it, is still the proven one.
 * Its ctime is not compared, since the rename may have changed it. */
static bool is_still_the_file(const struct removal *removal, int folder_fd, enum write_lease lease)
{
	struct stat file;
	struct file_state now;
	if (fstat(removal->fd, &file) < 0)
		return false;
	file_state_from(&file, &now);
	now.ctime_ns = removal->state.ctime_ns;
	if (!file_state_equal(&now, &removal->state))
		return false;
	if (file.st_nlink > 1 && !removal->takes_linked)
		return false;
	if (!still_has_name(folder_fd, removal->name, &file))
		return false;
	/* A lease that we hold is no longer F_RDLCK if another process has opened the file for
	 * writing since. This is the last check, so that it also notices an open during the
	 * others. */
	return lease != LEASE_HELD || fcntl(removal->fd, F_GETLEASE) == F_RDLCK;
}

/* Renames the file from our folder back to its name. Returns `end`, the reason why it stays, or
 * REMOVAL_FAILED with another sentence if it cannot be renamed. If the file is no longer in our
 * folder, another process has taken it out, and nothing is left to put back. */
static enum removal_end put_back(
	const struct removal *removal, int folder_fd, enum removal_end end, struct problem *ret)
{
	const int error =
		rename_to_free(folder_fd, removal->name, removal->directory_fd, removal->name);
	if (!error || error == -ENOENT)
		return end;
	return problem_error(ret, REMOVAL_FAILED,
		"it is now %s/%s in its folder, since it could not be put back under its name: %s",
		REMOVAL_FOLDER, quote(removal->name).text,
		error == -EEXIST ? "another file has taken that" : strerror(-error));
}

/* Removes the file from our folder, or moves it to its target. Returns 0 or -errno. */
static int remove_or_move(const struct removal *removal, int folder_fd)
{
	if (removal->target_fd < 0)
		return unlinkat(folder_fd, removal->name, 0) < 0 ? -errno : 0;
	if (path_leads_out(removal->target))
		return -EXDEV;
	char *folder = path_folder(removal->target);
	const int target_fd = folder ? open_beneath_by_components(removal->target_fd, folder,
					       O_PATH | O_DIRECTORY | O_CREAT)
				     : -ENOMEM;
	free(folder);
	if (target_fd < 0)
		return target_fd;
	const int error =
		rename_to_free(folder_fd, removal->name, target_fd, path_name(removal->target));
	close(target_fd);
	return error;
}

/* Sets the sentence for a file in our folder that remove_or_move() could not remove or move.
 * Returns REMOVAL_FAILED. */
static enum removal_end explain_failed_removal(
	const struct removal *removal, int error, struct problem *ret)
{
	if (removal->target_fd < 0)
		problem_set(ret, "it cannot be removed: %s", strerror(-error));
	else if (error == -EEXIST)
		problem_set(ret,
			"it is not moved, since there is another file at %s below --move-to",
			quote(removal->target).text);
	else if (error == -EXDEV)
		problem_set(
			ret, "it is not moved, since --move-to is on another file system or mount");
	else
		problem_set(ret, "it cannot be moved: %s%s", strerror(-error),
			error == -EACCES ? "; give this user write permission on the folders of "
					   "--move-to"
					 : "");
	return REMOVAL_FAILED;
}

/* Returns the folder of a path, quoted. */
static struct quoted quote_folder(const char *path)
{
	const size_t n = (size_t)(path_name(path) - path);
	return n ? quote_bytes(path, n > 1 ? n - 1 : 1) : quote(".");
}

/* Sets the sentence for a file that move_into_folder() could not rename because of this -errno.
 * Returns REMOVAL_KEPT or REMOVAL_FAILED. */
static enum removal_end explain_failed_rename(
	const struct removal *removal, int error, struct problem *ret)
{
	if (error == -EWOULDBLOCK)
		return problem_error(
			ret, REMOVAL_KEPT, "another run is putting files back in its folder");
	if (error == -ENOENT)
		return problem_error(
			ret, REMOVAL_KEPT, "it is gone: another process removed or renamed it");
	if (error == -EEXIST)
		problem_set(ret,
			"it is not removed, since a file of its name is still in %s beside it: look "
			"at both, and put that one back under a name of its own",
			REMOVAL_FOLDER);
	else if (error == -EINVAL || error == -ENOSYS || error == -EOPNOTSUPP)
		problem_set(ret, "it is not removed, since its file system cannot rename without "
				 "replacing (NFS, for instance); remove it by other means, which "
				 "may ask s3once proven");
	else if (error == -EACCES || error == -EPERM)
		problem_set(ret,
			"it is not removed, since this user (uid %u) may not rename it in its "
			"folder %s (%s): give this user write permission on the folder",
			(unsigned)geteuid(), quote_folder(removal->path).text, strerror(-error));
	else
		problem_set(ret, "it cannot be renamed before it is removed: %s", strerror(-error));
	return REMOVAL_FAILED;
}

/* Whether the file is to be moved to a place where another file is. */
static bool target_exists(const struct removal *removal)
{
	struct stat st;
	return removal->target_fd >= 0 &&
	       fstatat(removal->target_fd, removal->target, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Checks the file, and that no other file has the name to which it is to be moved. Returns as
 * removal_check(). remove_or_move() would find such a file, too, but only after the file has been
 * renamed, and s3once watch would take its return for a new file. */
static enum removal_end check_file_and_target(
	const struct removal *removal, bool is_being_written, struct problem *ret)
{
	const enum removal_end end = check_file(removal, is_being_written, ret);
	if (end == REMOVAL_DONE && target_exists(removal))
		return explain_failed_removal(removal, -EEXIST, ret);
	return end;
}

enum removal_end removal_check(const struct removal *removal, struct problem *ret_problem)
{
	return check_file_and_target(removal, file_is_being_written(removal->fd), ret_problem);
}

/* Checks the file, and removes or moves it, under the write lease if there is one. Returns as
 * removal_run(). */
static enum removal_end remove_leased(
	const struct removal *removal, enum write_lease lease, struct problem *ret)
{
	enum removal_end end = check_file_and_target(removal, lease == LEASE_REFUSED, ret);
	if (end != REMOVAL_DONE)
		return end;
	const int folder_fd = move_into_folder(removal->directory_fd, removal->name);
	if (folder_fd < 0)
		return explain_failed_rename(removal, folder_fd, ret);
	/* The file is in our folder now: it is removed or moved from there, or put back. */
	const bool is_same = is_still_the_file(removal, folder_fd, lease);
	const int error = is_same ? remove_or_move(removal, folder_fd) : 0;
	if (!is_same)
		end = problem_error(ret, REMOVAL_KEPT,
			"it was written to, opened for writing or replaced while "
			"it was about to be removed");
	else if (error)
		end = explain_failed_removal(removal, error, ret);
	if (end != REMOVAL_DONE)
		end = put_back(removal, folder_fd, end, ret);
	leave_folder(removal->directory_fd, folder_fd);
	return end;
}

enum removal_end removal_run(const struct removal *removal, struct problem *ret_problem)
{
	const enum write_lease lease = write_lease_take(removal->fd);
	const enum removal_end end = remove_leased(removal, lease, ret_problem);
	write_lease_drop(removal->fd, lease);
	return end;
}
