#include "base/clock.h"
#include "scan/scan_entry.h"
#include "tree.h"
#include <mntent.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

static const char *const t_source[] = {"t"};

static ino_t mounted; /* the folder at which another file system is mounted; 0: none */

int fstat(int fd, struct stat *ret)
{
	const int failed = (int)syscall(SYS_fstat, fd, ret);
	if (!failed && mounted && ret->st_ino == mounted)
		ret->st_dev++;
	return failed;
}

/* The names of the files that are read in place of /etc/fstab and the current mounts. */
FILE *setmntent(const char *table, const char *mode)
{
	return fopen(strcmp(table, "/etc/fstab") == 0 ? "fstab" : "mounts", mode);
}

static void test_order(void)
{
	static const char *const paths[] = {"t/a/b", "t/a/c/d", "t/a.txt", "t/a-b", "t/a0", "t/Z",
		"t/a b", "t/empty/", "t/b/", "t/\xc3\xa9", "t/z", NULL};
	tree_begin();
	make_tree(paths);
	struct scan_options options = one_source(t_source);
	scan_yields(&options,
		"file Z\nfile a b\nfile a-b\nfile a.txt\nfile a/b\nfile a/c/d\nfile a0\nfile z\n"
		"file \xc3\xa9\n");
	options.prefix = "p";
	static const char *const spellings[] = {"t", "t/", "./t", "t//", "link"};
	make_link("t", "link");
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		options.sources = &spellings[i];
		scan_yields(&options, "file p/Z\nfile p/a b\nfile p/a-b\nfile p/a.txt\nfile p/a/b\n"
				      "file p/a/c/d\nfile p/a0\nfile p/z\nfile p/\xc3\xa9\n");
	}
	tree_end();
}

static void test_hard_names(void)
{
	static const char *const names[] = {" ", " a ", "!", "\"", "#", "%41", "&", "'", "*", "+",
		"..foo", "...", ".hidden", ";", "=", "?", "[x]", "\\", "\\n", "caf\xc3\xa9",
		"cafe\xcc\x81", "new\nline", "s3:", "tab\tcr\r", "~", "\xf0\x9f\x98\x80"};
	static const char *const prefixes[][2] = {
		{"", ""}, {"p", "p/"}, {"p/", "p/"}, {"p//", "p//"}, {"a b/%", "a b/%/"}};
	enum { N = sizeof names / sizeof *names };
	tree_begin();
	char path[PATH_MAX];
	for (size_t i = 0; i < N; i++) {
		snprintf(path, sizeof path, "t/%s", names[i]);
		make_file(path, names[i]);
		snprintf(path, sizeof path, "t/d/%s/f", names[i]);
		make_file(path, names[i]);
	}
	for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
		struct scan_options options = one_source(t_source);
		options.prefix = prefixes[p][0];
		struct text got = scan_all(&options);
		size_t lines = 0;
		for (size_t i = 0; i < N; i++) {
			snprintf(path, sizeof path, "file %s%s\n", prefixes[p][1], names[i]);
			lines += CHECK(strstr(text_string(&got), path) != NULL);
			snprintf(path, sizeof path, "file %sd/%s/f\n", prefixes[p][1], names[i]);
			lines += CHECK(strstr(text_string(&got), path) != NULL);
		}
		CHECK_INT(lines, 2 * N);
		CHECK(strstr(text_string(&got), "problem") == NULL);
		text_clear(&got);
	}
	tree_end();
}

static void test_no_keys(void)
{
	static const char *const paths[] = {"t/bad\xff", "t/bad\xff.d/f", "t/c\x01", "t/ok", NULL};
	tree_begin();
	make_tree(paths);
	struct scan_options options = one_source(t_source);
	scan_yields(&options,
		"problem bad\xff: the name is not UTF-8, so it cannot be a key; rename it or "
		"exclude it\n"
		"problem bad\xff.d/f: the name is not UTF-8, so it cannot be a key; rename it or "
		"exclude it\n"
		"problem c\x01: the name contains the character U+0001, which XML does not allow, so it "
		"cannot be a key; rename it or exclude it\n"
		"file ok\n");
	tree_end();
}

/* A path of len bytes, of directories of 100 bytes. */
static void long_path(size_t len, char *ret)
{
	for (size_t i = 0; i < len; i++)
		ret[i] = i % 101 == 100 && i + 1 < len ? '/' : 'x';
	ret[len] = '\0';
}

static void test_long_keys(void)
{
	tree_begin();
	char path[1100] = "t/";
	long_path(1024, path + 2);
	make_file(path, "");
	struct scan_options options = one_source(t_source);
	struct text want = TEXT(4096);
	text_addf(&want, "file %s\n", path + 2);
	scan_yields(&options, text_string(&want));
	options.prefix = "/";
	text_reset(&want);
	text_addf(&want,
		"problem /%s: the key would have 1025 bytes, and S3 allows 1024; use a shorter name "
		"or prefix, or exclude it\n",
		path + 2);
	scan_yields(&options, text_string(&want));
	text_clear(&want);
	tree_end();
}

static int make_deep(const char *name, int levels, const char *file)
{
	tree_need(mkdir("t", 0755) == 0, "t");
	int fd = open("t", O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < levels; i++) {
		tree_need(mkdirat(fd, name, 0755) == 0, name);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		int made = openat(fd, file, O_CREAT | O_WRONLY, 0644);
		tree_need(next >= 0 && made >= 0, file);
		close(made);
		close(fd);
		fd = next;
	}
	return fd;
}

/* 340 levels, with a file behind each directory, so that every one is opened again. */
static void test_deep(void)
{
	tree_begin();
	close(make_deep("aa", 340, "z"));
	struct rlimit limit;
	tree_need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = 64;
	tree_need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	struct scan_options options = one_source(t_source);
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	size_t n = 0;
	while (scan_next(scan, &entry, &problem) > 0) {
		CHECK_INT(entry.kind, SCAN_FILE);
		CHECK_INT(strlen(entry.key), 3 * (339 - n) + 1);
		n++;
	}
	CHECK_INT(n, 340);
	scan_close(scan);
	tree_end();
}

/* Deeper than any path can be: each file and the last directory are problems, none is left out. */
static void test_too_deep(void)
{
	char name[251];
	memset(name, 'a', 250);
	name[250] = '\0';
	tree_begin();
	close(make_deep(name, 20, "z"));
	struct scan_options options = one_source(t_source);
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	size_t files = 0, too_long = 0, unlisted = 0;
	while (scan_next(scan, &entry, &problem) > 0) {
		files += entry.kind == SCAN_FILE;
		too_long +=
			entry.kind == SCAN_PROBLEM && strstr(entry.problem.text, "S3 allows 1024");
		unlisted += entry.kind == SCAN_PROBLEM &&
			    strstr(entry.problem.text, "cannot be listed: File name too long");
	}
	CHECK_INT(files, 5);
	CHECK_INT(too_long, 12);
	CHECK_INT(unlisted, 1);
	scan_close(scan);
	tree_end();
}

static void make_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	tree_need(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, path);
	close(fd);
}

static void test_kinds(void)
{
	tree_begin();
	make_file("t/old", "1234567");
	make_file("t/young", "");
	make_file("outside", "");
	make_file("directory/f", "");
	make_link("old", "t/link");
	make_link("../outside", "t/link.out");
	make_link("../directory", "t/link.d");
	make_link("nowhere", "t/dangling");
	make_link("loop", "t/loop");
	tree_need(mkfifo("t/pipe", 0600) == 0, "mkfifo");
	make_socket("t/sock");
	struct scan_options options = one_source(t_source);
	options.now_wall_ns = INT64_C(2000000000) * 1000000000;
	options.min_age_ms = 60000;
	struct timespec old[2] = {{2000000000 - 60, 0}, {2000000000 - 60, 0}};
	struct timespec young[2] = {{2000000000 - 60, 1}, {2000000000 - 60, 1}};
	tree_need(utimensat(AT_FDCWD, "t/old", old, 0) == 0, "utimensat");
	tree_need(utimensat(AT_FDCWD, "t/young", young, 0) == 0, "utimensat");
	tree_need(utimensat(AT_FDCWD, "directory/f", old, 0) == 0, "utimensat");
	tree_need(utimensat(AT_FDCWD, "outside", old, 0) == 0, "utimensat");
	scan_yields(&options,
		"link dangling\nlink link\nlink link.d\nlink link.out\nlink loop\nfile old\n"
		"special pipe\n"
		"special sock\n"
		"young young\n");
	options.follow = true;
	scan_yields(&options,
		"problem dangling: is a symbolic link to a file that does not exist; fix or exclude it\n"
		"file link\nfile link.d/f\nfile link.out\n"
		"problem loop: is a symbolic link that forms a loop, or lies behind one; fix or exclude it\n"
		"file old\n"
		"special pipe\n"
		"special sock\n"
		"young young\n");
	options.min_age_ms = UINT64_MAX;
	options.follow = false;
	struct text got = scan_all(&options);
	CHECK(strstr(text_string(&got), "file") == strstr(text_string(&got), "file; exclude"));
	CHECK(strstr(text_string(&got), "young old\n") != NULL);
	text_clear(&got);
	tree_end();
}

/* If the mtime lies in the future, the age counts from the ctime, which is that of the test, unless
 * the run began so long before it that one of both clocks is wrong. A file that was written since
 * the run began is not from the future. */
static void test_from_the_future(void)
{
	static const struct {
		int64_t began_s, mtime_s; /* from now on */
		uint64_t min_age_ms;
		enum scan_kind kind;
		bool is_from_future;
	} rows[] = {
		{0, -60, 1000, SCAN_FILE, false},
		{-3600, -60, 1000, SCAN_WAITS, false},
		{0, 3600, 3600000, SCAN_WAITS, true},
		{-36000, 3600, 3600000, SCAN_FILE, true},
		{0, 3600, 0, SCAN_FILE, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scan_options options = one_source(t_source);
		struct scan *scan;
		struct scan_entry entry;
		struct problem problem;
		tree_begin();
		make_file("t/f", "");
		const int64_t now_s = clock_wall_s(), ns = (int64_t)NS_PER_S;
		const struct timespec at = {.tv_sec = now_s + rows[i].mtime_s};
		tree_need(utimensat(AT_FDCWD, "t/f", (struct timespec[]){at, at}, 0) == 0, "t/f");
		options.now_wall_ns = (now_s + rows[i].began_s) * ns;
		options.min_age_ms = rows[i].min_age_ms;
		CHECK_INT(scan_open(&options, &scan, &problem), 0);
		CHECK_INT(scan_next(scan, &entry, &problem), 1);
		if (!CHECK_INT(entry.kind, rows[i].kind) ||
			!CHECK_INT(entry.is_from_future, rows[i].is_from_future))
			fprintf(stderr, "\trow %zu\n", i);
		scan_close(scan);
		tree_end();
	}
}

/* The first of several reasons to wait counts. */
static void test_first_reason_to_wait(void)
{
	struct scan_entry entry = {.kind = SCAN_FILE};
	entry_let_wait(&entry, S3ONCE_WAIT_YOUNG);
	entry_let_wait(&entry, S3ONCE_WAIT_CHANGED);
	CHECK_INT(entry.kind, SCAN_WAITS);
	CHECK_INT(entry.wait, S3ONCE_WAIT_YOUNG);
}

static void test_state(void)
{
	tree_begin();
	make_file("t/f", "1234567");
	struct timespec before_epoch[2] = {{-2, 5}, {-2, 5}};
	tree_need(utimensat(AT_FDCWD, "t/f", before_epoch, 0) == 0, "utimensat");
	struct scan_options options = one_source(t_source);
	options.prefix = "p";
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	struct stat st;
	tree_need(stat("t/f", &st) == 0, "stat");
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	CHECK_INT(scan_next(scan, &entry, &problem), 1);
	CHECK_INT(entry.size, 7);
	CHECK_INT(entry.mtime_ns, INT64_C(-2) * 1000000000 + 5);
	CHECK(entry.dev == st.st_dev && entry.ino == st.st_ino);
	CHECK_STRING(entry.path, "t/f");
	CHECK_STRING(entry.relative, "f");
	CHECK_STRING(entry.key, "p/f");
	CHECK_INT(entry.source, 0);
	char want[PATH_MAX + 2];
	snprintf(want, sizeof want, "%s/t", tree_path);
	CHECK_STRING(scan_source_path(scan, 0), want);
	CHECK_INT(scan_next(scan, &entry, &problem), 0);
	CHECK_INT(scan_next(scan, &entry, &problem), 0);
	scan_close(scan);
	scan_close(NULL);
	tree_end();
}

static void test_follow_loops(void)
{
	tree_begin();
	make_file("t/a/f", "");
	make_file("t/b/g", "");
	make_link("..", "t/a/up");
	make_link(".", "t/a/self");
	make_link("../b", "t/a/to-b");
	make_link("../a", "t/b/to-a");
	struct scan_options options = one_source(t_source);
	options.follow = true;
	scan_yields(&options,
		"file a/f\n"
		"problem a/self: is a symbolic link to a directory that contains it; exclude it\n"
		"file a/to-b/g\n"
		"problem a/to-b/to-a: is a symbolic link to a directory that contains it; exclude it\n"
		"problem a/up: is a symbolic link to a directory that contains it; exclude it\n"
		"file b/g\n"
		"file b/to-a/f\n"
		"problem b/to-a/self: is a symbolic link to a directory that contains it; exclude it\n"
		"problem b/to-a/to-b: is a symbolic link to a directory that contains it; exclude it\n"
		"problem b/to-a/up: is a symbolic link to a directory that contains it; exclude it\n");
	tree_end();
}

static void test_filtered(void)
{
	static const char *const paths[] = {
		"t/a.log", "t/a.tmp", "t/cache/x/y", "t/cache/keep", "t/d/b.tmp", "t/d/c", NULL};
	tree_begin();
	make_tree(paths);
	make_link("a.log", "t/l.tmp");
	tree_need(mkfifo("t/pipe.tmp", 0600) == 0, "mkfifo");
	struct scan_options options = one_source(t_source);
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "*.tmp"), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "cache/"), 0);
	scan_yields(&options, "file a.log\nexcluded a.tmp\nexcluded cache/\nexcluded d/b.tmp\n"
			      "file d/c\nexcluded l.tmp\nexcluded pipe.tmp\n");
	CHECK_INT(filter_add(options.filter, FILTER_INCLUDE, "/cache/keep"), 0);
	scan_yields(&options,
		"file a.log\nexcluded a.tmp\nfile cache/keep\nexcluded cache/x/\nexcluded d/b.tmp\n"
		"file d/c\nexcluded l.tmp\nexcluded pipe.tmp\n");
	filter_free(options.filter);
	tree_end();
}

/* A skipped file still has an entry if files are accounted for. */
static void test_accounts_for_all(void)
{
	static const char *const paths[] = {
		"t/a.log", "t/a.tmp", "t/cache/x/y", "t/cache/x.log", "t/d/c", NULL};
	tree_begin();
	make_tree(paths);
	make_link("a.log", "t/l.tmp");
	tree_need(mkfifo("t/pipe.tmp", 0600) == 0, "mkfifo");
	struct scan_options options = one_source(t_source);
	options.accounts_for_all = true;
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "*.tmp"), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "cache/"), 0);
	scan_yields(&options,
		"file a.log\nexcluded a.tmp\nexcluded cache/x.log\nexcluded cache/x/y\nfile d/c\n"
		"link l.tmp\nspecial pipe.tmp\n");
	filter_free(options.filter);
	tree_end();
}

/* An empty folder for which fstab names a file system that is not mounted. */
static void test_missing_mount(void)
{
	static const char *const paths[] = {"t/a", "t/disk/", "t/empty/", "t/files/a", NULL};
	static const char missing[] =
		"file a\nproblem disk: it is empty, and its file system in /etc/fstab is not "
		"mounted: mount it, or exclude the folder\nfile files/a\n";
	char line[3 * PATH_MAX];
	tree_begin();
	make_tree(paths);
	struct scan_options options = one_source(t_source);
	make_file("mounts", "/dev/sda1 / ext4 rw 0 0\n");
	snprintf(line, sizeof line,
		"/dev/sdb1 %s/t/disk ext4 defaults 0 2\n/dev/sdc1 %s/t/files ext4 defaults 0 2\n",
		tree_path, tree_path);
	make_file("fstab", line);
	scan_yields(&options, missing);
	options.one_file_system = true;
	scan_yields(&options, "file a\nfile files/a\n");
	options.one_file_system = false;
	snprintf(line, sizeof line, "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 %s/t/disk ext4 rw 0 0\n",
		tree_path);
	make_file("mounts", line);
	scan_yields(&options, "file a\nfile files/a\n");
	tree_end();
}

/* A folder of another file system is not entered, if that is asked for. The walk goes on. */
static void test_one_file_system(void)
{
	static const char *const paths[] = {
		"t/a", "t/d/a", "t/d/mnt/d/x", "t/d/mnt/x", "t/d/z", "t/z", NULL};
	static const char one[] = "file a\nfile d/a\nspecial d/mnt\nfile d/z\nfile z\n",
			  all[] = "file a\nfile d/a\nfile d/mnt/d/x\nfile d/mnt/x\nfile d/z\n"
				  "file z\n";
	struct stat st;
	tree_begin();
	make_tree(paths);
	struct scan_options options = one_source(t_source);
	tree_need(stat("t/d/mnt", &st) == 0, "t/d/mnt");
	mounted = st.st_ino;
	scan_yields(&options, all);
	options.one_file_system = true;
	scan_yields(&options, one);
	options.accounts_for_all = true;
	scan_yields(&options,
		"file a\nfile d/a\nproblem d/mnt: another file system is mounted there "
		"(--one-file-system)\nfile d/z\nfile z\n");
	mounted = 0;
	scan_yields(&options, all);
	tree_end();
}

/* Files whose paths begin alike, in byte order. */
static const char *const alike[] = {"t/d-e/x", "t/d.e", "t/d/x", "t/d/x-", "t/d/x.tmp", "t/d/x0/y",
	"t/d0", "t/dd/d/d", "t/dd/e", "t/dump", "t/dump-2", "t/dump.gz", NULL};
/* Folders that these files are in, and paths without a file. */
static const char *const others_alike[] = {
	"t", "t/d", "t/d-e", "t/d/x0", "t/dd", "t/dd/d", "t/du", "t/d/x/f", "t/g/d", "t-2/d"};
enum {
	ALIKE = sizeof alike / sizeof *alike - 1,
	WANTED = ALIKE + sizeof others_alike / sizeof *others_alike
};

/* Whether the path is the file, or the folder that it is directly in. */
static bool wants(const char *path, const char *file)
{
	const size_t folder_bytes = (size_t)(strrchr(file, '/') - file);
	return strcmp(path, file) == 0 ||
	       (strlen(path) == folder_bytes && strncmp(path, file, folder_bytes) == 0);
}

/* Checks what a walk over these three paths yields. */
static bool walk_yields_wanted(const char *const paths[static 3])
{
	char wanted[3][2 * PATH_MAX];
	const char *const folders[] = {wanted[0], wanted[1], wanted[2]};
	struct scan_options options = one_source(t_source);
	struct text want = TEXT(4096);
	for (size_t i = 0; i < 3; i++)
		snprintf(wanted[i], sizeof wanted[i], "%s/%s", tree_path, paths[i]);
	for (size_t i = 0; i < ALIKE; i++)
		if (wants(paths[0], alike[i]) || wants(paths[1], alike[i]) ||
			wants(paths[2], alike[i]))
			text_addf(&want, "file %s\n", alike[i] + strlen("t/"));
	options.folders = folders;
	options.n_folders = 3;
	const bool is_good = scan_yields(&options, text_string(&want));
	if (!is_good)
		fprintf(stderr, "\tof %s, %s and %s\n", paths[0], paths[1], paths[2]);
	text_clear(&want);
	return is_good;
}

/* A walk over one, two or three of these paths yields the wanted files, and no others. */
static void test_some_paths(void)
{
	const char *all[WANTED];
	tree_begin();
	make_tree(alike);
	memcpy(all, alike, sizeof(char *[ALIKE]));
	memcpy(all + ALIKE, others_alike, sizeof others_alike);
	bool is_good = true;
	for (size_t i = 0; i < WANTED; i++)
		for (size_t j = i; j < WANTED; j++)
			for (size_t k = j; is_good && k < WANTED; k++)
				is_good = walk_yields_wanted(
					(const char *const[]){all[k], all[i], all[j]});
	tree_end();
}

static void check_unreadable(void)
{
	drop_privileges();
	struct scan_options options = one_source(t_source);
	scan_yields(&options,
		"file a\n"
		"problem closed: cannot be listed: Permission denied; give this user access, or "
		"exclude it\n"
		"problem no-search/f: cannot be accessed: Permission denied; give this user access, or exclude it\n"
		"file secret\nfile z\n");
	static const char *const closed[] = {"t/closed"};
	options.sources = closed;
	scan_yields(&options,
		"problem : cannot be listed: Permission denied; give this user access, or exclude "
		"it\n");
	static const char *const behind[] = {"t/closed/f"};
	options.sources = behind;
	options.prefix = "p";
	scan_yields(&options,
		"problem p/f: cannot be accessed: Permission denied; give this user access, or exclude it\n");
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "closed/"), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "no-search/"), 0);
	options.sources = t_source;
	scan_yields(&options, "file p/a\nexcluded p/closed/\nexcluded p/no-search/\n"
			      "file p/secret\nfile p/z\n");
	filter_free(options.filter);

	struct scan *scan;
	struct problem problem;
	struct file_state state;
	options.filter = NULL;
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	CHECK_INT(scan_open_file(scan, 0, "secret", &state), -EACCES);
	scan_close(scan);
}

static void test_unreadable(void)
{
	static const char *const paths[] = {
		"t/a", "t/closed/f", "t/no-search/f", "t/secret", "t/z", NULL};
	tree_begin();
	make_tree(paths);
	tree_need(chmod("t/closed", 0) == 0, "chmod");
	tree_need(chmod("t/no-search", 0444) == 0, "chmod");
	tree_need(chmod("t/secret", 0) == 0, "chmod");
	in_child(check_unreadable);
	tree_need(chmod("t/closed", 0755) == 0 && chmod("t/no-search", 0755) == 0, "chmod");
	tree_end();
}

/* The tree changes behind the first entry: each change is told, and the rest still comes. */
static void test_changes_meanwhile(void)
{
	static const char *const paths[] = {"t/a", "t/b", "t/c/f", "t/d/f", "t/e/f", "t/f/g/h",
		"t/f/i", "t/g/h", "other/i", "t/z", NULL};
	tree_begin();
	make_tree(paths);
	struct scan_options options = one_source(t_source);
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	CHECK_INT(scan_next(scan, &entry, &problem), 1);
	CHECK_STRING(entry.key, "a");
	tree_need(unlink("t/b") == 0, "b");
	tree_need(unlink("t/c/f") == 0 && rmdir("t/c") == 0, "c");
	tree_need(rename("t/d", "moved") == 0, "d");
	make_link("../moved", "t/d");
	tree_need(rename("t/e", "moved2") == 0, "e");
	make_file("t/e", "");
	static const char *const want[] = {
		"problem b: disappeared while the directory was read\n",
		"problem c: disappeared while the directory was read; run again\n",
		"problem d: was replaced while the directory was read; run again\n",
		"problem e: was replaced while the directory was read; run again\n",
		"file f/g/h\n",
	};
	struct text line = TEXT(1024);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		CHECK_INT(scan_next(scan, &entry, &problem), 1);
		text_reset(&line);
		add_entry(&line, &entry);
		CHECK_STRING(text_string(&line), want[i]);
	}
	text_clear(&line);
	/* f was listed and is to be opened again for f/i: another directory has its name now. */
	tree_need(rename("t/f", "moved3") == 0 && rename("other", "t/f") == 0, "f");
	struct text rest = rest_of(scan);
	CHECK_STRING(text_string(&rest),
		"problem f/i: the directory it lies in: was replaced while the directory was read; run "
		"again\n"
		"file g/h\nfile z\n");
	text_clear(&rest);
	scan_close(scan);
	tree_end();
}

/* Leaves the process n descriptors more than it has open; returns the limit that was. */
static rlim_t leave_descriptors(int n)
{
	int next = dup(0);
	close(next);
	struct rlimit limit;
	tree_need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)(next + n);
	tree_need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
	return before;
}

static void check_out_of_descriptors(void)
{
	struct scan_options options = one_source(t_source);
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	rlim_t before = leave_descriptors(1);
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	CHECK_INT(scan_next(scan, &entry, &problem), -EMFILE);
	CHECK(strstr(problem.text, "out of file descriptors") != NULL);
	scan_close(scan);
	leave_descriptors(0);
	problem.text[0] = '\0';
	CHECK_INT(scan_open(&options, &scan, &problem), -EMFILE);
	CHECK(strstr(problem.text, "out of file descriptors") != NULL);
	struct rlimit limit;
	tree_need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
	limit.rlim_cur = before;
	tree_need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

static void test_out_of_descriptors(void)
{
	tree_begin();
	make_file("t/a", "");
	in_child(check_out_of_descriptors);
	tree_end();
}

int main(void)
{
	test_order();
	test_hard_names();
	test_no_keys();
	test_long_keys();
	test_too_deep();
	in_child(test_deep);
	test_kinds();
	test_from_the_future();
	test_first_reason_to_wait();
	test_state();
	test_follow_loops();
	test_filtered();
	test_accounts_for_all();
	test_missing_mount();
	test_one_file_system();
	test_some_paths();
	test_unreadable();
	test_changes_meanwhile();
	test_out_of_descriptors();
	return check_result();
}
