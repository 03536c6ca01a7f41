/* A file of content types by extension, as /etc/mime.types: "type extension extension …" a line. */
#pragma once
#include "base/problem.h"

struct media_types;
/* 0, -ENOMEM, or -EINVAL with a sentence that names the file. An extension that is listed twice has
 * the last type. */
int media_types_load(const char *path, struct media_types **ret, struct problem *ret_problem);
void media_types_free(struct media_types *types);
/* The type of a file by what follows the last dot of its name, upper case as lower case; NULL where
 * none is listed. Borrowed. Thread-safe. */
const char *media_types_of(const struct media_types *types, const char *path);
