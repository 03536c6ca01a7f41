/* Several sources as one stream in byte order of keys that do not rise with the paths. All files
 * are found first, and sorted in a temporary file: memory stays flat. */
#pragma once
#include "scan/source.h"

struct arrange;
/* The sources stay where they are until arrange_free. 0, or -errno with a sentence. */
int arrange_new(
	struct source *sources, size_t n, struct arrange **ret, struct problem *ret_problem);
/* As scan_next. What has no key comes while the files are found. */
int arrange_next(struct arrange *arrange, struct scan_entry *ret, struct problem *ret_problem);
void arrange_free(struct arrange *arrange);
