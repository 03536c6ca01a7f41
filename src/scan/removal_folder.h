/* The folder beside a file that it is renamed into before it is removed (removal.h): its lock, and
 * the renames into it and out of it. All of them return 0 or a descriptor, or -errno. */
#pragma once

/* Renames without replacing anything: -EEXIST if to_name is taken; -EINVAL or -ENOSYS where the
 * file system cannot. */
int removal_rename(int from_fd, const char *from_name, int to_fd, const char *to_name);

/* Makes the folder in this directory if it is missing, and takes a shared lock on it with others
 * who remove files there. Then it renames the file into the folder under its own name. Returns the
 * folder's descriptor for removal_folder_close(). -EBUSY means that somebody puts files back just
 * now, and -EPERM that the folder is not ours. */
int removal_folder_take(int directory_fd, const char *name);
/* Renames a file in the folder to its name in the directory. */
int removal_folder_give(int folder_fd, int directory_fd, const char *name);
/* Removes the folder if nothing is in it, and ends the lock. */
void removal_folder_close(int directory_fd, int folder_fd);
