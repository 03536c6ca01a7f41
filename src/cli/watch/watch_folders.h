/* Watches the folders of a job by inotify(7), and reports touched files. The reports are only
 * hints: files that the kernel does not report are found by a pass over all files. libuv's
 * uv_fs_event is not used, since it does not report an overflow of the queue. The functions are for
 * one thread. */
#pragma once
#include "cli/job/job.h"
#include <stdbool.h>
#include <stddef.h>

struct watch_folders;
/* Makes an object for the sources of the job, which watches nothing yet. Files that the rules of
 * the job exclude are not reported, nor is its --log-file. Everything is borrowed.
 *
 * watch_folders_read() calls `touched` for each touched file and each new folder, with its absolute
 * path, in which the links of its folder are resolved. `sign` is called for each folder that is
 * found, as a sign of life, since this may take long. */
struct watch_folders *watch_folders_new(const struct job *job,
	void (*touched)(void *arg, const char *path), void (*sign)(void *arg), void *arg);
/* NULL is fine. */
void watch_folders_free(struct watch_folders *folders);

/* Watches every folder that exists now, and forgets earlier events. Call it before a pass over all
 * files. If the kernel allows no more watches, or no inotify at all, it warns once. Without
 * inotify, nothing is ever reported as touched. */
void watch_folders_renew(struct watch_folders *folders);
/* Returns a descriptor that is readable when there are events, or -1. */
int watch_folders_fd(const struct watch_folders *folders);
/* Reads the events of inotify, and watches new folders. Returns false if events were lost or a
 * SOURCE is gone, so that all files have to be checked. */
bool watch_folders_read(struct watch_folders *folders);

/* Returns the number of watched folders. */
size_t watch_folders_count(const struct watch_folders *folders);
