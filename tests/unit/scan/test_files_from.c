#include "scan/removal.h"
#include "tree.h"

static const char *const t_source[] = {"t"};

static struct scan_options list_options(const char *list)
{
	struct scan_options options = one_source(t_source);
	options.files_from = list;
	options.prefix = "p";
	return options;
}

static void write_list(const char *bytes, size_t n)
{
	int fd = open("list", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	tree_need(fd >= 0 && write(fd, bytes, n) == (ssize_t)n, "list");
	close(fd);
}

static void make_listed_tree(void)
{
	static const char *const paths[] = {"t/a", "t/a-b", "t/d/a", "t/d/b", "t/d.txt", "t/x\ny",
		"t/cr\r", "outside", "t/e/e/f", "t/e/z", NULL};
	tree_begin();
	make_tree(paths);
	make_link("a", "t/link");
	make_link("d", "t/dlink");
	make_link("..", "t/up");
	make_link("nowhere", "t/dangling");
}

#define ABSENT  "does not exist"
#define OUTSIDE "is absolute or contains '..'; list paths relative to the SOURCE"
#define BEHIND  "lies behind a symbolic link, and links are not followed; use --follow"

static void test_lines(void)
{
	static const struct {
		const char *list, *want;
	} rows[] = {
		{"", ""},
		{"\n\n\n", ""},
		{"a\n", "file p/a\n"},
		{"a", "file p/a\n"},
		{"d/b\nd.txt\na-b\nd/a\na\n",
			"file p/a\nfile p/a-b\nfile p/d.txt\nfile p/d/a\nfile p/d/b\n"},
		{"a\na\n./a\n.//a\n\na/\n", "file p/a\n"},
		{"e/e/f\ne/z\n", "file p/e/e/f\nfile p/e/z\n"},
		{"d//b\n./d/./a\nd/.//b\n", "file p/d/a\nfile p/d/b\n"},
		{"/etc/passwd\n", "problem p//etc/passwd: " OUTSIDE "\n"},
		{"../outside\n", "problem p/../outside: " OUTSIDE "\n"},
		{"d/../a\n", "problem p/d/../a: " OUTSIDE "\n"},
		{"./d//../a\n", "problem p/./d//../a: " OUTSIDE "\n"},
		{"..\n", "problem p/..: " OUTSIDE "\n"},
		{"missing\na\n", "file p/a\nproblem p/missing: " ABSENT "\n"},
		{"a/b\n", "problem p/a/b: " ABSENT "\n"},
		{"no/such\nno/thing\n",
			"problem p/no/such: " ABSENT "\nproblem p/no/thing: " ABSENT "\n"},
		{"a\r\n", "problem p/a\r: " ABSENT
			  "; the line in the list ends with a carriage return, remove it\n"},
		{"cr\r\n", "file p/cr\r\n"},
		{"d\n", "problem p/d: is a directory, not a file; list the files in it\n"},
		{".\n", "problem p/: is a directory, not a file; list the files in it\n"},
		{"link\n", "link p/link\n"},
		{"dangling\n", "link p/dangling\n"},
		{"dlink/a\n", "problem p/dlink/a: " BEHIND "\n"},
		{"up/outside\n", "problem p/up/outside: " BEHIND "\n"},
	};
	make_listed_tree();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scan_options options = list_options("list");
		write_list(rows[i].list, strlen(rows[i].list));
		if (!scan_yields(&options, rows[i].want))
			fprintf(stderr, "\trow %zu\n", i);
	}
	struct scan_options options = list_options("list");
	options.follow = true;
	static const char followed[] = "link\ndlink/a\nup/outside\ndangling\n";
	write_list(followed, strlen(followed));
	scan_yields(&options,
		"problem p/dangling: is a symbolic link to a file that does not exist; fix or exclude it\n"
		"file p/dlink/a\nfile p/link\nfile p/up/outside\n");
	tree_end();
}

static void test_nul_and_filters(void)
{
	make_listed_tree();
	struct scan_options options = list_options("list");
	static const char list[] = "x\ny\0d/b\0\0a\0cr\r";
	write_list(list, sizeof list - 1);
	scan_yields(&options, "file p/a\nfile p/cr\r\nfile p/d/b\nfile p/x\ny\n");
	CHECK_INT(filter_new(&options.filter), 0);
	CHECK_INT(filter_add(options.filter, FILTER_EXCLUDE, "d/"), 0);
	scan_yields(&options, "file p/a\nfile p/cr\r\nexcluded p/d/b\nfile p/x\ny\n");
	filter_free(options.filter);
	options.filter = NULL;
	static char lines[PATH_MAX + 3];
	memset(lines, '\n', PATH_MAX);
	memcpy(lines + PATH_MAX, "a\0", 3);
	write_list(lines, sizeof lines);
	scan_yields(&options,
		"refused -22: the list list has lines, and a NUL byte in one of them: end either "
		"each path with a NUL, or none\n");
	tree_end();
}

static void test_stdin(void)
{
	make_listed_tree();
	int pipes[2];
	tree_need(pipe(pipes) == 0 && write(pipes[1], "d/b\na\n", 6) == 6, "pipe");
	close(pipes[1]);
	int kept = dup(STDIN_FILENO);
	tree_need(kept >= 0 && dup2(pipes[0], STDIN_FILENO) == STDIN_FILENO, "dup2");
	struct scan_options options = list_options("-");
	scan_yields(&options, "file p/a\nfile p/d/b\n");
	dup2(kept, STDIN_FILENO);
	close(kept);
	close(pipes[0]);
	tree_end();
}

static void test_long_lines(void)
{
	make_listed_tree();
	enum { LINE = 100000 };
	char *list = malloc(LINE + 4);
	tree_need(list != NULL, "malloc");
	memset(list, 'x', LINE);
	memcpy(list + LINE, "\na\n", 4);
	write_list(list, LINE + 3);
	struct scan_options options = list_options("list");
	struct text got = scan_all(&options);
	const char *lines = text_string(&got);
	CHECK(strncmp(lines, "file p/a\nproblem p/xxx", 22) == 0);
	CHECK(strstr(lines, ": is longer than 4095 bytes, so it cannot be a path\n") != NULL);
	text_clear(&got);
	/* a name that no file can have, but a path may, up to the longest one */
	static const size_t bytes[] = {PATH_MAX - 1, 300};
	for (size_t i = 0; i < 2; i++) {
		list[bytes[i]] = '\n';
		write_list(list, bytes[i] + 1);
		got = scan_all(&options);
		CHECK(strstr(text_string(&got), ": cannot be accessed: File name too long\n"));
		text_clear(&got);
	}
	free(list);
	tree_end();
}

/* An interrupted removal has left a listed file in its folder. It is put back unless the scan only
 * looks. */
static void test_left_by_a_removal(void)
{
	make_listed_tree();
	make_file("t/" REMOVAL_FOLDER "/left", "");
	write_list("left\n", 5);
	struct scan_options options = list_options("list");
	options.read_only = true;
	scan_yields(&options, "problem p/left: " ABSENT "\n");
	CHECK(access("t/left", F_OK) != 0);
	options.read_only = false;
	scan_yields(&options, "file p/left\n");
	tree_end();
}

/* Chunks end anywhere in a line. */
static void test_many(void)
{
	enum { N = 20000 };
	tree_begin();
	make_file("t/f", "");
	char *list = malloc(N * 8 + 1);
	tree_need(list != NULL, "malloc");
	struct text want = TEXT(4 * 1024 * 1024);
	for (size_t i = 0; i < N; i++) {
		sprintf(list + i * 8, "m%06zu\n", N - 1 - i);
		text_addf(&want, "problem p/m%06zu: " ABSENT "\n", i);
	}
	write_list(list, N * 8);
	struct scan_options options = list_options("list");
	struct text got = scan_all(&options);
	CHECK(strcmp(text_string(&got), text_string(&want)) == 0);
	text_clear(&got);
	text_clear(&want);
	free(list);
	tree_end();
}

static void test_refusals(void)
{
	static const char *const two[] = {"t", "t"};
	static const char *const file[] = {"t/a"};
	static const char *const missing[] = {"missing"};
	make_listed_tree();
	write_list("a\n", 2);
	struct scan_options options = list_options("list");
	options.sources = two;
	options.n_sources = 2;
	scan_yields(&options, "refused -22: --files-from needs exactly one SOURCE directory\n");
	options.n_sources = 1;
	options.sources = file;
	scan_yields(&options,
		"refused -22: --files-from lists paths below a directory, and the SOURCE is a "
		"file\n");
	options.sources = missing;
	scan_yields(&options, "problem p/missing: does not exist\n");
	options = list_options("no\x1blist");
	scan_yields(&options,
		"refused -2: the list no\\x1blist cannot be read: No such file or directory\n");
	options = list_options("t");
	scan_yields(&options, "refused -21: the list t cannot be read: Is a directory\n");
	tree_end();
}

int main(void)
{
	test_lines();
	test_nul_and_filters();
	test_stdin();
	test_long_lines();
	test_left_by_a_removal();
	test_many();
	test_refusals();
	return check_result();
}
