/* The reports of the scan's thread, the done files that it drops, and the others that it hands to
 * the queue. The tree, the marks and the queue are real; S3 is a script. */
#include "base/clock.h"
#include "marks/bucket_row.h"
#include "steps.h"

struct feeding {
	struct steps steps;
	char said[6000]; /* a line for each event: its type, the name of its file, and its text */
	/* of the last event of each type about a file */
	char key[64][40];
	uint64_t bytes[64];
	int64_t mtime_ns[64];
};

static const char *const event_names[] = {[S3ONCE_EVENT_NOTE] = "note",
	[S3ONCE_EVENT_WARNING] = "warning",
	[S3ONCE_EVENT_SKIPPED] = "skipped",
	[S3ONCE_EVENT_LINK] = "link",
	[S3ONCE_EVENT_WAITING] = "waiting",
	[S3ONCE_EVENT_OVERSIZED] = "oversized",
	[S3ONCE_EVENT_UNDERSIZED] = "undersized",
	[S3ONCE_EVENT_SPECIAL] = "special",
	[S3ONCE_EVENT_FAILED] = "failed",
	[S3ONCE_EVENT_LEFT] = "left",
	[S3ONCE_EVENT_FATAL] = "fatal",
	[S3ONCE_EVENT_SUMMARY] = NULL};

/* Notes the event. The path of the tree in a text is "TREE". */
static void note_event(void *arg, const struct s3once_event *event)
{
	struct feeding *f = arg;
	const char *name = event_names[event->type];
	const char *path = event->path ? strrchr(event->path, '/') : NULL;
	const char *text = event->text ? event->text : "";
	const char *tree = strstr(text, f->steps.tree);
	const size_t n = strlen(f->said);
	const size_t before = tree ? (size_t)(tree - text) : strlen(text);
	snprintf(f->key[event->type], sizeof f->key[0], "%s", event->key ? event->key : "");
	f->bytes[event->type] = event->bytes;
	f->mtime_ns[event->type] = event->mtime_ns;
	if (name)
		snprintf(f->said + n, sizeof f->said - n, "%s%s%s%s%.*s%s%s\n", name,
			path ? " " : "", path ? path + 1 : "", *text ? ": " : "", (int)before, text,
			tree ? "TREE" : "", tree ? tree + strlen(f->steps.tree) : "");
}

/* Makes the tree by a command of the shell, which is in its folder. */
static bool begin(struct feeding *f, const char *command)
{
	char line[1000];
	*f = (struct feeding){.said = ""};
	if (!steps_make(&f->steps, "x", 1))
		return false;
	f->steps.options.callback = note_event;
	f->steps.options.callback_arg = f;
	f->steps.options.report_skipped = 1;
	snprintf(line, sizeof line, "cd %s && { %s; }", f->steps.tree, command);
	return CHECK_INT(system(line), 0); // NOLINT(cert-env33-c): fixed commands
}

/* Writes a mark of a file of one byte that was modified at 1000 s. */
static void put_mark(struct feeding *f, const char *key, const char *state)
{
	struct store_conn *conn = f->steps.push->conn;
	char partition[PARTITION_MAX];
	struct item item = {0}, present = {0};
	const struct item_key at = mark_key(&f->steps.run->space, key, partition);
	item_set_string(&item, "state", state);
	item_set_string(&item, "session", "s");
	item_set_string(&item, "claim", "c");
	item_set_string(&item, "etag", "e");
	item_set_number(&item, "size", 1);
	item_set_number(&item, "mtime", 1000 * (int64_t)NS_PER_S);
	CHECK_INT(conn->store->ops->write(conn, at, &(struct item_write){.item = &item}, &no_limits,
			  &present, &f->steps.problem),
		OUTCOME_OK);
	item_clear(&item);
	item_clear(&present);
}

/* Feeds the queue, and checks what it got, in its order, and what was said. NULL: anything. */
static bool feeds(struct feeding *f, const char *queued, const char *said)
{
	char got[4000] = "";
	struct candidate *file;
	feed_run(f->steps.run);
	queue_enter_phase(f->steps.run->queue, QUEUE_CLOSED);
	while ((file = queue_pop_file(f->steps.run->queue))) {
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", file->key);
		free(file);
	}
	const bool same = !queued || CHECK_STRING(got, queued);
	/* No call of the scan is under way any more, and the last one has shown a sign of life. */
	CHECK_INT(atomic_load(&f->steps.run->scanning.tasks), 0);
	CHECK(atomic_load(&f->steps.run->scanning.seen_ns) != 0);
	return (!said || CHECK_STRING(f->said, said)) && same;
}

static void end(struct feeding *f)
{
	f->steps.file = NULL;
	steps_end(&f->steps);
}

#define EMPTY_LISTING                                                                              \
	{                                                                                          \
		STEPS_REPLY("200", "",                                                             \
			"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false"     \
			"</IsTruncated></ListBucketResult>"),                                      \
			.close = true                                                              \
	}
#define THERE                                                                                      \
	{                                                                                          \
		STEPS_REPLY("200", "Content-Length: 1\r\nETag: \"e\"\r\n", ""), .close = true      \
	}
#define MANY "for i in 10 11 12 13 14 15 16 17 18 19 20 21; do touch -d @1000 n$i; done"

static const struct script_step bucket_and_listing[] = {
	{STEPS_REPLY("200", "", ""), .close = true}, EMPTY_LISTING};

/* Each kind of entry, in one tree. Only files are queued, and only they and those that wait have
 * bytes that count. */
static void test_kinds(void)
{
	struct feeding f;
	if (!begin(&f, "ln -s k link; mkfifo pipe; printf 1234567 >large; : >small; ln -s gone d; "
		       "printf 12 >young; touch -d @1000 large small"))
		return;
	f.steps.options.max_bytes = 5;
	f.steps.options.min_bytes = 1;
	f.steps.options.min_age_ms = 3600 * 1000;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, "k ",
		"link d\noversized large\nlink link\nspecial pipe: is a named pipe, not a file\n"
		"undersized small\nwaiting young: younger than --min-age\n");
	struct s3once_counts *counts = &f.steps.run->report.locked.counts;
	CHECK_INT(counts->found, 7);
	CHECK_INT(counts->bytes_found, 3);
	CHECK_INT(counts->waiting, 1);
	/* Only the file that waits is known not to be in S3. */
	CHECK(f.steps.run->report.oldest_unshipped_ns > 2000 * (int64_t)NS_PER_S &&
		f.steps.run->report.oldest_unshipped_ns < INT64_MAX);
	CHECK(atomic_load(&f.steps.run->report.scan_complete));
	script_stop(&f.steps.server);
	end(&f);
}

/* Files that the marks know as done are dropped, unless the run looks at them again. */
static void test_done(void)
{
	static const struct {
		const char *what;
		bool reupload, compares;
		const char *state, *queued, *said;
	} rows[] = {
		{"done", false, false, "done", "", "skipped k\n"},
		{"--reupload", true, false, "done", "k ", ""},
		{"--compare-content", false, true, "done", "k ", ""},
		{"failed", false, false, "failed", "k ", ""},
		{"claimed", false, false, "claimed", "k ", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step witness[] = {THERE, THERE};
		struct feeding f;
		if (!begin(&f, "true"))
			return;
		f.steps.options.reupload = rows[i].reupload;
		f.steps.options.compare_content = rows[i].compares;
		if (!steps_begin_run(&f.steps, witness, 2))
			return;
		put_mark(&f, "k", rows[i].state);
		if (!feeds(&f, rows[i].queued, rows[i].said))
			fprintf(stderr, "\t%s\n", rows[i].what);
		script_stop(&f.steps.server);
		end(&f);
	}
}

/* A mark that says done in another bucket is not believed: the run fails, and nothing is skipped.
 */
static void test_another_bucket(void)
{
	static const char no_key[] =
		STEPS_REPLY("404", "", "<Error><Code>NoSuchKey</Code></Error>");
	const struct script_step gone[] = {
		{STEPS_REPLY("404", "", ""), .close = true}, {no_key, .close = true}};
	struct feeding f;
	if (!begin(&f, "true") || !steps_begin_run(&f.steps, gone, 2))
		return;
	put_mark(&f, "k", "done");
	feeds(&f, "", NULL);
	CHECK(strncmp(f.said, "fatal: ", 7) == 0);
	CHECK(!strstr(f.said, "skipped"));
	CHECK(!atomic_load(&f.steps.run->report.scan_complete));
	steps_asked(&f.steps, "HEAD /b/k\nGET /b/k\n");
	end(&f);
}

/* The listing is asked about files without a mark, unless they are few among known ones, or inotify
 * has reported them. */
static void test_listing(void)
{
	static const struct {
		const char *what, *files;
		bool knows_k, has_folders, asks;
		bool knows_all; /* n10 to n21 have marks, too */
	} rows[] = {
		{"all are strange", "true", false, false, true},
		{"a few among known ones", "touch -d @1000 n1", true, false, false},
		{"many among known ones", MANY, true, false, true},
		{"reported by inotify", MANY, false, true, false},
		{"many that have failed", MANY, true, false, false, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct script_step known[] = {THERE, EMPTY_LISTING};
		struct feeding f;
		const char *folders[1];
		if (!begin(&f, rows[i].files))
			return;
		folders[0] = f.steps.tree;
		f.steps.options.folders = rows[i].has_folders ? folders : NULL;
		f.steps.options.n_folders = rows[i].has_folders;
		if (!steps_begin_run(&f.steps, rows[i].knows_k ? known : bucket_and_listing, 2))
			return;
		if (rows[i].knows_k)
			put_mark(&f, "k", "done");
		for (unsigned n = 10; rows[i].knows_all && n <= 21; n++) {
			char key[8];
			snprintf(key, sizeof key, "n%u", n);
			put_mark(&f, key, "failed");
		}
		feeds(&f, NULL, rows[i].knows_k ? "skipped k\n" : "");
		bool asks = false;
		script_stop(&f.steps.server);
		for (size_t k = 0; k < f.steps.server.n_requests; k++)
			asks |= strstr(f.steps.server.requests[k].head, "list-type=2") != NULL;
		if (!CHECK_INT(asks, rows[i].asks))
			fprintf(stderr, "\t%s\n", rows[i].what);
		end(&f);
	}
}

/* Files that must not be sent: the marks of this run and the log of the caller, which are named
 * once for all, and one with the key of the id object. */
static void test_own_files(void)
{
	struct feeding f;
	char log[120];
	if (!begin(&f, "touch -d @1000 log"))
		return;
	snprintf(log, sizeof log, "%s/log", f.steps.tree);
	snprintf(f.steps.marks, sizeof f.steps.marks, "sqlite:%s/db", f.steps.tree);
	f.steps.options.log_file = log;
	f.steps.options.bucket_id_object = "k";
	static const struct script_step steps[] = {
		{STEPS_REPLY("200",
			 "Content-Length: 76\r\nETag: \"e\"\r\n"
			 "x-amz-meta-s3once-claim: 0123456789abcdef0123456789abcdef\r\n",
			 ""),
			.close = true},
		{STEPS_REPLY("200", "", ""), .close = true}, EMPTY_LISTING};
	if (!steps_begin_run(&f.steps, steps, 3))
		return;
	feeds(&f, "", NULL);
	CHECK(strstr(f.said, " files of s3once itself are left out (marks, state, log), such as "));
	CHECK(!strstr(f.said, "failed db"));
	CHECK(strstr(f.said, "failed k: has the key of --bucket-id-object: exclude it, or name "
			     "another key there\n"));
	CHECK(!strstr(f.said, "failed log"));
	CHECK(f.steps.run->report.locked.counts.special >= 2);
	CHECK_INT(f.steps.run->report.oldest_unshipped_ns, 1000 * (int64_t)NS_PER_S);
	script_stop(&f.steps.server);
	end(&f);
}

/* A wrong clock affects many files, and is reported once. */
static void test_odd_times(void)
{
	struct feeding f;
	if (!begin(&f, "touch -d 2099-01-01T00:00:00Z a b; touch -d 2300-01-01 y z; rm k"))
		return;
	f.steps.options.min_age_ms = 1;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, NULL,
		"warning: TREE/a was last modified in the future (2099-01-01T00:00:00Z); the age of "
		"such files is counted from the last change of their inode (ctime)\n"
		"warning: TREE/y was last modified after the year 2262; all such times count as "
		"one, so that a change from one to another is not noticed\n");
	script_stop(&f.steps.server);
	end(&f);
}

/* An empty tree may be a disk that is not mounted. It says nothing about the patterns. */
static void test_unmatched_by_nothing(void)
{
	static const struct s3once_rule rules[] = {
		{S3ONCE_RULE_EXCLUDE, "k"}, {S3ONCE_RULE_INCLUDE, "i"}};
	struct feeding f;
	if (!begin(&f, "rm k"))
		return;
	f.steps.options.rules = rules;
	f.steps.options.n_rules = 2;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, "", "warning: there are no files in TREE\n");
	script_stop(&f.steps.server);
	end(&f);
}

/* Patterns that match nothing, and folders without files, are worth a word, but only if all of the
 * tree was read. */
static void test_unmatched(void)
{
	static const struct s3once_rule rules[] = {
		{S3ONCE_RULE_EXCLUDE, "k"}, {S3ONCE_RULE_INCLUDE, "i"}, {S3ONCE_RULE_EXCLUDE, "e"}};
	for (unsigned has_folders = 0; has_folders < 2; has_folders++) {
		struct feeding f;
		const char *folders[1];
		if (!begin(&f, "true"))
			return;
		folders[0] = f.steps.tree;
		f.steps.options.rules = rules;
		f.steps.options.n_rules = 3;
		f.steps.options.folders = has_folders ? folders : NULL;
		f.steps.options.n_folders = has_folders;
		if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
			return;
		feeds(&f, "",
			has_folders ? ""
				    : "warning: --include i matches nothing: check the pattern\n"
				      "note: --exclude e matches nothing: check the pattern\n"
				      "warning: there are no files in TREE but those that "
				      "--exclude and --include leave out\n");
		script_stop(&f.steps.server);
		end(&f);
	}
}

/* Each 50 files of the scan are a block, whichever of them are done. */
static void test_blocks(void)
{
	const struct script_step known[] = {THERE, EMPTY_LISTING};
	unsigned serials[3] = {0}, left[3] = {0}, at;
	struct candidate *file;
	struct feeding f;
	char key[8];
	if (!begin(&f, "for i in $(seq -w 119); do printf 1 >n$i; touch -d @1000 n$i; done") ||
		!steps_begin_run(&f.steps, known, 2))
		return;
	for (unsigned i = 10; i <= 60; i += i == 39 ? 21 : 1) { /* from 10 to 39, and 60 */
		snprintf(key, sizeof key, "n%03u", i);
		put_mark(&f, key, "done");
	}
	feed_run(f.steps.run);
	queue_enter_phase(f.steps.run->queue, QUEUE_CLOSED);
	while ((file = queue_pop_file(f.steps.run->queue))) {
		at = strcmp(file->key, "k") == 0 ? 0 : (unsigned)atoi(file->key + 1) / BLOCK_FILES;
		CHECK(!serials[at] || serials[at] == file->block_serial);
		serials[at] = file->block_serial;
		left[at]++;
		free(file);
	}
	CHECK(serials[0] != serials[1] && serials[1] != serials[2] && serials[0] != serials[2]);
	CHECK_INT(left[0], 20);
	CHECK_INT(left[1], 49);
	CHECK_INT(left[2], 20);
	script_stop(&f.steps.server);
	end(&f);
}

/* With --final small files go first, the oldest of them before the others; otherwise they stay in
 * the order of their keys. */
static void test_final(void)
{
	for (int is_final = 0; is_final < 2; is_final++) {
		struct feeding f;
		if (!begin(&f, "touch -d @3000 a; touch -d @2000 b; touch -d @500 c"))
			return;
		f.steps.options.final = is_final;
		if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
			return;
		feeds(&f, is_final ? "c k b a " : "a b c k ", "");
		script_stop(&f.steps.server);
		end(&f);
	}
}

/* More files than marks are read for at once. The bucket is checked once. */
static void test_many_files(void)
{
	const struct script_step steps[] = {THERE, {STEPS_REPLY("200", "", ""), .close = true},
		EMPTY_LISTING, EMPTY_LISTING, EMPTY_LISTING, EMPTY_LISTING};
	struct feeding f;
	unsigned witnesses = 0, files = 0;
	struct candidate *file;
	if (!begin(&f, "seq -f 'n%05g' 1 2100 | xargs touch -d @1000") ||
		!steps_begin_run(&f.steps, steps, 6))
		return;
	put_mark(&f, "k", "done");
	feed_run(f.steps.run);
	queue_enter_phase(f.steps.run->queue, QUEUE_CLOSED);
	for (; (file = queue_pop_file(f.steps.run->queue)); free(file))
		files++;
	CHECK_INT(files, 2100);
	CHECK_STRING(f.said, "skipped k\n");
	CHECK_INT(f.steps.run->report.locked.counts.found, 2101);
	script_stop(&f.steps.server);
	for (size_t i = 0; i < f.steps.server.n_requests; i++)
		witnesses += strncmp(f.steps.server.requests[i].head, "HEAD /b/k", 9) == 0;
	CHECK_INT(witnesses, 1);
	end(&f);
}

/* A run with nothing to send asks for the bucket all the same, but not for a witness. */
static void test_no_files(void)
{
	const struct script_step step = {STEPS_REPLY("200", "", ""), .close = true};
	struct feeding f;
	if (!begin(&f, "rm k") || !steps_begin_run(&f.steps, &step, 1))
		return;
	f.steps.run->locked.head_bucket_answered = false;
	put_mark(&f, "gone", "done");
	feeds(&f, "", "warning: there are no files in TREE\n");
	CHECK(atomic_load(&f.steps.run->report.scan_complete));
	steps_asked(&f.steps, "HEAD /b\n");
	end(&f);
}

/* A list may have no file of the tree. */
static void test_empty_list(void)
{
	const struct script_step step = {STEPS_REPLY("200", "", ""), .close = true};
	struct feeding f;
	if (!begin(&f, "true"))
		return;
	f.steps.options.files_from = "/dev/null";
	if (!steps_begin_run(&f.steps, &step, 1))
		return;
	feeds(&f, "", "note: --files-from /dev/null names no files\n");
	script_stop(&f.steps.server);
	end(&f);
}

static enum outcome refuse_marks(struct store_conn *conn, const struct item_key *keys, size_t n,
	const struct call_limits *limits, found_visitor *each, void *arg,
	struct problem *ret_problem)
{
	return outcome_error(ret_problem, OUTCOME_DENIED, "no marks can be read");
}

/* Files whose marks cannot be read are neither sent nor skipped: the run fails. */
static void test_marks_that_cannot_be_read(void)
{
	const struct script_step witness = THERE;
	struct bucket_row row = {.last_key = "w", .last_etag = "e"}, seen;
	struct feeding f;
	if (!begin(&f, "true") || !steps_begin_run(&f.steps, &witness, 1))
		return;
	/* The bucket is known without a look at the marks. */
	CHECK_INT(bucket_row_write(f.steps.push->conn, &f.steps.run->space, &row, &no_limits, &seen,
			  &f.steps.problem),
		OUTCOME_OK);
	struct store *store = f.steps.run->store;
	const struct store_ops *real = store->ops;
	struct store_ops ops = *real;
	ops.get_many = refuse_marks;
	store->ops = &ops;
	feeds(&f, "", NULL);
	store->ops = real;
	CHECK(strstr(f.said, "fatal: ") && strstr(f.said, "no marks can be read"));
	CHECK(!atomic_load(&f.steps.run->report.scan_complete));
	steps_asked(&f.steps, "HEAD /b/w\n");
	end(&f);
}

/* A remark about logs is a warning, and no file. */
static void test_notice(void)
{
	struct feeding f;
	if (!begin(&f, "rm k; echo a | gzip >x.log.1.gz.1; touch -d @1000 x*"))
		return;
	f.steps.options.rotated = 1;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, NULL, NULL);
	CHECK(strncmp(f.said, "warning: ", 9) == 0 &&
		strstr(f.said, "was rotated once more after it had been compressed"));
	CHECK_INT(f.steps.run->report.locked.counts.found, 1);
	script_stop(&f.steps.server);
	end(&f);
}

/* After a limit, a last run names the files that are left. */
static void test_limit(void)
{
	for (unsigned is_final = 0; is_final < 2; is_final++) {
		struct feeding f;
		if (!begin(&f, "touch -d @1000 a"))
			return;
		f.steps.options.final = (int)is_final;
		if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
			return;
		queue_enter_phase(f.steps.run->queue, QUEUE_CLOSED);
		run_reach_limit(f.steps.run, "a limit");
		f.said[0] = '\0';
		feeds(&f, "", is_final ? "left a\nleft k\n" : "");
		/* They are not in S3 when the run ends. */
		CHECK_INT(f.steps.run->report.oldest_unshipped_ns,
			is_final ? 1000 * (int64_t)NS_PER_S : INT64_MAX);
		CHECK_INT(atomic_load(&f.steps.run->report.scan_complete), is_final);
		script_stop(&f.steps.server);
		end(&f);
	}
}

/* All that the scan says of a file goes into the queue with it. */
static void test_candidate(void)
{
	const struct scan_entry entry = {.key = "p/the key",
		.path = "/source/the/path",
		.relative = "the/path",
		.source = 2,
		.size = 3,
		.mtime_ns = 4,
		.dev = 5,
		.ino = 6,
		.suffix = ".gz",
		.offset = 7,
		.content_id = "c0ffee"};
	struct candidate *file = feed_new_candidate(&entry);
	CHECK_STRING(file->key, "p/the key");
	CHECK_STRING(file->path, "/source/the/path");
	CHECK_STRING(file->relative, "the/path");
	CHECK_STRING(file->content_id, "c0ffee");
	CHECK_STRING(file->object_key, "p/the key.gz");
	CHECK_STRING(file->suffix, ".gz");
	CHECK_INT(file->source, 2);
	CHECK_INT(file->size, 3);
	CHECK_INT(file->mtime_ns, 4);
	CHECK_INT(file->dev, 5);
	CHECK_INT(file->ino, 6);
	CHECK_INT(file->offset, 7);
	CHECK(file->was_compressed && !file->is_piped);
	/* There is room for any suffix. */
	memset(file->suffix, 'x', SUFFIX_MAX);
	file->suffix[SUFFIX_MAX] = '\0';
	CHECK_STRING(file->content_id, "c0ffee");
	free(file);
	for (unsigned k = 0; k < 16; k++) {
		struct scan_entry log = entry;
		log.suffix = "";
		log.is_rotated = k & 1;
		log.may_grow = k & 2;
		log.is_piece = k & 4;
		log.is_new = k & 8;
		file = feed_new_candidate(&log);
		CHECK_INT(file->is_rotated, log.is_rotated);
		CHECK_INT(file->may_grow, log.may_grow);
		CHECK_INT(file->is_piece, log.is_piece);
		CHECK_INT(file->is_new, log.is_new);
		CHECK(!file->was_compressed);
		free(file);
	}
}

/* Marks, reports and the id object go by the key of a file, which is not its path. The id object is
 * that of the option or, without it, the one that an earlier run has made. */
static void test_prefix(void)
{
	for (int has_id = 0; has_id < 3; has_id++) {
		struct bucket_row row = {.id_key = "p/k", .id = "0123456789abcdef0123456789abcdef"};
		struct bucket_row seen;
		const struct script_step id[] = {
			{STEPS_REPLY("200",
				 "Content-Length: 76\r\nETag: \"e\"\r\n"
				 "x-amz-meta-s3once-claim: 0123456789abcdef0123456789abcdef\r\n",
				 ""),
				.close = true},
			{STEPS_REPLY("200", "", ""), .close = true}, EMPTY_LISTING};
		const struct script_step known[] = {THERE, EMPTY_LISTING};
		struct feeding f;
		if (!begin(&f, "mkdir d; for i in d/f large; do printf 1234567 >$i; "
			       "touch -d @1000 $i; done; printf 12 >young"))
			return;
		f.steps.options.prefix = "p";
		f.steps.options.bucket_id_object = has_id == 1 ? "p/k" : NULL;
		f.steps.options.max_bytes = 6;
		f.steps.options.min_age_ms = 3600 * 1000;
		if (!steps_begin_run(&f.steps, has_id ? id : known, has_id ? 3 : 2))
			return;
		if (!has_id)
			put_mark(&f, "p/k", "done");
		if (has_id == 2)
			CHECK_INT(bucket_row_write(f.steps.push->conn, &f.steps.run->space, &row,
					  &no_limits, &seen, &f.steps.problem),
				OUTCOME_OK);
		feeds(&f, "", NULL);
		CHECK_STRING(f.key[S3ONCE_EVENT_OVERSIZED], "p/large");
		CHECK_INT(f.bytes[S3ONCE_EVENT_OVERSIZED], 7);
		CHECK_STRING(f.key[S3ONCE_EVENT_WAITING], "p/young");
		CHECK_INT(f.bytes[S3ONCE_EVENT_WAITING], 2);
		CHECK(f.mtime_ns[S3ONCE_EVENT_WAITING] > 2000 * (int64_t)NS_PER_S);
		CHECK_STRING(f.key[S3ONCE_EVENT_SKIPPED], has_id ? "" : "p/k");
		CHECK_STRING(f.key[S3ONCE_EVENT_FAILED], has_id ? "p/k" : "");
		CHECK_INT(f.bytes[S3ONCE_EVENT_FAILED], has_id != 0);
		script_stop(&f.steps.server);
		end(&f);
	}
}

/* The oldest file that is not in S3 may be one that can have no key. A link or a pipe is none. */
static void test_oldest_problem(void)
{
	struct feeding f;
	if (!begin(&f, "mkfifo pipe; ln -s k link; touch -h -d @10 pipe link; "
		       "touch -d @500 $(printf 'bad\\377'); touch -d @700 k"))
		return;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, "k ", NULL);
	CHECK_INT(f.steps.run->report.oldest_unshipped_ns, 500 * (int64_t)NS_PER_S);
	CHECK_INT(f.bytes[S3ONCE_EVENT_FAILED], 0);
	CHECK_INT(f.mtime_ns[S3ONCE_EVENT_FAILED], 0);
	script_stop(&f.steps.server);
	end(&f);
}

static long no_output(void *arg, void *buffer, size_t n, char *error, size_t error_bytes)
{
	return 0;
}

/* A pipe whose key is done already is not read, and the run says when that was. */
static void test_pipe(void)
{
	static const char *const name[] = {"pipe"};
	for (int is_done = 0; is_done < 2; is_done++) {
		const struct script_step steps[] = {THERE};
		struct feeding f;
		struct candidate *file;
		if (!begin(&f, "rm k"))
			return;
		f.steps.options.sources = name;
		f.steps.options.as = "k";
		f.steps.options.read = no_output;
		if (!steps_begin_run(&f.steps, steps, 1))
			return;
		put_mark(&f, "other", "done");
		if (is_done)
			put_mark(&f, "k", "done");
		feed_run(f.steps.run);
		queue_enter_phase(f.steps.run->queue, QUEUE_CLOSED);
		file = queue_pop_file(f.steps.run->queue);
		CHECK_INT(file == NULL, is_done);
		CHECK(!file || file->is_piped);
		free(file);
		/* The mark of the test has no time, so it is as old as the clock. */
		CHECK_INT(atomic_load(&f.steps.run->report.repeats_s), 0);
		CHECK_INT(atomic_load(&f.steps.run->report.repeats_age_s) > 1000000000, is_done);
		script_stop(&f.steps.server);
		for (size_t i = 0; i < f.steps.server.n_requests; i++)
			CHECK(!strstr(f.steps.server.requests[i].head, "list-type=2"));
		end(&f);
	}
}

/* A bucket that is not there ends the run before it is listed. */
static void test_no_bucket(void)
{
	static const char no_bucket[] =
		STEPS_REPLY("404", "", "<Error><Code>NoSuchBucket</Code></Error>");
	const struct script_step gone[] = {
		{STEPS_REPLY("404", "", ""), .close = true}, {no_bucket, .close = true}};
	struct feeding f;
	if (!begin(&f, "true") || !steps_begin_run(&f.steps, gone, 2))
		return;
	f.steps.run->locked.head_bucket_answered = false;
	feeds(&f, "", NULL);
	CHECK(strncmp(f.said, "fatal: ", 7) == 0);
	steps_asked(&f.steps, "HEAD /b\nGET /b?uploads=\n");
	end(&f);
}

/* A pattern that matches nothing is worth a word although nothing was left out. */
static void test_unmatched_beside_files(void)
{
	static const struct s3once_rule rules[] = {
		{S3ONCE_RULE_EXCLUDE, "e"}, {S3ONCE_RULE_EXCLUDE_FROM, "/dev/null"}};
	struct feeding f;
	if (!begin(&f, "true"))
		return;
	f.steps.options.rules = rules;
	f.steps.options.n_rules = 2;
	if (!steps_begin_run(&f.steps, bucket_and_listing, 2))
		return;
	feeds(&f, "k ",
		"note: --exclude e matches nothing: check the pattern\n"
		"note: --exclude-from /dev/null matches nothing: check the patterns\n");
	script_stop(&f.steps.server);
	end(&f);
}

/* With --final each 50 of the files that are left are a block, wherever the scan found them. */
static void test_final_blocks(void)
{
	const struct script_step known[] = {THERE, EMPTY_LISTING};
	unsigned blocks[3] = {0}, sizes[3] = {0};
	struct candidate *file;
	struct feeding f;
	char key[8];
	if (!begin(&f, "for i in $(seq -w 139); do printf 1 >n$i; touch -d @1000 n$i; done"))
		return;
	f.steps.options.final = 1;
	if (!steps_begin_run(&f.steps, known, 2))
		return;
	for (unsigned i = 10; i < 40; i++) {
		snprintf(key, sizeof key, "n%03u", i);
		put_mark(&f, key, "done");
	}
	feed_run(f.steps.run);
	queue_enter_phase(f.steps.run->queue, QUEUE_CLOSED);
	while ((file = queue_pop_file(f.steps.run->queue))) {
		unsigned at = 0;
		while (at < 2 && blocks[at] && blocks[at] != file->block_serial)
			at++;
		blocks[at] = file->block_serial;
		sizes[at]++;
		free(file);
	}
	CHECK_INT(sizes[0] * sizes[1] * sizes[2], 50 * 50 * 10);
	CHECK_INT(sizes[0] + sizes[1] + sizes[2], 110);
	script_stop(&f.steps.server);
	end(&f);
}

int main(void)
{
	test_candidate();
	test_prefix();
	test_oldest_problem();
	test_pipe();
	test_no_bucket();
	test_unmatched_beside_files();
	test_final_blocks();
	test_kinds();
	test_done();
	test_another_bucket();
	test_listing();
	test_own_files();
	test_odd_times();
	test_unmatched();
	test_unmatched_by_nothing();
	test_blocks();
	test_final();
	test_many_files();
	test_no_files();
	test_empty_list();
	test_marks_that_cannot_be_read();
	test_notice();
	test_limit();
	return check_result();
}
