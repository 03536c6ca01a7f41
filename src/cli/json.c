#include "cli/json.h"
#include "base/clock.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

/* Which of an event's strings and numbers say something, by type. */
enum fields {
	PATH = 1,
	KEY = 2,
	BYTES = 4,
	TEXT_ = 8,
	REPLY = 16,
	COUNTS = 32,
	RUN = 64,
	OBJECT = 128
};

static const struct {
	const char *name;
	unsigned fields;
} shapes[] = {
	[S3ONCE_EVENT_START] = {"start", RUN},
	[S3ONCE_EVENT_NOTE] = {"note", TEXT_},
	[S3ONCE_EVENT_WARNING] = {"warning", TEXT_},
	[S3ONCE_EVENT_UPLOADED] = {"uploaded", PATH | KEY | BYTES},
	[S3ONCE_EVENT_ADOPTED] = {"adopted", PATH | KEY | BYTES},
	[S3ONCE_EVENT_REFRESHED] = {"refreshed", PATH | KEY},
	[S3ONCE_EVENT_SKIPPED] = {"skipped", PATH | KEY},
	[S3ONCE_EVENT_OUTDATED] = {"outdated", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_PLANNED] = {"planned", PATH | KEY | BYTES},
	[S3ONCE_EVENT_LINK] = {"link", PATH},
	[S3ONCE_EVENT_YOUNG] = {"young", PATH},
	[S3ONCE_EVENT_OVERSIZED] = {"oversized", PATH | BYTES},
	[S3ONCE_EVENT_UNDERSIZED] = {"undersized", PATH | BYTES},
	[S3ONCE_EVENT_SPECIAL] = {"special", PATH | TEXT_},
	[S3ONCE_EVENT_CHANGED] = {"refused", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_HELD] = {"held", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_FAILED] = {"failed", PATH | KEY | TEXT_ | REPLY},
	[S3ONCE_EVENT_RETRY] = {"retry", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_REMOVED] = {"removed", PATH | KEY | BYTES | OBJECT},
	[S3ONCE_EVENT_MOVED] = {"moved", PATH | KEY | BYTES | OBJECT},
	[S3ONCE_EVENT_REMOVABLE] = {"removable", PATH | KEY | BYTES | OBJECT},
	[S3ONCE_EVENT_KEPT] = {"kept", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_NOT_REMOVED] = {"not_removed", PATH | KEY | TEXT_ | REPLY},
	[S3ONCE_EVENT_PROVEN] = {"proven", PATH | KEY | BYTES | OBJECT},
	[S3ONCE_EVENT_UNPROVEN] = {"unproven", PATH | KEY | TEXT_},
	[S3ONCE_EVENT_MANIFEST] = {"manifest", KEY | BYTES | OBJECT},
	[S3ONCE_EVENT_MANIFEST_FAILED] = {"manifest_failed", KEY | TEXT_ | REPLY},
	[S3ONCE_EVENT_PROGRESS] = {"progress", COUNTS},
	[S3ONCE_EVENT_FATAL] = {"fatal", TEXT_ | REPLY},
};

static void set_text(json_t *object, const char *name, const char *value)
{
	json_object_set_new(object, name, json_string(value));
}

void json_set_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

void json_set_time(json_t *object, const char *name, int64_t s)
{
	char time[21];
	if (s > 0)
		clock_format_iso(s, time);
	json_object_set_new(object, name, s > 0 ? json_string(time) : json_null());
}

json_t *json_event(const char *name)
{
	json_t *object = json_object();
	int64_t ns = clock_wall_ns();
	char second[21], time[32];
	clock_format_iso(ns / (int64_t)NS_PER_S, second);
	second[19] = 0;
	snprintf(time, sizeof time, "%s.%03dZ", second, (int)(ns / (int64_t)NS_PER_MS % 1000));
	json_set_number(object, "v", 1);
	set_text(object, "event", name);
	set_text(object, "time", time);
	return object;
}

char *json_line(json_t *object)
{
	char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	return line;
}

void json_print(struct output *output, json_t *object)
{
	char *line = json_line(object);
	output_result(output, line ? line : "");
	free(line);
}

static const char *limit_word(enum s3once_limited_by limit)
{
	static const char *const words[] = {
		[S3ONCE_LIMITED_BY_FILES] = "files",
		[S3ONCE_LIMITED_BY_CEILING] = "ceiling",
		[S3ONCE_LIMITED_BY_LATENCY] = "latency",
		[S3ONCE_LIMITED_BY_THROTTLING] = "throttling",
		[S3ONCE_LIMITED_BY_CPU] = "cpu",
		[S3ONCE_LIMITED_BY_DISK] = "disk",
		[S3ONCE_LIMITED_BY_MEMORY] = "memory",
		[S3ONCE_LIMITED_BY_DESCRIPTORS] = "descriptors",
		[S3ONCE_LIMITED_BY_THREADS] = "threads",
		[S3ONCE_LIMITED_BY_BANDWIDTH] = "bandwidth",
	};
	return (size_t)limit < sizeof words / sizeof *words ? words[limit] : "";
}

static void set_counts(json_t *object, const struct s3once_counts *c)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"files", c->found},
		{"uploaded", c->uploaded},
		{"adopted", c->adopted},
		{"refreshed", c->refreshed},
		{"skipped", c->skipped},
		{"outdated", c->outdated},
		{"refused", c->changed},
		{"failed", c->failed},
		{"held", c->held},
		{"young", c->young},
		{"oversized", c->oversized},
		{"undersized", c->undersized},
		{"links", c->links},
		{"special", c->special},
		{"planned", c->planned},
		{"removed", c->removed},
		{"moved", c->moved},
		{"kept", c->kept},
		{"not_removed", c->not_removed},
		{"removable", c->removable},
		{"bytes_removed", c->bytes_removed},
		{"bytes", c->bytes_uploaded},
		{"bytes_sent", c->bytes_sent},
		{"bytes_found", c->bytes_found},
		{"bytes_settled", c->bytes_settled},
		{"bytes_under_way", c->bytes_under_way},
		{"bytes_kept", c->bytes_kept},
		{"in_flight", c->in_flight},
		{"claims_refused", c->claims_refused},
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		json_set_number(object, numbers[i].name, numbers[i].value);
	json_set_number(object, "concurrency", c->concurrency);
	set_text(object, "limited_by", limit_word(c->limited_by));
	json_object_set_new(object, "scan_complete", json_boolean(c->scan_complete));
	json_object_set_new(object, "seconds", json_real(c->seconds));
}

static void set_run(json_t *object, const struct json_run *run, const char *marks)
{
	set_text(object, "version", s3once_version());
	set_text(object, "bucket", run->bucket);
	json_set_bytes(object, "prefix", run->prefix);
	set_text(object, "marks", marks);
	json_object_set_new(object, "marks_shared", json_boolean(run->marks_shared));
	json_object_set_new(object, "dry_run", json_boolean(run->dry_run));
}

/* An event of a run. */
static json_t *run_event(const struct json_run *run, const char *name)
{
	json_t *object = json_event(name);
	if (run->job)
		json_set_bytes(object, "job", run->job);
	return object;
}

json_t *json_of_event(const struct json_run *run, const struct s3once_event *event)
{
	if ((size_t)event->type >= sizeof shapes / sizeof *shapes)
		return NULL;
	unsigned fields = shapes[event->type].fields;
	json_t *object = run_event(run, shapes[event->type].name);
	if (fields & RUN)
		set_run(object, run, event->text);
	if (fields & PATH)
		json_set_bytes(object, "path", event->path);
	if (fields & KEY)
		json_set_bytes(object, "key", event->key);
	if (fields & BYTES)
		json_set_number(object, "bytes", event->bytes);
	if (fields & OBJECT) {
		json_set_bytes(object, "version_id", event->version_id);
		json_set_bytes(object, "etag", event->etag);
		json_set_bytes(object, "checksum", event->checksum);
	}
	if (fields & TEXT_)
		json_set_bytes(object, "text", event->text);
	if (fields & REPLY) {
		json_set_bytes(object, "code", event->code);
		json_set_bytes(object, "request_id", event->request_id);
	}
	if (fields & COUNTS)
		set_counts(object, event->counts);
	return object;
}

json_t *json_summary(const struct json_run *run, const struct s3once_push *push, int exit_code)
{
	json_t *object = run_event(run, "summary");
	json_t *requests = json_object();
	uint64_t count;
	const char *kind;
	json_set_number(object, "exit", (uint64_t)exit_code);
	json_object_set_new(object, "marks_shared", json_boolean(run->marks_shared));
	json_object_set_new(object, "dry_run", json_boolean(run->dry_run));
	set_counts(object, s3once_push_counts(push));
	for (size_t i = 0; (kind = s3once_push_requests(push, i, &count)); i++)
		if (count)
			json_set_number(requests, kind, count);
	json_object_set_new(object, "requests", requests);
	const char *manifest = s3once_push_manifest(push);
	if (*manifest)
		json_set_bytes(object, "manifest", manifest);
	else
		json_object_set_new(object, "manifest", json_null());
	return object;
}
