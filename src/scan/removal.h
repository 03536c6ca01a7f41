/* Removes or moves a file whose content was proven to be in S3. It may be stopped at any instant
 * without a loss, and does not remove a file that has replaced the proven one meanwhile.
 *
 * The file is first renamed into a folder of ours beside it. There its state is compared again with
 * that at the proof, through the descriptor from which its content was read. Only then is it
 * removed or moved. If it differs, it is renamed back. No rename ever replaces a file.
 *
 * A process that works in such a folder holds a lock on it (flock(2)), which ends with the process.
 * A scan that meets a folder without a lock puts its files back, unless the scan is read_only. */
#pragma once
#include "base/problem.h"
#include "scan/scan.h"

/* The name of our folder beside the files, which no other program uses. A scan neither lists nor
 * uploads its content. */
#define REMOVAL_FOLDER ".s3once-removing"

struct removal {
	int directory_fd; /* the folder that the file is in; O_PATH is enough; borrowed */
	const char *name; /* name of the file in this folder */
	const char *path; /* path of the file, for sentences */
	int fd;           /* the file, open for reading only, whose content was proven; borrowed */
	/* State of the file when its content was read. Unless ctime_ns is 0, the ctime has to be
	 * the same, too, until the removal renames the file. */
	struct file_state state;
	uid_t owner; /* owner of the SOURCE; the file must belong to this user or to the owner of
			its folder */
	/* A file is also removed if it has several names, if it is open for writing, and if it has
	 * another owner. */
	bool takes_linked, takes_open, takes_foreign;
	int target_fd; /* a directory of the same file system to move the file to; -1: remove it */
	const char *target; /* its path below target_fd after the move; missing folders are made */
};

enum removal_end {
	REMOVAL_DONE,  /* the file is removed or moved; from removal_check(): it would be */
	REMOVAL_KEPT,  /* it stays for now: it is no longer the proven file, `takes_open` would be
			  needed, or another run puts files back there */
	REMOVAL_NEVER, /* it stays, and later runs will not remove it either: `takes_linked`
			  or `takes_foreign` would be needed */
	REMOVAL_FAILED = -1, /* a system call failed; the file still exists, under its name unless
				the sentence has another one */
};

/* Predicts the result of removal_run(), as far as possible without changes. KEPT, NEVER and FAILED
 * have a sentence without the file's name. Thread-safe. */
enum removal_end removal_check(const struct removal *removal, struct problem *ret_problem);
/* Removes or moves the file. Sentences as in removal_check(). Thread-safe. */
enum removal_end removal_run(const struct removal *removal, struct problem *ret_problem);

/* Puts back the files that an interrupted removal has left in our folder in this directory, and
 * removes the folder once it is empty. Returns 0 if nothing is left to do, 1 if another process is
 * at work there, or -errno with a sentence for a file that could not be put back. directory_fd may
 * be opened with O_PATH. */
int removal_recover(int directory_fd, struct problem *ret_problem);
/* Finds such files, and changes and locks nothing. Returns 0, or -errno with a sentence for a file
 * that removal_recover() would put back. */
int removal_find_left(int directory_fd, struct problem *ret_problem);
