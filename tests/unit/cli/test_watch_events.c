/* Which files and folders are reported as touched, by the real inotify: the kernel has queued an
 * event before the call that causes it returns, so that nothing waits. Events that cannot be caused
 * at will are added to those that are read. */
#include "../check.h"
#include "base/log.h"
#include "scan/removal.h"
#include "watched.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static char folder[] = "/tmp/test_watch_events.XXXXXX", conf[64];
static struct text touched = {.max = 1 << 16}, said = {.max = 1 << 16};

/* Other events of the kernel: the queue overflows, no more watches are allowed, each folder is gone
 * by the time it is to be watched, or its file system is NFS. */
static bool overflows, is_full, has_no_inotify, is_gone, is_remote;

/* The next four are in place of libc's. */
int statfs(const char *path, struct statfs *ret)
{
	const long r = syscall(SYS_statfs, path, ret);
	ret->f_type = is_remote ? NFS_SUPER_MAGIC : EXT4_SUPER_MAGIC;
	return (int)r;
}

ssize_t read(int fd, void *buffer, size_t n)
{
	struct inotify_event *event = buffer;
	if (!overflows || n < sizeof *event)
		return syscall(SYS_read, fd, buffer, n);
	overflows = false;
	*event = (struct inotify_event){.wd = -1, .mask = IN_Q_OVERFLOW};
	return sizeof *event;
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	errno = is_gone ? ENOENT : ENOSPC;
	return is_full || is_gone ? -1 : (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

int inotify_init1(int flags)
{
	errno = EMFILE;
	return has_no_inotify ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

static void note_line(void *arg, enum log_level level, const char *line)
{
	(void)arg, (void)level;
	text_addf(&said, "%s\n", line);
}

/* Notes a path without the folder of the test, once if it is reported again right away: a file is,
 * when it is made and when it is closed. */
static void on_touched(void *arg, const char *path)
{
	char name[200];
	(void)arg;
	const size_t n = (size_t)snprintf(name, sizeof name, "%s ", path + strlen(folder) + 1);
	const char *all = text_string(&touched);
	if (touched.len < n || strcmp(all + touched.len - n, name) != 0)
		text_add(&touched, name);
}

static void on_move(void *arg)
{
	(void)arg;
}

static const char *in_folder(const char *name)
{
	static char paths[4][200];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name)
{
	const int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	close(fd);
}

static void make_folder(const char *name)
{
	CHECK_INT(mkdir(in_folder(name), 0700), 0);
}

static void move(const char *from, const char *to)
{
	CHECK_INT(rename(in_folder(from), in_folder(to)), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A job whose sources are "a", "a-old" and the file "one/f", and its folders. */
struct fixture {
	struct job job;
	struct watch_folders *folders;
};

static void begin(struct fixture *f, const char *lines)
{
	static char self[] = "watch";
	char *const argv[] = {self, NULL};
	remove_tree(folder);
	CHECK_INT(mkdir(folder, 0700), 0);
	make_folder("a");
	make_folder("a/sub");
	make_folder("a-old");
	make_folder("a-old/b");
	make_folder("one");
	make_folder("elsewhere");
	write_file("one/f");
	FILE *file = fopen(conf, "w");
	fprintf(file,
		"source = %s/a\nsource = %s/a-old\nsource = %s/one/f\ntarget = s3://bucket\n%s",
		folder, folder, folder, lines);
	fclose(file);
	CHECK_INT(job_open(conf, JOB_RUN, 1, argv, &f->job), 0);
	f->folders = watch_folders_new(&f->job, on_touched, on_move, NULL);
	watch_folders_renew(f->folders);
	text_reset(&touched);
	text_reset(&said);
}

static void end(struct fixture *f)
{
	watch_folders_free(f->folders);
	job_close(&f->job);
	overflows = is_full = has_no_inotify = is_gone = is_remote = false;
}

/* Reads the events, and checks what they report. */
static bool check_touched(struct fixture *f, bool knows_all, const char *want)
{
	text_reset(&touched);
	bool good = CHECK_INT(watch_folders_read(f->folders), knows_all);
	good &= CHECK_STRING(text_string(&touched), want);
	return good;
}

static void test_files(void)
{
	struct fixture f;
	begin(&f, "");
	CHECK_INT(watch_folders_count(f.folders), 5);
	check_touched(&f, true, "");
	write_file("a/f");
	write_file("a/sub/f");
	check_touched(&f, true, "a/f a/sub/f ");
	check_touched(&f, true, "");
	/* A name that appears by a move is new, and one that goes away is not. */
	write_file("elsewhere/g");
	move("elsewhere/g", "a/g");
	move("a/f", "elsewhere/f");
	move("a/sub/f", "a/sub/f2");
	CHECK_INT(unlink(in_folder("a/g")), 0);
	check_touched(&f, true, "a/g a/sub/f2 ");
	/* If a SOURCE is a file, other files do not count. */
	write_file("one/other");
	write_file("one/f");
	check_touched(&f, true, "one/f ");
	end(&f);
}

/* A new folder is reported, and watched, with the folders in it. */
static void test_new_folders(void)
{
	struct fixture f;
	begin(&f, "");
	make_folder("a/new");
	check_touched(&f, true, "a/new ");
	write_file("a/new/f");
	check_touched(&f, true, "a/new/f ");
	make_folder("elsewhere/x");
	make_folder("elsewhere/x/y");
	move("elsewhere/x", "a/x");
	check_touched(&f, true, "a/x a/x/y ");
	write_file("a/x/y/f");
	check_touched(&f, true, "a/x/y/f ");
	CHECK_INT(watch_folders_count(f.folders), 8);
	/* A folder that is moved away is no longer watched, and one that is moved in is watched
	 * under its new name. */
	move("a/x", "elsewhere/x");
	check_touched(&f, true, "");
	CHECK_INT(watch_folders_count(f.folders), 6);
	write_file("elsewhere/x/y/g");
	check_touched(&f, true, "");
	move("a/new", "a/newer");
	check_touched(&f, true, "a/newer ");
	write_file("a/newer/g");
	check_touched(&f, true, "a/newer/g ");
	/* The folder in which removals keep files for a moment does not count. */
	make_folder("a/" REMOVAL_FOLDER);
	check_touched(&f, true, "");
	end(&f);
}

/* The rules of the job are about paths below their SOURCE. */
static void test_rules(void)
{
	struct fixture f;
	char lines[200];
	snprintf(lines, sizeof lines,
		"exclude = *.tmp\nexclude = /b/\nexclude = /sub/x\nlog-file = %s/a/log\n", folder);
	begin(&f, lines);
	CHECK_INT(watch_folders_count(f.folders), 4); /* a, a/sub, a-old, one */
	write_file("a/f.tmp");
	write_file("a/sub/x");
	write_file("a/x");
	write_file("a-old/b/f");
	write_file("a/log");
	make_folder("a/b");
	make_folder("a-old/c");
	check_touched(&f, true, "a/x a-old/c ");
	write_file("a/b/f");
	write_file("a-old/x.tmp");
	check_touched(&f, true, "");
	/* One SOURCE is not below the other, although its name begins so. */
	make_folder("a-old/sub");
	check_touched(&f, true, "a-old/sub ");
	write_file("a-old/sub/x");
	check_touched(&f, true, "");
	end(&f);
}

/* A SOURCE that is gone is reported once, and again after it was there meanwhile. */
static void test_gone(void)
{
	struct fixture f;
	begin(&f, "");
	for (unsigned i = 0; i < 2; i++) {
		text_reset(&said);
		move("a-old", "elsewhere/a-old");
		check_touched(&f, false, "");
		CHECK(strstr(text_string(&said), "a-old was removed, renamed or unmounted"));
		check_touched(&f, true, "");
		text_reset(&said);
		watch_folders_renew(f.folders);
		check_touched(&f, true, "");
		CHECK_STRING(text_string(&said), "");
		move("elsewhere/a-old", "a-old");
		watch_folders_renew(f.folders);
		check_touched(&f, true, "");
	}
	/* A folder in it that is removed is none. */
	CHECK_INT(rmdir(in_folder("a/sub")), 0);
	check_touched(&f, true, "");
	CHECK_INT(watch_folders_count(f.folders), 4);
	end(&f);
}

/* An overflow means that all files have to be checked. It is reported again only after a renewal
 * without one. */
static void test_overflow(void)
{
	static const struct {
		bool overflows, is_said;
	} rows[] = {{true, true}, {true, false}, {true, false}, {false, false}, {true, true}};
	struct fixture f;
	begin(&f, "");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		text_reset(&said);
		overflows = rows[i].overflows;
		bool good = check_touched(&f, !rows[i].overflows, "");
		good &= CHECK_INT(
			strstr(text_string(&said), "overflowed") != NULL, rows[i].is_said);
		watch_folders_renew(f.folders);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	end(&f);
}

/* A refusal of more watches, or of all, is reported once while it lasts. */
static void test_limits(void)
{
	static const struct {
		bool is_full, has_no_inotify;
		const char *says;
		size_t count;
	} rows[] = {
		{true, false, "5 folders are not watched", 0},
		{true, false, "", 0},
		{false, false, "", 5},
		{true, false, "5 folders are not watched", 0},
		{false, true, "the kernel reports no new files", 0},
		{false, true, "", 0},
		{false, false, "", 5},
		{false, true, "the kernel reports no new files", 0},
	};
	struct fixture f;
	begin(&f, "");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		text_reset(&said);
		is_full = rows[i].is_full;
		has_no_inotify = rows[i].has_no_inotify;
		watch_folders_renew(f.folders);
		const char *got = text_string(&said);
		bool good = CHECK(*rows[i].says ? strstr(got, rows[i].says) != NULL : !*got);
		good &= CHECK_INT(watch_folders_count(f.folders), rows[i].count);
		good &= CHECK_INT(watch_folders_fd(f.folders) >= 0, !rows[i].has_no_inotify);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, got);
	}
	end(&f);
}

/* A folder that was removed before it was watched is none that the kernel does not allow. */
static void test_a_folder_that_is_gone(void)
{
	struct fixture f = {0};
	begin(&f, "");
	is_gone = true;
	watch_folders_renew(f.folders);
	CHECK_STRING(text_string(&said), "");
	CHECK_INT(watch_folders_count(f.folders), 0);
	end(&f);
}

/* It is said once, and not for each SOURCE and each full scan. */
static void test_network_file_system(void)
{
	struct fixture f = {0};
	begin(&f, "");
	watch_folders_renew(f.folders);
	CHECK_STRING(text_string(&said), "");
	is_remote = true;
	watch_folders_renew(f.folders);
	const char *first = strstr(text_string(&said), "network file system (NFS)");
	CHECK(first && !strstr(first + 1, "network file system"));
	text_reset(&said);
	watch_folders_renew(f.folders);
	CHECK_STRING(text_string(&said), "");
	end(&f);
}

int main(void)
{
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(conf, sizeof conf, "%s.conf", folder);
	log_set_sink(note_line, NULL);
	log_set_level(LOG_NOTE);
	test_files();
	test_new_folders();
	test_rules();
	test_gone();
	test_overflow();
	test_limits();
	test_a_folder_that_is_gone();
	test_network_file_system();
	log_set_sink(NULL, NULL);
	remove_tree(folder);
	unlink(conf);
	text_clear(&touched);
	text_clear(&said);
	return check_result();
}
