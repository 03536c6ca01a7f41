/* How the events of a run are written as JSON, and read back: their names and what each has. */
#pragma once
#include "s3once/push.h"
#include <stddef.h>

/* Which of an event's strings and numbers say something. */
enum json_fields {
	HAS_PATH = 1,
	HAS_KEY = 2,
	HAS_BYTES = 4,
	HAS_TEXT = 8,
	HAS_REPLY = 16,
	HAS_COUNTS = 32,
	HAS_RUN = 64,
	HAS_OBJECT = 128
};

struct json_shape {
	const char *name;
	unsigned fields; /* of enum json_fields */
};
/* By type. SUMMARY is none of them. */
#define JSON_SHAPES S3ONCE_EVENT_SUMMARY
extern const struct json_shape json_shapes[JSON_SHAPES];

/* The numbers of struct s3once_counts that are uint64_t. A NULL name ends the list. */
struct json_count {
	const char *name;
	size_t offset;
};
extern const struct json_count json_counts[];

const char *json_limit_word(enum s3once_limited_by limit);
