/* One directory tree in byte order of its paths. A SOURCE that is a directory reads its entries
 * from a walk. A walk holds one descriptor, and the names of the folders on the way down, whatever
 * the depth. It never leaves the tree, unless links are followed, and opens no file. */
#include "scan/mounts.h"
#include "scan/open.h"
#include "scan/removal.h"
#include "scan/scan_entry.h"
#include "scan/source.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Any tag but NAMES_DIRECTORY, which would add a second slash when names are compared. */
#define TAG_FOLDER 'f'

int wanted_init(struct names *wanted, const char *directory, const char *const *folders, size_t n)
{
	char with_slash[PATH_MAX + 2];
	int error = 0;
	for (size_t i = 0; !error && i < n; i++) {
		const char *relative = path_below(directory, folders[i]);
		if (!relative || strlen(relative) > PATH_MAX)
			continue; /* not below the directory, or too long to be opened */
		const int bytes = snprintf(with_slash, sizeof with_slash, "%s/", relative);
		error = names_add(wanted, TAG_FOLDER, with_slash, (size_t)bytes);
	}
	names_sort(wanted);
	return error ? -ENOMEM : 0;
}

/* Compares the beginning of `folder` with "relative/", where `relative` has n bytes. Returns 0 if
 * the folder begins with "relative/", less than 0 if it sorts before that, and more than 0 if it
 * sorts after that. */
static int compare_beginning(const char *folder, const char *relative, size_t n)
{
	const int order = strncmp(folder, relative, n);
	return order ? order : (unsigned char)folder[n] - '/';
}

/* Returns the index of the first folder that begins with "relative/", or wanted->n. If "relative/"
 * itself is in the list, this is the one, since it sorts before all that is below it. */
static size_t find_below(const struct names *wanted, const char *relative)
{
	const size_t length = strlen(relative);
	size_t from = 0, to = wanted->n;
	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		if (compare_beginning(names_get(wanted, middle), relative, length) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	const bool is_below = from < wanted->n &&
			      compare_beginning(names_get(wanted, from), relative, length) == 0;
	return is_below ? from : wanted->n;
}

bool wanted_has(const struct names *wanted, const char *relative)
{
	const size_t found = find_below(wanted, relative);
	/* The found folder is exactly "relative/". */
	return found < wanted->n && !names_get(wanted, found)[strlen(relative) + 1];
}

bool wanted_reaches_below(const struct names *wanted, const char *relative)
{
	return find_below(wanted, relative) < wanted->n;
}

/* More than the longest path that the kernel opens, so that the kernel reports the error. */
#define PATH_BYTES_MAX (64UL * 1024)

/* A directory on the way down. */
struct frame {
	struct names names;
	size_t next;     /* the next name to be examined */
	size_t path_len; /* length of the directory's part of walk.path; 0 for the top */
	dev_t dev;
	ino_t ino;
	size_t filter_rule; /* filter_enter() */
	bool all_wanted;    /* all files directly in it are wanted, not only those in walk.wanted */
};

struct walk {
	int directory_fd;      /* borrowed */
	const char *directory; /* its absolute path, without links; borrowed */
	const struct scan_options *options;
	struct names wanted; /* with options->folders, the list of those (see wanted_init()) */
	struct frame *frames;
	size_t n_frames;
	int fd;           /* the last frame's directory, or -1 while it is closed */
	struct text path; /* relative path of the last entry; empty before the first one */
};

int walk_open(int directory_fd, const struct scan_options *options, const char *directory,
	struct walk **ret)
{
	struct walk *walk = calloc(1, sizeof *walk);
	if (!walk)
		return -ENOMEM;
	*walk = (struct walk){.directory_fd = directory_fd,
		.directory = directory,
		.options = options,
		.fd = -1,
		.path = TEXT(PATH_BYTES_MAX)};
	const int error =
		wanted_init(&walk->wanted, directory, options->folders, options->n_folders);
	if (error)
		walk_close(walk);
	else
		*ret = walk;
	return error;
}

static void close_directory(struct walk *walk)
{
	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = -1;
}

/* Goes back to the directory above, which reopen_directory() opens when it is needed. */
static void leave_directory(struct walk *walk)
{
	names_clear(&walk->frames[--walk->n_frames].names);
	close_directory(walk);
}

void walk_close(struct walk *walk)
{
	if (!walk)
		return;
	while (walk->n_frames)
		leave_directory(walk);
	free(walk->frames);
	names_clear(&walk->wanted);
	text_clear(&walk->path);
	free(walk);
}

static int open_directory(const struct walk *walk, const char *relative)
{
	return open_beneath_or_follow(walk->directory_fd, relative,
		O_RDONLY | O_DIRECTORY | O_NONBLOCK, walk->options->follow);
}

static bool is_removal_folder(const struct names *names, size_t i)
{
	return names_tag(names, i) == NAMES_DIRECTORY &&
	       strcmp(names_get(names, i), REMOVAL_FOLDER) == 0;
}

/* Finds the wanted names of a directory of which not all files are wanted: the next components of
 * the wanted paths, such as "b" and "c" in "a" if "a/b/x/", "a/b/y/" and "a/c/" are wanted. The
 * directory itself, which may be large, is not listed. Returns 0, or -errno with an empty ret. */
static int find_wanted(const struct walk *walk, int fd, const char *relative, struct names *ret)
{
	const struct names *wanted = &walk->wanted;
	const bool follow = walk->options->follow, is_top = !*relative;
	const size_t folder_bytes = strlen(relative);
	const size_t name_at = is_top ? 0 : folder_bytes + 1; /* of the next component in a path */
	const char *previous = "";
	int r = names_add_found(ret, fd, follow, REMOVAL_FOLDER, strlen(REMOVAL_FOLDER));
	for (size_t i = is_top ? 0 : find_below(wanted, relative); r == 0 && i < wanted->n; i++) {
		const char *path = names_get(wanted, i);
		if (!is_top && compare_beginning(path, relative, folder_bytes) != 0)
			break;
		const char *name = path + name_at;
		const size_t n = strcspn(name, "/");
		const bool is_same = strncmp(name, previous, n + 1) == 0; /* with the slash */
		if (!is_same)
			r = names_add_found(ret, fd, follow, name, n);
		previous = name;
	}
	if (r == 0)
		names_sort(ret);
	else
		names_clear(ret);
	return r;
}

/* Reads the names of a directory: all of them, or only those that are wanted. Returns 0, or
 * -errno with an empty ret. */
static int read_names(
	const struct walk *walk, int fd, const char *relative, bool all_wanted, struct names *ret)
{
	return all_wanted ? names_read(fd, walk->options->follow, ret)
			  : find_wanted(walk, fd, relative, ret);
}

/* Reads the names of a directory. If an interrupted removal has left its REMOVAL_FOLDER among them,
 * puts the files in that folder back under their names, and reads the names again, unless the scan
 * is read_only. A file that cannot be put back is no error here: visit_name() retries that, and
 * reports it. Returns 0, or -errno with an empty ret. */
static int read_names_and_recover(
	const struct walk *walk, int fd, const char *relative, bool all_wanted, struct names *ret)
{
	const struct scan_options *options = walk->options;
	struct problem ignored;
	bool has_removal_folder = false;
	int r = read_names(walk, fd, relative, all_wanted, ret);
	for (size_t i = 0; r == 0 && !has_removal_folder && i < ret->n; i++)
		has_removal_folder = is_removal_folder(ret, i);
	if (!has_removal_folder || options->read_only)
		return r;
	removal_recover(fd, &ignored);
	names_clear(ret);
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno
					  : read_names(walk, fd, relative, all_wanted, ret);
}

/* Handles a directory that could not be opened or listed because of this -errno. -EDEADLK is a
 * directory that is its own ancestor. Returns 1 and a PROBLEM, or the error with a sentence if the
 * scan cannot continue. */
static int directory_failed(int error, struct scan_entry *ret, struct problem *ret_problem)
{
	if (open_explain_fatal(error, ret_problem))
		return error;
	ret->kind = SCAN_PROBLEM;
	if (error == -ENOENT || error == -ELOOP || error == -ENOTDIR || error == -ESTALE)
		problem_set(&ret->problem, "%s while the directory was read; run again",
			error == -ENOENT ? "disappeared" : "was replaced");
	else if (error == -EDEADLK)
		problem_set(&ret->problem,
			"is a symbolic link to a directory that contains it; exclude it");
	else
		open_explain(error, "listed", &ret->problem);
	return 1;
}

/* Whether the directory is also one of those above it, to which a link leads back. */
static bool is_own_ancestor(const struct walk *walk, const struct stat *directory)
{
	for (size_t i = 0; i < walk->n_frames; i++)
		if (walk->frames[i].ino == directory->st_ino &&
			walk->frames[i].dev == directory->st_dev)
			return true;
	return false;
}

/* Whether the directory is below a mount point that --one-file-system does not cross. */
static bool is_on_excluded_file_system(const struct walk *walk, const struct stat *directory)
{
	const bool is_top = !walk->n_frames;
	return walk->options->one_file_system && !is_top &&
	       directory->st_dev != walk->frames[0].dev;
}

/* Whether the directory at walk.path, which is empty, is a mount point of /etc/fstab at which
 * nothing is mounted. With --one-file-system nothing below it would be read in any case. */
static bool lacks_its_mount(const struct walk *walk)
{
	if (walk->options->one_file_system)
		return false;
	struct text path = TEXT(PATH_BYTES_MAX);
	const bool is_root = strcmp(walk->directory, "/") == 0;
	text_addf(&path, "%s/%s", is_root ? "" : walk->directory, text_string(&walk->path));
	const bool is_missing =
		mount_is_missing_at("/etc/fstab", "/proc/self/mounts", text_string(&path));
	text_clear(&path);
	return is_missing;
}

/* Opens the directory at walk.path, lists it and makes it the last frame, unless it is its own
 * ancestor. filter_rule is the result of filter_enter() for it. Returns 0; or 1, with a PROBLEM or
 * SPECIAL in *ret; or -errno if the scan cannot go on. */
static int enter_directory(
	struct walk *walk, size_t filter_rule, struct scan_entry *ret, struct problem *ret_problem)
{
	struct frame *frames = reallocarray(walk->frames, walk->n_frames + 1, sizeof *frames);
	if (!frames)
		return scan_no_memory(ret_problem);
	walk->frames = frames;
	const int fd = open_directory(walk, text_string(&walk->path));
	if (fd < 0)
		return directory_failed(fd, ret, ret_problem);
	close_directory(walk);
	walk->fd = fd;
	struct stat st;
	struct names names = {0};
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && is_own_ancestor(walk, &st))
		r = -EDEADLK;
	if (r == 0 && is_on_excluded_file_system(walk, &st)) {
		close_directory(walk);
		ret->kind = walk->options->accounts_for_all ? SCAN_PROBLEM : SCAN_SPECIAL;
		problem_set(
			&ret->problem, "another file system is mounted there (--one-file-system)");
		return 1;
	}
	/* walk.path is "." only for the open(2) of the top directory. */
	const char *relative = walk->n_frames ? text_string(&walk->path) : "";
	const bool all_wanted = !walk->options->folders || wanted_has(&walk->wanted, relative);
	if (r == 0)
		r = read_names_and_recover(walk, fd, relative, all_wanted, &names);
	if (r < 0) {
		names_clear(&names);
		close_directory(walk);
		return directory_failed(r, ret, ret_problem);
	}
	const bool is_empty = all_wanted && !names.n;
	if (is_empty && *relative && lacks_its_mount(walk)) {
		names_clear(&names);
		close_directory(walk);
		ret->kind = SCAN_PROBLEM;
		problem_set(&ret->problem, "it is empty, and its file system in /etc/fstab is not "
					   "mounted: mount it, or exclude the folder");
		return 1;
	}
	walk->frames[walk->n_frames++] = (struct frame){.names = names,
		.path_len = strlen(relative),
		.dev = st.st_dev,
		.ino = st.st_ino,
		.filter_rule = filter_rule,
		.all_wanted = all_wanted};
	return 0;
}

/* Opens the last frame's directory again, if reading something below it has closed it. Returns 0,
 * -ESTALE if the path points to another directory by now, or another -errno. */
static int reopen_directory(struct walk *walk)
{
	const struct frame *frame = &walk->frames[walk->n_frames - 1];
	if (walk->fd >= 0)
		return 0;
	/* walk.path begins with the path of the directory. Its end is cut off for the call. */
	char *end = walk->path.data + frame->path_len;
	char kept = *end;
	*end = '\0';
	int fd = open_directory(walk, frame->path_len ? walk->path.data : ".");
	*end = kept;
	if (fd < 0)
		return fd;
	walk->fd = fd;
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && (st.st_dev != frame->dev || st.st_ino != frame->ino))
		r = -ESTALE;
	if (r < 0)
		close_directory(walk);
	return r;
}

/* Sets walk.path to the path of this name in the last frame's directory. Returns 0 or -ENOMEM. */
static int set_path(struct walk *walk, const char *name)
{
	const struct frame *frame = &walk->frames[walk->n_frames - 1];
	walk->path.len = frame->path_len;
	if (frame->path_len)
		text_add_char(&walk->path, '/');
	text_add(&walk->path, name);
	return walk->path.error;
}

/* Visits the directory at walk.path, a name in the last frame: enters it, unless it is not wanted.
 * If the filter leaves out everything in it, the directory itself is an entry, and not entered.
 * Returns 1 and an entry, 0 if there is no entry for the name, or -errno with a sentence. */
static int visit_directory(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem)
{
	const struct scan_options *options = walk->options;
	const struct frame *parent = &walk->frames[walk->n_frames - 1];
	const char *path = text_string(&walk->path);
	const size_t rule = filter_enter(options->filter, path, parent->filter_rule);
	if (options->folders && !wanted_reaches_below(&walk->wanted, path))
		return 0;
	const bool is_excluded =
		!options->accounts_for_all && filter_prunes_entered(options->filter, path, rule);
	if (!is_excluded)
		return enter_directory(walk, rule, ret, ret_problem);
	ret->kind = SCAN_EXCLUDED;
	text_add_char(&walk->path, '/'); /* in a message, a folder ends in a slash */
	return walk->path.error ? scan_no_memory(ret_problem) : 1;
}

/* Opens the last frame's directory again for a look at the name at walk.path. Returns 0; or 1, with
 * a PROBLEM of that name in *ret; or -errno if the scan cannot go on. */
static int reopen_for_name(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem)
{
	const int error = reopen_directory(walk);
	if (!error)
		return 0;
	const int r = directory_failed(error, ret, ret_problem);
	if (r > 0)
		problem_prefix(&ret->problem, "the directory it lies in");
	return r;
}

/* Visits REMOVAL_FOLDER: puts the files in it back under their names, of which none is uploaded
 * now. It has no entry, unless a file cannot be put back: then the folder is a PROBLEM. Returns 1
 * and an entry, 0 if there is none, or -errno with a sentence. */
static int visit_removal_folder(
	struct walk *walk, struct scan_entry *ret, struct problem *ret_problem)
{
	const int r = reopen_for_name(walk, ret, ret_problem);
	if (r)
		return r;
	ret->kind = SCAN_PROBLEM;
	const int left = walk->options->read_only ? removal_find_left(walk->fd, &ret->problem)
						  : removal_recover(walk->fd, &ret->problem);
	return left < 0;
}

/* Visits the i-th name of the last frame, which is no directory. Returns 1 and an entry, 0 if the
 * file is not wanted, or -errno with a sentence. */
static int visit_file(
	struct walk *walk, size_t i, struct scan_entry *ret, struct problem *ret_problem)
{
	const struct scan_options *options = walk->options;
	const struct frame *frame = &walk->frames[walk->n_frames - 1];
	const char *path = text_string(&walk->path);
	const bool is_wanted = frame->all_wanted || wanted_has(&walk->wanted, path);
	const bool is_excluded = !filter_wants_file_in(options->filter, path, frame->filter_rule);
	if (!is_wanted)
		return 0;
	if (is_excluded && !options->accounts_for_all) { /* it need not be looked at */
		ret->kind = SCAN_EXCLUDED;
		return 1;
	}
	if (names_tag(&frame->names, i) == NAMES_LINK && !options->follow) {
		ret->kind = SCAN_LINK;
		return 1;
	}
	const int r = reopen_for_name(walk, ret, ret_problem);
	if (r)
		return r;
	entry_look(walk->fd, names_get(&frame->names, i), options,
		"disappeared while the directory was read", ret);
	if (is_excluded && ret->kind != SCAN_SPECIAL)
		ret->kind = SCAN_EXCLUDED;
	return 1;
}

/* Visits the i-th name of the last frame: it enters a directory, puts back the files in
 * REMOVAL_FOLDER, or makes the entry of anything else. Returns 1 and an entry, 0 if there is no
 * entry for the name, or -errno with a sentence. */
static int visit_name(
	struct walk *walk, size_t i, struct scan_entry *ret, struct problem *ret_problem)
{
	const struct names *names = &walk->frames[walk->n_frames - 1].names;
	if (set_path(walk, names_get(names, i)))
		return scan_no_memory(ret_problem);
	if (is_removal_folder(names, i))
		return visit_removal_folder(walk, ret, ret_problem);
	if (names_tag(names, i) == NAMES_DIRECTORY)
		return visit_directory(walk, ret, ret_problem);
	return visit_file(walk, i, ret, ret_problem);
}

int walk_next(struct walk *walk, struct scan_entry *ret, struct problem *ret_problem)
{
	/* r is 0 until there is an entry or an error. */
	int r = 0;
	if (!walk->path.len) { /* the first call enters the top directory */
		text_add(&walk->path, ".");
		r = walk->path.error ? scan_no_memory(ret_problem)
				     : enter_directory(walk, 0, ret, ret_problem);
	}
	while (r == 0 && walk->n_frames) {
		struct frame *frame = &walk->frames[walk->n_frames - 1];
		if (frame->next < frame->names.n) {
			r = visit_name(walk, frame->next++, ret, ret_problem);
			continue;
		}
		leave_directory(walk);
		r = scan_check_cancelled(walk->options, ret_problem);
	}
	if (r > 0)
		ret->relative = text_string(&walk->path);
	return r;
}
