/* The events of --json, as docs/json.md describes them: one JSON object a line. Pure but for the
 * time, which each event carries, and json_print(). */
#pragma once
#include "base/json_text.h"
#include "base/problem.h"
#include "cli/output.h"

/* An event's object: "v", "event" and "time". A new reference, or NULL if out of memory. */
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
/* As json_set_bytes() has it; NULL is null. */
#define BYTES(name, value)  ((struct json_member){(name), IS_BYTES, .bytes = (value)})
#define NUMBER(name, value) ((struct json_member){(name), IS_NUMBER, .number = (int64_t)(value)})
/* Seconds since 1970, as ISO 8601; 0 or less is null. */
#define TIME(name, value)    ((struct json_member){(name), IS_TIME, .number = (value)})
#define BOOLEAN(name, value) ((struct json_member){(name), IS_BOOLEAN, .number = (value)})
/* Takes the reference of a json_t. */
#define NODE(name, value) ((struct json_member){(name), IS_NODE, .node = (value)})

void json_set_number(json_t *object, const char *name, uint64_t value);
/* The text, the code and the request id of a problem; each is "" if it is NULL. Returns the object.
 */
json_t *json_set_problem(json_t *object, const struct problem *problem);
/* The line without newline; takes the reference. The caller frees it; NULL if out of memory. */
char *json_line(json_t *object);

/* Prints the object as a line of standard output; takes the reference. If memory runs out, that is
 * said instead. */
void json_print(struct output *output, json_t *object);
