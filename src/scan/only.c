#include "scan/only.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TAG_FOLDER 'f'

/* The part of the path below the directory, without slash before it; NULL if it lies elsewhere. */
static const char *path_below(const char *directory, const char *path)
{
	size_t n = strlen(directory);
	if (n && directory[n - 1] == '/')
		n--; /* the root */
	if (strncmp(path, directory, n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	return path + n + (path[n] == '/');
}

static int add_folder(struct only *only, const char *relative)
{
	char with_slash[PATH_MAX + 2];
	const size_t n = strlen(relative);
	if (n > PATH_MAX)
		return 0; /* no such path can be opened */
	snprintf(with_slash, sizeof with_slash, "%s/", relative);
	return names_add(&only->folders, TAG_FOLDER, with_slash, n ? n + 1 : 0);
}

int only_init(struct only *only, const char *directory, const char *const *folders, size_t n)
{
	int error = 0;
	*only = (struct only){0};
	for (size_t i = 0; !error && i < n; i++) {
		const char *relative = path_below(directory, folders[i]);
		error = relative ? add_folder(only, relative) : 0;
	}
	names_sort(&only->folders);
	return error ? -ENOMEM : 0;
}

void only_clear(struct only *only)
{
	names_clear(&only->folders);
}

/* Below 0, 0 or above 0: whether `folder` comes before "relative/", begins with it, or comes behind
 * it. */
static int compare(const char *folder, const char *relative, size_t n)
{
	const int order = strncmp(folder, relative, n);
	return order ? order : (unsigned char)folder[n] - '/';
}

/* The first folder that begins with "relative/", or NULL. */
static const char *find_below(const struct only *only, const char *relative)
{
	const size_t length = strlen(relative);
	size_t from = 0, to = only->folders.n;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (compare(names_get(&only->folders, middle), relative, length) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == only->folders.n)
		return NULL;
	const char *found = names_get(&only->folders, from);
	return compare(found, relative, length) == 0 ? found : NULL;
}

bool only_has(const struct only *only, const char *relative)
{
	if (!*relative)
		return only->folders.n && !*names_get(&only->folders, 0);
	const char *found = find_below(only, relative);
	return found && !found[strlen(relative) + 1];
}

bool only_leads_to(const struct only *only, const char *relative)
{
	return find_below(only, relative) != NULL;
}
