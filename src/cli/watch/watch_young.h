/* Files that a pass has left for later since they were written a moment ago, and when they are at
 * rest. For one thread at a time. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watch_young_file {
	char *path;
	uint64_t due_ns; /* clock_boot_ns() */
};

/* Zero-initialised is empty, but for min_age_ms. */
struct watch_young {
	uint64_t min_age_ms;
	struct watch_young_file *files;
	size_t n, cap;
	bool is_whole; /* there were too many: all files are to be looked at when the last is at
			  rest */
};

void watch_young_clear(struct watch_young *young);
/* A pass that began at this wall time has left the file for later. One that is old enough is left
 * for another reason, such as that rotation still writes to it, and is not waited for. */
void watch_young_add(struct watch_young *young, const char *path, int64_t began_wall_ns);
/* When the first of them may be at rest; UINT64_MAX: there is none. */
uint64_t watch_young_due_ns(const struct watch_young *young);
/* Calls `rests` with the path of each file that is at rest by now, whose folder has no links in it
 * then, and drops the file; those that were written to meanwhile stay. */
void watch_young_take(struct watch_young *young, uint64_t now_ns,
	void (*rests)(void *arg, const char *path), void *arg);
