/* The results of a scan for its SOURCEs and single files, and the later opening of their files and
 * folders. */
#include "scan/removal.h"
#include "tree.h"

static struct scan *scan_of(const struct scan_options *options)
{
	struct scan *scan = NULL;
	struct problem problem = {.text = ""};
	if (!CHECK_INT(scan_open(options, &scan, &problem), 0))
		fprintf(stderr, "\t%s\n", problem.text);
	return scan;
}

/* Each entry has the state of its file, and the place where it was found. */
static void test_entries(void)
{
	static const char *const sources[] = {"t/d", "t/f"};
	static const char *const relatives[] = {"b/x", "f", "y"}, *const paths[] = {"t/d/b/x",
									  "t/f", "t/d/y"};
	static const size_t indexes[] = {0, 1, 0};
	struct scan_entry entry;
	struct problem problem;
	struct stat st;
	tree_begin();
	make_file("t/d/b/x", "1");
	make_file("t/d/y", "22");
	make_file("t/f", "333");
	struct scan_options options = one_source(sources);
	options.n_sources = 2;
	options.prefix = "p";
	for (size_t i = 0; i < 3; i++) {
		const struct timespec at = {.tv_sec = 1000 + (time_t)i, .tv_nsec = 7};
		CHECK_INT(utimensat(AT_FDCWD, paths[i], (struct timespec[]){at, at}, 0), 0);
	}
	struct scan *scan = scan_of(&options);
	for (size_t i = 0; i < 3; i++) {
		char key[20];
		CHECK_INT(stat(paths[i], &st), 0);
		if (!CHECK_INT(scan_next(scan, &entry, &problem), 1))
			break;
		snprintf(key, sizeof key, "p/%s", relatives[i]);
		CHECK_INT(entry.kind, SCAN_FILE);
		CHECK_STRING(entry.key, key);
		CHECK_STRING(entry.relative, relatives[i]);
		CHECK_STRING(entry.path, paths[i]);
		CHECK_STRING(entry.suffix, "");
		CHECK_STRING(entry.content_id, "");
		CHECK_INT(entry.source, indexes[i]);
		CHECK_INT(entry.size, st.st_size);
		CHECK_INT(entry.mtime_ns, (1000 + (int64_t)i) * 1000000000 + 7);
		CHECK_INT(entry.dev, st.st_dev);
		CHECK_INT(entry.ino, st.st_ino);
		CHECK(!entry.is_rotated && !entry.is_piece && !entry.may_grow && !entry.is_new);
	}
	CHECK_INT(scan_next(scan, &entry, &problem), 0);
	scan_close(scan);
	tree_end();
}

/* A SOURCE by its path without links, and what it is. */
static void test_sources(void)
{
	static const char *const sources[] = {"link", "t/f", "gone", "t/f/x"};
	static const int errors[] = {0, 0, -ENOENT, -ENOTDIR};
	char want[PATH_MAX + 20];
	tree_begin();
	make_file("t/f", "1");
	make_link("t", "link");
	struct scan_options options = one_source(sources);
	options.n_sources = 4;
	struct scan *scan = scan_of(&options);
	for (size_t i = 0; i < 4; i++) {
		CHECK_INT(scan_source_error(scan, i), errors[i]);
		CHECK_INT(scan_source_is_directory(scan, i), i == 0);
		snprintf(want, sizeof want, "%s/t", tree_path);
		CHECK_STRING(scan_source_path(scan, i), errors[i] ? sources[i] : want);
	}
	scan_close(scan);
	tree_end();
}

/* A SOURCE that is given twice is refused, whatever it is called. Two that are not there are not.
 */
static void test_given_twice(void)
{
	static const struct {
		const char *sources[2];
		bool is_twice;
	} rows[] = {
		{{"t", "./t/"}, true},
		{{"t", "link"}, true},
		{{"t/f", "t/../t/f"}, true},
		{{"t/f", "t/g"}, false},
		{{"t", "t/f"}, false},
		{{"t/f", "other"}, false}, /* a link to it, which has a key of its own */
		{{"gone", "gone"}, false},
	};
	tree_begin();
	make_file("t/f", "1");
	make_file("t/g", "1");
	make_link("t", "link");
	make_link("t/f", "other");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scan_options options = one_source(rows[i].sources);
		struct scan *scan = NULL;
		struct problem problem = {.text = ""};
		options.n_sources = 2;
		if (!CHECK_INT(
			    scan_open(&options, &scan, &problem), rows[i].is_twice ? -EINVAL : 0))
			fprintf(stderr, "\trow %zu\n", i);
		CHECK_INT(strstr(problem.text, "are the same: give it once") != NULL,
			rows[i].is_twice);
		scan_close(scan);
	}
	tree_end();
}

/* The entry of one file that is named. */
static void test_look(void)
{
	static const char *const sources[] = {"t", "t/d", "single", "file"};
	static const struct {
		const char *path;
		int result;
		enum scan_kind kind;
		const char *key;
		size_t source;
	} rows[] = {
		{"t/a", 1, SCAN_FILE, "p/a", 0},
		{"./t/../t/a", 1, SCAN_FILE, "p/a", 0},
		{"link/a", 1, SCAN_FILE, "p/a", 0},
		{"t/e/x", 1, SCAN_FILE, "p/e/x", 0},
		{"t/a.tmp", 1, SCAN_EXCLUDED, "p/a.tmp", 0},
		/* left out below the one SOURCE, and wanted below the other */
		{"t/d/x", 1, SCAN_FILE, "p/x", 1},
		{"t/d/x.tmp", 1, SCAN_EXCLUDED, "p/x.tmp", 1},
		{"t/gone", 1, SCAN_PROBLEM, "p/gone", 0},
		{"t/e", 1, SCAN_PROBLEM, "p/e", 0},
		{"t/pipe", 1, SCAN_PROBLEM, "p/pipe", 0},
		{"t/ln", 1, SCAN_LINK, "p/ln", 0},
		{"single", 1, SCAN_FILE, "p/single", 2}, /* a link to far/f */
		{"far/f", 1, SCAN_FILE, "p/single", 2},
		{"far/g", 0, SCAN_FILE, NULL, 0},
		{"file", 1, SCAN_FILE, "p/file", 3},
		{"other", 0, SCAN_FILE, NULL, 0},
		{"gone/x", -ENOENT, SCAN_FILE, NULL, 0},
	};
	tree_begin();
	make_file("t/a", "1");
	make_file("t/a.tmp", "1");
	make_file("t/e/x", "1");
	make_file("t/d/x", "1");
	make_file("t/d/x.tmp", "1");
	make_file("far/f", "1");
	make_file("far/g", "1");
	make_file("file", "1");
	make_file("other", "1");
	make_link("t", "link");
	make_link("a", "t/ln");
	make_link("far/f", "single");
	tree_need(mkfifo("t/pipe", 0600) == 0, "mkfifo");
	struct scan_options options = one_source(sources);
	options.n_sources = 4;
	options.prefix = "p";
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "*.tmp"), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "d/"), 0);
	struct scan *scan = scan_of(&options);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scan_entry entry = {.key = ""};
		struct problem problem = {.text = ""};
		bool good = CHECK_INT(
			scan_make_entry(scan, rows[i].path, &entry, &problem), rows[i].result);
		if (good && rows[i].result > 0) {
			good &= CHECK_INT(entry.kind, rows[i].kind);
			good &= CHECK_STRING(entry.key, rows[i].key);
			good &= CHECK_INT(entry.source, rows[i].source);
			good &= CHECK(entry.kind != SCAN_PROBLEM || *entry.problem.text);
			good &= CHECK(entry.kind != SCAN_FILE || entry.size == 1);
		}
		good &= CHECK_INT(*problem.text != '\0', rows[i].result < 0);
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].path, problem.text);
	}
	scan_close(scan);
	filter_free(options.filter);
	tree_end();
}

/* A file that was renamed in its folder is found by its inode, if it is still the same version. */
static void test_moved(void)
{
	struct file_state version, state;
	tree_begin();
	make_file("t/d/f", "content");
	make_file("t/d/g", "others!");
	struct scan_options options = one_source((const char *const[]){"t"});
	struct scan *scan = scan_of(&options);
	const size_t descriptors = count_descriptors();
	int fd = scan_open_file(scan, 0, "d/f", &version);
	CHECK(fd >= 0);
	close(fd);
	version.ctime_ns = 0; /* a rename changes it */
	fd = scan_open_moved(scan, 0, "d/f", &version, &state);
	CHECK(fd >= 0 && state.ino == version.ino);
	close(fd);
	tree_need(rename("t/d/f", "t/d/f.1") == 0, "rename");
	tree_need(rename("t/d/g", "t/d/f") == 0, "rename");
	fd = scan_open_moved(scan, 0, "d/f", &version, &state);
	CHECK(fd >= 0 && state.ino == version.ino && state.size == 7);
	close(fd);
	struct file_state older = version;
	older.mtime_ns--;
	CHECK_INT(scan_open_moved(scan, 0, "d/f", &older, &state), -ENOENT);
	tree_need(rename("t/d/f.1", "t/f") == 0, "rename"); /* to another folder */
	CHECK_INT(scan_open_moved(scan, 0, "d/f", &version, &state), -ENOENT);
	CHECK_INT(count_descriptors(), descriptors);
	scan_close(scan);
	tree_end();
}

/* An interrupted removal has left the SOURCE itself in its folder. It is put back unless the scan
 * is read_only. */
static void test_left_by_a_removal(void)
{
	struct scan_options options = one_source((const char *const[]){"t/f"});
	tree_begin();
	make_file("t/" REMOVAL_FOLDER "/f", "1");
	options.read_only = true;
	scan_yields(&options, "problem f: does not exist\n");
	CHECK(access("t/f", F_OK) != 0);
	options.read_only = false;
	scan_yields(&options, "file f\n");
	tree_end();
}

/* The folder from which a file is removed: never behind a link. */
static void test_folders(void)
{
	static const char *const sources[] = {"t", "t/d/f", "single", "gone"};
	static const struct {
		size_t source;
		const char *relative;
		const char *name; /* NULL: it is not opened */
		const char *folder;
		int error;
	} rows[] = {
		{0, "a", "a", "t", 0},
		{0, "d/f", "f", "t/d", 0},
		{0, "ln/f", NULL, NULL, -ELOOP},
		{0, "gone/f", NULL, NULL, -ENOENT},
		{1, "f", "f", "t/d", 0},
		{2, "single", NULL, NULL, -ELOOP},
		{3, "gone", NULL, NULL, -ENOENT},
	};
	struct stat want, got;
	tree_begin();
	make_file("t/a", "1");
	make_file("t/d/f", "1");
	make_file("far", "1");
	make_link("d", "t/ln");
	make_link("far", "single");
	if (geteuid() == 0) {
		tree_need(chown("t", 11, (gid_t)-1) == 0, "chown");
		tree_need(chown("t/d", 12, (gid_t)-1) == 0, "chown");
	}
	struct scan_options options = one_source(sources);
	options.n_sources = 4;
	struct scan *scan = scan_of(&options);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *name = NULL;
		uid_t owner = 0;
		const int fd =
			scan_open_folder(scan, rows[i].source, rows[i].relative, &name, &owner);
		bool good = CHECK_INT(fd < 0 ? fd : 0, rows[i].error);
		if (fd >= 0 && rows[i].name) {
			good &= CHECK_STRING(name, rows[i].name);
			good &= CHECK(!stat(rows[i].folder, &want) && !fstat(fd, &got) &&
				      want.st_ino == got.st_ino);
			/* the owner of the SOURCE, or of the folder that a SOURCE file is in */
			if (geteuid() == 0)
				good &= CHECK_INT(owner, rows[i].source == 0 ? 11 : 12);
		}
		if (fd >= 0)
			close(fd);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
	}
	scan_close(scan);
	tree_end();
}

int main(void)
{
	test_entries();
	test_sources();
	test_given_twice();
	test_look();
	test_moved();
	test_left_by_a_removal();
	test_folders();
	return check_result();
}
