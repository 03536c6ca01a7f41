/* The events of --json, as docs/json.md describes them: one JSON object a line. Pure but for the
 * time, which each event carries, and json_print(). */
#pragma once
#include "base/json_text.h"
#include "cli/output.h"
#include <stdbool.h>

/* An event's object: "v", "event" and "time". A new reference, or NULL if out of memory. */
json_t *json_event(const char *name);
void json_set_number(json_t *object, const char *name, uint64_t value);
/* Sets the time as ISO 8601, from seconds since 1970; null if it is 0 or less. */
void json_set_time(json_t *object, const char *name, int64_t s);
/* The line without newline; takes the reference. The caller frees it; NULL if out of memory. */
char *json_line(json_t *object);

/* Prints the object as a line of standard output; takes the reference. If memory runs out, that is
 * said instead. */
void json_print(struct output *output, json_t *object);
