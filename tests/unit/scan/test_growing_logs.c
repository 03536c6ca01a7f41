/* Logs that grow, over several runs: each run yields all pieces of the logs that it finds, and no
 * line is in two of them. The scans are real, and so are the rows, which are kept from one run to
 * the next. */
#include "runs.h"
#include <signal.h>

/* A live log is taken to the end of its last line, each time from where the run before ended. Once
 * it is rotated, its last line is as long as it will be. */
static void test_lines_and_their_rest(void)
{
	begin();
	sh("printf 'one\ntwo\nthr' >app.log");
	run_finds("app.log@0=one$two$");
	run_finds("app.log@0=one$two$");
	sh("printf 'ee\nfour' >>app.log");
	run_finds("+app.log@8=three$ | app.log@0=one$two$");
	run_finds("app.log@0=one$two$ | app.log@8=three$");
	sh("mv app.log app.log.1; echo live >app.log; echo five >>app.log.1");
	run_finds("+app.log.1@14=fourfive$ | app.log.1@0=one$two$ | app.log.1@8=three$ | "
		  "app.log@0=live$");
	sh("gzip app.log.1");
	run_finds("app.log.1.gz@0=one$two$ | app.log.1.gz@14=fourfive$ | "
		  "app.log.1.gz@8=three$ | app.log@0=live$");
	tree_end();
}

static void test_last_line_beyond_a_reading(void)
{
	begin();
	sh("echo one >app.log; head -c 70000 /dev/zero | tr '\\0' x >>app.log");
	run_finds("app.log@0=one$");
	sh("echo >>app.log");
	run_finds("+app.log@4=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx | app.log@0=one$");
	sh("printf last >>app.log");
	run_finds("app.log@0=one$ | app.log@4=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	tree_end();
	begin();
	sh("(head -c 70000 /dev/zero | tr '\\0' x; printf '\\nlast') >app.log");
	run_finds("app.log@0=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	sh("echo >>app.log");
	run_finds("+app.log@70001=last$ | app.log@0=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	tree_end();
}

static void test_no_whole_line_yet(void)
{
	begin();
	/* The compressed one has a newline among its bytes, which ends no line. */
	sh("printf half >app.log; : >b.log; printf "
	   "'\\037\\213\\010\\020\\0\\0\\0\\0\\0\\003a\\n\\0' >c.log");
	run_finds("app.log (no line) | b.log (no line) | c.log (live)");
	sh("echo ' and half' >>app.log");
	run_finds("app.log@0=half and half$ | b.log (no line) | c.log (live)");
	tree_end();
}

/* A log that is first met when it is finished is uploaded as the file that it is, compressed or
 * not. With another time its key would be another one, so it is a piece from then on, as it is if
 * it grows all the same. */
static void test_finished_when_first_met(void)
{
	begin();
	sh("printf 'one\\ntwo' >app.log.1; touch -d @1000 app.log.1");
	run_finds("app.log.1=one$two");
	sh("gzip app.log.1");
	run_finds("app.log.1.gz=(packed)");
	tree_end();
	begin();
	sh("echo one >app.log.1; touch -d @1000 app.log.1");
	run_finds("app.log.1=one$");
	sh("touch -d @5000 app.log.1");
	run_finds("app.log.1@0=one$");
	sh("echo two >>app.log.1");
	run_finds("+app.log.1@4=two$ | app.log.1@0=one$");
	tree_end();
}

static void test_empty_log_grows(void)
{
	begin();
	sh(": >app.log.1");
	run_finds("app.log.1=");
	sh("echo late >>app.log.1");
	run_finds("+app.log.1@0=late$ | app.log.1@0=");
	tree_end();
}

/* Which log a file has that is not the file of the row: a run finds `first`, and the next one what
 * the row says. */
static void test_copies(void)
{
	static const struct {
		const char *first, *then, *found;
	} rows[] = {
		/* A log that had the name of its family has to be somewhere. */
		{"echo a >x.log", "cp x.log y; rm x.log; echo b >>y; mv y x.log.1",
			"+x.log.1@2=b$ | x.log.1@0=a$"},
		/* A file with the family's name is a new log, however it begins. */
		{"echo a >x.log", "mv x.log ../x; printf 'a\\nb\\n' >x.log", "x.log@0=a$b$"},
		/* Rotated, it is renamed: a longer file is another log. */
		{"echo a >x.log.1", "rm x.log.1; printf 'a\\nb\\n' >x.log.2", "x.log.2=a$b$"},
		{"echo a >x.log-20260101", "rm x*; printf 'a\\nb\\n' | gzip >x.log-20260102.gz",
			"x.log-20260102.gz=(packed)"},
		{"echo a >x.log-20260101; echo l >x.log",
			"rm x.log-*; printf 'a\\nb\\n' | gzip >x.log-20260101.gz",
			"+x.log-20260101.gz@2=b$ | x.log-20260101.gz@0=a$ | x.log@0=l$"},
		/* For equal logs, the time or the moment in the name shows which one it is. */
		{"echo a >x.log.1; touch -d @1000 x.log.1", "gzip x.log.1", "x.log.1.gz=(packed)"},
		{"echo a >x.log; touch -d @1000 x.log", "gzip x.log; mv x.log.gz x.log.1.gz",
			"x.log.1.gz=(packed)"},
		{"printf 'a\\nb' >x.log; touch -d @1000 x.log", "mv x.log x.log.1; gzip x.log.1",
			"+x.log.1.gz@2=b | x.log.1.gz@0=a$"},
		{"echo a >x.log-20260101-010203; echo l >x.log; touch -d @1000 x*",
			"gzip x.log-*; touch -d @5000 x.log-*",
			"x.log-20260101-010203.gz@0=a$ | x.log@0=l$"},
		{"echo a >x.log-20260101-010203; echo l >x.log; touch -d @1000 x*",
			"mv x.log-* x.log-20260102-010203; gzip x.log-*; touch -d @5000 x.log-*",
			"x.log-20260102-010203.gz=(packed) | x.log@0=l$"},
		{"echo a >x.log-20260101; echo l >x.log; touch -d @1000 x*",
			"rm x.log-*; echo a >x.log-20260101; touch -d @4600 x.log-*",
			"x.log-20260101=a$ | x.log@0=l$"},
		/* Docker keeps neither. Then only a file that was compressed now can be it. */
		{"echo a >x.log.1; touch -d @1000 x.log.1", "gzip -n x.log.1; touch x.log.1.gz",
			"x.log.1.gz@0=a$"},
		{"echo a >x.log.1; touch -d @1000 x.log.1",
			"gzip x.log.1; touch -d @5000 x.log.1.gz", "x.log.1.gz=(packed)"},
		{"echo a >x.log.1; touch -d @1000 x.log.1", "cp x.log.1 x.log.2; rm x.log.1",
			"x.log.2=a$"},
		{"echo a >x.log.1; gzip x.log.1; touch -d @1000 x.log.1.gz",
			"zcat x.log.1.gz | xz >x.log.1.xz; rm x.log.1.gz", "x.log.1.xz=(packed)"},
		/* logrotate gives it the time at which the rotation began, and lines may come after
		 * that. */
		{"echo a >x.log.1; touch -d @1000 x.log.1",
			"gzip x.log.1; touch -d @900 x.log.1.gz", "x.log.1.gz@0=a$"},
		{"echo a >x.log-20260101; touch -d @1000 x*",
			"gzip x*; mv x* x.log-20260102.gz; touch -d @900 x*",
			"x.log-20260102.gz=(packed)"},
		{"echo a >x.log.1; touch -d @1000 x.log.1",
			"mv x.log.1 ../x; cp ../x x.log.2; touch -d @900 x.log.2", "x.log.2=a$"},
		{"echo a >x.log.1; gzip x.log.1; touch -d @1000 x.log.1.gz",
			"zcat x* | xz >x.log.1.xz; rm x*.gz; touch -d @900 x.log.1.xz",
			"x.log.1.xz=(packed)"},
		/* One of the equal logs has the same time. */
		{"echo a >x.log.1; cp x.log.1 x.log.2; touch -d @1000 x.log.1; touch -d @900 x.log.2",
			"gzip x*", "x.log.1.gz=(packed) | x.log.2.gz=(packed)"},
		/* Two files with the same log are one log, unless their times differ. */
		{"echo a >x.log",
			"echo b >>x.log; touch -d @1000 x.log; mv x.log x.log.1; gzip -k x*; xz x.log.1",
			"+x.log.1.gz@2=b$ | x.log.1.gz@0=a$"},
		{"echo a >x.log",
			"echo b >>x.log; touch -d @1000 x.log; mv x.log x.log.1; gzip -k x*; xz x.log.1; touch -d @5000 x.log.1.xz",
			"+x.log.1.gz@2=b$ | x.log.1.gz@0=a$ | x.log.1.xz=(packed)"},
		{"echo a >x.log.1; touch -d @1000 x.log.1",
			"cp x.log.1 x.log.2; touch -d @5000 x.log.2", "x.log.1=a$ | x.log.2=a$"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin();
		sh(rows[i].first);
		run_finds(NULL);
		sh(rows[i].then);
		if (!run_finds(rows[i].found))
			fprintf(stderr, "\t%s; %s\n", rows[i].first, rows[i].then);
		tree_end();
	}
}

/* The name that a file had last decides about its copies, also if no run has read it under that
 * name: as a rotated log, it is no longer looked for in plain files. */
static void test_name_of_an_unchanged_file(void)
{
	begin();
	sh("echo a >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=a$");
	sh("mv x.log x.log.1");
	run_finds("x.log.1=a$");
	sh("rm x.log.1; printf 'a\\nb\\n' >x.log.2");
	run_finds("x.log.2=a$b$");
	tree_end();
}

#define COPYTRUNCATE                                                                               \
	"notice: x.log was copied to x.log.1 and emptied (copytruncate): what was written "        \
	"between the two is lost, whoever uploads the copy; logrotate's create loses nothing"

/* The copy goes on where the live log was, which is reported once. */
static void test_copytruncate(void)
{
	begin();
	sh("echo one >x.log");
	run_finds("x.log@0=one$");
	sh("echo two >>x.log; cp x.log x.log.1; echo three >x.log");
	run_finds("+x.log.1@4=two$ | " COPYTRUNCATE " | x.log.1@0=one$ | x.log@0=three$");
	sh("mv x.log.1 x.log.2; cp -p x.log x.log.1; echo one >x.log");
	run_finds("x.log.1=three$ | x.log.2@0=one$ | x.log.2@4=two$ | x.log@0=one$");
	tree_end();
}

/* Before the live log is emptied, a copy of it is not known from a log that begins alike. So it
 * waits, unless this is the last run, or the live log was made after it. */
static void test_copy_of_the_live_log(void)
{
	static const struct {
		const char *first, *then, *found;
		bool takes_open_logs;
	} rows[] = {
		{"echo a >x.log", "cp x.log x.log.1", "x.log.1 (copy) | x.log@0=a$", false},
		{"echo a >x.log", "gzip -c x.log >x.log.1.gz; touch -d 2001-01-01 x.log.2",
			"x.log.1.gz (copy) | x.log.2= | x.log@0=a$", false},
		{"echo a >x.log", "cp x.log x.log.1", "x.log.1=a$ | x.log@0=a$", true},
		{"echo a >x.log", "cp x.log x.log.1; touch -d @1000 x.log.1",
			"x.log.1=a$ | x.log@0=a$", false},
		{":>y", "echo a >x.log; echo b >>x.log; echo a >x.log.1",
			"x.log.1 (copy) | x.log@0=a$b$", false},
		{":>y", "echo a >x.log; printf 'a\\nb' >x.log.1", "x.log.1=a$b | x.log@0=a$",
			false},
		{":>y", "echo a >x.log; : >x.log.1", "x.log.1= | x.log@0=a$", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin();
		sh(rows[i].first);
		run_finds(NULL);
		sh("rm -f y");
		sh(rows[i].then);
		options.takes_open_logs = rows[i].takes_open_logs;
		if (!run_finds(rows[i].found))
			fprintf(stderr, "\t%s; %s\n", rows[i].first, rows[i].then);
		tree_end();
	}
}

#define EMPTIED(bytes)                                                                             \
	"notice: x.log was emptied after " bytes " bytes of it were taken, and no file here is "   \
	"known as their copy; a copy that was made before the last of them were written, or in "   \
	"another folder (logrotate's olddir), is uploaded as a whole"

/* Without a copy, the emptied log is lost, so that new lines that are equal to the old ones are
 * taken. */
static void test_emptied(void)
{
	begin();
	sh("printf 'one\\ntwo\\n' >x.log");
	run_finds("x.log@0=one$two$");
	sh("echo one >x.log");
	run_finds(EMPTIED("8") " | x.log@0=one$");
	sh("echo two >>x.log");
	run_finds("+x.log@4=two$ | x.log@0=one$");
	tree_end();
}

/* A rotated log is overwritten without a word. */
static void test_rotated_log_is_overwritten(void)
{
	begin();
	sh("echo one >x.log.1");
	run_finds("x.log.1=one$");
	sh("echo two >x.log.1");
	run_finds("x.log.1=two$");
	sh("echo one >x.log.1");
	run_finds("x.log.1=one$");
	tree_end();
}

#define GONE                                                                                           \
	"notice: x.log disappeared after 4 bytes of it were taken, and no file here is known to have " \
	"them; if it was moved to another folder (logrotate's olddir), it is uploaded there as a "     \
	"whole"

/* A log whose file is gone is looked for on seven days with a run, which are counted from the first
 * one without it. */
static void test_missing(void)
{
	begin();
	sh("echo one >x.log; echo old >x.log.9; touch -d @1000 *");
	run_finds("x.log.9=old$ | x.log@0=one$");
	sh("mv x.log ../x");
	for (today = 101; today < 108; today++)
		run_finds("x.log.9=old$");
	sh("mv ../x x.log"); /* it is there again, on the last day, so the days begin again */
	run_finds("x.log.9=old$ | x.log@0=one$");
	sh("mv x.log ../x"); /* on the same day, which counts only until it is back */
	run_finds("x.log.9=old$");
	sh("mv ../x x.log");
	run_finds("x.log.9=old$ | x.log@0=one$");
	for (today = 109; today < 120; today++)
		run_finds("x.log.9=old$ | x.log@0=one$");
	sh("mv x.log ../x");
	for (; today < 127; today++)
		run_finds("x.log.9=old$");
	sh("gzip -c ../x >x.log.1.gz");
	today = 126;
	run_finds("x.log.1.gz@0=one$ | x.log.9=old$");
	sh("rm x.log.1.gz");
	for (today = 127; today < 134; today++)
		run_finds("x.log.9=old$");
	run_finds("x.log.9=old$"); /* it was no live log any more */
	sh("gzip -c ../x >x.log.1.gz");
	run_finds("x.log.1.gz=(packed) | x.log.9=old$");
	tree_end();
	begin();
	sh("echo one >x.log; echo old >x.log.9; touch -d @1000 *");
	run_finds("x.log.9=old$ | x.log@0=one$");
	sh("mv x.log ../x");
	for (today = 101; today < 108; today++)
		run_finds("x.log.9=old$");
	run_finds(GONE " | x.log.9=old$");
	tree_end();
}

/* Of two logs that a family loses in one run, the first one is reported. */
static void test_two_losses(void)
{
	begin();
	sh("echo one >x.log");
	run_finds("x.log@0=one$");
	sh("mv x.log ../x; echo new >x.log");
	for (today = 101; today < 108; today++)
		run_finds("x.log@0=new$");
	sh("echo two >x.log");
	run_finds(GONE " | x.log@0=two$");
	tree_end();
}

/* The row of a log stays as long as runs find its file, for more days than a row without a file. */
static void test_seen_each_day(void)
{
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	for (; today < 510; today++)
		run_finds("x.log@0=one$");
	sh("echo two >>x.log");
	run_finds("+x.log@4=two$ | x.log@0=one$");
	tree_end();
}

#define NO_TARGET "x.log.2: is a symbolic link to a file that does not exist; fix or exclude it"

/* A file that cannot be judged may have any log of the family. So no log counts as missing or
 * emptied, and a file that may be a copy of such a log waits. */
static void test_unsure(void)
{
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	options.follow = true;
	sh("mv x.log ../x; ln -s nowhere x.log.2; gzip -c ../x >x.log.1.gz");
	run_finds("x.log.1.gz (family) | " NO_TARGET);
	sh("rm x.log.1.gz; echo old >x.log.9; touch -d @1000 x.log.9");
	for (today = 101; today < 110; today++)
		run_finds(NO_TARGET " | x.log.9=old$");
	sh("rm x.log.2");
	for (; today < 117; today++)
		run_finds("x.log.9=old$");
	run_finds(GONE " | x.log.9=old$");
	tree_end();
	begin();
	options.follow = true;
	sh("echo one >x.log");
	run_finds("x.log@0=one$");
	sh("echo two >x.log; ln -s nowhere x.log.2");
	run_finds("x.log (family) | " NO_TARGET);
	sh("rm x.log.2; (echo one; echo rest) | gzip >x.log.1.gz; touch -d @1000 x.log.1.gz");
	run_finds("+x.log.1.gz@4=rest$ | notice: x.log was copied to x.log.1.gz and emptied "
		  "(copytruncate): what was written between the two is lost, whoever uploads the "
		  "copy; logrotate's create loses nothing | x.log.1.gz@0=one$ | x.log@0=two$");
	tree_end();
}

/* While a copy is too young to be taken, the emptied log keeps the row by which the copy is
 * known. So does a log whose own file is too young. */
static void test_young(void)
{
	static const struct {
		const char *first, *then, *found, *later;
	} rows[] = {
		{"echo a >x.log", "echo b >>x.log; cp x.log x.log.1; echo c >x.log",
			"x.log (family) | x.log.1 (young)",
			"+x.log.1@2=b$ | " COPYTRUNCATE " | x.log.1@0=a$ | x.log@0=c$"},
		{"echo a >x.log", "echo b >>x.log; gzip -c x.log >x.log.1.gz; echo c >x.log",
			"x.log (family) | x.log.1.gz (young)", NULL},
		/* It has other content, so the log is lost. */
		{"echo a >x.log", "echo b >x.log.1; echo c >x.log",
			EMPTIED("2") " | x.log.1 (young) | x.log@0=c$", "x.log.1=b$ | x.log@0=c$"},
		{"echo a >x.log.1; touch -d @1000 x.log.1", "cp -p x.log.1 x.log.2; touch x.log.1",
			"x.log.1 (young) | x.log.2 (family)", "x.log.1@0=a$ | x.log.2=a$"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		begin();
		sh(rows[i].first);
		run_finds(NULL);
		sh(rows[i].then);
		options.min_age_ms = 3600 * 1000;
		options.now_wall_ns = clock_wall_ns();
		if (!run_finds(rows[i].found))
			fprintf(stderr, "\t%s; %s\n", rows[i].first, rows[i].then);
		options.min_age_ms = 0;
		if (!run_finds(rows[i].later))
			fprintf(stderr, "\tlater; %s; %s\n", rows[i].first, rows[i].then);
		tree_end();
	}
}

/* A file whose size and time are those of its row is not read again, unless it was so young that
 * more may have been written without another time, or part of a line was left out. */
static void test_unchanged_files(void)
{
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	sh("echo two >x.log; touch -d @1000 x.log");
	run_finds("x.log@0 (Stale file handle: no longer contains the 4 bytes from byte 0 on that "
		  "were to be uploaded; the next run takes what is there then)");
	tree_end();
	begin();
	sh("echo one >x.log; touch ../now; touch -r ../now x.log");
	run_finds("x.log@0=one$");
	sh("echo two >x.log; touch -r ../now x.log");
	run_finds(EMPTIED("4") " | x.log@0=two$");
	tree_end();
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	sh("echo two >x.log; touch -d @2000 x.log");
	run_finds(EMPTIED("4") " | x.log@0=two$");
	tree_end();
	begin();
	sh("printf 'one\\nthr' >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	sh("mv x.log x.log.1");
	run_finds("+x.log.1@4=thr | x.log.1@0=one$");
	tree_end();
}

/* Each file has one log, in one folder and under one name. */
static void test_files_that_cannot_be_judged(void)
{
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	sh("ln x.log x.log.1");
	run_finds("x.log.1: is another name (a hard link) of a log of this family; remove or "
		  "exclude it | x.log@0=one$");
	sh("rm x.log.1; mv x.log y.log; echo two >y.log.1");
	struct text moved = TEXT(1000);
	text_addf(&moved,
		"y.log.1=two$ | y.log: is known as a log of %s/t/x.log: it is a hard link, or was "
		"renamed, and its name has no form in which rotated logs are known "
		"(rotation-names.md): rename it, for example to x.log.1, or exclude it",
		tree_path);
	run_finds(text_string(&moved));
	text_clear(&moved);
	tree_end();
	begin();
	sh("echo one >x.log");
	options.sources = (const char *const[]){"t/x.log"};
	run_finds("x.log: is a single file: with --live, name its folder");
	tree_end();
}

/* A read_only run keeps no rows. */
static void test_read_only(void)
{
	begin();
	sh("echo one >x.log");
	options.read_only = true;
	run_finds("x.log@0=one$");
	sh("echo two >>x.log");
	run_finds("x.log@0=one$two$");
	options.read_only = false;
	run_finds("x.log@0=one$two$");
	sh("echo three >>x.log");
	options.read_only = true;
	run_finds("+x.log@8=three$ | x.log@0=one$two$");
	run_finds("+x.log@8=three$ | x.log@0=one$two$");
	tree_end();
}

/* Families of two folders, and of two SOURCEs, have logs of their own. */
static void test_families(void)
{
	static const char *const both[] = {"t", "u"};
	begin();
	sh("mkdir d ../u; echo one >x.log; echo one >d/x.log; echo uno >../u/x.log");
	options.sources = both;
	options.n_sources = 2;
	options.key_template = NULL;
	struct key_template *with_path;
	struct problem problem;
	const struct key_template_options how = {.text = "{path}-{id}", .families = families};
	tree_need(key_template_new(&how, &with_path, &problem) == 0, "template");
	options.key_template = with_path;
	run_finds("d/x.log@0=one$ | x.log@0=one$ | x.log@0=uno$");
	sh("echo two >>x.log; echo three >>d/x.log; echo four >>../u/x.log");
	run_finds("+d/x.log@4=three$ | +x.log@4=four$ | +x.log@4=two$ | d/x.log@0=one$ | "
		  "x.log@0=one$ | x.log@0=uno$");
	key_template_free(with_path);
	tree_end();
}

/* A last run takes a log that a program is still writing, to the end of its last line. */
static void test_written_log(void)
{
	begin();
	sh("printf 'one\\nthr' >x.log.1; touch -d @1000 x.log.1; echo a | gzip >y.log.1.gz");
	const int fds[] = {open("t/x.log.1", O_WRONLY | O_CLOEXEC),
		open("t/y.log.1.gz", O_WRONLY | O_CLOEXEC)};
	const pid_t pid = fork();
	if (pid == 0) {
		pause(); /* it has both open */
		_exit(0);
	}
	close(fds[0]);
	close(fds[1]);
	run_finds("x.log.1 (changed) | y.log.1.gz (changed)");
	options.takes_open_logs = true;
	run_finds("x.log.1@0=one$ | y.log.1.gz=(packed)");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	options.takes_open_logs = false;
	run_finds("+x.log.1@4=thr | x.log.1@0=one$ | y.log.1.gz=(packed)");
	tree_end();
}

/* A piece keeps the time that the log had when it was cut. */
static void test_times_of_pieces(void)
{
	struct scan *scan;
	struct scan_entry entry;
	struct problem problem;
	unsigned found = 0;
	begin();
	sh("echo one >x.log; touch -d @1000 x.log");
	run_finds("x.log@0=one$");
	sh("echo two >>x.log; touch -d @2000 x.log");
	begin_run();
	tree_need(scan_open(&options, &scan, &problem) == 0, problem.text);
	for (; scan_next(scan, &entry, &problem) > 0; found++)
		CHECK_INT(entry.mtime_ns, (entry.offset ? 2000 : 1000) * (int64_t)NS_PER_S);
	CHECK_INT(found, 2);
	scan_close(scan);
	end_run();
	tree_end();
}

/* Another run, which changes the rows while this one reads the files. */
static bool change_rows(void *arg)
{
	unsigned *left = arg;
	sqlite3 *db;
	if (!*left)
		return false;
	--*left;
	tree_need(sqlite3_open("rows.db", &db) == 0, "rows.db");
	sqlite3_exec(db, "UPDATE logs SET version = version + 1", NULL, NULL, NULL);
	sqlite3_close(db);
	return false;
}

/* The loser reads the rows again, and gives up after some attempts. */
static void test_two_runs(void)
{
	begin();
	sh("echo one >x.log");
	run_finds("x.log@0=one$");
	sh("echo two >>x.log");
	unsigned left = 1000;
	options.abandon = change_rows;
	options.abandon_arg = &left;
	run_finds("x.log: is left for the next run: another run is at work on its logs");
	left = 8;
	run_finds("+x.log@4=two$ | x.log@0=one$");
	CHECK_INT(left, 0);
	run_finds("x.log@0=one$ | x.log@4=two$");
	tree_end();
}

/* A program that overwrites the log while it is read. */
static bool overwrite_log(void *arg)
{
	unsigned *done = arg;
	char content[20];
	snprintf(content, sizeof content, "%u\n", ++*done);
	make_file("t/x.log", content);
	return false;
}

/* A log that is overwritten while it is read waits. The log that was there before may be in a copy
 * that the listing lacks, so it does not count as lost yet. */
static void test_overwritten_while_read(void)
{
	unsigned done = 0;
	begin();
	sh("echo one >x.log");
	run_finds("x.log@0=one$");
	sh("echo two >x.log");
	options.abandon = overwrite_log;
	options.abandon_arg = &done;
	run_finds("x.log (changed)");
	options.abandon = NULL;
	sh("echo two >x.log");
	run_finds(EMPTIED("4") " | x.log@0=two$");
	tree_end();
}

int main(void)
{
	runs_begin();
	has_rows = true;
	test_lines_and_their_rest();
	test_last_line_beyond_a_reading();
	test_no_whole_line_yet();
	test_finished_when_first_met();
	test_empty_log_grows();
	test_copies();
	test_name_of_an_unchanged_file();
	test_copytruncate();
	test_copy_of_the_live_log();
	test_emptied();
	test_rotated_log_is_overwritten();
	test_missing();
	test_two_losses();
	test_seen_each_day();
	test_unsure();
	test_young();
	test_unchanged_files();
	test_files_that_cannot_be_judged();
	test_read_only();
	test_families();
	test_written_log();
	test_times_of_pieces();
	test_two_runs();
	test_overwritten_while_read();
	runs_end();
	return check_result();
}
