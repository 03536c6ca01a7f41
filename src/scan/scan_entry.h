/* Judging one name in a folder: its kind, and whether it can be uploaded. */
#pragma once
#include "scan/scan.h"

/* Looks at a name in the open directory by one stat(2). Sets kind, wait, size, mtime_ns, dev, ino,
 * problem, is_own and is_from_future of ret; its other fields stay. `absent` is the sentence for a
 * name that does not exist.
 *
 * The kind is FILE or WAITS for a regular file; LINK for a symlink that is not followed; SPECIAL,
 * with a sentence, for a socket, pipe or device, and for a file of options.is_own; and PROBLEM for
 * everything else. */
void entry_look(int directory_fd, const char *name, const struct scan_options *options,
	const char *absent, struct scan_entry *ret);
/* Makes ret the PROBLEM of a name whose stat(2) failed with this errno. `absent` is as in
 * entry_look(). */
void entry_set_unreadable(
	int directory_fd, const char *name, int error, const char *absent, struct scan_entry *ret);
/* For an entry that the user has named: a SPECIAL becomes a PROBLEM, with the remedy. */
void entry_refuse_special(struct scan_entry *entry);
/* As entry_look(), for a file whose status is known already. */
void entry_judge(const char *name, const struct stat *st, const struct scan_options *options,
	struct scan_entry *ret);

/* Whether a file in this state was written too short a time ago: counted from its mtime or, if that
 * lies in the future, from its ctime. */
bool is_too_young(const struct file_state *state, const struct scan_options *options);
/* Whether abandon() of the options returns true. */
bool scan_is_cancelled(const struct scan_options *options);
/* Returns 0, or -ECANCELED with a sentence if abandon() of the options returns true. */
int scan_check_cancelled(const struct scan_options *options, struct problem *ret_problem);
/* Sets the sentence, and returns -ENOMEM. */
int scan_no_memory(struct problem *ret_problem);
/* Leaves the file to a later run for this reason. A reason that it has already stays. */
void entry_let_wait(struct scan_entry *entry, enum s3once_wait why);
/* Whether the entry is a file, and so takes its key: a FILE, or one that WAITS, which a later run
 * uploads. */
bool entry_is_file(const struct scan_entry *entry);
/* Whether the file is larger than max_bytes, so that its content is not read. */
bool entry_is_too_large(const struct scan_entry *entry, const struct scan_options *options);
/* Sets size, mtime_ns, dev and ino of the entry to those of this version. */
void entry_set_version(struct scan_entry *entry, const struct file_state *state);
