/* An object of a log, from the listing to its last line. */
#pragma once
#include "cat/known_logs.h"
#include "cat/log_name.h"

struct log_object {
	char *key;              /* owned */
	struct log_key by_name; /* its suffix is borrowed from the key */
	uint64_t size;          /* by the listing */
	bool is_before;         /* it comes before the first object that is printed */
	/* Set by read_ahead_heads(): */
	enum outcome outcome; /* outcome of the HEAD */
	struct problem problem;
	struct s3_object head;
	/* Set by log_plan(): */
	struct log_range range; /* the part of the log that it has */
	uint64_t lacks_from;    /* the bytes of the log from here to range.start are missing */
	/* Bytes at its beginning that other objects have. LENGTH_UNKNOWN: they have all of it. */
	uint64_t skipped;
};

/* Whether the content of the object is read to be printed. */
static inline bool log_object_is_read(const struct log_object *object)
{
	return !object->is_before && object->outcome == OUTCOME_OK &&
	       object->skipped != LENGTH_UNKNOWN;
}
