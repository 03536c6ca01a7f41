/* `s3once gc`: clears away the remains of ended runs. It makes a session, under which
 * src/audit/gc.c works through the marks. Then it returns the free space of an SQLite file to the
 * file system. At the end it prints how many uploads were aborted and how many marks forgotten, or,
 * with --dry-run, how many would be. */
#include "audit/forget.h"
#include "base/clock.h"
#include "base/host_name.h"
#include "cli/audit/audit_command.h"
#include "cli/human_figures.h"
#include "cli/signals.h"
#include "store/state_folder.h"
#include <sys/stat.h>

#define LEASE_MS        30000                     /* the lease of gc's session */
#define KEEP_UPLOADS_MS (7ULL * 24 * 3600 * 1000) /* if --keep-uploads is not given */

struct gc {
	uint64_t keep_uploads_ms, keep_marks_ms;
	int dry_run;
	/* Used while the command runs: */
	struct command_frame *frame;
	struct audit_bucket bucket;
	struct session *session;
	struct fates fates;
	atomic_bool has_mark; /* there is a mark below the prefix */
	/* Sizes of the SQLite file; 0: the marks are in DynamoDB. */
	uint64_t bytes_before, bytes_after;
};

static const struct option what_options[] = {
	VALUE("keep-uploads", DURATION, offsetof(struct gc, keep_uploads_ms), "AGE",
		"abort unfinished uploads that no run has continued for AGE [7d]"),
	VALUE("keep-marks", DURATION, offsetof(struct gc, keep_marks_ms), "AGE",
		"forget marks that have not changed for AGE, such as 400d [all are kept]",
		.min = 1000, .removes = true),
	FLAG("dry-run", offsetof(struct gc, dry_run), "show what would be done, and change nothing",
		.letter = 'n'),
	{NULL},
};

static const struct command gc_command = {
	.name = "gc",
	.operands = "s3://BUCKET[/PREFIX] | --job JOB",
	.takes = {1, 1},
	.about =
		"Cleans up after ended runs: aborts unfinished uploads that the marks record and\n"
		"no run continues, forgets old marks if asked to, lists damaged ones, and shrinks\n"
		"an SQLite file. Never touches objects, uploads without a mark, or anything of an\n"
		"uploader that may still be running.\n",
	.groups = (const struct option_group[]){{"What to clean up", what_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_KEY_FILE |
		  SHARES_JSON,
	.examples =
		"  s3once gc s3://my-bucket\n"
		"  s3once gc --keep-marks 400d --keep-uploads 2d s3://my-bucket/logs\n\n"
		"Exit codes: 0 done; 1 something could not be done, marks are damaged, or there\n"
		"is none; 2 usage; 3 the marks or the bucket cannot be used.\n",
};

/* Returns the size of the SQLite file. 0: the marks are in DynamoDB, or there is no file. */
static uint64_t file_bytes(const struct marks_place *marks)
{
	struct stat st;
	return marks->is_dynamodb || stat(marks->path, &st) ? 0 : (uint64_t)st.st_size;
}

/* Clears away the remains of ended runs in the marks below the prefix, under a new session, which
 * the caller closes. False with a sentence. */
static bool clean_marks(struct gc *gc, const char *prefix)
{
	char observations[4096], host[HOST_NAME_BYTES], source[HOST_NAME_BYTES + 8];
	struct problem *problem = &gc->frame->problem, unnamed;
	struct session_options options = {
		.store = gc->frame->marks.store,
		.lease_ns = LEASE_MS * NS_PER_MS,
		.heartbeat_ns = LEASE_MS / 5 * NS_PER_MS,
		.abandon = signals_abandon,
		.reads_only = gc->dry_run != 0,
	};
	/* A dry run makes no folder. Without a path, observations of other sessions are not
	 * kept. */
	if (!state_path(STATE_SESSIONS, gc->dry_run ? FOLDER_NOT_MADE : FOLDER_MADE, observations,
		    sizeof observations))
		options.observations = observations;
	if (session_new(&options, &gc->session)) {
		problem_set(problem, PROBLEM_NO_DESCRIPTORS);
		return false;
	}
	if (host_name_short(host, &unnamed))
		snprintf(host, sizeof host, "unknown");
	snprintf(source, sizeof source, "%s:gc", host);
	const struct collect_options collecting = {
		.clearing = {.place = gc->bucket.place,
			.only_show = gc->dry_run,
			.reporter = {.report = fates_print, .arg = &gc->fates}},
		.session = gc->session,
		.source = source,
		.has_mark = &gc->has_mark,
		.keep_uploads_s = gc->keep_uploads_ms / 1000,
		.keep_marks_s = gc->keep_marks_ms ? gc->keep_marks_ms / 1000 : UINT64_MAX,
	};
	return collect(&collecting, prefix, problem) == OUTCOME_OK;
}

/* Prints the sums: those of the work that was done or, with --dry-run, of the work to be done. */
static void print_end(struct gc *gc)
{
	static const enum mark_fate which[] = {FATE_ABORTED, FATE_ABORTABLE, FATE_FORGOTTEN,
		FATE_FORGETTABLE, FATE_KEPT, FATE_DAMAGED, FATE_FAILED};
	const bool dry = gc->dry_run;
	const struct {
		const char *words;
		enum mark_fate fate;
	} figures[] = {
		{dry ? "would abort uploads: " : "aborted uploads: ",
			dry ? FATE_ABORTABLE : FATE_ABORTED},
		{dry ? ", would forget marks: " : ", forgot marks: ",
			dry ? FATE_FORGETTABLE : FATE_FORGOTTEN},
		{", kept: ", FATE_KEPT},
		{", damaged: ", FATE_DAMAGED},
		{", errors: ", FATE_FAILED},
	};
	struct text t = TEXT(600);
	for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
		text_addf(&t, "%s%s", figures[i].words,
			human_count(gc->fates.counts[figures[i].fate]).text);
	if (gc->bytes_after < gc->bytes_before)
		text_addf(&t, "; the file of marks had %s and has %s",
			human_bytes(gc->bytes_before).text, human_bytes(gc->bytes_after).text);
	frame_print(gc->frame,
		json_set(fates_json(&gc->fates, "gc", which, sizeof which / sizeof *which),
			NUMBER("file_bytes_before", gc->bytes_before),
			NUMBER("file_bytes", gc->bytes_after)),
		"%s", text_string(&t));
	text_clear(&t);
}

/* Returns the free space of an SQLite file to the file system, a piece at a time, so that no
 * uploader waits long. A dry run and a table have nothing to do here. False with a sentence. */
static bool compact_marks(struct gc *gc, struct store_conn *conn)
{
	const struct store_ops *ops = conn->store->ops;
	bool has_more = ops->compact && !gc->dry_run;
	while (has_more)
		if (ops->compact(conn, &gc->bucket.place.limits, &has_more, &gc->frame->problem) !=
			OUTCOME_OK)
			return false;
	return true;
}

/* Cleans up, prints the sums, and returns the exit code. */
static int clean_up(struct gc *gc, const struct s3_url *url)
{
	struct command_frame *frame = gc->frame;
	gc->fates.bucket = url->bucket;
	signals_count("s3once: stopping; requests under way are ended first\n");
	gc->bytes_before = file_bytes(&frame->place);
	bool ok = audit_open(frame, url->bucket, &gc->bucket) &&
		  clean_marks(gc, url_prefix(url->key).text);
	struct store_conn *conn = frame->marks.conn;
	ok = ok && compact_marks(gc, conn);
	gc->bytes_after = file_bytes(&frame->place);
	if (gc->session)
		session_close(gc->session, conn);
	const int signal = signals_restore();
	if (ok || signal)
		print_end(gc);
	const bool knows_none = ok && !gc->has_mark;
	if (knows_none)
		output_message(&frame->output,
			"error: gc: these marks know of nothing in s3://%s/%s: check its name, and "
			"--marks",
			quote(url->bucket).text, escaped(url->key).text);
	return audit_exit_code(frame, ok, signal,
		knows_none || gc->fates.counts[FATE_FAILED] || gc->fates.counts[FATE_DAMAGED]);
}

int gc_main(int argc, char **argv)
{
	struct gc gc = {.keep_uploads_ms = KEEP_UPLOADS_MS};
	struct command_frame frame = {.command = &gc_command, .values = &gc};
	struct s3_url url;
	gc.frame = gc.fates.frame = &frame;
	if (frame_begin(&frame, argc, argv) &&
		url_parse(frame.operands[0], &url, &frame.problem) == 0 &&
		frame_choose_marks(&frame, gc.dry_run ? MARKS_READ : MARKS_WRITTEN))
		frame.code = clean_up(&gc, &url);
	return frame_end(&frame);
}
