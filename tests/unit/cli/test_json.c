#include "../check.h"
#include "cli/push/run_events.h"
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
	check_every_type_is_one_line();
	check_job();
	check_counts();
	return check_result();
}
