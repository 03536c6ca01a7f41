/* One SOURCE. It is opened, its entries are read one after the other (from a walk, a list of paths,
 * or the one file that it is), and its files are opened, also under names that rotation has given
 * them since. key_order.c and rotated/ call it. Keys are made in source_key.c. */
#include "scan/source.h"
#include "base/files.h"
#include "scan/key/key.h"
#include "scan/open.h"
#include "scan/removal.h"
#include "scan/scan_entry.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *source_given(const struct source *source)
{
	return source->options->sources[source->index];
}

const char *source_name(const struct source *source)
{
	const struct scan_options *options = source->options;
	return source->file && (options->rotated || options->is_piped)
		       ? source->file
		       : path_name(source_given(source));
}

enum links { LINKS_REFUSED, LINKS_FOLLOWED };

/* Checks that the name still points to this file, which is open. If the file was renamed after it
 * was opened, another file may have the name by now, and bytes that are written to the open file
 * from then on were never under this name. A rename after this check shows in the ctime, which the
 * caller compares. Returns 0, -ESTALE, or another -errno. */
static int check_name(int folder_fd, const char *name, enum links links, const struct stat *file)
{
	struct stat named;
	if (fstatat(folder_fd, name, &named, links == LINKS_FOLLOWED ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* Another inode number alone does not count, since some file systems give a file another
	 * number at each look. */
	const bool has_other_content =
		named.st_size != file->st_size || named.st_mtime != file->st_mtime;
	return named.st_ino != file->st_ino && has_other_content ? -ESTALE : 0;
}

/* Opens the regular file `name`, a path relative to the folder. Returns the descriptor; -EINVAL for
 * anything but a regular file; -ELOOP, -EXDEV or -ESTALE as scan_open_file(); or another -errno. */
static int open_regular(
	int folder_fd, const char *name, enum links links, struct file_state *ret_state)
{
	const bool follows = links == LINKS_FOLLOWED;
	const int fd =
		open_beneath_or_follow(folder_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, follows);
	struct stat st;
	if (fd < 0) /* a socket or a device that cannot be opened is not a regular file */
		return fd == -ENXIO || fd == -ENODEV ? -EINVAL : fd;
	int error = 0;
	if (fstat(fd, &st) < 0)
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = -EINVAL;
	else
		error = check_name(folder_fd, name, links, &st);
	if (error) {
		close(fd);
		return error;
	}
	file_state_from(&st, ret_state);
	return fd;
}

int source_open_file(
	const struct source *source, const char *relative, struct file_state *ret_state)
{
	const struct scan_options *options = source->options;
	if (source->error)
		return source->error;
	if (source->directory_fd >= 0)
		return open_regular(source->directory_fd, relative,
			options->follow ? LINKS_FOLLOWED : LINKS_REFUSED, ret_state);
	/* The SOURCE is a file. Its folder is opened each time, and not kept open, since there may
	 * be many thousands of such SOURCEs. */
	const int folder_fd = open(source->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	/* A file that rotates may have another name by now, which is in `relative`. */
	const char *name = options->rotated ? relative : source->file;
	const int fd = open_regular(folder_fd, name, LINKS_REFUSED, ret_state);
	close(folder_fd);
	return fd;
}

/* Opens the folder that the file at `relative` is in, to list it. Returns 0 or -errno. */
static int open_folder_of(const struct source *source, const char *relative, DIR **ret)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	int fd;
	if (source->directory_fd < 0) {
		fd = open(source->directory, flags | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	} else {
		char *folder = path_folder(relative);
		fd = folder ? open_beneath_or_follow(
				      source->directory_fd, folder, flags, source->options->follow)
			    : -ENOMEM;
		free(folder);
	}
	if (fd < 0)
		return fd;
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	const int error = -errno;
	close(fd);
	return error;
}

/* Opens the file with this inode number in the folder of `relative`, whatever its name is now.
 * Returns the descriptor, -ENOENT if no name there has this number, or another -errno. */
static int open_by_inode(
	const struct source *source, const char *relative, ino_t ino, struct file_state *ret_state)
{
	DIR *dir = NULL;
	int fd = open_folder_of(source, relative, &dir);
	if (!dir)
		return fd;
	const struct dirent *entry;
	while ((entry = readdir(dir)) && entry->d_ino != ino)
		;
	fd = -ENOENT;
	if (entry) {
		struct text present = TEXT(SOURCE_PATH_BYTES_MAX); /* path of the file by now */
		text_add_bytes(&present, relative, (size_t)(path_name(relative) - relative));
		text_add(&present, entry->d_name);
		fd = present.error ? present.error
				   : source_open_file(source, text_string(&present), ret_state);
		text_clear(&present);
	}
	closedir(dir);
	return fd;
}

bool error_means_moved(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EINVAL || r == -ESTALE;
}

int source_open_inode(const struct source *source, const char *relative, dev_t dev, ino_t ino,
	struct file_state *ret_state)
{
	int fd = source_open_file(source, relative, ret_state);
	if (fd >= 0 && ret_state->dev == dev && ret_state->ino == ino)
		return fd;
	if (fd < 0 && !error_means_moved(fd)) /* another name would not avoid this error */
		return fd;
	if (fd >= 0)
		close(fd);
	fd = open_by_inode(source, relative, ino, ret_state);
	if (fd < 0 || (ret_state->dev == dev && ret_state->ino == ino))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Opens a SOURCE that is a directory, and the list or the walk that its entries come from. Returns
 * 0, even if the directory cannot be reached, or -errno. */
static int open_tree(struct source *source, struct problem *ret_problem)
{
	const struct scan_options *options = source->options;
	if (options->as)
		return problem_error(ret_problem, -EINVAL,
			"--as names the key of one file, and the SOURCE is a directory");
	source->directory_fd = open(source->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source->directory_fd < 0) {
		source->error = -errno;
		return open_explain_fatal(source->error, ret_problem) ? source->error : 0;
	}
	if (options->files_from)
		return files_from_open(source->directory_fd, options, &source->list, ret_problem);
	return walk_open(source->directory_fd, options, source->directory, &source->walk);
}

/* Puts back the files of an interrupted removal in the folder of this path, which may be one of
 * them. Errors are ignored: if the path stays missing, that is the error. */
static void recover_beside(const char *path)
{
	struct problem ignored;
	char *folder = path_folder(path);
	const int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		removal_recover(fd, &ignored);
		close(fd);
	}
	free(folder);
}

/* Finds out whether the SOURCE is a directory, a file or a pipe, and sets directory and file. Opens
 * a directory. Returns 0, also for a SOURCE that cannot be reached, or -errno. */
static int reach_source(struct source *source, struct problem *ret_problem)
{
	struct stat st;
	if (source->options->is_piped) { /* there is no file, only the given name */
		source->directory = strdup(source_given(source));
		source->file = strdup(source_given(source));
		return source->directory && source->file ? 0 : -ENOMEM;
	}
	source->directory = realpath(source_given(source), NULL);
	if (!source->directory && errno == ENOENT && !source->options->read_only) {
		recover_beside(source_given(source));
		source->directory = realpath(source_given(source), NULL);
	}
	if (!source->directory) {
		source->error = -errno;
		return source->error == -ENOMEM ? -ENOMEM : 0;
	}
	if (stat(source->directory, &st) == 0 && S_ISDIR(st.st_mode))
		return open_tree(source, ret_problem);
	if (source->options->files_from)
		return problem_error(ret_problem, -EINVAL,
			"--files-from lists paths below a directory, and the SOURCE is a file");
	/* The path of the file is cut at its last slash into folder and name. If the folder is the
	 * root, its path is this slash, which stays. */
	char *slash = strrchr(source->directory, '/');
	const bool is_in_root = slash == source->directory;
	source->file = strdup(slash + 1);
	slash[is_in_root ? 1 : 0] = '\0';
	return source->file ? 0 : -ENOMEM;
}

int source_open(struct source *source, const struct scan_options *options, size_t index,
	struct problem *ret_problem)
{
	*source = (struct source){.options = options,
		.index = index,
		.directory_fd = -1,
		.key = TEXT(SOURCE_PATH_BYTES_MAX),
		.path = TEXT(SOURCE_PATH_BYTES_MAX),
		.relative = TEXT(SOURCE_PATH_BYTES_MAX)};
	if (!options->as)
		key_add_base(&source->key, options->prefix);
	source->key_base_bytes = source->key.len;
	const int r = source->key.error ? source->key.error : reach_source(source, ret_problem);
	if (r < 0) {
		open_explain_fatal(r, ret_problem); /* -ENOMEM may have no sentence yet */
		source_close(source);
	}
	return r;
}

void source_close(struct source *source)
{
	walk_close(source->walk);
	files_from_close(source->list);
	if (source->directory_fd >= 0)
		close(source->directory_fd);
	free(source->directory);
	free(source->file);
	text_clear(&source->key);
	text_clear(&source->path);
	text_clear(&source->relative);
}

/* Returns the sentence about a SOURCE that does not exist. A shell leaves a pattern as it is if no
 * file matches it, and in the file of a job nothing expands it. */
static const char *absent_source(const char *path)
{
	if (strstr(path, " /"))
		return "does not exist; write each SOURCE as a word of its own, or in a job on a "
		       "line of its own";
	if (strpbrk(path, "*?["))
		return "does not exist; wildcards are not expanded: name the folder, and give the "
		       "pattern to --include";
	return "does not exist";
}

/* Makes the SOURCE itself the head, as its only entry, if it is no directory: a file, a pipe of the
 * program (is_piped), or a PROBLEM for anything else or for a SOURCE that could not be reached.
 * Returns 1, or 0 if it was the head already. */
static int read_itself(struct source *source)
{
	struct scan_entry *head = &source->head;
	if (source->ended)
		return 0;
	source->ended = true;
	head->relative = source_name(source);
	if (!*head->relative) /* a SOURCE that ends in a slash and could not be reached */
		head->relative = ".";
	if (source->options->is_piped) {
		head->kind = SCAN_FILE;
		head->mtime_ns = source->options->now_wall_ns;
		return 1;
	}
	struct stat st;
	if (source->error == 0 && stat(source_given(source), &st) < 0)
		source->error = -errno;
	if (source->error) {
		entry_set_unreadable(AT_FDCWD, source_given(source), -source->error,
			absent_source(source_given(source)), head);
		return 1;
	}
	entry_judge(source_given(source), &st, source->options, head);
	entry_refuse_special(head); /* the user has named it, so it is not just left out */
	const bool is_wanted = filter_wants_file(source->options->filter, head->relative);
	if (!is_wanted && (entry_is_file(head) || !source->options->accounts_for_all))
		head->kind = SCAN_EXCLUDED;
	return 1;
}

void source_empty_head(struct source *source)
{
	source->head = (struct scan_entry){.key = "", .path = "", .suffix = ""};
}

int source_next_unnamed(struct source *source, struct problem *ret_problem)
{
	source_empty_head(source);
	if (source->walk)
		return walk_next(source->walk, &source->head, ret_problem);
	if (source->list)
		return files_from_next(source->list, &source->head, ret_problem);
	return read_itself(source);
}

int source_rewind(struct source *source)
{
	source->ended = false;
	if (!source->walk)
		return 0;
	walk_close(source->walk);
	source->walk = NULL;
	return walk_open(source->directory_fd, source->options, source->directory, &source->walk);
}
