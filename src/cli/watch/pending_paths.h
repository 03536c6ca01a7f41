/* The paths of a watched job that are not at rest yet: files and folders that were touched, and
 * files that were too young in a pass. Each waits once, until it is due. Then it is checked whether
 * the path is at rest. Nothing here asks the file system or the clock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of paths. It owns them. Zero it to start. */
struct path_list {
	const char **paths;
	size_t n;
};
void path_list_clear(struct path_list *list);
/* Moves all paths of `from` to the end of the list. `from` is empty then. */
void path_list_move(struct path_list *list, struct path_list *from);

struct pending_path {
	char *path;
	uint64_t due_ns; /* clock_boot_ns() at which it is checked */
	bool is_new;     /* touched, and no check has found it being written to since */
};

/* All waiting paths, sorted. Zero it to start. */
struct pending_paths {
	struct pending_path *paths;
	size_t n;
};
void pending_clear(struct pending_paths *pending);

/* Why a path waits: a pass has found its file too young, or it was touched since. */
enum pending_since { SINCE_PASS, SINCE_TOUCH };
/* Lets a path wait until due_ns. A path that waits already keeps its time: if its file is written
 * to meanwhile, that is noticed at that time. If very many paths wait, the folder of the path waits
 * in its place, once for all files in it. */
void pending_add(
	struct pending_paths *pending, const char *path, uint64_t due_ns, enum pending_since since);

/* Returns the time at which the first path is due. UINT64_MAX: nothing waits. */
uint64_t pending_due_ns(const struct pending_paths *pending);
/* Returns whether any path is new. */
bool pending_has_new(const struct pending_paths *pending);

/* Checks the paths that are due at now_ns, and returns whether any is at rest. Those at rest are
 * moved to *ret. If that is NULL, they go on waiting, and are due.
 *
 * `postponed_ns` judges one path. It returns now_ns if the path is at rest, the later time at which
 * it is to be checked again, or UINT64_MAX if it is gone and no longer waits. */
bool pending_check(struct pending_paths *pending, uint64_t now_ns,
	uint64_t (*postponed_ns)(void *arg, const char *path, uint64_t now_ns), void *arg,
	struct path_list *ret);
