/* INI files as AWS's tools write them: [section], key = value, and one level of indented sub-keys.
 */
#pragma once
#include <stddef.h>

struct ini;

/* Reads a whole file (at most 1 MiB). Returns 0, -ENOENT and the like from the system, or -EBADMSG
 * for a file that is no INI; then *ret_line, if not NULL, is the line (from 1). The result is
 * immutable; free with ini_free. */
int ini_load(const char *path, struct ini **ret, int *ret_line);
/* The same from memory. */
int ini_parse(const char *bytes, size_t n, struct ini **ret, int *ret_line);
void ini_free(struct ini *ini);

/* The value of key in [section], or NULL. Borrowed until ini_free. A section may be repeated: the
 * last value counts. A sub-key of an indented block is asked for as "key.subkey". Section names are
 * compared after trimming. */
const char *ini_get(const struct ini *ini, const char *section, const char *key);
/* Whether [section] stands in the file. */
int ini_has_section(const struct ini *ini, const char *section);
