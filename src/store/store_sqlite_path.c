#include "store/store_sqlite_path.h"
#include "base/path.h"
#include "store/state_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Includes cluster file systems. FUSE is not here: it may be the network (sshfs) or a local disk
 * (ntfs-3g, encfs), and its type does not say which. */
static const unsigned long remote_types[] = {
	0x6969,     /* NFS */
	0x517b,     /* SMB */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x564c,     /* NCP */
	0x01021997, /* 9P */
	0x00c36400, /* Ceph */
	0x5346414f, /* OpenAFS */
	0x6b414653, /* kAFS */
	0x73757245, /* Coda */
	0x0bd00bd0, /* Lustre */
	0x01161970, /* GFS2 */
	0x7461636f, /* OCFS2 */
	0x47504653, /* GPFS */
	0x19830326, /* BeeGFS */
	0xaad7aaea, /* PanFS */
};

bool sqlite_path_is_remote(unsigned long type)
{
	for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++)
		if (remote_types[i] == type)
			return true;
	return false;
}

/* Under DynamicUser= the user of the units has a name only while one of them runs. */
static void say_whose(const char *name, const char *what, uid_t uid, struct problem *ret_problem)
{
	if (strstr(name, "/var/lib/s3once/") || strstr(name, "/var/lib/private/s3once/"))
		problem_set(ret_problem,
			"%s: %s to another user (uid %u): these are the marks of the systemd "
			"units, whose user is s3once; root reads them with --job NAME, and changes "
			"them by systemd-run, as docs/audit.md shows",
			name, what, (unsigned)uid);
	else
		problem_set(ret_problem,
			"%s: %s to another user (uid %u): run as that user, or keep the marks in a "
			"folder of your own; root can read it with s3once status",
			name, what, (unsigned)uid);
}

/* Others who can write here could put a write-ahead log beside the file, or swap the file. */
static int check_folder(int fd, uid_t owner, const char *name, struct problem *ret_problem)
{
	struct stat st;
	struct statfs fs;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0) {
		int e = errno;
		problem_set(ret_problem, "%s: %s", name, strerror(e));
		return -e;
	}
	if (st.st_uid != owner && st.st_uid != 0)
		say_whose(name, "its folder belongs", st.st_uid, ret_problem);
	else if (st.st_mode & 022)
		problem_set(ret_problem,
			"%s: others can write to its folder (mode %04o): use a folder of your "
			"own, or "
			"chmod go-w it",
			name, (unsigned)st.st_mode & 07777);
	else if (sqlite_path_is_remote((unsigned long)fs.f_type & 0xffffffff))
		problem_set(ret_problem,
			"%s: is on a network file system, where SQLite's locks cannot be relied "
			"on: use a "
			"local folder, or a DynamoDB table (--marks dynamodb:TABLE)",
			name);
	else
		return 0;
	return -EPERM;
}

/* Made by mknod and looked at by fstatat, never opened here: closing a descriptor of our own would
 * drop the POSIX locks of every SQLite connection that this process has on the file. */
static int make_file(int folder, const char *base)
{
	if (mknodat(folder, base, S_IFREG | 0600, 0) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchmodat(folder, base, 0600, 0) < 0 ? -errno : 0;
}

static int check_file(
	int folder, const char *base, uid_t owner, const char *name, struct problem *ret_problem)
{
	struct stat st;
	int r = owner == geteuid() ? make_file(folder, base) : 0;

	if (!r && fstatat(folder, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r) {
		problem_set(ret_problem,
			"%s: cannot be made: %s; give a path in a folder that this user may "
			"write to",
			name, strerror(-r));
		return r;
	}
	if (S_ISLNK(st.st_mode))
		problem_set(ret_problem, "%s: is a symbolic link: give the file itself", name);
	else if (!S_ISREG(st.st_mode))
		problem_set(ret_problem, "%s: is not a regular file: give another path", name);
	else if (st.st_uid != owner)
		say_whose(name, "belongs", st.st_uid, ret_problem);
	else if (st.st_mode & 022)
		problem_set(ret_problem, "%s: others can write to it (mode %04o): chmod go-w it",
			name, (unsigned)st.st_mode & 07777);
	else if (st.st_size == 1) /* SQLite would take it for an empty one and write over it */
		problem_set(ret_problem,
			"%s: is not an SQLite file: give another path; if these are damaged marks, move the file away, and the next run compares each file with what S3 holds",
			name);
	else
		return 0;
	return -EPERM;
}

/* The path without symlinks, as SQLITE_OPEN_NOFOLLOW wants it; the caller frees it. */
static int real_path(const char *folder, const char *base, char **ret)
{
	char *real = realpath(folder, NULL);

	if (!real)
		return -errno;
	int n = asprintf(ret, "%s/%s", strcmp(real, "/") != 0 ? real : "", base);
	free(real);
	return n < 0 ? -ENOMEM : 0;
}

static bool is_safe_log(int folder, const char *base, const char *suffix, uid_t owner)
{
	char name[NAME_MAX + 1];
	struct stat st;

	if ((size_t)snprintf(name, sizeof name, "%s%s", base, suffix) >= sizeof name)
		return false;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISREG(st.st_mode) && st.st_uid == owner && st.st_nlink == 1;
}

/* SQLite as root gives the log and its index to the owner of the file: they must be no other files
 * that the owner has linked there. */
static int check_logs(
	int folder, const char *base, uid_t owner, const char *name, struct problem *ret_problem)
{
	if (is_safe_log(folder, base, "-wal", owner) && is_safe_log(folder, base, "-shm", owner))
		return 0;
	problem_set(ret_problem,
		"%s: its -wal or -shm file is not a plain file of its owner (uid %u): read it as "
		"that user",
		name, (unsigned)owner);
	return -EPERM;
}

/* The owner that the file must have. This is our user, or any user if root only reads. */
static uid_t owner_of(int folder, const char *base, bool only_read)
{
	struct stat st;
	const uid_t self = geteuid();

	if (self != 0 || !only_read || fstatat(folder, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return self;
	return st.st_uid;
}

static int check_path(
	int folder, const char *base, uid_t owner, const char *name, struct problem *ret_problem)
{
	int r = check_folder(folder, owner, name, ret_problem);

	if (!r)
		r = check_file(folder, base, owner, name, ret_problem);
	if (!r && owner != geteuid())
		r = check_logs(folder, base, owner, name, ret_problem);
	return r;
}

static int secure(const char *folder, const char *base, bool only_read, const char *name,
	struct sqlite_path *ret, struct problem *ret_problem)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int e = errno;
		problem_set(ret_problem,
			"%s: its folder cannot be opened: %s; correct the path, or make the folder "
			"first",
			name, strerror(e));
		return -e;
	}
	const uid_t owner = owner_of(fd, base, only_read);
	int r = check_path(fd, base, owner, name, ret_problem);
	close(fd);
	ret->is_anothers = owner != geteuid();
	if (!r && (r = real_path(folder, base, &ret->real)))
		problem_set(ret_problem, "%s: %s", name, strerror(-r));
	return r;
}

/* Only our own folder is created. A mistyped path must not begin with empty marks. */
static bool is_ours_to_make(const char *path, const char *base)
{
	char own[4096];
	return !state_path(base, own, sizeof own) && strcmp(path, own) == 0;
}

int sqlite_path_secure(const char *path, bool only_read, const char *name, struct sqlite_path *ret,
	struct problem *ret_problem)
{
	const char *base = path_name(path);
	char *folder = path_folder(path);
	if (!folder)
		return -ENOMEM;
	int r = -EINVAL;
	if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		problem_set(ret_problem, "%s: names a folder: give a file for the marks", name);
	else if (is_ours_to_make(path, base) && (r = state_make_folders(path)))
		problem_set(ret_problem,
			"%s: its folder cannot be made: %s; give a path in a folder that this "
			"user may write to, or correct HOME or XDG_STATE_HOME if the path comes "
			"from there",
			name, strerror(-r));
	else
		r = secure(folder, base, only_read, name, ret, ret_problem);
	free(folder);
	return r;
}
