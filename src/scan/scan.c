/* The scan as other rooms see it. It checks the options, opens the SOURCEs, and hands out their
 * files in order. It also makes the entry of a single file that the user names, and opens files and
 * folders of the SOURCEs for the workers of a run. Most of the work is in source.c, key_order.c and
 * the files below them. */
#include "scan/scan.h"
#include "base/files.h"
#include "scan/key/key.h"
#include "scan/open.h"
#include "scan/rotated/rotation.h"
#include "scan/scan_entry.h"
#include "scan/source.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scan {
	struct scan_options options;
	struct source *sources;
	size_t n;            /* open sources */
	struct order *order; /* NULL before the first scan_next() */
};

/* Refuses options that contradict each other, and a key or prefix that S3 would refuse. Returns 0,
 * or -EINVAL with a sentence. */
static int check_options(const struct scan_options *options, struct problem *ret_problem)
{
	const struct {
		bool is_wrong;
		const char *sentence;
	} rules[] = {
		{options->n_sources == 0, "no SOURCE is given"},
		{options->as && options->files_from,
			"--as and --files-from cannot be used together: --as is for one file, "
			"--files-from for a directory"},
		{options->as && options->key_template,
			"--as and --key cannot be used together: --as names the key of one file"},
		{options->rotated && options->files_from,
			"--rotated and --files-from cannot be used together: rotation renames the "
			"files that the list names"},
		{options->as && options->n_sources != 1,
			"--as names the key of exactly one SOURCE file"},
		{options->files_from && options->n_sources != 1,
			"--files-from needs exactly one SOURCE directory"},
	};
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].is_wrong)
			return problem_error(ret_problem, -EINVAL, "%s", rules[i].sentence);
	const char *given = options->as ? options->as : options->prefix;
	const bool is_empty_prefix = !options->as && *given == '\0'; /* which is allowed */
	if (is_empty_prefix || key_valid(given, strlen(given), ret_problem))
		return 0;
	problem_prefix(ret_problem, options->as ? "--as" : "the prefix");
	return -EINVAL;
}

/* Compares two sources by the paths and names that their keys are made of, for qsort(3). Returns 0
 * if both would have the same keys. */
static int compare_sources(const void *one, const void *other)
{
	const struct source *a = *(const struct source *const *)one;
	const struct source *b = *(const struct source *const *)other;
	int order = strcmp(a->directory ? a->directory : "", b->directory ? b->directory : "");
	if (!order)
		order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	if (order || !a->file)
		return order;
	/* Two symlinks to one file give it two keys, so they are two SOURCEs. */
	return strcmp(source_name(a), source_name(b));
}

/* Refuses a SOURCE that is given twice, since each of its files would be two files with one key. */
static int refuse_repeated(const struct scan *scan, struct problem *ret_problem)
{
	const struct source **sorted = calloc(scan->n, sizeof(struct source *));
	int r = sorted ? 0 : -ENOMEM;
	for (size_t i = 0; !r && i < scan->n; i++)
		sorted[i] = &scan->sources[i];
	if (!r)
		qsort(sorted, scan->n, sizeof(struct source *), compare_sources);
	/* SOURCEs whose paths cannot be resolved have no directory. They compare as equal, and each
	 * of them becomes a PROBLEM. */
	for (size_t i = 1; !r && i < scan->n; i++)
		if (sorted[i]->directory && compare_sources(&sorted[i - 1], &sorted[i]) == 0)
			r = problem_error(ret_problem, -EINVAL,
				"the SOURCEs %s and %s are the same: give it once",
				quote(source_given(sorted[i - 1])).text,
				quote(source_given(sorted[i])).text);
	free(sorted);
	return r;
}

int scan_open(const struct scan_options *options, struct scan **ret, struct problem *ret_problem)
{
	int r = check_options(options, ret_problem);
	if (r < 0)
		return r;
	struct scan *scan = calloc(1, sizeof *scan);
	if (!scan)
		return scan_no_memory(ret_problem);
	scan->options = *options;
	scan->sources = calloc(options->n_sources, sizeof *scan->sources);
	r = scan->sources ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < options->n_sources; i++) {
		r = source_open(&scan->sources[i], &scan->options, i, ret_problem);
		scan->n += r == 0; /* scan_close() closes the open ones */
	}
	if (r == 0)
		r = refuse_repeated(scan, ret_problem);
	if (r < 0) {
		open_explain_fatal(r, ret_problem); /* -ENOMEM may have no sentence yet */
		scan_close(scan);
		return r;
	}
	*ret = scan;
	return 0;
}

void scan_account_for_all(struct scan *scan)
{
	scan->options.accounts_for_all = true;
}

void scan_close(struct scan *scan)
{
	if (!scan)
		return;
	order_free(scan->order);
	for (size_t i = 0; i < scan->n; i++)
		source_close(&scan->sources[i]);
	free(scan->sources);
	free(scan);
}

int scan_next(struct scan *scan, struct scan_entry *ret, struct problem *ret_problem)
{
	return order_next(&scan->order, scan->sources, scan->n, ret, ret_problem);
}

/* Finds out whether the file `name` in this folder is in the SOURCE. `directory` is the absolute
 * path, without symlinks, of the folder. If the file is in the SOURCE, sets source->relative, and
 * source->path to the absolute path, until source_name_head() makes the path for messages. Returns
 * 1, 0 or -ENOMEM. */
static int find_in_source(struct source *source, const char *directory, const char *name)
{
	const bool is_tree = source->directory_fd >= 0;
	const char *folder = source->directory ? path_below(source->directory, directory) : NULL;
	if (!folder)
		return 0;
	/* If the SOURCE is a file, only this very file is in it: its folder is source->directory
	 * itself, and the path ends in its name. */
	const bool is_source_file = !*folder && source->file && strcmp(name, source->file) == 0;
	if (!is_tree && !is_source_file)
		return 0;
	text_reset(&source->relative);
	text_addf(&source->relative, "%s%s%s", folder, *folder ? "/" : "",
		is_tree ? name : source_name(source));
	text_reset(&source->path);
	text_addf(&source->path, "%s/%s", directory, name);
	return source->relative.error || source->path.error ? -ENOMEM : 1;
}

/* Makes source->head the entry that the stream would have for this file, or an EXCLUDED one.
 * Returns 1; 0 if the file is not in the SOURCE; or -errno with a sentence. `directory` is the
 * absolute path, without symlinks, of the folder that `path` is in. */
static int look_in_source(
	struct source *source, const char *path, const char *directory, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	/* A SOURCE file may be a symlink. If `path` is the SOURCE as it was given, the target of
	 * the symlink is examined, which may be in another folder. */
	const bool is_given = source->file && strcmp(path, source_given(source)) == 0;
	/* This sets source->relative and source->path. */
	const int r = is_given ? find_in_source(source, source->directory, source->file)
			       : find_in_source(source, directory, path_name(path));
	if (r <= 0)
		return r < 0 ? scan_no_memory(ret_problem) : 0;
	const char *relative = text_string(&source->relative);
	source_empty_head(source);
	head->relative = relative;
	entry_look(AT_FDCWD, text_string(&source->path), source->options, "does not exist", head);
	entry_refuse_special(head);
	if (entry_is_file(head) && !filter_wants_file(source->options->filter, relative))
		head->kind = SCAN_EXCLUDED;
	const bool may_be_rotated = source->options->rotated && entry_is_file(head);
	const int error = may_be_rotated ? rotation_complete_head(source, ret_problem) : 0;
	return error ? error : source_name_head(source, ret_problem);
}

/* Symlinks in the folder of the path are resolved. The last component is taken as it was given. The
 * first SOURCE whose filter wants the file makes the entry. */
int scan_make_entry(
	struct scan *scan, const char *path, struct scan_entry *ret, struct problem *ret_problem)
{
	char *folder = path_folder(path);
	if (!folder)
		return scan_no_memory(ret_problem);
	char *directory = realpath(folder, NULL);
	int r = directory ? 0 : -errno;
	if (r < 0)
		problem_set(ret_problem, "%s: %s", quote(folder).text, strerror(-r));
	bool has_entry = false;
	for (size_t i = 0; directory && r == 0 && i < scan->n; i++) {
		r = look_in_source(&scan->sources[i], path, directory, ret_problem);
		if (r <= 0)
			continue;
		*ret = scan->sources[i].head;
		has_entry = true;
		if (ret->kind == SCAN_EXCLUDED)
			r = 0; /* the filter of another SOURCE may want the file */
	}
	free(directory);
	free(folder);
	return r == 0 && has_entry ? 1 : r;
}

int scan_open_moved(const struct scan *scan, size_t source, const char *relative,
	const struct file_state *version, struct file_state *ret_state)
{
	int fd = source_open_inode(
		&scan->sources[source], relative, version->dev, version->ino, ret_state);
	if (fd >= 0 && !file_state_equal(ret_state, version)) {
		close(fd);
		fd = -ENOENT;
	}
	return fd;
}

const char *scan_source_path(const struct scan *scan, size_t source)
{
	const char *directory = scan->sources[source].directory;
	return directory ? directory : scan->options.sources[source];
}

bool scan_is_young(const struct scan *scan, const struct file_state *state)
{
	return is_too_young(state, &scan->options);
}

int scan_source_error(const struct scan *scan, size_t source)
{
	return scan->sources[source].error;
}

bool scan_source_is_directory(const struct scan *scan, size_t source)
{
	return scan->sources[source].directory_fd >= 0;
}

/* Opens the folder below a SOURCE directory that the file at `relative` is in. Returns its
 * descriptor or -errno. */
static int open_folder_in_tree(const struct source *source, const char *relative)
{
	char *folder = path_folder(relative);
	const int fd =
		folder ? open_beneath(source->directory_fd, folder, O_PATH | O_DIRECTORY) : -ENOMEM;
	free(folder);
	return fd;
}

/* Opens the folder of a SOURCE that is a file. Returns its descriptor, or -errno. */
static int open_folder_of_file(const struct source *source)
{
	struct stat st;
	if (lstat(source_given(source), &st) == 0 && S_ISLNK(st.st_mode))
		return -ELOOP;
	const int fd = open(source->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int scan_open_folder(const struct scan *scan, size_t source, const char *relative,
	const char **ret_name, uid_t *ret_owner)
{
	const struct source *from = &scan->sources[source];
	const bool is_tree = from->directory_fd >= 0;
	if (from->error)
		return from->error;
	const int fd = is_tree ? open_folder_in_tree(from, relative) : open_folder_of_file(from);
	if (fd < 0)
		return fd;
	struct stat st;
	if (fstat(is_tree ? from->directory_fd : fd, &st) < 0) {
		const int error = -errno;
		close(fd);
		return error;
	}
	*ret_name = is_tree ? path_name(relative) : from->file;
	*ret_owner = st.st_uid;
	return fd;
}

int scan_open_file(
	const struct scan *scan, size_t source, const char *relative, struct file_state *ret_state)
{
	return source_open_file(&scan->sources[source], relative, ret_state);
}

int scan_open_piece(const struct scan *scan, const struct scan_entry *found,
	struct file_state *ret_state, struct problem *ret_problem)
{
	return growing_logs_copy_piece(
		&scan->sources[found->source], found, ret_state, ret_problem);
}
