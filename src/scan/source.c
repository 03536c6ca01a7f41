#include "scan/source.h"
#include "base/path.h"
#include "scan/file_kind.h"
#include "scan/files_from.h"
#include "scan/key/key.h"
#include "scan/open.h"
#include "scan/removal.h"
#include "scan/source_file.h"
#include "scan/source_name.h"
#include "scan/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES_MAX (256UL * 1024) /* a SOURCE and a relative path always fit */

static int refuse_combination(struct problem *ret_problem, const char *sentence)
{
	problem_set(ret_problem, "%s", sentence);
	return -EINVAL;
}

static int begin_walk(struct source *source)
{
	const struct scan_options *options = source->options;
	return walk_open(source->directory_fd, options, options->folders ? &source->only : NULL,
		&source->walk);
}

static int open_tree(struct source *source, struct problem *ret_problem)
{
	const struct scan_options *options = source->options;
	if (options->as)
		return refuse_combination(ret_problem,
			"--as names the key of one file, and the SOURCE is a directory");
	source->directory_fd = open(source->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (source->directory_fd < 0) {
		source->error = -errno;
		return open_out_of_resources(source->error, ret_problem) ? source->error : 0;
	}
	if (options->files_from)
		return files_from_open(source->directory_fd, options, &source->list, ret_problem);
	const int error =
		only_init(&source->only, source->directory, options->folders, options->n_folders);
	return error ? error : begin_walk(source);
}

/* directory holds the path of the file; cuts it in two. */
static int open_file(struct source *source, struct problem *ret_problem)
{
	if (source->options->files_from)
		return refuse_combination(ret_problem,
			"--files-from lists paths below a directory, and the SOURCE is a file");
	char *slash = strrchr(source->directory, '/');
	source->file = strdup(slash + 1);
	if (!source->file)
		return -ENOMEM;
	slash[slash == source->directory] = '\0';
	return 0;
}

static void add_bases(struct source *source)
{
	const struct scan_options *options = source->options;
	source->key = TEXT(PATH_BYTES_MAX);
	source->path = TEXT(PATH_BYTES_MAX);
	source->looked_at = TEXT(PATH_BYTES_MAX);
	if (!options->as)
		key_add_base(&source->key, options->prefix);
	source->key_base_bytes = source->key.len;
}

/* A SOURCE file that is not there may be what a run that was cut was about to remove. */
static void recover(const struct source *source)
{
	struct problem ignored;
	char *path = strdup(source_given(source));
	if (!path)
		return;
	const int fd = open(dirname(path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		removal_recover(fd, &ignored);
		close(fd);
	}
	free(path);
}

static int open_kind(struct source *source, struct problem *ret_problem)
{
	struct stat st;
	source->directory = realpath(source_given(source), NULL);
	if (!source->directory && errno == ENOENT && !source->options->only_looks) {
		recover(source);
		source->directory = realpath(source_given(source), NULL);
	}
	if (!source->directory) {
		source->error = -errno;
		return source->error == -ENOMEM ? -ENOMEM : 0;
	}
	if (stat(source->directory, &st) == 0 && S_ISDIR(st.st_mode))
		return open_tree(source, ret_problem);
	return open_file(source, ret_problem);
}

int source_open(struct source *source, const struct scan_options *options, size_t index,
	struct problem *ret_problem)
{
	*source = (struct source){.options = options, .index = index, .directory_fd = -1};
	add_bases(source);
	int r = source->key.error ? source->key.error : source->path.error;
	if (r == 0)
		r = open_kind(source, ret_problem);
	if (r < 0) {
		open_out_of_resources(r, ret_problem);
		source_close(source);
	}
	return r;
}

int source_compare(const struct source *a, const struct source *b)
{
	int order = strcmp(a->directory ? a->directory : "", b->directory ? b->directory : "");
	if (!order)
		order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	return order || !a->file ? order
				 : strcmp(path_name(source_given(a)), path_name(source_given(b)));
}

void source_close(struct source *source)
{
	walk_close(source->walk);
	only_clear(&source->only);
	files_from_close(source->list);
	if (source->directory_fd >= 0)
		close(source->directory_fd);
	free(source->directory);
	free(source->file);
	text_clear(&source->key);
	text_clear(&source->path);
	text_clear(&source->looked_at);
}

/* The SOURCE itself is the entry: a file, or what it should have been. */
static int next_itself(struct source *source)
{
	struct scan_entry *head = &source->head;
	if (source->ended)
		return 0;
	source->ended = true;
	head->relative = source->file ? source->file : ".";
	struct stat st;
	if (source->error == 0 && stat(source_given(source), &st) < 0)
		source->error = -errno;
	if (source->error) {
		look_refused(
			AT_FDCWD, source_given(source), -source->error, "does not exist", head);
	} else if (filter_wants_file(source->options->filter, path_name(source_given(source)))) {
		look_judge(&st, source->options, head);
		look_was_named(head);
	} else {
		return 0;
	}
	return 1;
}

int source_read(struct source *source, struct problem *ret_problem)
{
	source_begin_head(source);
	if (source->walk)
		return walk_next(source->walk, &source->head, ret_problem);
	if (source->list)
		return files_from_next(source->list, &source->head, ret_problem);
	return next_itself(source);
}

int source_next(struct source *source, struct problem *ret_problem)
{
	int r = source_read(source, ret_problem);
	return r > 0 ? source_name_head(source, ret_problem) : r;
}

int source_rewind(struct source *source)
{
	source->ended = false;
	if (!source->walk)
		return 0;
	walk_close(source->walk);
	source->walk = NULL;
	return begin_walk(source);
}
