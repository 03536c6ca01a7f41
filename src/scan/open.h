/* Opening below a directory without being led out of it, and who else has a file open. */
#pragma once
#include <stdbool.h>

/* openat() of a relative path below the directory, with O_CLOEXEC and O_NOFOLLOW added, never
 * through a symlink and never out of the directory: by openat2(2) where the kernel has it, else
 * component by component. flags hold no O_CREAT. Returns the descriptor, or -ELOOP for a symlink
 * anywhere in the path, -EXDEV for an absolute path or "..", or another -errno. Thread-safe. */
int open_beneath(int directory_fd, const char *relative, int flags);
/* The second way of open_beneath, by itself. With O_CREAT the path is one of folders, and those
 * that are missing are made for this user alone. */
int open_beneath_by_components(int directory_fd, const char *relative, int flags);
/* Whether a path is absolute or holds "..". Pure. */
bool open_leads_out(const char *path);
/* The part of an absolute path below the directory, without slash before it; "" for the directory
 * itself, NULL if it lies elsewhere. Neither has links. Borrowed. Pure. */
const char *path_below(const char *directory, const char *path);
/* As open_beneath, but links are followed wherever they lead when follow is set. */
int open_below(int directory_fd, const char *relative, int flags, bool follow);
/* Whether nothing can go on after this -errno: the run is over (-ECANCELED), or this process ran
 * out of descriptors or memory, which is no fault of the file. Then the sentence is in ret_problem.
 */
struct problem;
bool open_cannot_go_on(int error, struct problem *ret_problem);
/* The sentence of what cannot be "read", or otherwise used, because of this -errno. */
void open_explain(int error, const char *done, struct problem *ret);
/* The same of a file that cannot be opened or read, unless there is a sentence already. Returns 0;
 * or the error if nothing can go on after it, and its sentence is in ret_problem. */
int open_tell_unread(int error, struct problem *why, struct problem *ret_problem);

/* A lease to read an open file says whether somebody has it open for writing, and as long as it is
 * held it tells of whoever wants to: he waits until it is given back. */
enum write_lease {
	LEASE_HELD,
	LEASE_REFUSED, /* it is open for writing */
	LEASE_UNKNOWN, /* this user (neither the owner nor with CAP_LEASE), or this file system,
			  gets no leases */
};
enum write_lease write_lease_take(int fd);
void write_lease_drop(int fd, enum write_lease lease);
/* Whether another process has the open file open for writing, as far as this process may know. */
bool file_is_being_written(int fd);
