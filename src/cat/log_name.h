/* The names of a log's objects, as the key template of rotated logs makes them:
 *
 *	web1/nginx/access-20261120T075959Z-0f3c9a61.log~6000.zst
 *
 * Such a name has the family ("web1/nginx/access.log"), the time of the last line in UTC, the
 * beginning of the id of the content, for a piece the number of bytes before it in the log, and
 * perhaps a suffix of compression. Pure. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct log_name {
	struct text prefix; /* prefix of all keys: "web1/nginx/access-" */
	const char *ext;    /* ".log", or ""; borrowed from the family */
};
/* Sets *ret to the name of a family, which is borrowed. Returns 0 or -ENOMEM. Call log_name_clear()
 * in any case. */
int log_name_set(struct log_name *ret, const char *family);
void log_name_clear(struct log_name *name);

#define LOG_ID_CHARS 8
/* The parts of an object's key. */
struct log_key {
	int64_t time_s;            /* since 1970 */
	char id[LOG_ID_CHARS + 1]; /* the first hex digits of the SHA-256 of the content */
	uint64_t offset;           /* bytes of the log before those of the object */
	const char *suffix;        /* suffix of compression, or ""; borrowed from the key */
};
/* Reads a key. Returns false if it is not that of an object of this log. */
bool log_key_read(const struct log_name *name, const char *key, struct log_key *ret);
/* If the base name is that of an object of some log, adds the name of its family. */
bool log_family_of_object(const char *base_name, struct text *family);
