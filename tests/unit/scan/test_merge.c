#include "tree.h"

static struct scan_options sources(const char *const *list, size_t n)
{
	return (struct scan_options){.sources = list, .n_sources = n, .prefix = "p"};
}

#define REMEDY "; exclude one, or upload them below different prefixes\n"

static void test_merge(void)
{
	static const char *const paths[] = {
		"s1/a", "s1/c/x", "s1/z", "s2/a-b", "s2/c/y", "s2/c.txt", "f", "sub/a.txt", NULL};
	static const char *const list[] = {"s1", "f", "s2/", "sub/a.txt"};
	tree_begin();
	make_tree(paths);
	struct scan_options options = sources(list, 4);
	scan_yields(&options,
		"file p/a\nfile p/a-b\nfile p/a.txt\nfile p/c.txt\nfile p/c/x\nfile p/c/y\nfile p/f\n"
		"file p/z\n");
	tree_end();
}

static void test_collisions(void)
{
	static const char *const paths[] = {
		"s1/a", "s1/c/x", "s1/only", "s2/c/x", "s3/a", "s3/c/x", "s3/z", "only2", NULL};
	static const char *const list[] = {"s1", "s2", "s3", "only2", "./s1/only"};
	tree_begin();
	make_tree(paths);
	struct scan_options options = sources(list, 3);
	scan_yields(&options,
		"problem p/a: two files have the key p/a: s1/a and s3/a" REMEDY
		"problem p/a: two files have the key p/a: s1/a and s3/a" REMEDY
		"problem p/c/x: two files have the key p/c/x: s1/c/x and s2/c/x" REMEDY
		"problem p/c/x: two files have the key p/c/x: s1/c/x and s2/c/x" REMEDY
		"problem p/c/x: two files have the key p/c/x: s2/c/x and s3/c/x" REMEDY
		"file p/only\nfile p/z\n");
	static const char *const twice[] = {"s2", "s2"};
	options.sources = twice;
	options.n_sources = 2;
	scan_yields(&options, "refused -22: the SOURCEs s2 and s2 are the same: give it once\n");
	options.sources = list + 3;
	scan_yields(&options, "file p/only\nfile p/only2\n");
	tree_end();
}

/* A young file takes the key; a link, a pipe or a filtered file does not. */
static void test_files_that_collide(void)
{
	static const char *const list[] = {"s1", "s2", "s3"};
	tree_begin();
	make_file("s1/k", "");
	make_link("nowhere", "s2/k");
	make_file("s3/k", "");
	struct scan_options options = sources(list, 3);
	scan_yields(&options,
		"problem p/k: two files have the key p/k: s1/k and s3/k" REMEDY
		"problem p/k: two files have the key p/k: s1/k and s3/k" REMEDY "link p/k\n");
	options.n_sources = 2;
	scan_yields(&options, "file p/k\nlink p/k\n");
	options.n_sources = 3;
	struct timespec old[2] = {{1000, 0}, {1000, 0}};
	tree_need(utimensat(AT_FDCWD, "s1/k", old, 0) == 0, "utimensat");
	options.now_wall_ns = INT64_C(1000) * 1000000000 + INT64_C(61) * 1000000000;
	options.min_age_ms = 60000;
	scan_yields(&options,
		"problem p/k: two files have the key p/k: s1/k and s3/k" REMEDY
		"problem p/k: two files have the key p/k: s1/k and s3/k" REMEDY "link p/k\n");
	tree_need(unlink("s3/k") == 0 && mkfifo("s3/k", 0600) == 0, "mkfifo");
	scan_yields(&options, "file p/k\nlink p/k\nspecial p/k\n");
	tree_end();
}

/* A folder that cannot be listed sorts as what would be in it, but its own key is less. */
static void test_folder_between(void)
{
	static const char *const list[] = {"s1", "s2", "s3"};
	tree_begin();
	make_file("s1/b-c", "");
	make_link(".", "s1/b");
	make_file("s2/b-c", "");
	make_file("s3/b-d", "");
	struct scan_options options = sources(list, 3);
	options.follow = true;
	scan_yields(&options,
		"problem p/b-c: two files have the key p/b-c: s1/b-c and s2/b-c" REMEDY
		"problem p/b: is a symbolic link to a directory that contains it; exclude it\n"
		"problem p/b-c: two files have the key p/b-c: s1/b-c and s2/b-c" REMEDY
		"file p/b-d\n");
	tree_end();
}

/* Names that are long and steer terminals still leave room for the remedy. */
static void test_long_names(void)
{
	char name[512] = "\x7f[31m";
	for (size_t i = 5; i + 4 < 240; i += 2)
		memcpy(name + i, "\xc3\xa4", 3);
	char path[2][600];
	tree_begin();
	snprintf(path[0], sizeof path[0], "s1/%s", name + 5);
	snprintf(path[1], sizeof path[1], "s2/%s", name + 5);
	make_file(path[0], "");
	make_file(path[1], "");
	const char *const list[] = {path[0], path[1]};
	struct scan_options options = sources(list, 2);
	struct text got = scan_all(&options);
	CHECK(strstr(text_string(&got), REMEDY) != NULL);
	CHECK(utf8_valid(got.data, got.len));
	text_clear(&got);
	snprintf(path[0], sizeof path[0], "s1/%.5s", name);
	snprintf(path[1], sizeof path[1], "s2/%.5s", name);
	make_file(path[0], "");
	make_file(path[1], "");
	got = scan_all(&options);
	CHECK(strstr(text_string(&got), "s1/\\x7f[31m and s2/\\x7f[31m; exclude one") != NULL);
	text_clear(&got);
	tree_end();
}

static void test_files(void)
{
	static const char *const list[] = {"t/a", "link", "missing", "t/pipe"};
	tree_begin();
	make_file("t/a", "1");
	make_file("t/b", "22");
	make_link("t/b", "link");
	tree_need(mkfifo("t/pipe", 0600) == 0, "mkfifo");
	struct scan_options options = sources(list, 4);
	scan_yields(&options, "file p/a\nfile p/link\nproblem p/missing: does not exist\n"
			      "problem p/pipe: is a named pipe, not a file; exclude it\n");
	/* the link was followed: what is opened is the file itself */
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	struct file_state state;
	CHECK_INT(scan_open(&options, &scan, &problem), 0);
	while (scan_next(scan, &entry, &problem) > 0) {
		if (entry.kind != SCAN_FILE)
			continue;
		int fd = scan_open_file(scan, entry.source, entry.relative, &state);
		CHECK(fd >= 0 && state.ino == entry.ino && state.size == entry.size);
		close(fd);
		CHECK_STRING(entry.path, list[entry.source]);
		CHECK_STRING(entry.relative, entry.source == 1 ? "link" : "a");
	}
	char want[PATH_MAX + 2];
	snprintf(want, sizeof want, "%s/t", tree_path);
	CHECK_STRING(scan_source_path(scan, 1), want);
	CHECK_STRING(scan_source_path(scan, 2), "missing");
	CHECK(scan_open_file(scan, 2, "x", &state) < 0);
	scan_close(scan);
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_INCLUDE, "l*"), 0);
	scan_yields(&options, "excluded p/a\nfile p/link\nproblem p/missing: does not exist\n"
			      "excluded p/pipe\n");
	filter_free(options.filter);
	tree_end();
}

static void test_as(void)
{
	static const char *const list[] = {"t/a", "t/b"};
	static const char *const directory[] = {"t"};
	static const char *const missing[] = {"missing"};
	tree_begin();
	make_file("t/a", "");
	struct scan_options options = sources(list, 1);
	options.as = "x/y";
	scan_yields(&options, "file x/y\n");
	options.n_sources = 2;
	scan_yields(&options, "refused -22: --as names the key of exactly one SOURCE file\n");
	options.n_sources = 1;
	options.sources = directory;
	scan_yields(&options,
		"refused -22: --as names the key of one file, and the SOURCE is a directory\n");
	options.sources = missing;
	scan_yields(&options, "problem x/y: does not exist\n");
	options.sources = list;
	options.as = "";
	scan_yields(&options, "refused -22: --as: the key is empty\n");
	options.as = "x";
	options.files_from = "-";
	scan_yields(&options,
		"refused -22: --as and --files-from cannot be used together: --as is for one file, --files-from for a directory\n");
	options.as = options.files_from = NULL;
	options.prefix = "p\xff";
	scan_yields(&options,
		"refused -22: the prefix: the name is not UTF-8, so it cannot be a key; rename it "
		"or exclude it\n");
	options.n_sources = 0;
	scan_yields(&options, "refused -22: no SOURCE is given\n");
	static const char *const empty[] = {""};
	options = sources(empty, 1);
	scan_yields(&options, "problem p/: does not exist\n");
	tree_end();
}

/* More SOURCE files than descriptors. */
static void test_many_files(void)
{
	enum { N = 3000 };
	static char names[N][16];
	static const char *list[N];
	tree_begin();
	struct text want = TEXT(1024 * 1024);
	for (size_t i = 0; i < N; i++) {
		snprintf(names[i], sizeof names[i], "d%zu/f%05zu", i % 7, (i * 7919) % N);
		make_file(names[i], "");
		list[i] = names[i];
		text_addf(&want, "file p/f%05zu\n", i);
	}
	struct scan_options options = sources(list, N);
	scan_yields(&options, text_string(&want));
	text_clear(&want);
	tree_end();
}

int main(void)
{
	test_merge();
	test_collisions();
	test_files_that_collide();
	test_folder_between();
	test_long_names();
	test_files();
	test_as();
	test_many_files();
	return check_result();
}
