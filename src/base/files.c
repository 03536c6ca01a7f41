/* File functions that several rooms use: reading a file that a user has named, making a file
 * without a name, reading and writing a whole buffer, replacing a file, and paths. */
#include "base/files.h"
#include "base/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int named_file_kind(const struct stat *st)
{
	const bool is_dev_null = S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
	if (S_ISREG(st->st_mode) || is_dev_null)
		return 0;
	return S_ISDIR(st->st_mode) ? -EISDIR : -ENOTSUP;
}

int named_file_read(const char *path, struct text *ret, struct stat *ret_status)
{
	char buf[4096];
	struct stat status = {0};
	ssize_t n = -1; /* as read(2) returns: 0 at the end of the file */
	/* With O_NONBLOCK a FIFO is opened at once, and then refused by its kind. */
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENXIO ? -ENOTSUP : -errno; /* opening a socket fails with ENXIO */
	int error = fstat(fd, &status) ? -errno : named_file_kind(&status);
	while (!error && n != 0) {
		n = read(fd, buf, sizeof buf);
		text_add_bytes(ret, buf, n > 0 ? (size_t)n : 0);
		error = n < 0 && errno != EINTR ? -errno : ret->error;
	}
	close(fd);
	OPENSSL_cleanse(buf, sizeof buf); /* now ret has the only copy */
	if (ret_status)
		*ret_status = status;
	return error == -EMSGSIZE ? -EFBIG : error;
}

const char *named_file_error(int error)
{
	return error == -ENOTSUP ? "it is not a regular file" : strerror(-error);
}

bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;
	return strcmp(path_name(a), path_name(b)) == 0 && !stat(a, &of_a) && !stat(b, &of_b) &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

int make_unnamed_file(const char *folder)
{
	char path[4096];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	const int n = snprintf(path, sizeof path, "%s/s3once-XXXXXX", folder);
	if (n < 0 || (size_t)n >= sizeof path)
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path); /* the file stays until it is closed */
	return fd;
}

const char *temporary_folder(void)
{
	const char *folder = getenv("SQLITE_TMPDIR");
	if (!folder || !*folder)
		folder = getenv("TMPDIR");
	return folder && *folder ? folder : "/var/tmp";
}

void read_link(const char *path, char *ret, size_t size)
{
	const ssize_t n = readlink(path, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
}

long read_at(int fd, void *buffer, size_t n, uint64_t offset)
{
	for (size_t at = 0; at < n;) {
		const ssize_t got = pread(fd, (char *)buffer + at, n - at, (off_t)(offset + at));
		/* The caller asks for bytes within the size that it has seen. So the file has
		 * become shorter, and is no longer that version. */
		if (got == 0)
			return -ESTALE;
		if (got < 0 && errno != EINTR)
			return -errno;
		at += got > 0 ? (size_t)got : 0;
	}
	return (long)n;
}

int64_t file_creation_ns(int fd)
{
	struct statx about = {0};
	const int error = statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &about);
	const struct timespec made = {
		.tv_sec = about.stx_btime.tv_sec, .tv_nsec = about.stx_btime.tv_nsec};
	return error ? 0 : clock_to_ns(made);
}

int write_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	while (n) {
		const ssize_t written = write(fd, at, n);
		if (written < 0 && errno != EINTR)
			return -errno;
		at += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}

int replace_file(
	const char *path, const void *bytes, size_t n, mode_t mode, enum replacement replacement)
{
	char *temporary;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	const int fd = mkostemp(temporary, O_CLOEXEC);
	int error = fd < 0 ? -errno : write_all(fd, bytes, n);
	if (!error && (fchmod(fd, mode) || (replacement == REPLACE_SYNCED && fsync(fd))))
		error = -errno;
	if (fd >= 0 && close(fd) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(temporary);
	free(temporary);
	return error;
}

const char *path_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

char *path_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* Returns the length of a path of n bytes without the slashes at its end. The root stays "/". */
static size_t drop_end_slashes(const char *path, size_t n)
{
	while (n > 1 && path[n - 1] == '/')
		n--;
	return n;
}

/* Returns the length of the folder of a path of n bytes: 1 for the root, and 0 for the working
 * directory. */
static size_t folder_length(const char *path, size_t n)
{
	while (n && path[n - 1] != '/') /* the name */
		n--;
	return drop_end_slashes(path, n);
}

/* Returns the absolute path without links of the first n bytes of the path, where none are the
 * working directory. Returns NULL if this cannot be reached. The caller frees it. */
static char *resolve_beginning(const char *path, size_t n)
{
	char *beginning = n ? strndup(path, n) : strdup(".");
	char *real = beginning ? realpath(beginning, NULL) : NULL;
	free(beginning);
	return real;
}

char *path_resolve_existing(const char *path)
{
	const size_t n = drop_end_slashes(path, strlen(path));
	/* The length of the beginning that is tried, from the whole path upwards. */
	size_t resolved = n;
	char *real, *ret;
	while (!(real = resolve_beginning(path, resolved))) {
		const bool is_top = resolved == 0 || (resolved == 1 && *path == '/');
		if (is_top)
			break;
		resolved = folder_length(path, resolved);
	}
	size_t rest = resolved;
	while (rest < n && path[rest] == '/')
		rest++;
	const bool is_root = real && !real[1]; /* ends in a slash already */
	const bool needs_slash = real && !is_root && rest < n;
	if (asprintf(&ret, "%s%s%.*s", real ? real : "", needs_slash ? "/" : "", (int)(n - rest),
		    path + rest) < 0)
		ret = NULL;
	free(real);
	return ret;
}
