/* The waiting paths of a watched job, as a sorted array. watched_job.c adds them, and decides when
 * one is at rest. */
#include "cli/watch/pending_paths.h"
#include "base/files.h"
#include "base/must_have.h"
#include <stdlib.h>
#include <string.h>

/* If this many paths wait, the folder of a file waits in its place. */
#define PENDING_MAX 1000

void path_list_clear(struct path_list *list)
{
	while (list->n)
		free((char *)(uintptr_t)list->paths[--list->n]);
	free(list->paths);
	*list = (struct path_list){0};
}

/* Adds a path, and takes it. */
static void path_list_add(struct path_list *list, char *path)
{
	list->paths = must_have(reallocarray(list->paths, list->n + 1, sizeof *list->paths));
	list->paths[list->n++] = path;
}

void path_list_move(struct path_list *list, struct path_list *from)
{
	for (size_t i = 0; i < from->n; i++)
		path_list_add(list, (char *)(uintptr_t)from->paths[i]);
	from->n = 0; /* the paths are in the other list */
	path_list_clear(from);
}

void pending_clear(struct pending_paths *pending)
{
	for (size_t i = 0; i < pending->n; i++)
		free(pending->paths[i].path);
	free(pending->paths);
	*pending = (struct pending_paths){0};
}

/* Returns the index of a path, or else of the place where it is to be inserted. */
static size_t find_place(const struct pending_paths *pending, const char *path)
{
	size_t from = 0, to = pending->n; /* the index is not less and not more */
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (strcmp(pending->paths[middle].path, path) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void pending_add(
	struct pending_paths *pending, const char *path, uint64_t due_ns, enum pending_since since)
{
	const bool is_new = since == SINCE_TOUCH;
	char *copy = must_have(pending->n < PENDING_MAX ? strdup(path) : path_folder(path));
	const size_t at = find_place(pending, copy);
	if (at < pending->n && strcmp(pending->paths[at].path, copy) == 0) {
		pending->paths[at].is_new |= is_new;
		free(copy);
		return;
	}
	pending->paths =
		must_have(reallocarray(pending->paths, pending->n + 1, sizeof *pending->paths));
	struct pending_path *place = pending->paths + at;
	memmove(place + 1, place, (pending->n++ - at) * sizeof *place);
	*place = (struct pending_path){.path = copy, .due_ns = due_ns, .is_new = is_new};
}

uint64_t pending_due_ns(const struct pending_paths *pending)
{
	uint64_t due_ns = UINT64_MAX;
	for (size_t i = 0; i < pending->n; i++)
		if (pending->paths[i].due_ns < due_ns)
			due_ns = pending->paths[i].due_ns;
	return due_ns;
}

bool pending_has_new(const struct pending_paths *pending)
{
	bool has_new = false;
	for (size_t i = 0; i < pending->n; i++)
		has_new |= pending->paths[i].is_new;
	return has_new;
}

bool pending_check(struct pending_paths *pending, uint64_t now_ns,
	uint64_t (*postponed_ns)(void *arg, const char *path, uint64_t now_ns), void *arg,
	struct path_list *ret)
{
	bool any_is_at_rest = false;
	size_t kept = 0;
	for (size_t i = 0; i < pending->n; i++) {
		struct pending_path at = pending->paths[i];
		const bool is_due = at.due_ns <= now_ns;
		if (is_due)
			at.due_ns = postponed_ns(arg, at.path, now_ns);
		const bool is_at_rest = is_due && at.due_ns == now_ns;
		const bool is_gone = is_due && at.due_ns == UINT64_MAX;
		/* A file that was written to meanwhile waits like one that a pass found too
		 * young. */
		if (is_due && !is_at_rest)
			at.is_new = false;
		any_is_at_rest |= is_at_rest;
		if (is_gone)
			free(at.path);
		else if (is_at_rest && ret)
			path_list_add(ret, at.path);
		else
			pending->paths[kept++] = at;
	}
	pending->n = kept;
	return any_is_at_rest;
}
