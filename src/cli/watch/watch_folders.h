/* The folders of a job as inotify(7) watches them, and when the files in each are at rest. It is a
 * hint only: what the kernel does not tell is found when all files are looked at. inotify is used
 * as it is, since libuv's uv_fs_event does not say that the queue has overflowed. For one thread.
 */
#pragma once
#include "scan/filter/filter.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_folders_options {
	/* All pointers are borrowed. */
	const char *job;            /* its name begins each message */
	const char *const *sources; /* directories and files */
	size_t n_sources;
	struct filter *filter; /* what it excludes is not watched; NULL: everything is */
	const char *ignored;   /* what is done to this file does not count; NULL: none */
	bool follow;           /* symbolic links are followed */
	uint64_t rest_ns;      /* a file that was touched is looked at so long after it, and at most
				  twice as long while its folder is touched again and again */
	/* Called for each folder that is found, as a sign of life, since finding all of them may
	 * take long. */
	void (*moves)(void *arg);
	void *arg;
};

struct watch_folders;
/* Makes an object that watches nothing yet. Returns 0 or -ENOMEM. If the host refuses inotify, a
 * message says so, and no folder is ever touched. */
int watch_folders_new(const struct watch_folders_options *options, struct watch_folders **ret);
/* NULL is fine. */
void watch_folders_free(struct watch_folders *folders);

/* Watches every folder that is there now, and forgets what was touched. To be called before all
 * files are looked at. A folder that cannot be watched is reported once. */
void watch_folders_renew(struct watch_folders *folders);
/* A descriptor that is readable when something has happened. -1: there is none. */
int watch_folders_fd(const struct watch_folders *folders);
/* Takes in what has happened. New folders are watched from now on. Returns false if not all of it
 * is known, so that all files have to be looked at. */
bool watch_folders_read(struct watch_folders *folders, uint64_t now_ns);

/* When files in the folder that was touched first are at rest, by clock_boot_ns(); UINT64_MAX: none
 * was. */
uint64_t watch_folders_due_ns(const struct watch_folders *folders);
/* Calls `rests` with the absolute path, without links, of each folder that is due, or of each file
 * in it that was touched if these are few. They are not touched any longer then. */
void watch_folders_take(struct watch_folders *folders, uint64_t now_ns,
	void (*rests)(void *arg, const char *path), void *arg);

size_t watch_folders_count(const struct watch_folders *folders);
