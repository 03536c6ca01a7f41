/* Which paths a job of `s3once watch` lets wait, until when, and which of them cause a pass. No
 * pass is run: the tests set the times of the job and of its files. */
#include "base/clock.h"
#include "watched.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIN_AGE_S  100
#define TOLERANT_S 10 /* of a busy host; the times in the tables are further apart */

/* The folder of a test, without links. It has the source `tree`, and `link`, which leads to it. */
static char folder[] = "/tmp/test_watched_job.XXXXXX";
static char tree[64], link_path[64], file[80], file_by_link[80], conf[64];

static bool others_want_turn(void *arg)
{
	(void)arg;
	return false;
}

static void sign(void *arg)
{
	(void)arg;
}

/* Opens the job as it is between two passes: no pass over all files is due. */
static struct watched *open_job(bool live)
{
	static const struct watched_service service = {others_want_turn, sign, NULL};
	char text[400];
	snprintf(text, sizeof text,
		"source = %s\ntarget = s3://bucket/p\nmarks = sqlite:%s/marks\n"
		"min-age = %ds\nlive = %s\n",
		tree, folder, MIN_AGE_S, live ? "yes\nrotated = yes" : "no");
	struct watched *watched = watched_open(conf, text, &service);
	watched->next_whole_ns = UINT64_MAX;
	return watched;
}

/* Makes a file with this modification time. Its ctime is the present. */
static void write_file(const char *path, int64_t mtime_ns)
{
	const struct timespec time = {mtime_ns / (int64_t)NS_PER_S, mtime_ns % (int64_t)NS_PER_S};
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK_INT(futimens(fd, (struct timespec[]){time, time}), 0);
	close(fd);
}

/* Checks that a path is due after so many seconds from begun_ns, and not at once even then. */
static bool check_due(uint64_t due_ns, uint64_t begun_ns, int64_t due_s)
{
	const int64_t after_ns = (int64_t)(due_ns - begun_ns);
	bool ok = CHECK(due_ns >= begun_ns + 100 * NS_PER_MS);
	ok &= CHECK(after_ns > (due_s - TOLERANT_S) * (int64_t)NS_PER_S);
	ok &= CHECK(after_ns < (due_s + TOLERANT_S) * (int64_t)NS_PER_S);
	return ok;
}

/* A pass has left the file as too young. It waits if it came to rest after the beginning of the
 * pass, by which the pass judges, even if it is at rest by now. */
static void test_left_by_a_pass(void)
{
	static const struct {
		const char *name;
		int64_t age_ms, began_ms; /* both before now; the age is by the mtime. The ctime
							is now. */
		bool waits, is_gone;
		int64_t due_s;
	} rows[] = {
		{"young", 30000, 5000, true, false, 70},
		{"written during the pass", 2000, 5000, true, false, 98},
		{"at rest since the pass began", 103000, 5000, true, false, 0},
		{"at rest just after the pass began", 104999, 5000, true, false, 0},
		{"at rest just as the pass began", 105000, 5000, false, false, 0},
		{"at rest before the pass", 200000, 5000, false, false, 0},
		{"at rest since a long pass began", 5000000, 6000000, true, false, 0},
		{"ahead of the clock", -50000, 5000, true, false, 100},
		{"far ahead of the clock", -90000000, 5000, true, false, 100},
		{"ahead of the clock, and changed long before", -90000000, -200000, false, false,
			0},
		{"gone", 0, 5000, false, true, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct watched *watched = open_job(false);
		const struct pending_paths *pending = &watched->pending;
		const int64_t now_ns = clock_wall_ns();
		const uint64_t begun_ns = clock_boot_ns();
		write_file(file, now_ns - rows[i].age_ms * (int64_t)NS_PER_MS);
		if (rows[i].is_gone)
			unlink(file);
		watched->began_wall_ns = now_ns - rows[i].began_ms * (int64_t)NS_PER_MS;
		watched->pass.waits(watched->pass.arg, file_by_link);
		bool ok = CHECK_INT(pending->n, rows[i].waits);
		if (ok && rows[i].waits) {
			ok &= CHECK_STRING(pending->paths[0].path, file);
			ok &= check_due(pending->paths[0].due_ns, begun_ns, rows[i].due_s);
			ok &= CHECK_INT(watched_due_ns(watched), pending->paths[0].due_ns);
		} else {
			ok &= CHECK(watched_due_ns(watched) == UINT64_MAX);
		}
		/* A pass has checked it, so it does not count when the service ends. */
		ok &= CHECK(!watched_leaves_files(watched));
		if (!ok)
			fprintf(stderr, "\tin row %zu: %s\n", i, rows[i].name);
		unlink(file);
		watched_free(watched);
	}
}

/* A path waits, and is due. It causes a pass unless it is gone or was written to meanwhile. */
static void test_due(void)
{
	static const struct {
		const char *name;
		int64_t age_s, due_s;
		bool live, is_folder, is_gone;
		bool wants_turn, goes_on, is_still_new;
	} rows[] = {
		{"at rest", 150, 0, false, false, false, true, true, true},
		{"written to meanwhile", 30, 70, false, false, false, false, true, false},
		{"ahead of the clock", -50, 100, false, false, false, false, true, false},
		{"a live log that is written to", 0, 0, true, false, false, true, true, true},
		{"a folder", 0, 0, false, true, false, true, true, true},
		{"gone", 0, 0, false, false, true, false, false, false},
		{"a live log that is gone", 0, 0, true, false, true, false, false, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct watched *watched = open_job(rows[i].live);
		struct pending_paths *pending = &watched->pending;
		const uint64_t begun_ns = clock_boot_ns();
		watched->began_wall_ns = 0;
		if (rows[i].is_folder)
			CHECK_INT(mkdir(file, 0700), 0);
		else
			write_file(file, clock_wall_ns() - rows[i].age_s * (int64_t)NS_PER_S);
		watched->pass.waits(watched->pass.arg, file);
		if (rows[i].is_gone)
			unlink(file);
		bool ok = CHECK_INT(pending->n, 1);
		if (ok) {
			pending->paths[0].due_ns = 1;
			pending->paths[0].is_new = true;
			ok &= CHECK_INT(watched_wants_turn(watched), rows[i].wants_turn);
			ok &= CHECK_INT(pending->n, rows[i].goes_on);
			ok &= CHECK_INT(watched_leaves_files(watched), rows[i].is_still_new);
		}
		if (ok && rows[i].goes_on && !rows[i].wants_turn)
			ok &= check_due(pending->paths[0].due_ns, begun_ns, rows[i].due_s);
		if (!ok)
			fprintf(stderr, "\tin row %zu: %s\n", i, rows[i].name);
		remove(file);
		watched_free(watched);
	}
}

/* A path that waits already keeps its time, although the file was written to meanwhile. A new one
 * stays new, although a pass has left it as too young. */
static void test_again(void)
{
	struct watched *watched = open_job(false);
	struct pending_paths *pending = &watched->pending;
	const uint64_t begun_ns = clock_boot_ns();
	watched->began_wall_ns = clock_wall_ns();
	for (int64_t age_s = 50; age_s >= 0; age_s -= 50) {
		write_file(file, clock_wall_ns() - age_s * (int64_t)NS_PER_S);
		watched->pass.waits(watched->pass.arg, file);
		if (CHECK_INT(pending->n, 1))
			check_due(pending->paths[0].due_ns, begun_ns, 50);
		CHECK_INT(watched_due_ns(watched), pending->paths[0].due_ns);
		CHECK_INT(watched_leaves_files(watched), age_s == 0);
		pending->paths[0].is_new = true;
	}
	unlink(file);
	watched_free(watched);
}

/* The first of several paths that is due wakes the service, whichever came first. */
static void test_earlier_one(void)
{
	struct watched *watched = open_job(false);
	const uint64_t begun_ns = clock_boot_ns();
	char other[96];
	snprintf(other, sizeof other, "%s/other", tree);
	watched->began_wall_ns = clock_wall_ns();
	for (int64_t age_s = 0; age_s <= 50; age_s += 50) {
		const char *path = age_s ? other : file;
		write_file(path, clock_wall_ns() - age_s * (int64_t)NS_PER_S);
		watched->pass.waits(watched->pass.arg, path);
		check_due(watched_due_ns(watched), begun_ns, 100 - age_s);
		unlink(path);
	}
	watched_free(watched);
}

/* After a loss of events, as when a source is renamed, the pass over all files does not wait for
 * the time of the next full scan. */
static void test_lost_events(void)
{
	struct watched *watched = open_job(false);
	char elsewhere[96];
	snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
	watch_folders_renew(watched->folders);
	watched_read(watched);
	CHECK(watched_due_ns(watched) == UINT64_MAX);
	const uint64_t begun_ns = clock_boot_ns();
	CHECK_INT(rename(tree, elsewhere), 0);
	watched_read(watched);
	check_due(watched_due_ns(watched), begun_ns, MIN_AGE_S);
	CHECK_INT(rename(elsewhere, tree), 0);
	watched_free(watched);
}

int main(void)
{
	if (!CHECK(mkdtemp(folder) != NULL))
		return check_result();
	snprintf(tree, sizeof tree, "%s/tree", folder);
	snprintf(link_path, sizeof link_path, "%s/link", folder);
	snprintf(conf, sizeof conf, "%s/job.conf", folder);
	snprintf(file, sizeof file, "%s/file", tree);
	snprintf(file_by_link, sizeof file_by_link, "%s/file", link_path);
	CHECK_INT(mkdir(tree, 0700), 0);
	CHECK_INT(symlink(tree, link_path), 0);
	test_left_by_a_pass();
	test_due();
	test_again();
	test_earlier_one();
	test_lost_events();
	unlink(conf);
	unlink(link_path);
	rmdir(tree);
	CHECK_INT(rmdir(folder), 0);
	return check_result();
}
