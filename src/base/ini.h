/* INI files as AWS's tools write them: [section], key = value (or key: value), and one level of
 * indented sub-keys below a key without value. A line that begins with # or ; is a comment. Within
 * a value, a comment begins with # or ; after a space, but not within quotes. Source: "Shared
 * config and credentials files" (AWS SDKs and Tools Reference Guide), and botocore's behaviour
 * where the guide is silent. */
#pragma once
#include <stdbool.h>

struct ini;

/* Reads a whole file (at most 1 MiB, else -EFBIG). Returns 0, an error of named_file_read(),
 * or -EBADMSG for a file that is no INI; then *ret_line, if not NULL, is the line (from 1). The
 * result is immutable; free with ini_free. */
int ini_load(const char *path, struct ini **ret, int *ret_line);
/* Overwrites the content, which may hold secrets, and frees it. */
void ini_free(struct ini *ini);

/* Returns the value of `key` in [section], or NULL. Borrowed until ini_free. If the key or the
 * section is repeated, the last value counts. A sub-key is named as "key.subkey". A value that
 * continues on deeper indented lines has a newline before each of them.
 *
 * Section names are compared after trimming, folding inner spaces and dropping quotes: [profile "a
 * b"] is "profile a b". Keys are compared without regard to case. */
const char *ini_get(const struct ini *ini, const char *section, const char *key);
/* A line of the file. Borrowed until ini_free. Lines of one section have the same pointer
 * `section`. If a section with the same name follows later, its lines have another pointer. */
struct ini_entry {
	const char *section, *parent, *key; /* key is NULL in the section's own line; parent is the
					       key above a sub-key, else NULL */
	char *value;
};
/* Calls `each` for every line in order, until it returns nonzero. Returns that value, or 0. */
int ini_each(
	const struct ini *ini, int (*each)(void *arg, const struct ini_entry *entry), void *arg);
/* Whether the file has this section. */
bool ini_has_section(const struct ini *ini, const char *section);
