/* Files that came back to the queue, against a model: random blocks of files whose marks other
 * uploaders, ended ones and this run have written. Each file is dropped if it is done, and goes
 * back otherwise, at once or after a pause; none is lost, and none comes too early. */
#include "base/clock.h"
#include "steps.h"
#include "upload/file/came_back.h"

#define SIZE     9U
#define LARGE    (S3ONCE_SMALL_BYTES_MAX + 1)
#define MTIME_NS 7
#define BLOCKS   60 /* of each configuration */
#define FILES    6  /* the most of one block */

static const struct config {
	const char *name;
	bool no_wait, dry, reupload, compares, removes, is_unread;
	uint64_t remove_after_s;
} configs[] = {
	{"as usual"},
	{"without waiting", .no_wait = true},
	{"a dry run", .dry = true},
	{"sent again", .reupload = true},
	{"compared", .compares = true},
	{"removed at once", .removes = true},
	{"the marks cannot be read", .is_unread = true},
	{"removed after an hour", .removes = true, .remove_after_s = 3600},
};

enum mark_of { NOBODY, DONE, DONE_EARLIER, DONE_AND_NEWER, FAILED, OURS, RUNNING, ENDED, MARKS };

/* One file, and what was drawn for it. */
struct drawn {
	enum mark_of mark;
	bool held_was_reported, was_marked_done, is_large, is_at_limit;
	unsigned held_s, contested_s; /* so many seconds ago; 0: never */
	char key[30];
	bool is_back;
};

static uint64_t state = 1;

static unsigned below(unsigned n)
{
	state = state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(state >> 33) % n;
}

static bool always(void *arg)
{
	return true;
}

static struct session *begin_session(struct steps *steps)
{
	struct session *session = NULL;
	const struct session_options options = {.store = steps->run->store,
		.lease_ns = 60 * NS_PER_S,
		.heartbeat_ns = 20 * NS_PER_S};
	CHECK_INT(session_new(&options, &session), 0);
	CHECK_INT(session_begin(session, steps->push->conn, &steps->problem), OUTCOME_OK);
	return session;
}

static void write_mark(struct steps *steps, const char *key, enum mark_of kind, const char *session)
{
	struct mark_ref ref = file_mark_ref(steps->worker, steps->file);
	struct mark seen = {0}, present = {0};
	struct claim claim = {0};
	struct version version = {.size = kind == DONE_EARLIER ? SIZE - 1 : SIZE,
		.mtime_ns = MTIME_NS,
		.sum = "crc32c:4waSgw==",
		.etag = "e"};
	if (kind == NOBODY)
		return;
	ref.key = key;
	ref.session = session;
	ref.suffix = "";
	ref.limits = (struct call_limits){0};
	CHECK_INT(mark_claim(&ref, &seen, &claim, &present, &steps->problem), OUTCOME_OK);
	if (kind == FAILED)
		CHECK_INT(mark_fail(&ref, &claim, "why", KEEP_UPLOAD, &steps->problem), OUTCOME_OK);
	if (kind == DONE || kind == DONE_EARLIER || kind == DONE_AND_NEWER)
		CHECK_INT(mark_done(&ref, &claim, &version, ref.source, &present, &steps->problem),
			OUTCOME_OK);
	if (kind == DONE_AND_NEWER) {
		CHECK_INT(mark_get(&ref, &seen, &steps->problem), OUTCOME_OK);
		CHECK_INT(mark_note_newer(&ref, &seen, SIZE + 1, MTIME_NS, &steps->problem),
			OUTCOME_OK);
		mark_clear(&seen);
	}
	claim_clear(&claim);
}

static struct candidate *new_candidate(const char *key, bool is_large)
{
	return feed_new_candidate(&(struct scan_entry){.kind = SCAN_FILE,
		.key = key,
		.path = key,
		.relative = key,
		.suffix = "",
		.size = is_large ? LARGE : SIZE,
		.mtime_ns = MTIME_NS});
}

/* Whether the file goes back for nothing, since its mark says that this version is done. */
static bool is_dropped(const struct config *config, const struct drawn *file)
{
	if (file->mark != DONE || file->is_large || file->is_at_limit) /* of another size */
		return false;
	if (config->reupload || config->compares || config->is_unread || file->was_marked_done)
		return false;
	return !config->removes || config->remove_after_s;
}

/* Whether another uploader has it, and the user knows that, or it is too early to say so. */
static bool is_held(const struct config *config, const struct drawn *file)
{
	return file->mark == RUNNING && !config->no_wait && !config->dry && !config->is_unread &&
	       (file->held_was_reported || file->held_s < 5);
}

/* Puts a file into the queue that is due then. It comes out before all files that are due later. */
static void add_sign(struct steps *steps, const char *key, uint64_t due_ns)
{
	struct candidate *small = new_candidate(key, false), *large = new_candidate(key, true);
	queue_put_back_later(steps->run->queue, &small, 1, due_ns);
	queue_put_back_later(steps->run->queue, &large, 1, due_ns);
}

static void test_block(struct steps *steps, const struct config *config, const char *running,
	const char *ended, unsigned round)
{
	struct drawn files[FILES] = {0};
	struct block *block = calloc(1, sizeof *block);
	unsigned skipped = steps->events[S3ONCE_EVENT_SKIPPED], n_dropped = 0;
	const uint64_t begun_ns = clock_boot_ns();
	uint64_t pause_ns = NS_PER_S;
	bool leaves_small = false;
	block->n = 1 + below(FILES);
	for (size_t i = 0; i < block->n; i++) {
		struct drawn *file = &files[i];
		*file = (struct drawn){.mark = (enum mark_of)below(MARKS),
			.held_was_reported = below(3) == 0,
			.was_marked_done = below(4) == 0,
			.is_large = below(4) == 0,
			.is_at_limit = below(8) == 0,
			.held_s = below(2) * (3 + 4 * below(2)),
			.contested_s = below(3) ? 0 : 1 + 2 * below(4)};
		snprintf(file->key, sizeof file->key, "%c-%u-%zu", 'a' + (int)below(26), round, i);
		write_mark(steps, file->key, file->mark,
			file->mark == OURS      ? session_id(steps->run->session)
			: file->mark == RUNNING ? running
						: ended);
		struct candidate *c = new_candidate(file->key, file->is_large);
		if (!file->is_large && file->is_at_limit)
			c->size = S3ONCE_SMALL_BYTES_MAX;
		c->held_was_reported = file->held_was_reported;
		c->was_marked_done = file->was_marked_done;
		c->held_since_ns = file->held_s ? begun_ns - file->held_s * NS_PER_S : 0;
		c->contested_ns = file->contested_s ? begun_ns - file->contested_s * NS_PER_S : 0;
		block->files[i] = c;
		/* The model. */
		const bool dropped = is_dropped(config, file);
		const bool is_contested = file->contested_s && file->contested_s < 5;
		n_dropped += dropped;
		leaves_small |= dropped || is_contested ||
				(is_held(config, file) && !file->held_was_reported);
		if (!dropped && file->contested_s * NS_PER_S > pause_ns)
			pause_ns = file->contested_s * NS_PER_S;
	}
	const size_t n = block->n;
	if (pause_ns > 5 * NS_PER_S)
		pause_ns = 5 * NS_PER_S;
	came_back_check(steps->worker, block);
	const uint64_t ended_ns = clock_boot_ns();
	/* Files that are ready are due by now, and the others between the next two signs. */
	add_sign(steps, "now", ended_ns);
	add_sign(steps, "before", begun_ns + pause_ns - 1);
	add_sign(steps, "after", 2 * ended_ns - begun_ns + pause_ns + 1);
	char after[2][10] = {"", ""}; /* the last sign of small files, and of large ones */
	bool good = CHECK_INT(steps->events[S3ONCE_EVENT_SKIPPED] - skipped, n_dropped);
	for (struct candidate *c; (c = queue_pop_file(steps->run->queue));) {
		struct drawn *file = NULL;
		for (size_t i = 0; i < n; i++)
			if (strcmp(files[i].key, c->key) == 0)
				file = &files[i];
		if (!file) {
			snprintf(after[c->size == LARGE], sizeof *after, "%s", c->key);
			free(c);
			continue;
		}
		const bool waits = is_held(config, file) || (leaves_small && !file->is_large);
		good &= CHECK_STRING(after[file->is_large], waits ? "before" : "");
		good &= CHECK_INT(c->mark_state, config->is_unread || file->mark == NOBODY
							 ? MARK_ABSENT
						 : file->mark == FAILED ? MARK_FAILED
						 : file->mark >= OURS   ? MARK_CLAIMED
									: MARK_DONE);
		file->is_back = true;
		free(c);
	}
	for (size_t i = 0; i < n; i++)
		good &= CHECK(files[i].is_back != is_dropped(config, &files[i]));
	if (!good)
		fprintf(stderr, "\t%s, block %u\n", config->name, round);
}

static void test_config(const struct config *config)
{
	struct steps steps;
	if (!steps_make(&steps, "123456789", 9))
		return;
	steps.options.report_skipped = 1;
	if (!steps_begin(&steps, NULL, 0))
		return;
	struct s3once_options *options = &steps.run->options;
	options->no_wait = config->no_wait;
	options->reupload = config->reupload;
	options->compare_content = config->compares;
	options->removes = config->removes;
	options->remove_after_s = config->remove_after_s;
	struct session *running = begin_session(&steps), *ended = begin_session(&steps);
	char ended_id[ID_CHARS + 1];
	snprintf(ended_id, sizeof ended_id, "%s", session_id(ended));
	session_close(ended, steps.push->conn);
	steps.run->dry = config->dry;
	if (config->is_unread)
		steps.worker->limits.abandon = always;
	for (unsigned round = 0; round < BLOCKS; round++)
		test_block(&steps, config, session_id(running), ended_id, round);
	session_close(running, steps.push->conn);
	steps_asked(&steps, "");
	steps_end(&steps);
}

/* A mark that says done and is not trusted, since another bucket is in force by now, drops no file:
 * the end of the run names it as unfinished. */
static void test_untrusted(void)
{
	struct steps steps;
	struct block *block = calloc(1, sizeof *block);
	if (!steps_make(&steps, "123456789", 9))
		return;
	steps.options.report_skipped = 1;
	if (!steps_begin(&steps, NULL, 0))
		return;
	steps.run->space.generation = 1; /* the row of the bucket has none yet */
	atomic_store(&steps.run->has_witness, false);
	write_mark(&steps, "a", DONE, "another");
	block->files[block->n++] = new_candidate("a", false);
	came_back_check(steps.worker, block);
	CHECK_INT(steps.events[S3ONCE_EVENT_FATAL], 1);
	CHECK_INT(steps.events[S3ONCE_EVENT_SKIPPED], 0);
	struct candidate *back = queue_pop_file(steps.run->queue);
	CHECK(back != NULL);
	free(back);
	steps_asked(&steps, "");
	steps_end(&steps);
}

int main(void)
{
	test_untrusted();
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
		test_config(&configs[i]);
	return check_result();
}
