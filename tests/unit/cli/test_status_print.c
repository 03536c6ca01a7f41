/* The lines of `s3once status` for people, and the outlook of a mark. */
#include "../check.h"
#include "base/clock.h"
#include "cli/status/status_print.h"
#include "results.h"
#include <stdlib.h>
#include <unistd.h>

static struct mark_space space = {.service = "s3", .bucket = "b", .settings.shards = 4};

/* The marks of the view, whose clock is that of this host. */
static const struct store_ops store_without_clock = {0};
static struct store store = {.ops = &store_without_clock};
static struct store_conn conn = {&store};

/* A view whose lines go to a page that has room for all of them. */
struct fixture {
	struct command_frame frame;
	struct status_page page;
	struct status_view view;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){.frame.marks.conn = &conn,
		.page = {.rows = 1000, .columns = 1000, .lines = TEXT(1 << 16)},
		.view = {.space = &space, .knows_bucket = true}};
	f->view.frame = &f->frame;
	f->view.page = &f->page;
}

/* Checks the lines, of which each but the last ends in "\n". */
static bool check_lines(struct fixture *f, const char *want)
{
	struct text lines = TEXT(1 << 16);
	for (const char *at = text_string(&f->page.lines); *at;) {
		const bool is_home = strncmp(at, "\033[H", 3) == 0;
		at += is_home ? 3 : strncmp(at, "\033[K", 3) == 0 ? 3 : 0;
		if (*at)
			text_add_char(&lines, *at++);
	}
	const bool good = CHECK_STRING(text_string(&lines), want);
	text_clear(&lines);
	text_clear(&f->page.lines);
	return good;
}

/* The sum of a prefix: what is 0 is left out, but for what is done. */
static void test_counts(void)
{
	static const struct {
		struct status_counts counts;
		unsigned depth;
		const char *want;
	} rows[] = {
		{{{[STATUS_DONE] = 1, [STATUS_BYTES] = 2048}}, 0,
			"s3://b/p/ at s3: done 1 file (2.0 KiB)"},
		{{{0, 2, 0, 0, 0, 0}}, 0, "s3://b/p/ at s3: done 0 files (0 B), claimed 2"},
		{{{0, 0, 3, 0, 0, 0}}, 0, "s3://b/p/ at s3: done 0 files (0 B), failed 3"},
		{{{5, 0, 0, 4, 0, 0}}, 0, "s3://b/p/ at s3: done 5 files (0 B), changed since 4"},
		{{{0, 0, 0, 0, 6, 0}}, 0,
			"s3://b/p/ at s3: done 0 files (0 B), of a later version of s3once 6"},
		{{{1234, 2, 3, 4, 5, 2048}}, 1,
			"       1,234     2.0 KiB         2         3         4  s3://b/p/, and of a "
			"later version of s3once 5"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		begin(&f);
		f.view.depth = rows[i].depth;
		status_print_counts(&f.view, "p/", &rows[i].counts, COUNTS_OF_SUM);
		CHECK_INT(f.view.sum.of[STATUS_DONE], rows[i].counts.of[STATUS_DONE]);
		if (!check_lines(&f, rows[i].want))
			fprintf(stderr, "\trow %zu\n", i);
	}
	/* The row of a folder is not the sum. */
	struct fixture f;
	begin(&f);
	f.view.depth = 1;
	status_print_counts(&f.view, "p/a/", &rows[5].counts, COUNTS_OF_FOLDER);
	CHECK_INT(f.view.sum.of[STATUS_DONE], 0);
	check_lines(&f,
		"       1,234     2.0 KiB         2         3         4  p/a/, and of a later version "
		"of s3once 5");
}

/* Ten failed files and ten changed ones are listed, and with -v all. The rest is counted. */
static void test_unfinished(void)
{
	/* In a sentence, names are escaped already. */
	const struct mark failed = {.state = MARK_FAILED, .error = (char[]){"a\\tb: \033"}},
			  changed = {.state = MARK_DONE,
				  .has_newer = true,
				  .newer_mtime_ns = 1700000000LL * 1000000000,
				  .done.mtime_ns = 1600000000LL * 1000000000},
			  claimed = {.state = MARK_CLAIMED}, damaged = {.state = MARK_UNREADABLE};
	for (unsigned verbose = 0; verbose < 2; verbose++) {
		const struct status_counts counts = {{[STATUS_FAILED] = 12, [STATUS_CHANGED] = 11}};
		struct text want = TEXT(1 << 16);
		struct fixture f;
		begin(&f);
		f.view.verbose = verbose;
		if (verbose)
			text_add(&want, "claimed: c\n");
		status_print_unfinished(&f.view, "c", &claimed);
		status_print_unfinished(&f.view, "d", &damaged);
		for (unsigned i = 0; i < 12; i++) {
			status_print_unfinished(&f.view, "f", &failed);
			if (i < 10 || verbose)
				text_add(&want, "failed: f\n        a\\tb: \\x1b\n");
		}
		for (unsigned i = 0; i < 11; i++) {
			status_print_unfinished(&f.view, "g", &changed);
			if (i < 10 || verbose)
				text_add(&want,
					"changed: g\n         the file is of 2023-11-14T22:13:20Z "
					"now and was of 2020-09-13T12:26:40Z when it was "
					"uploaded\n");
		}
		status_print_omitted(&f.view, &counts);
		if (verbose)
			want.data[--want.len] = '\0';
		else
			text_add(&want, "and 2 failed files more: -v lists them all\n"
					"and 1 changed files more: -v lists them all");
		check_lines(&f, text_string(&want));
		text_clear(&want);
	}
}

/* The holders of claims, and the history of one mark. */
static void test_claims(void)
{
	const struct session_info open = {.is_open = true,
					  .owner = "web1",
					  .started_s = 1700000000,
					  .heard_s = clock_wall_s(),
					  .lease_ns = 3600 * NS_PER_S},
				  silent = {.is_open = true,
					  .owner = "web1",
					  .heard_s = clock_wall_s() - 7200,
					  .lease_ns = 3600 * NS_PER_S},
				  gone = {.is_open = true, .is_gone = true, .owner = "web1"},
				  ended = {.owner = "web1", .started_s = 1700000000};
	struct fixture f;
	begin(&f);
	status_print_session(&f.view, "s", 1, &open);
	status_print_session(&f.view, "s", 2, &gone);
	status_print_session(&f.view, "s", 3, &ended);
	status_print_session(&f.view, "s", 4, NULL);
	status_print_session(&f.view, "s", 5, &silent);
	check_lines(&f, "claimed: 1 file by web1, still open, begun 2023-11-14T22:13:20Z\n"
			"claimed: 2 files by web1, its process is gone, begun an unknown time\n"
			"claimed: 3 files by web1, ended, begun 2023-11-14T22:13:20Z\n"
			"claimed: 4 files by an uploader that ended long ago\n"
			"claimed: 5 files by web1, silent for longer than its lease, begun an "
			"unknown time");
	begin(&f);
	status_print_mark(&f.view, "k",
		&(const struct mark){.state = MARK_CLAIMED,
			.session = "s1",
			.claim = "c1",
			.source = (char[]){"web1:/k"},
			.tries = 2,
			.at_s = 1700000000,
			.has_done = true,
			.done = {.size = 2048, .sum = "sha256:x", .etag = "e"},
			.upload.id = (char[]){"u1"}},
		NULL);
	check_lines(&f,
		"s3://b/k\n"
		"  state     claimed since 2023-11-14T22:13:20Z, tries 2\n"
		"  by        an uploader that ended long ago\n"
		"  fence     session s1, claim c1\n"
		"  source    web1:/k\n"
		"  version   2.0 KiB (2048 bytes), modified an unknown time\n"
		"            sha256:x, etag e\n"
		"  upload    u1\n"
		"  next run  its uploader has ended, so the next run takes it over at once");
	begin(&f);
	status_print_nothing(&f.view, "p/");
	check_lines(&f, "s3://b/p/ at s3: these marks know of no file there");
}

static void check_outlook(
	const struct mark *mark, const struct session_info *session, const char *says)
{
	const char *outlook = status_outlook(mark, session);
	if (!CHECK(strstr(outlook, says)))
		fprintf(stderr, "\t%s\n", outlook);
}

/* All members of the events, each from its own field. */
static void test_json(void)
{
	static const char *const want[] = {
		"\"bucket\":\"b\",\"key\":\"k\",\"state\":\"done\",\"session\":\"s1\","
		"\"claim\":\"c1\",\"source\":\"web1:/srv\",\"tries\":3,\"error\":\"why\","
		"\"since\":\"1970-01-01T00:16:40Z\",\"upload_id\":\"u1\","
		"\"last_done\":{\"bytes\":5,\"mtime_ns\":6000000007,\"sum\":\"crc32c:x\","
		"\"etag\":\"e1\",\"source\":\"web1:/srv\"},\"newer\":{\"bytes\":8,"
		"\"mtime_ns\":9000000001},"
		"\"outlook\":\"the file has changed since: see --if-changed\"}",
		"\"bucket\":\"b\",\"key\":\"k\",\"state\":\"claimed\",\"session\":\"s1\","
		"\"claim\":\"c1\",\"source\":\"web2:/srv\",\"tries\":3,\"error\":\"why\","
		"\"since\":\"1970-01-01T00:16:40Z\",\"upload_id\":\"u1\","
		"\"last_done\":{\"bytes\":5,\"mtime_ns\":6000000007,\"sum\":\"crc32c:x\","
		"\"etag\":\"e1\",\"source\":\"web1:/srv\"},\"newer\":null}",
		"\"session\":\"s1\",\"claims\":4,\"known\":true,\"owner\":\"web1 pid 7\","
		"\"open\":true,\"gone\":true,\"started\":\"1970-01-01T00:33:20Z\","
		"\"expires\":\"1970-01-01T00:50:00Z\",\"lease_ms\":20000}",
		"\"session\":\"s1\",\"claims\":4,\"known\":false,\"owner\":null,"
		"\"open\":false,\"gone\":false,\"started\":null,\"expires\":null,"
		"\"lease_ms\":0}",
	};
	struct fixture f;
	const struct mark mark = {.state = MARK_DONE,
		.session = "s1",
		.claim = "c1",
		.has_done = true,
		.done = {.size = 5, .mtime_ns = 6000000007, .sum = "crc32c:x", .etag = "e1"},
		.source = (char[]){"web1:/srv"},
		.claim_source = (char[]){"web2:/srv"},
		.has_newer = true,
		.newer_size = 8,
		.newer_mtime_ns = 9000000001,
		.upload.id = (char[]){"u1"},
		.tries = 3,
		.error = (char[]){"why"},
		.at_s = 1000};
	struct mark claimed = mark;
	const struct session_info session = {.owner = "web1 pid 7",
		.started_s = 2000,
		.expires_s = 3000,
		.is_open = true,
		.is_gone = true,
		.lease_ns = 20 * 1000000000ULL};
	claimed.state = MARK_CLAIMED;
	claimed.has_newer = false;
	begin(&f);
	f.frame.json = 1;
	begin_results(&f.frame.output);
	status_print_mark(&f.view, "k", &mark, NULL);
	status_print_unfinished(&f.view, "k", &claimed);
	status_print_session(&f.view, "s1", 4, &session);
	status_print_session(&f.view, "s1", 4, NULL);
	end_results(&f.frame.output, want, 4);
	check_lines(&f, "");
}

int main(void)
{
	const int fd = mkstemp(results_path);
	if (!CHECK(fd >= 0))
		return check_result();
	close(fd);
	const struct session_info open = {.is_open = true}, ended = {.is_open = false},
				  gone = {.is_open = true, .is_gone = true};
	check_outlook(&(struct mark){.state = MARK_ABSENT}, NULL, "uploads it");
	check_outlook(&(struct mark){.state = MARK_DONE}, NULL, "skips it");
	check_outlook(&(struct mark){.state = MARK_DONE, .has_newer = true}, NULL, "--if-changed");
	check_outlook(&(struct mark){.state = MARK_FORGOTTEN}, NULL, "uploads it");
	check_outlook(&(struct mark){.state = MARK_FAILED}, NULL, "retries it");
	check_outlook(&(struct mark){.state = MARK_FAILED, .upload.id = (char[]){"u"}}, NULL,
		"sends only the parts");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, NULL, "at once");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &ended, "takes it over at once");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &open, "waits");
	check_outlook(&(struct mark){.state = MARK_CLAIMED}, &gone, "process on this host is gone");
	check_outlook(&(struct mark){.state = MARK_UNREADABLE}, NULL, "does not change it");
	test_counts();
	test_unfinished();
	test_claims();
	test_json();
	unlink(results_path);
	return check_result();
}
