#include "scan/source_look.h"
#include "base/path.h"
#include "scan/file_kind.h"
#include "scan/filter/filter.h"
#include "scan/open.h"
#include "scan/rotated/rotation_identity.h"
#include "scan/source_file.h"
#include "scan/source_name.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What follows the SOURCE's directory in the path of the file's: "" for the same, NULL outside. */
static const char *below(const struct source *source, const char *directory)
{
	size_t n = strlen(source->directory);
	if (n && source->directory[n - 1] == '/') /* the root */
		n--;
	if (strncmp(directory, source->directory, n) != 0 || (directory[n] && directory[n] != '/'))
		return NULL;
	return directory + n + (directory[n] == '/');
}

static bool find_relative(struct source *source, const struct place_of_file *place)
{
	struct text *relative = &source->looked_at;
	const char *directory = source->directory ? below(source, place->directory) : NULL;
	const bool is_tree = source->directory_fd >= 0;
	if (!directory || (!is_tree && (*directory || !source->file ||
					       strcmp(place->name, source->file) != 0)))
		return false;
	text_reset(relative);
	if (*directory) {
		text_add(relative, directory);
		text_add_char(relative, '/');
	}
	text_add(relative, place->name);
	const char *filtered = is_tree ? text_string(relative) : path_name(source_given(source));
	return filter_wants_file(source->options->filter, filtered);
}

/* Its directory has no links in its path, so that none is followed. */
static int look_in_folder(
	struct source *source, const struct place_of_file *place, struct problem *ret_problem)
{
	struct scan_entry *head = &source->head;
	const int fd = open(place->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int error = fd < 0 ? -errno : 0;
	if (open_out_of_resources(error, ret_problem))
		return error;
	if (error) {
		look_refused(AT_FDCWD, place->directory, -error, "does not exist", head);
		return 0;
	}
	look_at(fd, place->name, source->options, "does not exist", head);
	look_was_named(head);
	close(fd);
	return 0;
}

int source_look(
	struct source *source, const struct place_of_file *place, struct problem *ret_problem)
{
	if (!find_relative(source, place))
		return 0;
	if (open_out_of_resources(source->looked_at.error ? -ENOMEM : 0, ret_problem))
		return -ENOMEM;
	source_begin_head(source);
	source->head.relative = text_string(&source->looked_at);
	const struct scan_entry *head = &source->head;
	int error = look_in_folder(source, place, ret_problem);
	if (!error && source->options->rotated &&
		(head->kind == SCAN_FILE || head->kind == SCAN_YOUNG))
		error = rotation_look(source, ret_problem);
	return error ? error : source_name_head(source, ret_problem);
}
