/* How a file is opened as it is now: what has become of it since it was found, whether it is
 * compressed on its way, and what follows when it changes while it is read. */
#include "base/clock.h"
#include "steps.h"
#include <errno.h>

#define CONTENT "123456789"

/* Begins a run, and takes the file k as the scan has found it. `others` is a command of the shell,
 * which is in the tree before that. */
static bool find(struct steps *steps, const char *others)
{
	struct scan_entry entry;
	char line[400];
	snprintf(line, sizeof line, "cd %s && { %s; }", steps->tree, others);
	CHECK_INT(system(line), 0); // NOLINT(cert-env33-c): fixed commands
	if (!steps_begin_run(steps, NULL, 0))
		return false;
	struct run *run = steps->run;
	while (scan_next(run->files.scan, &entry, &steps->problem) > 0 &&
		(entry.kind != SCAN_FILE || strncmp(entry.relative, "k", 1) != 0))
		;
	steps->worker = worker_new(run);
	steps->file = file_new(run, feed_new_candidate(&entry));
	steps->file->step = STEP_OPEN;
	return CHECK(steps->worker && steps->file);
}

static void run_command(const struct steps *steps, const char *command)
{
	char line[400];
	snprintf(line, sizeof line, "cd %s && { %s; }", steps->tree, command);
	CHECK_INT(system(line), 0); // NOLINT(cert-env33-c): fixed commands
}

/* Marks the file as done, in this version or another one. */
static void mark_as_done(struct steps *steps, uint64_t size, bool has_newer)
{
	struct file *file = steps->file;
	const struct mark_ref ref = file_mark_ref(steps->worker, file);
	struct version version = {.size = size, .mtime_ns = file->candidate->mtime_ns, .etag = "e"};
	struct mark seen = {0}, present;
	CHECK_INT(mark_get(&ref, &present, &steps->problem), OUTCOME_OK);
	CHECK_INT(mark_claim(&ref, &present, &file->claim, &seen, &steps->problem), OUTCOME_OK);
	CHECK_INT(mark_done(&ref, &file->claim, &version, ref.source, &seen, &steps->problem),
		OUTCOME_OK);
	mark_clear(&seen);
	mark_clear(&present);
	if (has_newer) {
		CHECK_INT(mark_get(&ref, &present, &steps->problem), OUTCOME_OK);
		CHECK_INT(mark_note_newer(&ref, &present, 77, 7, &steps->problem), OUTCOME_OK);
		mark_clear(&present);
	}
}

enum mark_is { NO_MARK, DONE, DONE_OTHER, DONE_NEWER };
enum known_by { PATH, ITS_CONTENT, ROTATION };

/* The changes of the file between the scan and its turn. */
static void test_since_it_was_found(void)
{
	static const struct {
		const char *name, *happens;
		enum known_by known_by;
		enum mark_is mark;
		bool reuploads, is_sent;
		enum step step;
		int event; /* -1: none */
		const char *says;
		uint64_t size; /* if it is open */
	} rows[] = {
		{"nothing", ":", PATH, NO_MARK, false, false, STEP_NEXT, -1, "", 9},
		{"grown", "printf 1 >>k; touch -d @1000 k", PATH, NO_MARK, false, false, STEP_NEXT,
			-1, "", 10},
		{"written just now", "printf 1 >>k", PATH, NO_MARK, false, false, STEP_LEFT_OUT,
			S3ONCE_EVENT_WAITING, "", 0},
		{"too large", "head -c 50 /dev/zero >k; touch -d @1000 k", PATH, NO_MARK, false,
			false, STEP_LEFT_OUT, S3ONCE_EVENT_OVERSIZED, "", 0},
		{"too small", "printf 1 >k; touch -d @1000 k", PATH, NO_MARK, false, false,
			STEP_LEFT_OUT, S3ONCE_EVENT_UNDERSIZED, "", 0},
		{"known by its content", ":", ITS_CONTENT, NO_MARK, false, false, STEP_NEXT, -1, "",
			9},
		{"and grown", "printf 1 >>k; touch -d @1000 k", ITS_CONTENT, NO_MARK, false, false,
			STEP_STRANDED, S3ONCE_EVENT_FAILED, "changed while the run was under way",
			0},
		{"and touched", "touch -d @1001 k", ITS_CONTENT, NO_MARK, false, false,
			STEP_STRANDED, S3ONCE_EVENT_FAILED, "changed while the run was under way",
			0},
		{"gone", "rm k", PATH, NO_MARK, false, false, STEP_SETTLED, S3ONCE_EVENT_FAILED,
			"disappeared while it was uploaded", 0},
		{"done and gone", "rm k", PATH, DONE, false, false, STEP_IN_S3,
			S3ONCE_EVENT_SKIPPED, "", 0},
		{"done and gone, but to be sent again", "rm k", PATH, DONE, true, false,
			STEP_SETTLED, S3ONCE_EVENT_FAILED, "disappeared", 0},
		{"done otherwise and gone", "rm k", PATH, DONE_OTHER, false, false, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "disappeared", 0},
		{"done, newer, and gone", "rm k", PATH, DONE_NEWER, false, false, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "disappeared", 0},
		{"gone while it is sent", "rm k", PATH, DONE, false, true, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "disappeared", 0},
		{"a link", "mv k x; ln -s x k", PATH, NO_MARK, false, false, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "became a symbolic link", 0},
		{"a folder", "rm k; mkdir k", PATH, NO_MARK, false, false, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "is no longer a regular file", 0},
		{"rotated", "mv k k.1", ROTATION, NO_MARK, false, false, STEP_NEXT, -1, "", 9},
		{"rotated, and another has its name",
			"mv k k.1; printf 12345678 >k; touch -d @1000 k", ROTATION, NO_MARK, false,
			false, STEP_NEXT, -1, "", 9},
		{"rotated, and written to", "mv k k.1; printf 1 >>k.1; touch -d @1000 k.1",
			ROTATION, NO_MARK, false, false, STEP_SETTLED, S3ONCE_EVENT_FAILED,
			"was compressed or deleted", 0},
		{"compressed", "gzip k", ROTATION, NO_MARK, false, false, STEP_SETTLED,
			S3ONCE_EVENT_FAILED, "was compressed or deleted before it could be sent",
			0},
		{"compressed, and done", "gzip k", ROTATION, DONE, false, false, STEP_IN_S3,
			S3ONCE_EVENT_SKIPPED, "", 0},
	};
	static const enum s3once_event_type events[] = {S3ONCE_EVENT_WAITING,
		S3ONCE_EVENT_OVERSIZED, S3ONCE_EVENT_UNDERSIZED, S3ONCE_EVENT_FAILED,
		S3ONCE_EVENT_SKIPPED, S3ONCE_EVENT_RETRY};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static char id[] = "c0ffee";
		struct steps steps;
		if (!steps_make(&steps, CONTENT, 9))
			return;
		steps.options.min_age_ms = 3600 * 1000;
		steps.options.max_bytes = 20;
		steps.options.min_bytes = 2;
		steps.options.report_skipped = 1;
		steps.options.reupload = rows[i].reuploads;
		if (!find(&steps, ":"))
			return;
		struct file *file = steps.file;
		struct candidate *c = file->candidate;
		if (rows[i].known_by == ITS_CONTENT)
			c->content_id = id;
		c->is_rotated = rows[i].known_by == ROTATION;
		if (rows[i].mark != NO_MARK)
			mark_as_done(&steps, rows[i].mark == DONE_OTHER ? 8 : 9,
				rows[i].mark == DONE_NEWER);
		file->step = rows[i].is_sent ? STEP_SEND : STEP_OPEN;
		run_command(&steps, rows[i].happens);
		bool good = CHECK_INT(file_open(steps.worker, file), rows[i].step);
		for (size_t k = 0; k < sizeof events / sizeof *events; k++)
			good &= CHECK_INT(steps.events[events[k]], (int)events[k] == rows[i].event);
		good &= CHECK(strstr(steps.said, rows[i].says) != NULL);
		if (rows[i].size) {
			good &= CHECK_INT(file->state.size, rows[i].size);
			good &= CHECK_INT(file->mtime_ns, 1000 * (int64_t)NS_PER_S);
			good &= CHECK_INT(file->plan.n_parts, 0);
			good &= CHECK(file->fd >= 0 && file->opened_ctime_ns > file->mtime_ns);
			/* a rename changes the ctime */
			good &= CHECK_INT(file->state.ctime_ns == 0, rows[i].known_by == ROTATION);
		}
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].name, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

/* A file that an earlier turn has claimed is gone. Its mark is no longer held, also with
 * --reupload: others may be waiting for it. */
static void test_gone_after_an_earlier_turn(bool reuploads)
{
	struct steps steps;
	struct mark present = {0}, seen = {0};
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.reupload = reuploads;
	if (!find(&steps, ":"))
		return;
	struct file *file = steps.file;
	const struct mark_ref ref = file_mark_ref(steps.worker, file);
	CHECK_INT(mark_claim(&ref, &present, &file->claim, &seen, &steps.problem), OUTCOME_OK);
	claim_clear(&file->claim);
	CHECK_INT(mark_get(&ref, &file->seen_mark, &steps.problem), OUTCOME_OK); /* the next turn */
	run_command(&steps, "rm k");
	CHECK_INT(file_open(steps.worker, file), STEP_SETTLED);
	CHECK_INT(steps.events[S3ONCE_EVENT_FAILED], 1);
	present = steps_mark(&steps);
	CHECK_INT(present.state, MARK_FAILED);
	mark_clear(&present);
	script_stop(&steps.server);
	steps_end(&steps);
}

/* Files that look like others, and are none that can be sent. */
static void test_odd_files(void)
{
	static const char *const version[] = {"/proc/version"};
	struct scan_entry entry;
	struct steps steps;
	if (!steps_make(&steps, CONTENT, 9))
		return;
	steps.options.sources = version;
	if (!steps_begin_run(&steps, NULL, 0))
		return;
	CHECK_INT(scan_next(steps.run->files.scan, &entry, &steps.problem), 1);
	steps.worker = worker_new(steps.run);
	steps.file = file_new(steps.run, feed_new_candidate(&entry));
	CHECK_INT(file_open(steps.worker, steps.file), STEP_SETTLED);
	steps_say(&steps, "has size 0 but is not empty");
	script_stop(&steps.server);
	steps_end(&steps);

	if (!steps_make(&steps, CONTENT, 9) || !find(&steps, ":"))
		return;
	/* Some file systems hold no file of this size. */
	if (truncate(steps.path, (off_t)OBJECT_BYTES_MAX) == 0) {
		CHECK_INT(file_open(steps.worker, steps.file), STEP_NEXT);
		CHECK(steps.file->plan.n_parts > 1);
		CHECK_INT(truncate(steps.path, (off_t)OBJECT_BYTES_MAX + 1), 0);
		CHECK_INT(file_open(steps.worker, steps.file), STEP_SETTLED);
		steps_say(&steps, "larger than the largest object S3 can hold");
	}
	script_stop(&steps.server);
	steps_end(&steps);
}

#define PACKED "printf x | gzip >"

/* Which files --compress compresses, and where that would give two files one key. */
static void test_compressed_on_its_way(void)
{
	static const struct {
		const char *name, *others, *header;
		bool excludes, was_compressed;
		const char *object_key, *encoding; /* NULL: as it is */
		bool fails;
	} rows[] = {
		{"plain", ":", NULL, false, false, "k.zst", NULL, false},
		{"compressed", PACKED "k; touch -d @1000 k", NULL, false, false, "k", NULL, false},
		{"it was found compressed", ":", NULL, false, true, "k", NULL, false},
		{"by a header", ":", "Content-Encoding: zstd", false, false, "k", "zstd", false},
		{"the same, compressed", PACKED "k; touch -d @1000 k", "Content-Encoding: zstd",
			false, false, "k", NULL, false},
		{"beside its compressed form", PACKED "k.zst", NULL, false, false, "k.zst", NULL,
			true},
		{"which is none", "printf x >k.zst", NULL, false, false, "k.zst", NULL, false},
		{"which is left out", PACKED "k.zst", NULL, true, false, "k.zst", NULL, false},
		{"which has no suffix by a header", PACKED "k.zst", "Content-Encoding: zstd", false,
			false, "k", "zstd", false},
		{"the compressed one", "mv k x; " PACKED "k.zst; touch -d @1000 k.zst", NULL, false,
			false, "k.zst", NULL, false},
		{"beside its plain form", PACKED "k.zst; touch -d @1000 k.zst", NULL, false, false,
			NULL, NULL, true},
	};
	static const struct s3once_rule rule[] = {{S3ONCE_RULE_EXCLUDE, "k.zst"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const bool is_other = rows[i].object_key == NULL;
		const struct s3once_setting header = {"header", rows[i].header};
		struct scan_entry entry;
		struct steps steps;
		if (!steps_make(&steps, CONTENT, 9))
			return;
		steps.options.compress = "zstd";
		steps.options.settings = &header;
		steps.options.n_settings = rows[i].header != NULL;
		steps.options.rules = rule;
		steps.options.n_rules = rows[i].excludes;
		if (!find(&steps, rows[i].others))
			return;
		if (is_other) { /* the file behind k */
			CHECK_INT(scan_next(steps.run->files.scan, &entry, &steps.problem), 1);
			file_free(steps.file);
			steps.file = file_new(steps.run, feed_new_candidate(&entry));
		}
		struct file *file = steps.file;
		struct candidate *c = file->candidate;
		c->was_compressed = rows[i].was_compressed;
		bool good = CHECK_INT(
			file_open(steps.worker, file), rows[i].fails ? STEP_SETTLED : STEP_NEXT);
		if (rows[i].fails) {
			good &= steps_say(&steps, "k.zst") &&
				steps_say(&steps, "exclude one of them");
		} else {
			const bool is_encoded = rows[i].encoding || !rows[i].was_compressed;
			good &= CHECK_STRING(c->object_key, rows[i].object_key);
			good &= CHECK_STRING(file->target.content_encoding, rows[i].encoding);
			good &= is_encoded || CHECK(!file->encoding);
			/* Another turn, in which the file is compressed, has neither. */
			run_command(&steps, PACKED "new; touch -d @1000 new; mv new k");
			if (strcmp(c->relative, "k") == 0 && !rows[i].excludes &&
				!strstr(rows[i].others, "k.zst")) {
				good &= CHECK_INT(file_open(steps.worker, file), STEP_NEXT);
				good &= CHECK_STRING(c->object_key, "k");
				good &= CHECK(!file->encoding && !file->target.content_encoding);
			}
		}
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].name, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

/* The effect of each read error. */
static void test_errors(void)
{
	static const struct {
		int error;
		enum step step;
		int event;
		const char *says;
		bool is_gone; /* so that nothing of its upload is kept */
	} rows[] = {
		{-ECANCELED, STEP_OVER, -1, "", false},
		{-ENOENT, STEP_SETTLED, S3ONCE_EVENT_FAILED, "disappeared", true},
		{-ENOTDIR, STEP_SETTLED, S3ONCE_EVENT_FAILED, "disappeared", true},
		{-ELOOP, STEP_SETTLED, S3ONCE_EVENT_FAILED, "became a symbolic link", true},
		{-EXDEV, STEP_SETTLED, S3ONCE_EVENT_FAILED, "became a symbolic link", true},
		{-EINVAL, STEP_SETTLED, S3ONCE_EVENT_FAILED, "is no longer a regular file", true},
		{-EAGAIN, STEP_LATER, S3ONCE_EVENT_RETRY, "holds a lease on it", false},
		{-ENOMEM, STEP_SETTLED, S3ONCE_EVENT_FAILED, "out of memory", false},
		{-EMFILE, STEP_OVER, S3ONCE_EVENT_FATAL, "raise ulimit -n", false},
		{-ENFILE, STEP_OVER, S3ONCE_EVENT_FATAL, "raise ulimit -n", false},
		{-EACCES, STEP_SETTLED, S3ONCE_EVENT_FAILED, "read", false},
		{-EIO, STEP_SETTLED, S3ONCE_EVENT_FAILED, "Input/output error", false},
	};
	static const enum s3once_event_type events[] = {
		S3ONCE_EVENT_FAILED, S3ONCE_EVENT_RETRY, S3ONCE_EVENT_FATAL};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0))
			return;
		file_set_kept_bytes(steps.file, 5);
		bool good =
			CHECK_INT(file_handle_read_error(steps.worker, steps.file, rows[i].error),
				rows[i].step);
		for (size_t k = 0; k < sizeof events / sizeof *events; k++)
			good &= CHECK_INT(steps.events[events[k]], (int)events[k] == rows[i].event);
		good &= CHECK(strstr(steps.said, rows[i].says) != NULL);
		good &= CHECK_INT(atomic_load(&steps.run->report.kept), rows[i].is_gone ? 0 : 5);
		if (!good)
			fprintf(stderr, "\terror %d: %s\n", rows[i].error, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

/* A file that changes while it is read begins anew, but not for ever. */
static void test_changed_while_read(void)
{
	static const struct {
		const char *name, *happens;
		unsigned restarts; /* before */
		enum step before, step;
		bool replaces;
		int event;
		const char *says;
		bool is_unsteady, must_reread; /* afterwards */
	} rows[] = {
		{"written to", "printf 1 >>k", 0, STEP_SEND, STEP_SEND, false, S3ONCE_EVENT_RETRY,
			"changed while it was read, starting again", false, false},
		{"while it replaces an object", "printf 1 >>k", 0, STEP_SEND, STEP_LOOK, true,
			S3ONCE_EVENT_RETRY, "changed while it was read", false, false},
		{"before that", "printf 1 >>k", 0, STEP_CLAIM, STEP_CLAIM, true, S3ONCE_EVENT_RETRY,
			"changed while it was read", false, false},
		{"touched", "touch -d @1001 k", 3, STEP_SEND, STEP_SEND, false, S3ONCE_EVENT_RETRY,
			"changed while it was read", false, false},
		{"its mode", "chmod 640 k", 0, STEP_SEND, STEP_SEND, false, S3ONCE_EVENT_RETRY,
			"changed while it was read", false, false},
		{"its mode, again", "chmod 640 k", 1, STEP_SEND, STEP_SEND, false, -1, "", true,
			true},
		{"nothing that shows", ":", 0, STEP_SEND, STEP_SEND, false, S3ONCE_EVENT_RETRY,
			"although its size and modification time did not", false, true},
		{"for the last time", "printf 1 >>k", FILE_RESTARTS_MAX - 1, STEP_SEND, STEP_SEND,
			false, S3ONCE_EVENT_RETRY, "changed while it was read", false, false},
		{"once too often", "printf 1 >>k", FILE_RESTARTS_MAX, STEP_SEND, STEP_SETTLED,
			false, S3ONCE_EVENT_FAILED, "changes faster than it can be read", false,
			false},
		{"nothing that shows, once too often", ":", FILE_RESTARTS_MAX, STEP_SEND,
			STEP_SETTLED, false, S3ONCE_EVENT_FAILED, "returns other content", false,
			false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct steps steps;
		if (!steps_make(&steps, CONTENT, 9) || !steps_begin(&steps, NULL, 0))
			return;
		struct file *file = steps.file;
		const bool must_reread = file->must_reread; /* on this file system */
		file->step = rows[i].before;
		file->restarts = rows[i].restarts;
		snprintf(file->replaced_etag, sizeof file->replaced_etag, "%s",
			rows[i].replaces ? "e" : "");
		file->content_sums.kinds = DIGEST_MD5; /* of the version that was read */
		run_command(&steps, rows[i].happens);
		bool good = CHECK_INT(
			file_handle_read_error(steps.worker, file, -ESTALE), rows[i].step);
		good &= CHECK_INT(
			steps.events[S3ONCE_EVENT_RETRY], rows[i].event == S3ONCE_EVENT_RETRY);
		good &= CHECK_INT(
			steps.events[S3ONCE_EVENT_FAILED], rows[i].event == S3ONCE_EVENT_FAILED);
		good &= CHECK(strstr(steps.said, rows[i].says) != NULL);
		if (rows[i].step != STEP_SETTLED) {
			good &= CHECK_INT(file->restarts, rows[i].restarts + 1);
			good &= CHECK_INT(file->stat_is_unsteady, rows[i].is_unsteady);
			good &= CHECK_INT(file->must_reread, rows[i].must_reread || must_reread);
			good &= CHECK_INT(file->state.ino == 0, rows[i].is_unsteady);
			good &= CHECK_INT(file->content_sums.kinds, 0);
		}
		if (!good)
			fprintf(stderr, "\t%s: %s\n", rows[i].name, steps.said);
		script_stop(&steps.server);
		steps_end(&steps);
	}
}

int main(void)
{
	test_since_it_was_found();
	test_gone_after_an_earlier_turn(false);
	test_gone_after_an_earlier_turn(true);
	test_odd_files();
	test_compressed_on_its_way();
	test_errors();
	test_changed_while_read();
	return check_result();
}
