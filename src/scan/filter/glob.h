/* Patterns against paths. Pure; never exponential, whatever the stars. */
#pragma once
#include <stdbool.h>

/* Whether the pattern is well formed: every '[' closed. */
bool glob_valid(const char *pattern);

/* Whether the whole path matches: '*' and '?' stop at '/', '**' crosses it, a component "**" also
 * matches none ("a/" followed by "**" and "/b" matches "a/b"), [a-z] and [!a-z] are classes of
 * characters, '\' takes the next character as it is. The pattern is valid. */
bool glob_matches(const char *pattern, const char *path);

/* Whether some path that begins with the directory and '/' may match. May say true too often, never
 * false. "" is the top. */
bool glob_may_match_below(const char *pattern, const char *directory);
