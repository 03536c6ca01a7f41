/* The folder that files are moved to, and the sources of a run as its marks name them. */
#include "../check.h"
#include "lease/process.h"
#include "upload/push_struct.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];

/* The path of a name below the base; "" is the base itself. An absolute one stays. */
static const char *path_of(const char *name, char ret[static 200])
{
	if (*name == '/')
		snprintf(ret, 200, "%s", name);
	else
		snprintf(ret, 200, "%s%s%s", base, *name ? "/" : "", name);
	return ret;
}

static const struct {
	const char *sources[2], *target;
	const char *says; /* NULL: it is taken */
} rows[] = {
	{{"tree"}, "moved", NULL},
	{{"tree"}, "tree-moved", NULL}, /* its name only begins like that of the source */
	{{"tree"}, "", NULL},           /* the source lies in it */
	{{"tree"}, "tree", "lies in the SOURCE"},
	{{"tree"}, "tree/below", "lies in the SOURCE"},
	{{"tree"}, "link", "lies in the SOURCE"}, /* which leads to tree/below */
	{{"moved", "tree"}, "tree/below", "lies in the SOURCE"},
	{{""}, "moved", "lies in the SOURCE"},
	{{"/"}, "moved", "lies in the SOURCE"},
	{{"tree/file"}, "moved", NULL},
	{{"tree/file"}, "tree", NULL}, /* only a directory is listed */
	{{"tree/file"}, "tree/below", NULL},
	{{"gone"}, "moved", NULL}, /* the scan reports that */
	{{"tree"}, "gone", "make the directory first"},
	{{"tree"}, "tree/file", "cannot be opened"},
	{{"tree"}, "/proc", "on another file system"},
	{{"tree", "gone"}, "/proc", "on another file system"},
};

static bool open_run(const char *const sources[2], struct s3once_push **ret)
{
	char text[400] = "";
	static char paths[2][200];
	static const char *list[2];
	size_t n = 0;
	for (; n < 2 && sources[n]; n++)
		list[n] = path_of(sources[n], paths[n]);
	const struct s3once_options options = {.sources = list,
		.n_sources = n,
		.bucket = "b",
		.marks = "sqlite:/nowhere/at/all",
		.removes = 1};
	return CHECK_INT(s3once_push_new(&options, ret, text, sizeof text), 0);
}

static void test_targets(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct s3once_push *push;
		struct problem problem = {0};
		struct stat got = {0}, want = {0};
		char target[200];
		if (!open_run(rows[i].sources, &push))
			return;
		struct run *run = &push->run;
		CHECK_INT(run->files.move_to_fd, -1);
		run->options.move_to = path_of(rows[i].target, target);
		bool good = CHECK_INT(run_files_open_move_to(&run->files, &run->options, &problem),
			rows[i].says == NULL);
		if (rows[i].says)
			good &= CHECK(strstr(problem.text, rows[i].says) != NULL);
		else
			good &= CHECK(!fstat(run->files.move_to_fd, &got) && !stat(target, &want) &&
				      got.st_ino == want.st_ino);
		if (!good)
			fprintf(stderr, "\trow %zu: %s\n", i, problem.text);
		s3once_push_free(push);
	}
}

/* Nothing is opened unless it is asked for. Marks name a host and a directory. */
static void test_sources(void)
{
	struct s3once_push *push;
	struct problem problem = {0};
	struct process self;
	char want[600];
	if (!open_run((const char *const[]){"tree", "moved"}, &push))
		return;
	CHECK(run_files_open_move_to(&push->run.files, &push->run.options, &problem));
	CHECK_INT(push->run.files.move_to_fd, -1);
	process_self(&self);
	snprintf(want, sizeof want, "%s:%s/tree", self.host, base);
	CHECK_STRING(push->run.files.sources_of_marks[0], want);
	snprintf(want, sizeof want, "%s:%s/moved", self.host, base);
	CHECK_STRING(push->run.files.sources_of_marks[1], want);
	s3once_push_free(push);
}

int main(void)
{
	static const char *const folders[] = {"tree", "tree/below", "tree-moved", "moved"};
	char made[] = "/tmp/run_files.XXXXXX", path[200], below[200], command[100];
	CHECK(mkdtemp(made) != NULL);
	CHECK(realpath(made, path) != NULL);
	snprintf(base, sizeof base, "%.60s", path);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		CHECK_INT(mkdir(path_of(folders[i], path), 0700), 0);
	close(open(path_of("tree/file", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK_INT(symlink(path_of("tree/below", below), path_of("link", path)), 0);
	test_targets();
	test_sources();
	snprintf(command, sizeof command, "rm -r %s", made);
	CHECK_INT(system(command), 0);
	return check_result();
}
