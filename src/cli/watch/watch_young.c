/* The files that a pass left alone since they had not rested yet, and when each will have. */
#include "cli/watch/watch_young.h"
#include "base/clock.h"
#include "base/files.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 1000

void watch_young_clear(struct watch_young *young)
{
	for (size_t i = 0; i < young->n; i++)
		free(young->files[i].path);
	free(young->files);
	*young = (struct watch_young){.min_age_ms = young->min_age_ms};
}

static int64_t ns_of(struct timespec t)
{
	return t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

/* The wall time from which on the file is old enough; 0 if it is gone. A modification time in the
 * future does not count, as in the scan. */
static int64_t rests_at(const struct watch_young *young, const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return 0;
	const int64_t written =
		ns_of(st.st_mtim) > clock_wall_ns() ? ns_of(st.st_ctim) : ns_of(st.st_mtim);
	return written + (int64_t)(young->min_age_ms * NS_PER_MS);
}

/* The same on the other clock; not at once, and not later than if it was written just now. */
static uint64_t due_at(const struct watch_young *young, int64_t rests_at_ns, int64_t now_wall_ns)
{
	const int64_t least = 100 * (int64_t)NS_PER_MS,
		      most = (int64_t)(young->min_age_ms * NS_PER_MS) + least;
	const int64_t left = rests_at_ns - now_wall_ns;
	return clock_boot_ns() + (uint64_t)(left < least ? least : left > most ? most : left);
}

static bool is_known(const struct watch_young *young, const char *path)
{
	for (size_t i = 0; i < young->n; i++)
		if (strcmp(young->files[i].path, path) == 0)
			return true;
	return false;
}

void watch_young_add(struct watch_young *young, const char *path, int64_t began_wall_ns)
{
	const int64_t rests_at_ns = rests_at(young, path);
	if (young->is_whole || rests_at_ns <= began_wall_ns || is_known(young, path))
		return;
	if (young->n == young->cap) {
		const size_t cap = 2 * young->cap + 16;
		struct watch_young_file *grown =
			cap > FILES_MAX ? NULL : realloc(young->files, cap * sizeof *grown);
		if (!grown) {
			young->is_whole = true;
			return;
		}
		young->files = grown;
		young->cap = cap;
	}
	char *copy = strdup(path);
	young->is_whole = !copy;
	if (copy)
		young->files[young->n++] = (struct watch_young_file){
			copy, due_at(young, rests_at_ns, clock_wall_ns())};
}

uint64_t watch_young_due_ns(const struct watch_young *young)
{
	uint64_t due_ns = UINT64_MAX;
	for (size_t i = 0; i < young->n; i++)
		if (young->files[i].due_ns < due_ns)
			due_ns = young->files[i].due_ns;
	return due_ns;
}

static void tell_file(const char *path, void (*rests)(void *arg, const char *path), void *arg)
{
	char *given = path_folder(path), *folder = given ? realpath(given, NULL) : NULL, *file;
	if (folder && asprintf(&file, "%s/%s", folder[1] ? folder : "", path_name(path)) >= 0) {
		rests(arg, file);
		free(file);
	}
	free(folder);
	free(given);
}

void watch_young_take(struct watch_young *young, uint64_t now_ns,
	void (*rests)(void *arg, const char *path), void *arg)
{
	const int64_t now_wall_ns = clock_wall_ns();
	size_t kept = 0;
	for (size_t i = 0; i < young->n; i++) {
		struct watch_young_file file = young->files[i];
		if (file.due_ns <= now_ns) {
			const int64_t rests_at_ns = rests_at(young, file.path);
			if (rests_at_ns <= now_wall_ns) {
				if (rests_at_ns)
					tell_file(file.path, rests, arg);
				free(file.path);
				continue;
			}
			file.due_ns = due_at(young, rests_at_ns, now_wall_ns);
		}
		young->files[kept++] = file;
	}
	young->n = kept;
}
