/* Whether two paths lead to one file. */
#pragma once
#include <stdbool.h>

/* Both exist, end in the same name, and are one file at this moment. Only where the names are the
 * same is the file system asked. */
bool same_file(const char *a, const char *b);
