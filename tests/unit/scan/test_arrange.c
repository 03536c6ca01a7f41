/* Scans whose keys a template makes. */
#include "base/clock.h"
#include "scan/key/key_template.h"
#include "tree.h"

static const char *const t_source[] = {"t"};
static struct family_rules *families;

/* The options' template stays until the next call. */
static void use(struct scan_options *options, const char *text)
{
	static struct key_template *template;
	struct problem problem;
	const struct key_template_options how = {.text = text, .families = families};
	key_template_free(template);
	template = NULL;
	if (text)
		tree_need(key_template_new(&how, &template, &problem) == 0, text);
	options->key_template = template;
}

static void set_mtime(const char *path, int64_t s)
{
	const struct timespec times[2] = {{.tv_sec = s}, {.tv_sec = s}};
	tree_need(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void test_order(void)
{
	static const char *const paths[] = {"t/a/z", "t/b/y", "t/c/x", "t/b.d", NULL};
	struct scan_options options = one_source(t_source);
	tree_begin();
	make_tree(paths);
	make_link("a/z", "t/link");
	tree_need(mkfifo("t/pipe", 0600) == 0, "mkfifo");
	options.prefix = "p";
	use(&options, "{name}");
	scan_yields(&options, "link \nspecial \nfile p/b.d\nfile p/x\nfile p/y\nfile p/z\n");
	use(&options, "{ext}-{name}");
	scan_yields(&options, "link \nspecial \nfile p/-x\nfile p/-y\nfile p/-z\nfile p/.d-b.d\n");
	tree_end();
}

#define REMEDY                                                                                     \
	"; exclude one, or make --key distinguish them, for instance by {path} or {mtime:…}\n"

static void test_collisions(void)
{
	static const char *const paths[] = {"t/1/x", "t/2/x", "t/3/x", "t/4/y", "t/x/a", NULL};
	struct scan_options options = one_source(t_source);
	tree_begin();
	make_tree(paths);
	use(&options, "{name}");
	scan_yields(&options,
		"file a\n"
		"problem x: two files have the key x: t/1/x and t/2/x" REMEDY
		"problem x: two files have the key x: t/1/x and t/2/x" REMEDY
		"problem x: two files have the key x: t/2/x and t/3/x" REMEDY "file y\n");
	/* A file skipped today would take the key tomorrow. */
	options.min_age_ms = 100000;
	options.now_wall_ns = 2000000000 * INT64_C(1000000000);
	set_mtime("t/1/x", 1999999999);
	set_mtime("t/2/x", 1);
	tree_need(unlink("t/3/x") == 0, "unlink");
	scan_yields(&options,
		"file a\n"
		"problem x: two files have the key x: t/1/x and t/2/x" REMEDY
		"problem x: two files have the key x: t/1/x and t/2/x" REMEDY "file y\n");
	tree_end();
}

static void test_several_sources(void)
{
	static const char *const sources[] = {"t/1", "t/2", "t/f"};
	static const char *const paths[] = {"t/1/a", "t/1/c", "t/2/b", "t/2/d", "t/f", NULL};
	struct scan_options options = {.sources = sources, .n_sources = 3, .prefix = "p/"};
	tree_begin();
	make_tree(paths);
	use(&options, "k-{path}");
	scan_yields(&options, "file p/k-a\nfile p/k-b\nfile p/k-c\nfile p/k-d\nfile p/k-f\n");
	tree_end();
}

/* A path that is too long for a key may have a name that is not. */
static void test_names_that_cannot_be_keys(void)
{
	char path[PATH_MAX] = "t/", name[256];
	struct scan_options options = one_source(t_source);
	tree_begin();
	memset(name, 'n', 200);
	name[200] = '\0';
	for (int i = 0; i < 6; i++)
		strcat(strcat(path, name), "/");
	strcat(path, "x.y");
	make_file(path, "");
	make_file("t/bad\xff", "");
	use(&options, "{ext}{name}");
	scan_yields(&options,
		"problem bad\xff: the name is not UTF-8, so it cannot be a key; rename it or "
		"exclude it\nfile .yx.y\n");
	use(&options, "{ext}");
	scan_yields(&options, "problem : --key makes an empty key of it\nfile .y\n");
	use(&options, "{path}-{path}");
	struct text got = scan_all(&options);
	CHECK(strstr(text_string(&got), "and S3 allows 1024; use a shorter name or prefix") !=
		NULL);
	text_clear(&got);
	tree_end();
}

static void test_content(void)
{
	struct scan_options options = one_source(t_source);
	tree_begin();
	make_file("t/a", "a\n");
	make_file("t/b", "b\n");
	make_file("t/secret", "s\n");
	tree_need(chmod("t/secret", 0) == 0, "chmod");
	options.max_bytes = 2;
	make_file("t/large", "large\n");
	use(&options, "{id:8}");
	drop_privileges();
	scan_yields(&options,
		"file \n"
		"problem : cannot be read: Permission denied; give this user access, or exclude it\n"
		"file 02638299\nfile 87428fc5\n");
}

/* Changes t/a when the scan asks for the n-th time whether it is over. It asks once before it reads
 * a file for its id, and again for each chunk. */
struct writer {
	int asked, at;
};

static bool write_more(void *arg)
{
	struct writer *writer = arg;
	if (++writer->asked == writer->at)
		make_file("t/a", "more\n");
	return false;
}

/* A file that is written to while it is read has no id. One that is written to before that is taken
 * as it is then, also if it is young by now. */
static void test_content_that_changes(void)
{
	static const struct {
		int at;
		uint64_t min_age_ms, size;
		const char *key, *problem;
		enum scan_kind kind;
	} rows[] = {
		{0, 0, 2, "87428fc5", "", SCAN_FILE},
		{1, 0, 5, "2396099c", "", SCAN_FILE},
		{1, 3600000, 5, "", "", SCAN_WAITS},
		{2, 0, 2, "",
			"changed while it was read for {id} of --key; the next run takes it, and "
			"--min-age leaves out files that were modified a moment ago",
			SCAN_PROBLEM},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct scan_options options = one_source(t_source);
		struct writer writer = {.at = rows[i].at};
		struct scan *scan;
		struct scan_entry entry;
		struct problem problem = {.text = ""};
		tree_begin();
		make_file("t/a", "a\n");
		set_mtime("t/a", 1);
		options.abandon = write_more;
		options.abandon_arg = &writer;
		options.min_age_ms = rows[i].min_age_ms;
		options.now_wall_ns = clock_wall_ns();
		use(&options, "{id:8}");
		tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
		CHECK_INT(scan_next(scan, &entry, &problem), 1);
		const bool good = CHECK_INT(entry.kind, rows[i].kind) &&
				  CHECK_STRING(entry.key, rows[i].key) &&
				  CHECK_STRING(entry.problem.text, rows[i].problem) &&
				  CHECK_INT(entry.size, rows[i].size) &&
				  CHECK(entry.kind != SCAN_FILE || !*entry.content_id);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		scan_close(scan);
		tree_end();
	}
}

/* "kind key" of one file, "none", or the sentence. */
static void check_look(struct scan *scan, const char *path, const char *want)
{
	static const char *const kinds[] = {
		"file", "problem", "link", "waits", "notice", "special", "excluded"};
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	char got[1200];
	const int r = scan_make_entry(scan, path, &entry, &problem);
	if (r > 0)
		snprintf(got, sizeof got, "%s %s of %s", kinds[entry.kind], entry.key, entry.path);
	else
		snprintf(got, sizeof got, "%s", r ? problem.text : "none");
	if (!CHECK_STRING(got, want))
		fprintf(stderr, "\t%s\n", path);
}

static void test_look(void)
{
	static const char *const sources[] = {"t", "one/f", "by-link"};
	static const char *const paths[] = {
		"t/a/app.log.1", "t/b/c.tmp", "tt/x", "one/f", "one/g", "far/away/y", NULL};
	struct scan_options options = {.sources = sources, .n_sources = 3, .prefix = "p"};
	struct scan *scan;
	struct problem problem;
	char absolute[PATH_MAX + 20];
	tree_begin();
	make_tree(paths);
	make_link("far/away", "by-link");
	make_link("a", "t/link");
	make_link("a/app.log.1", "t/file-link");
	use(&options, "{family}-{dir}{name}");
	tree_need(filter_new(&options.filter) == 0, "filter");
	tree_need(filter_add(options.filter, FILTER_EXCLUDE, "*.tmp") == 0, "filter");
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	check_look(scan, "t/a/app.log.1", "file p/app.log-a/app.log.1 of t/a/app.log.1");
	check_look(scan, "t/../t//a/./app.log.1", "file p/app.log-a/app.log.1 of t/a/app.log.1");
	snprintf(absolute, sizeof absolute, "%s/t/link/app.log.1", tree_path);
	check_look(scan, absolute, "file p/app.log-a/app.log.1 of t/a/app.log.1");
	check_look(scan, "t/file-link", "link  of t/file-link");
	check_look(scan, "t/a", "problem  of t/a");
	check_look(scan, "t/none", "problem  of t/none");
	check_look(scan, "t/no/ne", "t/no: No such file or directory");
	check_look(scan, "t/b/c.tmp", "excluded  of t/b/c.tmp");
	check_look(scan, "tt/x", "none");
	check_look(scan, "one/g", "none");
	check_look(scan, "one/f", "file p/f-f of one/f");
	check_look(scan, "by-link/y", "file p/y-y of by-link/y");
	check_look(scan, "far/away/y", "file p/y-y of by-link/y");
	scan_close(scan);
	filter_free(options.filter);
	tree_end();
}

static bool is_over_soon(void *arg)
{
	return ++*(int *)arg > 3;
}

static void test_stop(void)
{
	static const char *const paths[] = {"t/1", "t/2", "t/3", "t/4", "t/5", NULL};
	struct scan_options options = one_source(t_source);
	int asked = 0;
	tree_begin();
	make_tree(paths);
	options.abandon = is_over_soon;
	options.abandon_arg = &asked;
	use(&options, "{name}");
	scan_yields(&options, "error -125: stopped while the files were listed\n");
	tree_end();
}

static void test_as(void)
{
	static const char *const paths[] = {"t/1", NULL};
	struct scan_options options = one_source(t_source);
	options.as = "k";
	tree_begin();
	make_tree(paths);
	use(&options, "{name}");
	scan_yields(&options,
		"refused -22: --as and --key cannot be used together: --as names the key of one "
		"file\n");
	tree_end();
}

int main(void)
{
	struct problem problem;
	tree_need(family_rules_new(&families, &problem) == 0, "families");
	test_order();
	test_collisions();
	test_several_sources();
	test_names_that_cannot_be_keys();
	test_content_that_changes();
	test_look();
	test_stop();
	test_as();
	in_child(test_content);
	struct scan_options none = one_source(t_source);
	use(&none, NULL);
	family_rules_free(families);
	return check_result();
}
