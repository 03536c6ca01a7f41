/* Strings in JSON objects. JSON has only text, and names and paths may be any bytes. */
#pragma once
#include <jansson.h>

/* Sets the member `name` to bytes that may be anything. If they are not UTF-8, it holds them in a
 * readable, escaped form, and a second member, whose name is `name` followed by "_bytes", holds
 * them as base64. */
void json_set_bytes(json_t *object, const char *name, const char *bytes);

/* Returns the value of the member `name`, or "" if it is missing or no string. Borrowed from the
 * object, which may be NULL. */
const char *json_text(const json_t *object, const char *name);
