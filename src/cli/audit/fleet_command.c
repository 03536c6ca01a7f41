/* `s3once fleet`: shows the state of the jobs of all hosts that share the marks, to people or as
 * JSON, and sums it up. With --forget it removes the rows of hosts that no longer exist.
 * src/audit/fleet.c judges the state of a job. `s3once status` shows the jobs of one target by the
 * same function. */
#include "base/clock.h"
#include "base/must_have.h"
#include "cli/audit/audit_command.h"
#include "cli/human_figures.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (32U << 10)

/* The names of the sums, in JSON and for people. */
static const char *const sums[FLEET_SUMS] = {
	[FLEET_SUM_FINE] = "fine",
	[FLEET_SUM_RUNNING] = "running",
	[FLEET_SUM_FAILED] = "failed",
	[FLEET_SUM_OVERDUE] = "overdue",
	[FLEET_SUM_SILENT] = "silent",
	[FLEET_SUM_LOST] = "lost",
	[FLEET_SUM_WAITING] = "waiting",
	[FLEET_SUM_REPEATING] = "repeating",
};

/* Returns the sum in which a job counts that is not fine: that of its worst condition. */
static enum fleet_sum wrong_sum(const struct fleet_job *job)
{
	return job->state == FLEET_SILENT ? FLEET_SUM_SILENT
	       : job->state == FLEET_LOST ? FLEET_SUM_LOST
	       : job->has_failed          ? FLEET_SUM_FAILED
					  : FLEET_SUM_OVERDUE;
}

struct fleet {
	uint64_t expect_ms;
	const char *forget;
	/* Used while the command runs: */
	struct command_frame *frame;
	struct fleet_view view;
	/* Numbers of jobs that --forget has forgotten, and that it could not forget. */
	uint64_t forgotten, kept;
};

static const struct option what_options[] = {
	VALUE("expect", DURATION, offsetof(struct fleet, expect_ms), "AGE",
		"a job is overdue if its last success is longer than AGE ago, such as 26h",
		.min = 1000),
	VALUE("forget", STRING, offsetof(struct fleet, forget), "HOST[@MACHINE][/JOB]",
		"remove the records of a host, or of one of its jobs, that no longer exists",
		.only_once = true),
	{NULL},
};

static const struct option output_options[] = {
	FLAG("quiet", offsetof(struct fleet, view.only_wrong),
		"show only the sums, and jobs that are not fine, wait or repeat", .letter = 'q'),
	{NULL},
};

static const struct option_conflict conflicts[] = {
	{"forget", "expect", "what is forgotten is not judged"},
	{"forget", "quiet", "what is forgotten is always shown"},
	{NULL},
};

static const struct command fleet_command = {
	.name = "fleet",
	.operands = "",
	.about =
		"Shows each job of each host that uses the marks: its last success, the result of\n"
		"its last run, and whether a run is under way or has stopped sending heartbeats.\n"
		"Needs one request for 500 jobs, and does not read the marks of files.\n",
	.groups = (const struct option_group[]){{"What to look for", what_options}, {NULL}},
	.shares = SHARES_MARKS | SHARES_SERVICES | SHARES_JSON,
	.output_options = output_options,
	.conflicts = conflicts,
	.examples =
		"  s3once fleet --marks dynamodb:s3once\n"
		"  s3once fleet --marks dynamodb:s3once --expect 26h --quiet   (for monitoring)\n"
		"  s3once fleet --marks dynamodb:s3once --forget web7\n\n"
		"Exit codes: 0 all jobs are fine; 1 one is overdue, has failed, or has fallen\n"
		"silent, or nothing was forgotten; 2 usage; 3 the marks cannot be read.\n",
};

/* Returns an array with an element for each line. The last line need not end in a newline. */
static json_t *lines_as_json(const char *lines)
{
	json_t *list = json_array();
	/* Before each step, `lines` is at the beginning of a line of n bytes. */
	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		json_array_append_new(list, json_stringn(lines, n));
	}
	return list;
}

/* Returns the session of the job's last run, or null. */
static json_t *session_as_json(const struct fleet_job *job)
{
	const struct session_info *session = &job->session;
	const struct session_so_far *far = &session->so_far;
	const int64_t silent_s = job->now_s - session->heard_s;
	if (!job->has_session)
		return json_null();
	return json_set(json_object(), BYTES("session", job->row.session),
		BYTES("owner", session->owner), TIME("started", session->started_s),
		BOOLEAN("open", session->is_open), BOOLEAN("gone", session->is_gone),
		NUMBER("silent_seconds", silent_s > 0 ? silent_s : 0),
		NUMBER("lease_ms", session->lease_ns / NS_PER_MS), NUMBER("files", far->files),
		NUMBER("files_done", far->files_done), NUMBER("files_found", far->files_found),
		NUMBER("bytes_done", far->bytes_done), NUMBER("bytes_found", far->bytes_found),
		BOOLEAN("found_all", far->is_whole), NUMBER("bytes_per_second", far->rate),
		NODE("seconds_left", far->left_s > 0 ? json_integer(far->left_s) : json_null()));
}

static const char *machine_or_null(const struct job_row *row)
{
	return *row->machine ? row->machine : NULL;
}

/* Prints a job with all its details as an event. */
static void print_job_as_json(struct fleet_view *view, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	json_t *object = json_set(json_event("job"), BYTES("host", row->host),
		BYTES("machine", machine_or_null(row)), BYTES("job", row->job),
		BYTES("target", row->target), BYTES("state", fleet_state_name(job->state)),
		BOOLEAN("fine", job->is_fine), BOOLEAN("failed", job->has_failed),
		BOOLEAN("overdue", job->is_overdue), BOOLEAN("replaced", job->is_replaced),
		BOOLEAN("repeats", job->repeats_long),
		NODE("exit", row->exit < 0 ? json_null() : json_integer(row->exit)),
		BYTES("error", row->error), TIME("ended", row->ended_s),
		TIME("succeeded", row->succeeded_s), TIME("last_upload", row->shipped_s),
		NUMBER("files_found", row->found), NUMBER("files_uploaded", row->uploaded),
		NUMBER("files_failed", row->failed), NUMBER("bytes_uploaded", row->bytes),
		NUMBER("files_waiting", row->waiting), TIME("waiting_since", row->waiting_since_s));
	if (view->failures)
		json_object_set_new(object, "failures", lines_as_json(view->failures));
	json_print(&view->frame->output, json_set(object, TIME("began", row->began_s),
						 NODE("session", session_as_json(job))));
}

/* Returns the age of this time at the moment when the job was judged. */
static struct figure age(const struct fleet_job *job, int64_t since_s)
{
	return human_age(job->now_s > since_s ? (uint64_t)(job->now_s - since_s) : 0);
}

/* Adds the progress of the run at its last heartbeat, its speed, and the age of that heartbeat.
 * Adds nothing if the row does not have the number of files. */
static void add_so_far(struct text *t, const struct fleet_job *job)
{
	const struct session_so_far *far = &job->session.so_far;
	if (!far->files_found)
		return;
	text_addf(t, ", %s of %s%s files, %s of %s", human_count(far->files_done).text,
		human_count(far->files_found).text, far->is_whole ? "" : "+",
		human_bytes(far->bytes_done).text, human_bytes(far->bytes_found).text);
	if (far->is_whole && far->bytes_found && far->bytes_done <= far->bytes_found)
		text_addf(t, " (%u%%)",
			(unsigned)(100.0 * (double)far->bytes_done / (double)far->bytes_found));
	if (job->state == FLEET_RUNNING)
		text_addf(t, ", %s/s", human_bytes(far->rate).text);
	if (job->state == FLEET_RUNNING && far->left_s > 0)
		text_addf(t, ", %s left", human_seconds((double)far->left_s).text);
	text_addf(t, ", with %s under way at the last heartbeat",
		human_things(far->files, "file").text);
	if (job->state == FLEET_RUNNING)
		text_addf(t, " %s ago", age(job, job->session.heard_s).text);
}

/* Adds the result of the last run of an idle job, which has ended. */
static void add_last_run(struct text *t, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	const bool has_succeeded = row->exit == S3ONCE_EXIT_OK;
	const bool had_no_work = has_succeeded && !row->uploaded;
	if (has_succeeded)
		text_add(t, !had_no_work ? "succeeded "
			    : row->found ? "nothing new "
					 : "found no files ");
	else if (row->exit >= S3ONCE_EXIT_STOPPED)
		text_add(t, "stopped before its end ");
	else
		text_addf(t, "exit status %d, ", row->exit);
	text_addf(t, "%s ago", age(job, row->ended_s).text);
	if (row->uploaded)
		text_addf(t, ", uploaded %s (%s)", human_things(row->uploaded, "file").text,
			human_bytes(row->bytes).text);
	if (row->failed)
		text_addf(t, ", %" PRIu64 " failed", row->failed);
	if (had_no_work && row->shipped_s)
		text_addf(t, "; last upload %s ago", age(job, row->shipped_s).text);
	else if (had_no_work)
		text_add(t, "; no upload yet");
}

/* Adds the age of the job's open session or, if it is silent, of its last heartbeat, and the
 * progress of its run. */
static void add_open_session(struct text *t, const struct fleet_job *job)
{
	if (job->state == FLEET_RUNNING)
		text_addf(t, "running for %s", age(job, job->row.began_s).text);
	else /* FLEET_SILENT */
		text_addf(t, "%slast heard of %s ago",
			job->session.is_gone ? "its process is gone, " : "",
			age(job, job->session.heard_s).text);
	add_so_far(t, job);
}

/* Adds the last success of a job. */
static void add_last_success(struct text *t, const struct fleet_job *job)
{
	if (job->is_replaced)
		text_add(t, "; the same files were uploaded to another target since");
	else if (job->row.succeeded_s)
		text_addf(t, "; last success %s ago", age(job, job->row.succeeded_s).text);
	else
		text_add(t, "; no success yet");
	if (job->is_overdue && !job->is_replaced)
		text_add(t, "; overdue");
}

/* Adds the state of the last run, and then the last success, unless it is that same run. Adds
 * nothing for an idle job of which no run has ended yet (exit < 0). */
static void add_state(struct text *t, const struct fleet_job *job)
{
	const bool is_idle = job->state == FLEET_IDLE;
	if (is_idle && job->row.exit < 0)
		return;
	if (is_idle)
		add_last_run(t, job);
	else if (job->state == FLEET_LOST)
		text_addf(t, "its run of %s ago is over and did not say how it ended",
			age(job, job->row.began_s).text);
	else
		add_open_session(t, job);
	const bool has_just_succeeded =
		is_idle && job->row.exit == S3ONCE_EXIT_OK && !job->repeats_long;
	if (!has_just_succeeded)
		add_last_success(t, job);
}

/* Adds the number of waiting files, according to the last run that saw all files: "; 3 files are
 * waiting, the oldest for 2 days", or "; 1 file has been waiting for 2 days". The age is left out
 * if it is not known. */
static void add_waiting(struct text *t, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	const bool has_age = row->waiting_since_s != 0;
	if (!row->waiting)
		return;
	text_addf(t, "; %s %s", human_things(row->waiting, "file").text,
		row->waiting > 1 ? "are waiting"
		: has_age        ? "has been waiting"
				 : "is waiting");
	if (has_age)
		text_addf(t, "%s for %s", row->waiting > 1 ? ", the oldest" : "",
			age(job, row->waiting_since_s).text);
}

/* Adds the name by which people know the host: "web1", or with its machine "web1@3f2a9c01b2c4" or
 * "web1@unknown". */
static void add_host(struct text *t, const struct job_row *row, bool with_machine)
{
	text_add_escaped_again(t, row->host);
	if (!with_machine)
		return;
	text_add(t, "@");
	text_add_escaped_again(t, *row->machine ? row->machine : "unknown");
}

/* Adds the name by which people and --forget know the job: "web1/nginx". For runs of push without a
 * job, row->job has the sources and the target, which contain a slash, as no job's name does. Then
 * it is "web1 push /srv s3://my-bucket". */
static void add_name(struct text *t, const struct job_row *row, bool with_machine)
{
	add_host(t, row, with_machine);
	text_add(t, strchr(row->job, '/') ? " push " : "/");
	text_add_escaped_again(t, row->job);
}

static void put(const struct fleet_view *view, const struct text *line)
{
	if (view->put)
		view->put(view->put_arg, text_string(line));
	else
		output_result(&view->frame->output, text_string(line));
}

/* Prints lines below a job. They come from another host, so they are escaped here, even if that
 * host has done so already. */
static void print_below(const struct fleet_view *view, const char *lines)
{
	struct text t = TEXT(LINE_MAX_BYTES);
	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		char *line = must_have(strndup(lines, n));
		text_reset(&t);
		text_add(&t, "         ");
		text_add_escaped_again(&t, line);
		put(view, &t);
		free(line);
	}
	text_clear(&t);
}

/* Prints a job as one line and, if its last run has failed, the reasons below it, line by line. */
static void print_job_for_people(struct fleet_view *view, const struct fleet_job *job)
{
	struct text t = TEXT(LINE_MAX_BYTES);
	/* The worst condition of the job. */
	const char *word = !job->is_fine                 ? sums[wrong_sum(job)]
			   : job->is_replaced            ? "replaced"
			   : job->state == FLEET_RUNNING ? "running"
			   : job->repeats_long           ? "repeats"
			   : job->waits_long             ? "waits"
							 : "ok";
	text_addf(&t, "%-8s ", word);
	add_name(&t, &job->row, job->has_namesake);
	text_add(&t, ": ");
	add_state(&t, job);
	add_waiting(&t, job);
	put(view, &t);
	text_clear(&t);
	const bool has_failures = view->failures && *view->failures;
	/* A job that another one has replaced needs no more attention. */
	if (job->has_failed && !job->is_replaced)
		print_below(view, has_failures ? view->failures : job->row.error);
}

void fleet_print_job(struct fleet_view *view, const struct fleet_job *job)
{
	if (job->has_moved)
		return;
	view->jobs++;
	view->sums[job->is_fine ? FLEET_SUM_FINE : wrong_sum(job)]++;
	view->sums[FLEET_SUM_RUNNING] += job->state == FLEET_RUNNING;
	view->sums[FLEET_SUM_WAITING] += job->waits_long;
	view->sums[FLEET_SUM_REPEATING] += job->repeats_long;
	if (job->is_fine && !job->waits_long && !job->repeats_long && view->only_wrong)
		return;
	if (view->frame->json)
		print_job_as_json(view, job);
	else
		print_job_for_people(view, job);
}

/* Returns whether `name` is the host of this row or the name of the job, each with the machine or
 * without, as they are shown. The host also counts unescaped. */
static bool is_named(const char *name, const struct job_row *row)
{
	struct text t = TEXT(LINE_MAX_BYTES);
	bool matches = strcmp(name, row->host) == 0;
	for (int with_machine = 0; with_machine < 2; with_machine++) {
		text_reset(&t);
		add_host(&t, row, with_machine != 0);
		matches |= strcmp(name, text_string(&t)) == 0;
		text_reset(&t);
		add_name(&t, row, with_machine != 0);
		matches |= strcmp(name, text_string(&t)) == 0;
	}
	text_clear(&t);
	return matches;
}

/* Removes the row of a job, unless a run of it is at work or has changed the row since it was read.
 * *ret_kept becomes the reason for keeping the job, or "" if it is forgotten. */
static enum outcome remove_unless_used(struct fleet *fleet, const struct fleet_job *job,
	const char **ret_kept, struct problem *ret_problem)
{
	*ret_kept = "";
	if (job->state == FLEET_RUNNING) {
		*ret_kept = "a run of it is at work";
		return OUTCOME_OK;
	}
	const enum outcome o =
		job_row_remove(fleet->frame->marks.conn, &job->row, &no_limits, ret_problem);
	if (o != OUTCOME_REFUSED)
		return o;
	*ret_kept = "a run of it has begun or ended meanwhile";
	return OUTCOME_OK;
}

/* Forgets the job if it may be forgotten, and reports the result. */
static enum outcome forget_job(
	struct fleet *fleet, const struct fleet_job *job, struct problem *ret_problem)
{
	const char *kept;
	const enum outcome o = remove_unless_used(fleet, job, &kept, ret_problem);
	if (o != OUTCOME_OK)
		return o;
	fleet->kept += *kept != '\0';
	fleet->forgotten += !*kept;
	const char *fate = *kept ? "kept" : "forgotten";
	struct text t = TEXT(LINE_MAX_BYTES);
	add_name(&t, &job->row, job->has_namesake);
	frame_print(fleet->frame,
		json_set(json_event(fate), BYTES("host", job->row.host),
			BYTES("machine", machine_or_null(&job->row)), BYTES("job", job->row.job),
			BYTES("text", kept)),
		"%s: %s%s%s", fate, text_string(&t), *kept ? ": " : "", kept);
	text_clear(&t);
	return OUTCOME_OK;
}

/* Shows the job, or forgets it if --forget names it. Any outcome but OK ends the walk. */
static enum outcome on_job(void *arg, const struct fleet_job *job, struct problem *ret_problem)
{
	struct fleet *fleet = arg;
	if (!fleet->forget)
		fleet_print_job(&fleet->view, job);
	else if (is_named(fleet->forget, &job->row))
		return forget_job(fleet, job, ret_problem);
	return OUTCOME_OK;
}

/* Prints the sums over all jobs. */
static void print_sums(const struct fleet_view *view, int code)
{
	if (view->frame->json) {
		json_t *object = json_set(json_event("fleet"), NUMBER("jobs", view->jobs));
		for (int i = 0; i < FLEET_SUMS; i++)
			json_set(object, NUMBER(sums[i], view->sums[i]));
		json_print(&view->frame->output, json_set(object, NUMBER("exit", code)));
		return;
	}
	struct text t = TEXT(1000);
	text_add(&t, human_things(view->jobs, "job").text);
	/* FLEET_SUM_FINE is printed in any case, other sums only if they are not 0. */
	for (int i = 0; i < FLEET_SUMS; i++)
		if (view->sums[i] || i == FLEET_SUM_FINE)
			text_addf(&t, "%s %s %s", i ? "," : ":", human_count(view->sums[i]).text,
				sums[i]);
	output_result(&view->frame->output, text_string(&t));
	text_clear(&t);
}

/* Reports if --forget has named no job, and returns the exit code. */
static int end_forgetting(const struct fleet *fleet)
{
	if (!fleet->forgotten && !fleet->kept)
		output_message(&fleet->frame->output,
			"error: fleet: these marks know no run of %s: name it as fleet does",
			quote(fleet->forget).text);
	return fleet->forgotten && !fleet->kept ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
}

/* Prints the sums over the jobs that were shown, and returns the exit code. If there were none, the
 * frame has a sentence. */
static int end_showing(const struct fleet *fleet)
{
	const struct fleet_view *view = &fleet->view;
	if (!view->jobs)
		return problem_error(&fleet->frame->problem, S3ONCE_EXIT_SETUP,
			"no run with these marks has said yet how it ended: check --marks, or look "
			"again after the first run");
	const bool all_fine =
		view->sums[FLEET_SUM_FINE] == view->jobs && !fleet->frame->disk_is_full;
	const int code = all_fine ? S3ONCE_EXIT_OK : S3ONCE_EXIT_FILES;
	print_sums(view, code);
	return code;
}

/* Shows the jobs and their sums, or forgets jobs. Returns the exit code. If that is 3, the frame
 * has a sentence. */
static int look_at_jobs(struct fleet *fleet)
{
	const enum outcome o = fleet_walk(fleet->frame->marks.conn, fleet->expect_ms / 1000, on_job,
		fleet, &fleet->frame->problem);
	if (o != OUTCOME_OK)
		return S3ONCE_EXIT_SETUP;
	return fleet->forget ? end_forgetting(fleet) : end_showing(fleet);
}

int fleet_main(int argc, char **argv)
{
	struct fleet fleet = {0};
	struct command_frame frame = {.command = &fleet_command, .values = &fleet};
	struct mark_space space = {0};
	if (!frame_begin(&frame, argc, argv))
		return frame_end(&frame);
	fleet.frame = fleet.view.frame = &frame;
	if (frame_choose_marks(&frame, fleet.forget ? MARKS_WRITTEN : MARKS_READ) &&
		frame_open_marks(&frame, "", &space))
		frame.code = look_at_jobs(&fleet);
	return frame_end(&frame);
}
