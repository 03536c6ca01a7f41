/* One name in a directory: what it is, and whether it can be uploaded. */
#pragma once
#include "scan/scan.h"

/* Looks at name in the directory open at directory_fd by one stat and sets kind, size, times, dev,
 * ino, problem and is_from_future of ret: FILE for a regular file, YOUNG, LINK for a symlink unless
 * followed, SPECIAL with its problem for what is neither file nor directory, else PROBLEM. Its
 * other fields stay. absent is the sentence for a name that is not there. */
void look_at(int directory_fd, const char *name, const struct scan_options *options,
	const char *absent, struct scan_entry *ret);
/* The PROBLEM of a name that could not be looked at because of this errno. */
void look_refused(
	int directory_fd, const char *name, int error, const char *absent, struct scan_entry *ret);
/* Of what somebody named: SPECIAL becomes a PROBLEM. */
void look_was_named(struct scan_entry *entry);
/* As look_at, of what was already looked at. */
void look_judge(const struct stat *st, const struct scan_options *options, struct scan_entry *ret);
