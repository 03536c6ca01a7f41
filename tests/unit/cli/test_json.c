#include "../check.h"
#include "base/text.h"
#include "cli/push/run_events.h"
#include "upload/push_struct.h"
#include <stdlib.h>

static const struct push_options run = {.run = {.bucket = "bucket", .prefix = "p"}};

static json_t *object_of(enum s3once_event_type type)
{
	const struct s3once_counts counts = {.found = 3, .changed = 1, .seconds = 1.5};
	const struct s3once_event event = {.type = type,
		.path = "dir/\xFF\n",
		.key = "p/\xC3\xA4",
		.bytes = 7,
		.text = "a sentence",
		.version_id = "v1",
		.etag = "e1",
		.checksum = "crc32c:AAAAAA==",
		.code = "AccessDenied",
		.request_id = "R1",
		.counts = &counts};
	return json_of_event(&run, &event);
}

static const char *string_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static void check_bytes(void)
{
	json_t *object = object_of(S3ONCE_EVENT_FAILED);
	CHECK_STRING(string_of(object, "event"), "failed");
	CHECK_STRING(string_of(object, "path"), "dir/\\xff\\n");
	CHECK_STRING(string_of(object, "path_bytes"), "ZGlyL/8K");
	CHECK_STRING(string_of(object, "key"), "p/\xC3\xA4");
	CHECK(!json_object_get(object, "key_bytes"));
	CHECK(!json_object_get(object, "bytes"));
	CHECK_STRING(string_of(object, "code"), "AccessDenied");
	CHECK_STRING(string_of(object, "request_id"), "R1");
	CHECK_INT(json_integer_value(json_object_get(object, "v")), 1);
	json_decref(object);
}

/* The event of each type, and its members behind v, event and time, in their order. */
static const struct {
	enum s3once_event_type type;
	const char *event, *members;
} types[] = {
	{S3ONCE_EVENT_START, "start", "version bucket prefix marks marks_shared dry_run "},
	{S3ONCE_EVENT_NOTE, "note", "text "},
	{S3ONCE_EVENT_WARNING, "warning", "text "},
	{S3ONCE_EVENT_UPLOADED, "uploaded", "path path_bytes key bytes "},
	{S3ONCE_EVENT_ADOPTED, "adopted", "path path_bytes key bytes "},
	{S3ONCE_EVENT_REFRESHED, "refreshed", "path path_bytes key "},
	{S3ONCE_EVENT_SKIPPED, "skipped", "path path_bytes key "},
	{S3ONCE_EVENT_OUTDATED, "outdated", "path path_bytes key text "},
	{S3ONCE_EVENT_PLANNED, "planned", "path path_bytes key bytes "},
	{S3ONCE_EVENT_LINK, "link", "path path_bytes "},
	{S3ONCE_EVENT_WAITING, "waiting", "path path_bytes text reason modified "},
	{S3ONCE_EVENT_OVERSIZED, "oversized", "path path_bytes bytes "},
	{S3ONCE_EVENT_UNDERSIZED, "undersized", "path path_bytes bytes "},
	{S3ONCE_EVENT_SPECIAL, "special", "path path_bytes text "},
	{S3ONCE_EVENT_EXCLUDED, "excluded", "path path_bytes "},
	{S3ONCE_EVENT_CHANGED, "refused", "path path_bytes key text "},
	{S3ONCE_EVENT_HELD, "held", "path path_bytes key text "},
	{S3ONCE_EVENT_FAILED, "failed", "path path_bytes key text code request_id "},
	{S3ONCE_EVENT_LEFT, "left", "path path_bytes key bytes "},
	{S3ONCE_EVENT_RETRY, "retry", "path path_bytes key text "},
	{S3ONCE_EVENT_REMOVED, "removed", "path path_bytes key bytes version_id etag checksum "},
	{S3ONCE_EVENT_MOVED, "moved", "path path_bytes key bytes version_id etag checksum "},
	{S3ONCE_EVENT_KEPT, "kept", "path path_bytes key text "},
	{S3ONCE_EVENT_NOT_REMOVED, "not_removed", "path path_bytes key text code request_id "},
	{S3ONCE_EVENT_REMOVABLE, "removable",
		"path path_bytes key bytes version_id etag checksum "},
	{S3ONCE_EVENT_PROVEN, "proven", "path path_bytes key bytes version_id etag checksum "},
	{S3ONCE_EVENT_UNPROVEN, "unproven", "path path_bytes key text "},
	{S3ONCE_EVENT_MANIFEST, "manifest", "key bytes version_id etag checksum "},
	{S3ONCE_EVENT_MANIFEST_FAILED, "manifest_failed", "key text code request_id "},
	{S3ONCE_EVENT_FATAL, "fatal", "text code request_id "},
};

static void check_types(void)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct text members = TEXT(400);
		json_t *object = object_of(types[i].type), *value;
		const char *name;
		size_t n = 0;
		json_object_foreach(object, name, value)
		{
			if (n++ >= 3)
				text_addf(&members, "%s ", name);
		}
		CHECK_STRING(string_of(object, "event"), types[i].event);
		CHECK_STRING(text_string(&members), types[i].members);
		text_clear(&members);
		json_decref(object);
	}
	/* These, PROGRESS and SUMMARY are all types. */
	CHECK_INT(sizeof types / sizeof *types + 1, S3ONCE_EVENT_SUMMARY);
}

static void check_every_type_is_one_line(void)
{
	for (int type = S3ONCE_EVENT_START; type < S3ONCE_EVENT_SUMMARY; type++) {
		char *line = json_line(object_of((enum s3once_event_type)type));
		CHECK(line && !strchr(line, '\n') && strstr(line, "{\"v\":1,\"event\":\"") == line);
		free(line);
	}
	CHECK(!object_of(S3ONCE_EVENT_SUMMARY));
	CHECK(!json_line(NULL));
}

static void check_job(void)
{
	const struct push_options of_job = {
		.job = "web\xFF", .run = {.bucket = "bucket", .prefix = ""}};
	const struct s3once_event event = {.type = S3ONCE_EVENT_NOTE, .text = "a sentence"};
	json_t *object = json_of_event(&of_job, &event);
	CHECK_STRING(string_of(object, "job"), "web\\xff");
	CHECK_STRING(string_of(object, "job_bytes"), "d2Vi/w==");
	json_decref(object);
	object = json_of_event(&run, &event);
	CHECK(!json_object_get(object, "job"));
	json_decref(object);
}

/* Each counter has the member of its name, and the kind by which the files of a run are summed. */
#define SAME(member, kind)                                                                         \
	{                                                                                          \
#member, offsetof(struct s3once_counts, member), kind                              \
	}
static const struct {
	const char *name;
	size_t at;
	enum counter_kind kind;
} counters[] = {
	{"files", offsetof(struct s3once_counts, found), COUNTS_SOMETHING},
	{"refused", offsetof(struct s3once_counts, changed), COUNTS_NOT_THERE},
	{"bytes", offsetof(struct s3once_counts, bytes_uploaded), COUNTS_SOMETHING},
	SAME(uploaded, COUNTS_IN_S3),
	SAME(skipped, COUNTS_IN_S3),
	SAME(adopted, COUNTS_IN_S3),
	SAME(refreshed, COUNTS_IN_S3),
	SAME(outdated, COUNTS_NOT_THERE),
	SAME(failed, COUNTS_NOT_THERE),
	SAME(held, COUNTS_NOT_THERE),
	SAME(waiting, COUNTS_LEFT_OUT),
	SAME(oversized, COUNTS_LEFT_OUT),
	SAME(undersized, COUNTS_LEFT_OUT),
	SAME(links, COUNTS_LEFT_OUT),
	SAME(special, COUNTS_LEFT_OUT),
	SAME(excluded, COUNTS_SOMETHING),
	SAME(planned, COUNTS_SOMETHING),
	SAME(left, COUNTS_SOMETHING),
	SAME(removed, COUNTS_SOMETHING),
	SAME(moved, COUNTS_SOMETHING),
	SAME(kept, COUNTS_SOMETHING),
	SAME(not_removed, COUNTS_SOMETHING),
	SAME(unproven, COUNTS_SOMETHING),
	SAME(removable, COUNTS_SOMETHING),
	SAME(bytes_removed, COUNTS_SOMETHING),
	SAME(bytes_sent, COUNTS_SOMETHING),
	SAME(bytes_moved, COUNTS_SOMETHING),
	SAME(bytes_found, COUNTS_SOMETHING),
	SAME(bytes_settled, COUNTS_SOMETHING),
	SAME(bytes_under_way, COUNTS_SOMETHING),
	SAME(bytes_kept, COUNTS_SOMETHING),
	SAME(bytes_resumed, COUNTS_SOMETHING),
	SAME(bytes_left, COUNTS_SOMETHING),
	SAME(claims_refused, COUNTS_SOMETHING),
};

static void check_counters(void)
{
	const size_t n = sizeof counters / sizeof *counters;
	size_t in_table = 0;
	while (run_counters[in_table].name)
		in_table++;
	CHECK_INT(in_table, n);
	for (size_t i = 0; i < n; i++) {
		const uint64_t seven = 7;
		struct s3once_counts counts = {0};
		struct s3once_event event = {.type = S3ONCE_EVENT_PROGRESS, .counts = &counts};
		memcpy((char *)&counts + counters[i].at, &seven, sizeof seven);
		json_t *object = json_of_event(&run, &event);
		if (!CHECK_INT(json_integer_value(json_object_get(object, counters[i].name)), 7))
			fprintf(stderr, "\t%s\n", counters[i].name);
		for (int kind = COUNTS_SOMETHING; kind <= COUNTS_LEFT_OUT; kind++)
			if (!CHECK_INT(counters_sum(&counts, (enum counter_kind)kind),
				    (int)counters[i].kind == kind ? 7 : 0))
				fprintf(stderr, "\t%s\n", counters[i].name);
		json_decref(object);
	}
}

/* The words for a reason to wait, and for a limit of the requests at once. */
static void check_words(void)
{
	static const char *const reasons[] = {"", "young", "live", "no_line", "compressing", "copy",
		"unfinished", "changed", "family"};
	static const char *const limits[] = {"files", "ceiling", "latency", "throttling", "cpu",
		"disk", "memory", "descriptors", "threads", "bandwidth"};
	struct s3once_counts counts = {0};
	struct s3once_event event = {.path = "", .text = "", .counts = &counts};
	CHECK_INT(sizeof reasons / sizeof *reasons, S3ONCE_WAITS);
	event.type = S3ONCE_EVENT_WAITING;
	for (int i = 0; i < S3ONCE_WAITS; i++) {
		event.wait = (enum s3once_wait)i;
		json_t *object = json_of_event(&run, &event);
		CHECK_STRING(string_of(object, "reason"), reasons[i]);
		json_decref(object);
	}
	event.type = S3ONCE_EVENT_PROGRESS;
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		counts.limited_by = (enum s3once_limited_by)i;
		json_t *object = json_of_event(&run, &event);
		CHECK_STRING(string_of(object, "limited_by"), limits[i]);
		json_decref(object);
	}
}

/* Only the first and the last event say whether others share the marks, and since when the output
 * of a pipe is there. */
static void check_summary(void)
{
	static const struct {
		const char *marks;
		bool are_shared;
	} rows[] = {
		{NULL, false}, {"local", false}, {"sqlite:/marks.db", false}, {"dynamodb:t", true}};
	struct s3once_push *push = calloc(1, sizeof *push);
	for (unsigned why = 0; why < S3ONCE_WAITS; why++)
		push->run.report.locked.waiting[why] =
			(struct s3once_waiting){.files = why == S3ONCE_WAIT_COPY ? 2 : 0,
				.oldest_ns = 86400 * (int64_t)1000000000,
				.text = "why",
				.path = "a"};
	push->counts.uploaded = 7;
	push->counts.repeats_s = 86400;
	push->counts.repeats_age_s = 3;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct push_options options = run;
		options.run.marks = rows[i].marks;
		options.run.dry_run = i == 0;
		json_t *object = json_summary(&options, push, 6);
		CHECK(json_is_true(json_object_get(object, "marks_shared")) == rows[i].are_shared);
		CHECK(json_is_true(json_object_get(object, "dry_run")) == (i == 0));
		CHECK_INT(json_integer_value(json_object_get(object, "exit")), 6);
		CHECK_INT(json_integer_value(json_object_get(object, "uploaded")), 7);
		CHECK_STRING(string_of(object, "uploaded_before"), "1970-01-02T00:00:00Z");
		const json_t *waits = json_object_get(object, "waits");
		CHECK_INT(json_array_size(waits), 1);
		CHECK_STRING(string_of(json_array_get(waits, 0), "reason"), "copy");
		CHECK_STRING(string_of(json_array_get(waits, 0), "oldest"), "1970-01-02T00:00:00Z");
		CHECK_STRING(string_of(json_array_get(waits, 0), "path"), "a");
		CHECK_INT(
			json_integer_value(json_object_get(json_array_get(waits, 0), "files")), 2);
		json_decref(object);
	}
	json_t *object = json_summary(&run, NULL, 2);
	CHECK(json_is_null(json_object_get(object, "uploaded_before")));
	CHECK(!json_object_get(object, "files"));
	json_decref(object);
	free(push);
}

static void check_counts(void)
{
	json_t *object = object_of(S3ONCE_EVENT_PROGRESS);
	CHECK_INT(json_integer_value(json_object_get(object, "files")), 3);
	CHECK_INT(json_integer_value(json_object_get(object, "refused")), 1);
	CHECK(json_real_value(json_object_get(object, "seconds")) == 1.5);
	CHECK(json_is_false(json_object_get(object, "scan_complete")));
	json_decref(object);
}

int main(void)
{
	check_bytes();
	check_types();
	check_every_type_is_one_line();
	check_job();
	check_counters();
	check_words();
	check_summary();
	check_counts();
	return check_result();
}
