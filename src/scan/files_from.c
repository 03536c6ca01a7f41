/* A list of paths (--files-from), as a stream in byte order of the paths. A SOURCE reads its
 * entries from it instead of from a walk. The list is not trusted: a path that points outside of
 * the SOURCE becomes a PROBLEM and is never opened. */
#include "base/files.h"
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
	int parent_fd;      /* its descriptor, or the -errno of opening it */
};

/* The part of a line that was read so far. */
struct listed_line {
	char bytes[PATH_MAX];
	size_t len;
	bool too_long;
};

/* Removes "." and empty components from the path, in place. Returns false, and leaves the path as
 * it was given, if it points outside of the SOURCE. */
static bool normalise(struct listed_line *line)
{
	line->bytes[line->len] = '\0';
	if (path_leads_out(line->bytes))
		return false;
	size_t kept = 0;
	for (char *rest = line->bytes, *part; (part = strsep(&rest, "/"));) {
		const size_t n = strlen(part);
		if (n == 0 || strcmp(part, ".") == 0)
			continue;
		if (kept)
			line->bytes[kept++] = '/';
		memmove(line->bytes + kept, part, n);
		kept += n;
	}
	if (kept == 0) /* the path is the SOURCE itself */
		line->bytes[kept++] = '.';
	line->len = kept;
	return true;
}

/* Adds the line that was read to the list, unless it is empty, and begins the next line. Returns as
 * names_add(). */
static int end_line(struct files_from *list, struct listed_line *line)
{
	if (line->len == 0)
		return 0;
	char tag = TAG_TOO_LONG;
	if (!line->too_long)
		tag = normalise(line) ? TAG_PATH : TAG_OUTSIDE;
	const int r = names_add(&list->paths, tag, line->bytes, line->len);
	line->len = 0;
	line->too_long = false;
	return r;
}

/* Adds n bytes of the list, in which `end` ends each path. A path may continue in the bytes of the
 * next call. Returns 0, -EILSEQ for a NUL in a line, -ENOMEM, or -EOVERFLOW. */
static int add_bytes(
	struct files_from *list, struct listed_line *line, char end, const char *bytes, size_t n)
{
	int r = 0;
	for (size_t i = 0; !r && i < n; i++)
		if (bytes[i] == end)
			r = end_line(list, line);
		else if (bytes[i] == '\0')
			r = -EILSEQ;
		else if (line->len < sizeof line->bytes - 1)
			line->bytes[line->len++] = bytes[i];
		else
			line->too_long = true;
	return r;
}

/* Reads up to `size` bytes, and fewer only at the end of the list. Returns their number, or
 * -errno. */
static ssize_t read_bytes(int fd, char *ret, size_t size)
{
	size_t n = 0;
	while (n < size) {
		const ssize_t r = read(fd, ret + n, size - n);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0)
			break;
		n += r > 0 ? (size_t)r : 0;
	}
	return (ssize_t)n;
}

/* Reads the list to its end. If its first NUL is no further from the beginning than a path can be
 * long, its paths end with NUL, as find -print0 writes them. Otherwise the list has lines. The last
 * path need not end in a newline or NUL. Returns 0, -EILSEQ for a NUL in a line, -EOVERFLOW for
 * more than 4 GiB of paths, or another -errno. */
static int read_list(struct files_from *list, int fd)
{
	char chunk[32 * 1024];
	struct listed_line line = {.len = 0};
	ssize_t n = read_bytes(fd, chunk, PATH_MAX);
	const char end = n > 0 && memchr(chunk, '\0', (size_t)n) ? '\0' : '\n';
	while (n > 0) {
		const int r = add_bytes(list, &line, end, chunk, (size_t)n);
		if (r)
			return r;
		n = read_bytes(fd, chunk, sizeof chunk);
	}
	return n < 0 ? (int)n : end_line(list, &line);
}

int files_from_open(int directory_fd, const struct scan_options *options, struct files_from **ret,
	struct problem *ret_problem)
{
	const char *name = options->files_from;
	const bool is_stdin = strcmp(name, "-") == 0;
	struct files_from *list = calloc(1, sizeof *list);
	if (!list)
		return -ENOMEM; /* source_open() sets the sentence */
	*list = (struct files_from){.directory_fd = directory_fd,
		.options = options,
		.parent = TEXT(PATH_MAX),
		.parent_fd = -ENOENT};
	const int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
	const int r = fd < 0 ? -errno : read_list(list, fd);
	if (fd >= 0 && !is_stdin)
		close(fd);
	if (r == 0) {
		names_sort(&list->paths);
		*ret = list;
		return 0;
	}
	files_from_close(list);
	const struct quoted shown = quote(name);
	const char *title = is_stdin ? "(stdin)" : shown.text;
	if (r == -EILSEQ)
		return problem_error(ret_problem, -EINVAL,
			"the list %s has lines, and a NUL byte in one of them: end either each "
			"path with a NUL, or none",
			title);
	if (r == -EOVERFLOW)
		return problem_error(
			ret_problem, -EINVAL, "the list %s is over 4 GiB; split it", title);
	return problem_error(ret_problem, r, "the list %s cannot be read: %s", title, strerror(-r));
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

/* Opens the directory that the first len bytes of path name (0: the SOURCE itself) as
 * list->parent_fd, unless it is open already. Returns 0 or -errno. */
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
		list->parent_fd = open_beneath_or_follow(list->directory_fd,
			text_string(&list->parent), O_PATH | O_DIRECTORY, list->options->follow);
	return list->parent_fd < 0 ? list->parent_fd : 0;
}

/* Returns the sentence about a path of the list that does not exist. */
static const char *explain_absence(const char *path)
{
	if (path[strlen(path) - 1] == '\r')
		return "does not exist; the line in the list ends with a carriage return, remove it";
	if (utf8_byte_order_mark(path))
		return "does not exist; the line in the list begins with a byte order mark, "
		       "remove it";
	return "does not exist";
}

/* Makes the entry of the file at this path of the list. Returns 1, or -errno with a sentence if the
 * scan cannot continue. */
static int look_at_path(struct files_from *list, const char *path, struct scan_entry *ret,
	struct problem *ret_problem)
{
	const char *name = path_name(path);
	const char *absent = explain_absence(path);
	struct problem ignored;
	/* The parent is the part before the last slash, or the SOURCE if there is no slash. */
	const size_t parent_bytes = name == path ? 0 : (size_t)(name - path) - 1;
	const int r = open_parent(list, path, parent_bytes);
	if (open_explain_fatal(r, ret_problem))
		return r;
	if (r == -ELOOP)
		return problem_error(&ret->problem, 1,
			"lies behind a symbolic link, and links are not followed; use --follow");
	if (r < 0) { /* if a folder of the path is a file, the path does not exist */
		entry_set_unreadable(
			list->directory_fd, path, r == -ENOTDIR ? ENOENT : -r, absent, ret);
		return 1;
	}
	entry_look(list->parent_fd, name, list->options, absent, ret);
	/* The file may be missing because an interrupted removal has left it in REMOVAL_FOLDER. If
	 * so, it is put back, and examined again. */
	if (ret->kind == SCAN_PROBLEM && !list->options->read_only &&
		removal_recover(list->parent_fd, &ignored) == 0)
		entry_look(list->parent_fd, name, list->options, absent, ret);
	entry_refuse_special(ret);
	return 1;
}

int files_from_next(struct files_from *list, struct scan_entry *ret, struct problem *ret_problem)
{
	while (list->next < list->paths.n) {
		const size_t i = list->next++;
		const char *path = names_get(&list->paths, i);
		const char tag = names_tag(&list->paths, i);
		ret->relative = path;
		ret->kind = SCAN_PROBLEM;
		if (tag == TAG_OUTSIDE)
			return problem_error(&ret->problem, 1,
				"is absolute or contains '..'; list paths relative to the SOURCE");
		if (tag == TAG_TOO_LONG)
			return problem_error(&ret->problem, 1,
				"is longer than %d bytes, so it cannot be a path", PATH_MAX - 1);
		if (filter_wants_file(list->options->filter, path))
			return look_at_path(list, path, ret, ret_problem);
		ret->kind = SCAN_EXCLUDED;
		return 1;
	}
	return 0;
}
