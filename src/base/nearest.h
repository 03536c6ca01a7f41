/* Did you mean …? */
#pragma once
#include <stddef.h>

/* The one of n names that is most like `given`, or NULL if none is near. Pure. */
const char *nearest_name(const char *given, const char *const *names, size_t n);
