/* `s3once status`: shows the marks of a bucket, a prefix or a key, and the results of the last runs
 * there. With --depth it shows a sum for each folder, like `du`. With --watch it repeats that. It
 * changes nothing, and never contacts S3.
 *
 * This file reads the marks and the rows of jobs and sessions. status_print.c prints them. */
#include "base/clock.h"
#include "base/must_have.h"
#include "cli/audit/audit_command.h"
#include "cli/human_figures.h"
#include "cli/status/status_print.h"
#include "marks/claimant.h"
#include "marks/mark_stream.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define WATCH_MS     2000        /* default of --watch */
#define DEPTH_MAX    32          /* the most of --depth, for which `walk` has room */
#define SESSIONS_MAX 1000        /* the most sessions whose claims are shown */
#define FAILURES_MAX (64U << 10) /* more bytes than the longest `failures` of a job's row */

static const struct option what_options[] = {
	VALUE("depth", NUMBER, offsetof(struct status_view, depth), "N",
		"print a table with a sum for each folder down to N levels below the prefix, as du does",
		.min = 1, .max = DEPTH_MAX),
	VALUE("watch", AGE, offsetof(struct status_view, watch_ms), "[=DUR]",
		"look again every DUR until a signal ends it, with what was done meanwhile",
		.standard = "2s", .min = 100, .max = 24 * 3600 * 1000),
	{NULL},
};

static const struct option output_options[] = {
	VALUE("verbose", COUNT, offsetof(struct status_view, verbose), NULL,
		"list all failed files, not only the first ten", .letter = 'v'),
	{NULL},
};

static const struct command status_command = {
	.name = "status",
	.operands = "[s3://BUCKET[/KEY-OR-PREFIX]]",
	.takes = {0, 1},
	.about = "Shows the state of the marks. For a bucket or a prefix: the number of files\n"
		 "that are done, claimed and failed, the holders of the claims, the end of the\n"
		 "last run of each job there, and its failures. For a key: its whole history.\n"
		 "Without a bucket: the place of the marks. Changes nothing and never asks S3.\n",
	.groups = (const struct option_group[]){{"What to show", what_options}, {NULL}},
	.shares = SHARES_JOB | SHARES_MARKS | SHARES_S3 | SHARES_SERVICES | SHARES_JSON,
	.output_options = output_options,
	.examples = "  s3once status s3://my-bucket/photos\n"
		    "  s3once status --job nginx\n"
		    "  s3once status --depth 1 --watch s3://my-bucket/photos\n"
		    "  s3once status --marks dynamodb:s3once s3://my-bucket/photos/2024/a.jpg\n\n"
		    "Exit codes: 0 the marks were read; 2 usage; 3 they cannot be read.\n",
};

static bool is_watching(const struct status_view *view)
{
	return view->watch_ms != UINT64_MAX;
}

/* The jobs that are shown: those whose target is `asked`, or is above or below it. */
struct jobs {
	struct status_view *view;
	struct fleet_view fleet;
	struct text asked; /* "s3://BUCKET/KEY", escaped as the targets in the rows */
};

/* Returns the length of a target without the slashes at its end. */
static size_t target_length(const char *target)
{
	size_t n = strlen(target);
	while (n && target[n - 1] == '/')
		n--;
	return n;
}

/* Returns whether the target is `above` or below it. */
static bool is_within(const char *above, const char *target)
{
	const size_t n_above = target_length(above), n = target_length(target);
	const bool begins_alike = n_above <= n && strncmp(above, target, n_above) == 0;
	/* The slash keeps s3://logs/ab from being below s3://logs/a. */
	return begins_alike && (n == n_above || target[n_above] == '/');
}

/* Returns whether the job was requested: its target is the one asked for, or is below or above it.
 * With --job, a job of another name counts only if it is not above. */
static bool is_asked(const struct jobs *jobs, const struct job_row *row)
{
	const char *asked = text_string(&jobs->asked);
	const char *job = jobs->view->frame->job.job.name; /* NULL without --job */
	const bool has_name = !job || strcmp(job, row->job) == 0;
	return is_within(asked, row->target) || (is_within(row->target, asked) && has_name);
}

/* Shows a job if it is one of those that were requested, with the failures of its last run. With
 * --watch only the last error is shown, so that there is room for the rest on a terminal. */
static enum outcome print_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	struct jobs *jobs = arg;
	struct text failures = TEXT(FAILURES_MAX);
	if (!is_asked(jobs, &job->row))
		return OUTCOME_OK;
	enum outcome o = OUTCOME_OK;
	if (!is_watching(jobs->view))
		o = job_row_failures(
			jobs->view->frame->marks.conn, &job->row.key, NULL, &failures, ret_problem);
	jobs->fleet.failures = text_string(&failures);
	if (o == OUTCOME_OK)
		fleet_print_job(&jobs->fleet, job);
	text_clear(&failures);
	return o;
}

/* Shows the last run of each job whose target is this key, or is above or below it. */
static enum outcome print_jobs(
	struct status_view *view, const char *key, struct problem *ret_problem)
{
	struct jobs jobs = {.view = view,
		.fleet = {.frame = view->frame, .put = status_put, .put_arg = view},
		.asked = TEXT(32U << 10)};
	text_addf(&jobs.asked, "s3://%s/", view->space->bucket);
	text_add_escaped_string(&jobs.asked, key);
	/* expect_s 0: no job is overdue. */
	const enum outcome o =
		fleet_walk(view->frame->marks.conn, 0, print_job, &jobs, ret_problem);
	text_clear(&jobs.asked);
	return o;
}

static struct mark_ref mark_ref_of(const struct status_view *view, const char *key)
{
	return (struct mark_ref){.conn = view->frame->marks.conn,
		.space = view->space,
		.key = key,
		.session = "",
		.source = ""};
}

/* A walk through all marks below a prefix, in the order of their keys. It keeps the sums of the
 * open folders, which are those that the last mark is in, and without --depth the sessions that
 * hold claims. Memory does not grow with the marks. */
struct walk {
	struct status_view *view;
	unsigned open;              /* the level of the deepest open folder; 0: the prefix itself */
	size_t ends[DEPTH_MAX + 1]; /* the ends of the prefix and of each open folder in `key` */
	/* the sums of the prefix and of each open folder */
	struct status_counts sums[DEPTH_MAX + 1];
	char key[KEY_BYTES_MAX + 1]; /* key of the last mark */
	int64_t began_s;             /* store time before the first mark was read */
	size_t n_sessions;
	struct holder {
		char id[ID_CHARS + 1];
		uint64_t claims;
		bool is_known; /* its row is there */
		struct session_info info;
		/* Its run is over, but was heard so lately that a claim which this walk has read
		 * may have been finished before. */
		bool may_have_finished;
	} sessions[SESSIONS_MAX];
};

/* Shows the sum of the deepest open folder, whose name is the beginning of walk->key, and adds it
 * to the sum of the folder above. walk->key is cut there. */
static void close_folder(struct walk *walk)
{
	const unsigned level = walk->open--;
	walk->key[walk->ends[level]] = '\0';
	status_print_counts(walk->view, walk->key, &walk->sums[level], COUNTS_OF_FOLDER);
	for (int i = 0; i < STATUS_COUNTS; i++)
		walk->sums[walk->open].of[i] += walk->sums[level].of[i];
}

/* Sets *ret to the session of a claim, which is read when its first claim is met. NULL: the claims
 * of so many sessions are not shown. */
static enum outcome find_holder(
	struct walk *walk, const char *id, struct holder **ret, struct problem *ret_problem)
{
	struct store_conn *conn = walk->view->frame->marks.conn;
	size_t i = 0;
	while (i < walk->n_sessions && strcmp(walk->sessions[i].id, id) != 0)
		i++;
	*ret = i < SESSIONS_MAX ? &walk->sessions[i] : NULL;
	if (i < walk->n_sessions || !*ret)
		return OUTCOME_OK;
	struct holder *holder = *ret;
	const struct session_info *info = &holder->info;
	const enum outcome o = session_describe(conn, id, &holder->info, ret_problem);
	if (o != OUTCOME_OK && o != OUTCOME_ABSENT)
		return o;
	snprintf(holder->id, sizeof holder->id, "%s", id);
	holder->is_known = o == OUTCOME_OK;
	holder->may_have_finished = holder->is_known &&
				    !session_is_at_work(info, store_time_s(conn->store)) &&
				    session_may_have_ended_since(info, walk->began_s);
	walk->n_sessions++;
	return OUTCOME_OK;
}

/* Closes the open folders that the mark with this key is not in, and opens those that it is in,
 * down to --depth. */
static void move_to_folder(struct walk *walk, const char *key)
{
	const char *slash;
	/* A folder of the last mark stays open if the key begins with its name, too. */
	while (walk->open && strncmp(walk->key, key, walk->ends[walk->open]) != 0)
		close_folder(walk);
	snprintf(walk->key, sizeof walk->key, "%s", key);
	while (walk->open < walk->view->depth &&
		(slash = strchr(walk->key + walk->ends[walk->open], '/'))) {
		walk->open++;
		walk->ends[walk->open] = (size_t)(slash - walk->key) + 1;
		walk->sums[walk->open] = (struct status_counts){0};
	}
}

/* Adds the mark to the sum of its deepest open folder. Without --depth it also shows a mark that is
 * not done, or whose file has changed since. */
static void count_mark(struct walk *walk, const char *key, const struct mark *mark)
{
	/* The others count nowhere. */
	static const enum status_count counts[] = {[MARK_DONE] = STATUS_DONE,
		[MARK_CLAIMED] = STATUS_CLAIMED,
		[MARK_FAILED] = STATUS_FAILED,
		[MARK_UNREADABLE] = STATUS_UNREADABLE};
	if (mark->state == MARK_FORGOTTEN || mark->state == MARK_ABSENT)
		return;
	move_to_folder(walk, key);
	uint64_t *of = walk->sums[walk->open].of;
	of[counts[mark->state]]++;
	if (mark->state == MARK_DONE) {
		of[STATUS_CHANGED] += mark->has_newer;
		of[STATUS_BYTES] += mark->done.size;
	}
	if (!walk->view->depth && (mark->state != MARK_DONE || mark->has_newer))
		status_print_unfinished(walk->view, key, mark);
}

/* Counts a mark of the stream and, without --depth, the claim of its session. A claim of a run that
 * is over is read again if the run may have finished the file, and ended, since it was read. */
static enum outcome visit_mark(
	struct walk *walk, const char *key, const struct mark *mark, struct problem *ret_problem)
{
	struct status_view *view = walk->view;
	struct holder *holder = NULL;
	enum outcome o = OUTCOME_OK;
	if (mark->state == MARK_CLAIMED && !view->depth)
		o = find_holder(walk, mark->session, &holder, ret_problem);
	if (o == OUTCOME_OK && holder && holder->may_have_finished) {
		const struct mark_ref ref = mark_ref_of(view, key);
		struct mark now = {0};
		o = mark_get(&ref, &now, ret_problem);
		const bool has_changed =
			o == OUTCOME_OK &&
			(now.state != MARK_CLAIMED || strcmp(now.claim, mark->claim) != 0);
		if (has_changed)
			o = visit_mark(walk, key, &now, ret_problem);
		mark_clear(&now);
		if (has_changed)
			return o;
	}
	if (o != OUTCOME_OK)
		return o;
	if (holder)
		holder->claims++;
	count_mark(walk, key, mark);
	return OUTCOME_OK;
}

/* Shows the sessions and the sum of a walk over a prefix. `key` is the user's argument. If it
 * differs from the prefix, it has no slash at its end, and may have been meant as the key of a
 * mark. print_key() has found no such mark. */
static enum outcome print_prefix(
	struct walk *walk, const char *key, const char *prefix, struct problem *ret_problem)
{
	struct status_view *view = walk->view;
	const struct status_counts *sum = &walk->sums[0];
	const bool is_empty = !(sum->of[STATUS_DONE] | sum->of[STATUS_CLAIMED] |
				sum->of[STATUS_FAILED] | sum->of[STATUS_UNREADABLE]);
	const bool may_mean_mark = strcmp(key, prefix) != 0; /* "photos", and not "photos/" */
	if (is_empty && may_mean_mark)
		status_print_mark(view, key, &(struct mark){.state = MARK_ABSENT}, NULL);
	/* With --json, the sum below shows that there is nothing. */
	if (is_empty && !view->frame->json) {
		status_print_nothing(view, prefix);
		return OUTCOME_OK;
	}
	status_print_omitted(view, sum);
	for (size_t i = 0; i < walk->n_sessions; i++) {
		const struct holder *holder = &walk->sessions[i];
		if (holder->claims)
			status_print_session(view, holder->id, holder->claims,
				holder->is_known ? &holder->info : NULL);
	}
	status_print_counts(view, prefix, sum, COUNTS_OF_SUM);
	return OUTCOME_OK;
}

/* Reads the mark of this key. Shows it if its object has this suffix of compression; NULL stands
 * for any suffix. Also OK if there is no such mark; then *ret_found is false. */
static enum outcome find_and_print_mark(struct status_view *view, const char *key,
	const char *suffix, bool *ret_found, struct problem *ret_problem)
{
	const struct mark_ref ref = mark_ref_of(view, key);
	struct mark mark = {0};
	struct claimant claimant;
	const enum outcome o = mark_get_with_claimant(&ref, &mark, &claimant, ret_problem);
	const bool is_there = o == OUTCOME_OK && mark.state != MARK_ABSENT;
	*ret_found = is_there && (!suffix || strcmp(mark_suffix(&mark), suffix) == 0);
	if (*ret_found)
		status_print_mark(view, key, &mark, claimant.is_known ? &claimant.session : NULL);
	mark_clear(&mark);
	return o;
}

/* Shows one mark. `key` is the key of the mark or of its object, which may have a suffix of
 * compression after the key of the mark. */
static enum outcome print_key(
	struct status_view *view, const char *key, bool *ret_found, struct problem *ret_problem)
{
	const char *suffix = strrchr(key, '.');
	enum outcome o = find_and_print_mark(view, key, NULL, ret_found, ret_problem);
	if (o != OUTCOME_OK || *ret_found)
		return o;
	/* A suffix begins at the last dot, which is in the name of the file, and not at the
	 * beginning of the key. */
	const bool has_suffix = suffix && suffix != key && !strchr(suffix, '/');
	if (!has_suffix)
		return o;
	char *bare = must_have(strndup(key, (size_t)(suffix - key)));
	o = find_and_print_mark(view, bare, suffix, ret_found, ret_problem);
	free(bare);
	return o;
}

/* Shows what the marks below a key say. With --depth it is a table. The row of a folder has the sum
 * of all marks below the folder, and comes after the rows of the folders in it. The last row is the
 * sum of all. */
static enum outcome print_below(
	struct status_view *view, const char *key, struct problem *ret_problem)
{
	const struct url_prefix prefix = url_prefix(key);
	const struct mark_range range = {.prefix = prefix.text};
	struct walk *walk = must_have(calloc(1, sizeof *walk));
	struct mark_stream *stream = NULL;
	struct packed_mark *row;
	enum outcome o;
	walk->view = view;
	walk->began_s = store_time_s(view->frame->marks.conn->store);
	walk->ends[0] = strlen(prefix.text);
	if (view->depth)
		status_print_head(view);
	if (mark_stream_new(view->frame->marks.conn, view->space, &range, &no_limits, &stream)) {
		free(walk);
		return outcome_no_memory(ret_problem);
	}
	while ((o = mark_stream_next(stream, &row, ret_problem)) == OUTCOME_OK && row) {
		const struct mark mark = mark_unpack(row);
		o = visit_mark(walk, row->key, &mark, ret_problem);
		free(row);
		if (o != OUTCOME_OK)
			break;
	}
	mark_stream_free(stream);
	if (o == OUTCOME_OK && !view->depth) {
		o = print_prefix(walk, key, prefix.text, ret_problem);
	} else if (o == OUTCOME_OK) {
		while (walk->open)
			close_folder(walk);
		status_print_counts(view, prefix.text, &walk->sums[0], COUNTS_OF_SUM);
	}
	free(walk);
	return o;
}

/* Reads the marks once, and shows them. Without a URL, only the store itself is shown. */
static enum outcome print_all(
	struct status_view *view, const struct s3_url *url, struct problem *ret_problem)
{
	bool found = false;
	struct bucket_row row;
	status_print_store(view, url != NULL);
	if (!url)
		return OUTCOME_OK;
	enum outcome o =
		bucket_row_read(view->frame->marks.conn, view->space, NULL, &row, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	view->space->generation = row.generation;
	view->knows_bucket = *row.version; /* "": there is no row of the bucket */
	if (view->knows_bucket)
		status_print_bucket(view, &row);
	o = print_jobs(view, url->key, ret_problem);
	if (o == OUTCOME_OK && *url->key && !view->depth)
		o = print_key(view, url->key, &found, ret_problem);
	if (o == OUTCOME_OK && !found)
		o = print_below(view, url->key, ret_problem);
	return o;
}

/* The sums of one reading of the marks. */
struct reading {
	uint64_t end_ns; /* time at which it ended; 0: there was none so far */
	uint64_t done, bytes;
};

/* Ends one reading: shows the time and the progress since the previous one, and draws the page.
 * With --json it shows nothing. *last has the previous reading, and becomes this one. */
static void end_reading(struct status_view *view, struct reading *last)
{
	char line[400];
	struct status_page *page = view->page; /* NULL: lines are printed one by one */
	const struct reading before = *last;
	const struct reading now = {.end_ns = clock_boot_ns(),
		.done = view->sum.of[STATUS_DONE],
		.bytes = view->sum.of[STATUS_BYTES]};
	const double seconds = (double)(now.end_ns - before.end_ns) / (double)NS_PER_S;
	const uint64_t files = now.done > before.done ? now.done - before.done : 0;
	const uint64_t bytes = now.bytes > before.bytes ? now.bytes - before.bytes : 0;
	*last = now;
	if (page && page->left_out) {
		snprintf(line, sizeof line, "%s lines more have no room here",
			human_count(page->left_out).text);
		status_page_add(page, line);
	}
	clock_format_iso(clock_wall_s(), line);
	/* The first reading has nothing to be compared with. */
	if (before.end_ns && now.end_ns > before.end_ns)
		snprintf(line + strlen(line), sizeof line - strlen(line),
			", %s (%s) done since the last look, %.1f files/s, %s/s",
			human_things(files, "file").text, human_bytes(bytes).text,
			(double)files / seconds,
			human_bytes((uint64_t)((double)bytes / seconds)).text);
	if (page) {
		status_page_add(page, line);
		text_add(&page->lines, ERASE_BELOW);
		output_result(&view->frame->output, text_string(&page->lines));
	} else if (!view->frame->json) {
		output_result(&view->frame->output, line);
	}
}

/* Reads and shows the marks again and again, until a signal ends the process. On a terminal each
 * page is drawn over the previous one, otherwise they are printed one after the other. Returns only
 * if reading failed, with a sentence, or with OK if standard output is broken. */
static enum outcome watch_all(struct status_view *view, const struct s3_url *url,
	uint64_t interval_ms, struct problem *ret_problem)
{
	struct status_page page = {0};
	struct reading last = {0};
	enum outcome o;
	view->page = !view->frame->json && terminal_can_draw(STDOUT_FILENO) ? &page : NULL;
	for (;;) {
		if (view->page)
			status_page_begin(view->page);
		view->printed_failed = view->printed_changed = 0;
		o = print_all(view, url, ret_problem);
		if (o != OUTCOME_OK)
			break;
		end_reading(view, &last);
		/* Nobody reads the output any more. frame_end() makes the exit code. */
		if (output_has_failed(&view->frame->output))
			break;
		uv_sleep((unsigned)interval_ms);
	}
	text_clear(&page.lines);
	view->page = NULL;
	return o;
}

/* Opens the marks, and shows them once or, with --watch, again and again. Returns the exit code. */
static int show_status(struct status_view *view, const struct s3_url *url)
{
	struct command_frame *frame = view->frame;
	struct mark_space space = {0};
	const uint64_t interval_ms = view->watch_ms ? view->watch_ms : WATCH_MS;
	if (!frame_open_marks(frame, url ? url->bucket : "", &space))
		return frame->code;
	view->space = &space;
	const enum outcome o = is_watching(view)
				       ? watch_all(view, url, interval_ms, &frame->problem)
				       : print_all(view, url, &frame->problem);
	return o == OUTCOME_OK ? S3ONCE_EXIT_OK : S3ONCE_EXIT_SETUP;
}

int status_main(int argc, char **argv)
{
	struct status_view view = {.watch_ms = UINT64_MAX};
	struct command_frame frame = {.command = &status_command, .values = &view};
	struct s3_url url;
	view.frame = &frame;
	if (!frame_begin(&frame, argc, argv))
		return frame_end(&frame);
	const bool has_url = frame.n_operands > 0;
	if (!has_url && (view.depth || is_watching(&view)))
		problem_set(&frame.problem, "%s: name s3://BUCKET[/PREFIX]",
			view.depth ? "--depth shows the folders of a bucket"
				   : "--watch looks at a bucket");
	else if ((!has_url || url_parse(frame.operands[0], &url, &frame.problem) == 0) &&
		 frame_choose_marks(&frame, MARKS_READ))
		frame.code = show_status(&view, has_url ? &url : NULL);
	return frame_end(&frame);
}
