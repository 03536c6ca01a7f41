/* Opens everything that a run needs before its threads begin: the queue, S3, the marks, the folder
 * to move files to, the session and the manifest, in this order. push.c and prove.c call
 * push_set_up() once. s3once_push_free() closes what it opens. */
#include "aws/settings.h"
#include "base/clock.h"
#include "store/store.h"
#include "upload/push_struct.h"
#include "upload/run_manifest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* session_options.so_far. Links and special files do not count, as on the terminal. */
static void note_progress_for_row(void *arg, struct session_so_far *ret)
{
	struct run *run = arg;
	const struct s3once_counts counts = report_get_counts(&run->report);
	const uint64_t uncounted = counts.links + counts.special;
	*ret = (struct session_so_far){.files = counts.in_flight,
		.files_done = s3once_counts_settled(&counts) - uncounted,
		.files_found = counts.found - uncounted,
		.bytes_done = counts.bytes_settled + counts.bytes_under_way,
		.bytes_found = counts.bytes_found,
		.rate = (uint64_t)counts.bytes_per_second,
		.left_s = counts.seconds_left < 0 ? 0 : (int64_t)counts.seconds_left + 1,
		.is_whole = counts.scan_complete != 0};
}

/* Whether keys of this template (NULL: none) change with the name of the host. */
static bool names_host(const char *template)
{
	return template && (strstr(template, "{host}") || strstr(template, "{fqdn}"));
}

/* Notes in the file of the marks that this machine uses it, and warns if that was another one. */
static enum outcome note_machine(struct s3once_push *push, const struct marks_place *place,
	const struct call_limits *limits, struct problem *problem)
{
	struct run *run = &push->run;
	struct store_settings *settings = &run->space.settings;
	bool is_copied;
	const enum outcome o =
		settings_note_machine(push->conn, run->dry, limits, settings, &is_copied, problem);
	if (o == OUTCOME_OK && is_copied)
		report_run(&run->report, S3ONCE_EVENT_WARNING,
			PROBLEM("the marks in %s were used on another machine (%s) before, and "
				"this is %s: what they say is uploaded is not uploaded again under "
				"the same key, and what that machine has uploaded is not replaced; "
				"if it still runs, give this one marks and a prefix of its own; if it is this one, "
				"moved, renamed or restored, only --if-changed=replace differs, and "
				"--if-changed=replace-any replaces all the same%s",
				quote(place->path).text, quote(settings->copied_from).text,
				quote(settings->machine.host).text,
				names_host(run->options.key_template)
					? "; --key has {host} or {fqdn}: if that name has changed, so "
					  "have the keys, and the files are uploaded again unless "
					  "the former name is written in its place"
					: ""));
	return o;
}

/* Makes the place one for a dry run, which creates no marks: it reads the file of the marks, or
 * uses an empty store if there is no file yet. If access() fails for another reason, opening the
 * file will report it. Returns 0 or -ENOMEM. */
static int make_place_dry(struct marks_place *place)
{
	if (place->is_dynamodb)
		return 0;
	place->only_read = !access(place->path, F_OK) || errno != ENOENT;
	if (!place->only_read) {
		free(place->path);
		place->path = strdup(STORE_SQLITE_NOWHERE);
	}
	return place->path ? 0 : -ENOMEM;
}

/* Reads the settings of the store into run->space, and acts on them. A file that is new is set up
 * here, except by a dry run, which only acts as if. A table is set up only by s3once init; if it is
 * not, returns ABSENT. */
static enum outcome load_settings(
	struct s3once_push *push, const struct marks_place *place, struct problem *problem)
{
	struct run *run = &push->run;
	struct store_settings *settings = &run->space.settings;
	/* A request to stop ends these requests at once, since no upload is under way yet that
	 * would have to finish first. */
	const struct call_limits limits = {.abandon = run_is_stopping,
		.abandon_arg = run,
		.patience_ms = run->options.give_up_after_ms,
		.progress = &run->progress,
		.is_progress = true};
	const bool makes_settings = !place->is_dynamodb && !run->dry;
	enum outcome o = makes_settings ? settings_load_or_make(push->conn, SHARDS_OF_FILE, &limits,
						  settings, problem)
					: settings_load(push->conn, &limits, settings, problem);
	if (o == OUTCOME_ABSENT && !place->is_dynamodb) {
		settings_generate(SHARDS_OF_FILE, settings);
		o = OUTCOME_OK;
	}
	if (o == OUTCOME_OK && !place->is_dynamodb)
		o = note_machine(push, place, &limits, problem);
	if (o == OUTCOME_OK && !run->dry)
		settings_use_batches(push->conn, &limits, settings);
	return o;
}

/* Opens the store of the marks and the connection to it, and reads its settings. Returns false with
 * a sentence. */
static bool open_marks(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	const char *marks = run->options.marks;
	struct marks_place place;
	int error = marks_place_parse(marks, &place, problem);
	if (!error && run->dry && make_place_dry(&place))
		error = problem_error(problem, -ENOMEM, "out of memory");
	if (!error)
		error = marks_place_open(&place, run->aws, run->http, &run->store, problem);
	if (!error && store_conn_new(run->store, &push->conn))
		error = problem_error(problem, -ENOMEM, PROBLEM_NO_DESCRIPTORS);
	if (error) {
		marks_place_clear(&place);
		return false;
	}
	const enum outcome o = load_settings(push, &place, problem);
	if (o == OUTCOME_ABSENT)
		marks_place_explain_unset(&place, run->aws, problem);
	/* A sentence that names the table already is not prefixed with it. */
	else if (o != OUTCOME_OK && place.table && !strstr(problem->text, place.table))
		problem_prefix(problem, "%s", quote(marks).text);
	/* With own_files, the scan does not upload the files of these marks, and the run notices at
	 * its end if they were removed. */
	if (place.path && strcmp(place.path, STORE_SQLITE_NOWHERE) != 0) {
		own_files_find(place.path, &run->files.own_files);
		place.path = NULL; /* own_files owns it now */
	}
	marks_place_clear(&place);
	push->has_marks = o == OUTCOME_OK;
	return push->has_marks;
}

/* Makes the session, which is begun right before the first claim (run_ensure_begun()). Returns
 * false with a sentence. */
static bool open_session(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	char observations[4096];
	struct session_options options = {
		.store = run->store,
		.lease_ns = run->options.lease_ms * NS_PER_MS,
		.heartbeat_ns = run->options.lease_ms * NS_PER_MS / 5,
		.abandon = run_is_over,
		.arg = run,
		.progress = &run->progress,
		.is_stuck = run_is_stuck,
		.so_far = note_progress_for_row,
		.reads_only = run->dry,
	};
	/* A dry run makes no folder. */
	if (!state_path(STATE_SESSIONS, run->dry ? FOLDER_NOT_MADE : FOLDER_MADE, observations,
		    sizeof observations))
		options.observations = observations;
	return !session_new(&options, &run->session) ||
	       problem_error(problem, false, PROBLEM_NO_DESCRIPTORS);
}

/* Resolves the settings of AWS, and opens the bucket for the requests of all threads. Returns false
 * with a sentence. */
static bool open_s3(struct s3once_push *push, struct problem *problem)
{
	struct run *run = &push->run;
	const struct s3once_options *o = &run->options;
	const struct aws_options aws = {
		.profile = o->profile,
		.region = o->region,
		.endpoint_url = o->endpoint_url,
		.dynamodb_endpoint_url = o->dynamodb_endpoint_url,
		.ca_bundle = o->ca_bundle,
		.checksum = o->checksum,
		.attempts = o->attempts,
		.request_timeout_ms = o->request_timeout_ms,
	};
	const int error = aws_global_init();
	if (error)
		return problem_error(
			problem, false, "libcurl cannot be set up: %s", strerror(-error));
	if (aws_settings_resolve(&aws, &run->aws, problem))
		return false;
	const struct http_options http = {.ca_bundle = run->aws->ca_bundle,
		.stall_timeout_ms = run->aws->stall_timeout_ms,
		.upload_buffer_bytes = run->bodies.buffers.max_bytes};
	if (http_shared_new(&http, &run->http))
		return problem_error(problem, false, "out of memory");
	if (s3_open(run->aws, run->http, o->bucket, &run->s3, problem))
		return false;
	/* object_rules_keys() has an element only if a setting has an SSE-C key. */
	if (*object_rules_keys(run->bodies.rules) &&
		strncmp(run->aws->s3_endpoint, "https:", 6) != 0)
		return problem_error(problem, false,
			"sse-c-key-file sends the key with each request, so the endpoint must be "
			"https, and it is %s",
			quote(run->aws->s3_endpoint).text);
	s3_set_terms(run->s3, object_rules_owner(run->bodies.rules),
		object_rules_requester_pays(run->bodies.rules));
	snprintf(run->space.service, sizeof run->space.service, "%s",
		aws_settings_service(run->aws));
	snprintf(run->space.bucket, sizeof run->space.bucket, "%s", o->bucket);
	return true;
}

bool push_set_up(struct s3once_push *push)
{
	struct run *run = &push->run;
	const struct s3once_options *o = &run->options;
	/* Reported if there is no scan. A failure below replaces it. */
	struct problem problem = push->scan_problem;
	if (run->bodies.bandwidth && !run->dry)
		bandwidth_share(run->bodies.bandwidth);
	const enum queue_order order = o->final ? QUEUE_BY_RANK : QUEUE_BY_TURNS;
	const bool has_queue =
		run->files.scan && !queue_new(o->concurrency, o->part_bytes, order, &run->queue);
	if (!has_queue && run->files.scan)
		problem_set(&problem, "out of memory");
	push->is_set_up = has_queue && open_s3(push, &problem) && open_marks(push, &problem) &&
			  run_files_open_move_to(&run->files, o, &problem) &&
			  open_session(push, &problem) && run_manifest_open(run, &problem);
	if (push->is_set_up)
		return true;
	/* If a request was given up since nothing has moved for too long, this reports that reason,
	 * and the run is stopping. */
	run_check_progress(run);
	/* An end by a request to stop is no error. */
	if (!run_is_stopping(run))
		report_run(&run->report, S3ONCE_EVENT_FATAL, &problem);
	atomic_store(&run->end.failed_setup, true);
	return false;
}
