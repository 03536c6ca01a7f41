/* Implements trace.h. It judges nothing. */
#include "trace.h"
#include "tasks.h"
#include <string.h>

static FILE *trace;

void trace_to(FILE *to)
{
	trace = to;
}

static void tell(json_t *line)
{
	json_dumpf(line, trace, JSON_COMPACT | JSON_SORT_KEYS);
	fputc('\n', trace);
	json_decref(line);
}

/* Returns a member of a request's body, or null. */
static json_t *member(const json_t *body, const char *name)
{
	json_t *value = json_object_get(body, name);
	return value ? json_deep_copy(value) : json_null();
}

void trace_item(const struct wire_request *request, const char *pk, const char *sk,
	const json_t *old, const json_t *now)
{
	static const char *const names[] = {"ConditionExpression", "ExpressionAttributeNames",
		"ExpressionAttributeValues", "Statements"};
	if (!trace)
		return;
	json_t *body = json_loadb((const char *)request->body, request->body_bytes, 0, NULL);
	json_t *asked = json_object();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		json_object_set_new(asked, names[i], member(body, names[i]));
	tell(json_pack("{s:I, s:s, s:s, s:o, s:o, s:o}", "ns", (json_int_t)world_now_ns(), "pk", pk,
		"sk", sk, "asked", asked, "old", old ? json_deep_copy(old) : json_null(), "now",
		now ? json_deep_copy(now) : json_null()));
	json_decref(body);
}

static json_t *header(const struct wire_request *request, const char *name)
{
	const char *value = request ? wire_header(request, name) : NULL;
	return value ? json_string(value) : json_null();
}

void trace_object(const struct wire_request *request, const struct s3_stored *now)
{
	char content[2 * sizeof now->content.md5 + 1] = "";
	if (!trace)
		return;
	for (size_t i = 0; i < sizeof now->content.md5; i++)
		snprintf(content + 2 * i, 3, "%02x", now->content.md5[i]);
	tell(json_pack("{s:I, s:s, s:s, s:s, s:b, s:o, s:o}", "ns", (json_int_t)world_now_ns(),
		"object", now->key, "etag", now->etag, "content", content, "is_foreign", !request,
		"if_none_match", header(request, "if-none-match"), "if_match",
		header(request, "if-match")));
}

void trace_upload(void *arg, const struct s3_upload_step *step)
{
	if (trace)
		tell(json_pack("{s:I, s:s, s:s, s:s, s:i}", "ns", (json_int_t)world_now_ns(), "key",
			step->key, "upload", step->id, "what", step->what, "part",
			(int)step->part));
}

void trace_bucket_anew(void)
{
	if (trace)
		tell(json_pack("{s:I, s:b}", "ns", (json_int_t)world_now_ns(), "is_anew", 1));
}
