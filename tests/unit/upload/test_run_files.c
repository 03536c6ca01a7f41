/* The folder that files are moved to, and the sources of a run as its marks name them. */
#include "../check.h"
#include "base/clock.h"
#include "lease/process.h"
#include "scan/scan.h"
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

/* Lists the run's files: a letter for the kind of each entry, and its key. */
static bool lists(const struct s3once_options *with, const char *want)
{
	static const char letters[] = {[SCAN_FILE] = 'f',
		[SCAN_WAITS] = 'w',
		[SCAN_LINK] = 'l',
		[SCAN_SPECIAL] = 's',
		[SCAN_NOTICE] = 'n',
		[SCAN_EXCLUDED] = 'x',
		[SCAN_PROBLEM] = 'p'};
	char text[400] = "", got[600] = "", source[200];
	const char *const sources[] = {path_of("list", source)};
	struct s3once_options options = *with;
	struct s3once_push *push;
	struct scan_entry entry;
	struct problem problem;
	options.sources = options.sources ? options.sources : sources;
	options.n_sources = 1;
	options.bucket = "b";
	options.marks = options.marks ? options.marks : "sqlite:/nowhere/at/all";
	if (!CHECK_INT(s3once_push_new(&options, &push, text, sizeof text), 0)) {
		fprintf(stderr, "\t%s\n", text);
		return false;
	}
	while (scan_next(push->run.files.scan, &entry, &problem) > 0) {
		const size_t n = strlen(got);
		snprintf(got + n, sizeof got - n, "%c:%s ", letters[entry.kind], entry.key);
	}
	s3once_push_free(push);
	return CHECK_STRING(got, want);
}

static void make_file(const char *name, const char *content, int64_t age_s)
{
	char path[200];
	const int fd = open(path_of(name, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(write(fd, content, strlen(content)) >= 0);
	const struct timespec at = {.tv_sec = clock_wall_s() - age_s};
	CHECK_INT(futimens(fd, (struct timespec[]){at, at}), 0);
	close(fd);
}

/* Each option about the files of a run reaches its scan. */
static void test_options_reach_the_scan(void)
{
	static const struct s3once_rule no_a[] = {{S3ONCE_RULE_EXCLUDE, "a"}};
	char path[200], list[200], one[200], folder[200];
	const char *const file[] = {path_of("list/a", one)},
			  *folders[] = {path_of("list/d", folder)};
	CHECK_INT(mkdir(path_of("list", path), 0700), 0);
	CHECK_INT(mkdir(path_of("list/d", path), 0700), 0);
	make_file("list/a", "1", 9000);
	make_file("list/big", "123456", 9000);
	make_file("list/d/x", "1", 9000);
	make_file("list/young", "1", 0);
	make_file("names", "d/x\n", 0);
	CHECK_INT(symlink("a", path_of("list/ln", path)), 0);
	lists(&(struct s3once_options){0}, "f:a f:big f:d/x l:ln f:young ");
	lists(&(struct s3once_options){.prefix = "p/"}, "f:p/a f:p/big f:p/d/x l:p/ln f:p/young ");
	lists(&(struct s3once_options){.as = "k", .sources = file}, "f:k ");
	lists(&(struct s3once_options){.follow = 1}, "f:a f:big f:d/x f:ln f:young ");
	lists(&(struct s3once_options){.min_age_ms = 3600000}, "f:a f:big f:d/x l:ln w:young ");
	lists(&(struct s3once_options){.min_age_ms = 3600000, .final = 1},
		"f:a f:big f:d/x l:ln f:young ");
	lists(&(struct s3once_options){.rules = no_a, .n_rules = 1},
		"x:a f:big f:d/x l:ln f:young ");
	lists(&(struct s3once_options){.files_from = path_of("names", list)}, "f:d/x ");
	lists(&(struct s3once_options){.folders = folders, .n_folders = 1}, "f:d/x ");
	lists(&(struct s3once_options){.key_template = "t-{name}"},
		"l: f:t-a f:t-big f:t-x f:t-young ");
	/* The content of a file that is too large is not read for its key. */
	lists(&(struct s3once_options){.key_template = "{name}-{id:8}", .max_bytes = 5},
		"f: l: f:a-6b86b273 f:x-6b86b273 f:young-6b86b273 ");
}

static bool exists(const char *name)
{
	char path[200];
	return access(path_of(name, path), F_OK) == 0;
}

static void remove_file(const char *name)
{
	char path[200];
	CHECK_INT(unlink(path_of(name, path)), 0);
}

static long no_input(void *arg, void *buffer, size_t n, char *error, size_t error_bytes)
{
	return 0;
}

/* The files that a run needs on this host: each only on request, and none is made by a dry run. */
static void test_state_of_a_run(void)
{
	char path[200], logs[200], name[200], marks[220];
	static const char *const pipe_name[] = {"pipe"};
	const char *const sources[] = {path_of("logs", logs)};
	CHECK_INT(mkdir(path_of("logs", path), 0700), 0);
	make_file("logs/x.log", "1", 9000);
	make_file("logs/x.log.1", "12", 9000);
	const struct timespec at = {.tv_sec = 86400};
	CHECK_INT(
		utimensat(AT_FDCWD, path_of("logs/x.log.1", name), (struct timespec[]){at, at}, 0),
		0);
	snprintf(marks, sizeof marks, "sqlite:%s", path_of("marks.db", path));

	/* Paths alone need no ids. */
	const struct s3once_options plain = {.sources = sources, .time_zone = NULL};
	lists(&plain, "f:x.log f:x.log.1 ");
	CHECK(!exists("s3once/identities.db"));
	lists(&(struct s3once_options){.sources = sources, .key_template = "k/{name}"},
		"f:k/x.log f:k/x.log.1 ");
	CHECK(!exists("s3once/identities.db"));

	/* Rotated logs have their time in UTC, whatever zone other times are in. */
	const struct s3once_rate rate = {0, 10000};
	struct s3once_options rotated = {.sources = sources,
		.rotated = 1,
		.dry_run = 1,
		.time_zone = "Pacific/Kiritimati",
		.rates = &rate,
		.n_rates = 1};
	const char *const want = "f:x-19700102T000000Z-6b51d431.log w:x.log ";
	lists(&rotated, want);
	CHECK(!exists("s3once"));
	rotated.dry_run = 0;
	lists(&rotated, want);
	CHECK(exists("s3once/identities.db"));
	remove_file("s3once/identities.db");
	lists(&(struct s3once_options){.sources = sources, .key_template = "{name}-{id:8}"},
		"f:x.log-6b86b273 f:x.log.1-6b51d431 ");
	CHECK(exists("s3once/identities.db"));

	/* With --final a live log is taken as it is. */
	rotated.final = 1;
	struct s3once_push *push;
	char text[400] = "";
	rotated.n_sources = 1;
	rotated.bucket = "b";
	rotated.marks = "sqlite:/nowhere/at/all";
	struct scan_entry entry;
	struct problem problem;
	unsigned files = 0;
	CHECK_INT(s3once_push_new(&rotated, &push, text, sizeof text), 0);
	while (scan_next(push->run.files.scan, &entry, &problem) > 0)
		files += entry.kind == SCAN_FILE;
	CHECK_INT(files, 2);
	s3once_push_free(push);

	/* The rows of growing logs are in the file of the marks. */
	struct s3once_options live = {
		.sources = sources, .rotated = 1, .live = 1, .marks = marks, .dry_run = 1};
	live.n_sources = 1;
	live.bucket = "b";
	CHECK_INT(s3once_push_new(&live, &push, text, sizeof text), 0);
	s3once_push_free(push);
	CHECK(!exists("marks.db"));
	live.dry_run = 0;
	CHECK_INT(s3once_push_new(&live, &push, text, sizeof text), 0);
	CHECK(push->run.files.log_rows && exists("marks.db"));
	s3once_push_free(push);
	live.marks = "dynamodb:table";
	CHECK(s3once_push_new(&live, &push, text, sizeof text) < 0);
	CHECK(strstr(text, "--live needs marks in a file of this host"));

	/* The input of a pipe is no file. */
	lists(&(struct s3once_options){.sources = pipe_name, .read = no_input, .as = "k"}, "f:k ");
}

int main(void)
{
	static const char *const folders[] = {"tree", "tree/below", "tree-moved", "moved"};
	char made[] = "/tmp/run_files.XXXXXX", path[200], below[200], command[100];
	CHECK(mkdtemp(made) != NULL);
	char *real = realpath(made, NULL);
	snprintf(base, sizeof base, "%.60s", real);
	free(real);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		CHECK_INT(mkdir(path_of(folders[i], path), 0700), 0);
	close(open(path_of("tree/file", path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	CHECK_INT(symlink(path_of("tree/below", below), path_of("link", path)), 0);
	setenv("XDG_STATE_HOME", base, 1);
	test_targets();
	test_sources();
	test_state_of_a_run();
	test_options_reach_the_scan();
	snprintf(command, sizeof command, "rm -r %s", made);
	CHECK_INT(system(command), 0);
	return check_result();
}
