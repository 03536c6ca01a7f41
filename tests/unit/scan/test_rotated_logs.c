/* Rotated logs that are uploaded whole: which files of a family are finished, and which ones wait,
 * over several runs. */
#include "runs.h"
#include <fcntl.h>

/* The logs that a run finds in a folder made by a command. */
static void test_kinds(void)
{
	static const struct {
		const char *command, *found;
	} rows[] = {
		/* The file with the family's own name is live, however long it rests. */
		{"echo a >x.log; touch -d @1000 x.log; echo b >x.log.1",
			"x.log (live) | x.log.1=b$"},
		{"echo a >x.log; touch -d @1000 x.log", "x.log (live)"},
		{": >x.log", "x.log (live)"},
		/* Rotation gives a number behind a dot to a finished log. */
		{"echo a >x.log.1", "x.log.1=a$"},
		/* Without such a file, the newest one with a date is live, until it rests for a
		 * day. */
		{"echo a >x-2026-01-01.log; touch -d '2 hours ago' x*; echo b >x-2026-01-02.log",
			"x-2026-01-01.log=a$ | x-2026-01-02.log (live)"},
		{"echo a >x-2026-01-01.log; touch -d '25 hours ago' x*", "?x-2026-01-01.log=a$"},
		{"echo a >x-2026-01-01.log; touch -d '23 hours ago' x*", "x-2026-01-01.log (live)"},
		{": >x-2026-01-01.log; touch -d '25 hours ago' x*", "x-2026-01-01.log (live)"},
		{"echo a >x-2026-01-01.log; echo b >x.log", "x-2026-01-01.log=a$ | x.log (live)"},
		/* An index may be that of a log that is written beside others. */
		{"echo a >x-1.log; echo b >x-2.log", "x-1.log (live) | x-2.log (live)"},
		{"echo a >x-1.log; touch -d '25 hours ago' x*", "?x-1.log=a$"},
		/* A compressed log is finished, but not during its compression. */
		{"echo a | gzip >x.log.gz", "x.log.gz=(packed)"},
		{"echo a >x.log.1; touch -d @1000 x.log.1; gzip -c x.log.1 >x.log.1.gz",
			"x.log.1.gz (compressing) | x.log.1=a$"},
		{"echo a >x.log.1; touch -d @1000 x.log.1; gzip -k x.log.1",
			"x.log.1.gz (compressing) | x.log.1=a$"},
		{"echo a >x.log.1; echo b | gzip >x.log.1.gz; touch -d @1000 x.log.1; touch -d @5000 "
		 "x.log.1.gz",
			"x.log.1.gz=(packed) | x.log.1=a$"},
		/* Empty files of one key need one object. */
		{"for i in a b c; do mkdir $i; : >$i/x.log.1; done", "a/x.log.1="},
		/* By its name a file may be unfinished. */
		{"echo a >x.log.1.tmp; echo b >x.log.1.backup",
			"x.log.1.backup (unfinished) | x.log.1.tmp (unfinished)"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin();
		sh(rows[i].command);
		if (!run_finds(rows[i].found))
			fprintf(stderr, "\t%s\n", rows[i].command);
		tree_end();
	}
}

/* A last run takes live logs, too, each with what it has now. */
static void test_last_run(void)
{
	static const struct {
		const char *command, *found;
	} rows[] = {
		{"printf 'a\\nb' >x.log; echo c >x.log.1", "x.log.1=c$ | x.log@0=a$b"},
		{": >x.log", "x.log (no line)"},
		{"echo a | gzip >x.log", "?x.log=(packed)"},
		{"echo a >x-2026-01-01.log; touch -d '25 hours ago' x*", "x-2026-01-01.log@0=a$"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin();
		sh(rows[i].command);
		options.takes_open_logs = true;
		if (!run_finds(rows[i].found))
			fprintf(stderr, "\t%s\n", rows[i].command);
		tree_end();
	}
}

/* A log that was uploaded as finished, and has grown since, waits for its end. An earlier run has
 * kept what it was. */
static void test_grown(void)
{
	begin();
	has_identities = true;
	sh("echo a >x-2026-01-01.log; touch -d '25 hours ago' x*");
	run_finds("?x-2026-01-01.log=a$");
	sh("echo b >>x-2026-01-01.log; touch -d '25 hours ago' x*");
	run_finds("x-2026-01-01.log (live)");
	sh("echo c >x-2026-01-01.log; touch -d '25 hours ago' x*"); /* another log, and shorter */
	run_finds("?x-2026-01-01.log=c$");
	sh("printf 'd\\ne\\n' >x-2026-01-01.log; touch -d '25 hours ago' x*"); /* another log, and
										  longer */
	run_finds("?x-2026-01-01.log=d$e$");
	has_identities = false;
	tree_end();
}

/* The id of the content of the only log. */
static void id_of_log(char ret[static CONTENT_ID_CHARS + 1])
{
	struct scan *scan;
	struct scan_entry entry = {.key = ""};
	struct problem problem;
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	CHECK_INT(scan_next(scan, &entry, &problem), 1);
	memcpy(ret, entry.content_id, sizeof entry.content_id);
	scan_close(scan);
	end_run();
}

/* A file of the same size and time is not read again, whatever its name is: its id is kept. */
static void test_kept_ids(void)
{
	char before[CONTENT_ID_CHARS + 1], kept[CONTENT_ID_CHARS + 1], read[CONTENT_ID_CHARS + 1];
	begin();
	has_identities = true;
	sh("echo one >x.log.1; touch -d @1000 x.log.1");
	id_of_log(before);
	sh("echo two >x.log.1; touch -d @1000 x.log.1; mv x.log.1 x.log.2");
	id_of_log(kept);
	CHECK_STRING(kept, before);
	has_identities = false;
	id_of_log(read);
	CHECK(strcmp(read, before) != 0);
	tree_end();
}

/* A log that is open for writing waits, unless this is a last run. */
static void test_open_for_writing(void)
{
	begin();
	sh("echo a >x.log.1; touch -d @1000 x.log.1");
	const int fd = open("t/x.log.1", O_WRONLY | O_CLOEXEC);
	/* Another process has it open, as far as a lease shows. */
	const pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(fd);
	run_finds("x.log.1 (changed)");
	options.takes_open_logs = true;
	run_finds("x.log.1=a$");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	options.takes_open_logs = false;
	run_finds("x.log.1=a$");
	tree_end();
}

#define PACKED_TWICE                                                                               \
	"notice: x.log.1.gz.1 was rotated once more after it had been compressed, and is "         \
	"uploaded again each time; let logrotate's wildcard match live logs alone, such as *.log"

static void test_packed_twice(void)
{
	begin();
	sh("echo a | gzip >x.log.1.gz.1; echo b | gzip >x.log.2.gz.2");
	run_finds(PACKED_TWICE " | x.log.1.gz.1=(packed) | x.log.2.gz.2=(packed)");
	tree_end();
}

/* Logs that change all the time: the run takes what it finds, and says that it has missed some. */
static bool replace_a_log(void *arg)
{
	(void)arg;
	make_file("t/new", "another\n");
	tree_need(rename("t/new", "t/y.log.1") == 0, "rename");
	return false;
}

static void test_names_that_keep_changing(void)
{
	begin();
	sh("echo a >x.log.1");
	options.abandon = replace_a_log;
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	unsigned n = 0, files = 0;
	while (scan_next(scan, &entry, &problem) > 0) {
		files += entry.kind == SCAN_FILE;
		n += entry.kind == SCAN_PROBLEM &&
		     strcmp(entry.problem.text,
			     "the rotated files kept changing their names while they were listed "
			     "6 times; the next run takes what this one has missed") == 0;
	}
	CHECK_INT(n, 1);
	CHECK(files > 0);
	scan_close(scan);
	end_run();
	tree_end();
}

/* A file that the user has named is judged by its name alone. */
static void test_named_file(void)
{
	static const struct {
		const char *file, *problem; /* NULL: it is taken */
	} rows[] = {
		{"x.log.1", NULL},
		{"x-2026-01-01.log", NULL},
		{"x.log.gz", NULL},
		{"x.log", "does not have the name of a rotated file: --rotated takes it for a live "
			  "log"},
		{"x.log.1.tmp", "by its name is unfinished or put aside: --rotated leaves it out"},
		{"x.log.2", "is larger than --max-size"},
	};
	begin();
	sh("for i in x.log.1 x-2026-01-01.log x.log x.log.1.tmp; do echo a >$i; done; "
	   "echo a | gzip >x.log.gz; head -c 100 /dev/zero >x.log.2");
	options.max_bytes = 99;
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem = {.text = ""};
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char path[60];
		snprintf(path, sizeof path, "t/%s", rows[i].file);
		bool good = CHECK_INT(scan_make_entry(scan, path, &entry, &problem), 1) &&
			    CHECK_INT(entry.kind, rows[i].problem ? SCAN_PROBLEM : SCAN_FILE);
		if (rows[i].problem)
			good &= CHECK_STRING(entry.problem.text, rows[i].problem);
		else
			good &= CHECK(*entry.key && *entry.content_id && entry.is_rotated);
		if (!good)
			fprintf(stderr, "\t%s\n", rows[i].file);
	}
	scan_close(scan);
	end_run();
	tree_end();
}

/* A SOURCE that is a file is listed until two listings agree, as a folder is, and is opened under
 * the name that it has later. */
static void test_file_as_source(void)
{
	static const char *const source[] = {"t/x.log.1"};
	struct scan *scan;
	struct scan_entry entry;
	struct file_state version, state;
	struct problem problem = {.text = ""};
	begin();
	sh("echo a >x.log.1; echo b >x.log.2");
	options.sources = source;
	run_finds("x.log.1=a$");
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	CHECK_INT(scan_next(scan, &entry, &problem), 1);
	const int before = scan_open_file(scan, 0, entry.relative, &version);
	CHECK(before >= 0);
	version.ctime_ns = 0; /* a rename changes it */
	sh("mv x.log.1 x.log.3; mv x.log.2 x.log.1");
	const int fd = scan_open_moved(scan, 0, "x.log.1", &version, &state);
	CHECK(fd >= 0 && state.ino == version.ino);
	close(before);
	close(fd);
	scan_close(scan);
	end_run();
	tree_end();
}

/* A file that is too large is found, without an id and so without a key. */
static void test_too_large(void)
{
	begin();
	sh("head -c 100 /dev/zero >x.log.1; echo a >y.log.1");
	options.max_bytes = 99;
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	unsigned found = 0;
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	while (scan_next(scan, &entry, &problem) > 0) {
		const bool is_x = strcmp(entry.relative, "x.log.1") == 0;
		CHECK_INT(entry.kind, SCAN_FILE);
		CHECK(is_x == !*entry.content_id && is_x == !*entry.key);
		found++;
	}
	CHECK_INT(found, 2);
	scan_close(scan);
	end_run();
	tree_end();
}

int main(void)
{
	runs_begin();
	test_kinds();
	test_last_run();
	test_grown();
	test_kept_ids();
	test_open_for_writing();
	test_packed_twice();
	test_names_that_keep_changing();
	test_named_file();
	test_file_as_source();
	test_too_large();
	runs_end();
	return check_result();
}
