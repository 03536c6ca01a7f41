/* An object of a log, from the listing to its last line. */
#pragma once
#include "cat/known_logs.h"
#include "cat/log_name.h"

struct log_object {
	char *key;              /* owned */
	struct log_key by_name; /* its suffix is borrowed from the key */
	uint64_t size;          /* by the listing */
	bool is_before; /* it is not printed; it shows the place of the printed ones in the log */
	/* Set by read_ahead_heads(): */
	enum outcome outcome; /* outcome of the HEAD */
	struct problem problem;
	struct s3_object head;
	/* Set by log_plan(): */
	struct log_range range; /* the part of the log that it has */
	/* The bytes of the log from here to range.start are missing. range.start: none are. */
	uint64_t gap_start;
	/* Bytes at its beginning that are also in objects before it, or REPEATS_ALL. */
	uint64_t repeated_bytes;
};
/* The log_object.repeated_bytes of an object whose whole content is in objects before it. */
#define REPEATS_ALL UINT64_MAX

/* Whether the content of the object is read to be printed. */
static inline bool log_object_is_read(const struct log_object *object)
{
	return !object->is_before && object->outcome == OUTCOME_OK &&
	       object->repeated_bytes != REPEATS_ALL;
}
