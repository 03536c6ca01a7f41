#include "cli/event_read.h"
#include "base/json_text.h"
#include "cli/json_shapes.h"
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES_MAX (256U << 10)
#define TIME_CHARS      19   /* "2026-11-21T07:56:28" */
#define SECONDS_MOST    1e12 /* of a run: no line of s3once says more */

static const struct {
	const char *name;
	size_t offset;
	bool is_escaped; /* it is printed as it is; the others are escaped when they are */
} strings[] = {
	{"job", offsetof(struct event_read, job), false},
	{"bucket", offsetof(struct event_read, bucket), true},
	{"prefix", offsetof(struct event_read, prefix), false},
	{"marks", offsetof(struct event_read, marks), true},
	{"manifest", offsetof(struct event_read, manifest), false},
	{"path", offsetof(struct event_read, path), false},
	{"key", offsetof(struct event_read, key), false},
	{"text", offsetof(struct event_read, text), true},
	{"code", offsetof(struct event_read, code), true},
	{"request_id", offsetof(struct event_read, request_id), true},
};
enum { STRINGS = sizeof strings / sizeof *strings };

static struct text *string_at(struct event_read *read, size_t i)
{
	return (struct text *)(void *)((char *)read + strings[i].offset);
}

/* The exact bytes of what is not UTF-8 are beside it. False if they are none. */
static bool add_bytes_of(struct text *t, const json_t *base64)
{
	const char *encoded = json_string_value(base64);
	unsigned char *bytes = encoded ? malloc(strlen(encoded) + 1) : NULL;
	const int n = bytes ? base64_decode(encoded, bytes) : -1;
	if (n > 0)
		text_add_bytes(t, bytes, (size_t)n);
	free(bytes);
	return n >= 0;
}

static bool read_string(struct event_read *ret, const json_t *object, size_t i)
{
	char bytes_name[32];
	struct text *t = string_at(ret, i);
	const char *value = json_text(object, strings[i].name);
	snprintf(bytes_name, sizeof bytes_name, "%s_bytes", strings[i].name);
	const json_t *base64 = json_object_get(object, bytes_name);
	if (base64)
		return add_bytes_of(t, base64);
	if (strings[i].is_escaped)
		text_add_escaped_again(t, value);
	else
		text_add(t, value);
	return true;
}

/* A time is printed before each line. */
static bool read_time(struct event_read *ret, const json_t *object)
{
	static const char like[] = "0000-00-00T00:00:00";
	const char *time = json_string_value(json_object_get(object, "time"));
	for (size_t i = 0; i < TIME_CHARS; i++) {
		const bool is_digit = time && time[i] >= '0' && time[i] <= '9';
		if (!time || (like[i] == '0' ? !is_digit : time[i] != like[i]))
			return false;
	}
	snprintf(ret->time, sizeof ret->time, "%.*sZ", TIME_CHARS, time);
	return true;
}

static uint64_t number(const json_t *object, const char *name)
{
	const json_int_t n = json_integer_value(json_object_get(object, name));
	return n > 0 ? (uint64_t)n : 0;
}

static void read_counts(struct s3once_counts *ret, const json_t *object)
{
	*ret = (struct s3once_counts){0};
	for (const struct json_count *count = json_counts; count->name; count++)
		*(uint64_t *)(void *)((char *)ret + count->offset) = number(object, count->name);
	ret->in_flight = (unsigned)number(object, "in_flight");
	ret->concurrency = (unsigned)number(object, "concurrency");
	ret->limited_by = json_limit_of(json_text(object, "limited_by"));
	ret->scan_complete = json_is_true(json_object_get(object, "scan_complete"));
	ret->seconds = json_number_value(json_object_get(object, "seconds"));
}

/* The type and its fields. False if no event of a run has this name. */
static bool find_shape(const char *name, enum s3once_event_type *ret, unsigned *ret_fields)
{
	if (strcmp(name, "summary") == 0) {
		*ret = S3ONCE_EVENT_SUMMARY;
		*ret_fields = HAS_COUNTS;
		return true;
	}
	for (int i = 0; i < JSON_SHAPES; i++)
		if (json_shapes[i].name && strcmp(json_shapes[i].name, name) == 0) {
			*ret = (enum s3once_event_type)i;
			*ret_fields = json_shapes[i].fields;
			return i != S3ONCE_EVENT_PROVEN && i != S3ONCE_EVENT_UNPROVEN;
		}
	return false;
}

/* Whether what people are told of it is there. */
static bool has_fields(const json_t *object, unsigned fields)
{
	const struct {
		unsigned field;
		const char *name;
	} needed[] = {{HAS_PATH, "path"}, {HAS_KEY, "key"}, {HAS_TEXT, "text"}};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (fields & needed[i].field &&
			!json_is_string(json_object_get(object, needed[i].name)))
			return false;
	const double seconds = json_number_value(json_object_get(object, "seconds"));
	return !(fields & HAS_COUNTS) || (json_is_integer(json_object_get(object, "files")) &&
						 seconds >= 0 && seconds <= SECONDS_MOST);
}

static const char *read_object(struct event_read *ret, const json_t *object)
{
	enum s3once_event_type type;
	unsigned fields;
	const char *name = json_string_value(json_object_get(object, "event"));
	const json_t *v = json_object_get(object, "v");
	if (!name || !json_is_integer(v) || !read_time(ret, object))
		return "is no event of s3once";
	if (json_integer_value(v) != 1)
		return "is of a later version of s3once";
	if (!find_shape(name, &type, &fields))
		return "is an event of another command than push, run and watch";
	bool is_whole = has_fields(object, fields);
	for (size_t i = 0; i < STRINGS; i++)
		is_whole = read_string(ret, object, i) && is_whole;
	if (!is_whole)
		return "lacks fields of its event";
	read_counts(&ret->counts, object);
	ret->dry_run = json_is_true(json_object_get(object, "dry_run"));
	ret->exit_code = (int)number(object, "exit");
	ret->event = (struct s3once_event){.type = type,
		.path = text_string(&ret->path),
		.key = text_string(&ret->key),
		.bytes = number(object, "bytes"),
		.text = text_string(&ret->text),
		.version_id = "",
		.etag = "",
		.checksum = "",
		.code = text_string(&ret->code),
		.request_id = text_string(&ret->request_id),
		.counts = fields & HAS_COUNTS ? &ret->counts : NULL};
	return NULL;
}

const char *event_read(struct event_read *ret, const char *line, size_t n)
{
	for (size_t i = 0; i < STRINGS; i++) {
		string_at(ret, i)->max = VALUE_BYTES_MAX;
		text_reset(string_at(ret, i));
	}
	json_t *object = json_loadb(line, n, 0, NULL);
	const char *why = json_is_object(object) ? read_object(ret, object)
			  : object               ? "is no event of s3once"
						 : "is not JSON, or only a part of a line";
	json_decref(object);
	return why;
}

void event_read_clear(struct event_read *read)
{
	for (size_t i = 0; i < STRINGS; i++)
		text_clear(string_at(read, i));
}
