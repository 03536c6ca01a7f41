/* The input of a pipe: what becomes of each way in which its producer can end, and of output that
 * is kept for a later run. The producer is a script. */
#include "steps.h"
#include "upload/file/spool.h"
#include <errno.h>

#define NOT_FOUND STEPS_REPLY("404", "", "")
#define FAILS     STEPS_REPLY("500", "", "")
#define HEAD      "HEAD /b/k\n"
#define SLOW_MS   300 /* longer than the time limit of such a row */

/* How the name of the kept output is taken before the run makes it. */
enum taken {
	FREE,
	KEPT,      /* by an earlier run */
	SYMLINK,   /* to a file */
	HARD_LINK, /* which another name has, too */
	FOLDER,
	MEANWHILE, /* another run takes it while the producer runs */
};

static const struct row {
	const char *name;
	/* Each call of the producer: a letter is a byte of output, which takes long for 'w', '.'
	 * nothing for a while, '!' it fails, '$' it ends, 'S' the run is stopped, and a byte of
	 * output comes. */
	const char *producer;
	const char *reply; /* of S3 to the HEAD */
	bool has_spool;
	enum taken taken;
	enum step step;
	const char *content; /* of the file that is open then; NULL: none is */
	unsigned calls;      /* of the producer, without the last one */
	bool is_ended;       /* by a last call */
	bool is_kept;        /* afterwards, the name has output */
	unsigned notes, warnings, failures;
	const char *says;
} rows[] = {
	{"whole", "abc$", NOT_FOUND, false, FREE, STEP_NEXT, "abc", 4, false, false, 0, 0, 0, ""},
	{"short pauses", "a..b$", NOT_FOUND, false, FREE, STEP_NEXT, "ab", 5, false, false, 1, 0, 0,
		"nothing came for"},
	{"two silences", ".a...b.$", NOT_FOUND, false, FREE, STEP_NEXT, "ab", 8, false, false, 3, 0,
		0, "after 2 bytes"},
	{"a slow byte, and a short pause", "w.$", NOT_FOUND, false, FREE, STEP_NEXT, "w", 3, false,
		false, 0, 0, 0, ""},
	{"no output", "$", NOT_FOUND, false, FREE, STEP_SETTLED, NULL, 1, false, false, 0, 0, 1,
		"ended without any output"},
	{"no output, with --spool", "$", NOT_FOUND, true, FREE, STEP_SETTLED, NULL, 1, false, false,
		0, 0, 1, "ended without any output"},
	{"it fails", "ab!", NOT_FOUND, false, FREE, STEP_SETTLED, NULL, 3, false, false, 0, 0, 1,
		"it broke"},
	{"it fails at once", "!", NOT_FOUND, true, FREE, STEP_SETTLED, NULL, 1, false, false, 0, 0,
		1, "it broke"},
	{"stopped", "aSb$", NOT_FOUND, true, FREE, STEP_OVER, NULL, 2, true, false, 0, 0, 0, ""},
	{"no answer of S3", "a$", FAILS, true, FREE, STEP_LATER, NULL, 0, false, false, 0, 0, 0,
		""},
	{"no answer of S3, and output is kept", "a$", FAILS, true, KEPT, STEP_LATER, NULL, 0, false,
		true, 0, 0, 0, ""},
	{"whole, and kept", "abc$", NOT_FOUND, true, FREE, STEP_NEXT, "abc", 4, false, true, 0, 0,
		0, ""},
	{"kept by an earlier run", "x$", NOT_FOUND, true, KEPT, STEP_NEXT, "kept", 0, false, true,
		1, 0, 0, "is sent"},
	{"without --spool, that is not seen", "x$", NOT_FOUND, false, KEPT, STEP_NEXT, "x", 2,
		false, true, 0, 0, 0, ""},
	{"a symbolic link", "x$", NOT_FOUND, true, SYMLINK, STEP_SETTLED, NULL, 0, false, true, 0,
		0, 1, "cannot be used"},
	{"a hard link", "x$", NOT_FOUND, true, HARD_LINK, STEP_SETTLED, NULL, 0, false, true, 0, 0,
		1, "cannot be used"},
	{"a folder", "x$", NOT_FOUND, true, FOLDER, STEP_SETTLED, NULL, 0, false, true, 0, 0, 1,
		"cannot be used"},
	{"the name is taken meanwhile", "ab$", NOT_FOUND, true, MEANWHILE, STEP_NEXT, "ab", 3,
		false, true, 0, 1, 0, "is not kept"},
};

/* The producer. */
static struct {
	struct steps *steps;
	const struct row *row;
	char path[200], other[120]; /* of the kept output, and of another file */
	unsigned calls, ends;
	bool after_end; /* it was called once more after its end */
	unsigned syncs; /* of a file without a name */
} producer;

/* Takes the place of the C library's. */
int fsync(int fd)
{
	struct stat st;
	producer.syncs += fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0;
	return fdatasync(fd);
}

static void write_file(const char *path, const char *content)
{
	FILE *file = fopen(path, "w");
	CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static long produce(void *arg, void *buffer, size_t n, char *ret_text, size_t size)
{
	(void)arg;
	if (!n) {
		producer.ends++;
		return 0;
	}
	CHECK(n > 0 && size > 0);
	const size_t at = producer.calls++;
	if (at >= strlen(producer.row->producer)) {
		producer.after_end = true;
		return 0;
	}
	const char what = producer.row->producer[at];
	if (producer.row->taken == MEANWHILE && at == 0)
		write_file(producer.path, "of another");
	if (what == '.') {
		usleep(4000);
		return -EAGAIN;
	}
	if (what == '!') {
		snprintf(ret_text, size, "it broke");
		return -EIO;
	}
	if (what == '$')
		return 0;
	if (what == 'S')
		s3once_push_stop(producer.steps->push);
	if (what == 'w')
		usleep(SLOW_MS * 1000);
	*(char *)buffer = what;
	return 1;
}

/* The name that the output is kept by: a hash of the key, so that any run finds it. */
static void find_name(const struct run *run, const char *folder)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	char about[400], hex[2 * sizeof hash + 1];
	snprintf(about, sizeof about, "%s/b/k", run->space.service);
	SHA256((const unsigned char *)about, strlen(about), hash);
	hex_encode(hash, sizeof hash, hex);
	snprintf(producer.path, sizeof producer.path, "%s/s3once-%.32s", folder, hex);
	snprintf(producer.other, sizeof producer.other, "%s/other", folder);
}

static void take_name(enum taken taken)
{
	if (taken == KEPT)
		write_file(producer.path, "kept");
	if (taken == SYMLINK || taken == HARD_LINK)
		write_file(producer.other, "other");
	if (taken == SYMLINK)
		CHECK_INT(symlink(producer.other, producer.path), 0);
	if (taken == HARD_LINK)
		CHECK_INT(link(producer.other, producer.path), 0);
	if (taken == FOLDER)
		CHECK_INT(mkdir(producer.path, 0700), 0);
}

static bool check_content(const struct file *file, const char *want)
{
	char got[100] = "";
	if (!want)
		return CHECK_INT(file->fd, -1);
	return CHECK(file->fd >= 0) && CHECK(pread(file->fd, got, sizeof got - 1, 0) >= 0) &&
	       CHECK_STRING(got, want) && CHECK_INT(file->state.size, strlen(want));
}

static void test_row(const struct row *row)
{
	static const char *const name[] = {"input"};
	struct steps steps;
	struct stat st = {0};
	if (!steps_make(&steps, "", 0))
		return;
	memset(&producer, 0, sizeof producer);
	producer.steps = &steps;
	producer.row = row;
	steps.options.sources = name;
	steps.options.as = "k";
	steps.options.read = produce;
	steps.options.spool = row->has_spool ? steps.tree : NULL;
	if (!steps_begin(&steps, NULL, 0))
		return;
	steps.run->options.request_timeout_ms = strchr(row->producer, 'w') ? SLOW_MS - 100 : 2;
	CHECK_INT(steps_claim(&steps), STEP_NEXT);
	find_name(steps.run, steps.tree);
	take_name(row->taken);
	steps.file->step = STEP_SEND;
	steps_answer(&steps, row->reply);
	const uint64_t found = report_get_counts(&steps.run->report).bytes_found;
	bool good = CHECK_INT(spool_take(steps.worker, steps.file), row->step);
	buffers_take_back(&steps.run->bodies.buffers, &steps.worker->reader); /* as worker.c does */
	good = check_content(steps.file, row->content) && good;
	good = CHECK_INT(producer.calls, row->calls) && good;
	good = CHECK_INT(producer.ends, row->is_ended) && CHECK(!producer.after_end) && good;
	good = CHECK_INT(steps.events[S3ONCE_EVENT_NOTE], row->notes) && good;
	good = CHECK_INT(steps.events[S3ONCE_EVENT_WARNING], row->warnings) && good;
	good = CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], row->failures) && good;
	good = (!*row->says || steps_say(&steps, row->says)) && good;
	good = CHECK_INT(report_get_counts(&steps.run->report).bytes_found - found,
		       row->content ? strlen(row->content) : 0) &&
	       good;
	good = CHECK_INT(lstat(producer.path, &st) == 0, row->is_kept) && good;
	if (row->has_spool && row->taken == FREE && row->is_kept) {
		good = CHECK_INT(st.st_mode & 0777, 0600) && good;
		/* A file with this name is whole, even after a power failure. */
		good = CHECK_INT(producer.syncs, 1) && good;
	}
	/* Once it is done, what a run would use is removed, and nothing else. */
	spool_forget(steps.run);
	const bool stays = row->is_kept && (!row->has_spool || row->taken == SYMLINK ||
						   row->taken == HARD_LINK || row->taken == FOLDER);
	good = CHECK_INT(lstat(producer.path, &st) == 0, stays) && good;
	if (row->taken == SYMLINK || row->taken == HARD_LINK)
		good = CHECK_INT(access(producer.other, F_OK), 0) && good;
	if (!good)
		fprintf(stderr, "\t%s\n", row->name);
	steps_end_row(&steps, good, HEAD, (size_t)(row - rows));
}

int main(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		test_row(&rows[i]);
	return check_result();
}
