/* Implements audits.h with src/audit, in the way of the command line. */
#include "audits.h"
#include "audit/forget.h"
#include "audit/verify.h"
#include "aws/settings.h"
#include "base/clock.h"
#include "judge.h"
#include "marks/bucket_row.h"
#include "marks/session.h"
#include "marks/store_settings.h"
#include "s3/s3.h"
#include "store/state_folder.h"
#include "store/store.h"
#include "story.h"
#include "world.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct audit {
	struct aws_settings *aws;
	struct http_shared *http;
	struct marks_place where;
	struct store *store;
	struct store_conn *conn;
	struct mark_space space;
	struct s3 *s3;
	struct audit_place place;
	char prefix[64];
	bool began_calm; /* the world was calm when the audit began */
};

static bool open_audit(struct audit *audit, const struct machine *machine, struct problem *problem)
{
	const struct aws_options options = {.region = "us-east-1",
		.endpoint_url = run_endpoint(),
		.dynamodb_endpoint_url = RUN_DYNAMODB};
	struct bucket_row row;
	snprintf(audit->prefix, sizeof audit->prefix, "%s/", run_prefix(machine));
	aws_global_init();
	if (aws_settings_resolve(&options, &audit->aws, problem))
		return false;
	const struct http_options http = {.stall_timeout_ms = audit->aws->stall_timeout_ms};
	if (http_shared_new(&http, &audit->http) ||
		marks_place_parse(run_marks(), &audit->where, problem) ||
		marks_place_open(&audit->where, audit->aws, audit->http, &audit->store, problem) ||
		store_conn_new(audit->store, &audit->conn) ||
		settings_load(audit->conn, NULL, &audit->space.settings, problem) != OUTCOME_OK)
		return false;
	snprintf(audit->space.service, sizeof audit->space.service, "%s",
		aws_settings_service(audit->aws));
	snprintf(audit->space.bucket, sizeof audit->space.bucket, "%s", WORLD_BUCKET);
	if (bucket_row_read(audit->conn, &audit->space, NULL, &row, problem) != OUTCOME_OK)
		return false;
	audit->space.generation = row.generation;
	if (s3_open(audit->aws, audit->http, WORLD_BUCKET, &audit->s3, problem))
		return false;
	audit->place = (struct audit_place){.store = audit->store,
		.space = &audit->space,
		.s3 = audit->s3,
		.own.marks = audit->conn};
	return s3_conn_new(audit->s3, &audit->place.own.s3) == 0;
}

static void close_audit(struct audit *audit)
{
	store_conn_free(audit->conn);
	store_close(audit->store);
	s3_conn_free(audit->place.own.s3);
	s3_close(audit->s3);
	http_shared_free(audit->http);
	aws_settings_free(audit->aws);
	marks_place_clear(&audit->where);
}

/* If the service keeps no checksums, the mark of an earlier version that a run found in S3 has
 * nothing to compare a download with. verify reports that, rightly. */
static bool has_nothing_to_compare(const struct problem *problem)
{
	return problem && strstr(problem->text, "its mark has no checksum");
}

/* Whether the key belongs to the other one of two machines, of which one has a copy of the other's
 * marks. */
static bool is_of_other_machine(const char *key)
{
	const struct s3_stored *object = world_s3_object(world.s3, key);
	const struct machine_process *writer = object ? object->writer : NULL;
	return world_image() && writer && writer->machine != task_process()->machine;
}

static void on_found(
	void *arg, enum finding finding, const char *key, const struct problem *problem)
{
	static const char *const names[] = {[FINDING_MISSING] = "is missing",
		[FINDING_DIFFERS] = "differs",
		[FINDING_UNKNOWN] = "has no mark",
		[FINDING_ERROR] = "cannot be told"};
	if (finding >= sizeof names / sizeof *names || !names[finding])
		return;
	story("verify: %s %s%s%s", key, names[finding], problem ? ": " : "",
		problem ? problem->text : "");
	/* A recreated bucket lacks objects until the last runs. */
	const bool *began_calm = arg;
	const bool is_explained = world_loses_objects() ||
				  (finding == FINDING_DIFFERS && judge_may_differ(key)) ||
				  (finding == FINDING_MISSING && judge_may_miss(key)) ||
				  /* The other machine may have replaced its own object. */
				  (finding == FINDING_DIFFERS && is_of_other_machine(key)) ||
				  ((world.is_anew || world.scenario.backups) && !*began_calm);
	if ((finding == FINDING_MISSING || finding == FINDING_DIFFERS) && !is_explained)
		story_break("verify says of %s that it %s", key, names[finding]);
	if (world.is_calm && finding == FINDING_ERROR && !has_nothing_to_compare(problem))
		story_break(
			"verify cannot tell what became of %s, and nothing is wrong any more", key);
}

static void on_verify_warning(void *arg, const struct problem *problem)
{
	story("verify: %s", problem->text);
}

static void on_verify_progress(void *arg, const struct verify_counts *counts)
{
}

static bool is_never_stopped(void *arg)
{
	return false;
}

static enum outcome verify(struct audit *audit, struct problem *problem)
{
	const struct verify options = {.place = audit->place,
		.range = {.prefix = audit->prefix},
		.by = audit->began_calm ? VERIFY_BY_DOWNLOAD : VERIFY_BY_HEAD,
		.workers = 2,
		.visitor = {.found = on_found,
			.warned = on_verify_warning,
			.progress = on_verify_progress,
			.arg = &audit->began_calm}};
	struct verify_end end;
	const enum outcome o = verify_run(&options, &end, problem);
	story("verify ends: %s%s, same %llu, unfinished %llu, without a mark %llu", outcome_name(o),
		end.is_complete ? "" : ", not complete",
		(unsigned long long)end.counts.of[FINDING_SAME],
		(unsigned long long)end.counts.of[FINDING_UNFINISHED],
		(unsigned long long)end.counts.of[FINDING_UNKNOWN]);
	return o;
}

static void on_fate(void *arg, const struct mark_report *told)
{
	static const char *const names[FATES] = {[FATE_FORGOTTEN] = "is forgotten",
		[FATE_ABORTED] = "had an upload that is aborted",
		[FATE_DAMAGED] = "is damaged",
		[FATE_FAILED] = "could not be dealt with"};
	if (names[told->fate])
		story("the mark of %s %s", told->key, names[told->fate]);
	if (told->fate == FATE_DAMAGED)
		story_break("the mark of %s is damaged", told->key);
	if (told->fate == FATE_ABORTED)
		judge_aborted(told->key, told->upload_id);
	const uint64_t *missing_since_ns = arg;
	if (told->fate == FATE_FORGOTTEN && missing_since_ns)
		judge_forgotten_as_missing(told->key, told->suffix, *missing_since_ns);
	if (told->fate == FATE_FORGOTTEN)
		judge_forgotten(told->key);
}

static enum outcome forget(struct audit *audit, struct problem *problem)
{
	struct chance chance = chance_of(world.seed + world.runs, "forget");
	uint64_t began_ns = world_now_ns();
	const bool only_missing = chance_hits(&chance, 500);
	const struct forget_options options = {
		.clearing = {.place = audit->place,
			.reporter = {on_fate, only_missing ? &began_ns : NULL}},
		.only_missing = only_missing};
	return forget_prefix(&options, audit->prefix, problem);
}

static enum outcome collect_garbage(struct audit *audit, struct problem *problem)
{
	char observations[4096];
	struct session_options options = {.store = audit->store,
		.lease_ns = 30 * NS_PER_S,
		.heartbeat_ns = 6 * NS_PER_S,
		.abandon = is_never_stopped};
	struct collect_options collecting = {
		.clearing = {.place = audit->place, .reporter = {on_fate, NULL}},
		.source = "sim:gc",
		.keep_uploads_s = 1,
		.keep_marks_s =
			world.scenario.keep_marks_s ? world.scenario.keep_marks_s : UINT64_MAX};
	if (!state_path("sessions", FOLDER_MADE, observations, sizeof observations))
		options.observations = observations;
	if (session_new(&options, &collecting.session))
		return OUTCOME_LOCAL;
	const enum outcome o = collect(&collecting, audit->prefix, problem);
	session_close(collecting.session, audit->conn);
	return o;
}

int audit_run(const struct machine *machine, enum run_kind kind)
{
	static const char *const names[] = {
		[RUN_VERIFY] = "verify", [RUN_GC] = "gc", [RUN_FORGET] = "forget"};
	/* Set first, since opening the marks may take so long that the world becomes calm
	 * meanwhile. */
	struct audit audit = {.began_calm = world.is_calm};
	struct problem problem = {0};
	enum outcome o = OUTCOME_SETUP;
	story("%s begins", names[kind]);
	if (open_audit(&audit, machine, &problem))
		o = kind == RUN_VERIFY ? verify(&audit, &problem)
		    : kind == RUN_GC   ? collect_garbage(&audit, &problem)
				       : forget(&audit, &problem);
	if (o != OUTCOME_OK)
		story("%s: %s", names[kind], problem.text);
	close_audit(&audit);
	return o == OUTCOME_OK ? 0 : 3;
}
