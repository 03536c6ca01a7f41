/* The events of --json, as docs/json.md describes them: one JSON object a line. Pure but for the
 * time, which each event carries, and json_print(). */
#pragma once
#include "base/json_text.h"
#include "base/problem.h"
#include "cli/output.h"

/* Returns a new event with "v", "event" and "time", as a new reference. NULL: out of memory. */
json_t *json_event(const char *name);
/* Sets members, and returns the object: json_set(object, NUMBER("files", n), TIME("ended", s)). */
#define json_set(object, ...)                                                                      \
	json_set_members(object, (const struct json_member[]){__VA_ARGS__, {NULL}})
struct json_member {
	const char *name;
	enum { IS_BYTES, IS_NUMBER, IS_TIME, IS_BOOLEAN, IS_NODE } kind;
	union {
		const char *bytes;
		int64_t number;
		json_t *node;
	};
};
json_t *json_set_members(json_t *object, const struct json_member *members);
/* A string, which json_set_bytes() sets. NULL becomes null. */
#define BYTES(name, value)  ((struct json_member){(name), IS_BYTES, .bytes = (value)})
#define NUMBER(name, value) ((struct json_member){(name), IS_NUMBER, .number = (int64_t)(value)})
/* Seconds since 1970, as ISO 8601; 0 or less is null. */
#define TIME(name, value)    ((struct json_member){(name), IS_TIME, .number = (value)})
#define BOOLEAN(name, value) ((struct json_member){(name), IS_BOOLEAN, .number = (value)})
/* Takes the reference of a json_t. */
#define NODE(name, value) ((struct json_member){(name), IS_NODE, .node = (value)})

/* Sets "text", "code" and "request_id" of a problem; each is "" if `problem` is NULL. Returns the
 * object. */
json_t *json_set_problem(json_t *object, const struct problem *problem);
/* Returns the object as one line without a newline, which the caller frees. Takes the reference.
 * NULL: out of memory. */
char *json_line(json_t *object);

/* Prints the object as a line of standard output; takes the reference. If memory has run out, an
 * error is printed instead. */
void json_print(struct output *output, json_t *object);
