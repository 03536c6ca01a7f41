/* The messages of a run for people: which events are printed, how often similar errors are, and the
 * summary. */
#include "../check.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/push/people.h"
#include "upload/push_struct.h"
#include <stdarg.h>
#include <stdlib.h>

/* The lines that were printed: results behind "1 ", others behind "2 ". */
static struct text printed = {.max = 1 << 20};

void output_print(struct output *output, int fd, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	text_addf(&printed, "%d ", fd);
	text_addfv(&printed, format, ap);
	text_add_char(&printed, '\n');
	va_end(ap);
	(void)output;
}

void output_result(struct output *output, const char *line)
{
	output_print(output, STDOUT_FILENO, "%s", line);
}

struct escaped escaped(const char *s)
{
	struct escaped e;
	snprintf(e.text, sizeof e.text, "%s", s);
	return e;
}

/* Checks what was printed since the last call. */
static bool check_printed(const char *want)
{
	const bool good = CHECK_STRING(text_string(&printed), want);
	text_reset(&printed);
	return good;
}

static struct s3once_event event_of(enum s3once_event_type type, const char *path, const char *text)
{
	return (struct s3once_event){.type = type,
		.path = path,
		.key = "p/k",
		.bytes = 2048,
		.text = text,
		.version_id = "",
		.etag = "",
		.checksum = "",
		.code = "",
		.request_id = ""};
}

static const struct push_options plain = {.run = {.bucket = "b", .prefix = "p"}};

/* Which events of files are printed, by the number of -v, and with --quiet and --json. */
static void test_verbosity(void)
{
	static const struct {
		enum s3once_event_type type;
		unsigned verbose;
		int quiet, json;
		const char *want;
	} rows[] = {
		{S3ONCE_EVENT_UPLOADED, 0, 0, 0, ""},
		{S3ONCE_EVENT_UPLOADED, 1, 0, 0, "1 uploaded f -> s3://b/p/k (2.0 KiB): why\n"},
		{S3ONCE_EVENT_UPLOADED, 2, 1, 0, ""},
		{S3ONCE_EVENT_UPLOADED, 2, 0, 1, ""},
		{S3ONCE_EVENT_SKIPPED, 1, 0, 0, ""},
		{S3ONCE_EVENT_SKIPPED, 2, 0, 0, "1 skipped f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_LINK, 1, 0, 0, "1 skipped symbolic link f: why\n"},
		{S3ONCE_EVENT_PLANNED, 0, 0, 0, "1 would upload f -> s3://b/p/k (2.0 KiB): why\n"},
		{S3ONCE_EVENT_OUTDATED, 0, 0, 0, "1 kept as it is in S3: f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_OUTDATED, 0, 1, 0, ""},
		{S3ONCE_EVENT_KEPT, 0, 0, 0, "1 not removed yet: f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_MANIFEST, 3, 0, 0, ""},
		{S3ONCE_EVENT_ADOPTED, 1, 0, 0, "1 already in S3: f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_OVERSIZED, 1, 0, 0,
			"1 skipped, larger than --max-size: f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_LEFT, 0, 0, 0, "1 not finished: f -> s3://b/p/k (2.0 KiB): why\n"},
		{S3ONCE_EVENT_RETRY, 0, 0, 0, ""},
		{S3ONCE_EVENT_RETRY, 1, 0, 0, "1 retrying f -> s3://b/p/k: why\n"},
		{S3ONCE_EVENT_REMOVED, 0, 0, 0, ""},
		{S3ONCE_EVENT_REMOVED, 1, 0, 0, "1 removed f -> s3://b/p/k (2.0 KiB): why\n"},
		{S3ONCE_EVENT_MOVED, 1, 0, 0, "1 moved away f -> s3://b/p/k (2.0 KiB): why\n"},
		{S3ONCE_EVENT_REMOVABLE, 0, 0, 0,
			"1 would remove f -> s3://b/p/k (2.0 KiB): why\n"},
		/* Errors are printed in any case. */
		{S3ONCE_EVENT_FAILED, 0, 1, 1, "2 error: f: why\n"},
		{S3ONCE_EVENT_CHANGED, 0, 1, 0, "2 error: f: why\n"},
		{S3ONCE_EVENT_NOT_REMOVED, 0, 1, 0, "2 error: f: why\n"},
		{S3ONCE_EVENT_WARNING, 0, 1, 1, "2 warning: why\n"},
		{S3ONCE_EVENT_NOTE, 0, 0, 0, "2 note: why\n"},
		{S3ONCE_EVENT_NOTE, 0, 1, 0, ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options options = plain;
		struct people people = {.options = &options};
		const struct s3once_event event = event_of(rows[i].type, "f", "why");
		options.verbose = rows[i].verbose;
		options.quiet = rows[i].quiet;
		options.json = rows[i].json;
		people_event(&people, &event);
		if (!check_printed(rows[i].want))
			fprintf(stderr, "\trow %zu\n", i);
		people_clear(&people);
	}
}

/* A sentence has the code and the request id of the service, as far as they are known. The path of
 * a pipe is not a file's, so it is named by its key. */
static void test_error(void)
{
	struct push_options options = plain;
	struct people people = {.options = &options};
	struct s3once_event event = event_of(S3ONCE_EVENT_FAILED, "f", "why");
	event.code = "AccessDenied";
	people_event(&people, &event);
	check_printed("2 error: f: why (AccessDenied)\n");
	event.request_id = "R1";
	people_event(&people, &event);
	check_printed("2 error: f: why (AccessDenied, request id R1)\n");
	event.code = "";
	people_event(&people, &event);
	check_printed("2 error: f: why (request id R1)\n");
	event.request_id = "";
	options.run.read = pipe_input_read;
	options.run.as = "db.dump";
	people_event(&people, &event);
	check_printed("2 error: db.dump: why\n");
	/* An error of no file is that of the job. */
	options.job = "nginx";
	event.path = "";
	event.text = "another";
	people_event(&people, &event);
	check_printed("2 error: nginx: another\n");
	people_clear(&people);
}

/* Three errors of a kind are printed, and the others are counted. Another path, number or request
 * id is no other kind, and another code is. */
static void test_alike(void)
{
	struct push_options options = plain;
	struct s3once_push *push = calloc(1, sizeof *push);
	push->counts.failed = 6;
	push->counts.found = 6;
	push->counts.scan_complete = 1;
	options.quiet = 1;
	for (unsigned verbose = 0; verbose < 2; verbose++) {
		struct people people = {.options = &options};
		options.verbose = verbose;
		for (unsigned i = 0; i < 5; i++) {
			char text[40], path[4], id[2], want[100];
			snprintf(path, sizeof path, "f%u", i);
			snprintf(text, sizeof text, "part %u is missing", 9 + i);
			snprintf(want, sizeof want, "2 error: %s: %s (request id %c)\n", path, text,
				'A' + i);
			snprintf(id, sizeof id, "%c", 'A' + i);
			struct s3once_event event = event_of(S3ONCE_EVENT_FAILED, path, text);
			event.request_id = id;
			people_event(&people, &event);
			check_printed(i < 3 || verbose ? want : "");
		}
		struct s3once_event event = event_of(S3ONCE_EVENT_FAILED, "f", "part 1 is missing");
		event.code = "SlowDown";
		people_event(&people, &event);
		check_printed("2 error: f: part 1 is missing (SlowDown)\n");
		people_summary(&people, push, S3ONCE_EXIT_FILES);
		check_printed(verbose ? "2 0 of 6 files are verified to be in s3://b/p; uploaded 0 "
					"(0 B) in 0.0 s; failed 6\n"
				      : "2 error: 2 more files have the same error: part 9 is "
					"missing (-v names each)\n"
					"2 0 of 6 files are verified to be in s3://b/p; uploaded 0 "
					"(0 B) in 0.0 s; failed 6\n");
		people_clear(&people);
	}
	free(push);
}

/* The first file that the run waits for is printed, and with -v each. If the run does not wait for
 * it, it is a warning. */
static void test_held(void)
{
	static const struct {
		unsigned verbose;
		int no_wait, dry_run, quiet;
		const char *first, *second;
	} rows[] = {
		{0, 0, 0, 0, "2 waiting: f -> s3://b/p/k: why\n", ""},
		{1, 0, 0, 0, "2 waiting: f -> s3://b/p/k: why\n",
			"2 waiting: f -> s3://b/p/k: why\n"},
		{0, 0, 0, 1, "", ""},
		{0, 1, 0, 0, "2 warning: f: why\n", "2 warning: f: why\n"},
		{0, 0, 1, 0, "2 warning: f: why\n", "2 warning: f: why\n"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options options = plain;
		struct people people = {.options = &options};
		const struct s3once_event event = event_of(S3ONCE_EVENT_HELD, "f", "why");
		options.verbose = rows[i].verbose;
		options.run.no_wait = rows[i].no_wait;
		options.run.dry_run = rows[i].dry_run;
		options.quiet = rows[i].quiet;
		people_event(&people, &event);
		bool good = check_printed(rows[i].first);
		people_event(&people, &event);
		good &= check_printed(rows[i].second);
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		people_clear(&people);
	}
}

/* A service says each warning, note and error once. One sentence may contain another. */
static void test_said(void)
{
	struct text said = TEXT(1000), told = TEXT(1000);
	for (unsigned pass = 0; pass < 2; pass++) {
		struct push_options options = plain;
		struct people people = {
			.options = &options, .printed_warnings = &said, .printed_errors = &told};
		const struct s3once_event long_one =
						  event_of(S3ONCE_EVENT_WARNING, "", "it is late"),
					  short_one = event_of(S3ONCE_EVENT_WARNING, "", "late"),
					  note = event_of(S3ONCE_EVENT_NOTE, "", "noted"),
					  error = event_of(S3ONCE_EVENT_FAILED, "f", "why");
		people_event(&people, &long_one);
		people_event(&people, &short_one);
		people_event(&people, &note);
		people_event(&people, &error);
		CHECK(people.has_warned);
		check_printed(pass ? ""
				   : "2 warning: it is late\n2 warning: late\n2 note: noted\n"
				     "2 error: f: why\n");
		people_clear(&people);
	}
	/* Once the errors are forgotten, the next pass reports them again. */
	text_reset(&told);
	struct people people = {
		.options = &plain, .printed_warnings = &said, .printed_errors = &told};
	const struct s3once_event error = event_of(S3ONCE_EVENT_FAILED, "f", "why");
	people_event(&people, &error);
	check_printed("2 error: f: why\n");
	people_clear(&people);
	text_clear(&said);
	text_clear(&told);
}

#define MOVES ", and then move them below /old"

/* The two lines of the summary. */
static void test_summary(void)
{
	static const struct {
		struct s3once_counts counts;
		int exit;
		const char *want;
		struct s3once_options run;
		bool is_command;
	} rows[] = {
		{{.found = 3,
			 .uploaded = 2,
			 .skipped = 1,
			 .bytes_uploaded = 2048,
			 .bytes_moved = 2048,
			 .seconds = 2,
			 .scan_complete = 1},
			0,
			"1 all 3 files are in s3://b/p\n"
			"1 uploaded 2 (2.0 KiB) in 2.0 s, 1.0 KiB/s; already done 1\n"},
		{{.found = 1, .adopted = 1, .scan_complete = 1}, 0,
			"1 1 file is in s3://b/p\n1 uploaded 0 (0 B) in 0.0 s; already in S3 1\n"},
		/* A file with a key of its own. */
		{{.found = 1, .adopted = 1, .scan_complete = 1}, 0,
			"1 1 file is in s3://b/db/x.dump\n"
			"1 uploaded 0 (0 B) in 0.0 s; already in S3 1\n",
			{.as = "db/x.dump"}},
		{{.found = 1, .adopted = 1, .scan_complete = 1}, 0,
			"1 1 file is in s3://b/p\n1 uploaded 0 (0 B) in 0.0 s; already in S3 1\n",
			{.as = "db/x.dump", .compress = "zstd"}},
		{{.found = 2, .uploaded = 1, .failed = 1, .scan_complete = 1}, 1,
			"1 1 of 2 files are verified to be in s3://b/p\n"
			"1 uploaded 1 (0 B) in 0.0 s; failed 1\n"},
		/* All files are there, and something else has failed. */
		{{.found = 2, .uploaded = 2, .scan_complete = 1}, 1,
			"1 2 files are verified to be in s3://b/p\n1 uploaded 2 (0 B) in 0.0 s\n"},
		/* A file that could not be proven to be there does not count. */
		{{.found = 2, .skipped = 2, .not_removed = 1, .unproven = 1, .scan_complete = 1}, 1,
			"1 1 of 2 files are verified to be in s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; already done 2; due, but not removed 1\n"},
		/* Files that are left out are not wanted. */
		{{.found = 4,
			 .uploaded = 1,
			 .links = 1,
			 .oversized = 1,
			 .special = 1,
			 .scan_complete = 1},
			0,
			"1 1 file is in s3://b/p\n1 uploaded 1 (0 B) in 0.0 s; larger than "
			"--max-size 1; symbolic links skipped 1; sockets, named pipes, devices "
			"and own files skipped 1\n"},
		{{.scan_complete = 1}, 0,
			"1 found no files for s3://b/p\n1 uploaded 0 (0 B) in 0.0 s\n"},
		{{.found = 2, .waiting = 2, .scan_complete = 1}, 0,
			"1 all 2 files wait for a later run, and none is ready for s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; waiting for a later run 2\n"},
		{{.found = 1, .waiting = 1, .scan_complete = 1}, 0,
			"1 1 file waits for a later run, and none is ready for s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; waiting for a later run 1\n"},
		{{.found = 5, .uploaded = 2, .bytes_kept = 1024}, 6,
			"1 2 of 5 files are verified to be in s3://b/p; the run ended before all "
			"files were listed\n"
			"1 uploaded 2 (0 B) in 0.0 s; S3 keeps 1.0 KiB of unfinished files, and "
			"the next run continues from there\n"},
		/* Only --spool keeps the output of a command. */
		{{.found = 1, .bytes_kept = 1024, .scan_complete = 1}, 6,
			"1 0 of 1 file is verified to be in s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; S3 keeps 1.0 KiB of unfinished files, and "
			"the next run starts the command again, whose output --spool would keep\n",
			.is_command = true},
		{{.found = 1, .bytes_kept = 1024, .scan_complete = 1}, 6,
			"1 0 of 1 file is verified to be in s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; S3 keeps 1.0 KiB of unfinished files, and "
			"the next run continues from there\n",
			{.spool = "/spool"}, true},
		/* The rate is that of this run alone. */
		{{.found = 1,
			 .uploaded = 1,
			 .bytes_uploaded = 1024,
			 .bytes_resumed = 1024,
			 .seconds = 2,
			 .scan_complete = 1},
			0,
			"1 1 file is in s3://b/p\n1 uploaded 1 (1.0 KiB) in 2.0 s; S3 already had "
			"1.0 KiB of it in parts\n"},
		{{.found = 3,
			 .uploaded = 1,
			 .left = 2,
			 .bytes_left = 2048,
			 .bytes_resumed = 1024,
			 .scan_complete = 1},
			6,
			"1 1 of 3 files are verified to be in s3://b/p; 2 files (2.0 KiB) are left "
			"for the next run\n"
			"1 uploaded 1 (0 B) in 0.0 s; S3 already had 1.0 KiB of it in parts\n"},
		{{.found = 1, .left = 1, .scan_complete = 1}, 6,
			"1 0 of 1 file is verified to be in s3://b/p; 1 file (0 B) is left for the "
			"next run\n1 uploaded 0 (0 B) in 0.0 s\n"},
		{{.found = 1, .outdated = 1, .scan_complete = 1}, 0,
			"1 0 of 1 file is verified to be in s3://b/p; 1 has changed since and stays "
			"as it was uploaded (--if-changed=skip)\n"
			"1 uploaded 0 (0 B) in 0.0 s; changed and kept as they are in S3 1\n"},
		{{.found = 2, .planned = 2, .scan_complete = 1}, 0,
			"1 dry run: would upload 2 files (0 B) to s3://b/p\n", {.dry_run = 1}},
		{{.found = 2, .planned = 2, .scan_complete = 1}, 0,
			"1 dry run: would upload 2 files (0 B) to s3://b/p" MOVES "\n",
			{.dry_run = 1, .removes = 1, .move_to = "/old"}},
		{{.found = 2, .planned = 1, .skipped = 1, .scan_complete = 1}, 0,
			"1 dry run: would upload 1 file (0 B) to s3://b/p, and then remove them "
			"from this host, once they have been there for 2 h\n1 already done 1\n",
			{.dry_run = 1, .removes = 1, .remove_after_s = 7200}},
		{{.found = 2, .skipped = 2, .scan_complete = 1}, 0,
			"1 dry run: would upload 0 files (0 B) to s3://b/p\n1 already done 2\n",
			{.dry_run = 1, .removes = 1}},
		/* The error that kept the run from beginning was printed. */
		{{.found = 0}, 3, ""},
		{{.found = 1, .bytes_sent = 7, .failed = 1, .scan_complete = 1}, 3,
			"1 0 of 1 file is verified to be in s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; failed 1\n"},
		{{.found = 1, .skipped = 1, .scan_complete = 1}, 3,
			"1 1 file is verified to be in s3://b/p\n"
			"1 uploaded 0 (0 B) in 0.0 s; already done 1\n"},
	};
	struct s3once_push *push = calloc(1, sizeof *push);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options options = {
			.run = rows[i].run, .is_command = rows[i].is_command};
		struct people people = {.options = &options};
		options.run.bucket = "b";
		options.run.prefix = "p";
		push->counts = rows[i].counts;
		people_summary(&people, push, rows[i].exit);
		if (!check_printed(rows[i].want))
			fprintf(stderr, "\trow %zu\n", i);
		people_clear(&people);
	}
	free(push);
}

/* Which runs have a summary at all, and where it is printed. */
static void test_whether_summary(void)
{
	static const struct {
		int exit, quiet, json;
		bool has_warned, is_pass;
		struct s3once_counts counts;
		const char *begins;
	} rows[] = {
		{0, 0, 0, false, false, {.skipped = 1}, "1 "},
		{0, 0, 1, false, false, {.uploaded = 1}, ""},
		{1, 1, 1, false, false, {.uploaded = 1}, ""},
		{0, 1, 0, false, false, {.uploaded = 1}, ""},
		{0, 1, 0, true, false, {.uploaded = 1}, "2 "},
		{1, 1, 0, false, false, {.uploaded = 1}, "2 "},
		/* A pass of a service in which nothing has happened. */
		{0, 0, 0, false, true, {.skipped = 1}, ""},
		{0, 0, 0, false, true, {.uploaded = 1}, "1 "},
		{0, 0, 0, false, true, {.adopted = 1}, "1 "},
		{0, 0, 0, false, true, {.refreshed = 1}, "1 "},
		{0, 0, 0, false, true, {.skipped = 1, .removed = 1}, "1 "},
		{0, 0, 0, false, true, {.skipped = 1, .moved = 1}, "1 "},
		{1, 0, 0, false, true, {.skipped = 1}, "1 "},
	};
	struct s3once_push *push = calloc(1, sizeof *push);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text said = TEXT(1000);
		struct push_options options = plain;
		struct people people = {.options = &options,
			.printed_warnings = rows[i].is_pass ? &said : NULL,
			.has_warned = rows[i].has_warned};
		options.quiet = rows[i].quiet;
		options.json = rows[i].json;
		push->counts = rows[i].counts;
		push->counts.found = 1;
		push->counts.scan_complete = 1;
		people_summary(&people, push, rows[i].exit);
		const char *got = text_string(&printed);
		if (!CHECK(*rows[i].begins ? strncmp(got, rows[i].begins, 2) == 0 : !*got))
			fprintf(stderr, "\trow %zu: %s\n", i, got);
		text_reset(&printed);
		people_clear(&people);
		text_clear(&said);
	}
	free(push);
}

/* With --quiet, a run that ended early says why above its summary. */
static void test_early_end(void)
{
	static const struct {
		int exit, quiet;
		const char *limit, *begins;
		bool is_piped;
	} rows[] = {
		{6, 1, "the limit", "2 note: j: the limit\n2 j: 0 of 1 "},
		{1, 1, "the limit", "2 note: j: the limit\n2 j: 0 of 1 "},
		{143, 1, "the limit", "2 note: j: stopped by SIGTERM; the next run goes on\n2 j: "},
		{130, 1, "", "2 note: j: stopped by SIGINT; the next run goes on\n2 j: "},
		{130, 1, "",
			"2 note: j: stopped by SIGINT; the next run begins again\n2 j: ", true},
		{129, 1, "", "2 note: j: stopped by SIGHUP; the next run goes on\n2 j: "},
		{1, 1, "", "2 j: "},
		{6, 0, "the limit", "1 j: "},
		{0, 1, "the limit", ""},
	};
	struct s3once_push *push = calloc(1, sizeof *push);
	push->counts = (struct s3once_counts){.found = 1};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options options = plain;
		struct people people = {.options = &options};
		options.job = "j";
		options.quiet = rows[i].quiet;
		options.run.read = rows[i].is_piped ? (s3once_read *)(uintptr_t)abort : NULL;
		atomic_store(&push->run.end.limit, rows[i].limit);
		people_summary(&people, push, rows[i].exit);
		const char *got = text_string(&printed), *want = rows[i].begins;
		if (!CHECK(*want ? strncmp(got, want, strlen(want)) == 0 : !*got))
			fprintf(stderr, "\trow %zu: %s\n", i, got);
		text_reset(&printed);
		people_clear(&people);
	}
	free(push);
}

/* Files that wait for long are a warning, even with --quiet, but for those that --min-age lets
 * wait. A service warns of each once, and its passes over some folders of none. */
static void test_waiting(void)
{
#define DAYS_S ((int64_t)86400)
	static const struct {
		enum s3once_wait why;
		uint64_t files;
		int64_t age_s; /* 0: all are empty */
		const char *want;
		bool is_quiet, is_pass, is_partial;
	} rows[] = {
		{S3ONCE_WAIT_LIVE, 2, 3 * DAYS_S,
			"2 warning: 2 files are waiting, the oldest for 3 days (why), such as a; "
			"--live sends its lines before it is rotated\n"},
		{S3ONCE_WAIT_LIVE, 1, 3 * DAYS_S,
			"2 warning: 1 file has been waiting for 3 days (why): a; --live sends its "
			"lines before it is rotated\n",
			true},
		{S3ONCE_WAIT_LIVE, 2, 3600,
			"1 2 files are waiting, the oldest for 60 min (why), such as a\n"},
		{S3ONCE_WAIT_LIVE, 1, 0, "1 1 file is waiting (why): a\n"},
		{S3ONCE_WAIT_LIVE, 2, 3600, "", true},
		{S3ONCE_WAIT_YOUNG, 1, 3 * DAYS_S,
			"1 1 file has been waiting for 3 days (why): a\n"},
		{S3ONCE_WAIT_CHANGED, 1, 3 * DAYS_S,
			"2 warning: 1 file has been waiting for 3 days (why): a\n", true},
		{S3ONCE_WAIT_LIVE, 0, 3 * DAYS_S, ""},
		{S3ONCE_WAIT_LIVE, 1, 3600, "", false, true},
		{S3ONCE_WAIT_CHANGED, 1, 3 * DAYS_S,
			"2 warning: 1 file has been waiting for 3 days (why): a\n", false, true},
		{S3ONCE_WAIT_CHANGED, 1, 3 * DAYS_S, "", false, true, true},
	};
	struct s3once_push *push = calloc(1, sizeof *push);
	struct s3once_waiting *all = push->run.report.locked.waiting;
	push->counts = (struct s3once_counts){.scan_complete = 1};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct text said = TEXT(4000);
		struct push_options options = plain;
		static const char *const some[] = {"/a"};
		options.quiet = rows[i].is_quiet;
		options.run.folders = rows[i].is_partial ? some : NULL;
		for (unsigned why = 0; why < S3ONCE_WAITS; why++)
			all[why] = (struct s3once_waiting){.path = "", .text = ""};
		all[rows[i].why] = (struct s3once_waiting){.files = rows[i].files,
			.oldest_ns = rows[i].age_s ? clock_wall_ns() - rows[i].age_s * 1000000000 -
							     1000000
						   : INT64_MAX,
			.path = "a",
			.text = "why"};
		for (unsigned run = 0; run < 2; run++) {
			struct people people = {.options = &options,
				.printed_warnings = rows[i].is_pass ? &said : NULL};
			people_summary(&people, push, S3ONCE_EXIT_OK);
			/* The summary itself comes between warnings and notes. */
			const char *got = text_string(&printed);
			const bool is_said = rows[i].is_pass && run;
			if (!CHECK((*rows[i].want && !is_said) ==
				    (strstr(got, "waiting") != NULL)) ||
				!CHECK(is_said || strstr(got, rows[i].want)) ||
				/* With a warning, --quiet leaves the summary. */
				!CHECK(!rows[i].is_quiet ||
					(*rows[i].want != 0) == (strstr(got, "s3://b/p") != NULL)))
				fprintf(stderr, "\trow %zu: %s\n", i, got);
			text_reset(&printed);
			people_clear(&people);
		}
		text_clear(&said);
	}
	free(push);
}

int main(void)
{
	test_verbosity();
	test_error();
	test_alike();
	test_held();
	test_said();
	test_summary();
	test_whether_summary();
	test_early_end();
	test_waiting();
	text_clear(&printed);
	return check_result();
}
