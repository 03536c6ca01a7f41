/* Names and paths in JSON, which has only text. */
#pragma once
#include <jansson.h>

/* Sets "name" to bytes that may be anything: if they are not UTF-8, "name" holds them escaped for
 * reading and "name_bytes" as base64. */
void json_set_bytes(json_t *object, const char *name, const char *bytes);
