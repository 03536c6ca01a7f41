/* A list of paths (--files-from), as a stream in byte order of the paths. A SOURCE reads its
 * entries from it instead of from a walk. The list comes from anybody: a path that leads out of the
 * SOURCE becomes a PROBLEM and is never opened. */
#include "base/text.h"
#include "scan/names.h"
#include "scan/open.h"
#include "scan/removal.h"
#include "scan/scan_entry.h"
#include "scan/source.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG_PATH     'p'
#define TAG_OUTSIDE  'o' /* absolute, or with ".." */
#define TAG_TOO_LONG 'l' /* only its beginning is kept */

struct files_from {
	int directory_fd; /* borrowed */
	const struct scan_options *options;
	struct names paths;
	size_t next;
	struct text parent; /* the directory that was opened last */
	int parent_fd;      /* its descriptor, or the -errno it could not be opened with */
};

/* A line as far as it was read. */
struct listed_line {
	char bytes[PATH_MAX];
	size_t len;
	bool too_long;
};

/* Drops "." and empty components, in place; false, and as it was given, if the path leads out. */
static bool normalise(struct listed_line *line)
{
	line->bytes[line->len] = '\0';
	if (open_leads_out(line->bytes))
		return false;
	size_t kept = 0;
	for (size_t i = 0, n; i < line->len; i += n + 1) {
		const char *part = line->bytes + i;
		const char *slash = memchr(part, '/', line->len - i);
		n = slash ? (size_t)(slash - part) : line->len - i;
		if (n == 0 || (n == 1 && *part == '.'))
			continue;
		if (kept)
			line->bytes[kept++] = '/';
		memmove(line->bytes + kept, part, n);
		kept += n;
	}
	if (kept == 0)
		line->bytes[kept++] = '.';
	line->len = kept;
	return true;
}

static int end_line(struct files_from *list, struct listed_line *line)
{
	if (line->len == 0)
		return 0;
	char tag = TAG_PATH;
	if (line->too_long)
		tag = TAG_TOO_LONG;
	else if (!normalise(line))
		tag = TAG_OUTSIDE;
	int r = names_add(&list->paths, tag, line->bytes, line->len);
	line->len = 0;
	line->too_long = false;
	return r;
}

static int read_list(struct files_from *list, int fd)
{
	const char end = list->options->nul_separated ? '\0' : '\n';
	char chunk[32 * 1024];
	struct listed_line line = {.len = 0};
	for (;;) {
		const ssize_t n = read(fd, chunk, sizeof chunk);
		int r = n < 0 && errno != EINTR ? -errno : 0;
		for (ssize_t i = 0; !r && i < n; i++)
			if (chunk[i] == end)
				r = end_line(list, &line);
			else if (chunk[i] == '\0')
				r = -EILSEQ; /* no path holds one */
			else if (line.len < sizeof line.bytes - 1)
				line.bytes[line.len++] = chunk[i];
			else
				line.too_long = true;
		if (r)
			return r;
		if (n == 0)
			return end_line(list, &line);
	}
}

static void list_problem(int error, const char *name, struct problem *ret)
{
	struct text shown = TEXT(1024);
	text_add_escaped(&shown, name, strnlen(name, 200));
	const char *list = strcmp(name, "-") == 0 ? "(stdin)" : text_string(&shown);
	if (error == -EILSEQ)
		problem_set(ret, "the list %s contains NUL bytes; add -0 for NUL-separated paths",
			list);
	else if (error == -EOVERFLOW)
		problem_set(ret, "the list %s is over 4 GiB; split it", list);
	else
		problem_set(ret, "the list %s cannot be read: %s", list, strerror(-error));
	text_clear(&shown);
}

static int load_list(struct files_from *list, const char *name)
{
	if (strcmp(name, "-") == 0)
		return read_list(list, STDIN_FILENO);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = read_list(list, fd);
	close(fd);
	return r;
}

int files_from_open(int directory_fd, const struct scan_options *options, struct files_from **ret,
	struct problem *ret_problem)
{
	struct files_from *list = calloc(1, sizeof *list);
	if (!list)
		return -ENOMEM;
	list->directory_fd = directory_fd;
	list->options = options;
	list->parent = TEXT(PATH_MAX);
	list->parent_fd = -ENOENT;
	int r = load_list(list, options->files_from);
	if (r < 0) {
		list_problem(r, options->files_from, ret_problem);
		files_from_close(list);
		return r == -EILSEQ || r == -EOVERFLOW ? -EINVAL : r;
	}
	names_sort(&list->paths);
	names_unique(&list->paths);
	*ret = list;
	return 0;
}

void files_from_close(struct files_from *list)
{
	if (!list)
		return;
	if (list->parent_fd >= 0)
		close(list->parent_fd);
	text_clear(&list->parent);
	names_clear(&list->paths);
	free(list);
}

/* Makes the first len bytes of path (0: the directory itself) the parent. 0 or -errno. */
static int open_parent(struct files_from *list, const char *path, size_t len)
{
	if (len == 0) {
		path = ".";
		len = 1;
	}
	if (list->parent.len == len && memcmp(list->parent.data, path, len) == 0)
		return list->parent_fd < 0 ? list->parent_fd : 0;
	if (list->parent_fd >= 0)
		close(list->parent_fd);
	text_reset(&list->parent);
	text_add_bytes(&list->parent, path, len);
	list->parent_fd = list->parent.error;
	if (!list->parent.error)
		list->parent_fd = open_below(list->directory_fd, text_string(&list->parent),
			O_PATH | O_DIRECTORY, list->options->follow);
	return list->parent_fd < 0 ? list->parent_fd : 0;
}

static void parent_problem(int error, struct problem *ret)
{
	if (error == -ENOENT || error == -ENOTDIR)
		problem_set(ret, "does not exist");
	else if (error == -ELOOP)
		problem_set(ret,
			"lies behind a symbolic link, and links are not followed; use --follow");
	else
		problem_set(ret, "cannot be reached: %s", strerror(-error));
}

static int look_at_path(struct files_from *list, const char *path, struct scan_entry *ret,
	struct problem *ret_problem)
{
	const char *slash = strrchr(path, '/');
	int r = open_parent(list, path, slash ? (size_t)(slash - path) : 0);
	if (open_cannot_go_on(r, ret_problem))
		return r;
	if (r == 0) {
		const char *absent =
			path[strlen(path) - 1] == '\r'
				? "does not exist; the line in the list ends with a carriage return, "
				  "remove it"
				: "does not exist";
		const char *name = slash ? slash + 1 : path;
		struct problem ignored;
		look_at(list->parent_fd, name, list->options, absent, ret);
		/* It may be what a run that was cut was about to remove. */
		if (ret->kind == SCAN_PROBLEM && !list->options->only_looks &&
			removal_recover(list->parent_fd, &ignored) == 0)
			look_at(list->parent_fd, name, list->options, absent, ret);
		look_was_named(ret);
		return 1;
	}
	ret->kind = SCAN_PROBLEM;
	parent_problem(r, &ret->problem);
	return 1;
}

int files_from_next(struct files_from *list, struct scan_entry *ret, struct problem *ret_problem)
{
	while (list->next < list->paths.n) {
		size_t i = list->next++;
		const char *path = names_get(&list->paths, i);
		ret->relative = path;
		ret->kind = SCAN_PROBLEM;
		switch (names_tag(&list->paths, i)) {
		case TAG_OUTSIDE:
			problem_set(&ret->problem,
				"is absolute or contains '..'; list paths relative to the SOURCE");
			return 1;
		case TAG_TOO_LONG:
			problem_set(&ret->problem,
				"is longer than %d bytes, so it cannot be a path", PATH_MAX - 1);
			return 1;
		}
		if (filter_wants_file(list->options->filter, path))
			return look_at_path(list, path, ret, ret_problem);
	}
	return 0;
}
