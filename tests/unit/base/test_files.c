/* Files that several rooms use: a file is replaced by a whole one or not at all, in an order that a
 * power cut cannot turn; a buffer is read whole or not at all; paths are cut at their last slash.
 */
#include "../check.h"
#include "base/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The calls that replace_file() makes, as letters, and the one of them that fails. */
static struct {
	char made[64];
	char fails; /* w: write, m: fchmod, s: fsync, r: rename; 0: none */
} calls;

static bool note(char call)
{
	const size_t n = strlen(calls.made);
	if (n < sizeof calls.made - 1 && (!n || calls.made[n - 1] != call))
		calls.made[n] = call;
	errno = EIO;
	return calls.fails == call;
}
int fchmod(int fd, mode_t mode)
{
	return note('m') ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}
int fsync(int fd)
{
	return note('s') ? -1 : (int)syscall(SYS_fsync, fd);
}
int rename(const char *from, const char *to)
{
	return note('r') ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int unlink(const char *path)
{
	note('u');
	return (int)syscall(SYS_unlink, path);
}

static char folder[] = "/tmp/files.XXXXXX", path[64];

static bool holds(const char *want)
{
	struct text got = TEXT(100);
	CHECK_INT(named_file_read(path, &got, NULL), 0);
	const bool same = CHECK_STRING(text_string(&got), want);
	text_clear(&got);
	return same;
}

static unsigned files_in_folder(void)
{
	char command[100];
	unsigned n = 99;
	snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
	FILE *out = popen(command, "r");
	CHECK(out && fscanf(out, "%u", &n) == 1);
	pclose(out);
	return n;
}

static void test_replaced(void)
{
	static const struct {
		char fails;
		bool is_durable;
		const char *made;
	} rows[] = {
		{0, false, "mr"},
		{0, true, "msr"}, /* what is renamed is on the disk */
		{'m', true, "mu"},
		{'s', true, "msu"},
		{'s', false, "mr"},
		{'r', false, "mru"},
		{'r', true, "msru"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct stat st = {0};
		const bool fails = rows[i].fails && strchr(rows[i].made, 'u');
		memset(&calls, 0, sizeof calls);
		CHECK_INT(replace_file(path, "old", 3, 0644, REPLACE_UNSYNCED), 0);
		memset(&calls, 0, sizeof calls);
		calls.fails = rows[i].fails;
		bool good =
			CHECK_INT(replace_file(path, "newer", 5, 0600,
					  rows[i].is_durable ? REPLACE_SYNCED : REPLACE_UNSYNCED),
				fails ? -EIO : 0);
		calls.fails = 0;
		good &= CHECK_STRING(calls.made, rows[i].made);
		good &= holds(fails ? "old" : "newer");
		CHECK_INT(stat(path, &st), 0);
		good &= CHECK_INT(st.st_mode & 07777, fails ? 0644 : 0600);
		good &= CHECK_INT(files_in_folder(), 1); /* nothing is left beside it */
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	CHECK_INT(replace_file("/nowhere/at/all", "x", 1, 0600, REPLACE_SYNCED), -ENOENT);
}

static void test_read(void)
{
	char got[8] = "";
	CHECK_INT(replace_file(path, "0123456", 7, 0600, REPLACE_UNSYNCED), 0);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(read_at(fd, got, 3, 4), 3);
	CHECK_STRING(got, "456");
	CHECK_INT(read_at(fd, got, 0, 100), 0);
	CHECK_INT(read_at(fd, got, 4, 4), -ESTALE); /* it has become shorter */
	CHECK_INT(read_at(fd, got, 1, 7), -ESTALE);
	CHECK_INT(read_at(-1, got, 1, 0), -EBADF);
	CHECK_INT(write_all(fd, "x", 1), -EBADF); /* it is open for reading */
	close(fd);
}

static void test_unnamed(void)
{
	struct stat st = {0};
	char got[4] = "";
	const unsigned before = files_in_folder();
	const int fd = make_unnamed_file(folder);
	CHECK(fd >= 0);
	CHECK_INT(files_in_folder(), before);
	CHECK_INT(write_all(fd, "abc", 3), 0);
	CHECK_INT(read_at(fd, got, 3, 0), 3);
	CHECK_STRING(got, "abc");
	CHECK_INT(fstat(fd, &st), 0);
	CHECK_INT(st.st_mode & 0777, 0600);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	CHECK_INT(make_unnamed_file("/nowhere/at/all"), -ENOENT);
}

static void test_temporary_folder(void)
{
	static const struct {
		const char *sqlite, *tmp, *want;
	} rows[] = {
		{"/s", "/t", "/s"},
		{"", "/t", "/t"},
		{NULL, "/t", "/t"},
		{NULL, "", "/var/tmp"},
		{"", NULL, "/var/tmp"},
		{"/s", NULL, "/s"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		unsetenv("SQLITE_TMPDIR");
		unsetenv("TMPDIR");
		if (rows[i].sqlite)
			setenv("SQLITE_TMPDIR", rows[i].sqlite, 1);
		if (rows[i].tmp)
			setenv("TMPDIR", rows[i].tmp, 1);
		CHECK_STRING(temporary_folder(), rows[i].want);
	}
	unsetenv("SQLITE_TMPDIR");
	unsetenv("TMPDIR");
}

static void test_paths(void)
{
	static const struct {
		const char *path, *folder, *name;
	} rows[] = {
		{"a", ".", "a"},
		{"/a", "/", "a"},
		{"a/b", "a", "b"},
		{"/a/b/c", "/a/b", "c"},
		{"a/", "a", ""},
		{"/", "/", ""},
		{"", ".", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *is_in = path_folder(rows[i].path);
		CHECK_STRING(is_in, rows[i].folder);
		CHECK_STRING(path_name(rows[i].path), rows[i].name);
		free(is_in);
	}
}

static void test_same(void)
{
	char other[100], below[100], link_name[100], got[8];
	snprintf(other, sizeof other, "%s/./f", folder);
	snprintf(below, sizeof below, "%s/d", folder);
	CHECK(same_file(path, path) && same_file(path, other));
	CHECK_INT(mkdir(below, 0700), 0);
	snprintf(below, sizeof below, "%s/d/f", folder);
	CHECK(!same_file(path, below)); /* it is not there */
	CHECK_INT(link(path, below), 0);
	CHECK(same_file(path, below));
	snprintf(other, sizeof other, "%s/g", folder);
	CHECK_INT(link(path, other), 0);
	CHECK(!same_file(path, other)); /* another name */
	unlink(below);
	close(open(below, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK(!same_file(path, below)); /* another file */
	snprintf(link_name, sizeof link_name, "%s/l", folder);
	CHECK_INT(symlink("0123456789", link_name), 0);
	read_link(link_name, got, sizeof got);
	CHECK_STRING(got, "0123456");
	read_link(path, got, sizeof got);
	CHECK_STRING(got, "");
}

int main(void)
{
	char command[100];
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/f", folder);
	test_replaced();
	test_read();
	test_unnamed();
	test_temporary_folder();
	test_paths();
	test_same();
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_INT(system(command), 0);
	return check_result();
}
