/* The passes of a job of `s3once watch`: over which files each one is, what follows from its exit
 * status, when the next one is due, and to whom it gives way. push_run() is a fake that notes what
 * it was asked for and answers as the test says. */
#include "base/clock.h"
#include "cli/push/push_command.h"
#include "watched.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIN_AGE_S  100
#define WHOLE_S    200 /* from one pass over all files to the next */
#define TOLERANT_S 2   /* of a busy host; the times in the tables are further apart */

static char folder[] = "/tmp/test_watched_pass.XXXXXX";
static char tree[64], conf[64];

/* The behaviour of the fake run, and its recorded options. */
static struct {
	int code;
	bool gives_way;
	uint64_t files, bytes;
	void (*during)(struct watched *watched);
} answer;
static struct {
	unsigned n;
	char over[200]; /* the names of the files, with a space behind each; "all" */
	int whole_code;
	int final;
	uint64_t max_duration_ms;
} asked;

static bool do_others_want;
static unsigned signs;

static bool others_want_turn(void *arg)
{
	(void)arg;
	return do_others_want;
}

static void sign(void *arg)
{
	(void)arg;
	signs++;
}

int push_run(struct push_options *options, struct push_pass *pass)
{
	asked.n++;
	snprintf(asked.over, sizeof asked.over, "%s", options->run.folders ? "" : "all");
	for (size_t i = 0; options->run.folders && i < options->run.n_folders; i++) {
		strcat(asked.over, strrchr(options->run.folders[i], '/') + 1);
		strcat(asked.over, " ");
	}
	asked.whole_code = pass->whole_code;
	asked.final = options->run.final;
	asked.max_duration_ms = options->run.max_duration_ms;
	if (answer.during)
		answer.during(pass->arg);
	pass->ret_counts =
		(struct s3once_counts){.uploaded = answer.files, .bytes_uploaded = answer.bytes};
	pass->ret_gave_way = answer.gives_way;
	return answer.code;
}

static struct watched *open_job(const char *more)
{
	static const struct watched_service service = {others_want_turn, sign, NULL};
	char text[400];
	snprintf(text, sizeof text,
		"source = %s\ntarget = s3://bucket/p\nmarks = sqlite:%s/marks\n"
		"min-age = %ds\n%s",
		tree, folder, MIN_AGE_S, more);
	struct watched *watched = watched_open(conf, text, &service);
	watched->job.options.whole_scan_ms = WHOLE_S * 1000;
	memset(&answer, 0, sizeof answer);
	memset(&asked, 0, sizeof asked);
	do_others_want = false;
	return watched;
}

/* Lets a file wait that is at rest. It is beside the tree, where its events are not watched. */
static void add_rested(struct watched *watched, const char *name)
{
	const struct timespec old[] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct pending_paths *pending = &watched->pending;
	const int64_t began_wall_ns = watched->began_wall_ns;
	char path[96];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(futimens(fd, old), 0);
	close(fd);
	watched->began_wall_ns = 0;
	watched->pass.waits(watched->pass.arg, path);
	watched->began_wall_ns = began_wall_ns;
	for (size_t i = 0; i < pending->n; i++)
		pending->paths[i].due_ns = 1;
}

/* Checks that the next pass is due after so many seconds. */
static bool check_due(const struct watched *watched, int64_t due_s)
{
	const int64_t after_s =
		(int64_t)(watched_due_ns(watched) - clock_boot_ns()) / (int64_t)NS_PER_S;
	const bool good = CHECK(after_s > due_s - TOLERANT_S && after_s <= due_s);
	if (!good)
		fprintf(stderr, "\tdue after %lld s, want %lld\n", (long long)after_s,
			(long long)due_s);
	return good;
}

/* Makes a pass with this answer, and checks over what it was. */
static bool pass(struct watched *watched, int code, bool gives_way, const char *over)
{
	answer.code = code;
	answer.gives_way = gives_way;
	*asked.over = 0;
	watched_pass(watched);
	return CHECK_STRING(asked.over, over);
}

/* The effect of each exit status: of a pass over all files, and of a pass over some files after a
 * pass over all that has failed. */
static void test_exit_status(void)
{
	static const struct {
		int code;
		bool is_ready, is_held_up;
	} rows[] = {
		{S3ONCE_EXIT_OK, true, false},
		{S3ONCE_EXIT_FILES, true, false},
		{S3ONCE_EXIT_USAGE, false, false},
		{S3ONCE_EXIT_SETUP, false, true},
		{S3ONCE_EXIT_HELD, true, false},
		{S3ONCE_EXIT_FENCED, false, true},
		{S3ONCE_EXIT_LIMIT, true, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct watched *watched = open_job("");
		answer.files = 2;
		answer.bytes = 30;
		bool good =
			CHECK(watched_leaves_files(watched)) && CHECK(watched_wants_turn(watched));
		good &= pass(watched, rows[i].code, false, "all");
		good &= CHECK_INT(asked.whole_code, 0);
		good &= CHECK_INT(watched->code, rows[i].code);
		good &= CHECK_INT(watched->is_ready, rows[i].is_ready);
		good &= CHECK_INT(watched->sums.whole, 1);
		good &= CHECK_INT(watched->sums.some, 0);
		good &= CHECK_INT(watched->sums.failed, rows[i].code != 0);
		good &= check_due(watched, rows[i].code ? 5 : WHOLE_S);
		good &= CHECK(!watched_leaves_files(watched));
		/* A file at rest waits for the pass over all if that found no S3 or no marks. */
		add_rested(watched, "a");
		good &= CHECK_INT(watched_wants_turn(watched), !rows[i].is_held_up);
		if (rows[i].is_held_up)
			good &= check_due(watched, 5);
		else
			good &= CHECK(watched_due_ns(watched) <= clock_boot_ns());
		/* A success of some files says nothing of the others. */
		good &= pass(watched, 0, false, "a ");
		good &= CHECK_INT(asked.whole_code, rows[i].code);
		good &= CHECK_INT(watched->code, rows[i].code);
		good &= CHECK(watched->is_ready);
		good &= check_due(watched, rows[i].code ? 5 : WHOLE_S);
		/* A failure of some does not become the status of all. */
		add_rested(watched, "b");
		good &= pass(watched, S3ONCE_EXIT_HELD, false, "b ");
		good &= CHECK_INT(watched->code, S3ONCE_EXIT_HELD);
		good &= check_due(watched, 5);
		add_rested(watched, "b");
		good &= pass(watched, 0, false, "b ");
		good &= CHECK_INT(watched->code, S3ONCE_EXIT_HELD);
		good &= CHECK_INT(asked.whole_code, rows[i].code);
		good &= CHECK_INT(watched->sums.whole, 1);
		good &= CHECK_INT(watched->sums.some, 3);
		good &= CHECK_INT(watched->sums.failed, (rows[i].code != 0) + 1);
		good &= CHECK_INT(watched->sums.files, 8);
		good &= CHECK_INT(watched->sums.bytes, 120);
		/* Nothing is due: no run. */
		good &= pass(watched, 0, false, "");
		watched->is_ready = true;
		watched->next_whole_ns = 1;
		good &= pass(watched, rows[i].code, false, "all");
		good &= CHECK_INT(watched->is_ready, rows[i].is_ready);
		if (!good)
			fprintf(stderr, "\texit status %d\n", rows[i].code);
		watched_free(watched);
	}
}

/* The wait doubles with each failure up to the time between two full scans, and begins again after
 * a success. A pass that only repeats one that failed takes no turn from others. */
static void test_retries(void)
{
	static const int64_t waits_s[] = {5, 10, 20, 40, 80, 160, WHOLE_S, WHOLE_S};
	struct watched *watched = open_job("");
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++) {
			pass(watched, S3ONCE_EXIT_FILES, false, "all");
			check_due(watched, waits_s[i]);
			watched->next_whole_ns = 1;
			CHECK(!watched_wants_turn(watched));
		}
		for (unsigned i = 0; i < 70; i++) { /* more often than 64 bits can double */
			pass(watched, S3ONCE_EXIT_FILES, false, "all");
			check_due(watched, WHOLE_S);
			watched->next_whole_ns = 1;
		}
		pass(watched, 0, false, "all");
		check_due(watched, WHOLE_S);
		watched->next_whole_ns = 1;
		CHECK(watched_wants_turn(watched));
	}
	/* Some files that fail wait longer and longer, too, and their success ends no wait. */
	pass(watched, 0, false, "all");
	for (size_t i = 0; i < 3; i++) {
		watched->next_whole_ns = UINT64_MAX;
		add_rested(watched, "a");
		pass(watched, S3ONCE_EXIT_FILES, false, "a ");
		check_due(watched, waits_s[i]);
		add_rested(watched, "b");
		pass(watched, 0, false, "b ");
		check_due(watched, waits_s[i]);
	}
	watched_free(watched);
}

/* A pass that gives way goes on after one pass over the files that are at rest, even if that gives
 * way, too. What was printed is printed again only once all is done. */
static void test_giving_way(void)
{
	struct watched *watched = open_job("");
	answer.files = 1;
	answer.bytes = 10;
	text_add(&watched->pass.printed_errors, "told");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "all");
	CHECK_INT(watched->code, 0);
	CHECK_INT(watched->sums.whole, 0);
	CHECK_INT(watched->sums.failed, 0);
	CHECK_INT(watched->sums.files, 1);
	CHECK_INT(watched->sums.bytes, 10);
	CHECK(!watched->is_ready);
	CHECK_INT(watched_due_ns(watched), 0);
	CHECK(watched_leaves_files(watched) && watched_wants_turn(watched));
	add_rested(watched, "a");
	add_rested(watched, "b");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "a b ");
	CHECK_INT(asked.whole_code, S3ONCE_EXIT_LIMIT);
	CHECK_INT(watched_due_ns(watched), 0);
	add_rested(watched, "c");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "all");
	CHECK_STRING(text_string(&watched->pass.printed_errors), "told");
	CHECK_INT(watched->sums.whole + watched->sums.some, 0);
	/* The pass over all files included what waited before it began. */
	pass(watched, 0, false, "all");
	CHECK_INT(asked.whole_code, 0);
	CHECK_INT(watched->sums.whole, 1);
	CHECK_STRING(text_string(&watched->pass.printed_errors), "");
	CHECK(!watched_leaves_files(watched));
	check_due(watched, WHOLE_S);

	/* Such a pass includes the files that are too young, too: it is told of them again. */
	add_rested(watched, "a");
	watched->pending.paths[0].due_ns = UINT64_MAX - 1;
	watched->next_whole_ns = 1;
	pass(watched, 0, false, "all");
	CHECK_INT(watched->pending.n, 0);

	/* The same of a pass over some files. Its rest is gone on with, with what came. */
	text_add(&watched->pass.printed_errors, "told");
	add_rested(watched, "a");
	add_rested(watched, "b");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "a b ");
	add_rested(watched, "c");
	pass(watched, 0, false, "c ");
	CHECK_INT(asked.whole_code, S3ONCE_EXIT_LIMIT);
	CHECK(watched_leaves_files(watched));
	CHECK_STRING(text_string(&watched->pass.printed_errors), "told");
	add_rested(watched, "d");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "a b d ");
	pass(watched, 0, false, "a b d ");
	CHECK_INT(watched->sums.some, 2);
	CHECK_INT(watched->sums.failed, 0);
	CHECK(!watched_leaves_files(watched));
	pass(watched, 0, false, "");

	/* A pass over all files that becomes due includes the rest of one over some. */
	add_rested(watched, "a");
	pass(watched, S3ONCE_EXIT_LIMIT, true, "a ");
	watched->next_whole_ns = 1;
	pass(watched, 0, false, "all");
	CHECK(!watched_leaves_files(watched));
	pass(watched, 0, false, "");
	watched_free(watched);
}

/* Keys by a template, rotated logs and links are found only by a pass over all files. */
static void test_needs_all(void)
{
	static const char *const options[] = {
		"key = {name}\n", "rotated = yes\n", "follow = yes\n"};
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		struct watched *watched = open_job(options[i]);
		bool good = pass(watched, 0, false, "all");
		good &= pass(watched, 0, false, "");
		add_rested(watched, "a");
		good &= pass(watched, S3ONCE_EXIT_LIMIT, true, "all");
		add_rested(watched, "b");
		good &= pass(watched, 0, false, "all");
		good &= CHECK_INT(watched->sums.whole, 2);
		good &= pass(watched, 0, false, "");
		if (!good)
			fprintf(stderr, "\t%s", options[i]);
		watched_free(watched);
	}
}

/* The last pass: what it is asked for, and whether files are left. */
static void test_drain(void)
{
	static const struct {
		int64_t left_ms;
		int code;
		bool waits;
	} rows[] = {
		{60000, 0, false}, {60000, S3ONCE_EXIT_LIMIT, true},
		{60000, S3ONCE_EXIT_FILES, false},
		{-5, S3ONCE_EXIT_LIMIT, true}, /* 0 would be no limit */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct watched *watched = open_job("");
		pass(watched, S3ONCE_EXIT_FILES, false, "all");
		add_rested(watched, "a");
		answer.code = rows[i].code;
		watched_drain(watched,
			clock_boot_ns() + (uint64_t)(rows[i].left_ms * (int64_t)NS_PER_MS));
		bool good = CHECK_STRING(asked.over, "all");
		good &= CHECK_INT(asked.final, 1);
		if (rows[i].left_ms < 0)
			good &= CHECK_INT(asked.max_duration_ms, 1);
		else
			good &= CHECK(
				asked.max_duration_ms > 55000 && asked.max_duration_ms <= 60001);
		good &= CHECK_INT(watched->code, rows[i].code);
		good &= CHECK_INT(watched_leaves_files(watched), rows[i].waits);
		good &= CHECK(watched_due_ns(watched) == (rows[i].waits ? 0 : UINT64_MAX));
		if (!good)
			fprintf(stderr, "\trow %zu\n", i);
		watched_free(watched);
	}
}

/* The jobs that want a turn. */
enum { NOBODY, OTHERS, RESTED };

/* A run that stores something every so many seconds. */
#define EVERY(s, member)                                                                           \
	{                                                                                          \
		{.member = 1, .seconds = s}, {.member = 2, .seconds = 2 * s},                      \
			{.member = 3, .seconds = 3 * s}, {.member = 4, .seconds = 4 * s},          \
			{.member = 5, .seconds = 5 * s},                                           \
	}

/* The counts of a run one after the other, and at which of them it gives way. */
static const struct {
	const char *name;
	struct s3once_counts counts[6];
	int at; /* index; -1: it never does */
	int wants, final, follow;
	enum last_pass last_pass;
} turns[] = {
	{"uploaded", EVERY(20, uploaded), 4, OTHERS, 0, 0},
	{"adopted", EVERY(20, adopted), 4, OTHERS, 0, 0},
	{"refreshed", EVERY(20, refreshed), 4, OTHERS, 0, 0},
	{"removed", EVERY(20, removed), 4, OTHERS, 0, 0},
	{"moved", EVERY(20, moved), 4, OTHERS, 0, 0},
	{"parts kept", EVERY(20, bytes_kept), 4, OTHERS, 0, 0},
	{"slower", EVERY(40, uploaded), 4, OTHERS, 0, 0},
	{"skipped, which stores nothing", EVERY(20, skipped), -1, OTHERS, 0, 0},
	{"younger than --min-age", EVERY(19, uploaded), -1, OTHERS, 0, 0},
	{"nobody waits", EVERY(20, uploaded), -1, NOBODY, 0, 0},
	{"files at rest", EVERY(20, uploaded), 4, RESTED, 0, 0},
	{"files at rest, and each pass is over all", EVERY(20, uploaded), -1, RESTED, 0, 1},
	{"others, and each pass is over all", EVERY(20, uploaded), 4, OTHERS, 0, 1},
	{"an earlier pass waits", EVERY(20, uploaded), 4, NOBODY, 0, 0, PASS_GAVE_WAY},
	{"the last pass", EVERY(20, uploaded), -1, OTHERS, 1, 0},
	{"nothing stored since",
		{{.uploaded = 1, .seconds = 20}, {.uploaded = 2, .seconds = 40},
			{.uploaded = 2, .seconds = 150},
			{.uploaded = 2, .skipped = 9, .seconds = 199}},
		-1, OTHERS, 0, 0},
	{"before five times the longest time",
		{{.uploaded = 1, .seconds = 30}, {.uploaded = 2, .seconds = 70},
			{.uploaded = 3, .seconds = 100}, {.uploaded = 4, .seconds = 150},
			{.uploaded = 5, .seconds = 200}, {.uploaded = 6, .seconds = 249}},
		-1, OTHERS, 0, 0},
	{"at five times the longest time",
		{{.uploaded = 1, .seconds = 30}, {.uploaded = 2, .seconds = 70},
			{.uploaded = 3, .seconds = 100}, {.uploaded = 4, .seconds = 150},
			{.uploaded = 5, .seconds = 200}, {.uploaded = 6, .seconds = 250}},
		5, OTHERS, 0, 0},
};

static size_t turn;

static void look_at_turn(struct watched *watched)
{
	int at = -1;
	if (turns[turn].wants == RESTED)
		add_rested(watched, "a");
	do_others_want = turns[turn].wants == OTHERS;
	watched->last_pass = turns[turn].last_pass;
	for (int i = 0; at < 0 && i < 6 && turns[turn].counts[i].seconds > 0; i++)
		if (watched->pass.gives_way(watched->pass.arg, &turns[turn].counts[i]))
			at = i;
	if (!CHECK_INT(at, turns[turn].at))
		fprintf(stderr, "\trow %zu: %s\n", turn, turns[turn].name);
	watched->last_pass = PASS_ENDED;
}

/* Each pass of the same job begins from nothing. */
static void test_turns(void)
{
	struct watched *watched = open_job("");
	struct s3once_options *options = &watched->job.options.run;
	answer.during = look_at_turn;
	for (turn = 0; turn < sizeof turns / sizeof *turns; turn++) {
		options->final = turns[turn].final;
		options->follow = turns[turn].follow;
		watched->next_whole_ns = 0;
		pass(watched, 0, false, "all");
	}
	watched_free(watched);
}

/* A sign of life at most once a second, and none of a run that is stuck. The job is ready once it
 * has found a file done or stored something. */
static void test_signs(void)
{
	static const struct {
		struct s3once_counts counts;
		bool is_ready;
	} rows[] = {
		{{.uploaded = 1}, true},
		{{.adopted = 1}, true},
		{{.refreshed = 1}, true},
		{{.skipped = 1}, true},
		{{.bytes_kept = 1}, true},
		{{.found = 9, .failed = 1, .waiting = 1, .bytes_sent = 5, .held = 1}, false},
	};
	struct watched *watched = open_job("");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct s3once_counts counts = rows[i].counts;
		watched->is_ready = false;
		watched->last_sign_ns = 0;
		signs = 0;
		counts.is_stuck = 1;
		watched->pass.gives_way(watched->pass.arg, &counts);
		CHECK_INT(signs, 0);
		counts.is_stuck = 0;
		watched->pass.gives_way(watched->pass.arg, &counts);
		watched->pass.gives_way(watched->pass.arg, &counts);
		CHECK_INT(signs, 1);
		watched->last_sign_ns -= NS_PER_S;
		watched->pass.gives_way(watched->pass.arg, &counts);
		CHECK_INT(signs, 2);
		if (!CHECK_INT(watched->is_ready, rows[i].is_ready))
			fprintf(stderr, "\trow %zu\n", i);
	}
	watched_free(watched);
}

int main(void)
{
	char all[100];
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(tree, sizeof tree, "%s/tree", folder);
	snprintf(conf, sizeof conf, "%s/job.conf", folder);
	CHECK_INT(mkdir(tree, 0700), 0);
	test_exit_status();
	test_retries();
	test_giving_way();
	test_needs_all();
	test_drain();
	test_turns();
	test_signs();
	snprintf(all, sizeof all, "rm -r %s", folder);
	CHECK_INT(system(all), 0);
	return check_result();
}
