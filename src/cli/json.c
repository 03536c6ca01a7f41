#include "cli/json.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/json_shapes.h"
#include <stdlib.h>
#include <string.h>

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
	if (line)
		output_result(output, line);
	else
		output_say(output, "error: an event is lost: out of memory");
	free(line);
}

static void set_counts(json_t *object, const struct s3once_counts *c)
{
	for (const struct json_count *count = json_counts; count->name; count++)
		json_set_number(
			object, count->name, *(const uint64_t *)((const char *)c + count->offset));
	json_set_number(object, "in_flight", c->in_flight);
	json_set_number(object, "concurrency", c->concurrency);
	set_text(object, "limited_by", json_limit_word(c->limited_by));
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
	if (event->type >= JSON_SHAPES)
		return NULL;
	unsigned fields = json_shapes[event->type].fields;
	json_t *object = run_event(run, json_shapes[event->type].name);
	if (fields & HAS_RUN)
		set_run(object, run, event->text);
	if (fields & HAS_PATH)
		json_set_bytes(object, "path", event->path);
	if (fields & HAS_KEY)
		json_set_bytes(object, "key", event->key);
	if (fields & HAS_BYTES)
		json_set_number(object, "bytes", event->bytes);
	if (fields & HAS_OBJECT) {
		json_set_bytes(object, "version_id", event->version_id);
		json_set_bytes(object, "etag", event->etag);
		json_set_bytes(object, "checksum", event->checksum);
	}
	if (fields & HAS_TEXT)
		json_set_bytes(object, "text", event->text);
	if (fields & HAS_REPLY) {
		json_set_bytes(object, "code", event->code);
		json_set_bytes(object, "request_id", event->request_id);
	}
	if (fields & HAS_COUNTS)
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
