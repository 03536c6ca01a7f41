/* One directory tree, as a stream in byte order of the paths. Holds one descriptor and the names of
 * the directories from the top to where it is, however deep and long the paths are. */
#pragma once
#include "scan/only.h"
#include "scan/scan.h"

struct walk;
/* The directory stays open until walk_close; options are borrowed until then (filter, follow and
 * the age count here). only, borrowed too, restricts the walk to its folders; NULL: everything. 0
 * or -ENOMEM. */
int walk_open(int directory_fd, const struct scan_options *options, const struct only *only,
	struct walk **ret);
/* Returns 1 and the next entry, or 0 at the end, or -errno with a sentence for want of memory or
 * descriptors. Of the entry it sets `kind`, `relative`, which is valid until the next call, and
 * what look_at() sets. `key`, `path` and `source` stay as they are. A directory that cannot be
 * listed is a PROBLEM entry; that of the top directory has "." as `relative`. */
int walk_next(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem);
void walk_close(struct walk *walk);
