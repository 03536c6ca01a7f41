/* Removing or moving a file whose content was proven to be elsewhere, such that a stop at any
 * instant loses nothing, and that a file which takes its place meanwhile is not hit.
 *
 * The file is first renamed into a folder of ours beside it, compared again through the descriptor
 * that was proven, and only then removed or moved; else it is renamed back. No rename ever replaces
 * anything. While somebody is at work in such a folder he holds a lock on it (flock(2)), which ends
 * with his process: a scan that meets a folder without one puts back what is in it. */
#pragma once
#include "base/problem.h"
#include "scan/scan.h"

/* The name of the folder. It is nobody else's: a scan neither lists nor uploads what is in it. */
#define REMOVAL_FOLDER ".s3once-removing"

struct removal {
	int directory_fd; /* the folder that the file is in; O_PATH is enough; borrowed */
	const char *name; /* in it */
	int fd; /* the file, open for reading only: what was proven is its content; borrowed */
	struct file_state state; /* of the file when that content was read; its ctime too is to
				    stay until the file is renamed */
	uid_t owner;             /* of the SOURCE: the file is to be his, or its folder's owner's */
	bool linked, open, foreign; /* what would be kept is removed all the same: a file of several
				       names, one that is open for writing, another owner's */
	int target_fd; /* a directory of the same file system to move the file to; -1: remove it */
	const char *target; /* the path that the file gets below target_fd; its folders are made */
};

enum removal_end {
	REMOVAL_DONE,        /* the file is removed or moved; of removal_check: it would be */
	REMOVAL_KEPT,        /* it stays by one of the rules, or is no longer what was proven */
	REMOVAL_FAILED = -1, /* the system refused it; the file is there, under its name unless the
			   sentence names another one */
};

/* Whether the file would be removed as far as that shows without changing anything. KEPT and
 * FAILED come with a sentence without the file's name. Thread-safe. */
enum removal_end removal_check(const struct removal *removal, struct problem *ret_problem);
/* Removes or moves the file. Sentences as of removal_check. Thread-safe. */
enum removal_end removal_run(const struct removal *removal, struct problem *ret_problem);

/* Puts back what a removal that was cut has left in the folder of ours in this directory, unless
 * somebody is at work there, and removes that folder once it is empty. 0 if there is nothing (more)
 * to do, 1 if somebody is at work, or -errno with a sentence for a file that could not be put
 * back. Of directory_fd O_PATH is enough. */
int removal_recover(int directory_fd, struct problem *ret_problem);
