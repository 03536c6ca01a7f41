/* INI files as AWS's tools write them: [section], key = value (or key: value), and one level of
 * indented sub-keys below a key without value. A line that begins with # or ; is a comment; in a
 * value, one that begins after a space. Source: "Shared config and credentials files" (AWS SDKs and
 * Tools Reference Guide), and botocore where that is silent. */
#pragma once
#include <stdbool.h>

struct ini;

/* Reads a whole file (at most 1 MiB, else -EFBIG). Returns 0, an error of named_file_read(),
 * or -EBADMSG for a file that is no INI; then *ret_line, if not NULL, is the line (from 1). The
 * result is immutable; free with ini_free. */
int ini_load(const char *path, struct ini **ret, int *ret_line);
/* Overwrites what was read: it may hold secrets. */
void ini_free(struct ini *ini);

/* The value of key in [section], or NULL. Borrowed until ini_free. A section may be repeated: the
 * last value counts. A sub-key of an indented block is asked for as "key.subkey". A line indented
 * deeper than a key with a value continues that after a newline. Section names are compared after
 * trimming, folding inner spaces and dropping quotes ([profile "a b"] is "profile a b"); keys
 * without regard to case. */
const char *ini_get(const struct ini *ini, const char *section, const char *key);
/* A line of the file. Borrowed until ini_free; lines of one section have the same section pointer,
 * and a section that comes again has another. */
struct ini_entry {
	const char *section, *parent,
		*key; /* key NULL: the section's own line; parent: of a sub-key */
	char *value;
};
/* Every line in order; nonzero from `each` ends it and is returned. */
int ini_each(
	const struct ini *ini, int (*each)(void *arg, const struct ini_entry *entry), void *arg);
/* Whether [section] stands in the file. */
bool ini_has_section(const struct ini *ini, const char *section);
