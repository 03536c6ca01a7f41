/* Several sources as one stream in byte order of the keys. */
#pragma once
#include "scan/source.h"

struct order;
/* Begins to read the sources, which stay where they are until order_free. 0, or -errno with a
 * sentence. */
int order_new(struct source *sources, size_t n, struct order **ret, struct problem *ret_problem);
/* As scan_next. Of keys that a template makes, what has no key comes while the files are found. */
int order_next(struct order *order, struct scan_entry *ret, struct problem *ret_problem);
void order_free(struct order *order);
