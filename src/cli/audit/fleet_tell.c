#include "cli/audit/fleet_tell.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/human_figures.h"
#include "cli/json.h"
#include "s3once/push.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (32U << 10)

static json_t *session_json(const struct fleet_view *view, const struct fleet_job *job)
{
	const struct session_info *session = &job->session;
	json_t *object = json_object();
	json_set_bytes(object, "session", job->row.session);
	json_set_bytes(object, "owner", session->owner);
	json_set_time(object, "started", session->started_s);
	json_object_set_new(object, "open", json_boolean(session->is_open));
	json_object_set_new(object, "gone", json_boolean(session->is_gone));
	const int64_t silent_s = view->now_s - session->heard_s;
	json_set_number(object, "silent_seconds", silent_s > 0 ? (uint64_t)silent_s : 0);
	json_set_number(object, "lease_ms", session->lease_ns / NS_PER_MS);
	json_set_number(object, "files", session->files);
	return object;
}

static json_t *lines_json(const char *lines)
{
	json_t *list = json_array();
	for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		json_array_append_new(list, json_stringn(lines, n));
	}
	return list;
}

static void tell_job_as_json(struct fleet_view *view, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	json_t *object = json_event("job");
	json_set_bytes(object, "host", row->host);
	json_set_bytes(object, "job", row->job);
	json_set_bytes(object, "target", row->target);
	json_set_bytes(object, "state", fleet_state_name(job->state));
	json_object_set_new(object, "fine", json_boolean(job->is_fine));
	json_object_set_new(object, "failed", json_boolean(job->has_failed));
	json_object_set_new(object, "overdue", json_boolean(job->is_overdue));
	json_object_set_new(object, "exit", row->exit < 0 ? json_null() : json_integer(row->exit));
	json_set_bytes(object, "error", row->error);
	json_set_time(object, "ended", row->ended_s);
	json_set_time(object, "succeeded", row->succeeded_s);
	json_set_number(object, "files_uploaded", row->uploaded);
	json_set_number(object, "files_failed", row->failed);
	json_set_number(object, "bytes_uploaded", row->bytes);
	if (view->failures)
		json_object_set_new(object, "failures", lines_json(view->failures));
	json_set_time(object, "began", row->began_s);
	json_object_set_new(
		object, "session", job->has_session ? session_json(view, job) : json_null());
	json_print(view->output, object);
}

static void add_age(struct text *t, const struct fleet_view *view, int64_t since_s)
{
	human_age(t, view->now_s > since_s ? (uint64_t)(view->now_s - since_s) : 0);
}

static void add_success(struct text *t, const struct fleet_view *view, const struct job_row *row)
{
	if (row->succeeded_s) {
		text_add(t, "last success ");
		add_age(t, view, row->succeeded_s);
		text_add(t, " ago");
	} else {
		text_add(t, "no success yet");
	}
}

/* How the last run that has ended did so. */
static void add_end(struct text *t, const struct fleet_view *view, const struct job_row *row)
{
	if (row->exit < 0)
		return;
	if (row->exit == S3ONCE_EXIT_OK)
		text_add(t, "succeeded ");
	else if (row->exit >= S3ONCE_EXIT_STOPPED)
		text_add(t, "stopped before its end ");
	else
		text_addf(t, "exit status %d ", row->exit);
	add_age(t, view, row->ended_s);
	text_add(t, " ago");
	if (row->uploaded) {
		text_add(t, ", uploaded ");
		human_things(t, row->uploaded, "file");
		text_add(t, " (");
		human_bytes(t, row->bytes);
		text_add_char(t, ')');
	}
	if (row->failed)
		text_addf(t, ", %" PRIu64 " failed", row->failed);
	if (row->exit == S3ONCE_EXIT_OK)
		return;
	text_add(t, "; ");
	add_success(t, view, row);
}

/* The row has 0 until the first heartbeat. */
static void add_files_under_way(struct text *t, const struct session_info *session)
{
	if (!session->files)
		return;
	text_add(t, ", with ");
	human_things(t, session->files, "file");
	text_add(t, " under way at the last heartbeat");
}

static void add_state(struct text *t, const struct fleet_view *view, const struct fleet_job *job)
{
	const struct job_row *row = &job->row;
	switch (job->state) {
	case FLEET_IDLE:
		add_end(t, view, row);
		return;
	case FLEET_RUNNING:
		text_add(t, "running for ");
		add_age(t, view, row->began_s);
		add_files_under_way(t, &job->session);
		break;
	case FLEET_SILENT:
		text_add(t, job->session.is_gone ? "its process is gone, last heard of "
						 : "last heard of ");
		add_age(t, view, job->session.heard_s);
		text_add(t, " ago");
		add_files_under_way(t, &job->session);
		break;
	case FLEET_LOST:
		text_add(t, "its run of ");
		add_age(t, view, row->began_s);
		text_add(t, " ago is over and did not say how it ended");
	}
	text_add(t, "; ");
	add_success(t, view, row);
}

/* The worst thing that there is to say of a job. */
static const char *word_of(const struct fleet_job *job)
{
	if (job->state == FLEET_SILENT || job->state == FLEET_LOST)
		return fleet_state_name(job->state);
	if (job->has_failed)
		return "failed";
	if (job->is_overdue)
		return "overdue";
	return job->state == FLEET_RUNNING ? "running" : "ok";
}

static void add_name(struct text *t, const struct job_row *row)
{
	text_add_escaped_again(t, row->host);
	text_add_char(t, '/');
	text_add_escaped_again(t, row->job);
}

/* Of what the row has, which may be anything. */
static void tell_line(struct fleet_view *view, const char *line, size_t n)
{
	struct text t = TEXT(LINE_MAX_BYTES);
	char *copy = strndup(line, n);
	text_add(&t, "         ");
	text_add_escaped_again(&t, copy ? copy : "");
	output_result(view->output, text_string(&t));
	text_clear(&t);
	free(copy);
}

static void tell_job_to_people(struct fleet_view *view, const struct fleet_job *job)
{
	struct text t = TEXT(LINE_MAX_BYTES);
	text_addf(&t, "%-8s ", word_of(job));
	add_name(&t, &job->row);
	text_add(&t, ": ");
	add_state(&t, view, job);
	output_result(view->output, text_string(&t));
	const char *lines = view->failures && *view->failures ? view->failures : job->row.error;
	for (size_t n; job->has_failed && *lines; lines += n + (lines[n] == '\n')) {
		n = strcspn(lines, "\n");
		tell_line(view, lines, n);
	}
	text_clear(&t);
}

void fleet_tell_job(struct fleet_view *view, const struct fleet_job *job)
{
	view->jobs++;
	view->fine += job->is_fine;
	view->running += job->state == FLEET_RUNNING;
	view->failed += job->has_failed;
	view->overdue += job->is_overdue;
	view->silent += job->state == FLEET_SILENT;
	view->lost += job->state == FLEET_LOST;
	if (job->is_fine && view->only_wrong)
		return;
	if (view->json)
		tell_job_as_json(view, job);
	else
		tell_job_to_people(view, job);
}

void fleet_tell_end(struct fleet_view *view, int code)
{
	const struct {
		const char *name;
		uint64_t n;
	} sums[] = {{"fine", view->fine}, {"running", view->running}, {"failed", view->failed},
		{"overdue", view->overdue}, {"silent", view->silent}, {"lost", view->lost}};
	if (view->json) {
		json_t *object = json_event("fleet");
		json_set_number(object, "jobs", view->jobs);
		for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
			json_set_number(object, sums[i].name, sums[i].n);
		json_set_number(object, "exit", (uint64_t)code);
		json_print(view->output, object);
		return;
	}
	struct text t = TEXT(1000);
	human_count(&t, view->jobs);
	text_add(&t, view->jobs == 1 ? " job" : " jobs");
	for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
		if (sums[i].n || i == 0) {
			text_add(&t, i ? ", " : ": ");
			human_count(&t, sums[i].n);
			text_addf(&t, " %s", sums[i].name);
		}
	output_result(view->output, text_string(&t));
	text_clear(&t);
}

static void tell_fate(
	struct fleet_view *view, const char *fate, const struct job_row *row, const char *why)
{
	if (view->json) {
		json_t *object = json_event(fate);
		json_set_bytes(object, "host", row->host);
		json_set_bytes(object, "job", row->job);
		json_set_bytes(object, "text", why);
		json_print(view->output, object);
		return;
	}
	struct text t = TEXT(LINE_MAX_BYTES);
	text_addf(&t, "%s: ", fate);
	add_name(&t, row);
	text_addf(&t, "%s%s", *why ? ": " : "", why);
	output_result(view->output, text_string(&t));
	text_clear(&t);
}

void fleet_tell_forgotten(struct fleet_view *view, const struct job_row *row)
{
	tell_fate(view, "forgotten", row, "");
}

void fleet_tell_kept(struct fleet_view *view, const struct job_row *row, const char *why)
{
	tell_fate(view, "kept", row, why);
}
