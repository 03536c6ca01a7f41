/* One directory tree, as a stream in byte order of the paths. Holds one descriptor and the names of
 * the directories from the top to where it is, however deep and long the paths are. */
#pragma once
#include "scan/names.h"
#include "scan/scan.h"
#include <stdbool.h>
#include <stddef.h>

struct walk;
/* The directory stays open until walk_close; options are borrowed until then (filter, folders,
 * follow and the age count here). directory is its absolute path without links. 0 or -ENOMEM. */
int walk_open(int directory_fd, const struct scan_options *options, const char *directory,
	struct walk **ret);
/* Returns 1 and the next entry, or 0 at the end, or -errno with a sentence for want of memory or
 * descriptors. Of the entry it sets `kind`, `relative`, which is valid until the next call, and
 * what look_at() sets. `key`, `path` and `source` stay as they are. A directory that cannot be
 * listed is a PROBLEM entry; that of the top directory has "." as `relative`. */
int walk_next(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem);
void walk_close(struct walk *walk);

/* The folders and files that a walk is restricted to. Zero-initialised is empty; immutable after
 * only_init.
 */
struct only {
	struct names folders; /* or files, relative to the source, each with a '/' behind it; the
				 source itself is "" */
};

/* Those of n folders, absolute paths without links, that lie below the source's directory or are
 * it. 0 or -ENOMEM; clear it in any case. */
int only_init(struct only *only, const char *directory, const char *const *folders, size_t n);
void only_clear(struct only *only);

/* Whether this file, or the files directly in this folder, are asked for; relative to the source,
 * which is "". */
bool only_has(const struct only *only, const char *relative);
/* Whether this folder, which is not the source, is one of them, or one of them lies below it. */
bool only_leads_to(const struct only *only, const char *relative);
