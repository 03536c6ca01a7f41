/* What an entry of a SOURCE is called: for people, and in S3. */
#pragma once
#include "scan/source.h"

/* Forgets what the entry before had and this one may not have. */
void source_begin_head(struct source *source);
/* Makes key and path of source->head whole, and a PROBLEM of what has no valid key. By a template,
 * only what is or will be a file has a key, and its content is read where the key depends on it. 1,
 * or -errno with a sentence when nothing can go on. */
int source_name_head(struct source *source, struct problem *ret_problem);
/* Adds the path of what is at relative, as a person would name it. */
void source_add_path(const struct source *source, const char *relative, struct text *path);
